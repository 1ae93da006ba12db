//! v1 loops and conditionals that are well formed, as nested regions of instructions that run in order.
//!
//! Most graphs with v1 control flow come from a front end, and their loops have one shape: each variable enters, is merged
//! with its next value, and a switch on the loop's condition sends it into the body or out. Such a loop needs no bookkeeping
//! of what has arrived where: its *head* runs, then its *body* while the condition holds, or else its *tail*. Enter, Merge,
//! Switch, NextIteration and Exit of its variables become moves of values between slots.
//!
//! What is not taken of a conditional is *dead*: absent in its slots. Only plans with conditionals look for that.
//!
//! Guarantees: nodes run as often as in the dataflow engine: what depends on constants and on the condition's side only
//! runs once more than the body. Does not: take plans in which a node may wait, or whose loops have another shape; those
//! are left to the dataflow engine.

use crate::flow::{Flow, FlowKind};
use crate::plan::{Fetch, Instruction, Source};
use ff_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Loops nested deeper are left to the dataflow engine, which does not recurse.
const DEEPEST: usize = 64;

/// What a region runs, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An instruction.
    Run(u32),
    /// An instruction in a loop whose kernel may ask for its turn.
    RunAsking(u32),
    /// A loop, by its number.
    Loop(u32),
}

/// A value that goes from one slot to another.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// Where it is.
    pub from: Source,
    /// The slot that it goes to.
    pub to: u32,
    /// Whether a variable moves itself, and not its value.
    pub is_ref: bool,
}

/// A loop.
#[derive(Debug, Default)]
pub struct StructuredLoop {
    /// The hash of the name of its frame.
    pub name_hash: u64,
    /// Constants and first values of variables.
    pub enters: Vec<Move>,
    /// Slots of variables' values at the start of a turn; one that is absent in the first makes the loop dead.
    pub variables: Vec<u32>,
    /// What runs in each turn and once more.
    pub head: Vec<Item>,
    /// The condition.
    pub condition: Option<Source>,
    /// Values that go into the body.
    pub into_body: Vec<Move>,
    /// What runs in each turn.
    pub body: Vec<Item>,
    /// Values of the next turn.
    pub next: Vec<Move>,
    /// Values that go to the tail.
    pub into_tail: Vec<Move>,
    /// What runs once, when the condition no longer holds.
    pub tail: Vec<Item>,
    /// Values that leave the loop.
    pub exits: Vec<Move>,
    /// Slots of the loop's own values, to be dropped at its end.
    pub inner: Vec<u32>,
    /// The instructions that the moves into the loop, and out of it, stand for.
    pub enter_nodes: Vec<u32>,
    /// See `enter_nodes`.
    pub exit_nodes: Vec<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Structured {
    /// What runs outside all loops.
    pub top: Vec<Item>,
    /// All loops.
    pub loops: Vec<StructuredLoop>,
    /// For plans with conditionals: the instructions that each one waits for by control edges.
    pub controls: Option<Vec<Box<[u32]>>>,
}

/// When in a turn a node of a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Body,
    Tail,
}

impl Part {
    fn join(self, other: Part) -> Option<Part> {
        match (self, other) {
            (Part::Head, part) | (part, Part::Head) => Some(part),
            (a, b) => (a == b).then_some(a),
        }
    }
}

impl Structured {
    /// The regions of a plan; none when a loop has another shape. Inputs of instructions are rewritten where a value is
    /// the same in another slot, constants are added to the plan's, and `last` is marked anew.
    pub fn of(
        flow: &Flow,
        instructions: &mut [Instruction],
        fetches: &[Fetch],
        constants: &mut Vec<Tensor>,
    ) -> Option<Structured> {
        let mut analysis = Analysis::new(flow, instructions, fetches)?;
        analysis.find_loops()?;
        let mut structured = analysis.regions()?;
        let rewrites = analysis.rewrites(fetches, constants);
        apply(&rewrites, &mut structured, instructions);
        crate::structured_uses::mark(&mut structured, instructions, fetches, flow.readers.len());
        tell_turns(&mut structured, flow);
        Some(structured)
    }
}

