//! Puts the members of each group into a computation, and a `fusion` in their place.

use super::group::Groups;
use crate::attributes::Attributes;
use crate::fusion::FusionPlan;
use crate::module::{Computation, ComputationId, Instruction, InstructionId};
use crate::opcode::Opcode;
use crate::shape::HloShape;
use ff_tensor::Result;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// A fusion that is to take the place of its members.
struct Fusion {
    computation: ComputationId,
    /// Instructions that it reads, by parameter.
    parameters: Vec<usize>,
    /// Members whose values are read outside.
    outputs: Vec<usize>,
    /// The place of its last member: by then everything that it reads is there.
    last: usize,
}

/// Replaces groups by fusions, whose computations are added to `out`. Groups without a plan stay. Returns whether any
/// was replaced.
pub(super) fn replace(
    out: &mut Vec<Computation>,
    computation: &mut Computation,
    groups: &Groups,
) -> Result<bool> {
    let mut owner: FxHashMap<usize, usize> = FxHashMap::default();
    let mut fusions: Vec<Fusion> = Vec::new();
    for members in &groups.groups {
        let Some((body, parameters, outputs)) = planned(out, computation, groups, members) else {
            continue;
        };
        for &member in members {
            owner.insert(member, fusions.len());
        }
        fusions.push(Fusion {
            computation: ComputationId(out.len() as u32),
            parameters,
            outputs,
            last: members.last().copied().unwrap_or(0),
        });
        out.push(body);
    }
    if fusions.is_empty() {
        return Ok(false);
    }
    rebuild(computation, &owner, &fusions);
    Ok(true)
}

/// Elements of a row below which code does not pay where instructions are read in place.
const SHORTEST_ROW: usize = 32;

/// A computation with a plan: with reads in place if that is possible and pays, else without.
fn planned(
    out: &[Computation],
    computation: &Computation,
    groups: &Groups,
    members: &[usize],
) -> Option<Body> {
    let (found, reads) = body(computation, groups, members, out.len(), true)?;
    let plan = FusionPlan::of(out, &found.0);
    if !reads {
        return plan.is_ok().then_some(found);
    }
    if plan.is_ok_and(|plan| plan.row() >= SHORTEST_ROW || plan.rows() == 1) {
        return Some(found);
    }
    if members.len() < 2 {
        return None;
    }
    let (found, _) = body(computation, groups, members, out.len(), false)?;
    FusionPlan::of(out, &found.0).is_ok().then_some(found)
}

/// A computation, the instructions that it reads and the members that are read outside.
type Body = (Computation, Vec<usize>, Vec<usize>);

/// The computation of a group, and whether it reads at computed places.
fn body(
    computation: &Computation,
    groups: &Groups,
    members: &[usize],
    number: usize,
    with_reads: bool,
) -> Option<(Body, bool)> {
    let inside: BTreeSet<usize> = members.iter().copied().collect();
    let mut copies: BTreeSet<usize> = inside.clone();
    let mut read: BTreeSet<usize> = BTreeSet::new();
    let mut pending: Vec<usize> = members.to_vec();
    while let Some(index) = pending.pop() {
        for id in &computation.instructions[index].operands {
            let operand = id.0 as usize;
            if copies.contains(&operand) {
                continue;
            }
            if groups.copied[operand] && (with_reads || !groups.reads[operand]) {
                copies.insert(operand);
                pending.push(operand);
            } else {
                read.insert(operand);
            }
        }
    }
    let reads = copies.iter().any(|&index| groups.reads[index]);
    let mut outputs: Vec<usize> = Vec::new();
    for (index, instruction) in computation.instructions.iter().enumerate() {
        if inside.contains(&index) {
            continue;
        }
        for id in &instruction.operands {
            let operand = id.0 as usize;
            // A copied view that only this fusion needs is dead outside; whether it is, is not known here.
            if inside.contains(&operand) && is_needed(computation, groups, &inside, index) {
                outputs.push(operand);
            }
        }
    }
    if inside.contains(&(computation.root.0 as usize)) {
        outputs.push(computation.root.0 as usize);
    }
    outputs.sort_unstable();
    outputs.dedup();
    if outputs.is_empty() {
        return None;
    }
    let mut place: FxHashMap<usize, InstructionId> = FxHashMap::default();
    let mut instructions: Vec<Instruction> = Vec::new();
    let parameters: Vec<usize> = read.into_iter().collect();
    for (number, &index) in parameters.iter().enumerate() {
        let source = &computation.instructions[index];
        place.insert(index, InstructionId(instructions.len() as u32));
        instructions.push(Instruction {
            opcode: Opcode::Parameter,
            shape: source.shape.clone(),
            operands: SmallVec::new(),
            attributes: Attributes::Parameter(number),
            name: source.name.clone(),
            node: None,
        });
    }
    for index in copies {
        let mut copy = computation.instructions[index].clone();
        for operand in &mut copy.operands {
            *operand = *place.get(&(operand.0 as usize))?;
        }
        place.insert(index, InstructionId(instructions.len() as u32));
        instructions.push(copy);
    }
    let root = match outputs[..] {
        [only] => *place.get(&only)?,
        _ => {
            let operands = outputs
                .iter()
                .filter_map(|output| place.get(output).copied())
                .collect();
            instructions.push(Instruction {
                opcode: Opcode::Tuple,
                shape: HloShape::Tuple(shapes(computation, &outputs)),
                operands,
                attributes: Attributes::None,
                name: None,
                node: None,
            });
            InstructionId(instructions.len() as u32 - 1)
        }
    };
    let body = Computation {
        name: format!("fused_computation.{number}"),
        parameters: (0..parameters.len() as u32).map(InstructionId).collect(),
        instructions,
        root,
    };
    Some(((body, parameters, outputs), reads))
}

