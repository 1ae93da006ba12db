//! How values flow through a plan with v1 control flow: who reads what, and the frames of its loops.
//!
//! Frames are found once, from the plan. `Enter` runs in the frame around a loop and gives its value to the frame of
//! the loop; `Exit` runs in the loop's frame and gives its value to the frame around it.

use crate::loop_turn::{may_ask, name_hash};
use crate::plan::{Fetch, Input, Instruction, Source};
use ff_tensor::{Result, Status, bail, ensure, status};
use rustc_hash::FxHashMap;

/// What an instruction does to the flow of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Nothing special.
    Plain,
    /// May leave outputs dead.
    Switch,
    /// Runs as soon as one input is there.
    Merge,
    /// Hands its value to a loop.
    Enter,
    /// Hands its value out of a loop.
    Exit,
    /// Hands its value to the next turn of a loop.
    NextIteration,
    /// Sends its value to another place, also when it is dead.
    Send,
}

impl FlowKind {
    /// The kind of an instruction.
    pub fn of(instruction: &Instruction) -> FlowKind {
        let op = instruction.executable.node().op_name();
        match op.strip_prefix("Ref").unwrap_or(op) {
            "Switch" | "_SwitchN" => FlowKind::Switch,
            "Merge" => FlowKind::Merge,
            "Enter" => FlowKind::Enter,
            "Exit" => FlowKind::Exit,
            "NextIteration" => FlowKind::NextIteration,
            "Send" | "_Send" | "_HostSend" if instruction.output_uses.is_empty() => FlowKind::Send,
            _ => FlowKind::Plain,
        }
    }
}

/// One instruction's place in the flow.
pub struct FlowNode {
    /// What it does to the flow.
    pub kind: FlowKind,
    /// The frame that it runs in.
    pub frame: u32,
    /// Its number among the instructions of the frame.
    pub local: u32,
    /// Where its inputs start among the inputs of the frame.
    pub first_input: u32,
    /// Number of inputs that arrive along edges (not constants of the plan).
    pub arriving: u32,
    /// For `Enter`: the frame of its loop, and whether the value is the same in all turns.
    pub enters: Option<(u32, bool)>,
    /// Whether its kernel may ask for the turn that it runs in.
    pub may_ask: bool,
}

/// A frame: the instructions of one loop, or those outside all loops.
#[derive(Debug)]
pub struct StaticFrame {
    /// The frame around it.
    pub parent: u32,
    /// Name as `Enter` gives it; empty for the outermost.
    pub name: String,
    /// The hash of that name.
    pub name_hash: u64,
    /// Its instructions.
    pub instructions: Vec<u32>,
    /// Number of inputs of all its instructions.
    pub inputs: u32,
    /// Number of `Enter` instructions that lead into it.
    pub enters: u32,
    /// How many turns may be under way at once.
    pub parallel_iterations: u32,
}

/// See the module.
pub struct Flow {
    /// One entry per instruction.
    pub nodes: Vec<FlowNode>,
    /// The outermost frame is the first.
    pub frames: Vec<StaticFrame>,
    /// Who reads each slot: (instruction, which input).
    pub readers: Vec<Vec<(u32, u32)>>,
    /// Whether a slot is fetched.
    pub fetched: Vec<bool>,
}

const OUTERMOST: u32 = 0;

/// The slot that an input comes from, unless it is a constant.
fn slot_of(input: &Input) -> Option<u32> {
    match input.source {
        Source::Slot { slot, .. } => Some(slot),
        Source::Constant(_) => None,
    }
}

/// Whether an instruction makes the value in a slot.
fn makes(instruction: &Instruction, slot: u32) -> bool {
    let outputs = instruction.first_output..instruction.first_output + instruction.output_uses.len() as u32;
    outputs.contains(&slot)
}

/// What makes the value in a slot; none when it is fed.
fn maker(instructions: &[Instruction], slot: u32) -> Option<&Instruction> {
    instructions.iter().find(|instruction| makes(instruction, slot))
}

impl Flow {
    /// Works out the flow of a plan, whose feeds have the first slots. INVALID_ARGUMENT when an instruction's inputs are of different frames.
    pub fn of(instructions: &[Instruction], feeds: u32, fetches: &[Fetch], slots: usize) -> Result<Flow> {
        let outermost = StaticFrame {
            parent: 0,
            name: String::new(),
            name_hash: 0,
            instructions: Vec::new(),
            inputs: 0,
            enters: 0,
            parallel_iterations: 1,
        };
        let mut flow = Flow {
            nodes: Vec::with_capacity(instructions.len()),
            frames: vec![outermost],
            readers: vec![Vec::new(); slots],
            fetched: vec![false; slots],
        };
        for fetch in fetches {
            if let Fetch::Slot(slot) = fetch {
                flow.fetched[*slot as usize] = true;
            }
        }
        flow.add_all(instructions, feeds)?;
        Ok(flow)
    }

