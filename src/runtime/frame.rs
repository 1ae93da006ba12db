//! What changes while a plan runs: the values on its edges, and the specializations that this frame used last.

use ff_op::{Specialization, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// Specializations that a frame remembers for each instruction, the last used first.
const REMEMBERED: usize = 4;

/// Used by one run at a time; kept by the plan between runs, so that a steady step allocates nothing for it.
pub struct Frame {
    /// One value per slot.
    pub values: Vec<Value>,
    /// What each instruction remembers.
    pub specializations: Vec<Remembered>,
}

/// Specializations that an instruction used, the last used first.
#[derive(Clone, Default)]
pub struct Remembered(SmallVec<[Arc<Specialization>; 1]>);

impl Frame {
    /// A frame for so many slots and instructions.
    pub fn new(slots: usize, instructions: usize) -> Frame {
        Frame {
            values: vec![Value::Absent; slots],
            specializations: vec![Remembered::default(); instructions],
        }
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.values.iter_mut().for_each(|value| *value = Value::Absent);
    }
}

impl Remembered {
    /// The specialization that fits these inputs, which is the last used from now on.
    #[inline]
    pub fn find(&mut self, inputs: &[Value]) -> Option<&Arc<Specialization>> {
        let found = self.0.iter().position(|known| known.fits(inputs))?;
        if found > 0 {
            self.0[..=found].rotate_right(1);
        }
        self.0.first()
    }

    /// The last used.
    pub fn last_used(&self) -> Option<&Arc<Specialization>> {
        self.0.first()
    }

    /// Remembers a specialization as the last used.
    pub fn add(&mut self, specialization: Arc<Specialization>) {
        self.0.truncate(REMEMBERED - 1);
        self.0.insert(0, specialization);
    }
}
