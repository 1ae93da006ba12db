//! Rebuilding computations after instructions were removed or replaced.

use crate::module::{Computation, InstructionId};

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

/// Lets every user of an instruction use another, earlier one.
pub(crate) fn replace_uses(computation: &mut Computation, replacement: &[InstructionId]) {
    for instruction in &mut computation.instructions {
        instruction
            .operands
            .iter_mut()
            .for_each(|operand| *operand = replacement[operand.0 as usize]);
    }
    computation.root = replacement[computation.root.0 as usize];
}
