//! Passes: functions that change a module and keep what it computes.
//!
//! A pass is `run(&mut Module) -> Result<Changed>` in a file of its own, whose documentation says what it assumes,
//! guarantees and leaves alone. [`pipeline`] is the list in which they run. The tests of each are modules before and
//! after, in `tests/hlo/<pass>/`.

pub mod algebraic;
mod algebraic_moves;
pub mod constant_folding;
pub mod cse;
pub mod dce;
pub mod dot;
pub mod fusion;
pub mod inline;
pub mod loop_invariant;
pub mod pipeline;
pub mod random_bits;
mod rebuild;
pub mod schedule;
pub mod transpose_motion;
pub mod trip_count;

/// Whether a pass changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It did.
    Yes,
    /// The module is as it was.
    No,
}

impl Changed {
    /// [`Changed::Yes`] when either is.
    pub fn or(self, other: Changed) -> Changed {
        if self == Changed::Yes { self } else { other }
    }
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Changed {
        if changed { Changed::Yes } else { Changed::No }
    }
}
