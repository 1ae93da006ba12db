//! Runs modules without machine code: the oracle, the fallback, and the path of first runs.
//!
//! [`Program::compile`] turns a module into steps on slots. Chains of elementwise instructions become one step that is
//! evaluated tile by tile, with broadcasts, slices and counters read in place; reshapes and tuples are no work; the
//! rest runs on the kernels. Values are dropped after their last use, and an output takes over the memory of an
//! operand that dies, inputs of the program included where nobody else owns them.
//!
//! Elements do not depend on fusion, tiles or threads: fused and unfused programs agree bit for bit.

mod code;
mod compile;
pub mod scalar;
mod steps;
mod tile;

#[cfg(test)]
mod tests;

use crate::module::{Module, ProgramShape};
use crate::passes::inline;
use code::{Code, Environment};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::sync::Arc;

/// A module ready to run. Immutable; share it by `Arc`.
pub struct Program {
    code: Arc<Code>,
    shape: ProgramShape,
}

impl Program {
    /// Compiles a module, which must be well formed as [`crate::verify`] says (the builder makes no others).
    /// UNIMPLEMENTED when the evaluator lacks an instruction.
    pub fn compile(module: &Module) -> Result<Program> {
        let shape = module.entry_computation().program_shape();
        let flat = inline::flatten(module)?;
        let mut compiler = compile::Compiler::new(&flat);
        let code = compiler.compile(flat.entry)?;
        Ok(Program { code, shape })
    }

    /// The shapes of parameters and result, tuples as the module has them.
    pub fn shape(&self) -> &ProgramShape {
        &self.shape
    }

    /// Runs the program on its parameters, tuples flattened; gives the arrays of the result, tuples flattened.
    ///
    /// Inputs that nobody else owns may be written over. INVALID_ARGUMENT when an input does not have its parameter's
    /// type and shape, RESOURCE_EXHAUSTED when memory is out, and the errors of failed checks.
    pub fn run(&self, pool: &ThreadPool, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.run_with(pool, inputs, &Tensor::allocate)
    }

    /// As [`Program::run`], with the memory of results and intermediate values from `allocate`.
    pub fn run_with(
        &self,
        pool: &ThreadPool,
        inputs: Vec<Tensor>,
        allocate: &(dyn Fn(DataType, Shape) -> Result<Tensor> + Sync),
    ) -> Result<Vec<Tensor>> {
        self.code.run(Environment { pool, allocate }, inputs)
    }

    /// The number of steps, for tests and for people.
    pub fn num_steps(&self) -> usize {
        self.code.steps.len()
    }
}
