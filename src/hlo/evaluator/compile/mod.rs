//! Compiles a computation to steps.
//!
//! 1. `analyze`: the leaves of every live instruction, views instead of moves, levels and groups.
//! 2. `emit`: a step for each group, each other instruction, and each view whose elements are needed densely, in an
//!    order in which operands come first.
//! 3. `liveness`: what can be dropped or written over after each step.
//!
//! The module must be verified and free of `call`, `map` and fusions without code, which `passes::inline` removes.

mod analyze;
mod emit;
mod group;
mod leaf;
mod liveness;

use super::code::{Code, Kernel, ResultArray};
use super::steps::Compiled;
use crate::fusion::{FusionKernel, FusionPlan};
use crate::module::{ComputationId, Module};
use analyze::Analysis;
use ff_tensor::{Result, Shape, bail, ensure};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How deep loops and branches may nest.
const MAX_NESTING: usize = 100;

/// Compiles computations of one module, each once.
pub(super) struct Compiler<'a> {
    pub module: &'a Module,
    compiled: Vec<Option<Arc<Code>>>,
    nesting: usize,
    fusions: &'a Fusions,
}

/// Code of fusions, by their computations.
pub(super) type Fusions = FxHashMap<ComputationId, (Arc<FusionPlan>, Arc<dyn FusionKernel>)>;

impl<'a> Compiler<'a> {
    /// A compiler that runs these fusions as code; others must be inlined.
    pub fn new(module: &'a Module, fusions: &'a Fusions) -> Compiler<'a> {
        Compiler {
            module,
            compiled: vec![None; module.computations.len()],
            nesting: 0,
            fusions,
        }
    }

    /// The step of a fusion that runs as code.
    pub fn compiled_fusion(&self, called: ComputationId) -> Result<Box<dyn Kernel>> {
        let Some((plan, kernel)) = self.fusions.get(&called) else {
            bail!(Internal, "A fusion without code must be inlined before compiling");
        };
        Ok(Box::new(Compiled::new(plan.clone(), kernel.clone())))
    }

    /// The code of a computation.
    pub fn compile(&mut self, id: ComputationId) -> Result<Arc<Code>> {
        if let Some(code) = &self.compiled[id.0 as usize] {
            return Ok(code.clone());
        }
        ensure!(
            self.nesting < MAX_NESTING,
            ResourceExhausted,
            "Loops and branches of module {} are nested deeper than {MAX_NESTING}",
            self.module.name
        );
        self.nesting += 1;
        let code = self.compile_now(id);
        self.nesting -= 1;
        let code = Arc::new(code?);
        self.compiled[id.0 as usize] = Some(code.clone());
        Ok(code)
    }

    fn compile_now(&mut self, id: ComputationId) -> Result<Code> {
        let computation = self.module.computation(id)?;
        let analysis = Analysis::of(self.module, computation)?;
        let mut emitted = emit::emit(self, computation, analysis)?;
        let root = &computation.root_instruction().shape;
        let mut results = Vec::new();
        for (operand, shape) in emitted.results.iter().zip(root.leaves()) {
            results.push(ResultArray {
                operand: *operand,
                dtype: shape.dtype,
                shape: Shape::new(&shape.dims)?,
                shared: false,
            });
        }
        liveness::note(&mut emitted.steps, &mut results, emitted.slots);
        let mut parameters = Vec::new();
        for &parameter in &computation.parameters {
            for leaf in computation.instruction(parameter).shape.leaves() {
                parameters.push((leaf.dtype, Shape::new(&leaf.dims)?));
            }
        }
        Ok(Code {
            name: computation.name.clone(),
            steps: emitted.steps,
            slots: emitted.slots,
            parameters,
            constants: emitted.constants,
            results,
        })
    }
}
