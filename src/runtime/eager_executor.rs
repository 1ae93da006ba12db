//! Executors: where eager calls run. A synchronous one runs them on the caller's thread; an asynchronous one on a thread
//! of its own, in order.
//!
//! The first error of an asynchronous executor ends what is queued, and is the error of all further calls until it is
//! cleared. Dropping an executor waits for what is queued. Any number of threads may use one.

use ff_tensor::{Result, Status, status};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::ThreadId;

/// One call. It is given OK to run, or the error that ends it before it runs.
pub type Job = Box<dyn FnOnce(Result<()>) -> Result<()> + Send>;

/// See the module.
pub struct Executor {
    queue: Option<Arc<Queue>>,
}

struct Queue {
    state: Mutex<State>,
    /// Something was queued, or the executor is closed.
    work: Condvar,
    /// A job is done.
    done: Condvar,
    /// Jobs that may be queued before adding one waits; 0 for any number.
    limit: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: bool,
    closed: bool,
    error: Option<Status>,
    thread: Option<ThreadId>,
}

impl Executor {
    /// An executor. With a positive `limit`, adding waits while so many calls are queued.
    pub fn new(is_async: bool, limit: i32) -> Arc<Executor> {
        let queue = || {
            Arc::new(Queue {
                state: Mutex::default(),
                work: Condvar::new(),
                done: Condvar::new(),
                limit: usize::try_from(limit).unwrap_or(0),
            })
        };
        Arc::new(Executor {
            queue: is_async.then(queue),
        })
    }

    /// Whether calls run on a thread of the executor's own.
    #[inline]
    pub fn is_async(&self) -> bool {
        self.queue.is_some()
    }

    /// Queues a call, or runs it if this executor is synchronous. The error that is pending; the call is ended with it.
    pub fn add(&self, job: Job) -> Result<()> {
        let Some(queue) = &self.queue else {
            return job(Ok(()));
        };
        let mut state = queue.state.lock();
        while queue.limit > 0 && state.jobs.len() >= queue.limit && state.error.is_none() {
            queue.done.wait(&mut state);
        }
        if let Some(error) = state.error.clone() {
            drop(state);
            // What it should have made is ended with this error; that is all there is to do.
            let _ = job(Err(error.clone()));
            return Err(error);
        }
        if state.thread.is_none() {
            state.thread = Some(start(queue.clone())?);
        }
        state.jobs.push_back(job);
        queue.work.notify_one();
        Ok(())
    }

    /// Waits until all calls have run. The error that is pending.
    pub fn wait(&self) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let mut state = queue.state.lock();
        loop {
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            if state.jobs.is_empty() && !state.running {
                return Ok(());
            }
            queue.done.wait(&mut state);
        }
    }

    /// Forgets a pending error, so that calls run again.
    pub fn clear_error(&self) {
        if let Some(queue) = &self.queue {
            queue.state.lock().error = None;
        }
    }

    /// Waits until nothing runs any more, whatever came of it; not for the call that asks for this.
    pub fn drain(&self) {
        let Some(queue) = &self.queue else { return };
        let mut state = queue.state.lock();
        let is_its_own = state.thread == Some(std::thread::current().id());
        while !is_its_own && (!state.jobs.is_empty() || state.running) {
            queue.done.wait(&mut state);
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.drain();
        if let Some(queue) = &self.queue {
            queue.state.lock().closed = true;
            queue.work.notify_one();
        }
    }
}

/// Starts the thread of a queue.
fn start(queue: Arc<Queue>) -> Result<ThreadId> {
    let thread = std::thread::Builder::new().name("eager".to_string());
    let started = thread.spawn(move || serve(&queue));
    let started =
        started.map_err(|error| status!(ResourceExhausted, "No thread for an eager executor: {error}"))?;
    Ok(started.thread().id())
}

/// Runs what is queued until the executor is gone.
fn serve(queue: &Queue) {
    let mut state = queue.state.lock();
    loop {
        let Some(job) = state.jobs.pop_front() else {
            if state.closed {
                return;
            }
            queue.work.wait(&mut state);
            continue;
        };
        state.running = true;
        drop(state);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(Ok(()))))
            .unwrap_or_else(|_| Err(status!(Internal, "an operation panicked on an eager executor")));
        state = queue.state.lock();
        state.running = false;
        if let Err(error) = result {
            let error = error.suffixed("\n\tEncountered when executing an operation using EagerExecutor. This error cancels all future operations and poisons their output tensors.");
            state.error = Some(error.clone());
            let ended = std::mem::take(&mut state.jobs);
            drop(state);
            for job in ended {
                // As above: ending is all.
                let _ = job(Err(error.clone()));
            }
            state = queue.state.lock();
        }
        queue.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn counting(count: &Arc<AtomicUsize>, result: Result<()>) -> Job {
        let count = count.clone();
        Box::new(move |go| {
            go?;
            count.fetch_add(1, Ordering::Relaxed);
            result
        })
    }

    #[test]
    fn an_error_ends_what_follows_until_it_is_cleared() {
        let (executor, count) = (Executor::new(true, 2), Arc::default());
        executor.add(counting(&count, Ok(()))).unwrap();
        executor.wait().unwrap();
        // What follows the failing one may be queued before that runs, or refused after it.
        executor
            .add(counting(&count, Err(status!(Aborted, "no"))))
            .unwrap();
        let _ = executor.add(counting(&count, Ok(())));
        assert!(
            executor
                .wait()
                .unwrap_err()
                .message()
                .starts_with("no\n\tEncountered")
        );
        executor.drain();
        assert!(executor.add(counting(&count, Ok(()))).is_err());
        executor.clear_error();
        executor.add(counting(&count, Ok(()))).unwrap();
        executor.wait().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn dropping_waits() {
        let count = Arc::default();
        for is_async in [false, true] {
            let executor = Executor::new(is_async, 0);
            for _ in 0..50 {
                executor.add(counting(&count, Ok(()))).unwrap();
            }
        }
        assert_eq!(count.load(Ordering::Relaxed), 100);
    }
}
