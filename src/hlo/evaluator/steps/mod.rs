//! The steps of compiled computations: one kernel for each kind of instruction.

mod check;
mod compiled;
mod control;
mod convolution;
mod copy;
mod cumulative;
mod dot;
mod fft;
mod function;
mod fused;
mod gather;
mod host_call;
mod linalg;
mod matrix;
mod movement;
mod nd;
mod packed;
mod pool;
mod reduce;
mod reduce_typed;
mod rng;
mod scan;
mod scatter;
mod select_scatter;
mod sort;
mod window;

pub(super) use compiled::Compiled;
pub(super) use copy::strided_copy;
pub(super) use function::{Known, recognize};
pub(super) use fused::Fused;
pub(super) use reduce::PartialReduce;
pub(crate) use reduce::is_identity;

use super::code::Kernel;
use super::compile::Compiler;
use crate::attributes::Attributes;
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use ff_tensor::{Result, bail};

/// The shapes of the operands, which are arrays.
fn operands(computation: &Computation, instruction: &Instruction) -> Result<Vec<ArrayShape>> {
    let operands = instruction.operands.iter();
    operands
        .map(|&operand| computation.instruction(operand).array_shape().cloned())
        .collect()
}

/// The kernel of an instruction that is neither fused nor a view. UNIMPLEMENTED when there is none.
pub(super) fn kernel(
    compiler: &mut Compiler,
    computation: &Computation,
    instruction: &Instruction,
) -> Result<Box<dyn Kernel>> {
    let module = compiler.module;
    match (instruction.opcode, &instruction.attributes) {
        (Opcode::BitcastConvert, _) => Ok(movement::same_bytes()),
        (Opcode::Fusion, Attributes::Call(called)) => compiler.compiled_fusion(*called),
        (Opcode::Check, Attributes::Check(config)) => check::kernel(computation, instruction, config),
        (Opcode::Concatenate, Attributes::Dimension(axis)) => {
            movement::concatenate(computation, instruction, *axis)
        }
        (Opcode::Conditional, Attributes::Branches(branches)) => {
            control::conditional(compiler, computation, instruction, branches)
        }
        (Opcode::Convolution, Attributes::Convolution(config)) => {
            convolution::kernel(computation, instruction, config)
        }
        (Opcode::Dot, Attributes::Dot(dims)) => dot::kernel(computation, instruction, dims),
        (Opcode::DynamicSlice, _) => movement::dynamic_slice(computation, instruction, false),
        (Opcode::DynamicUpdateSlice, _) => movement::dynamic_slice(computation, instruction, true),
        (Opcode::Gather, Attributes::Gather(dims)) => gather::kernel(computation, instruction, dims),
        (Opcode::Pad, Attributes::Pad(config)) => movement::pad(computation, instruction, config),
        (
            Opcode::Reduce,
            Attributes::Reduce {
                dimensions,
                computation: called,
            },
        ) => reduce::kernel(computation, instruction, dimensions, module.computation(*called)?),
        (
            Opcode::Scatter,
            Attributes::Scatter {
                dims,
                computation: called,
            },
        ) => scatter::kernel(computation, instruction, dims, module.computation(*called)?),
        (
            Opcode::SelectAndScatter,
            Attributes::SelectAndScatter {
                window,
                select,
                scatter,
            },
        ) => {
            let called = (module.computation(*select)?, module.computation(*scatter)?);
            select_scatter::kernel(computation, instruction, window, called)
        }
        (
            Opcode::Sort,
            Attributes::Sort {
                dimension,
                computation: called,
                ..
            },
        ) => sort::sort(computation, instruction, *dimension, module.computation(*called)?),
        (Opcode::TopK, Attributes::TopK { k, largest }) => {
            sort::top_k(computation, instruction, *k, *largest)
        }
        (Opcode::Cholesky, Attributes::Cholesky { lower }) => {
            linalg::cholesky(computation, instruction, *lower)
        }
        (Opcode::Fft, Attributes::Fft { kind, lengths }) => {
            fft::kernel(computation, instruction, *kind, lengths)
        }
        (
            Opcode::ReduceWindow,
            Attributes::ReduceWindow {
                window,
                computation: called,
            },
        ) => window::reduce_window(computation, instruction, window, module.computation(*called)?),
        (Opcode::RngBitGenerator, Attributes::Rng(algorithm)) => Ok(rng::kernel(*algorithm)),
        (Opcode::TriangularSolve, Attributes::TriangularSolve(options)) => {
            linalg::triangular_solve(computation, instruction, *options)
        }
        (Opcode::While, Attributes::While { condition, body }) => {
            control::while_loop(compiler, *condition, *body)
        }
        (Opcode::Scan, Attributes::Scan(config)) => scan::kernel(compiler, computation, instruction, config),
        (Opcode::CustomCall, Attributes::CustomCall { target, config }) => {
            host_call::kernel(computation, instruction, target, config)
        }
        (opcode, _) => bail!(Unimplemented, "The evaluator cannot run {opcode}"),
    }
}
