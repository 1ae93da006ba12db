//! Gradients of v1 loops: a second loop that takes the turns back, the last one first.
//!
//! The forward loop gets a counter; the backward loop makes as many turns. Its variables are the gradients of the forward
//! loop's variables, and its body is the gradient of the forward body. Forward values that the body reads are kept on
//! stacks, one push and one pop for each turn; the counters wait for them, so that both go in order. Values that are the
//! same in all turns are handed to the backward loop as they are, and their gradients add up.
//!
//! Assumes loops of the shape that `TF_NewWhile` and the reference's Python build. Does not differentiate loops within
//! loops: their `Exit` has no gradient.

use crate::gradients::{Host, Walk};
use crate::{Graph, NodeId};
use ff_op::{Attrs, GradientHost, OutputRef};
use ff_tensor::{DataType, Result, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

/// A variable of a loop: `Enter -> Merge -> Switch -> body -> NextIteration -> Merge`, and `Switch -> Exit`.
struct Variable {
    enter: NodeId,
    switch: NodeId,
    next: NodeId,
    exit: Option<NodeId>,
}

/// A loop in the graph.
pub(crate) struct ForwardLoop {
    condition: NodeId,
    variables: Vec<Variable>,
    /// `Enter` nodes of values that are the same in all turns.
    constants: Vec<NodeId>,
    inside: FxHashSet<NodeId>,
}

impl ForwardLoop {
    /// The loops of a graph that can be differentiated.
    pub(crate) fn all(graph: &Graph) -> Vec<ForwardLoop> {
        let conditions = graph
            .nodes()
            .filter(|(_, node)| node.info.op_name() == "LoopCond");
        let loops: Vec<ForwardLoop> = conditions
            .filter_map(|(id, _)| ForwardLoop::of(graph, id))
            .collect();
        let is_outermost = |candidate: &ForwardLoop| {
            let from: Vec<NodeId> = candidate
                .enters()
                .map(|enter| graph.node(enter).inputs[0].node)
                .collect();
            let nested = |inside: &FxHashSet<NodeId>| from.iter().any(|id| inside.contains(id));
            !loops.iter().any(|other| nested(&other.inside))
        };
        let keep: Vec<bool> = loops
            .iter()
            .map(|candidate| is_outermost(candidate) && candidate.is_innermost(graph))
            .collect();
        let kept = loops.into_iter().zip(keep).filter(|(_, keep)| *keep);
        kept.map(|(found, _)| found).collect()
    }

    fn of(graph: &Graph, condition: NodeId) -> Option<ForwardLoop> {
        let mut variables = Vec::new();
        for &(switch, _) in graph.node(condition).consumers.first()? {
            let merge = graph.node(graph.node(switch).inputs[0].node);
            let ([enter, next], "Merge") = (&merge.inputs[..], merge.info.op_name()) else {
                continue;
            };
            let is_variable = graph.node(enter.node).info.op_name() == "Enter"
                && graph.node(next.node).info.op_name() == "NextIteration";
            if !is_variable {
                return None;
            }
            let leaves = graph.node(switch).consumers.first();
            let exit = leaves.into_iter().flatten().map(|(reader, _)| *reader);
            let mut exit = exit.filter(|reader| graph.node(*reader).info.op_name() == "Exit");
            variables.push(Variable {
                enter: enter.node,
                switch,
                next: next.node,
                exit: exit.next(),
            });
        }
        let frame = frame_of(graph, variables.first()?.enter);
        let constants = graph.nodes().filter(|(_, node)| {
            let attrs = &node.info.attrs;
            node.info.op_name() == "Enter"
                && attrs.bool("is_constant") == Ok(true)
                && attrs.string("frame_name") == Ok(frame)
        });
        let constants: Vec<NodeId> = constants.map(|(id, _)| id).collect();
        let starts = variables.iter().map(|variable| variable.enter);
        let inside = inside(graph, starts.chain(constants.iter().copied()));
        Some(ForwardLoop {
            condition,
            variables,
            constants,
            inside,
        })
    }

    /// All its `Enter` nodes.
    pub(crate) fn enters(&self) -> impl Iterator<Item = NodeId> + '_ {
        let variables = self.variables.iter().map(|variable| variable.enter);
        variables.chain(self.constants.iter().copied())
    }

    /// Its `Exit` nodes.
    pub(crate) fn exits(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.variables.iter().filter_map(|variable| variable.exit)
    }

    /// Its nodes but the `Exit`s.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.inside.iter().copied()
    }

    /// Whether no loop is in it.
    fn is_innermost(&self, graph: &Graph) -> bool {
        let own: FxHashSet<NodeId> = self.enters().collect();
        let foreign = |id: &NodeId| graph.node(*id).info.op_name() == "Enter" && !own.contains(id);
        !self.inside.iter().any(foreign)
    }
}

