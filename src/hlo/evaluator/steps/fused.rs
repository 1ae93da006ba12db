//! A fusion: a tile program over dense operands.

use crate::evaluator::code::{Kernel, StepContext, with_type};
use crate::evaluator::tile::TileProgram;
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;

/// Runs a tile program; an output takes over the memory of an operand that is read for the last time.
pub(in crate::evaluator) struct Fused {
    program: TileProgram,
    elements: usize,
    /// Outputs and the dying operands that they may replace.
    replaceable: SmallVec<[(usize, usize); 2]>,
}

impl Fused {
    pub fn new(program: TileProgram, elements: usize) -> Fused {
        Fused {
            program,
            elements,
            replaceable: SmallVec::new(),
        }
    }

    /// The tensors of the outputs, and which of them lie over an operand.
    fn outputs(&self, step: &mut StepContext) -> Result<(SmallVec<[Tensor; 2]>, u64)> {
        let mut taken: SmallVec<[usize; 2]> = SmallVec::new();
        let (mut tensors, mut replaced) = (SmallVec::new(), 0);
        for output in 0..step.num_outputs() {
            let mut tensor = None;
            for &(_, operand) in self.replaceable.iter().filter(|pair| pair.0 == output) {
                if taken.contains(&operand) {
                    continue;
                }
                if let Some(candidate) = step.take_if_writable(operand)? {
                    taken.push(operand);
                    replaced |= 1 << output;
                    let array = step.output(output);
                    tensor = Some(with_type(candidate, array.dtype, &array.shape)?);
                    break;
                }
            }
            tensors.push(match tensor {
                Some(tensor) => tensor,
                None => step.allocate(output)?,
            });
        }
        Ok((tensors, replaced))
    }
}

impl Kernel for Fused {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut inputs: SmallVec<[*const u8; 8]> = SmallVec::new();
        for operand in 0..step.num_inputs() {
            inputs.push(step.input_ptr(operand)?);
        }
        let (tensors, replaced) = self.outputs(step)?;
        let pointers: SmallVec<[*mut u8; 4]> = tensors.iter().map(Tensor::data_ptr).collect();
        // SAFETY: operands and outputs have the extents that the program was compiled for; replaced operands are kept
        // alive as outputs, all others by their slots.
        unsafe {
            self.program
                .run(step.pool(), &inputs, &pointers, replaced, self.elements)
        };
        for (output, tensor) in tensors.into_iter().enumerate() {
            step.set(output, tensor);
        }
        Ok(())
    }

    fn note_dying(&mut self, dying: u64) {
        for output in 0..self.program.num_outputs().min(64) {
            for operand in 0..self.program.num_inputs().min(64) {
                if dying >> operand & 1 == 1 && self.program.may_replace(output, operand) {
                    self.replaceable.push((output, operand));
                }
            }
        }
    }
}
