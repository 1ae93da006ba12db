//! Affine walks over an operand: broadcasts, slices, reversals and transposes without a copy.

use smallvec::SmallVec;
use std::ops::Range;

/// Where each element of a row-major result lies in its source: `offset + sum(index * stride)`, in elements.
///
/// Extents of one are dropped and neighbours that are walked alike are merged.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::evaluator) struct Strided {
    dims: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
    offset: isize,
}

impl Strided {
    /// The walk with these extents and strides from `offset` on.
    pub fn new(dims: &[i64], strides: &[i64], offset: i64) -> Strided {
        let mut walk = Strided {
            dims: SmallVec::new(),
            strides: SmallVec::new(),
            offset: offset as isize,
        };
        // From the innermost axis outwards, kept reversed until the end.
        for (&extent, &stride) in dims.iter().zip(strides).rev() {
            let (extent, stride) = (extent as usize, stride as isize);
            if extent == 1 {
                continue;
            }
            match (walk.dims.last_mut(), walk.strides.last()) {
                (Some(inner), Some(&step)) if stride == step * *inner as isize => *inner *= extent,
                _ => {
                    walk.dims.push(extent);
                    walk.strides.push(stride);
                }
            }
        }
        if walk.dims.is_empty() {
            walk.dims.push(1);
            walk.strides.push(1);
        }
        walk.dims.reverse();
        walk.strides.reverse();
        walk
    }

    /// Whether all elements are one.
    pub fn is_splat(&self) -> bool {
        self.strides.iter().all(|&stride| stride == 0) || self.dims.iter().all(|&extent| extent == 1)
    }

    /// Where the first element lies.
    pub fn offset(&self) -> isize {
        self.offset
    }

    /// Whether the elements lie one after another.
    pub fn is_dense(&self) -> bool {
        self.dims.len() == 1 && (self.strides[0] == 1 || self.dims[0] == 1)
    }

    /// Extent and stride of the innermost axis.
    pub fn inner(&self) -> (usize, isize) {
        let last = self.dims.len() - 1;
        (self.dims[last], self.strides[last])
    }

    /// Copies the elements `range` of the result to `out`.
    ///
    /// # Safety
    /// The walk stays within the source's elements; `out` holds `range.len()` elements and is not part of the source.
    pub unsafe fn load(&self, size: usize, source: *const u8, out: *mut u8, range: Range<usize>) {
        // SAFETY: passed on to the caller; sizes are those of the element types.
        unsafe {
            match size {
                1 => self.load_as::<u8>(source.cast(), out.cast(), range),
                2 => self.load_as::<u16>(source.cast(), out.cast(), range),
                4 => self.load_as::<u32>(source.cast(), out.cast(), range),
                8 => self.load_as::<[u32; 2]>(source.cast(), out.cast(), range),
                _ => self.load_as::<[u64; 2]>(source.cast(), out.cast(), range),
            }
        }
    }

    /// # Safety
    /// As for [`Strided::load`].
    unsafe fn load_as<T: Copy>(&self, source: *const T, out: *mut T, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (inner, step) = self.inner();
        let outer = self.dims.len() - 1;
        let mut counter: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer);
        let mut base = self.offset;
        let mut rest = range.start / inner;
        for axis in (0..outer).rev() {
            counter[axis] = rest % self.dims[axis];
            rest /= self.dims[axis];
            base += counter[axis] as isize * self.strides[axis];
        }
        let mut column = range.start % inner;
        let mut done = 0;
        loop {
            let count = (inner - column).min(range.len() - done);
            // SAFETY: passed on to the caller.
            unsafe {
                copy_row(
                    source.offset(base + column as isize * step),
                    step,
                    out.add(done),
                    count,
                )
            };
            done += count;
            if done == range.len() {
                return;
            }
            column = 0;
            for axis in (0..outer).rev() {
                counter[axis] += 1;
                base += self.strides[axis];
                if counter[axis] < self.dims[axis] {
                    break;
                }
                base -= self.strides[axis] * self.dims[axis] as isize;
                counter[axis] = 0;
            }
        }
    }
}

/// Copies `count` elements that lie `step` apart.
///
/// # Safety
/// All of them are readable, `out` is writable for `count` and does not overlap them.
#[inline(always)]
unsafe fn copy_row<T: Copy>(source: *const T, step: isize, out: *mut T, count: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match step {
            1 if count >= 16 => std::ptr::copy_nonoverlapping(source, out, count),
            0 => {
                let value = *source;
                for i in 0..count {
                    *out.add(i) = value;
                }
            }
            _ => {
                for i in 0..count {
                    *out.add(i) = *source.offset(i as isize * step);
                }
            }
        }
    }
}
