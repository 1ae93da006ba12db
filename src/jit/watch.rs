//! How far the clusters of one plan are: what is being compiled, and runs that had to go op by op because of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// See the module.
#[derive(Debug, Default)]
pub struct Watch {
    unready: AtomicU64,
    compiling: AtomicU32,
}

/// A program that is being compiled, until it is dropped.
pub(crate) struct Compiling(Arc<Watch>);

impl Watch {
    /// Runs of clusters, up to now, that went op by op because it was not yet known whether there is a program.
    pub fn unready(&self) -> u64 {
        self.unready.load(Relaxed)
    }

    /// How many programs are being compiled.
    pub fn compiling(&self) -> u32 {
        self.compiling.load(Relaxed)
    }

    pub(crate) fn ran_unready(&self) {
        self.unready.fetch_add(1, Relaxed);
    }

    pub(crate) fn begin(self: &Arc<Watch>) -> Compiling {
        self.compiling.fetch_add(1, Relaxed);
        Compiling(self.clone())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.0.compiling.fetch_sub(1, Relaxed);
    }
}
