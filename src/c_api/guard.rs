//! The border between C and Rust.

use crate::TF_Status;
use ff_tensor::{Result, status};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` and puts its outcome in `status`, which may be missing. A panic becomes INTERNAL.
///
/// Returns the value, or the type's default when there is none.
pub fn guard<T: Default>(status: Option<&mut TF_Status>, body: impl FnOnce() -> Result<T>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(status!(Internal, "the library panicked: {message}"))
    });
    let (value, error) = match outcome {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(error)),
    };
    if let Some(status) = status {
        status.set(error);
    }
    value
}
