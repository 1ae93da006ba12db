//! The string element of the C ABI (`TF_TString`): 24 bytes, in one of four forms told by the low two bits.
//!
//! - small: one byte of `length << 2`, up to 22 bytes in place, a NUL;
//! - large: `length << 2 | 1`, capacity, a pointer to memory from `malloc` that the string owns;
//! - offset: `length << 2 | 2` in 32 bits, a 32-bit distance from the string itself to bytes that someone else owns;
//! - view: `length << 2 | 3`, a pointer to bytes that someone else owns.
//!
//! The inline functions of `tensorflow/c/tf_tstring.h` work on the same bytes. Little-endian machines only.

use std::fmt;

const SMALL: u64 = 0;
const LARGE: u64 = 1;
const OFFSET: u64 = 2;
const VIEW: u64 = 3;
/// The longest string that is stored in place.
const SMALL_CAPACITY: usize = 22;

/// A byte string with the memory layout of `TF_TString`. All zero bytes are an empty string.
#[repr(C)]
pub struct TString {
    words: [u64; 3],
}

// SAFETY: a string owns its bytes or views bytes that stay unchanged while it lives.
unsafe impl Send for TString {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for TString {}

impl TString {
    /// An empty string.
    pub const fn new() -> TString {
        TString { words: [0; 3] }
    }

    /// A string that views bytes for which the caller vouches.
    ///
    /// # Safety
    /// The bytes must outlive the string and every bitwise copy of it.
    pub unsafe fn view(bytes: &[u8]) -> TString {
        TString {
            words: [(bytes.len() as u64) << 2 | VIEW, bytes.as_ptr() as u64, 0],
        }
    }

    fn form(&self) -> u64 {
        self.words[0] & 3
    }

    /// The form as C numbers it: 0 small, 1 large, 2 offset, 3 view.
    pub fn form_number(&self) -> i32 {
        self.form() as i32
    }

    /// Where the bytes are, and how many.
    fn location(&self) -> (*const u8, usize) {
        let start = (self as *const TString).cast::<u8>();
        match self.form() {
            // SAFETY: the small form keeps its bytes after its first byte, within the 24.
            SMALL => (unsafe { start.add(1) }, (self.words[0] & 0xff) as usize >> 2),
            LARGE => (self.words[2] as *const u8, (self.words[0] >> 2) as usize),
            OFFSET => {
                let distance = (self.words[0] >> 32) as usize;
                // SAFETY: who made the offset form put the bytes at that distance.
                (
                    unsafe { start.add(distance) },
                    (self.words[0] & 0xffff_ffff) as usize >> 2,
                )
            }
            _ => (self.words[1] as *const u8, (self.words[0] >> 2) as usize),
        }
    }

    /// Where the bytes are; those of the small and large forms end with a zero byte.
    pub fn data_ptr(&self) -> *const u8 {
        self.location().0
    }

    /// The number of bytes that fit without new memory; 0 for forms that do not own their bytes.
    pub fn capacity(&self) -> usize {
        match self.form() {
            SMALL => SMALL_CAPACITY,
            LARGE => self.words[1] as usize,
            _ => 0,
        }
    }

    /// The bytes of the string.
    pub fn as_bytes(&self) -> &[u8] {
        let (data, len) = self.location();
        if data.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: each form holds `len` initialised bytes at `data`.
        unsafe { std::slice::from_raw_parts(data, len) }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as text, with replacement characters where they are not UTF-8.
    pub fn to_str_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl From<&[u8]> for TString {
    fn from(bytes: &[u8]) -> TString {
        let mut string = TString::new();
        if bytes.len() <= SMALL_CAPACITY {
            let start = (&raw mut string.words).cast::<u8>();
            // SAFETY: one length byte and up to 22 bytes fit the 24 of the string.
            unsafe {
                *start = (bytes.len() << 2) as u8;
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(1), bytes.len());
            }
            return string;
        }
        let capacity = (bytes.len() + 1).next_multiple_of(16) - 1;
        // SAFETY: a fresh block of `capacity + 1` bytes receives `len` bytes and a NUL; C code frees it by `free`.
        unsafe {
            let data = libc::malloc(capacity + 1).cast::<u8>();
            if data.is_null() {
                std::alloc::handle_alloc_error(
                    std::alloc::Layout::array::<u8>(capacity + 1).unwrap_or(std::alloc::Layout::new::<u64>()),
                );
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
            *data.add(bytes.len()) = 0;
            string.words = [(bytes.len() as u64) << 2 | LARGE, capacity as u64, data as u64];
        }
        string
    }
}

impl From<&str> for TString {
    fn from(text: &str) -> TString {
        TString::from(text.as_bytes())
    }
}

impl From<String> for TString {
    fn from(text: String) -> TString {
        TString::from(text.as_bytes())
    }
}

/// A deep copy: views become strings of their own.
impl Clone for TString {
    fn clone(&self) -> TString {
        TString::from(self.as_bytes())
    }
}

impl Default for TString {
    fn default() -> TString {
        TString::new()
    }
}

impl Drop for TString {
    fn drop(&mut self) {
        if self.form() == LARGE {
            // SAFETY: the large form owns its block, which came from `malloc`.
            unsafe { libc::free(self.words[2] as *mut libc::c_void) };
        }
    }
}

impl PartialEq for TString {
    fn eq(&self, other: &TString) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for TString {}

impl fmt::Debug for TString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str_lossy(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_by_length() {
        assert_eq!(std::mem::size_of::<TString>(), 24);
        for len in [0, 1, 22, 23, 100] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let string = TString::from(&bytes[..]);
            assert_eq!(string.form(), if len <= 22 { SMALL } else { LARGE });
            assert_eq!(string.as_bytes(), &bytes[..]);
            assert_eq!(string.clone(), string);
            // SAFETY: `bytes` outlives the view.
            let view = unsafe { TString::view(&bytes) };
            assert_eq!(view, string);
        }
    }
}
