//! How the ends of kernels that waited come back to the run that started them.

use crate::loops::Tag;
use ff_op::{Cancellation, Ended, Mailbox, Relay, Work};
use std::sync::Arc;

/// Which kernel: the turn of a loop (the outermost where there are no loops), and the instruction.
pub type Key = (Tag, u32);

/// What comes to the thread that drives a step.
pub enum Letter {
    /// The end of a kernel of its own run.
    Ended(Key, Ended),
    /// Something to do for a run within.
    Work(Work),
}

/// Where a run gets its letters.
pub type Letters = Mailbox<Letter>;

/// A run as its kernels see it.
pub trait Home: Send + Sync {
    /// Takes in the end of a kernel, on any thread.
    fn ended(&self, key: Key, ended: Ended);
}

/// The mailbox of the thread that drives a step, which waits for letters or looks into it between instructions.
#[derive(Default)]
pub struct Driver(Letters);

impl Home for Driver {
    fn ended(&self, key: Key, ended: Ended) {
        self.0.put(Letter::Ended(key, ended));
    }
}

impl Relay for Driver {
    fn post(&self, work: Work) {
        self.0.put(Letter::Work(work));
    }
}

/// Where kernels of a run bring their ends, and where what goes on later is done.
#[derive(Clone)]
pub struct Route {
    /// The run.
    pub home: Arc<dyn Home>,
    /// The thread that drives the step.
    pub relay: Arc<dyn Relay>,
}

impl Route {
    /// For a run that its caller waits for.
    pub fn to(driver: &Driving) -> Route {
        Route {
            home: driver.0.clone(),
            relay: driver.0.clone(),
        }
    }
}

/// A step's driver as long as it drives. What comes later is dropped.
#[derive(Default)]
pub struct Driving(Arc<Driver>);

impl Driving {
    /// Its letters.
    pub fn letters(&self) -> &Letters {
        &self.0.0
    }

    /// Has a cancellation wake the driver. To be given to [`Cancellation::forget`].
    pub fn wake_on(&self, cancellation: &Cancellation) -> u64 {
        let driver = self.0.clone();
        cancellation.on_cancel(move || driver.0.wake())
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        // Runs within a step that failed are in its letters, and the letters in those runs.
        self.0.0.close();
    }
}
