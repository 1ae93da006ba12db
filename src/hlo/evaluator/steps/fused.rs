//! A fusion: a tile program over dense operands, and the reductions of what it computes.

use super::matrix::out_of_memory;
use super::reduce::PartialReduce;
use super::reduce_typed::Operand;
use crate::evaluator::code::{Kernel, StepContext, with_type};
use crate::evaluator::tile::TileProgram;
use ff_kernels::ThreadPool;
use ff_kernels::scratch::OutOfMemory;
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Runs a tile program; an output takes over the memory of an operand that is read for the last time.
pub(in crate::evaluator) struct Fused {
    program: TileProgram,
    elements: usize,
    /// Outputs of the program that are results of the step; the others are only reduced.
    stored: usize,
    /// The program's output that is reduced, and how. Their results follow the stored outputs.
    reductions: Vec<(usize, PartialReduce)>,
    /// Outputs and the dying operands that they may replace.
    replaceable: SmallVec<[(usize, usize); 2]>,
}

/// Elements that are computed before they are reduced.
const PART: usize = 8 << 10;

/// Pointers to the operands and outputs of a run.
#[derive(Clone, Copy)]
struct Addresses<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
    replaced: u64,
}

// SAFETY: inputs are only read; each thread writes the outputs of its own elements.
unsafe impl Sync for Addresses<'_> {}

impl Fused {
    /// The fusion of `elements` elements whose first `stored` outputs are results.
    pub fn new(program: TileProgram, elements: usize, stored: usize) -> Fused {
        Fused {
            program,
            elements,
            stored,
            reductions: Vec::new(),
            replaceable: SmallVec::new(),
        }
    }

    /// Adds a reduction of an output. All of a fusion have the same unit.
    pub fn reduce(&mut self, output: usize, part: PartialReduce) {
        self.reductions.push((output, part));
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

    /// Computes and reduces the units of `range`.
    ///
    /// # Safety
    /// The addresses are those of operands and outputs with the extents that the fusion was made for.
    unsafe fn reduce_units(
        &self,
        addresses: Addresses,
        range: Range<usize>,
    ) -> std::result::Result<(), OutOfMemory> {
        let unit = self.reductions[0].1.unit;
        let units = (PART / unit).max(1);
        let sizes = (self.stored..self.program.num_outputs()).map(|output| self.program.output_size(output));
        let mut scratch: Vec<Vec<[u64; 2]>> = Vec::new();
        for size in sizes {
            let len = (units.min(range.len()) * unit * size).div_ceil(16);
            let mut buffer = Vec::new();
            buffer
                .try_reserve_exact(len)
                .map_err(|_| OutOfMemory { bytes: len * 16 })?;
            buffer.resize(len, [0; 2]);
            scratch.push(buffer);
        }
        for first in range.clone().step_by(units) {
            let count = units.min(range.end - first);
            let start = first * unit;
            let mut outputs: SmallVec<[*mut u8; 4]> = SmallVec::from_slice(&addresses.outputs[..self.stored]);
            for (index, buffer) in scratch.iter_mut().enumerate() {
                // The program adds the place of an element: what is only reduced starts at the buffer's start.
                let before = start * self.program.output_size(self.stored + index);
                outputs.push(buffer.as_mut_ptr().cast::<u8>().wrapping_sub(before));
            }
            // SAFETY: passed on to the caller; buffers hold the elements of the units.
            unsafe {
                let elements = start..start + count * unit;
                self.program
                    .run_part(addresses.inputs, &outputs, addresses.replaced, elements);
                for (index, (output, part)) in self.reductions.iter().enumerate() {
                    let data = outputs[*output].wrapping_add(start * self.program.output_size(*output));
                    let size = self.program.output_size(*output);
                    let result = addresses.outputs[self.stored + index].add(first * part.results * size);
                    let operand = Operand {
                        data,
                        dims: &[count, part.terms, part.results],
                        reduced: &[false, true, false],
                    };
                    (part.reduce)(ThreadPool::serial(), &operand, result)?;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Fused::reduce_units`].
    unsafe fn run_with_reductions(&self, pool: &ThreadPool, addresses: Addresses) -> Result<()> {
        let unit = self.reductions[0].1.unit;
        let failure = Mutex::new(None);
        pool.parallel_for(
            self.elements / unit,
            (self.program.cost() + 0.2) * unit as f64,
            |range| {
                // SAFETY: passed on to the caller; ranges are disjoint.
                if let Err(error) = unsafe { self.reduce_units(addresses, range) } {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            },
        );
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), |error| Err(out_of_memory(error)))
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
            if self.reductions.is_empty() {
                self.program
                    .run(step.pool(), &inputs, &pointers, replaced, self.elements);
            } else {
                let addresses = Addresses {
                    inputs: &inputs,
                    outputs: &pointers,
                    replaced,
                };
                self.run_with_reductions(step.pool(), addresses)?;
            }
        }
        for (output, tensor) in tensors.into_iter().enumerate() {
            step.set(output, tensor);
        }
        Ok(())
    }

    fn note_dying(&mut self, dying: u64) {
        for output in 0..self.stored.min(64) {
            for operand in 0..self.program.num_inputs().min(64) {
                if dying >> operand & 1 == 1 && self.program.may_replace(output, operand) {
                    self.replaceable.push((output, operand));
                }
            }
        }
    }
}
