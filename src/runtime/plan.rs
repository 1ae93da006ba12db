//! A plan: what is needed to run certain fetches and targets from certain feeds, worked out once.
//!
//! A plan is immutable and shared by threads. What changes while it runs is in a [`crate::frame::Frame`].

use crate::device::kind_for;
use crate::flow::{Flow, FlowKind};
use crate::frame::Frame;
use crate::parallel::Tuning;
use crate::sketch::{Seen, Sketch};
use crate::slots::{self, Classes};
use crate::structured::Structured;
use crate::transfer;
use crate::waiting::Waits;
use ff_graph::{Graph, NodeId};
use ff_op::{Executable, KernelHost, OutputRef, Specialization};
use ff_tensor::{DataType, Result, Status, Tensor, bail, ensure, status};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a plan is made for. The order of feeds and fetches is that of the values at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Outputs whose values are given.
    pub feeds: SmallVec<[OutputRef; 4]>,
    /// Outputs whose values are wanted.
    pub fetches: SmallVec<[OutputRef; 4]>,
    /// Nodes to run.
    pub targets: SmallVec<[NodeId; 2]>,
}

/// Where an input comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A slot of the frame; `last` when no later instruction reads it and it is not fetched.
    Slot {
        /// Number of the slot.
        slot: u32,
        /// Whether the value can be taken.
        last: bool,
    },
    /// A constant of the plan.
    Constant(u32),
}

/// An input of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Where it comes from.
    pub source: Source,
    /// Whether the op wants the variable itself, not its value.
    pub is_ref: bool,
}

/// One node to run.
pub struct Instruction {
    /// The node with its kernel.
    pub executable: Arc<Executable>,
    /// Its inputs.
    pub inputs: SmallVec<[Input; 4]>,
    /// Slots of its outputs start here; they are free before it runs.
    pub first_output: u32,
    /// For each output, how many instructions and fetches read it.
    pub output_uses: SmallVec<[u32; 2]>,
    /// Number of instructions that must end before this one by a control edge.
    pub control_inputs: u32,
    /// Instructions that this one holds back by a control edge.
    pub control_outputs: Vec<u32>,
    /// Number of its class: see [`Plan::classes`].
    pub class: u32,
    /// The device that it runs on; none for that of the caller.
    pub device: Option<u16>,
    /// Whether it is a merge, which runs when one input is there.
    pub is_merge: bool,
}

/// How a plan runs.
pub enum Engine {
    /// In order, or in parallel where that was found to pay.
    StraightLine(Box<Tuning>),
    /// In order, loops and conditionals as nested regions.
    Structured(Box<Structured>),
    /// In order as far as kernels need not wait.
    Waiting(Box<Waits>),
    /// As inputs arrive.
    Dataflow(Box<Flow>),
}

/// A value that a fetch gives.
#[derive(Clone, Copy, Debug)]
pub enum Fetch {
    /// From a slot.
    Slot(u32),
    /// A constant of the plan.
    Constant(u32),
}

impl Fetch {
    /// The slot, if it is in one.
    pub fn slot(&self) -> Option<u32> {
        match self {
            Fetch::Slot(slot) => Some(*slot),
            Fetch::Constant(_) => None,
        }
    }
}

/// See the module.
pub struct Plan {
    /// In an order in which they can run.
    pub instructions: Vec<Instruction>,
    /// Number of slots in a frame.
    pub slots: usize,
    /// Slot and element type of each feed; none when nothing reads it.
    pub feeds: Vec<(u32, DataType)>,
    /// Where each fetch's value is.
    pub fetches: Vec<Fetch>,
    /// Values of constants.
    pub constants: Vec<Tensor>,
    /// Specializations that any frame has worked out, by class. Nodes of one op with equal attributes are of one class:
    /// what is worked out for one serves all.
    pub classes: Vec<Mutex<Vec<Arc<Specialization>>>>,
    /// How it runs.
    pub engine: Engine,
    frames: Mutex<Vec<Frame>>,
}

/// Frames kept for reuse by a plan.
const FRAMES_KEPT: usize = 16;

impl Plan {
    /// Works out the plan. `host` makes kernel instances; errors name every op that has no kernel.
    pub fn build(graph: &Graph, signature: &Signature, host: &dyn KernelHost) -> Result<Plan> {
        let order = checked_order(graph, signature)?;
        Assembly::new(graph, signature, host).assemble(&order, host, false)
    }

