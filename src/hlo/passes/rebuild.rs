//! Rebuilding computations after instructions were removed or replaced.

use crate::module::{Computation, Instruction, InstructionId};

/// Keeps the marked instructions, which must hold every operand of one another, and numbers them anew.
pub(crate) fn keep(computation: &mut Computation, keep: &[bool]) {
    let mut place = Vec::with_capacity(keep.len());
    let mut next = 0;
    for &kept in keep {
        place.push(InstructionId(next));
        next += u32::from(kept);
    }
    let mut index = 0;
    computation.instructions.retain(|_| {
        index += 1;
        keep[index - 1]
    });
    renumber(computation, &place);
}

/// Lets every operand, parameter and root be what `place` says.
fn renumber(computation: &mut Computation, place: &[InstructionId]) {
    for instruction in &mut computation.instructions {
        instruction
            .operands
            .iter_mut()
            .for_each(|operand| *operand = place[operand.0 as usize]);
    }
    computation
        .parameters
        .iter_mut()
        .for_each(|parameter| *parameter = place[parameter.0 as usize]);
    computation.root = place[computation.root.0 as usize];
}

/// A computation being rewritten: its instructions so far.
pub(crate) struct Rewriter {
    /// The new instructions, operands before users.
    pub out: Vec<Instruction>,
}

impl Rewriter {
    /// The instruction that makes a value.
    pub fn get(&self, id: InstructionId) -> &Instruction {
        &self.out[id.0 as usize]
    }

    /// Adds an instruction.
    pub fn push(&mut self, instruction: Instruction) -> InstructionId {
        self.out.push(instruction);
        InstructionId(self.out.len() as u32 - 1)
    }
}

/// Copies a computation instruction by instruction, with operands already those of the copy. `replace` may give an
/// earlier value instead, or change the instruction before it is added. Returns whether anything was replaced.
pub(crate) fn rewrite<E>(
    computation: &mut Computation,
    mut replace: impl FnMut(&mut Rewriter, &mut Instruction) -> Result<Option<InstructionId>, E>,
) -> Result<bool, E> {
    let old = std::mem::take(&mut computation.instructions);
    let mut place: Vec<InstructionId> = Vec::with_capacity(old.len());
    let mut rewriter = Rewriter {
        out: Vec::with_capacity(old.len()),
    };
    let mut changed = false;
    let mut failure = None;
    for mut instruction in old {
        instruction
            .operands
            .iter_mut()
            .for_each(|operand| *operand = place[operand.0 as usize]);
        let replacement = match failure {
            None => replace(&mut rewriter, &mut instruction),
            Some(_) => Ok(None),
        };
        place.push(match replacement {
            Ok(Some(id)) => {
                changed = true;
                id
            }
            Ok(None) => rewriter.push(instruction),
            Err(error) => {
                failure = Some(error);
                rewriter.push(instruction)
            }
        });
    }
    computation.instructions = rewriter.out;
    computation
        .parameters
        .iter_mut()
        .for_each(|parameter| *parameter = place[parameter.0 as usize]);
    computation.root = place[computation.root.0 as usize];
    failure.map_or(Ok(changed), Err)
}
