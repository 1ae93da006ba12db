//! Copies between strided blocks of any rank.

use crate::shape::Dims;
use ff_kernels::ThreadPool;
use smallvec::SmallVec;

/// A block: the same extents on both sides, strides in elements.
#[derive(Clone, Debug)]
pub(super) struct BlockCopy {
    dims: SmallVec<[usize; 6]>,
    from: SmallVec<[isize; 6]>,
    to: SmallVec<[isize; 6]>,
    size: usize,
}

#[derive(Clone, Copy)]
struct Addresses(*const u8, *mut u8);

// SAFETY: threads write disjoint parts of the destination.
unsafe impl Sync for Addresses {}

impl BlockCopy {
    /// A copy of a block of these extents, of elements of `size` bytes.
    pub fn new(dims: &[i64], from: &[i64], to: &[i64], size: usize) -> BlockCopy {
        let mut copy = BlockCopy {
            dims: SmallVec::new(),
            from: SmallVec::new(),
            to: SmallVec::new(),
            size,
        };
        for i in (0..dims.len()).rev() {
            let (extent, from, to) = (dims[i] as usize, from[i] as isize, to[i] as isize);
            if extent == 1 {
                continue;
            }
            if let (Some(inner), Some(&f), Some(&t)) =
                (copy.dims.last_mut(), copy.from.last(), copy.to.last())
                && from == f * *inner as isize
                && to == t * *inner as isize
            {
                *inner *= extent;
                continue;
            }
            copy.dims.push(extent);
            copy.from.push(from);
            copy.to.push(to);
        }
        if copy.dims.is_empty() {
            copy.dims.push(1);
            copy.from.push(1);
            copy.to.push(1);
        }
        copy.dims.reverse();
        copy.from.reverse();
        copy.to.reverse();
        copy
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Copies the block, on several threads where that pays.
    ///
    /// # Safety
    /// The block lies within readable memory from `from` and writable memory from `to`, which do not overlap; its
    /// destination elements are distinct.
    pub unsafe fn run(&self, pool: &ThreadPool, from: *const u8, to: *mut u8) {
        if self.elements() == 0 {
            return;
        }
        let inner: usize = self.dims[1..].iter().product();
        if self.dims.len() == 1 {
            // SAFETY: passed on to the caller.
            return unsafe { self.range(from, to, 0, self.dims[0]) };
        }
        let addresses = Addresses(from, to);
        let addresses = &addresses;
        pool.parallel_for(self.dims[0], inner as f64 * 0.3, |range| {
            // SAFETY: passed on to the caller; rows of the outermost axis are disjoint.
            unsafe { self.range(addresses.0, addresses.1, range.start, range.end) }
        });
    }

    /// # Safety
    /// As for [`BlockCopy::run`].
    unsafe fn range(&self, from: *const u8, to: *mut u8, start: usize, end: usize) {
        // SAFETY: passed on to the caller; the sizes are those of the element types.
        unsafe {
            match self.size {
                1 => self.range_of::<u8>(from.cast(), to.cast(), start, end),
                2 => self.range_of::<u16>(from.cast(), to.cast(), start, end),
                4 => self.range_of::<u32>(from.cast(), to.cast(), start, end),
                8 => self.range_of::<[u32; 2]>(from.cast(), to.cast(), start, end),
                _ => self.range_of::<[u64; 2]>(from.cast(), to.cast(), start, end),
            }
        }
    }

    /// # Safety
    /// As for [`BlockCopy::run`].
    unsafe fn range_of<T: Copy>(&self, from: *const T, to: *mut T, start: usize, end: usize) {
        let last = self.dims.len() - 1;
        let mut counter: SmallVec<[usize; 6]> = SmallVec::from_elem(0, last.max(1));
        counter[0] = start;
        let mut source = if last > 0 {
            start as isize * self.from[0]
        } else {
            0
        };
        let mut target = if last > 0 { start as isize * self.to[0] } else { 0 };
        let (count, first) = if last > 0 {
            (self.dims[last], 0)
        } else {
            (end - start, start as isize)
        };
        let (from_step, to_step) = (self.from[last], self.to[last]);
        loop {
            // SAFETY: passed on to the caller.
            unsafe {
                let source = from.offset(source + first * from_step);
                let target = to.offset(target + first * to_step);
                if from_step == 1 && to_step == 1 {
                    std::ptr::copy_nonoverlapping(source, target, count);
                } else {
                    for i in 0..count as isize {
                        *target.offset(i * to_step) = *source.offset(i * from_step);
                    }
                }
            }
            let mut axis = last;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                counter[axis] += 1;
                source += self.from[axis];
                target += self.to[axis];
                let limit = if axis == 0 { end } else { self.dims[axis] };
                if counter[axis] < limit {
                    break;
                }
                if axis == 0 {
                    return;
                }
                source -= self.from[axis] * self.dims[axis] as isize;
                target -= self.to[axis] * self.dims[axis] as isize;
                counter[axis] = 0;
            }
        }
    }
}

/// The strides of a dense array times a factor for each axis.
pub(super) fn scaled(strides: &[i64], factors: impl Iterator<Item = i64>) -> Dims {
    strides
        .iter()
        .zip(factors)
        .map(|(stride, factor)| stride * factor)
        .collect()
}

/// The index of a row-major place, axis by axis.
pub(super) fn unflatten(mut place: usize, dims: &[i64]) -> Dims {
    let mut index = Dims::from_elem(0, dims.len());
    for axis in (0..dims.len()).rev() {
        index[axis] = (place % dims[axis] as usize) as i64;
        place /= dims[axis] as usize;
    }
    index
}

/// The products of index and stride.
pub(super) fn offset(index: &[i64], strides: &[i64]) -> i64 {
    index
        .iter()
        .zip(strides)
        .map(|(index, stride)| index * stride)
        .sum()
}

/// Advances a row-major index; false after the last.
pub(super) fn advance(index: &mut [i64], dims: &[i64]) -> bool {
    for axis in (0..dims.len()).rev() {
        index[axis] += 1;
        if index[axis] < dims[axis] {
            return true;
        }
        index[axis] = 0;
    }
    false
}