fn frame_of(graph: &Graph, enter: NodeId) -> &str {
    graph.node(enter).info.attrs.string("frame_name").unwrap_or("")
}

/// Everything after the `Enter`s up to the `Exit`s, which are not part of it.
fn inside(graph: &Graph, enters: impl Iterator<Item = NodeId>) -> FxHashSet<NodeId> {
    let mut inside = FxHashSet::default();
    let mut stack: Vec<NodeId> = enters.collect();
    while let Some(id) = stack.pop() {
        let node = graph.node(id);
        if node.info.op_name() == "Exit" || !inside.insert(id) {
            continue;
        }
        stack.extend(node.consumers.iter().flatten().map(|(reader, _)| *reader));
        stack.extend(&node.control_outputs);
    }
    inside
}

/// Builds nodes of loops in a graph that is being differentiated.
struct Maker<'a, 'b> {
    host: &'a mut Host<'b>,
    parallel_iterations: i64,
}

/// A loop variable in the making.
#[derive(Clone, Copy)]
struct Turning {
    merge: NodeId,
    switch: NodeId,
}

impl Turning {
    /// Its value in a turn.
    fn value(self) -> OutputRef {
        OutputRef {
            node: self.switch,
            index: 1,
        }
    }
}

/// A counter: its loop, and what makes other nodes part of a turn.
struct Counter {
    frame: String,
    condition: OutputRef,
    /// Runs once in each turn.
    pivot: NodeId,
    /// Ends the turn; what must be done in the turn goes before.
    step: NodeId,
    exit: OutputRef,
}

fn first(node: NodeId) -> OutputRef {
    OutputRef { node, index: 0 }
}

impl Maker<'_, '_> {
    fn node(
        &mut self,
        op: &str,
        inputs: &[OutputRef],
        attrs: Attrs,
        controls: &[NodeId],
    ) -> Result<OutputRef> {
        let name = self.host.free_name(op);
        let (inputs, controls) = (inputs.to_vec(), controls.to_vec());
        let graph = &mut *self.host.graph;
        Ok(first(graph.add_checked(op, &name, "", attrs, inputs, controls)?))
    }

    fn constant(&mut self, value: i32, controls: &[NodeId]) -> Result<OutputRef> {
        let attrs = Attrs::new()
            .with("dtype", DataType::INT32)
            .with("value", Tensor::scalar(value)?);
        self.node("Const", &[], attrs, controls)
    }

    fn enter(&mut self, value: OutputRef, frame: &str, constant: bool) -> Result<OutputRef> {
        let attrs = Attrs::new()
            .with("frame_name", frame)
            .with("is_constant", constant)
            .with("parallel_iterations", self.parallel_iterations);
        self.node("Enter", &[value], attrs, &[])
    }

    /// A variable up to its merge, whose second input comes later.
    fn merge(&mut self, start: OutputRef, frame: &str) -> Result<OutputRef> {
        let enter = self.enter(start, frame, false)?;
        self.node("Merge", &[enter, enter], Attrs::new(), &[])
    }

    fn switch(&mut self, merge: OutputRef, condition: OutputRef) -> Result<Turning> {
        let switch = self.node("Switch", &[merge, condition], Attrs::new(), &[])?;
        Ok(Turning {
            merge: merge.node,
            switch: switch.node,
        })
    }

    /// Ends a variable's turn with this value; gives the variable after the last turn.
    fn close(&mut self, variable: Turning, next: OutputRef) -> Result<OutputRef> {
        let next = self.node("NextIteration", &[next], Attrs::new(), &[])?;
        self.host.graph.replace_input(variable.merge, 1, next)?;
        self.node("Exit", &[first(variable.switch)], Attrs::new(), &[])
    }

    /// Counts the turns of a loop; part of that loop.
    fn count_up(&mut self, frame: &str, condition: OutputRef) -> Result<Counter> {
        let zero = self.constant(0, &[])?;
        let merge = self.merge(zero, frame)?;
        self.finish_counter(merge, frame, condition, "AddV2")
    }

