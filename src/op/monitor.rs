//! A state that ops wait on: each waiter is a closure that is tried again whenever the state changes. A waiter holds no
//! thread.
//!
//! Waiters stand in lanes. In an ordered monitor only the first of a lane is tried, so that lanes are first come, first
//! served; in an unordered one all are.

use crate::sync::{Mutex, lock};
use crate::{Cancellation, Ended};
use ff_tensor::{Code, Status};
use std::collections::VecDeque;
use std::sync::Arc;

/// What came of trying.
pub enum Outcome {
    /// Nothing can be done yet.
    Waits,
    /// A part was done; the state has changed.
    Progressed,
    /// All was done; with the outputs.
    Done(Ended),
}

/// Called once with the outputs or an error, from any thread.
pub type Done = Box<dyn FnOnce(Ended) + Send>;
type Attempt<S> = Box<dyn FnMut(&mut S) -> Outcome + Send>;

struct Waiter<S> {
    number: u64,
    attempt: Attempt<S>,
    done: Done,
    /// Where to take the watch for cancellation back.
    watch: Option<(Cancellation, u64)>,
}

impl<S> Waiter<S> {
    fn end(self, result: Ended) {
        if let Some((cancellation, number)) = self.watch {
            cancellation.forget(number);
        }
        (self.done)(result);
    }
}

struct Inner<S> {
    state: S,
    next: u64,
    lanes: Vec<VecDeque<Waiter<S>>>,
}

/// See the module. All operations may be called from any thread; closures run one at a time, `Done`s without the lock.
pub struct Monitor<S> {
    inner: Mutex<Inner<S>>,
    ordered: bool,
    /// What a waiter of each lane is told when its step is cancelled; the cause where nothing is listed.
    when_cancelled: &'static [&'static str],
}

impl<S: Send + 'static> Monitor<S> {
    /// A state with so many lanes.
    pub fn new(state: S, lanes: usize, ordered: bool) -> Arc<Monitor<S>> {
        Monitor::with_words(state, lanes, ordered, &[])
    }

    /// As [`Monitor::new`]; a waiter whose step is cancelled, and not late, is told its lane's words.
    pub fn with_words(
        state: S,
        lanes: usize,
        ordered: bool,
        when_cancelled: &'static [&'static str],
    ) -> Arc<Monitor<S>> {
        let inner = Inner {
            state,
            next: 0,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
        };
        Arc::new(Monitor {
            inner: Mutex::new(inner),
            ordered,
            when_cancelled,
        })
    }

    /// Looks at the state.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&lock(&self.inner).state)
    }

    /// Changes the state and serves who can be served then.
    pub fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut lock(&self.inner).state);
        self.settle();
        result
    }

    /// Changes the state and turns all waiters of a lane away.
    pub fn turn_all_away(&self, lane: usize, error: &Status, change: impl FnOnce(&mut S)) {
        let waiters = {
            let mut inner = lock(&self.inner);
            change(&mut inner.state);
            std::mem::take(&mut inner.lanes[lane])
        };
        for waiter in waiters {
            waiter.end(Err(error.clone()));
        }
        self.settle();
    }

    /// How many wait in a lane.
    pub fn waiting(&self, lane: usize) -> usize {
        lock(&self.inner).lanes[lane].len()
    }

    /// Tries `attempt` if it is its turn. None when it is not, or when the attempt gave that: then it has changed nothing.
    #[inline]
    pub fn attempt<R>(&self, lane: usize, attempt: impl FnOnce(&mut S) -> Option<R>) -> Option<R> {
        let (result, others_wait) = {
            let mut inner = lock(&self.inner);
            if self.ordered && !inner.lanes[lane].is_empty() {
                return None;
            }
            let result = attempt(&mut inner.state)?;
            (result, inner.lanes.iter().any(|lane| !lane.is_empty()))
        };
        if others_wait {
            self.settle();
        }
        Some(result)
    }

    /// Tries `attempt` in its turn until it is done, then calls `done`; or with the cause of the cancellation, if that
    /// comes first.
    pub fn submit(
        self: &Arc<Self>,
        lane: usize,
        cancellation: &Cancellation,
        attempt: impl FnMut(&mut S) -> Outcome + Send + 'static,
        done: Done,
    ) {
        let mut attempt = attempt;
        let mut inner = lock(&self.inner);
        // Most do not have to wait, and then nothing is kept for them.
        if (!self.ordered || inner.lanes[lane].is_empty())
            && let Outcome::Done(result) = attempt(&mut inner.state)
        {
            let others_wait = inner.lanes.iter().any(|lane| !lane.is_empty());
            drop(inner);
            done(result);
            if others_wait {
                self.settle();
            }
            return;
        }
        inner.next += 1;
        let number = inner.next;
        inner.lanes[lane].push_back(Waiter {
            number,
            attempt: Box::new(attempt),
            done,
            watch: None,
        });
        drop(inner);
        self.settle();
        self.watch(lane, number, cancellation);
    }

    /// Turns a waiter away when its step is cancelled.
    fn watch(self: &Arc<Self>, lane: usize, number: u64, cancellation: &Cancellation) {
        let waits = |inner: &Inner<S>| inner.lanes[lane].iter().position(|its| its.number == number);
        if waits(&lock(&self.inner)).is_none() {
            return;
        }
        let (monitor, cause) = (Arc::downgrade(self), cancellation.clone());
        let watch = cancellation.on_cancel(move || {
            let Some(monitor) = monitor.upgrade() else { return };
            let waiter = {
                let mut inner = lock(&monitor.inner);
                let found = inner.lanes[lane].iter().position(|its| its.number == number);
                found.and_then(|index| inner.lanes[lane].remove(index))
            };
            if let (Some(waiter), Err(error)) = (waiter, cause.check()) {
                let words = monitor.when_cancelled.get(lane);
                let words = words.filter(|_| error.code() == Code::Cancelled);
                waiter.end(Err(
                    words.map_or(error, |words| Status::new(Code::Cancelled, *words))
                ));
                monitor.settle();
            }
        });
        let mut inner = lock(&self.inner);
        match waits(&inner) {
            Some(index) => inner.lanes[lane][index].watch = Some((cancellation.clone(), watch)),
            None => {
                drop(inner);
                cancellation.forget(watch);
            }
        }
    }

    /// Serves waiters until nobody can be served.
    fn settle(&self) {
        let mut ended = Vec::new();
        {
            let inner = &mut *lock(&self.inner);
            let mut changed = true;
            while changed {
                changed = false;
                for lane in &mut inner.lanes {
                    changed |= serve(lane, &mut inner.state, self.ordered, &mut ended);
                }
            }
        }
        for (waiter, result) in ended {
            waiter.end(result);
        }
    }
}

/// Tries the waiters of a lane; whether the state may have changed.
fn serve<S>(
    lane: &mut VecDeque<Waiter<S>>,
    state: &mut S,
    ordered: bool,
    ended: &mut Vec<(Waiter<S>, Ended)>,
) -> bool {
    let (mut changed, mut index) = (false, 0);
    while let Some(waiter) = lane.get_mut(index) {
        match (waiter.attempt)(state) {
            Outcome::Waits if ordered => break,
            Outcome::Waits => index += 1,
            Outcome::Progressed => {
                changed = true;
                if ordered {
                    break;
                }
                index += 1;
            }
            Outcome::Done(result) => {
                changed = true;
                ended.extend(lane.remove(index).map(|waiter| (waiter, result)));
            }
        }
    }
    changed
}
