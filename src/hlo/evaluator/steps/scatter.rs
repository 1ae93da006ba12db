//! `scatter`: updates combined into an operand at the places that indices name.

use super::function::{Known, RowFunction, recognize};
use super::gather::IndexVectors;
use super::nd::{advance, offset, unflatten};
use super::operands;
use crate::attributes::ScatterDims;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::Dims;
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;

struct Scatter {
    indices: IndexVectors,
    /// Extents of the window but for its innermost row, and strides along them.
    window: Dims,
    operand_strides: Dims,
    update_strides: Dims,
    /// Elements of a row, which lie together on both sides.
    row: usize,
    /// Strides of the updates along the axes of the indices.
    batch_strides: Dims,
    sizes: Vec<usize>,
    /// None when the update replaces.
    combine: Option<RowFunction>,
}

/// The kernel of a scatter; `combiner` takes old values, then new ones.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    dims: &ScatterDims,
    combiner: &Computation,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let count = shapes.len() / 2;
    let (operand, update) = (&shapes[0], &shapes[count + 1]);
    let (strides, update_strides) = (operand.strides(), update.strides());
    let inserted = |axis: usize| {
        let axis = axis as i64;
        dims.inserted_window_dims.contains(&axis) || dims.input_batching_dims.contains(&axis)
    };
    let kept: Vec<usize> = (0..operand.rank()).filter(|&axis| !inserted(axis)).collect();
    let mut window: Dims = dims
        .update_window_dims
        .iter()
        .map(|&axis| update.dims[axis as usize])
        .collect();
    let mut limits = Dims::new();
    for axis in 0..operand.rank() {
        let extent = kept
            .iter()
            .position(|&other| other == axis)
            .map_or(1, |at| window[at]);
        limits.push(operand.dims[axis] - extent);
    }
    let indices = IndexVectors::new(
        &shapes[count],
        dims.index_vector_dim,
        &dims.scatter_dims_to_operand_dims,
        &limits,
        &strides,
        (&dims.input_batching_dims, &dims.scatter_indices_batching_dims),
    );
    let mut operand_strides: Dims = kept.iter().map(|&axis| strides[axis]).collect();
    let mut window_strides: Dims = dims
        .update_window_dims
        .iter()
        .map(|&axis| update_strides[axis as usize])
        .collect();
    let batch_strides = (0..update.rank())
        .filter(|&axis| !dims.update_window_dims.contains(&(axis as i64)))
        .map(|axis| update_strides[axis])
        .collect();
    let mut row: i64 = 1;
    while let Some(&extent) = window.last() {
        let together = operand_strides.last() == Some(&row) && window_strides.last() == Some(&row);
        if !(together || extent == 1) {
            break;
        }
        row *= extent;
        window.pop();
        operand_strides.pop();
        window_strides.pop();
    }
    let replaces = count == 1 && recognize(combiner) == Some(Known::Second);
    Ok(Box::new(Scatter {
        indices,
        window,
        operand_strides,
        update_strides: window_strides,
        row: row as usize,
        batch_strides,
        sizes: shapes[..count].iter().map(|shape| shape.dtype.size()).collect(),
        combine: if replaces {
            None
        } else {
            Some(RowFunction::compile(combiner)?)
        },
    }))
}

impl Kernel for Scatter {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let count = self.sizes.len();
        let mut results: SmallVec<[Tensor; 2]> = SmallVec::new();
        for index in 0..count {
            results.push(step.take_input(index, index)?);
        }
        let updates_empty = step.input(count + 1)?.num_elements() == 0;
        if !updates_empty && results[0].num_elements() > 0 {
            self.scatter(step, &results)?;
        }
        for (index, result) in results.into_iter().enumerate() {
            step.set(index, result);
        }
        Ok(())
    }
}

impl Scatter {
    fn scatter(&self, step: &StepContext, results: &[Tensor]) -> Result<()> {
        let count = self.sizes.len();
        let indices = step.input(count)?;
        let mut updates: SmallVec<[*const u8; 2]> = SmallVec::new();
        for index in 0..count {
            updates.push(step.input_ptr(count + 1 + index)?);
        }
        let mut scratch: Vec<Vec<[u64; 2]>> = self
            .sizes
            .iter()
            .map(|size| vec![[0; 2]; (self.row * size).div_ceil(16)])
            .collect();
        for number in 0..self.indices.count() {
            let index = unflatten(number, &self.indices.batch);
            let (place, inside) = self.indices.place(indices, &index)?;
            // A window that sticks out is dropped.
            if !inside {
                continue;
            }
            let first = offset(&index, &self.batch_strides);
            let mut at = Dims::from_elem(0, self.window.len());
            loop {
                let to = place + offset(&at, &self.operand_strides);
                let from = first + offset(&at, &self.update_strides);
                // SAFETY: the window lies within the operand, which the results own; rows lie within the updates.
                unsafe { self.combine_row(results, &updates, &mut scratch, to as usize, from as usize) };
                if !advance(&mut at, &self.window) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// Rows of `self.row` elements lie at `to` in the results and at `from` in the updates.
    unsafe fn combine_row(
        &self,
        results: &[Tensor],
        updates: &[*const u8],
        scratch: &mut [Vec<[u64; 2]>],
        to: usize,
        from: usize,
    ) {
        // SAFETY: passed on to the caller; the scratch rows are as long and apart from all else.
        unsafe {
            let Some(function) = &self.combine else {
                let size = self.sizes[0];
                let target = results[0].data_ptr().add(to * size);
                std::ptr::copy_nonoverlapping(updates[0].add(from * size), target, self.row * size);
                return;
            };
            let mut parameters: SmallVec<[*const u8; 4]> = SmallVec::new();
            for (result, size) in results.iter().zip(&self.sizes) {
                parameters.push(result.data_ptr().add(to * size).cast_const());
            }
            for (update, size) in updates.iter().zip(&self.sizes) {
                parameters.push(update.add(from * size));
            }
            let outputs: SmallVec<[*mut u8; 2]> =
                scratch.iter_mut().map(|row| row.as_mut_ptr().cast()).collect();
            function.call(&parameters, &outputs, self.row);
            for ((result, size), output) in results.iter().zip(&self.sizes).zip(&outputs) {
                std::ptr::copy_nonoverlapping(*output, result.data_ptr().add(to * size), self.row * size);
            }
        }
    }
}
