//! `TF_Status`: the outcome of a call.

use ff_tensor::{Code, Status};
use std::ffi::{CStr, CString, c_char};

/// The outcome of a call: a code and a message. Owned by the caller, used by one thread at a time.
#[derive(Default)]
pub struct TF_Status {
    error: Option<Status>,
    message: CString,
}

impl TF_Status {
    /// Makes the status that error, or OK.
    pub fn set(&mut self, error: Option<Status>) {
        let bytes: Vec<u8> = error
            .iter()
            .flat_map(|error| error.message().bytes())
            .filter(|&b| b != 0)
            .collect();
        self.message = CString::new(bytes).unwrap_or_default();
        self.error = error.filter(|error| error.code() != Code::Ok);
    }
}

/// A new status, OK. Free it with `TF_DeleteStatus`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewStatus() -> Box<TF_Status> {
    Box::default()
}

/// Frees a status; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteStatus(_status: Option<Box<TF_Status>>) {}

/// The code of a status; OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetCode(status: Option<&TF_Status>) -> i32 {
    status
        .and_then(|status| status.error.as_ref())
        .map_or(0, |error| error.code() as i32)
}

/// The message of a status, valid until it changes or is deleted; empty for OK and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Message(status: Option<&TF_Status>) -> *const c_char {
    status.map_or(c"".as_ptr(), |status| status.message.as_ptr())
}

/// Sets code and message of a status. A NULL status is ignored, a NULL message is empty.
///
/// # Safety
/// `message` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TF_SetStatus(status: Option<&mut TF_Status>, code: i32, message: *const c_char) {
    let Some(status) = status else { return };
    let text = if message.is_null() {
        String::new()
    } else {
        // SAFETY: the caller passes a C string.
        unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
    };
    status.set((code != 0).then(|| Status::new(Code::from_number(code), text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_keeps_code_and_message() {
        let mut status = TF_NewStatus();
        assert_eq!(TF_GetCode(Some(&status)), 0);
        // SAFETY: a C string.
        unsafe { TF_SetStatus(Some(&mut status), 5, c"lost".as_ptr()) };
        assert_eq!(TF_GetCode(Some(&status)), 5);
        // SAFETY: the message of a live status.
        assert_eq!(unsafe { CStr::from_ptr(TF_Message(Some(&status))) }, c"lost");
        TF_DeleteStatus(Some(status));
        TF_DeleteStatus(None);
    }
}
