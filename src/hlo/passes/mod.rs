//! Passes: functions that change a module and keep what it computes.

pub mod dce;
pub mod inline;
mod rebuild;

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
