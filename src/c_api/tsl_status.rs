//! `TSL_Status`: the outcome of a call.

use crate::ffi::{Enum, Text};
use crate::guard::quiet;
use ff_tensor::{Code, Status};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The outcome of a call: a code, a message, and payloads by key. The caller owns it; one thread at a time may use it.
#[derive(Default)]
pub struct TSL_Status {
    error: Option<Status>,
    message: CString,
}

/// What a status says.
#[repr(C)]
pub enum TSL_Code {
    /// Not an error.
    TSL_OK = 0,
    /// The operation was cancelled, typically by the caller.
    TSL_CANCELLED = 1,
    /// An error without a better code.
    TSL_UNKNOWN = 2,
    /// An argument is wrong, whatever the state of the system.
    TSL_INVALID_ARGUMENT = 3,
    /// Time ran out before the operation ended.
    TSL_DEADLINE_EXCEEDED = 4,
    /// Something that was asked for does not exist.
    TSL_NOT_FOUND = 5,
    /// Something that was to be made exists.
    TSL_ALREADY_EXISTS = 6,
    /// The caller may not do this.
    TSL_PERMISSION_DENIED = 7,
    /// The caller did not say who it is.
    TSL_UNAUTHENTICATED = 16,
    /// Memory, space or a quota is used up.
    TSL_RESOURCE_EXHAUSTED = 8,
    /// The system is not in the state that the operation needs.
    TSL_FAILED_PRECONDITION = 9,
    /// The operation was given up, typically because of another one.
    TSL_ABORTED = 10,
    /// A value lies beyond the valid range; an iterator is at its end.
    TSL_OUT_OF_RANGE = 11,
    /// The operation is not implemented.
    TSL_UNIMPLEMENTED = 12,
    /// An invariant of the library does not hold.
    TSL_INTERNAL = 13,
    /// A service is not available now; trying again later may help.
    TSL_UNAVAILABLE = 14,
    /// Data was lost or is corrupt.
    TSL_DATA_LOSS = 15,
}

/// Called with each payload's key and value, and with what the caller gave to be passed on.
pub type TSL_PayloadVisitor =
    Option<unsafe extern "C" fn(key: *const c_char, value: *const c_char, capture: *mut c_void)>;

impl TSL_Status {
    /// Makes the status that error, or OK.
    pub fn set(&mut self, error: Option<Status>) {
        let error = error.filter(|error| error.code() != Code::Ok);
        if error.is_none() && self.error.is_none() {
            // By far the most frequent change; the message is empty already.
            return;
        }
        self.message = match &error {
            Some(error) => {
                let bytes: Vec<u8> = error.message().bytes().filter(|&b| b != 0).collect();
                CString::new(bytes).unwrap_or_default()
            }
            None => CString::default(),
        };
        self.error = error;
    }

    /// The error, if it is one.
    pub fn error(&self) -> Option<&Status> {
        self.error.as_ref()
    }
}

/// A new status, OK. Free it with `TSL_DeleteStatus`.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_NewStatus() -> Box<TSL_Status> {
    Box::default()
}

/// Frees a status; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_DeleteStatus(_status: Option<Box<TSL_Status>>) {}

/// Sets code and message and drops payloads. NULL for `msg` is an empty message, which is what OK always has.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_SetStatus(s: Option<&mut TSL_Status>, code: Enum<TSL_Code>, msg: Text) {
    quiet((), || {
        if let Some(status) = s {
            status.set((code.0 != 0).then(|| Status::new(Code::from_number(code.0), msg.or_empty())));
        }
        Ok(())
    });
}

/// Adds a payload, or replaces the one with this key. Has no effect on an OK status.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_SetPayload(s: Option<&mut TSL_Status>, key: Text, value: Text) {
    quiet((), || {
        if let Some(error) = s.and_then(|status| status.error.as_mut()) {
            error.set_payload(key.or_empty(), value.or_empty().as_bytes().to_vec());
        }
        Ok(())
    });
}

