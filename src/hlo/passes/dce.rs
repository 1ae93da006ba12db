//! Removes instructions that nobody needs.
//!
//! *Assumes* a verified module. *Guarantees* that every instruction is a parameter, has a side effect, or is needed by
//! the root or one that has. *Does not* remove computations, parameters, or loops and branches that may hold checks.

use super::{Changed, rebuild};
use crate::module::{Computation, Instruction, Module};
use crate::opcode::Opcode;
use ff_tensor::Result;

/// Whether an instruction stays although nobody reads it.
pub fn must_stay(instruction: &Instruction) -> bool {
    instruction.opcode.has_side_effect()
        || matches!(
            instruction.opcode,
            Opcode::Parameter
                | Opcode::Scan
                | Opcode::While
                | Opcode::Conditional
                | Opcode::Call
                | Opcode::Fusion
        )
}

/// Which instructions the root or a side effect needs, parameters included.
pub fn live(computation: &Computation) -> Vec<bool> {
    let mut live = vec![false; computation.instructions.len()];
    live[computation.root.0 as usize] = true;
    for (index, instruction) in computation.instructions.iter().enumerate().rev() {
        if live[index] || must_stay(instruction) {
            live[index] = true;
            for operand in &instruction.operands {
                live[operand.0 as usize] = true;
            }
        }
    }
    live
}

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for computation in &mut module.computations {
        let live = live(computation);
        if live.iter().any(|&live| !live) {
            rebuild::keep(computation, &live);
            changed = Changed::Yes;
        }
    }
    Ok(changed)
}
