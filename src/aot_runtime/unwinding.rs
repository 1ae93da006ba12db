//! What the standard library asks of the unwinder, where nothing unwinds: the static runtime aborts on a fault of ours, so
//! it carries no unwind tables and needs no libgcc. There is no backtrace then.
//!
//! Contract: these names are local to the runtime's object; `cargo xtask dist` sees to it. Only for builds that abort.

use std::ffi::{c_int, c_void};

/// `_URC_END_OF_STACK`.
const END_OF_STACK: c_int = 5;

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_trace: *const c_void, _data: *mut c_void) -> c_int {
    END_OF_STACK
}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume(_exception: *mut c_void) -> ! {
    std::process::abort()
}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_SetGR(_context: *mut c_void, _register: c_int, _value: usize) {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_SetIP(_context: *mut c_void, _value: usize) {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_GetIPInfo(_context: *mut c_void, _before: *mut c_int) -> usize {
    0
}

/// Functions that tell of a frame: there is none.
macro_rules! nothing {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)] extern "C" fn $name(_context: *mut c_void) -> usize { 0 })*
    };
}

nothing! {
    _Unwind_GetDataRelBase _Unwind_GetIP _Unwind_GetLanguageSpecificData _Unwind_GetRegionStart _Unwind_GetTextRelBase
}
