//! Cancels steps when their time is up. One thread serves all; it starts with the first watch and sleeps in between.

use ff_op::Cancellation;
use ff_tensor::Status;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Watchdog {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    next: u64,
    steps: BTreeMap<(Instant, u64), (Cancellation, Status)>,
}

/// Ends the watch when dropped.
pub struct Watch((Instant, u64));

/// Cancels with `cause` after `timeout`, unless the watch is dropped before.
pub fn watch(cancellation: &Cancellation, timeout: Duration, cause: Status) -> Watch {
    let watchdog = watchdog();
    let mut due = watchdog.due.lock();
    let at = Instant::now()
        .checked_add(timeout)
        .unwrap_or_else(|| Instant::now() + Duration::from_secs(1 << 30));
    let key = (at, due.next);
    due.next += 1;
    due.steps.insert(key, (cancellation.clone(), cause));
    watchdog.changed.notify_one();
    Watch(key)
}

impl Drop for Watch {
    fn drop(&mut self) {
        watchdog().due.lock().steps.remove(&self.0);
    }
}

fn watchdog() -> &'static Watchdog {
    static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
    static STARTED: OnceLock<()> = OnceLock::new();
    let watchdog = WATCHDOG.get_or_init(Watchdog::default);
    STARTED.get_or_init(|| {
        // Without the thread, steps run without their deadline; the next session tries nothing else.
        drop(
            std::thread::Builder::new()
                .name("ff-watchdog".into())
                .spawn(move || watchdog.serve()),
        );
    });
    watchdog
}

impl Watchdog {
    fn serve(&self) {
        let mut due = self.due.lock();
        loop {
            let now = Instant::now();
            match due.steps.first_key_value().map(|(&key, _)| key) {
                None => self.changed.wait(&mut due),
                Some((at, _)) if at > now => {
                    self.changed.wait_for(&mut due, at - now);
                }
                Some(key) => {
                    let overdue = due.steps.remove(&key);
                    parking_lot::MutexGuard::unlocked(&mut due, || {
                        if let Some((cancellation, cause)) = overdue {
                            cancellation.cancel(cause);
                        }
                    });
                }
            }
        }
    }
}
