//! Reverse-mode differentiation of a graph: walks from the outputs back to the inputs and lets each op add the nodes of its
//! gradient.
//!
//! New nodes are named `gradients/..` (`gradients_1/..` when that is taken) or by the prefix given. On an error the graph
//! and its library are as before. Loops of v1 control flow are walked as one: see `loop_gradients.rs`.

use crate::gradient_functions::differentiate;
use crate::graph::Inputs;
use crate::loop_gradients::{self, ForwardLoop};
use crate::{Graph, NodeId, validate};
use ff_op::{
    Attrs, Differentiated, FunctionRef, Gradient, GradientContext, GradientHost, NodeInfo, OutputRef,
};
use ff_proto::FunctionDef;
use ff_tensor::{DataType, PartialShape, Result, bail, ensure, status};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The gradients of the sum of `outputs` in each of `inputs`; none where nothing flows. Along integers they flow where an
/// output is of that type.
///
/// `incoming` has a gradient for each output, or is empty for ones. INVALID_ARGUMENT for a prefix in use or empty, a wrong number of
/// incoming gradients, or an input that no output depends on; NOT_FOUND for an op without a gradient.
pub fn add_gradients(
    graph: &mut Graph,
    outputs: &[OutputRef],
    inputs: &[OutputRef],
    incoming: &[OutputRef],
    prefix: Option<&str>,
) -> Result<Vec<Option<OutputRef>>> {
    for output in outputs.iter().chain(inputs).chain(incoming) {
        graph.output_type(*output)?;
    }
    ensure!(
        incoming.is_empty() || incoming.len() == outputs.len(),
        InvalidArgument,
        "Must specify a gradient input for each output."
    );
    let scope = scope(graph, prefix)?;
    let before = graph.len();
    let mut host = Host::new(graph, &scope);
    let result = Walk::new(&host, outputs, inputs).and_then(|walk| walk.run(&mut host, outputs, incoming));
    let result = result.and_then(|gradients| match &host.stopped_at {
        Some(op) if gradients.iter().any(Option::is_none) => Err(no_gradient(op)),
        _ => Ok(gradients),
    });
    if result.is_err() {
        host.undo(before);
    }
    result
}

/// Ops at which gradients stop and an input is left without one. At others without a gradient, that is an error, as in the
/// reference: it knows of these only that they have none.
const STOPS: [&str; 22] = [
    "ApproximateEqual",
    "BroadcastGradientArgs",
    "ConcatOffset",
    "Const",
    "Equal",
    "Floor",
    "Greater",
    "GreaterEqual",
    "InvertPermutation",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "NotEqual",
    "OneHot",
    "Rank",
    "Shape",
    "ShapeN",
    "Size",
    "StopGradient",
    "ZerosLike",
];

/// The name before those of all new nodes.
fn scope(graph: &Graph, prefix: Option<&str>) -> Result<String> {
    let Some(prefix) = prefix else {
        return Ok(free_scope(graph));
    };
    ensure!(
        !prefix.is_empty(),
        InvalidArgument,
        "The prefix of gradients cannot be empty"
    );
    let is_in = |name: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut names = graph.nodes().map(|(_, node)| node.info.name.as_str());
    if let Some(name) = names.find(|name| is_in(name)) {
        bail!(
            InvalidArgument,
            "prefix [{prefix}] conflicts with existing node in the graph named [{name}]"
        );
    }
    Ok(prefix.to_string())
}

/// The first of `gradients`, `gradients_1` and so on that no node is called or is in. Looks at each node once.
fn free_scope(graph: &Graph) -> String {
    let number = |name: &str| {
        let rest = name.split('/').next()?.strip_prefix(SCOPE)?;
        if rest.is_empty() {
            return Some(0);
        }
        let digits = rest.strip_prefix('_')?;
        // Only as they are written here: `gradients_01` and `gradients_0` are in nobody's way.
        let number: u64 = digits.parse().ok()?;
        (number > 0 && digits == number.to_string()).then_some(number)
    };
    let names = graph.nodes().map(|(_, node)| node.info.name.as_str());
    let taken: FxHashSet<u64> = names.filter_map(number).collect();
    match (0..).find(|number| !taken.contains(number)) {
        None | Some(0) => SCOPE.to_string(),
        Some(number) => format!("{SCOPE}_{number}"),
    }
}

