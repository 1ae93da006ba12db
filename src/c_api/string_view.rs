//! `TF_StringView`: text that belongs to someone else.

use std::ffi::c_char;

/// A view of text that lives elsewhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_StringView {
    /// First character; not ended by a zero byte.
    pub data: *const c_char,
    /// Number of characters.
    pub len: usize,
}

impl TF_StringView {
    /// A view of this text.
    pub fn of(text: &str) -> TF_StringView {
        TF_StringView {
            data: text.as_ptr().cast(),
            len: text.len(),
        }
    }

    /// Nothing.
    pub const EMPTY: TF_StringView = TF_StringView {
        data: c"".as_ptr(),
        len: 0,
    };
}
