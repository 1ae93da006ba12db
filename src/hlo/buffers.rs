//! Buffer assignment: where each array of a computation would lie in one block of memory, reused by liveness.
//!
//! Instructions run in their order. Tuples, their elements and reshapes are no memory of their own; an elementwise
//! instruction or a fusion takes over the buffer of an operand that dies there, if element `i` of its result needs only
//! element `i` of that operand; everything else takes the lowest place that is free. Parameters and constants lie outside
//! of the block, results within it to the end.
//!
//! What it does not do: [`crate::Program`] takes its memory from an allocator; this is for reports ([`Assignment::report`]),
//! for scheduling, and for code that has no allocator.

use crate::attributes::Attributes;
use crate::fusion::FusionPlan;
use crate::module::{Computation, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use ff_tensor::Result;
use smallvec::SmallVec;
use std::fmt::Write;

/// Bytes that buffers are aligned to.
const ALIGNMENT: usize = 64;

/// A part of the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
    /// The place of the first instruction that uses it.
    pub first: usize,
    /// The place of the last one.
    pub last: usize,
}

/// Where an array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a parameter or a constant.
    Outside,
    /// In this buffer.
    Buffer(usize),
}

/// The buffers of a computation.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The buffers, in the order of their first use.
    pub buffers: Vec<Buffer>,
    /// For each instruction, the places of the arrays of its result, tuples flattened.
    pub places: Vec<SmallVec<[Place; 1]>>,
    /// For each instruction, whether its first array took over the buffer of an operand.
    pub in_place: Vec<bool>,
    /// Bytes of the block.
    pub size: usize,
    /// Bytes that all results together would take.
    pub without_reuse: usize,
}

impl Assignment {
    /// Assigns the buffers of a computation of a module.
    pub fn of(module: &Module, computation: &Computation) -> Result<Assignment> {
        let mut assignment = Assignment {
            buffers: Vec::new(),
            places: Vec::with_capacity(computation.instructions.len()),
            in_place: vec![false; computation.instructions.len()],
            size: 0,
            without_reuse: 0,
        };
        let last = last_uses(computation);
        for (index, instruction) in computation.instructions.iter().enumerate() {
            let places = assignment.instruction(module, computation, (index, instruction), &last)?;
            assignment.places.push(places);
        }
        assignment.lay_out();
        Ok(assignment)
    }

    fn instruction(
        &mut self,
        module: &Module,
        computation: &Computation,
        (index, instruction): (usize, &Instruction),
        last: &[usize],
    ) -> Result<SmallVec<[Place; 1]>> {
        let leaves = instruction.shape.leaves();
        let operand = |which: usize| instruction.operands.get(which).map(|id| id.0 as usize);
        let shared = match (instruction.opcode, &instruction.attributes) {
            (Opcode::Parameter | Opcode::Constant, _) => {
                Some(leaves.iter().map(|_| Place::Outside).collect())
            }
            (Opcode::Tuple, _) => {
                let operands = instruction.operands.iter();
                Some(
                    operands
                        .flat_map(|id| self.places[id.0 as usize].clone())
                        .collect(),
                )
            }
            (Opcode::GetTupleElement, Attributes::TupleIndex(which)) => {
                let elements = computation
                    .instruction(instruction.operands[0])
                    .shape
                    .as_tuple()?;
                let start: usize = elements[..*which]
                    .iter()
                    .map(|element| element.leaves().len())
                    .sum();
                let source = &self.places[instruction.operands[0].0 as usize];
                Some(source[start..start + leaves.len()].iter().copied().collect())
            }
            (Opcode::Reshape | Opcode::Copy | Opcode::OptBarrier, _) => {
                operand(0).map(|operand| self.places[operand].clone())
            }
            // The state of a loop stays where it is, unless it must not be written.
            (Opcode::While, _) => operand(0)
                .map(|operand| self.places[operand].clone())
                .filter(|places| !places.contains(&Place::Outside)),
            _ => None,
        };
        if let Some(places) = shared {
            return Ok(places);
        }
        let mut taken: SmallVec<[usize; 2]> = SmallVec::new();
        let mut places = SmallVec::new();
        for (output, leaf) in leaves.iter().enumerate() {
            self.without_reuse += leaf.byte_size();
            let reused = self.reusable(
                module,
                computation,
                (index, instruction),
                (output, leaf),
                last,
                &taken,
            );
            if let Some(buffer) = reused {
                taken.push(buffer);
                self.in_place[index] = true;
                places.push(Place::Buffer(buffer));
                continue;
            }
            self.buffers.push(Buffer {
                offset: 0,
                size: leaf.byte_size().next_multiple_of(ALIGNMENT),
                first: index,
                last: index,
            });
            places.push(Place::Buffer(self.buffers.len() - 1));
        }
        for place in &places {
            if let Place::Buffer(buffer) = place {
                self.buffers[*buffer].last = self.buffers[*buffer].last.max(last[index]);
            }
        }
        Ok(places)
    }

    /// The buffer of an operand that dies here and may be written over.
    fn reusable(
        &self,
        module: &Module,
        computation: &Computation,
        (index, instruction): (usize, &Instruction),
        (output, leaf): (usize, &ArrayShape),
        last: &[usize],
        taken: &[usize],
    ) -> Option<usize> {
        let plan = match (instruction.opcode, &instruction.attributes) {
            (Opcode::Fusion, Attributes::Call(called)) => {
                FusionPlan::of(&module.computations, module.computation(*called).ok()?).ok()
            }
            _ => None,
        };
        for (which, id) in instruction.operands.iter().enumerate() {
            let source = computation.instruction(*id).array_shape().ok()?;
            let fits = match &plan {
                Some(plan) => plan.may_replace(output, which),
                None => instruction.opcode.is_elementwise() && source.dtype.size() == leaf.dtype.size(),
            };
            let dies = last[id.0 as usize] == index && source.num_elements() == leaf.num_elements();
            if let [Place::Buffer(buffer)] = self.places[id.0 as usize][..]
                && fits
                && dies
                && self.buffers[buffer].last <= index
                && !taken.contains(&buffer)
            {
                return Some(buffer);
            }
        }
        None
    }

