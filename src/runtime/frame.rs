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
    specializations: Vec<SmallVec<[Arc<Specialization>; 1]>>,
}

impl Frame {
    /// A frame for so many slots and instructions.
    pub fn new(slots: usize, instructions: usize) -> Frame {
        Frame {
            values: vec![Value::Absent; slots],
            specializations: vec![SmallVec::new(); instructions],
        }
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.values.iter_mut().for_each(|value| *value = Value::Absent);
    }

    /// The specialization of an instruction that fits these inputs, if this frame remembers one.
    pub fn specialization(&mut self, instruction: usize, inputs: &[Value]) -> Option<&Arc<Specialization>> {
        let list = &mut self.specializations[instruction];
        let found = list
            .iter()
            .position(|specialization| specialization.fits(inputs))?;
        if found > 0 {
            list[..=found].rotate_right(1);
        }
        list.first()
    }

    /// Remembers a specialization as the last used.
    pub fn remember(&mut self, instruction: usize, specialization: Arc<Specialization>) {
        let list = &mut self.specializations[instruction];
        list.truncate(REMEMBERED - 1);
        list.insert(0, specialization);
    }
}
