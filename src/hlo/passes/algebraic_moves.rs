//! Simplification of moves: those that do nothing go, those that follow one another become one.

use super::algebraic::splat;
use super::rebuild::Rewriter;
use crate::attributes::Attributes;
use crate::module::{Instruction, InstructionId};
use crate::opcode::Opcode;
use crate::shape::Dims;
use smallvec::SmallVec;

/// An earlier value in place of a move, or one move in place of two.
pub(super) fn simplify_move(rewriter: &mut Rewriter, instruction: &Instruction) -> Option<InstructionId> {
    let operand = *instruction.operands.first()?;
    let source = rewriter.get(operand);
    let same_shape = source.shape == instruction.shape;
    let (opcode, before) = (instruction.opcode, source.opcode);
    match (opcode, &instruction.attributes) {
        (Opcode::Reshape, _) if same_shape => Some(operand),
        (Opcode::Reshape, _) if before == Opcode::Reshape => {
            let inner = source.operands[0];
            if rewriter.get(inner).shape == instruction.shape {
                return Some(inner);
            }
            Some(rewriter.push(over(instruction, inner, Attributes::None)))
        }
        (Opcode::Transpose, Attributes::Dimensions(permutation)) => {
            transpose(rewriter, instruction, operand, permutation)
        }
        (Opcode::Broadcast, Attributes::Dimensions(axes)) => broadcast(rewriter, instruction, operand, axes),
        (Opcode::Slice, Attributes::Slice { .. }) if same_shape => Some(operand),
        (Opcode::Slice, Attributes::Slice { start, stride, .. }) => {
            slice(rewriter, instruction, operand, start, stride)
        }
        (Opcode::Reverse, Attributes::Dimensions(axes)) => {
            let extents = &instruction.array_shape().ok()?.dims;
            let moves = axes.iter().any(|&axis| extents[axis as usize] > 1);
            if !moves {
                return Some(operand);
            }
            match &source.attributes {
                Attributes::Dimensions(before_axes) if before == Opcode::Reverse && before_axes == axes => {
                    Some(source.operands[0])
                }
                _ => None,
            }
        }
        (Opcode::Pad, Attributes::Pad(config)) => {
            let nothing = config
                .iter()
                .all(|pad| pad.low == 0 && pad.high == 0 && pad.interior == 0);
            (nothing && same_shape).then_some(operand)
        }
        (Opcode::Concatenate, Attributes::Dimension(axis)) => concatenate(rewriter, instruction, *axis),
        (Opcode::DynamicSlice, _) => dynamic_slice(rewriter, instruction, operand),
        _ => None,
    }
}

/// The instruction with another operand and other attributes.
fn over(instruction: &Instruction, operand: InstructionId, attributes: Attributes) -> Instruction {
    Instruction {
        operands: SmallVec::from_slice(&[operand]),
        attributes,
        ..instruction.clone()
    }
}

fn is_identity(axes: &[i64]) -> bool {
    axes.iter().enumerate().all(|(place, &axis)| place as i64 == axis)
}

fn transpose(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    operand: InstructionId,
    permutation: &[i64],
) -> Option<InstructionId> {
    if is_identity(permutation) {
        return Some(operand);
    }
    let source = rewriter.get(operand);
    let Attributes::Dimensions(inner) = &source.attributes else {
        return None;
    };
    if source.opcode != Opcode::Transpose {
        return None;
    }
    let both: Dims = permutation.iter().map(|&axis| inner[axis as usize]).collect();
    let base = source.operands[0];
    if is_identity(&both) {
        return Some(base);
    }
    Some(rewriter.push(over(instruction, base, Attributes::Dimensions(both))))
}

fn broadcast(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    operand: InstructionId,
    axes: &[i64],
) -> Option<InstructionId> {
    let source = rewriter.get(operand);
    if source.shape == instruction.shape && is_identity(axes) {
        return Some(operand);
    }
    let Attributes::Dimensions(inner) = &source.attributes else {
        return None;
    };
    if source.opcode != Opcode::Broadcast {
        return None;
    }
    // An axis that the first broadcast made of 1 and the second repeats again stays of 1: the extents still fit.
    let both: Dims = inner.iter().map(|&axis| axes[axis as usize]).collect();
    let base = source.operands[0];
    Some(rewriter.push(over(instruction, base, Attributes::Dimensions(both))))
}

fn slice(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    operand: InstructionId,
    start: &[i64],
    stride: &[i64],
) -> Option<InstructionId> {
    let source = rewriter.get(operand);
    let Attributes::Slice {
        start: first,
        stride: step,
        ..
    } = &source.attributes
    else {
        return None;
    };
    let extents = &instruction.array_shape().ok()?.dims;
    let (mut starts, mut limits, mut strides) = (Dims::new(), Dims::new(), Dims::new());
    for axis in 0..start.len() {
        let from = first[axis] + start[axis] * step[axis];
        let by = step[axis].checked_mul(stride[axis])?;
        let limit = if extents[axis] == 0 {
            from
        } else {
            from + (extents[axis] - 1) * by + 1
        };
        starts.push(from);
        limits.push(limit);
        strides.push(by);
    }
    let base = source.operands[0];
    let attributes = Attributes::Slice {
        start: starts,
        limit: limits,
        stride: strides,
    };
    Some(rewriter.push(over(instruction, base, attributes)))
}

/// Operands without elements go.
fn concatenate(rewriter: &mut Rewriter, instruction: &Instruction, axis: i64) -> Option<InstructionId> {
    let is_filled = |id: &InstructionId| {
        rewriter
            .get(*id)
            .array_shape()
            .is_ok_and(|shape| shape.dims[axis as usize] > 0)
    };
    let filled: SmallVec<[InstructionId; 2]> =
        instruction.operands.iter().copied().filter(is_filled).collect();
    match filled[..] {
        [single] => Some(single),
        _ if filled.is_empty() || filled.len() == instruction.operands.len() => None,
        _ => Some(rewriter.push(Instruction {
            operands: filled,
            ..instruction.clone()
        })),
    }
}

/// Known starts make a plain slice.
fn dynamic_slice(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    operand: InstructionId,
) -> Option<InstructionId> {
    let extents = rewriter.get(operand).array_shape().ok()?.dims.clone();
    let sizes = instruction.array_shape().ok()?.dims.clone();
    let mut start = Dims::new();
    for (axis, &index) in instruction.operands[1..].iter().enumerate() {
        let value = splat(rewriter, index)?.to_i64_vec().ok()?;
        start.push(
            value
                .first()?
                .clamp(&0, &(extents[axis] - sizes[axis]))
                .to_owned(),
        );
    }
    let limit = start
        .iter()
        .zip(&sizes)
        .map(|(start, size)| start + size)
        .collect();
    let stride = Dims::from_elem(1, start.len());
    let attributes = Attributes::Slice { start, limit, stride };
    Some(rewriter.push(Instruction {
        opcode: Opcode::Slice,
        ..over(instruction, operand, attributes)
    }))
}