    /// As [`Plan::build`], for a graph that has nodes in common with that of an earlier plan: what is known of these is
    /// shared.
    pub fn build_after(
        graph: &Graph,
        signature: &Signature,
        host: &dyn KernelHost,
        earlier: &Sketch,
    ) -> Result<Plan> {
        let order = checked_order(graph, signature)?;
        let mut assembly = Assembly::new(graph, signature, host);
        assembly.earlier = Some(earlier);
        let plan = assembly.assemble(&order, host, false)?;
        for instruction in &plan.instructions {
            if let Some(seen) = earlier.of(instruction.executable.node()) {
                plan.classes[instruction.class as usize]
                    .lock()
                    .clone_from(&seen.known);
            }
        }
        Ok(plan)
    }

    /// What is known of the nodes by now.
    pub fn sketch(&self) -> Sketch {
        let classes: Vec<_> = self.classes.iter().map(|class| class.lock().clone()).collect();
        let seen = |instruction: &Instruction| {
            let executable = instruction.executable.clone();
            let known = classes[instruction.class as usize].clone();
            Seen { executable, known }
        };
        Sketch::new(self.instructions.iter().map(seen))
    }

    /// As [`Plan::build`], and always with a flow: such a plan can stop where feeds have not come.
    pub fn build_partial(graph: &Graph, signature: &Signature, host: &dyn KernelHost) -> Result<Plan> {
        let order = checked_order(graph, signature)?;
        Assembly::new(graph, signature, host).assemble(&order, host, true)
    }

    /// How values flow, for a plan that runs as inputs arrive. INTERNAL for another.
    pub fn flow(&self) -> Result<&Flow> {
        match &self.engine {
            Engine::Dataflow(flow) => Ok(flow),
            _ => Err(status!(Internal, "a partial run has no flow")),
        }
    }

    /// A frame to run in: one used before, if there is one.
    pub fn take_frame(&self) -> Frame {
        self.frames
            .lock()
            .pop()
            .unwrap_or_else(|| Frame::new(self.slots, self.instructions.len()))
    }

    /// Gives a frame back, its values dropped.
    pub fn return_frame(&self, mut frame: Frame) {
        frame.clear();
        let mut frames = self.frames.lock();
        if frames.len() < FRAMES_KEPT {
            frames.push(frame);
        }
    }
}

/// The nodes that are needed, in an order in which they can run. The error names every op that has no kernel.
fn checked_order(graph: &Graph, signature: &Signature) -> Result<Vec<NodeId>> {
    let order = needed_in_order(graph, signature)?;
    let missing: Vec<String> = order
        .iter()
        .map(|&id| &graph.node(id).info)
        .filter(|info| info.op_name() != "Const" && info.op.kernel_for(info, kind_for(info)).is_none())
        .map(|info| format!("{} (op: {})", info.describe(), info.op_name()))
        .collect();
    if missing.is_empty() {
        return Ok(order);
    }
    Err(missing_kernels(graph, &order, missing))
}

/// The error for nodes without kernels: the reference's text for the first, then the list of all.
fn missing_kernels(graph: &Graph, order: &[NodeId], missing: Vec<String>) -> Status {
    let first = order
        .iter()
        .map(|&id| &graph.node(id).info)
        .find(|info| info.op_name() != "Const" && info.op.kernel_for(info, kind_for(info)).is_none());
    let (op, node) = first.map_or_else(Default::default, |info| {
        (info.op_name().to_string(), info.describe())
    });
    status!(
        InvalidArgument,
        "No OpKernel was registered to support Op '{op}' used by {node} on CPU. Every node of this run without a kernel: {}",
        missing.join(", ")
    )
}

/// The nodes that the fetches and targets need, in an order in which they can run. Feeds cut their edges.
fn needed_in_order(graph: &Graph, signature: &Signature) -> Result<Vec<NodeId>> {
    let fed: FxHashSet<OutputRef> = signature.feeds.iter().copied().collect();
    let mut needed = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = signature.targets.to_vec();
    stack.extend(
        signature
            .fetches
            .iter()
            .filter(|fetch| !fed.contains(fetch))
            .map(|fetch| fetch.node),
    );
    while let Some(id) = stack.pop() {
        ensure!(
            (id as usize) < needed.len(),
            InvalidArgument,
            "node {id} is not in the graph"
        );
        if std::mem::replace(&mut needed[id as usize], true) {
            continue;
        }
        let node = graph.node(id);
        stack.extend(
            node.inputs
                .iter()
                .filter(|input| !fed.contains(input))
                .map(|input| input.node),
        );
        stack.extend(&node.control_inputs);
    }
    let ids: Vec<NodeId> = (0..graph.len() as NodeId)
        .filter(|&id| needed[id as usize])
        .collect();
    let in_order = ids
        .iter()
        .all(|&id| predecessors(graph, id, &fed).all(|before| before < id));
    if in_order {
        Ok(ids)
    } else {
        sorted(graph, &ids, &fed)
    }
}

