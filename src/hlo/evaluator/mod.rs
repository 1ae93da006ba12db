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
mod host;
pub mod scalar;
mod steps;
mod tile;

#[cfg(test)]
mod tests;

use crate::attributes::Attributes;
use crate::fusion::{FusionCompiler, FusionPlan};
use crate::module::{Computation, Module, ProgramShape};
use crate::opcode::Opcode;
use crate::passes::inline;
use code::{Code, Environment};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::sync::Arc;

pub use host::{FindHostFunction, HostFunction, set_host_functions};
pub(crate) use steps::is_identity;

pub(crate) use tile::TileFn as TileFunction;

/// The function of an elementwise opcode, and its parameter, in the types that elements are computed in.
pub(crate) fn elementwise_function(
    opcode: Opcode,
    attributes: &Attributes,
    operand: DataType,
    result: DataType,
) -> Option<(TileFunction, u64)> {
    let parameter = match attributes {
        Attributes::Precision {
            exponent_bits,
            mantissa_bits,
        } => u64::from(*exponent_bits) << 32 | u64::from(*mantissa_bits),
        _ => 0,
    };
    let (operand, result) = (tile::compute_type(operand), tile::compute_type(result));
    Some((
        tile::map_function(opcode, attributes, operand, result)?,
        parameter,
    ))
}

/// Applies a function to `len` elements.
///
/// # Safety
/// `function` is a [`TileFunction`]; the pointers are valid and aligned for `len` elements of its types, and the result
/// overlaps no operand.
pub(crate) unsafe fn run_elementwise(
    function: *const u8,
    parameter: u64,
    out: *mut u8,
    operands: [*const u8; 3],
    len: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let function = std::mem::transmute::<*const u8, TileFunction>(function);
        function(&tile::TileArgs {
            operands,
            out,
            len,
            splat: 0,
            parameter,
        });
    }
}

/// The opcode with which a reducer combines two values, if it is a single well-known one.
pub(crate) fn recognize_reducer(computation: &Computation) -> Option<Opcode> {
    match steps::recognize(computation)? {
        steps::Known::Binary(opcode) => Some(opcode),
        _ => None,
    }
}

/// A module ready to run. Immutable; share it by `Arc`.
pub struct Program {
    code: Arc<Code>,
    shape: ProgramShape,
}

impl Program {
    /// Compiles a module, which must be well formed as [`crate::verify`] says (the builder makes no others).
    /// UNIMPLEMENTED when the evaluator lacks an instruction.
    pub fn compile(module: &Module) -> Result<Program> {
        Program::with_fusions(module, &compile::Fusions::default())
    }

    /// As [`Program::compile`], with code from `fusions` for the `fusion` instructions of the module that it accepts.
    /// Where it fails, or gives none, the evaluator runs the fusion.
    pub fn compile_with(module: &Module, fusions: &dyn FusionCompiler) -> Result<Program> {
        let mut code = compile::Fusions::default();
        for instruction in module
            .computations
            .iter()
            .flat_map(|computation| &computation.instructions)
        {
            let (Opcode::Fusion, Attributes::Call(called)) = (instruction.opcode, &instruction.attributes)
            else {
                continue;
            };
            let Ok(plan) = FusionPlan::of(&module.computations, module.computation(*called)?) else {
                continue;
            };
            if let Ok(Some(kernel)) = fusions.compile(&plan) {
                code.insert(*called, (Arc::new(plan), kernel));
            }
        }
        Program::with_fusions(module, &code)
    }

    fn with_fusions(module: &Module, fusions: &compile::Fusions) -> Result<Program> {
        let shape = module.entry_computation().program_shape();
        let flat = inline::flatten(module, &|called| fusions.contains_key(&called))?;
        let mut compiler = compile::Compiler::new(&flat, fusions);
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
