//! The dataflow engine: nodes run as their inputs arrive.
//!
//! For plans with v1 control flow (frames, turns, dead values) and with kernels that wait. The caller's thread runs
//! what is ready; a kernel that waits holds no thread, and its end comes back as a letter.
//!
//! A value is *dead* when the branch that would have made it was not taken. A node with a dead input does not run and
//! its outputs are dead, except that `Merge` needs one live input only. A loop's turn ends when nothing in it is
//! under way; a loop ends with its last turn, and then tells the exits that stayed dead.

use crate::flow::{Flow, FlowKind};
use crate::frame::Frame;
use crate::letters::{Driving, Letter, Letters, Route};
use crate::loops::{Loop, Loops, Tag, Turn};
use crate::plan::{Fetch, Plan, Source};
use crate::step::{Trace, at_node};
use crate::straight_line::{Surroundings, specialize};
use ff_op::{KernelHost, Value};
use ff_tensor::{Result, Status, status};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What runs, and where.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How its values flow.
    pub flow: &'a Flow,
    /// What kernels reach.
    pub host: &'a dyn KernelHost,
    /// Where to record what ran.
    pub trace: Option<&'a Trace>,
}

/// Runs a plan in a frame whose feeds are set; leaves fetched values in the frame.
pub fn run(place: &Place, frame: &mut Frame) -> Result<()> {
    let mut progress = Progress::new(place.plan, place.flow);
    let feeds = feeds_of(place.plan);
    drive(place, frame, &mut progress, &Driving::default(), &feeds, &|_| {
        false
    })
}

fn feeds_of(plan: &Plan) -> Vec<u32> {
    plan.feeds.iter().map(|&(slot, _)| slot).collect()
}

/// How far a step has come. A partial run keeps it from call to call.
pub struct Progress {
    loops: Loops,
    ready: VecDeque<Ready>,
    /// Kernels that were started and have not ended.
    waiting: usize,
    started: bool,
}

impl Progress {
    /// Nothing has run.
    pub fn new(plan: &Plan, flow: &Flow) -> Progress {
        Progress {
            loops: Loops::new(flow, &plan.instructions),
            ready: VecDeque::new(),
            waiting: 0,
            started: false,
        }
    }
}

/// Goes on with a step: delivers the values in the slots `feeds` and runs until nothing is left that can run, or until
/// `enough` holds and what is left waits. The first call also starts what needs no input.
pub fn drive(
    place: &Place,
    frame: &mut Frame,
    progress: &mut Progress,
    driving: &Driving,
    feeds: &[u32],
    enough: &dyn Fn(&Frame) -> bool,
) -> Result<()> {
    let cancellation = place.host.cancellation();
    let callback = driving.wake_on(cancellation);
    let route = Route::to(driving);
    let mut engine = Engine::new(place, frame, progress, &route, driving.letters());
    let result = engine.drive(feeds, enough);
    let result = engine.judged(result);
    cancellation.forget(callback);
    result
}

/// Goes on until all has run, or until nothing is left but what waits for letters; whether all has run. The first call
/// delivers all feeds.
pub fn advance(
    place: &Place,
    frame: &mut Frame,
    progress: &mut Progress,
    route: &Route,
    letters: &Letters,
) -> Result<bool> {
    let feeds = if progress.started {
        Vec::new()
    } else {
        feeds_of(place.plan)
    };
    let mut engine = Engine::new(place, frame, progress, route, letters);
    engine.start(&feeds);
    let result = engine.advance();
    engine.judged(result)
}

/// A node to run (or to pass over, when dead) in a turn.
#[derive(Clone, Copy)]
struct Ready {
    tag: Tag,
    instruction: u32,
    dead: bool,
}

struct Engine<'a> {
    plan: &'a Plan,
    flow: &'a Flow,
    frame: &'a mut Frame,
    host: &'a dyn KernelHost,
    trace: Option<&'a Trace>,
    progress: &'a mut Progress,
    route: &'a Route,
    letters: &'a Letters,
    /// What went wrong while values were handed on.
    failed: Option<Status>,
}

