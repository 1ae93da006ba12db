//! The thread that works behind the scenes. It starts with the first request and then lives as long as the process.
//!
//! It may be compiling when the process ends. In the products nothing that it uses goes away then. In programs that cargo
//! links the destructors of LLVM's statics run, before the handlers that were registered earlier than they were made; so
//! handlers that wait for the thread are registered after compiling. Only the end of a process within the first request
//! is not seen to there.
//!
//! A child process of `fork` has no such thread, and starts one of its own.

use crate::kernel::{Known, Shared};
use ff_platform::threads;
use parking_lot::Mutex;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// Where requests go, and the process that has the thread.
static QUEUE: Mutex<Option<(Sender<Job>, u32)>> = Mutex::new(None);
/// Held while a request is under way.
static WORKING: Mutex<()> = Mutex::new(());
static ENDING: AtomicBool = AtomicBool::new(false);
/// How long the end of the process waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests that may have LLVM make statics.
const FIRST: u32 = 8;

/// Asks for a program. Nobody waits for it; without a thread there will be none.
pub(crate) fn enqueue(cluster: &Arc<Shared>, known: &Arc<Known>) {
    let compiling = cluster.watch.begin();
    let (cluster, known) = (Arc::downgrade(cluster), known.clone());
    in_background(Box::new(move || {
        let _compiling = compiling;
        // A cluster may be gone when its turn comes.
        if let Some(cluster) = cluster.upgrade() {
            cluster.compile_without_functions(&known);
        }
    }));
}

/// Runs something after what was asked for before, on a thread of its own. Nobody learns when, or whether.
pub fn in_background(job: Box<dyn FnOnce() + Send>) {
    let process = std::process::id();
    let mut queue = QUEUE.lock();
    if let Some((_, started_by)) = &*queue
        && *started_by != process
    {
        // The parent's channel may have been in use by its thread.
        forget(queue.take());
    }
    if queue.is_none() {
        let (sender, receiver) = channel();
        if threads::spawn("ff_compiler", move || work(&receiver)).is_err() {
            return;
        }
        *queue = Some((sender, process));
    }
    if let Some((sender, _)) = &*queue {
        let _ = sender.send(job);
    }
}

fn work(jobs: &Receiver<Job>) {
    let waits = ff_codegen::is_destroyed_at_exit();
    let mut handlers = if waits { FIRST } else { 0 };
    for job in jobs {
        let working = waits.then(|| WORKING.lock());
        if ENDING.load(Ordering::Acquire) {
            return;
        }
        // A panic here is a fault of ours; what it was for goes on as it is.
        let _ = catch_unwind(AssertUnwindSafe(job));
        drop(working);
        if handlers > 0 {
            handlers -= 1;
            threads::at_exit(end);
        }
    }
}

/// Waits for the request under way; the thread ends with it.
extern "C" fn end() {
    ENDING.store(true, Ordering::Release);
    drop(WORKING.try_lock_for(PATIENCE));
}
