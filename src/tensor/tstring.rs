//! The string element of the C ABI (`TF_TString`): 24 bytes, in one of four forms told by the low two bits.
//!
//! - small: one byte of `length << 2`, up to 22 bytes in place, a NUL;
//! - large: `length << 2 | 1`, capacity, a pointer to memory from `malloc` that the string owns;
//! - offset: `length << 2 | 2` in 32 bits, a 32-bit distance from the string itself to bytes that someone else owns;
//! - view: `length << 2 | 3`, a pointer to bytes that someone else owns.
//!
//! The inline functions of `tensorflow/c/tf_tstring.h` work on the same bytes. Little-endian machines only.

use crate::{Result, status};
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

impl TString {
    /// The bytes of all parts, one after the other. RESOURCE_EXHAUSTED when memory is out.
    pub fn concatenated(parts: &[&[u8]]) -> Result<TString> {
        let len = parts
            .iter()
            .fold(0usize, |len, part| len.saturating_add(part.len()));
        // The length has two bits less than a word.
        let fits = len < usize::MAX >> 3;
        let (mut string, start) = fits
            .then(|| TString::of_len(len))
            .flatten()
            .ok_or_else(|| status!(ResourceExhausted, "OOM when allocating a string of {len} bytes"))?;
        let mut to = start.unwrap_or_else(|| string.small_start());
        for part in parts {
            // SAFETY: the string has room for `len` bytes, the sum of all parts.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        Ok(string)
    }

    /// A string of `len` bytes that are to be written, and where they begin if that is outside the string. None when
    /// memory is out.
    fn of_len(len: usize) -> Option<(TString, Option<*mut u8>)> {
        let mut string = TString::new();
        if len <= SMALL_CAPACITY {
            string.words[0] = (len as u64) << 2;
            return Some((string, None));
        }
        let capacity = (len + 1).next_multiple_of(16) - 1;
        // SAFETY: a fresh block of `capacity + 1` bytes has room for `len` bytes and a NUL; C code frees it by `free`.
        let data = unsafe {
            let data = libc::malloc(capacity + 1).cast::<u8>();
            if data.is_null() {
                return None;
            }
            *data.add(len) = 0;
            data
        };
        string.words = [(len as u64) << 2 | LARGE, capacity as u64, data as u64];
        Some((string, Some(data)))
    }

    /// Where the bytes of the small form are.
    fn small_start(&mut self) -> *mut u8 {
        // SAFETY: the bytes follow the length byte within the 24 of the string.
        unsafe { (&raw mut self.words).cast::<u8>().add(1) }
    }
}

impl From<&[u8]> for TString {
    fn from(bytes: &[u8]) -> TString {
        let Some((mut string, start)) = TString::of_len(bytes.len()) else {
            let layout = std::alloc::Layout::array::<u8>(bytes.len());
            std::alloc::handle_alloc_error(layout.unwrap_or(std::alloc::Layout::new::<u64>()));
        };
        let start = start.unwrap_or_else(|| string.small_start());
        // SAFETY: the string has room for as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
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
            let (first, rest) = bytes.split_at(len / 3);
            assert_eq!(TString::concatenated(&[first, b"", rest]).unwrap(), string);
        }
    }
}
