//! Random bits apart from the generator's next state.
//!
//! *Assumes* a verified module. *Guarantees* that no `get-tuple-element` reads an `rng-bit-generator`: who reads bits
//! reads one that gives bits alone, which fusions compute in place, and the next state is the old one with the blocks that
//! were drawn added to its counter. *Does not* change bits, nor generators whose results are passed on whole.

use super::Changed;
use super::rebuild::{self, Rewriter};
use crate::attributes::{Attributes, Direction, RngAlgorithm};
use crate::module::{Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{DataType, Result, Tensor};
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for computation in &mut module.computations {
        let replaced = rebuild::rewrite(computation, |rewriter, instruction| {
            let Attributes::TupleIndex(part) = instruction.attributes else {
                return Ok::<_, ff_tensor::Status>(None);
            };
            let generator = rewriter.get(instruction.operands[0]).clone();
            let (Attributes::Rng(algorithm), HloShape::Tuple(shapes)) =
                (&generator.attributes, &generator.shape)
            else {
                return Ok(None);
            };
            let HloShape::Array(bits) = &shapes[1] else {
                return Ok(None);
            };
            let state = generator.operands[0];
            if part == 0 {
                let blocks = bits.byte_size().div_ceil(algorithm.block_bytes());
                let mut maker = Maker {
                    rewriter,
                    like: &generator,
                };
                return maker.next_state(*algorithm, state, blocks as u64).map(Some);
            }
            let alone = Instruction {
                shape: bits.clone().into(),
                ..generator
            };
            Ok(Some(rewriter.push(alone)))
        })?;
        changed = changed.or(replaced.into());
    }
    Ok(changed)
}

/// Makes instructions on behalf of a generator.
struct Maker<'a> {
    rewriter: &'a mut Rewriter,
    like: &'a Instruction,
}

impl Maker<'_> {
    fn push(
        &mut self,
        opcode: Opcode,
        (dtype, extent): (DataType, i64),
        operands: &[InstructionId],
        attributes: Attributes,
    ) -> InstructionId {
        self.rewriter.push(Instruction {
            opcode,
            shape: ArrayShape::new(dtype, &[extent]).into(),
            operands: SmallVec::from_slice(operands),
            attributes,
            name: None,
            node: self.like.node.clone(),
        })
    }

    fn words(&mut self, opcode: Opcode, operands: &[InstructionId], attributes: Attributes) -> InstructionId {
        self.push(opcode, (DataType::UINT64, 1), operands, attributes)
    }

    fn word(&mut self, state: InstructionId, index: i64) -> InstructionId {
        let at = |index: i64| Dims::from_elem(index, 1);
        let attributes = Attributes::Slice {
            start: at(index),
            limit: at(index + 1),
            stride: at(1),
        };
        self.words(Opcode::Slice, &[state], attributes)
    }

    /// The state after so many blocks.
    fn next_state(
        &mut self,
        algorithm: RngAlgorithm,
        state: InstructionId,
        blocks: u64,
    ) -> Result<InstructionId> {
        let blocks = Attributes::Constant(Tensor::vector(&[blocks])?);
        let blocks = self.words(Opcode::Constant, &[], blocks);
        let key = self.word(state, 0);
        let before = self.word(state, 1);
        let low = self.words(Opcode::Add, &[before, blocks], Attributes::None);
        let mut parts = vec![key, low];
        if algorithm == RngAlgorithm::Philox {
            let compare = Attributes::Compare(Direction::Lt);
            let overflows = self.push(Opcode::Compare, (DataType::BOOL, 1), &[low, blocks], compare);
            let carry = self.words(Opcode::Convert, &[overflows], Attributes::None);
            let high = self.word(state, 2);
            parts.push(self.words(Opcode::Add, &[high, carry], Attributes::None));
        }
        let words = (DataType::UINT64, algorithm.state_words() as i64);
        Ok(self.push(Opcode::Concatenate, words, &parts, Attributes::Dimension(0)))
    }
}
