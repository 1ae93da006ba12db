//! Padding, concatenations, dynamic slices and gathers: which of them fusions read in place.

use super::{Finder, Source, is_computed};
use crate::fusion::is_read;
use crate::module::Instruction;
use smallvec::SmallVec;

/// The most operands of an instruction that is read in place.
const MAX_PARTS: usize = 8;

impl Finder<'_> {
    /// Whether code reads what an instruction moves in place, if one fusion does.
    pub(super) fn can_read(&self, instruction: &Instruction) -> bool {
        instruction.operands.len() <= MAX_PARTS
            && instruction.operands.iter().all(|&id| {
                let shape = self.computation.instruction(id).array_shape();
                shape.is_ok_and(|shape| is_computed(shape.dtype) && shape.num_elements() > 0)
            })
    }

    /// Leaves reads that are not read by the members of one group alone outside of fusions.
    pub(super) fn settle_reads(&mut self) {
        // The group of all users of a value, looked for from the last instruction on: none, one, or several.
        let count = self.computation.instructions.len();
        let mut groups: Vec<SmallVec<[Option<usize>; 2]>> = vec![SmallVec::new(); count];
        groups[self.computation.root.0 as usize].push(None);
        for index in (0..count).rev() {
            let instruction = &self.computation.instructions[index];
            let moves = is_read(instruction.opcode);
            if self.reads[index] && moves {
                let one = matches!(groups[index][..], [Some(_)]);
                self.reads[index] = one;
                self.copied[index] = one;
            }
            let seen: SmallVec<[Option<usize>; 2]> = if self.reads[index] && !moves {
                groups[index].clone()
            } else {
                let member = self.is_member(index).then(|| self.root(index));
                SmallVec::from_slice(&[member])
            };
            for id in &instruction.operands {
                for group in &seen {
                    let users = &mut groups[id.0 as usize];
                    if !users.contains(group) {
                        users.push(*group);
                    }
                }
            }
        }
    }

    /// Whether an instruction is in a group.
    pub(super) fn is_member(&self, index: usize) -> bool {
        matches!(self.sources[index], Source::Member { member, .. } if member == index) || self.columns[index]
    }
}
