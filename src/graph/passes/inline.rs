//! Puts the bodies of called functions in the place of the calls.
//!
//! Assumes: a pruned graph.
//! Guarantees: nodes of a body that read or write state run after what the call waited for; what waited for the call
//! waits for the results and for the body's nodes with effects, which run even if no result needs them.
//! Does not: inline a function into itself, calls nested deeper than [`DEEPEST`] or beyond
//! [`MOST_NODES`] in all (or [`MOST_COPIES`], without the first copy of each function),
//! bodies with v1 loops, and, where `checked`, bodies that must be compiled and cannot be. Such calls stay and run as calls.

use super::cse::is_control_flow;
use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph};
use crate::gradients::reach;
use crate::{FunctionBody, NodeId, called_by_name};
use ff_op::{CompileRequest, Effects, FunctionRef, NodeInfo, OutputRef};
use ff_tensor::{DataType, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

const DEEPEST: usize = 32;
const MOST_NODES: usize = 500_000;
/// Functions that call others twice, which do so too, have bodies of exponential size.
const MOST_COPIES: usize = 50_000;

/// See the module.
pub fn run(graph: Graph, goal: Goal, checked: bool) -> Result<(Graph, Goal)> {
    if !graph
        .nodes()
        .any(|(_, node)| called(&graph, &node.info).is_some())
    {
        return Ok((graph, goal));
    }
    let mut inliner = Inliner {
        rebuild: Rebuild::of(&graph),
        bodies: FxHashMap::default(),
        effects: Vec::new(),
        used: FxHashSet::default(),
        copies: 0,
        checked,
    };
    for id in in_order(&graph)? {
        let function = called(&graph, &graph.node(id).info);
        let body = function.and_then(|function| inliner.body(&graph, &function, &[]));
        match body {
            Some(body) => inliner.call(&graph, id, body)?,
            None => {
                inliner.rebuild.copy(&graph, id)?;
            }
        }
    }
    let effects = inliner.effects;
    let (graph, mut goal) = inliner.rebuild.finish(&goal)?;
    goal.targets.extend(effects);
    Ok((graph, goal))
}

fn has_control_flow(graph: &Graph) -> bool {
    graph
        .nodes()
        .any(|(_, node)| is_control_flow(node.info.op_name()))
}

/// The function that a node calls and nothing else.
fn called(graph: &Graph, info: &NodeInfo) -> Option<FunctionRef> {
    match info.op_name() {
        "PartitionedCall" | "StatefulPartitionedCall" => info.called_function("f").ok().map(Cow::into_owned),
        _ => called_by_name(graph, info),
    }
}

/// Whether a call takes and gives what the function does. Another stays a call, which reports that.
fn fits(call: &NodeInfo, function: &FunctionBody) -> bool {
    let are = |values: &[OutputRef], types: &[DataType]| {
        let same = |value: &OutputRef, dtype: &DataType| {
            function
                .graph()
                .output_type(*value)
                .is_ok_and(|found| found.base() == dtype.base())
        };
        values.len() == types.len() && values.iter().zip(types).all(|(value, dtype)| same(value, dtype))
    };
    are(function.arguments(), &call.input_types) && are(function.results(), &call.output_types)
}

/// A body to put in, and the functions whose bodies it lies in.
struct Body {
    name: Arc<str>,
    function: Arc<FunctionBody>,
    prefix: String,
    within: Vec<String>,
}

struct Inliner {
    rebuild: Rebuild,
    /// Bodies made so far; none where a function must stay a call.
    bodies: FxHashMap<FunctionRef, Option<Arc<FunctionBody>>>,
    /// Nodes of bodies that must run although no result needs them.
    effects: Vec<NodeId>,
    /// Functions that were put in.
    used: FxHashSet<FunctionRef>,
    /// Nodes of bodies that were put in again.
    copies: usize,
    /// Whether calls that must be compiled and cannot be stay.
    checked: bool,
}

/// What became of the values and ends of a body's nodes.
#[derive(Default)]
struct Inner {
    values: FxHashMap<OutputRef, OutputRef>,
    ends: FxHashMap<NodeId, Vec<NodeId>>,
    /// Ends of the effects of calls within.
    effects: Vec<NodeId>,
}

impl Inliner {
    /// The body of a function, unless it must stay a call.
    fn body(&mut self, graph: &Graph, function: &FunctionRef, within: &[String]) -> Option<Body> {
        let too_many = self.rebuild.graph.len() > MOST_NODES || self.copies > MOST_COPIES;
        if within.len() >= DEEPEST || within.contains(&function.name) || too_many {
            return None;
        }
        if !self.bodies.contains_key(function) {
            let body = FunctionBody::instantiate(graph.registry(), graph.functions(), function);
            // A function that cannot be made stays a call, which reports why. Back edges of v1 loops are set at the end
            // of a rebuild, which works on the outer graph only.
            let body = body.ok().filter(|body| !has_control_flow(body.graph()));
            let must = CompileRequest::of(&function.attrs) == CompileRequest::Must;
            let body =
                body.filter(|body| !(must && self.checked) || body.check_compilable(&function.name).is_ok());
            self.bodies.insert(function.clone(), body.map(Arc::new));
        }
        let body = self.bodies.get(function)?.clone()?;
        if self.used.contains(function) {
            self.copies += body.graph().len();
        } else {
            self.used.insert(function.clone());
        }
        let within = within.iter().cloned().chain([function.name.clone()]).collect();
        Some(Body {
            name: function.name.as_str().into(),
            function: body,
            prefix: String::new(),
            within,
        })
    }

    /// Puts a body in the place of a call of the old graph.
    fn call(&mut self, graph: &Graph, id: NodeId, mut body: Body) -> Result<()> {
        let node = graph.node(id);
        let controls = self.rebuild.controls(graph, id);
        let arguments: Option<Vec<OutputRef>> = node
            .inputs
            .iter()
            .map(|input| self.rebuild.value(*input))
            .collect();
        let Some(arguments) = arguments.filter(|_| fits(&node.info, &body.function)) else {
            self.rebuild.copy(graph, id)?;
            return Ok(());
        };
        body.prefix = node.info.name.clone();
        let (results, end, effects) = self.put(&body, &arguments, &controls)?;
        self.effects.extend(effects);
        for (index, result) in results.into_iter().enumerate() {
            self.rebuild.set_value(
                OutputRef {
                    node: id,
                    index: index as u32,
                },
                result,
            );
        }
        self.rebuild.set_end(id, end);
        Ok(())
    }

    /// Adds the nodes of a body that its results and effects need; gives its results, what stands for its end, and the
    /// ends of its effects. Calls within are put in by a stack of their own depth, which [`DEEPEST`] bounds.
    fn put(
        &mut self,
        body: &Body,
        arguments: &[OutputRef],
        controls: &[NodeId],
    ) -> Result<(Vec<OutputRef>, Vec<NodeId>, Vec<NodeId>)> {
        let graph = body.function.graph();
        let mut inner = Inner::default();
        let results = body.function.results().iter().map(|result| result.node);
        let needed = reach(
            graph,
            results.chain(body.function.targets().iter().copied()),
            |node, next| {
                next.extend(node.inputs.iter().map(|input| input.node));
                next.extend(&node.control_inputs);
            },
        );
        for (argument, value) in body.function.arguments().iter().zip(arguments) {
            inner.values.insert(*argument, *value);
        }
        for argument in body.function.arguments() {
            inner.ends.insert(argument.node, controls.to_vec());
        }
        for id in in_order(graph)? {
            if needed[id as usize] && !inner.ends.contains_key(&id) {
                self.put_node(body, graph, id, controls, &mut inner)?;
            }
        }
        let results: Vec<OutputRef> = body
            .function
            .results()
            .iter()
            .map(|result| inner.values.get(result).copied())
            .collect::<Option<_>>()
            .ok_or_else(|| ff_tensor::status!(Internal, "a result of {} was lost", body.prefix))?;
        let targets = body
            .function
            .targets()
            .iter()
            .flat_map(|target| inner.ends.get(target).cloned());
        let mut effects: Vec<NodeId> = targets.flatten().chain(inner.effects).collect();
        effects.sort_unstable();
        effects.dedup();
        let mut end = effects.clone();
        end.extend(results.iter().map(|result| result.node));
        end.extend(controls);
        end.sort_unstable();
        end.dedup();
        Ok((results, end, effects))
    }

    fn put_node(
        &mut self,
        body: &Body,
        graph: &Graph,
        id: NodeId,
        controls: &[NodeId],
        inner: &mut Inner,
    ) -> Result<()> {
        let node = graph.node(id);
        let lost = || {
            ff_tensor::status!(
                Internal,
                "{} in {} has no input",
                node.info.describe(),
                body.prefix
            )
        };
        let inputs: Vec<OutputRef> = node
            .inputs
            .iter()
            .map(|input| inner.values.get(input).copied())
            .collect::<Option<_>>()
            .ok_or_else(lost)?;
        let mut waits: Vec<NodeId> = node
            .control_inputs
            .iter()
            .flat_map(|control| inner.ends.get(control).cloned().unwrap_or_default())
            .collect();
        let function = called(graph, &node.info);
        if function.is_some() || node.info.op.effects != Effects::Pure || node.info.op.def.is_stateful {
            waits.extend(controls);
        }
        waits.sort_unstable();
        waits.dedup();
        let nested = function
            .and_then(|function| self.body(graph, &function, &body.within))
            .filter(|nested| fits(&node.info, &nested.function));
        if let Some(mut nested) = nested {
            nested.prefix = format!("{}/{}", body.prefix, node.info.name);
            let (results, end, effects) = self.put(&nested, &inputs, &waits)?;
            inner.effects.extend(effects);
            for (index, result) in results.into_iter().enumerate() {
                inner.values.insert(
                    OutputRef {
                        node: id,
                        index: index as u32,
                    },
                    result,
                );
            }
            inner.ends.insert(id, end);
            return Ok(());
        }
        let mut info = (*node.info).clone();
        info.name = format!("{}/{}", body.prefix, node.info.name);
        info.origin = Some((body.name.clone(), node.info.clone()));
        let new = self.rebuild.add(Arc::new(info), inputs, waits)?;
        self.rebuild
            .graph
            .set_shapes(new, node.shapes.clone(), node.handles.clone());
        for index in 0..node.info.output_types.len() as u32 {
            inner
                .values
                .insert(OutputRef { node: id, index }, OutputRef { node: new, index });
        }
        inner.ends.insert(id, vec![new]);
        Ok(())
    }
}