fn shapes(computation: &Computation, outputs: &[usize]) -> Vec<HloShape> {
    outputs
        .iter()
        .map(|&output| computation.instructions[output].shape.clone())
        .collect()
}

/// Whether an instruction outside of a fusion is read outside, itself or through copied views.
fn is_needed(computation: &Computation, groups: &Groups, inside: &BTreeSet<usize>, index: usize) -> bool {
    let mut pending = vec![index];
    let mut seen = BTreeSet::new();
    while let Some(at) = pending.pop() {
        if !groups.copied[at] || computation.root.0 as usize == at {
            return true;
        }
        for (user, instruction) in computation.instructions.iter().enumerate().skip(at) {
            let reads = instruction.operands.iter().any(|id| id.0 as usize == at);
            if reads && !inside.contains(&user) && seen.insert(user) {
                pending.push(user);
            }
        }
    }
    false
}

/// Lets fusions take the place of their members.
fn rebuild(computation: &mut Computation, owner: &FxHashMap<usize, usize>, fusions: &[Fusion]) {
    let old = std::mem::take(&mut computation.instructions);
    let mut pieces: Vec<Option<Instruction>> = old.into_iter().map(Some).collect();
    let nothing = InstructionId(u32::MAX);
    let mut place: Vec<InstructionId> = vec![nothing; pieces.len()];
    let mut out: Vec<Instruction> = Vec::with_capacity(pieces.len());
    let order = schedule(&pieces, owner, fusions);
    for unit in order {
        let fusion = match unit {
            Unit::Fusion(fusion) => &fusions[fusion],
            Unit::Instruction(index) => {
                if let Some(mut instruction) = pieces[index].take() {
                    for operand in &mut instruction.operands {
                        *operand = place[operand.0 as usize];
                    }
                    place[index] = InstructionId(out.len() as u32);
                    out.push(instruction);
                }
                continue;
            }
        };
        let parts: Vec<Instruction> = fusion
            .outputs
            .iter()
            .filter_map(|&output| pieces[output].take())
            .collect();
        let node = pieces[fusion.last]
            .as_ref()
            .or(parts.last())
            .and_then(|last| last.node.clone());
        let shape = match &parts[..] {
            [only] => only.shape.clone(),
            _ => HloShape::Tuple(parts.iter().map(|part| part.shape.clone()).collect()),
        };
        let id = InstructionId(out.len() as u32);
        out.push(Instruction {
            opcode: Opcode::Fusion,
            shape,
            operands: fusion.parameters.iter().map(|&index| place[index]).collect(),
            attributes: Attributes::Call(fusion.computation),
            name: None,
            node,
        });
        for (number, (part, &output)) in parts.iter().zip(&fusion.outputs).enumerate() {
            place[output] = id;
            if parts.len() > 1 {
                place[output] = InstructionId(out.len() as u32);
                out.push(Instruction {
                    opcode: Opcode::GetTupleElement,
                    shape: part.shape.clone(),
                    operands: SmallVec::from_slice(&[id]),
                    attributes: Attributes::TupleIndex(number),
                    name: part.name.clone(),
                    node: None,
                });
            }
        }
    }
    computation.instructions = out;
    computation
        .parameters
        .iter_mut()
        .for_each(|id| *id = place[id.0 as usize]);
    computation.root = place[computation.root.0 as usize];
    sweep(computation);
}

/// What stands in the new computation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    Instruction(usize),
    Fusion(usize),
}

/// The units in an order in which operands come first and which is otherwise that of the instructions.
fn schedule(
    pieces: &[Option<Instruction>],
    owner: &FxHashMap<usize, usize>,
    fusions: &[Fusion],
) -> Vec<Unit> {
    let unit_of = |index: usize| {
        owner
            .get(&index)
            .map_or(Unit::Instruction(index), |&fusion| Unit::Fusion(fusion))
    };
    // Views that only fusions read must not ask for members that nobody gives.
    let given = |index: usize| match owner.get(&index) {
        Some(&fusion) => fusions[fusion].outputs.contains(&index),
        None => true,
    };
    let mut alive: Vec<bool> = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let operands = piece.iter().flat_map(|instruction| &instruction.operands);
        let all = operands
            .into_iter()
            .all(|id| given(id.0 as usize) && alive[id.0 as usize]);
        alive.push(owner.contains_key(&index) || all);
    }
    let mut done: FxHashMap<Unit, bool> = FxHashMap::default();
    let mut order = Vec::new();
    for index in 0..pieces.len() {
        if !alive[index] {
            continue;
        }
        let mut pending = vec![unit_of(index)];
        while let Some(&unit) = pending.last() {
            match done.get(&unit) {
                Some(true) => {
                    pending.pop();
                }
                Some(false) => {
                    pending.pop();
                    done.insert(unit, true);
                    order.push(unit);
                }
                None => {
                    done.insert(unit, false);
                    let before: Vec<usize> = match unit {
                        Unit::Fusion(fusion) => fusions[fusion].parameters.clone(),
                        Unit::Instruction(index) => {
                            let operands = pieces[index].iter().flat_map(|instruction| &instruction.operands);
                            operands.map(|id| id.0 as usize).collect()
                        }
                    };
                    pending.extend(
                        before
                            .into_iter()
                            .map(unit_of)
                            .filter(|unit| !done.contains_key(unit)),
                    );
                }
            }
        }
    }
    order
}

/// Removes what nobody needs any more: members' constants and views.
fn sweep(computation: &mut Computation) {
    let mut live = crate::passes::dce::live(computation);
    for &parameter in &computation.parameters {
        live[parameter.0 as usize] = true;
    }
    crate::passes::rebuild::keep(computation, &live);
}