    fn add_all(&mut self, instructions: &[Instruction], feeds: u32) -> Result<()> {
        // The frame that each slot's value, and each instruction's end, is in.
        let mut slot_frames: FxHashMap<u32, u32> = (0..feeds).map(|slot| (slot, OUTERMOST)).collect();
        let mut back_edges: Vec<(u32, u32)> = Vec::new();
        // For each instruction the first control input that was met: its end's frame.
        let mut control_frames: FxHashMap<u32, u32> = FxHashMap::default();
        let mut result_frames = Vec::with_capacity(instructions.len());
        for (number, instruction) in instructions.iter().enumerate() {
            let number = number as u32;
            let mut frame: Option<u32> = None;
            let mut arriving = 0;
            for (index, input) in instruction.inputs.iter().enumerate() {
                let Source::Slot { slot, .. } = input.source else {
                    continue;
                };
                arriving += 1;
                self.readers[slot as usize].push((number, index as u32));
                // A value that comes later is a back edge.
                let Some(&from) = slot_frames.get(&slot) else {
                    back_edges.push((number, slot));
                    continue;
                };
                if frame.is_some_and(|frame| frame != from) {
                    let first = instruction.inputs.iter().find_map(slot_of).unwrap_or(slot);
                    let ends = [
                        (maker(instructions, first), frame.unwrap_or(OUTERMOST)),
                        (maker(instructions, slot), from),
                    ];
                    return Err(self.mixed(instructions, number, ends));
                }
                frame = Some(from);
            }
            let frame = frame.or_else(|| control_frames.get(&number).copied());
            let result_frame = self.add(number, instruction, frame.unwrap_or(OUTERMOST), arriving)?;
            result_frames.push(result_frame);
            for output in 0..instruction.output_uses.len() as u32 {
                slot_frames.insert(instruction.first_output + output, result_frame);
            }
            for &reader in &instruction.control_outputs {
                control_frames.entry(reader).or_insert(result_frame);
            }
        }
        for (number, slot) in back_edges {
            let frame = self.nodes[number as usize].frame;
            let from = slot_frames.get(&slot).copied().unwrap_or(OUTERMOST);
            if frame != from {
                let inputs = &instructions[number as usize].inputs;
                let first = inputs.iter().find_map(slot_of).unwrap_or(slot);
                let ends = [
                    (maker(instructions, slot), from),
                    (maker(instructions, first), frame),
                ];
                return Err(self.mixed(instructions, number, ends));
            }
        }
        self.check_controls(instructions, &result_frames)
    }

    /// Control inputs must be of the frame that an instruction runs in.
    fn check_controls(&self, instructions: &[Instruction], result_frames: &[u32]) -> Result<()> {
        for (instruction, &from) in instructions.iter().zip(result_frames) {
            for &reader in &instruction.control_outputs {
                let frame = self.nodes[reader as usize].frame;
                if frame == from {
                    continue;
                }
                let other = instructions.iter().zip(result_frames).find(|(other, ended)| {
                    let feeds = |input: &Input| slot_of(input).is_some_and(|slot| makes(other, slot));
                    **ended == frame
                        && (other.control_outputs.contains(&reader)
                            || instructions[reader as usize].inputs.iter().any(feeds))
                });
                let ends = [(other.map(|(other, _)| other), frame), (Some(instruction), from)];
                return Err(self.mixed(instructions, reader, ends));
            }
        }
        Ok(())
    }

    /// The error of an instruction with inputs from these two, which end in different frames; none stands for a feed.
    #[cold]
    fn mixed(
        &self,
        instructions: &[Instruction],
        number: u32,
        ends: [(Option<&Instruction>, u32); 2],
    ) -> Status {
        let told = ends.map(|(maker, frame)| {
            let name = maker.map_or("_arg", |maker| maker.executable.node().name.as_str());
            let frame = &self.frames[frame as usize].name;
            format!("The input {{{{node {name}}}}} is in frame '{frame}'.")
        });
        status!(
            InvalidArgument,
            "{{{{node {}}}}} has inputs from different frames. {}",
            instructions[number as usize].executable.node().name,
            told.join(" ")
        )
    }

    /// Adds an instruction to its frame; gives the frame of its results.
    fn add(&mut self, number: u32, instruction: &Instruction, frame: u32, arriving: u32) -> Result<u32> {
        let kind = match FlowKind::of(instruction) {
            // There is one turn outside of loops.
            FlowKind::NextIteration if frame == OUTERMOST => FlowKind::Plain,
            kind => kind,
        };
        let mut enters = None;
        let result_frame = match kind {
            FlowKind::Enter => {
                let attrs = &instruction.executable.node().attrs;
                ensure!(
                    !attrs.string("frame_name")?.is_empty(),
                    InvalidArgument,
                    "The Enter {{{{node {}}}}} must have a frame name.",
                    instruction.executable.node().name
                );
                let child = self.child(
                    frame,
                    attrs.string("frame_name")?,
                    attrs.int("parallel_iterations")?,
                );
                enters = Some((child, attrs.bool("is_constant")?));
                child
            }
            FlowKind::Exit if frame == OUTERMOST => bail!(
                InvalidArgument,
                "Invalid Exit op: Cannot find a corresponding Enter op."
            ),
            FlowKind::Exit => self.frames[frame as usize].parent,
            _ => frame,
        };
        let place = &mut self.frames[frame as usize];
        self.nodes.push(FlowNode {
            kind,
            frame,
            local: place.instructions.len() as u32,
            first_input: place.inputs,
            arriving,
            enters,
            may_ask: may_ask(&instruction.executable.node().op),
        });
        place.instructions.push(number);
        place.inputs += instruction.inputs.len() as u32;
        Ok(result_frame)
    }

    fn child(&mut self, parent: u32, name: &str, parallel_iterations: i64) -> u32 {
        let known = self
            .frames
            .iter()
            .enumerate()
            .skip(1)
            .find(|(_, frame)| frame.parent == parent && frame.name == name);
        let index = match known {
            Some((index, _)) => index,
            None => {
                self.frames.push(StaticFrame {
                    parent,
                    name: name.to_string(),
                    name_hash: name_hash(name),
                    instructions: Vec::new(),
                    inputs: 0,
                    enters: 0,
                    parallel_iterations: u32::try_from(parallel_iterations).unwrap_or(1).max(1),
                });
                self.frames.len() - 1
            }
        };
        self.frames[index].enters += 1;
        index as u32
    }
}
