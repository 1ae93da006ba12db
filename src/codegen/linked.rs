//! Fusions whose code was linked into the program: the other end of an object that `compile_unit` made.

use crate::kernel::CompiledFusion;
pub use crate::kernel::Function as FusionFunction;
use ff_hlo::fusion::{FusionCompiler, FusionKernel, FusionPlan};
use ff_tensor::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number by which a table names the structure of a plan.
pub fn structure_hash(plan: &FusionPlan) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    plan.structure().bytes().fold(start, step)
}

/// Gives fusions their linked code; those without run in the evaluator.
pub struct LinkedFusions<'a> {
    functions: &'a [(u64, FusionFunction)],
    found: AtomicUsize,
}

impl<'a> LinkedFusions<'a> {
    /// The functions by the [`structure_hash`] of the plans that they were made of.
    ///
    /// # Safety
    /// Each function is code that `compile_unit` made for a plan of that structure, and this processor has what the
    /// target of the object asks for.
    pub unsafe fn new(functions: &'a [(u64, FusionFunction)]) -> LinkedFusions<'a> {
        LinkedFusions {
            functions,
            found: AtomicUsize::new(0),
        }
    }

    /// How many fusions were given code.
    pub fn num_found(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }
}

impl FusionCompiler for LinkedFusions<'_> {
    fn compile(&self, plan: &FusionPlan) -> Result<Option<Arc<dyn FusionKernel>>> {
        let hash = structure_hash(plan);
        let Some((_, function)) = self.functions.iter().find(|(known, _)| *known == hash) else {
            return Ok(None);
        };
        let kernel = CompiledFusion::linked(plan, *function)?;
        self.found.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Arc::new(kernel)))
    }
}
