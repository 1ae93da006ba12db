//! Lays out the elements of a view one after another: transposes, slices, reversals, broadcasts.

use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::Strided;
use ff_kernels::memory::SharedMut;
use ff_tensor::{DataType, Result};

struct StridedCopy {
    walk: Strided,
    size: usize,
    elements: usize,
}

/// Copies a view of `elements` elements of a type.
pub(in crate::evaluator) fn strided_copy(walk: Strided, dtype: DataType, elements: usize) -> Box<dyn Kernel> {
    Box::new(StridedCopy {
        walk,
        size: dtype.size(),
        elements,
    })
}

/// A source that threads read.
struct Source(*const u8);

// SAFETY: only read, and kept alive by the caller of the loop.
unsafe impl Sync for Source {}

impl Kernel for StridedCopy {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut result = step.allocate(0)?;
        if self.elements > 0 {
            let source = Source(step.input_ptr(0)?);
            let bytes = result.bytes_mut().unwrap_or_default();
            let out = SharedMut::new(bytes);
            let (walk, size, source) = (&self.walk, self.size, &source);
            step.pool().parallel_for(self.elements, 0.5, |range| {
                let bytes = range.start * size..range.end * size;
                // SAFETY: ranges are disjoint; the view lies within the operand, which is not the new result.
                unsafe { walk.load(size, source.0, out.range(bytes).as_mut_ptr(), range) };
            });
        }
        step.set(0, result);
        Ok(())
    }
}
