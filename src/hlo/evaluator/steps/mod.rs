//! The steps of compiled computations: one kernel for each kind of instruction.

mod check;
mod control;
mod copy;
mod fused;

pub(super) use copy::strided_copy;
pub(super) use fused::Fused;

use super::code::Kernel;
use super::compile::Compiler;
use crate::attributes::Attributes;
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use ff_tensor::{Result, bail};

/// The kernel of an instruction that is neither fused nor a view.
pub(super) fn kernel(
    compiler: &mut Compiler,
    computation: &Computation,
    instruction: &Instruction,
) -> Result<Box<dyn Kernel>> {
    match (instruction.opcode, &instruction.attributes) {
        (Opcode::Check, Attributes::Check(config)) => check::kernel(computation, instruction, config),
        (Opcode::While, Attributes::While { condition, body }) => {
            control::while_loop(compiler, *condition, *body)
        }
        (Opcode::Conditional, Attributes::Branches(branches)) => {
            control::conditional(compiler, computation, instruction, branches)
        }
        (opcode, _) => bail!(Unimplemented, "The evaluator cannot run {opcode}"),
    }
}