/// The parts of one loop as its nodes show them.
#[derive(Default)]
struct Shape {
    /// (merge, enter, next iteration).
    variables: Vec<(u32, u32, u32)>,
    condition: Option<u32>,
    switches: Vec<u32>,
    exits: Vec<u32>,
    constants: Vec<u32>,
}

struct Analysis<'a> {
    flow: &'a Flow,
    instructions: &'a [Instruction],
    /// The instruction that makes each slot's value.
    makers: Vec<Option<u32>>,
    /// Control inputs of each instruction.
    controls: Vec<Vec<u32>>,
    shapes: Vec<Shape>,
    /// Instructions that are moves of a loop, not run.
    is_move: Vec<bool>,
    parts: FxHashMap<u32, Part>,
    has_conditionals: bool,
}

impl<'a> Analysis<'a> {
    fn new(flow: &'a Flow, instructions: &'a [Instruction], fetches: &[Fetch]) -> Option<Analysis<'a>> {
        let mut makers = vec![None; flow.readers.len()];
        let mut controls = vec![Vec::new(); instructions.len()];
        for (instruction, number) in instructions.iter().zip(0u32..) {
            if instruction.executable.is_asynchronous() {
                return None;
            }
            for output in 0..instruction.output_uses.len() {
                makers[instruction.first_output as usize + output] = Some(number);
            }
            for &reader in &instruction.control_outputs {
                controls[reader as usize].push(number);
            }
        }
        // What is fetched from within a loop is for the dataflow engine to refuse.
        let is_outside = |fetch: &Fetch| match fetch {
            Fetch::Slot(slot) => makers[*slot as usize].is_none_or(|maker: u32| {
                let node = &flow.nodes[maker as usize];
                match node.kind {
                    FlowKind::Exit => flow.frames[node.frame as usize].parent == 0,
                    FlowKind::Enter => false,
                    _ => node.frame == 0,
                }
            }),
            Fetch::Constant(_) => true,
        };
        if !fetches.iter().all(is_outside) {
            return None;
        }
        Some(Analysis {
            flow,
            instructions,
            makers,
            controls,
            shapes: flow.frames.iter().map(|_| Shape::default()).collect(),
            is_move: vec![false; instructions.len()],
            parts: FxHashMap::default(),
            has_conditionals: false,
        })
    }

    fn op(&self, number: u32) -> &str {
        self.instructions[number as usize].executable.node().op_name()
    }

    /// The instruction, and which of its outputs, that an input comes from.
    fn maker(&self, number: u32, input: usize) -> Option<(u32, u32)> {
        match self.instructions[number as usize].inputs.get(input)?.source {
            Source::Slot { slot, .. } => {
                let maker = self.makers[slot as usize]?;
                Some((maker, slot - self.instructions[maker as usize].first_output))
            }
            Source::Constant(_) => None,
        }
    }

    /// Finds the parts of each loop; none when one is not there as it should be.
    fn find_loops(&mut self) -> Option<()> {
        for number in 0..self.instructions.len() as u32 {
            let node = &self.flow.nodes[number as usize];
            match node.kind {
                FlowKind::Merge => self.merge(number)?,
                FlowKind::Switch => self.switch(number),
                FlowKind::Exit if node.frame != 0 => self.shapes[node.frame as usize].exits.push(number),
                FlowKind::Enter => {
                    let (frame, constant) = node.enters?;
                    if constant {
                        self.shapes[frame as usize].constants.push(number);
                    }
                }
                FlowKind::Exit | FlowKind::Send => return None,
                FlowKind::NextIteration if node.frame == 0 => return None,
                FlowKind::NextIteration => continue,
                FlowKind::Plain if node.frame != 0 && self.op(number) == "LoopCond" => {
                    let shape = &mut self.shapes[node.frame as usize];
                    if shape.condition.replace(number).is_some() {
                        return None;
                    }
                }
                FlowKind::Plain => continue,
            }
        }
        for frame in 1..self.flow.frames.len() {
            self.check_loop(frame)?;
        }
        Some(())
    }

    /// A merge of a loop's variable, or of a conditional.
    fn merge(&mut self, number: u32) -> Option<()> {
        let inputs = self.instructions[number as usize].inputs.len();
        let kind = |index| {
            self.maker(number, index)
                .map(|(maker, _)| (maker, self.flow.nodes[maker as usize].kind))
        };
        let kinds: Vec<_> = (0..inputs).map(kind).collect();
        let is = |index: usize, wanted: FlowKind| kinds[index].is_some_and(|(_, kind)| kind == wanted);
        if !(0..inputs).any(|index| is(index, FlowKind::NextIteration)) {
            // An enter that is not merged with a next value has a value in the first turn only.
            return (0..inputs).all(|index| !is(index, FlowKind::Enter)).then_some(());
        }
        if inputs != 2 || self.instructions[number as usize].output_uses[1] > 0 {
            return None;
        }
        let (enter, next) = match (kinds[0]?, kinds[1]?) {
            ((enter, FlowKind::Enter), (next, FlowKind::NextIteration))
            | ((next, FlowKind::NextIteration), (enter, FlowKind::Enter)) => (enter, next),
            _ => return None,
        };
        let node = &self.flow.nodes[number as usize];
        let fits = self.flow.nodes[enter as usize].enters == Some((node.frame, false))
            && self.flow.nodes[next as usize].frame == node.frame
            && self.controls[number as usize].is_empty();
        self.shapes[node.frame as usize]
            .variables
            .push((number, enter, next));
        fits.then_some(())
    }

    fn switch(&mut self, number: u32) {
        let condition = self.maker(number, 1).map(|(maker, _)| maker);
        let frame = self.flow.nodes[number as usize].frame;
        if frame != 0 && condition.is_some_and(|maker| self.op(maker) == "LoopCond") {
            self.shapes[frame as usize].switches.push(number);
        } else {
            self.has_conditionals = true;
        }
    }

    fn check_loop(&mut self, frame: usize) -> Option<()> {
        let shape = &self.shapes[frame];
        let condition = shape.condition?;
        let mut moves = vec![condition];
        for &(merge, enter, next) in &shape.variables {
            moves.extend([merge, enter, next]);
            // The first value goes to the merge only, and so does the next.
            let slot = |number: u32| self.instructions[number as usize].first_output as usize;
            if self.flow.readers[slot(enter)].len() != 1 || self.flow.readers[slot(next)].len() != 1 {
                return None;
            }
        }
        moves.extend(shape.switches.iter().chain(&shape.exits).chain(&shape.constants));
        // Every node that enters and every next value is a variable's.
        let enters = shape.variables.len() + shape.constants.len();
        let nexts = self.flow.frames[frame].instructions.iter();
        let nexts = nexts.filter(|&&number| self.flow.nodes[number as usize].kind == FlowKind::NextIteration);
        if enters != self.flow.frames[frame].enters as usize || nexts.count() != shape.variables.len() {
            return None;
        }
        // What these wait for by control edges would be lost.
        let waits = |number: &u32| !self.controls[*number as usize].is_empty();
        if shape
            .switches
            .iter()
            .chain(&shape.exits)
            .chain([&condition])
            .any(waits)
        {
            return None;
        }
        for number in moves {
            self.is_move[number as usize] = true;
        }
        Some(())
    }

    /// Builds the regions of all frames, outer ones first.
    fn regions(&mut self) -> Option<Structured> {
        let frames = self.flow.frames.len();
        let mut depth = vec![0; frames];
        // A frame's parent has a lower number.
        for frame in 1..frames {
            depth[frame] = depth[self.flow.frames[frame].parent as usize] + 1;
            if depth[frame] > DEEPEST {
                return None;
            }
        }
        let mut structured = Structured::default();
        structured.loops.resize_with(frames, StructuredLoop::default);
        for frame in 0..frames {
            let order = self.order(frame as u32)?;
            if frame == 0 {
                structured.top = order.into_iter().map(|(item, _)| item).collect();
            } else {
                structured.loops[frame] = self.region(frame, order)?;
            }
        }
        if self.has_conditionals {
            structured.controls = Some(self.controls.iter().map(|list| list[..].into()).collect());
        }
        Some(structured)
    }

    /// The items of a frame in an order in which they can run, with the part of the turn that each belongs to.
    fn order(&mut self, frame: u32) -> Option<Vec<(Item, Part)>> {
        let flow = self.flow;
        // Units: instructions that run, and inner loops by the number of an enter.
        let mut units: Vec<(Item, Vec<u32>)> = Vec::new();
        let mut unit_of: FxHashMap<u32, usize> = FxHashMap::default();
        let mut loops: FxHashMap<u32, usize> = FxHashMap::default();
        for &number in &flow.frames[frame as usize].instructions {
            if let Some((inner, _)) = flow.nodes[number as usize].enters {
                let unit = *loops.entry(inner).or_insert_with(|| {
                    units.push((Item::Loop(inner), Vec::new()));
                    units.len() - 1
                });
                units[unit].1.push(number);
                unit_of.insert(number, unit);
                continue;
            }
            if !self.is_move[number as usize] {
                unit_of.insert(number, units.len());
                units.push((Item::Run(number), vec![number]));
            }
        }
        for (&inner, &unit) in &loops {
            for &exit in &self.shapes[inner as usize].exits {
                unit_of.insert(exit, unit);
            }
        }
        let condition = self.shapes[frame as usize].condition;
        let condition = condition
            .and_then(|condition| self.maker(condition, 0))
            .map(|(maker, _)| maker);
        let mut waits: Vec<Vec<usize>> = Vec::with_capacity(units.len());
        for (unit, (_, numbers)) in units.iter().enumerate() {
            let mut before = BTreeSet::new();
            for &number in numbers {
                for maker in self.sources(number) {
                    let maker = match self.op(maker) {
                        "LoopCond" => condition?,
                        op if op.ends_with("Switch") && self.is_move[maker as usize] => condition?,
                        _ => maker,
                    };
                    before.extend(unit_of.get(&maker).copied().filter(|other| *other != unit));
                }
            }
            waits.push(before.into_iter().collect());
        }
        let order = sorted(&waits)?;
        let mut result = Vec::with_capacity(order.len());
        for unit in order {
            let (item, numbers) = &units[unit];
            let part = self.part(frame, *item, numbers)?;
            result.push((*item, part));
        }
        Some(result)
    }

    /// The instructions that an instruction waits for.
    fn sources(&self, number: u32) -> Vec<u32> {
        let inputs = 0..self.instructions[number as usize].inputs.len();
        let data = inputs.filter_map(|input| Some(self.maker(number, input)?.0));
        data.chain(self.controls[number as usize].iter().copied())
            .collect()
    }

    /// The part of the turn in which an item runs; the parts of what it waits for are known.
    fn part(&mut self, frame: u32, item: Item, numbers: &[u32]) -> Option<Part> {
        let mut part = Part::Head;
        let mut parts = Vec::new();
        for &number in numbers {
            for input in 0..self.instructions[number as usize].inputs.len() {
                if let Some((maker, output)) = self.maker(number, input) {
                    parts.push(self.part_of_value(frame, maker, output)?);
                }
            }
            for &control in &self.controls[number as usize] {
                // A node that waits for a next value waits for another turn.
                if self.flow.nodes[control as usize].kind == FlowKind::NextIteration {
                    return None;
                }
                parts.push(self.parts.get(&control).copied().unwrap_or(Part::Head));
            }
        }
        for &other in &parts {
            part = part.join(other)?;
        }
        if let Item::Run(number) = item {
            // A merge is alive when one input is: all must be of one part.
            let is_merge = self.flow.nodes[number as usize].kind == FlowKind::Merge;
            if is_merge && parts.iter().any(|other| *other != part) {
                return None;
            }
            self.parts.insert(number, part);
        }
        if let Item::Loop(inner) = item {
            for &exit in &self.shapes[inner as usize].exits {
                self.parts.insert(exit, part);
            }
        }
        Some(part)
    }

    /// The part of the turn in which a value is there.
    fn part_of_value(&self, frame: u32, maker: u32, output: u32) -> Option<Part> {
        let is_switch = self.shapes[frame as usize].switches.contains(&maker);
        Some(match (is_switch, output) {
            (true, 0) => Part::Tail,
            (true, _) => Part::Body,
            _ => self.parts.get(&maker).copied().unwrap_or(Part::Head),
        })
    }

    fn region(&self, frame: usize, order: Vec<(Item, Part)>) -> Option<StructuredLoop> {
        let mut made = StructuredLoop::default();
        for (item, part) in order {
            match part {
                Part::Head => made.head.push(item),
                Part::Body => made.body.push(item),
                Part::Tail => made.tail.push(item),
            }
        }
        let shape = &self.shapes[frame];
        let output = |number: u32| self.instructions[number as usize].first_output;
        let entering = |number: u32, to: u32| {
            let input = self.instructions[number as usize].inputs[0];
            Move {
                from: input.source,
                to,
                is_ref: input.is_ref,
            }
        };
        for &constant in &shape.constants {
            made.enters.push(entering(constant, output(constant)));
        }
        for &(merge, enter, next) in &shape.variables {
            made.enters.push(entering(enter, output(merge)));
            made.variables.push(output(merge));
            let (maker, index) = self
                .maker(next, 0)
                .map_or((None, 0), |(maker, index)| (Some(maker), index));
            if let Some(maker) = maker
                && self.part_of_value(frame as u32, maker, index)? != Part::Body
            {
                return None;
            }
            maker?;
            made.next.push(entering(next, output(merge)));
        }
        made.condition = Some(self.instructions[shape.condition? as usize].inputs[0].source);
        for &switch in &shape.switches {
            let uses = &self.instructions[switch as usize].output_uses;
            let data = self.maker(switch, 0);
            // What is switched must be there before the condition is known.
            if let Some((maker, index)) = data
                && self.part_of_value(frame as u32, maker, index)? != Part::Head
            {
                return None;
            }
            if uses.len() != 2 {
                return None;
            }
            if uses[1] > 0 {
                made.into_body.push(entering(switch, output(switch) + 1));
            }
            if uses[0] > 0 {
                made.into_tail.push(entering(switch, output(switch)));
            }
        }
        for &exit in &shape.exits {
            let (maker, index) = self.maker(exit, 0)?;
            if self.part_of_value(frame as u32, maker, index)? != Part::Tail {
                return None;
            }
            made.exits.push(entering(exit, output(exit)));
        }
        for &number in &self.flow.frames[frame].instructions {
            let instruction = &self.instructions[number as usize];
            if self.flow.nodes[number as usize].kind != FlowKind::Exit {
                let slots =
                    instruction.first_output..instruction.first_output + instruction.output_uses.len() as u32;
                made.inner.extend(slots);
            }
        }
        made.inner
            .extend(shape.constants.iter().map(|&number| output(number)));
        made.enter_nodes
            .extend(shape.variables.iter().map(|&(_, enter, _)| enter));
        made.enter_nodes.extend(&shape.constants);
        made.exit_nodes.extend(&shape.exits);
        made.name_hash = self.flow.frames[frame].name_hash;
        Some(made)
    }

    /// Instructions that may be dead: what comes after a conditional. A loop is left out as a whole, so that nothing in it
    /// is dead because of what comes before it.
    fn uncertain(&self) -> Vec<bool> {
        let mut uncertain = vec![false; self.instructions.len()];
        let mut loops = vec![false; self.flow.frames.len()];
        for number in 0..self.instructions.len() as u32 {
            let node = &self.flow.nodes[number as usize];
            let is_conditional = node.kind == FlowKind::Switch && !self.is_move[number as usize];
            let mut maybe = is_conditional;
            for source in self.sources(number) {
                maybe |= source < number
                    && uncertain[source as usize]
                    && self.flow.nodes[source as usize].kind != FlowKind::Enter;
            }
            if let Some((inner, _)) = node.enters {
                loops[inner as usize] |= maybe;
            }
            if node.kind == FlowKind::Exit {
                maybe |= loops[node.frame as usize];
            }
            uncertain[number as usize] = maybe;
        }
        uncertain
    }

    /// What each slot can be read from instead: conditions of loops from where they are computed, constants that only wait
    /// for a turn from the plan, and identities from their inputs.
    fn rewrites(&self, fetches: &[Fetch], constants: &mut Vec<Tensor>) -> Rewrites {
        let mut rewrites = Rewrites::default();
        let fetched: BTreeSet<u32> = fetches
            .iter()
            .filter_map(|fetch| match fetch {
                Fetch::Slot(slot) => Some(*slot),
                Fetch::Constant(_) => None,
            })
            .collect();
        let uncertain = self.uncertain();
        for (instruction, number) in self.instructions.iter().zip(0u32..) {
            let slot = instruction.first_output;
            let quiet = !uncertain[number as usize] && !fetched.contains(&slot);
            let node = instruction.executable.node();
            match node.op_name() {
                "LoopCond" if self.is_move[number as usize] => {
                    rewrites.slots.insert(slot, instruction.inputs[0].source);
                }
                "Const" if quiet => {
                    let Ok(value) = node.attrs.tensor("value") else {
                        continue;
                    };
                    rewrites
                        .slots
                        .insert(slot, Source::Constant(constants.len() as u32));
                    constants.push(value.clone());
                    rewrites.dropped.insert(number);
                }
                "Identity" if quiet && self.can_look_through(number) => {
                    rewrites.slots.insert(slot, instruction.inputs[0].source);
                    rewrites.dropped.insert(number);
                }
                _ => {}
            }
        }
        rewrites
    }

    /// Whether an identity's input is a value of the same part of the turn, and not a variable that must be read when the
    /// identity runs.
    fn can_look_through(&self, number: u32) -> bool {
        let Some((maker, output)) = self.maker(number, 0) else {
            return matches!(
                self.instructions[number as usize].inputs[0].source,
                Source::Constant(_)
            );
        };
        let frame = self.flow.nodes[number as usize].frame;
        let node = self.instructions[maker as usize].executable.node();
        !node.output_types[output as usize].is_ref()
            && self.part_of_value(frame, maker, output) == self.parts.get(&number).copied()
    }
}

