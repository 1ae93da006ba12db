//! Dots read through transposes.
//!
//! *Assumes* a verified module. *Guarantees* that no dot has a transposed operand whose free axes keep their order: its
//! numbers name the axes of what was transposed. *Does not* change the order of the result's axes, merge dots, or touch
//! convolutions. Sums keep their terms and their order.

use super::Changed;
use super::rebuild;
use crate::attributes::{Attributes, DotDims};
use crate::module::{InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::Dims;
use ff_tensor::{Result, Status};

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = false;
    for computation in &mut module.computations {
        rebuild::rewrite(computation, |rewriter, instruction| {
            let Attributes::Dot(dims) = &mut instruction.attributes else {
                return Ok::<Option<InstructionId>, Status>(None);
            };
            for side in 0..2 {
                let source = rewriter.get(instruction.operands[side]);
                if let (Opcode::Transpose, Attributes::Dimensions(axes)) = (source.opcode, &source.attributes)
                    && let Some(through) = through(dims, side, axes)
                {
                    *dims = through;
                    instruction.operands[side] = source.operands[0];
                    changed = true;
                }
            }
            Ok(None)
        })?;
    }
    Ok(changed.into())
}

/// The axes of the dot when one side is read before it is transposed.
fn through(dims: &DotDims, side: usize, axes: &[i64]) -> Option<DotDims> {
    let mut new = dims.clone();
    let (batch, contracting) = if side == 0 {
        (&mut new.lhs_batch, &mut new.lhs_contracting)
    } else {
        (&mut new.rhs_batch, &mut new.rhs_contracting)
    };
    let free: Dims = (0..axes.len() as i64)
        .filter(|axis| !batch.contains(axis) && !contracting.contains(axis))
        .map(|axis| axes[axis as usize])
        .collect();
    for axis in batch.iter_mut().chain(contracting.iter_mut()) {
        *axis = axes[*axis as usize];
    }
    free.windows(2).all(|pair| pair[0] < pair[1]).then_some(new)
}
