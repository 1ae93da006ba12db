//! The steps of compiled computations: one kernel for each kind of instruction.

mod check;
mod control;
mod copy;
mod dot;
mod function;
mod fused;
mod gather;
mod matrix;
mod movement;
mod nd;
mod reduce;
mod reduce_rows;
mod scatter;

pub(super) use copy::strided_copy;
pub(super) use fused::Fused;

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
        (Opcode::Check, Attributes::Check(config)) => check::kernel(computation, instruction, config),
        (Opcode::Concatenate, Attributes::Dimension(axis)) => {
            movement::concatenate(computation, instruction, *axis)
        }
        (Opcode::Conditional, Attributes::Branches(branches)) => {
            control::conditional(compiler, computation, instruction, branches)
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
        (Opcode::While, Attributes::While { condition, body }) => {
            control::while_loop(compiler, *condition, *body)
        }
        (Opcode::CustomCall, Attributes::CustomCall { target, .. }) => {
            bail!(
                Unimplemented,
                "Custom call {target} is not known to the evaluator"
            )
        }
        (opcode, _) => bail!(Unimplemented, "The evaluator cannot run {opcode}"),
    }
}
