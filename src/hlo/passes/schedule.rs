//! Scheduling for memory.
//!
//! *Assumes* a verified module. *Guarantees* an order of each computation's instructions, operands first, in which the next
//! is always one that frees most memory for what it takes, and otherwise the one that came first; the order of checks and
//! other side effects among themselves stays, and an order that would need more memory than the given one is not taken
//! ([`Assignment::size`] decides). *Does not* look ahead: it is greedy.

use super::Changed;
use crate::buffers::Assignment;
use crate::module::{Computation, InstructionId, Module};
use crate::opcode::Opcode;
use ff_tensor::Result;
use std::collections::BTreeSet;

/// The most instructions that are ordered: the search for the next one looks at all that could run.
const MAX_INSTRUCTIONS: usize = 2_000;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = false;
    for index in 0..module.computations.len() {
        let computation = &module.computations[index];
        if computation.instructions.len() > MAX_INSTRUCTIONS {
            continue;
        }
        let order = order(computation);
        if order.iter().enumerate().all(|(place, &index)| place == index) {
            continue;
        }
        let candidate = reordered(computation, &order);
        let before = Assignment::of(module, computation)?.size;
        if Assignment::of(module, &candidate)?.size < before {
            module.computations[index] = candidate;
            changed = true;
        }
    }
    Ok(changed.into())
}

/// Bytes of an instruction's result that are memory of its own.
fn bytes(computation: &Computation, index: usize) -> i64 {
    let instruction = &computation.instructions[index];
    let free = matches!(
        instruction.opcode,
        Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::GetTupleElement | Opcode::Reshape
    );
    if free {
        return 0;
    }
    instruction
        .shape
        .leaves()
        .iter()
        .map(|leaf| leaf.byte_size() as i64)
        .sum()
}

fn order(computation: &Computation) -> Vec<usize> {
    let count = computation.instructions.len();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting: Vec<usize> = vec![0; count];
    let mut left = computation.use_counts();
    let mut last_effect: Option<usize> = None;
    for (index, instruction) in computation.instructions.iter().enumerate() {
        let mut before: BTreeSet<usize> = instruction.operands.iter().map(|id| id.0 as usize).collect();
        if instruction.opcode.has_side_effect()
            || matches!(instruction.opcode, Opcode::While | Opcode::Conditional)
        {
            before.extend(last_effect);
            last_effect = Some(index);
        }
        waiting[index] = before.len();
        before.into_iter().for_each(|operand| users[operand].push(index));
    }
    let mut ready: BTreeSet<usize> = (0..count).filter(|&index| waiting[index] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while !ready.is_empty() {
        let gain = |index: usize| -> i64 {
            let operands: BTreeSet<usize> = computation.instructions[index]
                .operands
                .iter()
                .map(|id| id.0 as usize)
                .collect();
            let freed: i64 = operands
                .into_iter()
                .filter(|&operand| {
                    let uses = computation.instructions[index]
                        .operands
                        .iter()
                        .filter(|id| id.0 as usize == operand);
                    left[operand] as usize == uses.count()
                })
                .map(|operand| bytes(computation, operand))
                .sum();
            freed - bytes(computation, index)
        };
        let Some(next) = ready
            .iter()
            .copied()
            .max_by_key(|&index| (gain(index), std::cmp::Reverse(index)))
        else {
            break;
        };
        ready.remove(&next);
        for id in &computation.instructions[next].operands {
            left[id.0 as usize] -= 1;
        }
        for &user in &users[next] {
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.insert(user);
            }
        }
        order.push(next);
    }
    order
}

/// The computation with its instructions in another order.
fn reordered(computation: &Computation, order: &[usize]) -> Computation {
    let mut place = vec![InstructionId(0); order.len()];
    for (at, &index) in order.iter().enumerate() {
        place[index] = InstructionId(at as u32);
    }
    let mut copy = computation.clone();
    copy.instructions = order
        .iter()
        .map(|&index| {
            let mut instruction = computation.instructions[index].clone();
            instruction
                .operands
                .iter_mut()
                .for_each(|operand| *operand = place[operand.0 as usize]);
            instruction
        })
        .collect();
    copy.parameters
        .iter_mut()
        .for_each(|id| *id = place[id.0 as usize]);
    copy.root = place[computation.root.0 as usize];
    copy
}