/// The nodes that must run before a node.
fn predecessors<'a>(
    graph: &'a Graph,
    id: NodeId,
    fed: &'a FxHashSet<OutputRef>,
) -> impl Iterator<Item = NodeId> + 'a {
    let node = graph.node(id);
    let data = node
        .inputs
        .iter()
        .filter(move |input| !fed.contains(input))
        .map(|input| input.node);
    data.chain(node.control_inputs.iter().copied())
}

/// Kahn's order. Back edges of v1 loops do not count. INVALID_ARGUMENT for any other cycle.
fn sorted(graph: &Graph, ids: &[NodeId], fed: &FxHashSet<OutputRef>) -> Result<Vec<NodeId>> {
    let is_back = |before: NodeId| {
        matches!(
            graph.node(before).info.op_name(),
            "NextIteration" | "RefNextIteration"
        )
    };
    let mut waiting: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut readers: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for &id in ids {
        let before: Vec<NodeId> = predecessors(graph, id, fed)
            .filter(|&before| !is_back(before))
            .collect();
        waiting.insert(id, before.len());
        for from in before {
            readers.entry(from).or_default().push(id);
        }
    }
    let mut ready: VecDeque<NodeId> = ids.iter().copied().filter(|id| waiting[id] == 0).collect();
    let mut order = Vec::with_capacity(ids.len());
    while let Some(id) = ready.pop_front() {
        order.push(id);
        for reader in readers.remove(&id).unwrap_or_default() {
            if let Some(count) = waiting.get_mut(&reader) {
                *count -= 1;
                if *count == 0 {
                    ready.push_back(reader);
                }
            }
        }
    }
    ensure!(
        order.len() == ids.len(),
        InvalidArgument,
        "Graph is invalid, contains a cycle with {} nodes",
        ids.len() - order.len()
    );
    Ok(order)
}

/// Builds the instructions.
struct Assembly<'a> {
    graph: &'a Graph,
    signature: &'a Signature,
    /// First output slot of each node with an instruction.
    node_slots: FxHashMap<NodeId, u32>,
    /// Constants by node.
    node_constants: FxHashMap<NodeId, u32>,
    feed_slots: FxHashMap<OutputRef, u32>,
    constants: Vec<Tensor>,
    classes: Classes,
    slots: u32,
    /// Numbers of devices by full name; nothing where there is one only.
    devices: FxHashMap<String, u16>,
    /// Slots of values that were brought to other devices.
    transferred: FxHashMap<(u32, u16), u32>,
    /// The device that each slot's value is on.
    slot_devices: FxHashMap<u32, Option<u16>>,
    /// What is known from an earlier plan.
    earlier: Option<&'a Sketch>,
}

