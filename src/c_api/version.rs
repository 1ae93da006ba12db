//! The release that the library is compatible with.

use std::ffi::c_char;

/// The TensorFlow release whose interface this library has, as `major.minor.patch`. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Version() -> *const c_char {
    c"2.21.0".as_ptr()
}
