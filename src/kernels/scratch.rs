//! Working memory that each thread keeps and reuses: fresh pages cost several times the copy into warm ones.
//!
//! Buffers are aligned to 64 bytes and hold whatever the previous user left. A thread keeps a few of bounded
//! size; larger ones are freed after use.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Memory could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size that was asked for.
    pub bytes: usize,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "out of memory when allocating {} bytes of working memory",
            self.bytes
        )
    }
}
impl std::error::Error for OutOfMemory {}

const ALIGNMENT: usize = 64;
/// Larger buffers are not kept.
const KEEP_BYTES: usize = 16 << 20;
/// More buffers are not kept.
const KEEP_COUNT: usize = 6;

/// Plain numbers: any bytes are a value.
///
/// # Safety
/// The type is `Copy`, needs at most 64-byte alignment and every bit pattern is a value.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($ty:ty),*) => {
        $(
            // SAFETY: a number type without invalid bit patterns.
            unsafe impl Plain for $ty {}
        )*
    };
}
plain!(
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    u64,
    i64,
    u128,
    usize,
    f32,
    f64,
    half::f16,
    half::bf16
);
plain!(num_complex::Complex<f32>, num_complex::Complex<f64>);

/// An owned, 64-byte aligned block of plain numbers.
pub struct AlignedBuffer<T: Plain> {
    bytes: RawBuffer,
    len: usize,
    _element: std::marker::PhantomData<T>,
}

impl<T: Plain> AlignedBuffer<T> {
    /// A block of `len` zeros.
    pub fn zeroed(len: usize) -> Result<AlignedBuffer<T>, OutOfMemory> {
        let bytes = RawBuffer::new(byte_size::<T>(len)?)?;
        // SAFETY: the block has this capacity.
        unsafe { bytes.pointer.as_ptr().write_bytes(0, bytes.capacity) };
        Ok(AlignedBuffer {
            bytes,
            len,
            _element: std::marker::PhantomData,
        })
    }
}

impl<T: Plain> std::ops::Deref for AlignedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements of a plain type.
        unsafe { std::slice::from_raw_parts(self.bytes.pointer.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> std::ops::DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and exclusively borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.pointer.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> std::fmt::Debug for AlignedBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} elements)", self.len)
    }
}

struct RawBuffer {
    pointer: NonNull<u8>,
    capacity: usize,
}
// SAFETY: an owned block of bytes.
unsafe impl Send for RawBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for RawBuffer {}

impl RawBuffer {
    fn new(bytes: usize) -> Result<RawBuffer, OutOfMemory> {
        let capacity = bytes
            .max(ALIGNMENT)
            .checked_next_multiple_of(ALIGNMENT)
            .ok_or(OutOfMemory { bytes })?;
        let layout = Layout::from_size_align(capacity, ALIGNMENT).map_err(|_| OutOfMemory { bytes })?;
        // SAFETY: the size is not zero.
        let pointer = NonNull::new(unsafe { alloc(layout) }).ok_or(OutOfMemory { bytes })?;
        Ok(RawBuffer { pointer, capacity })
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, which was valid then.
        unsafe {
            dealloc(
                self.pointer.as_ptr(),
                Layout::from_size_align_unchecked(self.capacity, ALIGNMENT),
            )
        };
    }
}

thread_local! {
    static KEPT: RefCell<Vec<RawBuffer>> = const { RefCell::new(Vec::new()) };
}

fn byte_size<T>(len: usize) -> Result<usize, OutOfMemory> {
    len.checked_mul(size_of::<T>())
        .ok_or(OutOfMemory { bytes: usize::MAX })
}

/// Calls `f` with `len` elements of arbitrary content. Calls may nest.
pub fn with<T: Plain, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> Result<R, OutOfMemory> {
    let bytes = byte_size::<T>(len)?;
    if bytes == 0 {
        return Ok(f(&mut []));
    }
    let kept = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let fitting = (0..kept.len()).filter(|&i| kept[i].capacity >= bytes);
        let best = fitting.min_by_key(|&i| kept[i].capacity)?;
        Some(kept.swap_remove(best))
    });
    let kept = kept.ok().flatten();
    let buffer = match kept {
        Some(buffer) => buffer,
        None => {
            let buffer = RawBuffer::new(bytes)?;
            // Rust has no uninitialised numbers: written once, when the block is new.
            // SAFETY: the block has this capacity.
            unsafe { buffer.pointer.as_ptr().write_bytes(0, buffer.capacity) };
            buffer
        }
    };
    // SAFETY: the block is large enough, aligned, initialised, and owned by this call.
    let result = f(unsafe { std::slice::from_raw_parts_mut(buffer.pointer.as_ptr().cast(), len) });
    if buffer.capacity <= KEEP_BYTES {
        // At the thread's end the store may be gone already: then the buffer is freed.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() == KEEP_COUNT {
                let smallest = (0..kept.len()).min_by_key(|&i| kept[i].capacity).unwrap_or(0);
                kept.swap_remove(smallest);
            }
            kept.push(buffer);
        });
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_and_nested() {
        let first = with(100, |x: &mut [f32]| x.as_ptr() as usize).unwrap();
        let second = with(50, |x: &mut [f64]| x.as_ptr() as usize).unwrap();
        assert_eq!(first, second);
        with(10, |x: &mut [f32]| {
            x.fill(1.0);
            with(10, |y: &mut [f32]| y.fill(2.0)).unwrap();
            assert_eq!(x, [1.0; 10]);
            assert_eq!(x.as_ptr() as usize % 64, 0);
        })
        .unwrap();
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(with(usize::MAX / 2, |_: &mut [f64]| ()).is_err());
        assert!(with(1 << 60, |_: &mut [u8]| ()).is_err());
        assert!(AlignedBuffer::<f64>::zeroed(1 << 59).is_err());
    }
}
