//! `TF_Status`: the names that TensorFlow's own functions have for `TSL_Status`.

use crate::ffi::{Enum, Text};
use crate::tsl_status::*;
use std::ffi::{c_char, c_int, c_void};

/// The outcome of a call.
pub type TF_Status = TSL_Status;

/// What a status says.
pub type TF_Code = TSL_Code;

/// A new status, OK. Free it with `TF_DeleteStatus`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewStatus() -> Box<TF_Status> {
    TSL_NewStatus()
}

/// Frees a status; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteStatus(_s: Option<Box<TF_Status>>) {}

/// Sets code and message and drops payloads. NULL for `msg` is an empty message, which is what OK always has.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetStatus(s: Option<&mut TF_Status>, code: Enum<TF_Code>, msg: Text) {
    TSL_SetStatus(s, code, msg)
}

/// Adds a payload, or replaces the one with this key. Has no effect on an OK status.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetPayload(s: Option<&mut TF_Status>, key: Text, value: Text) {
    TSL_SetPayload(s, key, value)
}

/// Calls `visitor` once for each payload; `capture` is passed on to it. The strings live during the call only.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ForEachPayload(
    s: Option<&TF_Status>,
    visitor: TSL_PayloadVisitor,
    capture: *mut c_void,
) {
    TSL_ForEachPayload(s, visitor, capture)
}

/// Sets the status that fits a value of `errno`: its code, and as message `context`, a semicolon and what the system
/// calls the error. 0 gives OK.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetStatusFromIOError(s: Option<&mut TF_Status>, error_code: c_int, context: Text) {
    TSL_SetStatusFromIOError(s, error_code, context)
}

/// The code; OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetCode(s: Option<&TF_Status>) -> Enum<TF_Code> {
    TSL_GetCode(s)
}

/// The message, valid until the status changes or is deleted; empty for OK and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Message(s: Option<&TF_Status>) -> *const c_char {
    TSL_Message(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message(status: &TF_Status) -> &CStr {
        // SAFETY: the message of a live status.
        unsafe { CStr::from_ptr(TF_Message(Some(status))) }
    }

    #[test]
    fn status_keeps_code_and_message() {
        let mut status = TF_NewStatus();
        assert_eq!(TF_GetCode(Some(&status)).0, 0);
        TF_SetStatus(Some(&mut status), Enum::new(5), Text::new(c"lost"));
        assert_eq!(TF_GetCode(Some(&status)).0, 5);
        assert_eq!(message(&status), c"lost");
        TF_SetStatus(Some(&mut status), Enum::new(-4), Text::new(c"odd"));
        assert_eq!(TF_GetCode(Some(&status)).0, 2);
        TF_DeleteStatus(Some(status));
        TF_DeleteStatus(None);
    }

    #[test]
    fn errno_and_payloads() {
        unsafe extern "C" fn count(key: *const c_char, value: *const c_char, capture: *mut c_void) {
            // SAFETY: the test passes a counter; the library passes C strings.
            unsafe {
                assert_eq!(CStr::from_ptr(key), c"key");
                *capture.cast::<usize>() += CStr::from_ptr(value).to_bytes().len();
            }
        }
        let mut status = TF_NewStatus();
        let mut total = 0usize;
        TF_SetStatusFromIOError(Some(&mut status), libc::ENOENT, Text::new(c"f"));
        TF_SetPayload(Some(&mut status), Text::new(c"key"), Text::new(c"one"));
        TF_SetPayload(Some(&mut status), Text::new(c"key"), Text::new(c"three"));
        TF_ForEachPayload(Some(&status), Some(count), (&raw mut total).cast());
        assert_eq!(message(&status), c"f; No such file or directory");
        assert_eq!(total, 5);
    }
}
