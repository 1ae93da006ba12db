//! What the instructions of a plan share: slots of values that are never there at once, and classes of equal nodes.

use crate::plan::{Fetch, Instruction, Source};
use ff_op::NodeInfo;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Numbers the slots anew, so that a value takes the place of one whose last reader has run. Only for plans whose
/// instructions run in their order; `last` is marked. The first `feeds` slots keep their numbers. Gives the number of
/// slots that remain.
///
/// A frame is then small: a long chain of operations works on the same few cache lines.
pub fn share(instructions: &mut [Instruction], fetches: &mut [Fetch], feeds: u32, slots: u32) -> u32 {
    let mut new_slot: Vec<u32> = (0..slots).collect();
    let mut free: Vec<u32> = Vec::new();
    let mut used = feeds;
    for instruction in instructions {
        for input in &mut instruction.inputs {
            if let Source::Slot { slot, last } = &mut input.source {
                *slot = new_slot[*slot as usize];
                if *last {
                    free.push(*slot);
                }
            }
        }
        let outputs = instruction.output_uses.len() as u32;
        let old = instruction.first_output;
        let reused = if outputs == 1 { free.pop() } else { None };
        instruction.first_output = reused.unwrap_or_else(|| {
            used += outputs;
            used - outputs
        });
        for (index, &uses) in instruction.output_uses.iter().enumerate() {
            let slot = instruction.first_output + index as u32;
            new_slot[old as usize + index] = slot;
            if uses == 0 {
                free.push(slot);
            }
        }
    }
    for fetch in fetches {
        if let Fetch::Slot(slot) = fetch {
            *slot = new_slot[*slot as usize];
        }
    }
    used
}

/// Finds nodes of one op with equal attributes and types.
#[derive(Default)]
pub struct Classes {
    members: Vec<Arc<NodeInfo>>,
    by_hash: FxHashMap<u64, SmallVec<[u32; 1]>>,
}

/// Classes of one op and types that are compared; beyond them a node may get a class of its own.
const COMPARED: usize = 16;

impl Classes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The number of a node's class.
    pub fn of(&mut self, node: &Arc<NodeInfo>) -> u32 {
        let mut hasher = FxHasher::default();
        Arc::as_ptr(&node.op).hash(&mut hasher);
        node.input_types.hash(&mut hasher);
        node.output_types.hash(&mut hasher);
        let candidates = self.by_hash.entry(hasher.finish()).or_default();
        let equal = candidates.iter().rev().take(COMPARED).find(|&&class| {
            let member = &self.members[class as usize];
            Arc::ptr_eq(&member.op, &node.op)
                && member.input_types == node.input_types
                && member.output_types == node.output_types
                && member.attrs == node.attrs
        });
        if let Some(class) = equal {
            return *class;
        }
        let class = self.members.len() as u32;
        candidates.push(class);
        self.members.push(node.clone());
        class
    }
}