impl<'a> Assembly<'a> {
    fn new(graph: &'a Graph, signature: &'a Signature, host: &dyn KernelHost) -> Assembly<'a> {
        let names = host.device_names();
        let devices = if names.len() > 1 {
            names.into_iter().zip(0u16..).collect()
        } else {
            FxHashMap::default()
        };
        Assembly {
            graph,
            devices,
            transferred: FxHashMap::default(),
            slot_devices: FxHashMap::default(),
            earlier: None,
            signature,
            node_slots: FxHashMap::default(),
            node_constants: FxHashMap::default(),
            feed_slots: FxHashMap::default(),
            constants: Vec::new(),
            classes: Classes::default(),
            slots: 0,
        }
    }

    fn assemble(mut self, order: &[NodeId], host: &dyn KernelHost, partial: bool) -> Result<Plan> {
        let mut feeds = Vec::with_capacity(self.signature.feeds.len());
        for feed in &self.signature.feeds {
            let dtype = self.graph.output_type(*feed)?.base();
            self.feed_slots.insert(*feed, self.slots);
            feeds.push((self.slots, dtype));
            self.slots += 1;
        }
        self.assign_slots(order)?;
        let mut instructions = Vec::with_capacity(order.len());
        let mut numbers: FxHashMap<NodeId, u32> = FxHashMap::default();
        for &id in order {
            if self.node_constants.contains_key(&id) {
                continue;
            }
            let mut instruction = self.instruction(id, host)?;
            if !self.devices.is_empty() {
                self.bring_inputs(&mut instruction, &mut instructions, host)?;
            }
            numbers.insert(id, instructions.len() as u32);
            instructions.push(instruction);
        }
        let mut fetches = self.fetches()?;
        mark_uses(&mut instructions, &fetches, self.slots);
        self.link(order, &numbers, &mut instructions);
        let engine = self.engine(&mut instructions, &mut fetches, feeds.len() as u32, partial)?;
        Ok(Plan {
            instructions,
            slots: self.slots as usize,
            feeds,
            fetches,
            constants: self.constants,
            classes: (0..self.classes.len()).map(|_| Mutex::default()).collect(),
            engine,
            frames: Mutex::default(),
        })
    }

    /// Chooses the engine, and numbers the slots as it wants them.
    fn engine(
        &mut self,
        instructions: &mut [Instruction],
        fetches: &mut [Fetch],
        feeds: u32,
        partial: bool,
    ) -> Result<Engine> {
        let slots = self.slots as usize;
        let has_flow = instructions
            .iter()
            .any(|instruction| FlowKind::of(instruction) != FlowKind::Plain);
        if partial || has_flow {
            let flow = Flow::of(instructions, feeds, fetches, slots)?;
            let regions = if partial {
                None
            } else {
                Structured::of(&flow, instructions, fetches, &mut self.constants)
            };
            return Ok(match regions {
                Some(structured) => Engine::Structured(Box::new(structured)),
                None => Engine::Dataflow(Box::new(flow)),
            });
        }
        if instructions
            .iter()
            .any(|instruction| instruction.executable.is_asynchronous())
        {
            let fetched: Vec<u32> = fetches.iter().filter_map(Fetch::slot).collect();
            return Ok(Engine::Waiting(Box::new(Waits::of(
                instructions,
                &fetched,
                slots,
            ))));
        }
        self.slots = slots::share(instructions, fetches, feeds, self.slots);
        Ok(Engine::StraightLine(Box::new(Tuning::new(instructions))))
    }

    /// Puts transfers before an instruction that reads values of other devices.
    fn bring_inputs(
        &mut self,
        instruction: &mut Instruction,
        instructions: &mut Vec<Instruction>,
        host: &dyn KernelHost,
    ) -> Result<()> {
        let to = instruction.device;
        let outputs = instruction.output_uses.len() as u32;
        for output in 0..outputs {
            self.slot_devices.insert(instruction.first_output + output, to);
        }
        let Some(to) = to else { return Ok(()) };
        let reader = instruction.executable.node().clone();
        for (index, input) in instruction.inputs.iter_mut().enumerate() {
            let Source::Slot { slot, .. } = input.source else {
                continue;
            };
            // A value of no device of its own is where the caller is; one that is not made yet comes around a loop.
            let from = self.slot_devices.get(&slot).copied().flatten();
            let Some(from) = from.filter(|from| *from != to && !input.is_ref) else {
                continue;
            };
            let brought = match self.transferred.get(&(slot, to)) {
                Some(&brought) => brought,
                None => {
                    let names = host.device_names();
                    let ends = [&names[usize::from(from)], &names[usize::from(to)]];
                    let number = self.transferred.len();
                    let pair = transfer::pair(&reader, index, ends, number, host)?;
                    let [send, receive] = pair;
                    let (sent, received) = (self.slots, self.slots + 1);
                    self.slots += 2;
                    let class = self.classes.of(send.node());
                    instructions.push(transfer::instruction(send, slot, sent, from, class));
                    let class = self.classes.of(receive.node());
                    instructions.push(transfer::instruction(receive, sent, received, to, class));
                    self.transferred.insert((slot, to), received);
                    received
                }
            };
            input.source = Source::Slot {
                slot: brought,
                last: false,
            };
        }
        Ok(())
    }

    fn assign_slots(&mut self, order: &[NodeId]) -> Result<()> {
        for &id in order {
            let info = &self.graph.node(id).info;
            if info.op_name() == "Const" && self.graph.node(id).control_inputs.is_empty() {
                self.node_constants.insert(id, self.constants.len() as u32);
                self.constants.push(info.attrs.tensor("value")?.clone());
            } else {
                self.node_slots.insert(id, self.slots);
                self.slots += info.output_types.len() as u32;
            }
        }
        Ok(())
    }

    fn source(&self, output: OutputRef) -> Result<Source> {
        if let Some(&slot) = self.feed_slots.get(&output) {
            return Ok(Source::Slot { slot, last: false });
        }
        if let Some(&constant) = self.node_constants.get(&output.node) {
            return Ok(Source::Constant(constant));
        }
        match self.node_slots.get(&output.node) {
            Some(first) => Ok(Source::Slot {
                slot: first + output.index,
                last: false,
            }),
            None => bail!(Internal, "node {} is read but not planned", output.node),
        }
    }

    /// The value of what a loop is given and never changes, if that is a constant.
    fn entered_constant(&self, value: OutputRef) -> Option<Tensor> {
        let constant = ff_graph::constant_behind(self.graph, value)?;
        self.graph
            .node(constant.node)
            .info
            .attrs
            .tensor("value")
            .ok()
            .cloned()
    }

    fn instruction(&mut self, id: NodeId, host: &dyn KernelHost) -> Result<Instruction> {
        let node = self.graph.node(id);
        let mut inputs = SmallVec::new();
        let mut constants = Vec::with_capacity(node.inputs.len());
        for (index, input) in node.inputs.iter().enumerate() {
            let source = self.source(*input)?;
            constants.push(match source {
                Source::Constant(constant) => Some(self.constants[constant as usize].clone()),
                Source::Slot { .. } => self.entered_constant(*input),
            });
            inputs.push(Input {
                source,
                is_ref: node.info.input_types[index].is_ref(),
            });
        }
        let executable = match self.earlier.and_then(|earlier| earlier.of(&node.info)) {
            Some(earlier) => earlier.executable.clone(),
            None => {
                let names = || ff_graph::input_names(self.graph, node);
                let kind = kind_for(&node.info);
                Executable::with_input_names(node.info.clone(), kind, &constants, &names, host)
                    .map(Arc::new)
                    .map_err(|error| crate::step::at_node(error, &node.info))?
            }
        };
        Ok(Instruction {
            executable,
            inputs,
            first_output: self.node_slots.get(&id).copied().unwrap_or(0),
            output_uses: SmallVec::from_elem(0, node.info.output_types.len()),
            control_inputs: 0,
            control_outputs: Vec::new(),
            class: self.classes.of(&node.info),
            device: self.devices.get(&node.info.device).copied(),
            is_merge: matches!(node.info.op_name(), "Merge" | "RefMerge"),
        })
    }

    fn fetches(&self) -> Result<Vec<Fetch>> {
        let fetch = |fetch: &OutputRef| match self.source(*fetch)? {
            Source::Slot { slot, .. } => Ok(Fetch::Slot(slot)),
            Source::Constant(constant) => Ok(Fetch::Constant(constant)),
        };
        self.signature.fetches.iter().map(fetch).collect()
    }

    /// Fills in control edges.
    fn link(&self, order: &[NodeId], numbers: &FxHashMap<NodeId, u32>, instructions: &mut [Instruction]) {
        for &id in order {
            let Some(&number) = numbers.get(&id) else { continue };
            for before in self
                .graph
                .node(id)
                .control_inputs
                .iter()
                .filter_map(|before| numbers.get(before))
            {
                instructions[*before as usize].control_outputs.push(number);
                instructions[number as usize].control_inputs += 1;
            }
        }
    }
}

/// Counts the readers of each output, and marks the last reader of each slot.
fn mark_uses(instructions: &mut [Instruction], fetches: &[Fetch], slots: u32) {
    let mut uses = vec![0u32; slots as usize];
    let mut fetched = vec![false; slots as usize];
    for fetch in fetches {
        if let Fetch::Slot(slot) = fetch {
            uses[*slot as usize] += 1;
            fetched[*slot as usize] = true;
        }
    }
    let mut seen = vec![false; slots as usize];
    for instruction in instructions.iter_mut().rev() {
        for input in instruction.inputs.iter_mut().rev() {
            if let Source::Slot { slot, last } = &mut input.source {
                let slot = *slot as usize;
                uses[slot] += 1;
                *last = !fetched[slot] && !std::mem::replace(&mut seen[slot], true);
            }
        }
    }
    for instruction in instructions {
        let first = instruction.first_output as usize;
        for (index, count) in instruction.output_uses.iter_mut().enumerate() {
            *count = uses[first + index];
        }
    }
}
