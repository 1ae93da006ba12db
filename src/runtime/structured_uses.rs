//! The last readers of values in nested regions, so that values can be moved to them.
//!
//! Within a turn of a loop the order is head, then either body and the next values, or tail and exits. A value from outside
//! the loop is moved in once; constants of the loop stay for all turns.

use crate::plan::{Fetch, Instruction, Source};
use crate::structured::{Item, Move, Structured, StructuredLoop};
use rustc_hash::FxHashSet;

/// Marks `last` in the inputs of instructions and in moves, and takes out moves that nobody reads.
pub fn mark(structured: &mut Structured, instructions: &mut [Instruction], fetches: &[Fetch], slots: usize) {
    drop_unread(structured, instructions, fetches, slots);
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    for fetch in fetches {
        if let Fetch::Slot(slot) = fetch {
            seen.insert(*slot);
        }
    }
    let mut marking = Marking {
        instructions,
        loops: std::mem::take(&mut structured.loops),
        kept: FxHashSet::default(),
    };
    marking.items(&structured.top, &mut seen);
    structured.loops = marking.loops;
}

/// Takes out moves to slots that nobody reads.
fn drop_unread(structured: &mut Structured, instructions: &[Instruction], fetches: &[Fetch], slots: usize) {
    let mut read = vec![false; slots];
    let mut note = |source: Source| {
        if let Source::Slot { slot, .. } = source {
            read[slot as usize] = true;
        }
    };
    for fetch in fetches {
        if let Fetch::Slot(slot) = fetch {
            note(Source::Slot {
                slot: *slot,
                last: false,
            });
        }
    }
    let regions = structured
        .loops
        .iter()
        .flat_map(|region| [&region.head, &region.body, &region.tail]);
    for item in regions.chain([&structured.top]).flatten() {
        if let Item::Run(number) | Item::RunAsking(number) = item {
            let inputs = &instructions[*number as usize].inputs;
            inputs.iter().for_each(|input| note(input.source));
        }
    }
    for region in &structured.loops {
        region.condition.into_iter().for_each(&mut note);
        let moves = region.enters.iter().chain(&region.into_body);
        let moves = moves
            .chain(&region.next)
            .chain(&region.into_tail)
            .chain(&region.exits);
        moves.for_each(|step| note(step.from));
    }
    for region in &mut structured.loops {
        for moves in [&mut region.into_body, &mut region.into_tail, &mut region.exits] {
            moves.retain(|step| read[step.to as usize]);
        }
    }
}

struct Marking<'a> {
    instructions: &'a mut [Instruction],
    loops: Vec<StructuredLoop>,
    /// Constants of loops.
    kept: FxHashSet<u32>,
}

impl Marking<'_> {
    /// Marks items, backwards; `seen` are the slots that are read later.
    fn items(&mut self, items: &[Item], seen: &mut FxHashSet<u32>) {
        for item in items.iter().rev() {
            match item {
                Item::Run(number) | Item::RunAsking(number) => {
                    for input in self.instructions[*number as usize].inputs.iter_mut().rev() {
                        mark_source(&mut input.source, seen, &self.kept);
                    }
                }
                Item::Loop(number) => {
                    let mut region = std::mem::take(&mut self.loops[*number as usize]);
                    mark_moves(&mut region.enters, seen, &self.kept);
                    self.inside(&mut region);
                    self.loops[*number as usize] = region;
                }
            }
        }
    }

    fn inside(&mut self, region: &mut StructuredLoop) {
        let constants = region.enters.iter().map(|step| step.to);
        let constants = constants.filter(|slot| !region.variables.contains(slot));
        self.kept.extend(constants);
        let mut after_body = FxHashSet::default();
        mark_moves(&mut region.next, &mut after_body, &self.kept);
        self.items(&region.body, &mut after_body);
        mark_moves(&mut region.into_body, &mut after_body, &self.kept);
        let mut after_tail = FxHashSet::default();
        mark_moves(&mut region.exits, &mut after_tail, &self.kept);
        self.items(&region.tail, &mut after_tail);
        mark_moves(&mut region.into_tail, &mut after_tail, &self.kept);
        after_body.extend(after_tail);
        if let Some(Source::Slot { slot, .. }) = region.condition {
            after_body.insert(slot);
        }
        self.items(&region.head, &mut after_body);
    }
}

fn mark_moves(moves: &mut [Move], seen: &mut FxHashSet<u32>, kept: &FxHashSet<u32>) {
    for step in moves.iter_mut().rev() {
        mark_source(&mut step.from, seen, kept);
    }
}

fn mark_source(source: &mut Source, seen: &mut FxHashSet<u32>, kept: &FxHashSet<u32>) {
    if let Source::Slot { slot, last } = source {
        *last = seen.insert(*slot) && !kept.contains(slot);
    }
}
