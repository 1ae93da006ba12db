//! Lays out the elements of a view one after another: transposes, slices, reversals, broadcasts.

use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::Strided;
use ff_kernels::ThreadPool;
use ff_kernels::memory::SharedMut;
use ff_tensor::{DataType, Result, Tensor};

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

/// Copies `elements` elements of `size` bytes along a walk over `source`, one after another into `out`.
///
/// # Safety
/// The walk stays within the source; `out` is another tensor with room for that many elements.
pub(super) unsafe fn run(
    pool: &ThreadPool,
    walk: &Strided,
    size: usize,
    elements: usize,
    source: &Tensor,
    out: &Tensor,
) {
    if elements == 0 {
        return;
    }
    let source = Source(source.data_ptr());
    // SAFETY: the tensor has that many bytes, and its owner is the caller.
    let out = SharedMut::new(unsafe { std::slice::from_raw_parts_mut(out.data_ptr(), elements * size) });
    let source = &source;
    pool.parallel_for(elements, 0.5, |range| {
        let bytes = range.start * size..range.end * size;
        // SAFETY: ranges are disjoint; the rest is passed on to the caller.
        unsafe { walk.load(size, source.0, out.range(bytes).as_mut_ptr(), range) };
    });
}

impl Kernel for StridedCopy {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        // SAFETY: the view lies within the operand; the result is new memory.
        unsafe {
            run(
                step.pool(),
                &self.walk,
                self.size,
                self.elements,
                step.input(0)?,
                &result,
            )
        };
        step.set(0, result);
        Ok(())
    }
}