    /// Gives each buffer the lowest place that is free while it lives.
    fn lay_out(&mut self) {
        for index in 0..self.buffers.len() {
            let (now, size) = (self.buffers[index].first, self.buffers[index].size);
            let mut busy: Vec<(usize, usize)> = self.buffers[..index]
                .iter()
                .filter(|other| other.last >= now && other.size > 0)
                .map(|other| (other.offset, other.offset + other.size))
                .collect();
            busy.sort_unstable();
            let mut offset = 0;
            for (start, end) in busy {
                if start >= offset + size {
                    break;
                }
                offset = offset.max(end);
            }
            self.buffers[index].offset = offset;
            self.size = self.size.max(offset + size);
        }
    }

    /// The assignment as text: a line for each array with a buffer, and the sums.
    pub fn report(&self, computation: &Computation) -> String {
        let mut out = format!("buffers of {}\n", computation.name);
        for (index, instruction) in computation.instructions.iter().enumerate() {
            for (place, leaf) in self.places[index].iter().zip(instruction.shape.leaves()) {
                let Place::Buffer(number) = place else {
                    continue;
                };
                let buffer = &self.buffers[*number];
                let how = if self.in_place[index] {
                    ", over an operand"
                } else if buffer.first < index {
                    ", shared"
                } else {
                    ""
                };
                // Writing to a string does not fail.
                let _ = writeln!(
                    out,
                    "  %{}.{index} {leaf}: buffer {number} at {} of {} bytes, lives {}..{}{how}",
                    instruction.base_name(),
                    buffer.offset,
                    buffer.size,
                    buffer.first,
                    buffer.last
                );
            }
        }
        let _ = writeln!(
            out,
            "block {} bytes, without reuse {} bytes",
            self.size, self.without_reuse
        );
        out
    }
}

/// The place of the last instruction that needs each value, through tuples, reshapes and loops; the end for results.
fn last_uses(computation: &Computation) -> Vec<usize> {
    let count = computation.instructions.len();
    let mut last: Vec<usize> = (0..count).collect();
    last[computation.root.0 as usize] = count;
    for (index, instruction) in computation.instructions.iter().enumerate().rev() {
        let shares = matches!(
            instruction.opcode,
            Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::Reshape
                | Opcode::Copy
                | Opcode::OptBarrier
                | Opcode::While
        );
        for &InstructionId(operand) in &instruction.operands {
            let until = if shares { last[index] } else { index };
            last[operand as usize] = last[operand as usize].max(until);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(text: &str) -> (Assignment, String) {
        let module = crate::parse(text).unwrap();
        let computation = module.entry_computation();
        let assignment = Assignment::of(&module, computation).unwrap();
        let report = assignment.report(computation);
        (assignment, report)
    }

    #[test]
    fn a_chain_lies_in_one_buffer() {
        let (assignment, report) = assign(
            "HloModule chain\nENTRY %main () -> f32[32] {\n  %x = f32[32] parameter(0)\n  %a = f32[32] exponential(%x)\n  \
             %b = f32[32] negate(%a)\n  %c = f32[2,16] reshape(%b)\n  %d = f32[2,16] tanh(%c)\n  \
             ROOT %e = f32[32] reshape(%d)\n}",
        );
        assert_eq!(
            (assignment.size, assignment.without_reuse),
            (128, 384),
            "{report}"
        );
        assert!(report.contains("over an operand"), "{report}");
    }

    #[test]
    fn values_that_are_read_later_keep_their_buffers() {
        let (assignment, report) = assign(
            "HloModule keep\nENTRY %main () -> f32[32] {\n  %x = f32[32] parameter(0)\n  %a = f32[32] exponential(%x)\n  \
             %b = f32[32] negate(%a)\n  ROOT %c = f32[32] add(%a, %b)\n}",
        );
        assert_eq!(assignment.buffers.len(), 2, "{report}");
        assert_eq!(assignment.size, 256, "{report}");
    }

    #[test]
    fn free_places_are_used_again() {
        let (assignment, report) = assign(
            "HloModule reuse\nENTRY %main () -> f32[64,64] {\n  %x = f32[64,64] parameter(0)\n  \
             %a = f32[64,64] dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
             %b = f32[64,64] dot(%a, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
             ROOT %c = f32[64,64] dot(%b, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}",
        );
        assert_eq!(assignment.buffers.len(), 3, "{report}");
        assert_eq!(assignment.size, 2 * 64 * 64 * 4, "{report}");
    }

    #[test]
    fn buffers_that_live_together_do_not_overlap() {
        let (assignment, _) = assign(
            "HloModule both\nENTRY %main () -> (f32[5], f32[7]) {\n  %x = f32[5] parameter(0)\n  %y = f32[7] parameter(1)\n  \
             %a = f32[5] exponential(%x)\n  %b = f32[7] exponential(%y)\n  ROOT %t = (f32[5], f32[7]) tuple(%a, %b)\n}",
        );
        for (index, a) in assignment.buffers.iter().enumerate() {
            for b in &assignment.buffers[..index] {
                let together = a.first <= b.last && b.first <= a.last;
                assert!(!together || a.offset + a.size <= b.offset || b.offset + b.size <= a.offset);
            }
        }
    }
}
