//! The part of a graph that a model is, with constants in the place of its variables.
//!
//! Reads of variables whose handles are nodes of the graph become constants of the values that the session holds.
//! Handles that are passed into functions stay; lowering refuses what reads them.

use crate::source::Source;
use ff_graph::passes::{Goal, Level, in_order, optimize};
use ff_graph::{FunctionBody, Graph, Inputs, NodeBuilder, NodeId};
use ff_op::{Attrs, NodeInfo, OutputRef};
use ff_runtime::RunRequest;
use ff_tensor::{Result, Tensor, status};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The body between inputs and outputs: its arguments are the inputs, its results the outputs.
pub(crate) fn freeze(source: &Source) -> Result<FunctionBody> {
    let goal = Goal {
        feeds: source.feeds.clone(),
        fetches: source.fetches.clone(),
        targets: Vec::new(),
    };
    let (graph, goal) = {
        let graph = source.graph.lock();
        optimize(&graph, &goal, Level::Full)?
    };
    let values = variables(source, &graph)?;
    body(&graph, &goal, &values)
}

/// The nodes that read a variable, with the name of the node that the value comes from.
fn readers(graph: &Graph) -> Vec<(NodeId, String)> {
    let mut found = Vec::new();
    for (id, node) in graph.nodes() {
        match node.info.op_name() {
            "ReadVariableOp" => {
                let source = &graph.node(node.inputs[0].node).info;
                if source.op_name() == "VarHandleOp" {
                    found.push((id, source.name.clone()));
                }
            }
            "Variable" | "VariableV2" => found.push((id, node.info.name.clone())),
            _ => {}
        }
    }
    found
}

/// The value of each node that reads a variable.
fn variables(source: &Source, graph: &Graph) -> Result<FxHashMap<NodeId, Tensor>> {
    let readers = readers(graph);
    let mut fetches = Vec::new();
    {
        let mut graph = source.graph.lock();
        for (_, name) in &readers {
            fetches.push(value_of(&mut graph, name)?);
        }
    }
    if readers.is_empty() {
        return Ok(FxHashMap::default());
    }
    let request = RunRequest {
        feeds: &[],
        fetches: &fetches,
        targets: &[],
        options: None,
        want_metadata: false,
    };
    let values = source.session.run(&request)?.outputs;
    Ok(readers.into_iter().map(|(id, _)| id).zip(values).collect())
}

/// An output of the client's graph that has the value of a variable.
fn value_of(graph: &mut Graph, name: &str) -> Result<OutputRef> {
    let node = graph.find(name).ok_or_else(|| {
        status!(
            Unimplemented,
            "Variable {name:?} is made by a function that is called"
        )
    })?;
    let variable = OutputRef { node, index: 0 };
    if graph.node(node).info.op_name() != "VarHandleOp" {
        return Ok(variable);
    }
    let reader = format!("ferroflow_aot/{name}");
    let read = match graph.find(&reader) {
        Some(read) => read,
        None => {
            let dtype = graph.node(node).info.attrs.dtype("dtype")?;
            let builder = NodeBuilder::new("ReadVariableOp", reader).input(variable);
            builder.attr("dtype", dtype).finish(graph)?
        }
    };
    Ok(OutputRef { node: read, index: 0 })
}

/// The body, with the nodes of `values` as constants.
fn body(old: &Graph, goal: &Goal, values: &FxHashMap<NodeId, Tensor>) -> Result<FunctionBody> {
    let mut graph = Graph::with_functions(old.registry().clone(), old.functions().clone());
    let mut arguments = Vec::new();
    let mut made: FxHashMap<OutputRef, OutputRef> = FxHashMap::default();
    for (index, &feed) in goal.feeds.iter().enumerate() {
        let attrs = Attrs::new()
            .with("T", old.output_type(feed)?.base())
            .with("index", index as i64);
        let node = add(&mut graph, "_Arg", format!("argument_{index}"), attrs)?;
        arguments.push(OutputRef { node, index: 0 });
        made.insert(feed, OutputRef { node, index: 0 });
    }
    let fed = |id: NodeId, outputs: usize| {
        outputs > 0 && (0..outputs as u32).all(|index| goal.feeds.contains(&OutputRef { node: id, index }))
    };
    let mut nodes: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for id in in_order(old)? {
        let node = old.node(id);
        let outputs = node.info.output_types.len();
        if fed(id, outputs) {
            continue;
        }
        let new = match values.get(&id) {
            Some(value) => {
                let attrs = Attrs::new()
                    .with("dtype", value.dtype())
                    .with("value", value.clone());
                add(&mut graph, "Const", node.info.name.clone(), attrs)?
            }
            None => {
                let source = |input: &OutputRef| {
                    let value = made.get(input).copied();
                    value.ok_or_else(|| {
                        status!(
                            Unimplemented,
                            "{} is in a loop, which cannot be compiled",
                            node.info.describe()
                        )
                    })
                };
                let inputs: Inputs = node.inputs.iter().map(source).collect::<Result<_>>()?;
                let controls = node.control_inputs.iter().filter_map(|id| nodes.get(id).copied());
                graph.add_node(node.info.clone(), inputs, controls.collect())?
            }
        };
        nodes.insert(id, new);
        for index in 0..outputs as u32 {
            made.entry(OutputRef { node: id, index })
                .or_insert(OutputRef { node: new, index });
        }
    }
    let results = goal.fetches.iter().map(|fetch| {
        let value = made.get(fetch).copied();
        value.ok_or_else(|| status!(Internal, "an output was lost"))
    });
    let results = results.collect::<Result<Vec<_>>>()?;
    FunctionBody::of_parts(graph, arguments, results)
}

fn add(graph: &mut Graph, op: &str, name: String, attrs: Attrs) -> Result<NodeId> {
    let record = graph.registry().find(op)?;
    let info = NodeInfo::new(name, record, String::new(), attrs)?;
    graph.add_node(Arc::new(info), Inputs::new(), Vec::new())
}
