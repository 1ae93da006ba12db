//! `gather`: slices at the places that indices name.

use super::movement::integer_at;
use super::nd::{BlockCopy, offset, unflatten};
use super::operands;
use crate::attributes::GatherDims;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::Dims;
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result};

/// How the components of an index become a place in an operand.
pub(super) struct IndexVectors {
    /// Extents of the indices without the axis of the components.
    pub batch: Dims,
    /// Strides of the batch axes in the indices.
    batch_strides: Dims,
    /// Stride between components.
    component_stride: i64,
    /// For each component: the largest start, and the stride in the operand.
    pub components: Vec<(i64, i64)>,
    /// Batch axes that run along with an operand axis, and its stride.
    batching: Vec<(usize, i64)>,
    pub dtype: DataType,
}

impl IndexVectors {
    /// `limits` and `strides` are those of the operand; the map names the operand axis of each component.
    pub fn new(
        indices: &crate::shape::ArrayShape,
        index_vector_dim: i64,
        map: &[i64],
        limits: &[i64],
        strides: &[i64],
        batching: (&[i64], &[i64]),
    ) -> IndexVectors {
        let at = index_vector_dim as usize;
        let (mut batch, mut batch_strides) = (indices.dims.clone(), indices.strides());
        let mut component_stride = 1;
        if at < indices.rank() {
            batch.remove(at);
            component_stride = batch_strides.remove(at);
        }
        let along = batching
            .0
            .iter()
            .zip(batching.1)
            .map(|(&operand_axis, &index_axis)| {
                let axis = index_axis as usize - usize::from(index_axis > index_vector_dim);
                (axis, strides[operand_axis as usize])
            });
        IndexVectors {
            batch,
            batch_strides,
            component_stride,
            components: map
                .iter()
                .map(|&axis| (limits[axis as usize], strides[axis as usize]))
                .collect(),
            batching: along.collect(),
            dtype: indices.dtype,
        }
    }

    /// The number of indices.
    pub fn count(&self) -> usize {
        self.batch.iter().product::<i64>() as usize
    }

    /// The place in the operand that an index means, and whether each component was within its limits.
    pub fn place(&self, indices: &ff_tensor::Tensor, index: &[i64]) -> Result<(i64, bool)> {
        let first = offset(index, &self.batch_strides);
        let (mut place, mut inside) = (0, true);
        for (number, &(limit, stride)) in self.components.iter().enumerate() {
            let at = first + number as i64 * self.component_stride;
            let value = integer_at(indices, self.dtype, at as usize)?;
            inside &= 0 <= value && value <= limit;
            place += value.clamp(0, limit.max(0)) * stride;
        }
        for &(axis, stride) in &self.batching {
            place += index[axis] * stride;
        }
        Ok((place, inside))
    }
}

struct Gather {
    indices: IndexVectors,
    slice: BlockCopy,
    /// Strides of the result along the axes of the indices.
    batch_strides: Dims,
    size: usize,
}

/// The kernel of a gather.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    dims: &GatherDims,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (operand, result) = (&shapes[0], instruction.array_shape()?);
    let (strides, result_strides) = (operand.strides(), result.strides());
    let limits: Dims = operand
        .dims
        .iter()
        .zip(&dims.slice_sizes)
        .map(|(extent, size)| extent - size)
        .collect();
    let indices = IndexVectors::new(
        &shapes[1],
        dims.index_vector_dim,
        &dims.start_index_map,
        &limits,
        &strides,
        (&dims.operand_batching_dims, &dims.start_indices_batching_dims),
    );
    let kept: Vec<usize> = (0..operand.rank())
        .filter(|&axis| {
            let axis = axis as i64;
            !dims.collapsed_slice_dims.contains(&axis) && !dims.operand_batching_dims.contains(&axis)
        })
        .collect();
    let slice_dims: Dims = kept.iter().map(|&axis| dims.slice_sizes[axis]).collect();
    let from: Dims = kept.iter().map(|&axis| strides[axis]).collect();
    let to: Dims = dims
        .offset_dims
        .iter()
        .map(|&axis| result_strides[axis as usize])
        .collect();
    let batch_strides = (0..result.rank())
        .filter(|&axis| !dims.offset_dims.contains(&(axis as i64)))
        .map(|axis| result_strides[axis])
        .collect();
    let size = operand.dtype.size();
    Ok(Box::new(Gather {
        indices,
        slice: BlockCopy::new(&slice_dims, &from, &to, size),
        batch_strides,
        size,
    }))
}

/// Memory that the threads of a loop read and write in disjoint parts.
#[derive(Clone, Copy)]
struct Addresses(*const u8, *mut u8);

// SAFETY: each index writes its own slice of the result.
unsafe impl Sync for Addresses {}

impl Kernel for Gather {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        let count = self.indices.count();
        if result.num_elements() > 0 && step.input(0)?.num_elements() > 0 {
            let indices = step.input(1)?;
            let addresses = Addresses(step.input_ptr(0)?, result.data_ptr());
            let addresses = &addresses;
            let cost = 10.0 + self.slice.elements() as f64 * 0.3;
            step.pool().parallel_for(count, cost, |range| {
                for number in range {
                    let index = unflatten(number, &self.indices.batch);
                    let Ok((from, _)) = self.indices.place(indices, &index) else {
                        continue;
                    };
                    let to = offset(&index, &self.batch_strides);
                    // SAFETY: the place was clamped so that the slice lies within the operand.
                    unsafe {
                        let from = addresses.0.offset(from as isize * self.size as isize);
                        let to = addresses.1.offset(to as isize * self.size as isize);
                        self.slice.run(ThreadPool::serial(), from, to);
                    }
                }
            });
        }
        step.set(0, result);
        Ok(())
    }
}
