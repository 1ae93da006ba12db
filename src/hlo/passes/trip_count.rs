//! Loops that run never or once.
//!
//! *Assumes* a verified module. *Guarantees* that a loop whose count is known to be zero is its first state, and one that
//! is known to run once is a call of its body. A count is known where the condition compares a counter of an integer type
//! with a constant, the first state gives the counter a constant, and the body adds a constant. *Does not* unroll longer
//! loops, nor drop a loop whose condition may hold a check. [`trip_count`] serves other passes and people.

use super::Changed;
use super::rebuild::{self, Rewriter};
use crate::attributes::{Attributes, Direction};
use crate::module::{Computation, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use ff_tensor::{DataType, Result, Status, Tensor};

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for index in 0..module.computations.len() {
        let (called, rest) = module.computations.split_at_mut(index);
        let replaced = rebuild::rewrite(&mut rest[0], |rewriter, instruction| {
            let Attributes::While { body, .. } = instruction.attributes else {
                return Ok::<_, Status>(None);
            };
            Ok(match trip_count(called, rewriter, instruction) {
                Some(0) => Some(instruction.operands[0]),
                Some(1) => Some(rewriter.push(Instruction {
                    opcode: Opcode::Call,
                    attributes: Attributes::Call(body),
                    ..instruction.clone()
                })),
                _ => None,
            })
        })?;
        changed = changed.or(replaced.into());
    }
    Ok(changed)
}

/// How often the body of a `while` runs, if that is plain to see.
pub(crate) fn trip_count(
    called: &[Computation],
    rewriter: &Rewriter,
    instruction: &Instruction,
) -> Option<u64> {
    let Attributes::While { condition, body } = instruction.attributes else {
        return None;
    };
    let (condition, body) = (called.get(condition.0 as usize)?, called.get(body.0 as usize)?);
    if condition
        .instructions
        .iter()
        .any(|inner| inner.opcode.has_side_effect())
    {
        return None;
    }
    let compare = condition.root_instruction();
    let Attributes::Compare(direction) = compare.attributes else {
        return None;
    };
    let which = state_element(condition, compare.operands[0])?;
    let limit = integer(constant(condition.instruction(compare.operands[1]))?)?;
    let step = step(body, which)?;
    let state = rewriter.get(instruction.operands[0]);
    let first = match state.opcode {
        Opcode::Tuple => integer(constant(rewriter.get(state.operands[which]))?)?,
        _ => return None,
    };
    count(i128::from(first), i128::from(limit), i128::from(step), direction)
}

/// What the body adds to an element of the state.
fn step(body: &Computation, which: usize) -> Option<i64> {
    let root = body.root_instruction();
    if root.opcode != Opcode::Tuple {
        return None;
    }
    let add = body.instruction(root.operands[which]);
    let [a, b] = add.operands[..] else {
        return None;
    };
    let (counter, constant_side) = if state_element(body, a) == Some(which) {
        (a, b)
    } else {
        (b, a)
    };
    let fits = add.opcode == Opcode::Add && state_element(body, counter) == Some(which);
    if !fits {
        return None;
    }
    integer(constant(body.instruction(constant_side))?)
}

/// The element of the state that an instruction is.
fn state_element(computation: &Computation, id: InstructionId) -> Option<usize> {
    let instruction = computation.instruction(id);
    match instruction.attributes {
        Attributes::TupleIndex(which) => {
            let source = computation.instruction(instruction.operands[0]);
            (source.opcode == Opcode::Parameter).then_some(which)
        }
        _ => None,
    }
}

fn constant(instruction: &Instruction) -> Option<&Tensor> {
    match &instruction.attributes {
        Attributes::Constant(value) if value.num_elements() == 1 => Some(value),
        _ => None,
    }
}

fn integer(value: &Tensor) -> Option<i64> {
    let bytes = value.bytes();
    match value.dtype() {
        DataType::INT32 => Some(i64::from(i32::from_ne_bytes(bytes.try_into().ok()?))),
        DataType::INT64 => Some(i64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Turns until the comparison fails; none for endless loops and counters that wrap around.
fn count(first: i128, limit: i128, step: i128, direction: Direction) -> Option<u64> {
    let (distance, step) = match direction {
        Direction::Lt => (limit - first, step),
        Direction::Le => (limit - first + 1, step),
        Direction::Gt => (first - limit, -step),
        Direction::Ge => (first - limit + 1, -step),
        Direction::Ne if step != 0 && (limit - first) % step == 0 => {
            return u64::try_from((limit - first) / step).ok();
        }
        _ => return None,
    };
    if distance <= 0 {
        return Some(0);
    }
    if step <= 0 || first.abs() > 1 << 30 || limit.abs() > 1 << 30 || step > 1 << 30 {
        return None;
    }
    u64::try_from((distance + step - 1) / step).ok()
}