impl<'e> Engine<'e> {
    fn new(
        place: &Place<'e>,
        frame: &'e mut Frame,
        progress: &'e mut Progress,
        route: &'e Route,
        letters: &'e Letters,
    ) -> Engine<'e> {
        Engine {
            plan: place.plan,
            flow: place.flow,
            frame,
            host: place.host,
            trace: place.trace,
            progress,
            route,
            letters,
            failed: None,
        }
    }

    /// Cancels what still waits in a step that has failed.
    fn judged<T>(&self, result: Result<T>) -> Result<T> {
        if let (Err(error), true) = (&result, self.progress.waiting > 0) {
            self.host.cancellation().cancel(error.clone());
        }
        result
    }

    fn drive(&mut self, feeds: &[u32], enough: &dyn Fn(&Frame) -> bool) -> Result<()> {
        self.start(feeds);
        while !self.advance()? && !enough(self.frame) {
            self.letters.wait();
        }
        Ok(())
    }

    /// Runs what is ready, and what becomes ready by letters that are there; whether nothing waits.
    fn advance(&mut self) -> Result<bool> {
        loop {
            while let Some(ready) = self.progress.ready.pop_front() {
                self.host.cancellation().check()?;
                self.run_ready(ready)?;
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if self.progress.waiting > 0 {
                    self.read_letters()?;
                }
            }
            if self.progress.waiting == 0 {
                return Ok(true);
            }
            crate::waiting::check(self.host.cancellation(), self.progress.waiting)?;
            if !self.read_letters()? {
                return Ok(false);
            }
        }
    }

    fn surroundings(&self) -> Surroundings<'e> {
        Surroundings {
            host: self.host,
            trace: self.trace,
        }
    }

    /// Delivers feeds and starts what needs no input.
    fn start(&mut self, feeds: &[u32]) {
        let outermost = Tag { frame: 0, turn: 0 };
        // Held up while feeds are delivered, so that the only turn does not end early.
        self.turn(outermost).under_way += 1;
        let first = !std::mem::replace(&mut self.progress.started, true);
        for &number in self.flow.frames[0].instructions.iter().filter(|_| first) {
            let node = &self.flow.nodes[number as usize];
            if node.arriving == 0 && self.plan.instructions[number as usize].control_inputs == 0 {
                self.schedule(outermost, number, false);
            }
        }
        for &slot in feeds {
            let value = std::mem::take(&mut self.frame.values[slot as usize]);
            for reader in 0..self.flow.readers[slot as usize].len() {
                let (instruction, index) = self.flow.readers[slot as usize][reader];
                self.deliver(outermost, instruction, index, value.clone(), false);
            }
        }
        self.turn(outermost).under_way -= 1;
    }

    fn turn(&mut self, tag: Tag) -> &mut Turn {
        self.progress.loops.turn(tag)
    }

    fn schedule(&mut self, tag: Tag, instruction: u32, dead: bool) {
        self.turn(tag).under_way += 1;
        self.progress.ready.push_back(Ready {
            tag,
            instruction,
            dead,
        });
    }

    /// Brings a value (absent when dead) to an input.
    fn deliver(&mut self, tag: Tag, instruction: u32, index: u32, value: Value, from_enter: bool) {
        let node = &self.flow.nodes[instruction as usize];
        let (local, slot) = (node.local as usize, (node.first_input + index) as usize);
        let dead = matches!(value, Value::Absent);
        let turn = self.progress.loops.turn(tag);
        let state = &mut turn.nodes[local];
        if node.kind != FlowKind::Merge {
            turn.inputs[slot] = value;
            state.pending -= 1;
            state.dead += u32::from(dead);
            if state.pending == 0 {
                let dead = state.dead > 0;
                self.schedule(tag, instruction, dead);
            }
            return;
        }
        if state.done {
            return;
        }
        if dead {
            state.dead += 1;
            // A dead Enter stands for the whole loop on a branch that was not taken.
            state.all_dead = state.dead == node.arriving || from_enter;
        } else {
            turn.inputs[slot] = value;
            state.live = true;
        }
        self.schedule_merge(tag, instruction);
    }

    /// Runs a Merge once its control inputs have ended and an input is live, or all are dead.
    fn schedule_merge(&mut self, tag: Tag, instruction: u32) {
        let local = self.flow.nodes[instruction as usize].local as usize;
        let state = &mut self.progress.loops.turn(tag).nodes[local];
        if !state.done && state.pending == 0 && (state.live || state.all_dead) {
            state.done = true;
            let dead = !state.live;
            self.schedule(tag, instruction, dead);
        }
    }

    /// Says that a control input has ended.
    fn release(&mut self, tag: Tag, instruction: u32, dead: bool) {
        let node = &self.flow.nodes[instruction as usize];
        let state = &mut self.progress.loops.turn(tag).nodes[node.local as usize];
        state.pending -= 1;
        if node.kind == FlowKind::Merge {
            return self.schedule_merge(tag, instruction);
        }
        state.dead += u32::from(dead);
        if state.pending == 0 {
            let dead = state.dead > 0;
            self.schedule(tag, instruction, dead);
        }
    }

    fn run_ready(&mut self, ready: Ready) -> Result<()> {
        let Ready {
            tag,
            instruction: number,
            dead,
        } = ready;
        let instruction = &self.plan.instructions[number as usize];
        let mut outputs: SmallVec<[Value; 2]> = SmallVec::new();
        outputs.resize_with(instruction.output_uses.len(), Value::default);
        // A dead value is sent as such: who receives it must hear.
        if dead && self.flow.nodes[number as usize].kind != FlowKind::Send {
            return self.finish(tag, number, &mut outputs, true);
        }
        if self.flow.nodes[number as usize].may_ask && tag.frame != 0 {
            let told = self.progress.loops.told(tag);
            return told.within(|| self.run_live(tag, number, outputs));
        }
        self.run_live(tag, number, outputs)
    }

    #[inline]
    fn run_live(&mut self, tag: Tag, number: u32, mut outputs: SmallVec<[Value; 2]>) -> Result<()> {
        let instruction = &self.plan.instructions[number as usize];
        let host = self.surroundings().host_of(instruction);
        let name = |error: Status| at_node(error, instruction.executable.node());
        let mut inputs = self.gather(tag, number).map_err(name)?;
        if instruction.executable.is_asynchronous() {
            let start = self.trace.map(|_| Trace::now());
            let attempt = instruction.executable.attempt(&mut inputs, &mut outputs, host);
            if attempt.map_err(name)? {
                if let (Some(trace), Some(start)) = (self.trace, start) {
                    trace.record_on(instruction, host.device_name(), start, &outputs);
                }
                return self.finish(tag, number, &mut outputs, false);
            }
            return self.start_waiting(tag, number, inputs.into_vec());
        }
        let remembered = &mut self.frame.specializations[number as usize];
        let specialization = match remembered.find(&inputs) {
            Some(specialization) => specialization.clone(),
            None => {
                let made = specialize(self.plan, instruction, &inputs, host).map_err(name)?;
                remembered.add(made.clone());
                made
            }
        };
        let start = self.trace.map(|_| Trace::now());
        instruction
            .executable
            .run(&specialization, &mut inputs, &mut outputs, host)
            .map_err(name)?;
        if let (Some(trace), Some(start)) = (self.trace, start) {
            trace.record_on(instruction, host.device_name(), start, &outputs);
        }
        self.finish(tag, number, &mut outputs, false)
    }

    fn gather(&mut self, tag: Tag, number: u32) -> Result<SmallVec<[Value; 4]>> {
        let first = self.flow.nodes[number as usize].first_input as usize;
        let turn = self.progress.loops.turn(tag);
        let mut inputs = SmallVec::new();
        for (index, input) in self.plan.instructions[number as usize].inputs.iter().enumerate() {
            let value = match input.source {
                Source::Constant(constant) => Value::Tensor(self.plan.constants[constant as usize].clone()),
                Source::Slot { .. } => std::mem::take(&mut turn.inputs[first + index]),
            };
            inputs.push(match value {
                Value::Ref(variable) if !input.is_ref => Value::Tensor(variable.read()?),
                value => value,
            });
        }
        Ok(inputs)
    }

    fn start_waiting(&mut self, tag: Tag, number: u32, inputs: Vec<Value>) -> Result<()> {
        let instruction = &self.plan.instructions[number as usize];
        let executable = &instruction.executable;
        let host = self.surroundings().host_of(instruction).share().ok_or_else(|| {
            at_node(
                status!(Internal, "nothing may wait in this step"),
                executable.node(),
            )
        })?;
        self.progress.waiting += 1;
        let home = self.route.home.clone();
        let done = move |ended| home.ended((tag, number), ended);
        executable.start(inputs, host, self.route.relay.clone(), Box::new(done));
        Ok(())
    }

    /// Takes in the ends of kernels that waited, and does what runs within ask for; whether there was anything.
    fn read_letters(&mut self) -> Result<bool> {
        let mut letters = self.letters.take();
        let were_there = !letters.is_empty();
        while let Some(letter) = letters.pop_front() {
            let ((tag, number), result) = match letter {
                Letter::Ended(key, result) => (key, result),
                Letter::Work(work) => {
                    work();
                    continue;
                }
            };
            self.progress.waiting -= 1;
            let node = self.plan.instructions[number as usize].executable.node();
            let mut outputs: SmallVec<[Value; 2]> = result.map_err(|error| at_node(error, node))?.into();
            outputs.resize_with(node.output_types.len(), Value::default);
            self.finish(tag, number, &mut outputs, false)?;
        }
        Ok(were_there)
    }

    /// Hands on the outputs of a node that has ended.
    fn finish(&mut self, tag: Tag, number: u32, outputs: &mut [Value], dead: bool) -> Result<()> {
        let node = &self.flow.nodes[number as usize];
        let dead_value = dead
            || outputs
                .first()
                .is_some_and(|value| matches!(value, Value::Absent));
        match node.kind {
            FlowKind::Enter => {
                let (child, constant) = node.enters.unwrap_or((0, false));
                let child = self.progress.loops.find_or_create(self.flow, tag, child);
                if constant && !dead {
                    self.keep_for_all_turns(child, number, outputs);
                }
                let last = self.progress.loops.get(child).iterations;
                for turn in 0..=if constant { last } else { 0 } {
                    if self.progress.loops.get(child).has_turn(turn) {
                        self.hand_on(
                            Tag { frame: child, turn },
                            number,
                            outputs,
                            dead,
                            turn == last || !constant,
                        );
                    }
                }
                self.progress.loops.get(child).enters_to_come -= 1;
                self.end_turns(child, 0)?;
            }
            FlowKind::Exit if dead_value => {
                let frame = self.progress.loops.get(tag.frame);
                if tag.turn == frame.iterations {
                    frame.dead_exits.push(number);
                }
            }
            FlowKind::Exit => {
                let parent = self.progress.loops.get(tag.frame).parent;
                self.hand_on(parent, number, outputs, false, true);
            }
            FlowKind::NextIteration if dead_value => {}
            FlowKind::NextIteration => self.next_turn(tag, number, outputs)?,
            _ => self.hand_on(tag, number, outputs, dead, true),
        }
        self.turn(tag).under_way -= 1;
        self.end_turns(tag.frame, tag.turn)
    }

    /// Gives outputs to their readers in a turn, and releases what waits for the node's end.
    fn hand_on(&mut self, tag: Tag, number: u32, outputs: &mut [Value], dead: bool, last: bool) {
        let instruction = &self.plan.instructions[number as usize];
        let from_enter = self.flow.nodes[number as usize].kind == FlowKind::Enter;
        for (index, output) in outputs.iter_mut().enumerate() {
            let slot = instruction.first_output as usize + index;
            let readers = &self.flow.readers[slot];
            if self.flow.fetched[slot] {
                self.keep(tag, slot, output);
            }
            for (position, &(reader, input)) in readers.iter().enumerate() {
                let take = last && position + 1 == readers.len();
                let value = if take {
                    std::mem::take(output)
                } else {
                    output.clone()
                };
                self.deliver(tag, reader, input, value, from_enter);
            }
        }
        for &reader in &instruction.control_outputs {
            self.release(tag, reader, dead);
        }
    }

    /// Keeps a value that is fetched. Within loops that must happen once.
    #[cold]
    fn keep(&mut self, tag: Tag, slot: usize, value: &Value) {
        let kept = &mut self.frame.values[slot];
        if tag.frame != 0 {
            if matches!(value, Value::Absent) {
                return;
            }
            if !matches!(kept, Value::Absent) {
                let fetch = self
                    .plan
                    .fetches
                    .iter()
                    .position(|fetch| matches!(fetch, Fetch::Slot(number) if *number as usize == slot));
                let twice = status!(Internal, "Retval[{}] has already been set.", fetch.unwrap_or(0));
                self.failed.get_or_insert(twice);
                return;
            }
        }
        *kept = value.clone();
    }

    fn keep_for_all_turns(&mut self, frame: usize, number: u32, outputs: &[Value]) {
        let value = outputs.first().cloned().unwrap_or_default();
        self.progress.loops.get(frame).invariants.push((number, value));
    }

    fn next_turn(&mut self, tag: Tag, number: u32, outputs: &mut [Value]) -> Result<()> {
        let frame = self.progress.loops.get(tag.frame);
        if tag.turn == frame.iterations {
            if frame.turns_under_way() >= frame.parallel_iterations {
                frame.held_back.push((
                    number,
                    outputs.first_mut().map(std::mem::take).unwrap_or_default(),
                ));
                return Ok(());
            }
            self.open_turn(tag.frame);
        }
        self.hand_on(
            Tag {
                turn: tag.turn + 1,
                ..tag
            },
            number,
            outputs,
            false,
            true,
        );
        Ok(())
    }

    /// Opens the next turn of a loop: values that are the same in all turns arrive, and those held back.
    fn open_turn(&mut self, frame: usize) {
        let turn = self.progress.loops.open_turn(self.flow, frame);
        let tag = Tag { frame, turn };
        let state: &mut Loop = self.progress.loops.get(frame);
        let held = std::mem::take(&mut state.held_back);
        let invariants = state.invariants.clone();
        // Held up until all have arrived.
        self.turn(tag).under_way += 1;
        for (number, value) in invariants.into_iter().chain(held) {
            self.hand_on(tag, number, &mut [value], false, true);
        }
        self.turn(tag).under_way -= 1;
    }

    /// Ends a turn if nothing in it is under way, then the turns after it, then the loop.
    fn end_turns(&mut self, frame: usize, from: u64) -> Result<()> {
        let (mut frame, mut turn) = (frame, from);
        // Each round ends one turn, or one loop and then looks at the turn around it.
        while frame != 0 && self.progress.loops.get(frame).can_end(turn) {
            self.progress.loops.get(frame).end_turn();
            if !self.progress.loops.get(frame).held_back.is_empty() {
                self.open_turn(frame);
            }
            if self.progress.loops.get(frame).turns_under_way() > 0 {
                turn += 1;
                continue;
            }
            let ended = self.progress.loops.remove(frame);
            for number in ended.dead_exits {
                let outputs = self.plan.instructions[number as usize].output_uses.len();
                self.hand_on(
                    ended.parent,
                    number,
                    &mut vec![Value::Absent; outputs],
                    true,
                    true,
                );
            }
            self.turn(ended.parent).loops_under_way -= 1;
            (frame, turn) = (ended.parent.frame, ended.parent.turn);
        }
        Ok(())
    }
}