/// The scope of gradients that are given no other.
const SCOPE: &str = "gradients";

/// Whether gradients flow along values of this type.
pub(crate) fn is_trainable(dtype: DataType) -> bool {
    let dtype = dtype.base();
    dtype.is_floating() || dtype.is_complex() || matches!(dtype, DataType::RESOURCE | DataType::VARIANT)
}

/// The graph as gradient functions see it.
pub(crate) struct Host<'a> {
    pub(crate) graph: &'a mut Graph,
    scope: String,
    /// How often each name was used.
    numbers: FxHashMap<String, usize>,
    /// Forward nodes that were replaced: what they were, and their inputs.
    replaced: Vec<(NodeId, Arc<NodeInfo>, Inputs)>,
    functions: Vec<String>,
    /// The first op that gradients did not pass and that is not one of [`STOPS`].
    stopped_at: Option<String>,
}

impl<'a> Host<'a> {
    /// A host that names new nodes under `scope`, which nothing in the graph uses.
    pub(crate) fn new(graph: &'a mut Graph, scope: &str) -> Host<'a> {
        Host {
            graph,
            scope: scope.to_string(),
            numbers: FxHashMap::default(),
            replaced: Vec::new(),
            functions: Vec::new(),
            stopped_at: None,
        }
    }

    /// Takes all changes back; the graph had `before` nodes.
    fn undo(self, before: usize) {
        self.graph.truncate(before);
        for (id, info, inputs) in self.replaced.into_iter().rev() {
            self.graph.restore(id, info, inputs);
        }
        for function in self.functions {
            self.graph.functions().remove(&function);
        }
    }

    /// Takes over the functions that another host has added.
    pub(crate) fn adopt_functions(&mut self, other: Host) {
        self.functions.extend(other.functions);
    }

    /// A name that no node has.
    pub(crate) fn free_name(&mut self, hint: &str) -> String {
        let mut name = self.unique(hint);
        while self.graph.find(&name).is_some() {
            name = self.unique(hint);
        }
        name
    }

    fn unique(&mut self, hint: &str) -> String {
        let number = self.numbers.entry(hint.to_string()).or_default();
        *number += 1;
        match *number {
            1 => format!("{}/{hint}", self.scope),
            number => format!("{}/{hint}_{}", self.scope, number - 1),
        }
    }
}

impl GradientHost for Host<'_> {
    fn add_node(&mut self, op: &str, hint: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<u32> {
        let name = self.free_name(hint);
        self.graph
            .add_checked(op, &name, "", attrs, inputs.to_vec(), Vec::new())
    }

    fn node(&self, node: u32) -> Arc<NodeInfo> {
        self.graph.node(node).info.clone()
    }

    fn inputs(&self, node: u32) -> Vec<OutputRef> {
        self.graph.node(node).inputs.to_vec()
    }

    fn shape(&self, output: OutputRef) -> PartialShape {
        self.graph.output_shape(output)
    }

    fn function(&self, name: &str) -> Result<Arc<FunctionDef>> {
        self.graph.functions().find(name)
    }

    fn add_function(&mut self, hint: &str, mut function: FunctionDef) -> Result<String> {
        let functions = self.graph.functions().clone();
        let mut names =
            std::iter::once(hint.to_string()).chain((1u64..).map(|number| format!("{hint}_{number}")));
        let is_free =
            |name: &String| functions.find(name).is_err() && self.graph.registry().find(name).is_err();
        let name = names.find(is_free);
        let name = name.ok_or_else(|| status!(Internal, "no name is free"))?;
        function.signature.get_or_insert_default().name = name.clone();
        functions.add(Arc::new(function))?;
        self.functions.push(name.clone());
        Ok(name)
    }

    fn differentiate(&mut self, function: &FunctionRef) -> Result<Differentiated> {
        differentiate(self, function)
    }

    fn replace_node(&mut self, node: u32, op: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<()> {
        let old = self.graph.node(node);
        let op = self.graph.find_op(op)?;
        let types = inputs.iter().map(|input| self.graph.output_type(*input));
        let attrs = attrs.complete(&op.def, &types.collect::<Result<Vec<_>>>()?)?;
        validate::attrs(&op.def, &old.info.name, &attrs)?;
        let info = NodeInfo::new(old.info.name.clone(), op, old.info.device.clone(), attrs)?;
        validate::input_count(&info, inputs.len())?;
        let is_prefix = info.output_types.starts_with(&old.info.output_types);
        ensure!(
            is_prefix && inputs.len() >= old.inputs.len(),
            InvalidArgument,
            "Node '{}' cannot be replaced by one with fewer or other outputs",
            old.info.name
        );
        self.replaced.push((node, old.info.clone(), old.inputs.clone()));
        let count = old.inputs.len();
        self.graph.replace_info(node, Arc::new(info))?;
        for (index, input) in inputs.iter().enumerate() {
            if index >= count {
                self.graph.push_input(node, *input)?;
            } else if self.graph.node(node).inputs[index] != *input {
                self.graph.replace_input(node, index, *input)?;
            }
        }
        self.graph.infer_shapes(node)
    }
}

/// The walk from outputs back to inputs.
pub(crate) struct Walk {
    wanted: Vec<OutputRef>,
    /// Integer types among those of the outputs: along them gradients flow too.
    integers: Vec<DataType>,
    /// Nodes between outputs and inputs: those that gradients flow through.
    between: Vec<bool>,
    /// How many inputs of nodes in between, not yet walked, read from each node.
    waiting: Vec<u32>,
    /// Gradients that have come in for outputs.
    gradients: FxHashMap<OutputRef, Vec<OutputRef>>,
    loops: Vec<LoopWalk>,
}

/// A loop that gradients flow through.
struct LoopWalk {
    forward: ForwardLoop,
    /// `Exit` nodes that have not been walked.
    exits: FxHashSet<NodeId>,
    /// `Enter` nodes that gradients are wanted for.
    enters: Vec<NodeId>,
    /// Gradients that have come in for `Exit` nodes.
    gradients: FxHashMap<NodeId, OutputRef>,
}

impl Walk {
    /// Finds the nodes in between. INVALID_ARGUMENT for an input that no output depends on.
    pub(crate) fn new(host: &Host, outputs: &[OutputRef], inputs: &[OutputRef]) -> Result<Walk> {
        let graph = &*host.graph;
        let needed = reach(graph, outputs.iter().map(|output| output.node), |node, next| {
            next.extend(node.inputs.iter().map(|input| input.node));
        });
        for input in inputs {
            ensure!(
                needed[input.node as usize],
                InvalidArgument,
                "Cannot compute the partial derivative for node '{}' as it's unreachable from the output node(s).",
                graph.node(input.node).info.name
            );
        }
        let depends = reach(graph, inputs.iter().map(|input| input.node), |node, next| {
            next.extend(node.consumers.iter().flatten().map(|(reader, _)| *reader));
        });
        let between: Vec<bool> = needed.iter().zip(&depends).map(|(a, b)| *a && *b).collect();
        let mut walk = Walk::over(graph, outputs, inputs, between);
        walk.set_loops_apart(graph);
        walk.count_readers(graph);
        Ok(walk)
    }

    /// A walk that does not leave the part of the graph between the nodes at its `edge`, where `inputs` are; no loops are
    /// in it.
    pub(crate) fn within(
        host: &Host,
        outputs: &[OutputRef],
        inputs: &[OutputRef],
        edge: &FxHashSet<NodeId>,
    ) -> Walk {
        let graph = &*host.graph;
        let spread = |from: Vec<NodeId>, start: bool, step: &dyn Fn(NodeId) -> Vec<NodeId>| {
            let mut reached = vec![false; graph.len()];
            let mut stack = Vec::new();
            for id in from {
                reached[id as usize] = true;
                if start || !edge.contains(&id) {
                    stack.extend(step(id));
                }
            }
            while let Some(id) = stack.pop() {
                if !std::mem::replace(&mut reached[id as usize], true) && !edge.contains(&id) {
                    stack.extend(step(id));
                }
            }
            reached
        };
        let backward = |id: NodeId| graph.node(id).inputs.iter().map(|input| input.node).collect();
        let forward = |id: NodeId| {
            let readers = graph.node(id).consumers.iter().flatten();
            readers.map(|(reader, _)| *reader).collect()
        };
        let needed = spread(outputs.iter().map(|it| it.node).collect(), false, &backward);
        let depends = spread(inputs.iter().map(|it| it.node).collect(), true, &forward);
        let between = needed.iter().zip(&depends).map(|(a, b)| *a && *b).collect();
        let mut walk = Walk::over(graph, outputs, inputs, between);
        walk.count_readers(graph);
        walk
    }

    fn over(graph: &Graph, outputs: &[OutputRef], inputs: &[OutputRef], between: Vec<bool>) -> Walk {
        let types = outputs
            .iter()
            .filter_map(|output| graph.output_type(*output).ok());
        Walk {
            wanted: inputs.to_vec(),
            integers: types
                .map(DataType::base)
                .filter(|dtype| dtype.is_integer())
                .collect(),
            waiting: vec![0; between.len()],
            between,
            gradients: FxHashMap::default(),
            loops: Vec::new(),
        }
    }

    /// Takes the nodes of loops out of those in between: a loop is walked as one, from its `Exit`s to its `Enter`s.
    fn set_loops_apart(&mut self, graph: &Graph) {
        for forward in ForwardLoop::all(graph) {
            let is_between = |id: &NodeId| self.between[*id as usize];
            let exits: FxHashSet<NodeId> = forward.exits().filter(is_between).collect();
            let enters: Vec<NodeId> = forward.enters().filter(is_between).collect();
            let asked = |id: NodeId| self.wanted.iter().any(|wanted| wanted.node == id);
            // What is asked for within the loop cannot be had by walking it as one.
            if exits.is_empty() || forward.nodes().any(asked) {
                continue;
            }
            for id in forward.nodes() {
                self.between[id as usize] = false;
            }
            self.loops.push(LoopWalk {
                forward,
                exits,
                enters,
                gradients: FxHashMap::default(),
            });
        }
    }

    fn count_readers(&mut self, graph: &Graph) {
        for (_, node) in graph.nodes().filter(|(id, _)| self.between[*id as usize]) {
            for input in &node.inputs {
                self.waiting[input.node as usize] += 1;
            }
        }
        for enter in self.loops.iter().flat_map(|walk| &walk.enters) {
            self.waiting[graph.node(*enter).inputs[0].node as usize] += 1;
        }
    }

    /// Adds all gradient nodes.
    pub(crate) fn run(
        mut self,
        host: &mut Host,
        outputs: &[OutputRef],
        incoming: &[OutputRef],
    ) -> Result<Vec<Option<OutputRef>>> {
        for output in outputs.iter().filter(|output| self.between[output.node as usize]) {
            let op = &host.graph.node(output.node).info.op;
            let is_text = host.graph.output_type(*output)?.base() == DataType::STRING;
            let leaves_loop = self.loops.iter().any(|walk| walk.exits.contains(&output.node));
            let is_missing = matches!(op.gradient, Gradient::Missing) && !leaves_loop;
            if (is_text || is_missing) && !self.wanted.contains(output) {
                return Err(no_gradient(&op.def.name));
            }
        }
        for (index, output) in outputs.iter().enumerate() {
            let gradient = match incoming.get(index) {
                Some(gradient) => *gradient,
                None => {
                    let dtype = host.graph.output_type(*output)?.base();
                    let node =
                        host.add_node("OnesLike", "OnesLike", &[*output], Attrs::new().with("T", dtype))?;
                    OutputRef { node, index: 0 }
                }
            };
            self.gradients.entry(*output).or_default().push(gradient);
        }
        let mut found = FxHashMap::default();
        // Each node is walked once: when all its readers in between have been.
        let mut ready: Vec<NodeId> = outputs.iter().map(|output| output.node).collect();
        let mut seen = FxHashSet::default();
        ready.retain(|node| {
            let index = *node as usize;
            self.between[index] && self.waiting[index] == 0 && seen.insert(*node)
        });
        while let Some(id) = ready.pop() {
            self.between[id as usize] = false;
            let gradients = self.collect(host, id)?;
            for (index, gradient) in gradients.iter().enumerate() {
                let output = OutputRef {
                    node: id,
                    index: index as u32,
                };
                if self.wanted.contains(&output) {
                    found.insert(output, *gradient);
                }
            }
            let inputs = match self.loops.iter().position(|walk| walk.exits.contains(&id)) {
                Some(number) => self.leave_loop(host, number, id, gradients)?,
                None => {
                    let inputs = host.graph.node(id).inputs.clone();
                    self.flow(host, id, &inputs, gradients)?;
                    inputs
                }
            };
            for input in inputs {
                let source = input.node as usize;
                self.waiting[source] -= 1;
                if self.waiting[source] == 0 && self.between[source] {
                    ready.push(input.node);
                }
            }
        }
        if let Some(id) = self.between.iter().position(|left| *left) {
            return Err(no_gradient(host.graph.node(id as NodeId).info.op_name()));
        }
        Ok(self
            .wanted
            .iter()
            .map(|wanted| found.get(wanted).copied().flatten())
            .collect())
    }

    /// The gradient that has come in for each output of a node: the sum of all.
    fn collect(&mut self, host: &mut Host, id: NodeId) -> Result<Vec<Option<OutputRef>>> {
        let outputs = host.graph.node(id).info.output_types.len() as u32;
        let mut gradients = Vec::with_capacity(outputs as usize);
        for index in 0..outputs {
            let terms = self
                .gradients
                .remove(&OutputRef { node: id, index })
                .unwrap_or_default();
            gradients.push(match terms[..] {
                [] => None,
                [gradient] => Some(gradient),
                _ => Some(OutputRef {
                    node: host.add_node("AddN", "AddN", &terms, Attrs::new())?,
                    index: 0,
                }),
            });
        }
        Ok(gradients)
    }

    /// Walks an `Exit`; with the last one of a loop the whole loop, whose inputs are given then.
    fn leave_loop(
        &mut self,
        host: &mut Host,
        number: usize,
        exit: NodeId,
        gradients: Vec<Option<OutputRef>>,
    ) -> Result<Inputs> {
        let walk = &mut self.loops[number];
        walk.exits.remove(&exit);
        if let Some(Some(gradient)) = gradients.first() {
            walk.gradients.insert(exit, *gradient);
        }
        if !walk.exits.is_empty() {
            return Ok(Inputs::new());
        }
        let mut outgoing = Vec::new();
        if !walk.gradients.is_empty() && !walk.enters.is_empty() {
            outgoing = loop_gradients::add(host, &walk.forward, &walk.gradients)?;
        }
        let source = |enter: NodeId| host.graph.node(enter).inputs[0];
        for (enter, gradient) in outgoing
            .into_iter()
            .filter(|(enter, _)| walk.enters.contains(enter))
        {
            self.gradients.entry(source(enter)).or_default().push(gradient);
        }
        Ok(walk.enters.iter().map(|enter| source(*enter)).collect())
    }

    /// Lets a node pass its gradients on to its inputs, as they were before a replacement.
    fn flow(
        &mut self,
        host: &mut Host,
        id: NodeId,
        inputs: &[OutputRef],
        gradients: Vec<Option<OutputRef>>,
    ) -> Result<()> {
        let is_needed = |input: &OutputRef| {
            self.between
                .get(input.node as usize)
                .is_some_and(|between| *between)
        };
        if gradients.iter().all(Option::is_none) || !inputs.iter().any(is_needed) {
            return Ok(());
        }
        let info = host.node(id);
        let gradient = match info.op.gradient {
            Gradient::NotDifferentiable => {
                if !STOPS.contains(&info.op_name()) {
                    host.stopped_at.get_or_insert_with(|| info.op_name().to_string());
                }
                return Ok(());
            }
            Gradient::Missing => return Err(no_gradient(info.op_name())),
            Gradient::Fn(gradient) => gradient,
        };
        let mut context = GradientContext::new(host, id, gradients);
        gradient(&mut context)?;
        let outgoing = context.finish();
        for (input, gradient) in inputs.iter().zip(outgoing) {
            let Some(gradient) = gradient else { continue };
            let dtype = host.graph.output_type(*input)?;
            let flows = is_trainable(dtype) || self.integers.contains(&dtype.base());
            if flows && is_needed(input) {
                self.gradients.entry(*input).or_default().push(gradient);
            }
        }
        Ok(())
    }
}

fn no_gradient(op: &str) -> ff_tensor::Status {
    status!(
        NotFound,
        "No gradient defined for op: {op}. Please see https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on how to add C++ gradients."
    )
}

/// Marks the nodes that can be reached from some by steps.
pub(crate) fn reach(
    graph: &Graph,
    from: impl Iterator<Item = NodeId>,
    step: impl Fn(&crate::Node, &mut Vec<NodeId>),
) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = from.collect();
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut reached[id as usize], true) {
            step(graph.node(id), &mut stack);
        }
    }
    reached
}

#[cfg(test)]
#[path = "gradients_tests.rs"]
mod tests;
