//! The border between C and Rust.
//!
//! Every exported function runs its body in one of these: a panic ends here and not in the caller.

use crate::TF_Status;
use ff_tensor::{Result, status};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` and puts its outcome in `status`, which may be missing. A panic becomes INTERNAL.
///
/// Returns the value, or the type's default when there is none.
pub fn guard<T: Default>(status: Option<&mut TF_Status>, body: impl FnOnce() -> Result<T>) -> T {
    guard_or(status, T::default(), body)
}

/// As [`guard`], with the value to return when there is none.
pub fn guard_or<T>(status: Option<&mut TF_Status>, otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let message = panic_message(panic.as_ref()).to_string();
        // What was thrown is dropped outside any guard of its own, so it is let go instead.
        std::mem::forget(panic);
        Err(status!(Internal, "the library panicked: {message}"))
    });
    let (value, error) = match outcome {
        Ok(value) => (value, None),
        Err(error) => (otherwise, Some(error)),
    };
    if let Some(status) = status {
        status.set(error);
    }
    value
}

/// Runs the body of a function that has no status: an error or a panic gives `otherwise`.
pub fn quiet<T>(otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    guard_or(None, otherwise, body)
}

/// What a panic says.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TSL_GetCode;

    #[test]
    fn panics_become_internal() {
        let mut status = TF_Status::default();
        let value: i32 = guard(Some(&mut status), || panic!("step {}", 3));
        assert_eq!(value, 0);
        assert_eq!(TSL_GetCode(Some(&status)).0, 13);
        assert_eq!(quiet(7, || panic!("again")), 7);
    }
}
