//! Runs modules: compiles them to programs and executes these on the kernels.

use crate::Module;
use ff_kernels::ThreadPool;
use ff_tensor::{Result, Tensor, bail};

/// A module ready to run. Immutable; share it by `Arc`.
pub struct Program;

impl Program {
    /// Compiles a module.
    pub fn compile(module: &Module) -> Result<Program> {
        bail!(Unimplemented, "Cannot run module {} yet", module.name)
    }

    /// Runs the program. Inputs that nobody else owns may be reused for results.
    pub fn run(&self, _pool: &ThreadPool, _inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        bail!(Unimplemented, "Cannot run yet")
    }
}
