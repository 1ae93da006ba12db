//! Cancellation of a step: by the client, by a deadline, or because another part of the step failed.

use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use ff_tensor::{Result, Status};
use std::sync::Arc;

type Callback = Box<dyn FnOnce() + Send>;

/// A switch that goes from off to on once. Clones share it.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cause: Option<Status>,
    next: u64,
    callbacks: Vec<(u64, Callback)>,
}

impl Cancellation {
    /// Whether the step is cancelled; one atomic load.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// The cause as an error once cancelled.
    pub fn check(&self) -> Result<()> {
        if !self.is_cancelled() {
            return Ok(());
        }
        let cause = lock(&self.0.state).cause.clone();
        Err(cause.unwrap_or_else(|| ff_tensor::status!(Cancelled, "Step was cancelled")))
    }

    /// Cancels, for this cause; the first cause stays. Callbacks run on this thread.
    pub fn cancel(&self, cause: Status) {
        let callbacks = {
            let mut state = lock(&self.0.state);
            if state.cause.is_some() {
                return;
            }
            state.cause = Some(cause);
            self.0.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut state.callbacks)
        };
        for (_, callback) in callbacks {
            callback();
        }
    }

    /// Calls `callback` upon cancellation; at once if that has been. The number serves to [`Cancellation::forget`] it.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> u64 {
        let mut state = lock(&self.0.state);
        let number = state.next;
        state.next += 1;
        if state.cause.is_some() {
            drop(state);
            callback();
        } else {
            state.callbacks.push((number, Box::new(callback)));
        }
        number
    }

    /// Takes a callback back, if it has not run.
    pub fn forget(&self, number: u64) {
        let removed = {
            let mut state = lock(&self.0.state);
            let index = state.callbacks.iter().position(|(its, _)| *its == number);
            index.map(|index| state.callbacks.swap_remove(index))
        };
        drop(removed);
    }
}
