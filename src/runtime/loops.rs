//! Loops under way in a step: their turns, and what each turn waits for.

use crate::flow::{Flow, FlowKind};
use crate::loop_turn::LoopTurn;
use crate::plan::Instruction;
use ff_op::Value;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A turn of a loop under way. Loop 0 is the outermost frame, with one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The loop.
    pub frame: usize,
    /// Which turn, from 0.
    pub turn: u64,
}

/// What a node waits for in a turn.
#[derive(Clone, Copy, Default)]
pub struct NodeState {
    /// Inputs (for a Merge: control inputs only) that have not come.
    pub pending: u32,
    /// Dead ones among those that have.
    pub dead: u32,
    /// For a Merge: a live input has come.
    pub live: bool,
    /// For a Merge: all inputs are dead.
    pub all_dead: bool,
    /// For a Merge: it has been scheduled.
    pub done: bool,
}

/// A turn of a loop.
pub struct Turn {
    /// Values that have come, for all inputs of the frame's nodes.
    pub inputs: Vec<Value>,
    /// One entry per node of the frame.
    pub nodes: Vec<NodeState>,
    /// Nodes that are ready or running.
    pub under_way: usize,
    /// Inner loops that have not ended.
    pub loops_under_way: usize,
}

/// A loop under way.
pub struct Loop {
    /// The frame of the plan.
    pub static_frame: u32,
    /// The turn around it.
    pub parent: Tag,
    /// Its first turn, as kernels are told.
    pub told: LoopTurn,
    /// Number of the last turn opened.
    pub iterations: u64,
    /// Turns under way; the first has number `first`.
    turns: VecDeque<Turn>,
    first: u64,
    /// `Enter` nodes that have not ended.
    pub enters_to_come: u32,
    /// How many turns may be under way at once.
    pub parallel_iterations: u64,
    /// Values of constant `Enter` nodes, for every turn.
    pub invariants: Vec<(u32, Value)>,
    /// Values for a turn that may not open yet.
    pub held_back: Vec<(u32, Value)>,
    /// Exits that were dead in the last turn.
    pub dead_exits: Vec<u32>,
}

impl Loop {
    /// Number of turns under way.
    pub fn turns_under_way(&self) -> u64 {
        self.turns.len() as u64
    }

    /// Whether a turn is under way.
    pub fn has_turn(&self, turn: u64) -> bool {
        turn >= self.first && turn - self.first < self.turns_under_way()
    }

    /// Whether a turn is the oldest and has nothing left to do.
    pub fn can_end(&self, turn: u64) -> bool {
        turn == self.first
            && (turn > 0 || self.enters_to_come == 0)
            && self
                .turns
                .front()
                .is_some_and(|turn| turn.under_way == 0 && turn.loops_under_way == 0)
    }

    /// Ends the oldest turn.
    pub fn end_turn(&mut self) {
        self.turns.pop_front();
        self.first += 1;
    }
}

/// All loops under way.
pub struct Loops {
    loops: Vec<Option<Loop>>,
    free: Vec<usize>,
    by_parent: FxHashMap<(Tag, u32), usize>,
    /// What the nodes of each frame wait for at the start of a turn.
    initial: Vec<Vec<NodeState>>,
}

impl Loops {
    /// The outermost frame alone.
    pub fn new(flow: &Flow, instructions: &[Instruction]) -> Loops {
        let initial = flow.frames.iter().map(|frame| {
            let state = |number: &u32| {
                let node = &flow.nodes[*number as usize];
                let control = instructions[*number as usize].control_inputs;
                let data = if node.kind == FlowKind::Merge {
                    0
                } else {
                    node.arriving
                };
                NodeState {
                    pending: control + data,
                    ..NodeState::default()
                }
            };
            frame.instructions.iter().map(state).collect()
        });
        let mut loops = Loops {
            loops: Vec::new(),
            free: Vec::new(),
            by_parent: FxHashMap::default(),
            initial: initial.collect(),
        };
        let outermost = loops.new_loop(flow, 0, Tag { frame: 0, turn: 0 }, LoopTurn::default());
        loops.loops.push(Some(outermost));
        loops
    }

    fn new_turn(&self, flow: &Flow, static_frame: u32) -> Turn {
        Turn {
            inputs: vec![Value::Absent; flow.frames[static_frame as usize].inputs as usize],
            nodes: self.initial[static_frame as usize].clone(),
            under_way: 0,
            loops_under_way: 0,
        }
    }

    fn new_loop(&self, flow: &Flow, static_frame: u32, parent: Tag, told: LoopTurn) -> Loop {
        let frame = &flow.frames[static_frame as usize];
        Loop {
            static_frame,
            parent,
            told,
            iterations: 0,
            turns: VecDeque::from([self.new_turn(flow, static_frame)]),
            first: 0,
            enters_to_come: frame.enters,
            parallel_iterations: u64::from(frame.parallel_iterations),
            invariants: Vec::new(),
            held_back: Vec::new(),
            dead_exits: Vec::new(),
        }
    }

    /// The loop of a frame within a turn; started if it is not under way.
    pub fn find_or_create(&mut self, flow: &Flow, parent: Tag, static_frame: u32) -> usize {
        if let Some(&index) = self.by_parent.get(&(parent, static_frame)) {
            return index;
        }
        let name = flow.frames[static_frame as usize].name_hash;
        let told = self.told(parent).inner(name);
        let started = self.new_loop(flow, static_frame, parent, told);
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.loops.push(None);
                self.loops.len() - 1
            }
        };
        self.loops[index] = Some(started);
        self.by_parent.insert((parent, static_frame), index);
        self.turn(parent).loops_under_way += 1;
        index
    }

    /// A loop under way.
    pub fn get(&mut self, index: usize) -> &mut Loop {
        // Indices come from `find_or_create` and are dropped with the loop.
        self.loops[index].as_mut().expect("a loop that is under way")
    }

    /// A turn as kernels are told.
    pub fn told(&mut self, tag: Tag) -> LoopTurn {
        let frame = self.get(tag.frame).told.frame;
        LoopTurn {
            frame,
            turn: tag.turn,
        }
    }

    /// A turn under way.
    pub fn turn(&mut self, tag: Tag) -> &mut Turn {
        let state = self.get(tag.frame);
        let index = (tag.turn - state.first) as usize;
        &mut state.turns[index]
    }

    /// Opens the next turn; gives its number.
    pub fn open_turn(&mut self, flow: &Flow, index: usize) -> u64 {
        let static_frame = self.get(index).static_frame;
        let turn = self.new_turn(flow, static_frame);
        let state = self.get(index);
        state.turns.push_back(turn);
        state.iterations += 1;
        state.dead_exits.clear();
        state.iterations
    }

    /// Takes out a loop that has ended.
    pub fn remove(&mut self, index: usize) -> Loop {
        let ended = self.loops[index].take().expect("a loop that is under way");
        self.by_parent.remove(&(ended.parent, ended.static_frame));
        self.free.push(index);
        ended
    }
}
