//! `TF_TString` through functions; the inline functions of `tsl/platform/ctstring.h` do the same without calls.
//!
//! A string must be initialised by `TF_StringInit` before any other use, and lie at an address that is a multiple
//! of 8. Memory of long strings comes from `malloc`.

use crate::ffi::{Array, Enum, given, given_mut};
use crate::guard::quiet;
use ff_tensor::TString;
use std::ffi::c_char;

/// The four forms of a string.
#[repr(C)]
pub enum TF_TString_Type {
    /// Up to 22 bytes, in the string itself.
    TF_TSTR_SMALL = 0x00,
    /// Memory from `malloc` that the string owns.
    TF_TSTR_LARGE = 0x01,
    /// Bytes at a distance from the string, owned by someone else.
    TF_TSTR_OFFSET = 0x02,
    /// Bytes elsewhere, owned by someone else.
    TF_TSTR_VIEW = 0x03,
}

/// The string element of a tensor of `TF_STRING`.
pub type TF_TString = TString;

/// Makes the memory at `t` an empty string, whatever it held.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringInit(t: *mut TF_TString) {
    if !t.is_null() {
        // SAFETY: C vouches for the memory; what was there is not dropped, since it may be anything.
        unsafe { t.write(TString::new()) };
    }
}

/// Makes `dst` a copy of `size` bytes, freeing what it owned.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringCopy(dst: Option<&mut TF_TString>, src: Array<c_char>, size: usize) {
    quiet((), || {
        *given_mut(dst, "dst")? = TString::from(src.bytes(size, "src")?);
        Ok(())
    });
}

/// Makes `dst` a view of `size` bytes, which must outlive it, freeing what it owned.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringAssignView(dst: Option<&mut TF_TString>, src: Array<c_char>, size: usize) {
    quiet((), || {
        // SAFETY: C vouches that the bytes outlive the string.
        let view = unsafe { TString::view(src.bytes(size, "src")?) };
        *given_mut(dst, "dst")? = view;
        Ok(())
    });
}

/// The bytes of a string, which belong to it; NULL for NULL. Those of the small and large forms end with a zero byte.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringGetDataPointer(tstr: Option<&TF_TString>) -> *const c_char {
    quiet(std::ptr::null(), || Ok(given(tstr, "tstr")?.data_ptr().cast()))
}

/// The form of a string; small for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringGetType(str: Option<&TF_TString>) -> Enum<TF_TString_Type> {
    Enum::new(str.map_or(0, TString::form_number))
}

/// The number of bytes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringGetSize(tstr: Option<&TF_TString>) -> usize {
    tstr.map_or(0, TString::len)
}

/// The number of bytes that fit without new memory; 0 for views and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringGetCapacity(str: Option<&TF_TString>) -> usize {
    str.map_or(0, TString::capacity)
}

/// Frees what a string owns and makes it empty; other forms stay as they are, except that a large string may be
/// used again after it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringDealloc(tstr: Option<&mut TF_TString>) {
    if let Some(string) = tstr
        && string.form_number() == 1
    {
        *string = TString::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_sizes() {
        let text: Vec<c_char> = (0..100).collect();
        let mut string = std::mem::MaybeUninit::<TString>::uninit();
        TF_StringInit(string.as_mut_ptr());
        // SAFETY: it is initialised now.
        let string = unsafe { string.assume_init_mut() };
        let text = Array::new(&text);
        for (size, form, capacity) in [(0, 0, 22), (22, 0, 22), (23, 1, 31), (64, 1, 79)] {
            TF_StringCopy(Some(string), text, size);
            assert_eq!(TF_StringGetType(Some(string)).0, form);
            assert_eq!(TF_StringGetSize(Some(string)), size);
            assert_eq!(TF_StringGetCapacity(Some(string)), capacity);
        }
        TF_StringDealloc(Some(string));
        TF_StringDealloc(Some(string));
        assert_eq!(TF_StringGetSize(Some(string)), 0);
        TF_StringAssignView(Some(string), text, 30);
        assert_eq!(TF_StringGetType(Some(string)).0, 3);
        assert_eq!(TF_StringGetCapacity(Some(string)), 0);
    }
}
