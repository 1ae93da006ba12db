//! Transposes and reshapes move behind elementwise instructions.
//!
//! *Assumes* a verified module. *Guarantees* that an elementwise instruction whose operands are all the same transpose
//! (or reshapes from equal extents), each with no other reader, or scalars spread over all elements, is computed on what
//! was moved, and its result is moved instead: so moves meet and cancel, and reach dots that can read through them.
//! Results keep their bits. *Does not* move anything past reductions, slices or broadcasts, nor copy a move.

use super::Changed;
use super::rebuild::{self, Rewriter};
use crate::attributes::Attributes;
use crate::module::{Computation, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{Result, Status};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for computation in &mut module.computations {
        changed = changed.or(move_in(computation)?.into());
    }
    Ok(changed)
}

fn move_in(computation: &mut Computation) -> Result<bool> {
    let uses = computation.use_counts();
    let mut index = 0;
    let mut readers: FxHashMap<InstructionId, u32> = FxHashMap::default();
    rebuild::rewrite(computation, |rewriter, instruction| {
        let moved = behind(rewriter, &readers, instruction);
        let id = moved.unwrap_or(InstructionId(rewriter.out.len() as u32));
        readers.insert(id, uses[index]);
        index += 1;
        Ok::<_, Status>(moved)
    })
}

/// A move with what it does: the permutation of a transpose, nothing for a reshape.
#[derive(PartialEq)]
struct Move {
    opcode: Opcode,
    axes: Option<Dims>,
    /// Extents before the move.
    dims: Dims,
}

fn move_of(rewriter: &Rewriter, id: InstructionId) -> Option<Move> {
    let instruction = rewriter.get(id);
    let axes = match (instruction.opcode, &instruction.attributes) {
        (Opcode::Transpose, Attributes::Dimensions(axes)) => Some(axes.clone()),
        (Opcode::Reshape, _) => None,
        _ => return None,
    };
    let source = rewriter.get(instruction.operands[0]).array_shape().ok()?;
    Some(Move {
        opcode: instruction.opcode,
        axes,
        dims: source.dims.clone(),
    })
}

/// The scalar that an instruction spreads over all elements.
fn spread_scalar(rewriter: &Rewriter, id: InstructionId) -> Option<InstructionId> {
    let instruction = rewriter.get(id);
    let source = *instruction.operands.first()?;
    let scalar = rewriter.get(source).array_shape().ok()?.is_scalar();
    (instruction.opcode == Opcode::Broadcast && scalar).then_some(source)
}

/// The instruction computed before the move of its operands, then moved.
fn behind(
    rewriter: &mut Rewriter,
    readers: &FxHashMap<InstructionId, u32>,
    instruction: &Instruction,
) -> Option<InstructionId> {
    if !instruction.opcode.is_elementwise() || instruction.opcode == Opcode::Copy {
        return None;
    }
    let mut common: Option<Move> = None;
    let mut moved = 0;
    for &operand in &instruction.operands {
        if spread_scalar(rewriter, operand).is_some() {
            continue;
        }
        let found = move_of(rewriter, operand)?;
        let same = instruction
            .operands
            .iter()
            .filter(|&&other| other == operand)
            .count() as u32;
        if readers.get(&operand) != Some(&same) || common.as_ref().is_some_and(|common| *common != found) {
            return None;
        }
        common = Some(found);
        moved += 1;
    }
    let common = common.filter(|_| moved > 0)?;
    let dtype = instruction.array_shape().ok()?.dtype;
    let mut inner = instruction.clone();
    inner.shape = HloShape::Array(ArrayShape {
        dtype,
        dims: common.dims.clone(),
    });
    for operand in &mut inner.operands {
        *operand = match spread_scalar(rewriter, *operand) {
            Some(scalar) => {
                let dtype = rewriter.get(scalar).array_shape().ok()?.dtype;
                rewriter.push(Instruction {
                    opcode: Opcode::Broadcast,
                    shape: HloShape::Array(ArrayShape {
                        dtype,
                        dims: common.dims.clone(),
                    }),
                    operands: SmallVec::from_slice(&[scalar]),
                    attributes: Attributes::Dimensions(Dims::new()),
                    name: None,
                    node: None,
                })
            }
            None => rewriter.get(*operand).operands[0],
        };
    }
    let inner = rewriter.push(inner);
    Some(rewriter.push(Instruction {
        opcode: common.opcode,
        shape: instruction.shape.clone(),
        operands: SmallVec::from_slice(&[inner]),
        attributes: common.axes.map_or(Attributes::None, Attributes::Dimensions),
        name: None,
        node: instruction.node.clone(),
    }))
}