    /// A loop of as many turns.
    fn count_down(&mut self, count: OutputRef, frame: &str) -> Result<Counter> {
        let merge = self.merge(count, frame)?;
        let zero = self.constant(0, &[merge.node])?;
        let left = self.node("Greater", &[merge, zero], Attrs::new(), &[])?;
        let condition = self.node("LoopCond", &[left], Attrs::new(), &[])?;
        self.finish_counter(merge, frame, condition, "Sub")
    }

    fn finish_counter(
        &mut self,
        merge: OutputRef,
        frame: &str,
        condition: OutputRef,
        step: &str,
    ) -> Result<Counter> {
        let variable = self.switch(merge, condition)?;
        let pivot = self.node("Identity", &[variable.value()], Attrs::new(), &[])?;
        let one = self.constant(1, &[pivot.node])?;
        let step = self.node(step, &[pivot, one], Attrs::new(), &[])?;
        Ok(Counter {
            frame: frame.to_string(),
            condition,
            pivot: pivot.node,
            step: step.node,
            exit: self.close(variable, step)?,
        })
    }

    fn zeros_like(&mut self, value: OutputRef) -> Result<OutputRef> {
        self.node("ZerosLike", &[value], Attrs::new(), &[])
    }
}

/// Adds the gradient of a loop. `incoming` has the gradient of each `Exit`, where there is one. Gives the gradient of what
/// goes into each `Enter`.
pub(crate) fn add(
    host: &mut Host,
    forward: &ForwardLoop,
    incoming: &FxHashMap<NodeId, OutputRef>,
) -> Result<Vec<(NodeId, OutputRef)>> {
    let attrs = host.graph.node(forward.variables[0].enter).info.attrs.clone();
    let parallel_iterations = attrs.int("parallel_iterations")?;
    let mut maker = Maker {
        host,
        parallel_iterations,
    };
    let up = maker.count_up(attrs.string("frame_name")?, first(forward.condition))?;
    let frame = maker.host.free_name(&up.frame);
    let down = maker.count_down(up.exit, &frame)?;
    let flows = |graph: &Graph, enter: NodeId| {
        let dtype = graph.output_type(first(enter)).map(DataType::base);
        dtype.is_ok_and(|dtype| dtype.is_floating() || dtype.is_complex())
    };
    let mut turning = Vec::new();
    for variable in &forward.variables {
        if flows(maker.host.graph, variable.enter) {
            let start = start(&mut maker, variable, incoming)?;
            let merge = maker.merge(start, &down.frame)?;
            turning.push((variable, maker.switch(merge, down.condition)?));
        }
    }
    let constants: Vec<NodeId> = forward.constants.clone();
    let constants: Vec<NodeId> = constants
        .into_iter()
        .filter(|enter| flows(maker.host.graph, *enter))
        .collect();
    let before = maker.host.graph.len();
    let body = body_gradients(&mut maker, forward, &turning, &constants)?;
    let mut results = Vec::new();
    let (of_variables, of_constants) = body.split_at(turning.len());
    for ((variable, backward), gradient) in turning.iter().zip(of_variables) {
        let next = match gradient {
            Some(gradient) => *gradient,
            None => maker.zeros_like(backward.value())?,
        };
        results.push((variable.enter, maker.close(*backward, next)?));
    }
    for (enter, gradient) in constants.iter().zip(of_constants) {
        let Some(gradient) = gradient else { continue };
        let outside = maker.host.graph.node(*enter).inputs[0];
        let start = maker.zeros_like(outside)?;
        let merge = maker.merge(start, &down.frame)?;
        let sum = maker.switch(merge, down.condition)?;
        let next = maker.node("AddN", &[sum.value(), *gradient], Attrs::new(), &[])?;
        results.push((*enter, maker.close(sum, next)?));
    }
    let mut capture = Capture {
        maker,
        forward,
        up: &up,
        down: &down,
        brought: FxHashMap::default(),
    };
    capture.run(before)?;
    Ok(results)
}

/// What the gradient of a variable starts with: what came in for its `Exit`, or zeros.
fn start(
    maker: &mut Maker,
    variable: &Variable,
    incoming: &FxHashMap<NodeId, OutputRef>,
) -> Result<OutputRef> {
    let exit = match variable.exit {
        Some(exit) => first(exit),
        None => maker.node("Exit", &[first(variable.switch)], Attrs::new(), &[])?,
    };
    match incoming.get(&exit.node) {
        Some(gradient) => Ok(*gradient),
        None => maker.zeros_like(exit),
    }
}