/// Which slots are read from elsewhere, and which instructions need not run.
#[derive(Default)]
struct Rewrites {
    slots: FxHashMap<u32, Source>,
    dropped: BTreeSet<u32>,
}

impl Rewrites {
    fn follow(&self, mut source: Source) -> Source {
        while let Source::Slot { slot, .. } = source {
            match self.slots.get(&slot) {
                Some(&next) => source = next,
                None => break,
            }
        }
        source
    }
}

fn apply(rewrites: &Rewrites, structured: &mut Structured, instructions: &mut [Instruction]) {
    for instruction in instructions.iter_mut() {
        for input in &mut instruction.inputs {
            input.source = rewrites.follow(input.source);
        }
    }
    let keeps = |item: &Item| !matches!(item, Item::Run(number) if rewrites.dropped.contains(number));
    structured.top.retain(keeps);
    for region in &mut structured.loops {
        for items in [&mut region.head, &mut region.body, &mut region.tail] {
            items.retain(keeps);
        }
        let moves = region.enters.iter_mut().chain(&mut region.into_body);
        let moves = moves
            .chain(&mut region.next)
            .chain(&mut region.into_tail)
            .chain(&mut region.exits);
        for step in moves {
            step.from = rewrites.follow(step.from);
        }
        region.condition = region.condition.map(|source| rewrites.follow(source));
    }
}

/// Marks what is to be told its turn.
fn tell_turns(structured: &mut Structured, flow: &Flow) {
    for region in &mut structured.loops {
        for item in [&mut region.head, &mut region.body, &mut region.tail]
            .into_iter()
            .flatten()
        {
            match *item {
                Item::Run(number) if flow.nodes[number as usize].may_ask => *item = Item::RunAsking(number),
                _ => {}
            }
        }
    }
}

/// An order of units in which each comes after those that it waits for, else by number. None for a cycle.
fn sorted(waits: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    let mut counts: Vec<usize> = Vec::with_capacity(waits.len());
    for (unit, before) in waits.iter().enumerate() {
        counts.push(before.len());
        for &other in before {
            readers[other].push(unit);
        }
    }
    let mut ready: BTreeSet<usize> = (0..waits.len()).filter(|&unit| counts[unit] == 0).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(unit) = ready.pop_first() {
        order.push(unit);
        for &reader in &readers[unit] {
            counts[reader] -= 1;
            if counts[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    (order.len() == waits.len()).then_some(order)
}
