//! Letters for one reader: written by any thread, read by the one that runs a plan. A reader either waits on its thread,
//! or parks: then whoever brings the next letter sees to it that the reader goes on.
//!
//! A *relay* is the mailbox of the thread that drives a step: what a waiting kernel of a function's body gave is not
//! worked on by the thread that brought it, but handed to that one.

use crate::Value;
use crate::sync::{Condvar, Mutex, lock, wait};
use ff_tensor::Result;
use std::collections::VecDeque;

/// What a kernel gave.
pub type Ended = Result<Vec<Value>>;

/// What the thread that drives a step is asked to do.
pub type Work = Box<dyn FnOnce() + Send>;

/// Hands work to the thread that drives a step.
pub trait Relay: Send + Sync {
    /// Has the work done by that thread. Once the step has ended, the work is dropped.
    fn post(&self, work: Work);
}

/// See the module. All operations but those of the reader may be called from any thread.
pub struct Mailbox<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    letters: VecDeque<T>,
    parked: bool,
    woken: bool,
    closed: bool,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        let state = State {
            letters: VecDeque::new(),
            parked: false,
            woken: false,
            closed: false,
        };
        Mailbox {
            state: Mutex::new(state),
            arrived: Condvar::new(),
        }
    }
}

impl<T> Mailbox<T> {
    /// Brings a letter. Whether the reader had parked: it has not any more, and the caller must see to it that it reads.
    pub fn put(&self, letter: T) -> bool {
        let mut state = lock(&self.state);
        if state.closed {
            drop(state);
            drop(letter);
            return false;
        }
        state.letters.push_back(letter);
        let parked = std::mem::take(&mut state.parked);
        if !parked {
            self.arrived.notify_one();
        }
        parked
    }

    /// Takes one letter, if one is there.
    pub fn take_one(&self) -> Option<T> {
        lock(&self.state).letters.pop_front()
    }

    /// Takes all letters that are there.
    pub fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut lock(&self.state).letters)
    }

    /// Parks the reader, unless there is a letter. Whether it is parked.
    pub fn park(&self) -> bool {
        let mut state = lock(&self.state);
        state.parked = state.letters.is_empty();
        state.parked
    }

    /// Waits until a letter is there, or until somebody calls [`Mailbox::wake`] or has done so since the last wait.
    pub fn wait(&self) {
        let mut state = lock(&self.state);
        while state.letters.is_empty() && !state.woken {
            state = wait(&self.arrived, state);
        }
        state.woken = false;
    }

    /// Wakes the reader, with nothing.
    pub fn wake(&self) {
        lock(&self.state).woken = true;
        self.arrived.notify_one();
    }

    /// Drops all letters, those too that are still to come.
    pub fn close(&self) {
        let letters = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.letters)
        };
        drop(letters);
    }
}
