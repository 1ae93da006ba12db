//! Closures that run after a time, all on one thread that is started when first needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Longer times, which a clock may not have, are this one.
const FAR: Duration = Duration::from_secs(1 << 30);

type Job = Box<dyn FnOnce() + Send>;

/// A job and when it is due; jobs due at once run in the order of their numbers.
struct Due(Instant, u64, Job);

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Runs a closure, which must be short, when a time has passed.
pub fn after(time: Duration, job: impl FnOnce() + Send + 'static) {
    static QUEUE: OnceLock<Mutex<Sender<(Instant, Job)>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel();
        let _ = std::thread::Builder::new()
            .name("timer".into())
            .spawn(move || serve(&receiver));
        Mutex::new(sender)
    });
    let now = Instant::now();
    let due = now.checked_add(time).unwrap_or(now + FAR);
    let sender = queue.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a thread there is nobody to wait: the job runs at once.
    if let Err(back) = sender.send((due, Box::new(job))) {
        drop(sender);
        (back.0.1)();
    }
}

fn serve(receiver: &Receiver<(Instant, Job)>) {
    let mut waiting: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    for number in 0.. {
        let next = waiting.peek().map(|Reverse(due)| due.0);
        let wait = next.map_or(Duration::from_secs(3600), |at| {
            at.saturating_duration_since(Instant::now())
        });
        match receiver.recv_timeout(wait) {
            Ok((at, job)) => waiting.push(Reverse(Due(at, number, job))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while waiting.peek().is_some_and(|Reverse(due)| due.0 <= Instant::now()) {
            if let Some(Reverse(Due(_, _, job))) = waiting.pop() {
                // A job that panics must not end the thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            }
        }
    }
}
