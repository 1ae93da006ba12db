//! Status codes and error values.
//!
//! The codes are those of the C API (`TF_Code`). A [`Status`] is always an error: success is `Ok`.

use std::collections::BTreeMap;
use std::fmt;

/// What every fallible operation of the library returns.
pub type Result<T> = std::result::Result<T, Status>;

/// Error codes with the numbers of `TF_Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs)] // the names are the definition
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// The code with this number; numbers outside the list mean [`Code::Unknown`].
    pub fn from_number(number: i32) -> Code {
        use Code::*;
        const ALL: [Code; 17] = [
            Ok,
            Cancelled,
            Unknown,
            InvalidArgument,
            DeadlineExceeded,
            NotFound,
            AlreadyExists,
            PermissionDenied,
            ResourceExhausted,
            FailedPrecondition,
            Aborted,
            OutOfRange,
            Unimplemented,
            Internal,
            Unavailable,
            DataLoss,
            Unauthenticated,
        ];
        usize::try_from(number)
            .ok()
            .and_then(|i| ALL.get(i).copied())
            .unwrap_or(Unknown)
    }
}

/// An error: a code, a message for people, and payloads for programs. One word in size.
#[derive(Clone, PartialEq, Eq)]
pub struct Status(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: String,
    payloads: BTreeMap<String, Vec<u8>>,
}

impl Status {
    /// An error with this code and message.
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status(Box::new(Inner {
            code,
            message: message.into(),
            payloads: BTreeMap::new(),
        }))
    }

    /// The code; never [`Code::Ok`] unless a caller made it so.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same error with `text` put before its message.
    #[cold]
    pub fn prefixed(mut self, text: &str) -> Status {
        self.0.message.insert_str(0, text);
        self
    }

    /// The same error with `text` put after its message.
    #[cold]
    pub fn suffixed(mut self, text: &str) -> Status {
        self.0.message.push_str(text);
        self
    }

    /// Payloads by key.
    pub fn payloads(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.0.payloads
    }

    /// Sets or replaces a payload.
    pub fn set_payload(&mut self, key: impl Into<String>, value: Vec<u8>) {
        self.0.payloads.insert(key.into(), value);
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Status {}

/// `status!(NotFound, "no node {name}")` makes a [`Status`].
#[macro_export]
macro_rules! status {
    ($code:ident, $($message:tt)*) => { $crate::Status::new($crate::Code::$code, format!($($message)*)) };
}

/// `bail!(NotFound, "no node {name}")` returns that error from the function.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($message:tt)*) => { return Err($crate::status!($code, $($message)*)) };
}

/// `ensure!(rank == 2, InvalidArgument, "...")` returns the error unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $code:ident, $($message:tt)*) => {
        if !$condition { $crate::bail!($code, $($message)*) }
    };
}
