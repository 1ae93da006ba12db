//! Typed environment variables.
//!
//! Each function gives the default when the variable is not set or empty, and INVALID_ARGUMENT when it has no such value.

use ff_tensor::{Result, Status, status};

/// The text of a variable; none when it is not set or empty.
pub fn text(name: &str) -> Option<String> {
    std::env::var_os(name)
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|value| !value.is_empty())
}

fn parse<T: Copy + std::fmt::Display>(
    name: &str,
    default: T,
    kind: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let Some(value) = text(name) else {
        return Ok(default);
    };
    let error = || -> Status {
        status!(
            InvalidArgument,
            "Failed to parse the env-var ${{{name}}} into {kind}: {value}. Use the default value: {default}"
        )
    };
    parse(value.trim()).ok_or_else(error)
}

/// `0`, `1`, `true` or `false` in any case.
pub fn bool(name: &str, default: bool) -> Result<bool> {
    parse(name, default, "bool", |value| {
        match value.to_ascii_lowercase().as_str() {
            "0" | "false" => Some(false),
            "1" | "true" => Some(true),
            _ => None,
        }
    })
}

/// A whole number.
pub fn int64(name: &str, default: i64) -> Result<i64> {
    parse(name, default, "int64", |value| value.parse().ok())
}

/// A number.
pub fn float(name: &str, default: f32) -> Result<f32> {
    parse(name, default, "float", |value| value.parse().ok())
}

/// The name of the machine on its network; `localhost` when that is not known.
pub fn host_name() -> String {
    system_host_name()
        .or_else(|| text("HOSTNAME"))
        .or_else(|| text("COMPUTERNAME"))
        .unwrap_or_else(|| "localhost".to_string())
}

#[cfg(unix)]
fn system_host_name() -> Option<String> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is valid for its length, less one so that it ends with a NUL.
    let result = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let length = name.iter().position(|&byte| byte == 0)?;
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    (result == 0 && !name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn system_host_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_and_defaults() {
        assert!(super::bool("FERROFLOW_TEST_IS_NOT_SET", true).unwrap());
        // Cargo sets these for tests.
        assert!(super::text("CARGO_PKG_NAME").is_some());
        let error = super::int64("CARGO_PKG_NAME", 7).unwrap_err();
        assert_eq!(
            error.message(),
            "Failed to parse the env-var ${CARGO_PKG_NAME} into int64: ff-platform. Use the default value: 7"
        );
        assert!(super::bool("CARGO_PKG_NAME", false).is_err());
    }
}
