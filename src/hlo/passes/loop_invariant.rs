//! Loop-invariant code motion.
//!
//! *Assumes* a verified module without calls. *Guarantees* that the body of a `while` computes nothing that is the same
//! in every turn, but for constants, counters, views and single scalars: such values are computed once before the loop and
//! become elements of its state. *Does not* move checks, calls, loops or branches, nor anything that a loop that never
//! turns would have to pay dearly for: contractions of the size of a matrix product move like the rest, as they have no
//! side effects.

use super::{Changed, dce};
use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Instruction, InstructionId, Module};
use crate::opcode::{Class, Opcode};
use crate::shape::HloShape;
use ff_tensor::Result;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Makes a tuple of elements of these shapes.
type MakeTuple<'a> = &'a dyn Fn(&[HloShape], SmallVec<[InstructionId; 2]>) -> Instruction;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let old = std::mem::take(&mut module.computations);
    let mut out: Vec<Computation> = Vec::with_capacity(old.len());
    let mut place: Vec<ComputationId> = Vec::with_capacity(old.len());
    let mut changed = false;
    for mut computation in old {
        for instruction in &mut computation.instructions {
            instruction
                .attributes
                .map_called_computations(|id| place[id.0 as usize]);
        }
        changed |= hoist(&mut out, &mut computation);
        place.push(ComputationId(out.len() as u32));
        out.push(computation);
    }
    module.computations = out;
    module.entry = place[module.entry.0 as usize];
    Ok(changed.into())
}

/// Moves what is invariant out of the loops of a computation.
fn hoist(out: &mut Vec<Computation>, computation: &mut Computation) -> bool {
    let old = std::mem::take(&mut computation.instructions);
    let mut place: Vec<InstructionId> = Vec::with_capacity(old.len());
    let mut new: Vec<Instruction> = Vec::with_capacity(old.len());
    let mut changed = false;
    for mut instruction in old {
        for operand in &mut instruction.operands {
            *operand = place[operand.0 as usize];
        }
        let replaced = match instruction.attributes {
            Attributes::While { condition, body } => replace(out, &mut new, &instruction, condition, body),
            _ => None,
        };
        changed |= replaced.is_some();
        place.push(replaced.unwrap_or_else(|| push(&mut new, instruction)));
    }
    computation.instructions = new;
    computation
        .parameters
        .iter_mut()
        .for_each(|id| *id = place[id.0 as usize]);
    computation.root = place[computation.root.0 as usize];
    changed
}

fn push(instructions: &mut Vec<Instruction>, instruction: Instruction) -> InstructionId {
    instructions.push(instruction);
    InstructionId(instructions.len() as u32 - 1)
}

/// The loop with more state, if anything can be moved; a tuple like that of the old loop.
fn replace(
    out: &mut Vec<Computation>,
    new: &mut Vec<Instruction>,
    loop_: &Instruction,
    condition: ComputationId,
    body: ComputationId,
) -> Option<InstructionId> {
    let old_body = out.get(body.0 as usize)?.clone();
    let (invariant, moved) = find(&old_body)?;
    let elements = loop_.shape.as_tuple().ok()?.to_vec();
    let mut shapes = elements.clone();
    shapes.extend(
        moved
            .iter()
            .map(|&index| old_body.instructions[index].shape.clone()),
    );
    let wide = HloShape::Tuple(shapes.clone());
    let initial = loop_.operands[0];
    // Before the loop: what the moved values are made of.
    let mut copies: FxHashMap<usize, InstructionId> = FxHashMap::default();
    for index in (0..old_body.instructions.len()).filter(|&index| invariant[index]) {
        let mut copy = old_body.instructions[index].clone();
        if matches!(copy.attributes, Attributes::TupleIndex(_)) {
            copy.operands = SmallVec::from_slice(&[initial]);
        } else {
            for operand in &mut copy.operands {
                *operand = *copies.get(&(operand.0 as usize))?;
            }
        }
        copies.insert(index, push(new, copy));
    }
    let element = |source: InstructionId, which: usize, shape: &HloShape| Instruction {
        opcode: Opcode::GetTupleElement,
        shape: shape.clone(),
        operands: SmallVec::from_slice(&[source]),
        attributes: Attributes::TupleIndex(which),
        name: None,
        node: None,
    };
    let tuple = |shapes: &[HloShape], operands: SmallVec<[InstructionId; 2]>| Instruction {
        opcode: Opcode::Tuple,
        shape: HloShape::Tuple(shapes.to_vec()),
        operands,
        attributes: Attributes::None,
        name: None,
        node: None,
    };
    let mut state: SmallVec<[InstructionId; 2]> = SmallVec::new();
    for (which, shape) in elements.iter().enumerate() {
        state.push(push(new, element(initial, which, shape)));
    }
    state.extend(moved.iter().filter_map(|index| copies.get(index).copied()));
    let state = push(new, tuple(&shapes, state));
    // The computations with the wider state.
    let mut new_condition = out[condition.0 as usize].clone();
    widen(&mut new_condition, &wide);
    out.push(new_condition);
    let new_condition = ComputationId(out.len() as u32 - 1);
    out.push(wider_body(old_body, &moved, &shapes, &element, &tuple));
    let new_body = ComputationId(out.len() as u32 - 1);
    let turned = push(
        new,
        Instruction {
            shape: wide,
            operands: SmallVec::from_slice(&[state]),
            attributes: Attributes::While {
                condition: new_condition,
                body: new_body,
            },
            ..loop_.clone()
        },
    );
    let mut results: SmallVec<[InstructionId; 2]> = SmallVec::new();
    for (which, shape) in elements.iter().enumerate() {
        results.push(push(new, element(turned, which, shape)));
    }
    Some(push(new, tuple(&elements, results)))
}

