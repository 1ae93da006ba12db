//! Where the ends of kernels that waited come in: written by any thread, read by the one that runs the step.

use crate::Value;
use ff_tensor::Result;
use std::collections::VecDeque;
use std::time::Duration;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use parking_lot::{Condvar, Mutex, MutexGuard};

/// What a kernel gave.
pub type Ended = Result<Vec<Value>>;

/// Ends of kernels with what tells them apart.
pub struct Mailbox<K> {
    ended: Mutex<VecDeque<(K, Ended)>>,
    arrived: Condvar,
}

impl<K> Default for Mailbox<K> {
    fn default() -> Mailbox<K> {
        Mailbox {
            ended: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
        }
    }
}

#[cfg(not(loom))]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
#[cfg(loom)]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

impl<K> Mailbox<K> {
    /// Brings the end of a kernel.
    pub fn put(&self, key: K, ended: Ended) {
        lock(&self.ended).push_back((key, ended));
        self.arrived.notify_all();
    }

    /// Takes one end, if one is there.
    pub fn take_one(&self) -> Option<(K, Ended)> {
        lock(&self.ended).pop_front()
    }

    /// Takes all ends that are there.
    pub fn take(&self) -> VecDeque<(K, Ended)> {
        std::mem::take(&mut *lock(&self.ended))
    }

    /// Waits until an end is there or somebody calls [`Mailbox::wake`]; returns early after a tenth of a second, because a
    /// call to wake may come before the wait.
    #[cfg(not(loom))]
    pub fn wait(&self) {
        let mut ended = lock(&self.ended);
        if ended.is_empty() {
            self.arrived.wait_for(&mut ended, Duration::from_millis(100));
        }
    }

    /// As above; under loom time does not pass.
    #[cfg(loom)]
    pub fn wait(&self) {
        let _ = Duration::ZERO;
        let ended = lock(&self.ended);
        if ended.is_empty() {
            drop(self.arrived.wait(ended));
        }
    }

    /// Wakes who waits, with nothing.
    pub fn wake(&self) {
        // Under the lock, so that it does not fall between the look and the wait.
        let ended = lock(&self.ended);
        self.arrived.notify_all();
        drop(ended);
    }
}
