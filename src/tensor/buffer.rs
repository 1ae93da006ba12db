//! Memory of tensors: reference-counted, 64-byte aligned when ours, with its deallocator when foreign.

use crate::allocator::{acquire, release};
use crate::{ResourceHandle, Result, TString, VariantValue, status};
use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use triomphe::Arc;

/// How foreign memory is given back: `function(data, len, arg)`, exactly once, possibly on another thread.
pub struct Deallocator {
    /// The function to call; none when the memory needs no call.
    pub function: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void)>,
    /// Passed through to it.
    pub arg: *mut c_void,
}

/// A block of memory and its owners. There are no weak ones, so that `is_unique` is all that writing needs.
pub type SharedBuffer = Arc<Buffer>;

/// A block of memory. Shared as [`SharedBuffer`]; it can be written only while there is one owner.
pub struct Buffer {
    data: NonNull<u8>,
    len: usize,
    owner: Owner,
}

enum Owner {
    Allocator { capacity: usize, elements: Elements },
    Foreign(Deallocator),
    Shared { _keeps: Box<dyn Any + Send + Sync> },
}

/// What lies in a block of ours and must be dropped with it.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    Plain,
    Strings,
    Resources,
    Variants,
}

// SAFETY: the block is read by many only while nobody can write (writing needs `&mut Buffer`); a foreign
// deallocator is documented to be called from any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A block of `len` initialised bytes of unspecified value. RESOURCE_EXHAUSTED when memory is out.
    pub fn allocate(len: usize) -> Result<SharedBuffer> {
        let (data, capacity) =
            acquire(len).ok_or_else(|| status!(ResourceExhausted, "OOM when allocating {len} bytes"))?;
        Ok(Arc::new(Buffer {
            data,
            len,
            owner: Owner::Allocator {
                capacity,
                elements: Elements::Plain,
            },
        }))
    }

    fn of_elements<T>(values: Vec<T>, elements: Elements) -> Result<SharedBuffer> {
        let len = std::mem::size_of::<T>() * values.len();
        let (data, capacity) =
            acquire(len).ok_or_else(|| status!(ResourceExhausted, "OOM when allocating {len} bytes"))?;
        let start = data.as_ptr().cast::<T>();
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: the block has room for all values and is aligned to 64 bytes.
            unsafe { start.add(i).write(value) };
        }
        Ok(Arc::new(Buffer {
            data,
            len,
            owner: Owner::Allocator { capacity, elements },
        }))
    }

    /// A block that owns these strings.
    pub fn of_strings(strings: Vec<TString>) -> Result<SharedBuffer> {
        Buffer::of_elements(strings, Elements::Strings)
    }

    /// A block that owns these handles.
    pub fn of_resources(handles: Vec<ResourceHandle>) -> Result<SharedBuffer> {
        Buffer::of_elements(handles, Elements::Resources)
    }

    /// A block that owns these variants.
    pub fn of_variants(values: Vec<VariantValue>) -> Result<SharedBuffer> {
        Buffer::of_elements(values, Elements::Variants)
    }

    /// Foreign memory, given back by its deallocator.
    ///
    /// # Safety
    /// `data` is valid for reads of `len` bytes (null is allowed when `len` is 0) until the deallocator is called.
    pub unsafe fn foreign(data: *mut c_void, len: usize, deallocator: Deallocator) -> SharedBuffer {
        let data = NonNull::new(data.cast()).unwrap_or(NonNull::dangling());
        Arc::new(Buffer {
            data,
            len,
            owner: Owner::Foreign(deallocator),
        })
    }

    /// Read-only memory that `keeps` keeps alive: file mappings, message bytes.
    ///
    /// # Safety
    /// `data` stays valid for reads and unchanged while `keeps` lives.
    pub unsafe fn shared(data: *const u8, len: usize, keeps: Box<dyn Any + Send + Sync>) -> SharedBuffer {
        let data = NonNull::new(data.cast_mut()).unwrap_or(NonNull::dangling());
        Arc::new(Buffer {
            data,
            len,
            owner: Owner::Shared { _keeps: keeps },
        })
    }

    /// Start of the memory.
    pub fn start(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Bytes in the memory.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the memory came from our allocator and holds plain bytes, so that its one owner may write to it.
    pub fn is_writable(&self) -> bool {
        matches!(
            self.owner,
            Owner::Allocator {
                elements: Elements::Plain,
                ..
            }
        )
    }

    /// Whether the memory came from our allocator.
    pub fn is_ours(&self) -> bool {
        matches!(self.owner, Owner::Allocator { .. })
    }

    /// The bytes of the whole block, if it came from our allocator and holds plain bytes.
    pub fn plain_capacity(&self) -> Option<usize> {
        match self.owner {
            Owner::Allocator {
                capacity,
                elements: Elements::Plain,
            } => Some(capacity),
            _ => None,
        }
    }

    /// Uses `len` bytes of a block that has as many, of plain bytes from our allocator; where they start.
    pub(crate) fn with_len(&mut self, len: usize) -> *mut u8 {
        self.len = len.min(self.plain_capacity().unwrap_or(self.len));
        self.start()
    }

    /// Drops every element that is not plain bytes.
    fn drop_elements(&mut self, elements: Elements) {
        let start = self.data.as_ptr();
        // SAFETY: the block was filled with `len / size` values of the kind that `elements` names.
        unsafe {
            match elements {
                Elements::Plain => {}
                Elements::Strings => drop_all::<TString>(start, self.len),
                Elements::Resources => drop_all::<ResourceHandle>(start, self.len),
                Elements::Variants => drop_all::<VariantValue>(start, self.len),
            }
        }
    }
}

/// # Safety
/// `start` holds `len / size_of::<T>()` values that nobody else owns.
unsafe fn drop_all<T>(start: *mut u8, len: usize) {
    let count = len / std::mem::size_of::<T>();
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::slice_from_raw_parts_mut(start.cast::<T>(), count).drop_in_place() }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Allocator { capacity, elements } => {
                let (capacity, elements) = (*capacity, *elements);
                self.drop_elements(elements);
                release(self.data, capacity);
            }
            Owner::Foreign(Deallocator {
                function: Some(function),
                arg,
            }) => {
                let data = if self.data == NonNull::dangling() {
                    std::ptr::null_mut()
                } else {
                    self.data.as_ptr()
                };
                // SAFETY: the owner's own deallocator, called once with what it was given.
                unsafe { function(data.cast(), self.len, *arg) };
            }
            Owner::Foreign(_) | Owner::Shared { .. } => {}
        }
    }
}
