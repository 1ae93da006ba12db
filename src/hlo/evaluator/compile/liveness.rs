//! The last use of every slot.

use crate::evaluator::code::{Operand, ResultArray, Step};

/// Notes for each step which operands die and which slots it empties, and which results share a slot.
pub(super) fn note(steps: &mut [Step], results: &mut [ResultArray], slots: usize) {
    const NEVER: usize = usize::MAX;
    let mut last_use = vec![NEVER; slots];
    for (index, step) in steps.iter().enumerate() {
        // A slot that nobody reads dies where it is made.
        for output in &step.outputs {
            last_use[output.slot as usize] = index;
        }
        for operand in &step.operands {
            if let Operand::Slot(slot) = operand {
                last_use[*slot as usize] = index;
            }
        }
    }
    let mut kept = vec![false; slots];
    for result in results.iter_mut().rev() {
        if let Operand::Slot(slot) = result.operand {
            result.shared = kept[slot as usize];
            kept[slot as usize] = true;
        }
    }
    for (index, step) in steps.iter_mut().enumerate() {
        let dies = |slot: u32| last_use[slot as usize] == index && !kept[slot as usize];
        let mut release: Vec<u32> = Vec::new();
        for position in (0..step.operands.len()).rev() {
            if let Operand::Slot(slot) = step.operands[position]
                && dies(slot)
                && !release.contains(&slot)
            {
                release.push(slot);
                let read_once = step
                    .operands
                    .iter()
                    .filter(|&&other| other == Operand::Slot(slot))
                    .count()
                    == 1;
                if position < 64 && read_once {
                    step.dying |= 1 << position;
                }
            }
        }
        release.extend(
            step.outputs
                .iter()
                .map(|output| output.slot)
                .filter(|&slot| dies(slot)),
        );
        step.release = release.into_iter().collect();
        step.kernel.note_dying(step.dying);
    }
}
