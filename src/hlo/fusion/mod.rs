//! Fusions as kernels see them: a plan that says what is computed, with extents and strides apart from the structure.
//!
//! [`FusionPlan::of`] reads the computation of a `fusion` instruction. A compiler of kernels makes code from
//! [`FusionPlan::structure`] alone, so one kernel serves every shape of a structure; extents, strides and constants are
//! arguments of a run. [`FusionCompiler`] is how `ff-codegen` gives kernels to [`crate::Program`].
//!
//! What it does not do: it decides neither what is fused (`passes::fusion` does) nor how code looks.

mod extents;
mod forms;
mod library;
mod node;
mod plan;
mod planner;
mod reads;
mod structure;

pub(crate) use forms::{change, columns_have_code, is_read, reduces_columns, reduces_rows, starts_neutral};
pub use library::{LibraryFunction, call_library, library_function};
pub use node::{Check, Counter, Input, Level, Node, NodeKind, Output, Read, Start};
pub use plan::FusionPlan;

use crate::opcode::Opcode;
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Tensor};
use std::sync::Arc;

/// The value from which a reduction by an opcode starts; INVALID_ARGUMENT for an opcode that reduces nothing.
pub fn neutral_value(opcode: Opcode, dtype: DataType) -> Result<Tensor> {
    crate::builder::identity_tensor(opcode, dtype)
}

/// Makes kernels for fusions.
pub trait FusionCompiler: Send + Sync {
    /// The kernel of a plan; none where code would not pay or is not possible, and the evaluator is to run it.
    fn compile(&self, plan: &FusionPlan) -> Result<Option<Arc<dyn FusionKernel>>>;
}

/// Code for a fusion.
pub trait FusionKernel: Send + Sync {
    /// Runs the fusion that `plan` describes; it has the structure that the kernel was compiled for.
    ///
    /// RESOURCE_EXHAUSTED when memory for intermediate rows is out.
    ///
    /// # Safety
    /// `parameters` are the dense elements of the fusion's parameters and `outputs` have room for those of its outputs,
    /// aligned for their types. An output lies over a parameter only where [`FusionPlan::may_replace`] allows it, and
    /// overlaps nothing else.
    unsafe fn run(
        &self,
        pool: &ThreadPool,
        plan: &FusionPlan,
        parameters: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()>;
}
