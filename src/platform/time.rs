//! Clocks.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, by the machine's calendar clock.
pub fn now_nanoseconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos() as i64)
}

/// Microseconds since 1970, by the machine's calendar clock.
pub fn now_microseconds() -> i64 {
    now_nanoseconds() / 1000
}

/// Nanoseconds by a clock that never goes back; its zero is the first call.
pub fn monotonic_nanoseconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}