/// Calls `visitor` once for each payload; `capture` is passed on to it. The strings live during the call only.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_ForEachPayload(
    s: Option<&TSL_Status>,
    visitor: TSL_PayloadVisitor,
    capture: *mut c_void,
) {
    quiet((), || {
        let (Some(error), Some(visitor)) = (s.and_then(TSL_Status::error), visitor) else {
            return Ok(());
        };
        for (key, value) in error.payloads() {
            let key = crate::ffi::c_string(key);
            let value = CString::new(value.split(|&b| b == 0).next().unwrap_or_default()).unwrap_or_default();
            // SAFETY: C vouches that the visitor takes this.
            unsafe { visitor(key.as_ptr(), value.as_ptr(), capture) };
        }
        Ok(())
    });
}

/// Sets the status that fits a value of `errno`: its code, and as message `context`, a semicolon and what the system
/// calls the error. 0 gives OK.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_SetStatusFromIOError(s: Option<&mut TSL_Status>, error_code: c_int, context: Text) {
    quiet((), || {
        if let Some(status) = s {
            let context = context.or_empty();
            status.set((error_code != 0).then(|| {
                Status::new(
                    errno_code(error_code),
                    format!("{context}; {}", describe(error_code)),
                )
            }));
        }
        Ok(())
    });
}

/// The code; OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_GetCode(s: Option<&TSL_Status>) -> Enum<TSL_Code> {
    Enum::new(
        s.and_then(TSL_Status::error)
            .map_or(0, |error| error.code() as i32),
    )
}

/// The message, valid until the status changes or is deleted; empty for OK and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TSL_Message(s: Option<&TSL_Status>) -> *const c_char {
    s.map_or(c"".as_ptr(), |status| status.message.as_ptr())
}

/// What the system calls an error.
fn describe(errno: c_int) -> String {
    // SAFETY: the string is the system's, valid until the next call on this thread.
    let text = unsafe { libc::strerror(errno) };
    if text.is_null() {
        return format!("Unknown error {errno}");
    }
    // SAFETY: not null, and a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The code that a value of `errno` means.
fn errno_code(errno: c_int) -> Code {
    use libc::*;
    match errno {
        EPERM | EACCES | EROFS => Code::PermissionDenied,
        ENOENT | ESRCH | ENXIO | ENODEV => Code::NotFound,
        EINTR | EAGAIN | ENOLCK | ENOLINK | ENETDOWN | ENETUNREACH | ENETRESET | ECONNABORTED
        | ECONNRESET | ECONNREFUSED | EHOSTDOWN | EHOSTUNREACH => Code::Unavailable,
        E2BIG | EFAULT | EINVAL | ENOTTY | ESPIPE | EDOM | ENAMETOOLONG | EILSEQ | ENOTSOCK
        | EDESTADDRREQ | EPROTOTYPE | ENOPROTOOPT => Code::InvalidArgument,
        EBADF | ECHILD | ENOTBLK | EBUSY | ENOTDIR | EISDIR | ETXTBSY | EPIPE | ENOTEMPTY | EADDRINUSE
        | EISCONN | ENOTCONN | ESHUTDOWN => Code::FailedPrecondition,
        ENOMEM | ENFILE | EMFILE | ENOSPC | EMLINK | EUSERS | ENOBUFS | EDQUOT => Code::ResourceExhausted,
        EEXIST | EADDRNOTAVAIL | EALREADY => Code::AlreadyExists,
        EXDEV | ENOSYS | EPROTONOSUPPORT | ESOCKTNOSUPPORT | ENOTSUP | EPFNOSUPPORT | EAFNOSUPPORT => {
            Code::Unimplemented
        }
        EFBIG | ERANGE | EOVERFLOW => Code::OutOfRange,
        EDEADLK | ESTALE => Code::Aborted,
        ETIMEDOUT => Code::DeadlineExceeded,
        ECANCELED => Code::Cancelled,
        #[cfg(target_os = "linux")]
        ENONET => Code::Unavailable,
        #[cfg(target_os = "linux")]
        ENOSTR => Code::InvalidArgument,
        #[cfg(target_os = "linux")]
        ENODATA | ENOSR => Code::ResourceExhausted,
        #[cfg(target_os = "linux")]
        ETIME => Code::DeadlineExceeded,
        _ => Code::Unknown,
    }
}