/// The gradients of the body: one for each variable, then one for each constant.
fn body_gradients(
    maker: &mut Maker,
    forward: &ForwardLoop,
    turning: &[(&Variable, Turning)],
    constants: &[NodeId],
) -> Result<Vec<Option<OutputRef>>> {
    let graph = &*maker.host.graph;
    let outputs: Vec<OutputRef> = turning
        .iter()
        .map(|(variable, _)| graph.node(variable.next).inputs[0])
        .collect();
    let value = |variable: &Variable| OutputRef {
        node: variable.switch,
        index: 1,
    };
    let inputs = turning.iter().map(|(variable, _)| value(variable));
    let inputs: Vec<OutputRef> = inputs
        .chain(constants.iter().map(|enter| first(*enter)))
        .collect();
    let incoming: Vec<OutputRef> = turning.iter().map(|(_, backward)| backward.value()).collect();
    if outputs.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    let mut edge: FxHashSet<NodeId> = forward.enters().chain(forward.exits()).collect();
    edge.extend(
        forward
            .variables
            .iter()
            .flat_map(|variable| [variable.switch, variable.next]),
    );
    let walk = Walk::within(maker.host, &outputs, &inputs, &edge);
    walk.run(maker.host, &outputs, &incoming)
}

/// Brings forward values into the backward loop.
struct Capture<'a, 'b, 'c> {
    maker: Maker<'a, 'b>,
    forward: &'c ForwardLoop,
    up: &'c Counter,
    down: &'c Counter,
    brought: FxHashMap<OutputRef, OutputRef>,
}

impl Capture<'_, '_, '_> {
    /// Looks at all nodes from `start` on, which are of the backward loop.
    fn run(&mut self, start: usize) -> Result<()> {
        for id in start as NodeId..self.maker.host.graph.len() as NodeId {
            let node = self.maker.host.graph.node(id);
            // Those outside of the loop: what accumulators start with.
            if matches!(node.info.op_name(), "Enter" | "Exit") {
                continue;
            }
            let inputs = node.inputs.clone();
            if inputs.is_empty() && node.control_inputs.is_empty() {
                self.maker.host.graph.add_control_edge(self.down.pivot, id);
            }
            for (index, input) in inputs.iter().enumerate() {
                if self.forward.inside.contains(&input.node) {
                    let value = self.bring(*input)?;
                    self.maker.host.graph.replace_input(id, index, value)?;
                }
            }
        }
        Ok(())
    }

    fn bring(&mut self, value: OutputRef) -> Result<OutputRef> {
        if let Some(brought) = self.brought.get(&value) {
            return Ok(*brought);
        }
        let node = self.maker.host.graph.node(value.node);
        let brought = if self.forward.constants.contains(&value.node) {
            let outside = node.inputs[0];
            self.maker.enter(outside, &self.down.frame, true)?
        } else if node.info.op_name() == "Const" {
            let attrs = node.info.attrs.clone();
            self.maker.node("Const", &[], attrs, &[self.down.pivot])?
        } else {
            self.stack(value)?
        };
        self.brought.insert(value, brought);
        Ok(brought)
    }

    /// Keeps a value of every turn on a stack; gives what comes off it.
    fn stack(&mut self, value: OutputRef) -> Result<OutputRef> {
        let dtype = self.maker.host.graph.output_type(value)?.base();
        let unlimited = self.maker.constant(-1, &[])?;
        let element = Attrs::new().with("elem_type", dtype);
        let stack = self.maker.node("StackV2", &[unlimited], element.clone(), &[])?;
        let (up, down) = (self.up, self.down);
        let handle = self.maker.enter(stack, &up.frame, true)?;
        let push = self
            .maker
            .node("StackPushV2", &[handle, value], Attrs::new(), &[up.pivot])?;
        self.maker.host.graph.add_control_edge(push.node, up.step);
        let handle = self.maker.enter(stack, &down.frame, true)?;
        let pop = self.maker.node("StackPopV2", &[handle], element, &[down.pivot])?;
        self.maker.host.graph.add_control_edge(pop.node, down.step);
        let shape = self.maker.host.shape(value);
        self.maker.host.graph.set_shape(pop, shape);
        Ok(pop)
    }
}