/// Gives the only parameter of a computation another shape.
fn widen(computation: &mut Computation, shape: &HloShape) {
    for parameter in computation.parameters.clone() {
        computation.instructions[parameter.0 as usize].shape = shape.clone();
    }
}

/// The body that finds the moved values in its state, and passes them on.
fn wider_body(
    mut body: Computation,
    moved: &[usize],
    shapes: &[HloShape],
    element: &dyn Fn(InstructionId, usize, &HloShape) -> Instruction,
    tuple: MakeTuple,
) -> Computation {
    widen(&mut body, &HloShape::Tuple(shapes.to_vec()));
    let state = body.parameters[0];
    let first = shapes.len() - moved.len();
    for (number, &index) in moved.iter().enumerate() {
        let which = first + number;
        let name = body.instructions[index].name.clone();
        body.instructions[index] = element(state, which, &shapes[which]);
        body.instructions[index].name = name;
    }
    let mut operands: SmallVec<[InstructionId; 2]> =
        body.root_instruction().operands.iter().copied().collect();
    operands.extend(moved.iter().map(|&index| InstructionId(index as u32)));
    body.instructions.push(tuple(shapes, operands));
    body.root = InstructionId(body.instructions.len() as u32 - 1);
    let live = dce::live(&body);
    super::rebuild::keep(&mut body, &live);
    body
}

/// Which instructions of a body are needed to compute what moves, and what moves; none if nothing does.
fn find(body: &Computation) -> Option<(Vec<bool>, Vec<usize>)> {
    let root = body.root_instruction();
    let &[state] = &body.parameters[..] else {
        return None;
    };
    if root.opcode != Opcode::Tuple {
        return None;
    }
    let mut invariant = vec![false; body.instructions.len()];
    for (index, instruction) in body.instructions.iter().enumerate() {
        invariant[index] = match instruction.attributes {
            Attributes::TupleIndex(which) => {
                let kept = root.operands.get(which).map(|id| body.instruction(*id));
                let same = kept.is_some_and(|kept| {
                    matches!(kept.attributes, Attributes::TupleIndex(other) if other == which)
                        && kept.operands[0] == state
                });
                instruction.operands[0] == state && same
            }
            _ => {
                can_move(instruction)
                    && instruction
                        .operands
                        .iter()
                        .all(|operand| invariant[operand.0 as usize])
            }
        };
    }
    let mut read = vec![false; body.instructions.len()];
    for (index, instruction) in body.instructions.iter().enumerate() {
        if !invariant[index] {
            instruction
                .operands
                .iter()
                .for_each(|operand| read[operand.0 as usize] = true);
        }
    }
    let pays = |index: usize| {
        let instruction = &body.instructions[index];
        let work = matches!(
            instruction.opcode.class(),
            Class::Unary | Class::Binary | Class::Elementwise | Class::Contraction
        );
        let scalar = instruction
            .array_shape()
            .is_ok_and(|shape| shape.num_elements() <= 1);
        work && !scalar
    };
    let moved: Vec<usize> = (0..body.instructions.len())
        .filter(|&index| invariant[index] && read[index] && pays(index))
        .collect();
    if moved.is_empty() {
        return None;
    }
    let mut needed = vec![false; body.instructions.len()];
    moved.iter().for_each(|&index| needed[index] = true);
    for index in (0..needed.len()).rev() {
        if needed[index] && !matches!(body.instructions[index].attributes, Attributes::TupleIndex(_)) {
            for operand in &body.instructions[index].operands {
                needed[operand.0 as usize] = true;
            }
        }
    }
    Some((needed, moved))
}

/// Whether an instruction may be computed once instead of in every turn.
fn can_move(instruction: &Instruction) -> bool {
    !instruction.opcode.has_side_effect()
        && instruction.array_shape().is_ok()
        && match instruction.opcode.class() {
            Class::Control => false,
            Class::Structure => instruction.opcode == Opcode::OptBarrier,
            Class::Source => matches!(instruction.opcode, Opcode::Constant | Opcode::Iota),
            _ => true,
        }
}
