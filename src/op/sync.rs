//! Locks of what threads share: parking_lot's, or those of loom, which tries their interleavings (`make loom`).

#[cfg(loom)]
pub use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, Ordering};

/// Locks.
#[cfg(not(loom))]
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Locks.
#[cfg(loom)]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// Unlocks, waits to be notified, and locks again.
#[cfg(not(loom))]
pub fn wait<'a, T>(condition: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(&mut guard);
    guard
}

/// Unlocks, waits to be notified, and locks again.
#[cfg(loom)]
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(|error| error.into_inner())
}
