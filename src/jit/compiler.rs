//! The thread that compiles behind the scenes. It starts with the first request and then lives as long as the process.

use crate::kernel::{Known, Shared};
use ff_platform::threads;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

/// A cluster that may be gone when its turn comes, and the shapes to compile it for.
type Job = (Weak<Shared>, Arc<Known>);

static QUEUE: Mutex<Option<Sender<Job>>> = Mutex::new(None);

/// Asks for a program. Nobody waits for it; without a thread there will be none.
pub(crate) fn enqueue(cluster: &Arc<Shared>, known: &Arc<Known>) {
    let mut queue = QUEUE.lock();
    if queue.is_none() {
        let (sender, receiver) = channel();
        if threads::spawn("ff_compiler", move || work(&receiver)).is_err() {
            return;
        }
        *queue = Some(sender);
    }
    if let Some(sender) = &*queue {
        let _ = sender.send((Arc::downgrade(cluster), known.clone()));
    }
}

fn work(jobs: &Receiver<Job>) {
    for (cluster, known) in jobs {
        if let Some(cluster) = cluster.upgrade() {
            // A panic here is a fault of ours; the cluster goes on op by op.
            let _ = catch_unwind(AssertUnwindSafe(|| cluster.compile_without_functions(&known)));
        }
    }
}
