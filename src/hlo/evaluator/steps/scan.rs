//! Loops over one axis: slices go in, slices of results come out, values are carried from place to place.

use super::operands;
use crate::attributes::ScanConfig;
use crate::evaluator::code::{Code, Kernel, StepContext, with_type};
use crate::evaluator::compile::Compiler;
use crate::module::{Computation, Instruction};
use ff_tensor::{Result, Shape, Tensor, ensure};
use std::sync::Arc;

/// Slices of an array along its scanned axis.
struct Slices {
    /// Runs of bytes that a slice has in the array.
    runs: usize,
    /// Bytes of a run.
    run: usize,
}

struct Scan {
    code: Arc<Code>,
    extent: usize,
    reverse: bool,
    /// Of each scanned operand.
    inputs: Vec<Slices>,
    /// Of each stacked result.
    outputs: Vec<Slices>,
}

impl Slices {
    fn of(dims: &[i64], dimension: usize, item: usize) -> Slices {
        let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        Slices {
            runs: count(&dims[..dimension]),
            run: count(&dims[dimension + 1..]) * item,
        }
    }

    /// Copies the slice at `place` of an array of `extent` slices into `to`.
    fn take(&self, array: &[u8], extent: usize, place: usize, to: &mut [u8]) {
        for run in 0..self.runs {
            let from = (run * extent + place) * self.run;
            to[run * self.run..][..self.run].copy_from_slice(&array[from..][..self.run]);
        }
    }

    /// Copies a slice to `place` of an array of `extent` slices.
    fn put(&self, slice: &[u8], extent: usize, place: usize, array: &mut [u8]) {
        for run in 0..self.runs {
            let at = (run * extent + place) * self.run;
            array[at..][..self.run].copy_from_slice(&slice[run * self.run..][..self.run]);
        }
    }
}

/// The kernel of a scan.
pub(super) fn kernel(
    compiler: &mut Compiler,
    computation: &Computation,
    instruction: &Instruction,
    config: &ScanConfig,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (carried, dimension) = (config.num_carries as usize, config.dimension as usize);
    let slices = |shape: &crate::shape::ArrayShape| Slices::of(&shape.dims, dimension, shape.dtype.size());
    let sequences = &shapes[..shapes.len() - carried];
    let results = instruction.shape.leaves();
    Ok(Box::new(Scan {
        code: compiler.compile(config.computation)?,
        extent: sequences
            .first()
            .map_or(0, |shape| shape.dims[dimension] as usize),
        reverse: config.reverse,
        inputs: sequences.iter().map(slices).collect(),
        outputs: results[..results.len() - carried]
            .iter()
            .map(|&shape| slices(shape))
            .collect(),
    }))
}

impl Kernel for Scan {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let environment = step.environment();
        let parameters = &self.code.parameters;
        let mut stacked: Vec<Tensor> = (0..self.outputs.len())
            .map(|index| step.allocate(index))
            .collect::<Result<_>>()?;
        let mut carries = Vec::with_capacity(parameters.len() - self.inputs.len());
        for (index, (dtype, shape)) in parameters.iter().enumerate().skip(self.inputs.len()) {
            carries.push(with_type(step.give_input(index)?, *dtype, shape)?);
        }
        for turn in 0..self.extent {
            let place = if self.reverse {
                self.extent - 1 - turn
            } else {
                turn
            };
            let mut arguments = Vec::with_capacity(parameters.len());
            for (index, slices) in self.inputs.iter().enumerate() {
                let (dtype, shape): &(_, Shape) = &parameters[index];
                let mut slice = (environment.allocate)(*dtype, shape.clone())?;
                if let Some(bytes) = slice.bytes_mut() {
                    slices.take(step.input(index)?.bytes(), self.extent, place, bytes);
                }
                arguments.push(slice);
            }
            arguments.append(&mut carries);
            let mut results = self.code.run(environment, arguments)?;
            ensure!(
                results.len() >= self.outputs.len(),
                Internal,
                "A scan lost its results"
            );
            carries = results.split_off(self.outputs.len());
            for ((slices, array), slice) in self.outputs.iter().zip(&mut stacked).zip(&results) {
                if let Some(bytes) = array.bytes_mut() {
                    slices.put(slice.bytes(), self.extent, place, bytes);
                }
            }
        }
        for (index, value) in stacked.into_iter().chain(carries).enumerate() {
            step.set(index, value);
        }
        Ok(())
    }
}
