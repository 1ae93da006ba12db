//! Shared access to one output buffer from the threads of a loop, each to a range of its own.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice that several threads write in disjoint ranges.
#[derive(Debug)]
pub struct SharedMut<'a, T> {
    pointer: *mut T,
    len: usize,
    _borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: access goes through `range`, whose caller promises disjointness.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}

impl<T> Clone for SharedMut<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    /// Takes over the slice for as long as it is borrowed.
    pub fn new(slice: &'a mut [T]) -> SharedMut<'a, T> {
        SharedMut {
            pointer: slice.as_mut_ptr(),
            len: slice.len(),
            _borrow: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of `range`. Panics when out of bounds.
    ///
    /// # Safety
    /// While the result lives, no other call hands out an overlapping range.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub unsafe fn range(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "range outside of the buffer"
        );
        // SAFETY: in bounds; the caller promises that ranges do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.len()) }
    }

    /// Stores one element. Panics when out of bounds.
    ///
    /// # Safety
    /// No other thread accesses this element meanwhile.
    #[inline]
    pub unsafe fn write(&self, index: usize, value: T) {
        assert!(index < self.len, "index outside of the buffer");
        // SAFETY: in bounds; the caller promises exclusive access.
        unsafe { self.pointer.add(index).write(value) }
    }

    /// The first element's address, for kernels that compute addresses themselves.
    #[inline]
    pub fn as_ptr(&self) -> *mut T {
        self.pointer
    }
}
