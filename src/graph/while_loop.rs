//! Loops of the first kind: Enter, Merge, Switch, NextIteration and Exit around a condition and a body that were built
//! as graphs of their own.
//!
//! Names and control edges are those of the reference: `loop/Enter_1`, `loop/cond/..`, `loop/body/..`; nodes of the
//! condition without inputs of their own wait for the first Merge, those of the body for the first Switch. So they run once
//! more than the loop turns; a result of the body that reads no variable waits for a turn besides (the reference's does
//! not, and such a loop fails or never ends).

use crate::{Graph, ImportOptions, NodeBuilder, NodeId, export_graph_def, import_graph_def};
use ff_op::OutputRef;
use ff_tensor::{DataType, Result, ensure};
use rustc_hash::FxHashSet;

/// A graph with arguments and results.
pub struct LoopPart<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Outputs that stand for the loop's variables.
    pub inputs: &'a [OutputRef],
    /// What it computes.
    pub outputs: &'a [OutputRef],
}

/// Adds a loop: while the condition, which gives one bool, holds, the variables become what the body gives. Returns their
/// last values. INVALID_ARGUMENT for a name that is a loop's already, numbers or types that do not fit. The graph is
/// unchanged then.
pub fn add_while_loop(
    graph: &mut Graph,
    name: &str,
    inputs: &[OutputRef],
    condition: LoopPart,
    body: LoopPart,
) -> Result<Vec<OutputRef>> {
    let before = graph.len();
    let added = add(graph, name, inputs, condition, body);
    if added.is_err() {
        graph.truncate(before);
    }
    added
}

fn add(
    graph: &mut Graph,
    name: &str,
    inputs: &[OutputRef],
    condition: LoopPart,
    body: LoopPart,
) -> Result<Vec<OutputRef>> {
    ensure!(
        graph.find(&format!("{name}/Enter")).is_none(),
        InvalidArgument,
        "WhileContext with frame name '{name}' already exists"
    );
    ensure!(
        [condition.inputs.len(), body.inputs.len(), body.outputs.len()] == [inputs.len(); 3],
        InvalidArgument,
        "condition and body of '{name}' must have as many arguments as the loop has variables"
    );
    let mut entered = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let enter = builder(name, "Enter", index)
            .attr("frame_name", name)
            .input(*input);
        entered.push(one(graph, enter)?);
    }
    // The second input is what comes back, which is not there yet.
    let mut merged = Vec::with_capacity(inputs.len());
    for (index, input) in entered.iter().enumerate() {
        merged.push(one(
            graph,
            builder(name, "Merge", index).input_list([*input, *input]),
        )?);
    }
    let holds = import(
        graph,
        &format!("{name}/cond"),
        &condition,
        &merged,
        merged[0].node,
    )?;
    let dtype = graph.output_type(holds[0])?.base();
    ensure!(
        dtype == DataType::BOOL,
        InvalidArgument,
        "BuildWhileLoop: 'cond' argument must return a boolean output, got {dtype}"
    );
    let holds = one(graph, builder(name, "LoopCond", 0).input(holds[0]))?;
    let mut switched = Vec::with_capacity(inputs.len());
    for (index, value) in merged.iter().enumerate() {
        switched.push(one(
            graph,
            builder(name, "Switch", index).input(*value).input(holds),
        )?);
    }
    let going_on: Vec<OutputRef> = switched
        .iter()
        .map(|switch| OutputRef { index: 1, ..*switch })
        .collect();
    let before = graph.len();
    let results = import(graph, &format!("{name}/body"), &body, &going_on, switched[0].node)?;
    let mut next = Vec::with_capacity(results.len());
    let mut pivot = None;
    for (index, result) in results.iter().enumerate() {
        let mut turn = builder(name, "NextIteration", index).input(*result);
        if !depends(graph, *result, &going_on, before) {
            // Nothing else would end this variable's turns.
            let pivot = match pivot {
                Some(pivot) => pivot,
                None => *pivot.insert(one(graph, builder(name, "Identity", 0).input(going_on[0]))?),
            };
            turn = turn.control(pivot.node);
        }
        next.push(one(graph, turn)?);
    }
    for (merge, next) in merged.iter().zip(&next) {
        let (expected, given) = (graph.output_type(*merge)?, graph.output_type(*next)?);
        ensure!(
            expected.base() == given.base(),
            InvalidArgument,
            "the body of '{name}' gives {given} for a variable of type {expected}"
        );
        graph.replace_input(merge.node, 1, *next)?;
    }
    let exits = switched.iter().enumerate();
    exits
        .map(|(index, value)| one(graph, builder(name, "Exit", index).input(*value)))
        .collect()
}

/// Whether an output reads one of `sources`, through nodes from `first` on.
fn depends(graph: &Graph, output: OutputRef, sources: &[OutputRef], first: usize) -> bool {
    let mut seen = FxHashSet::default();
    let mut stack = vec![output];
    while let Some(output) = stack.pop() {
        if sources.contains(&output) {
            return true;
        }
        if output.node as usize >= first && seen.insert(output.node) {
            stack.extend(&graph.node(output.node).inputs);
        }
    }
    false
}

fn builder(loop_name: &str, kind: &str, index: usize) -> NodeBuilder {
    let name = match index {
        0 => format!("{loop_name}/{kind}"),
        index => format!("{loop_name}/{kind}_{index}"),
    };
    NodeBuilder::new(kind, name)
}

/// Adds a node, and gives its first output.
fn one(graph: &mut Graph, builder: NodeBuilder) -> Result<OutputRef> {
    Ok(OutputRef {
        node: builder.finish(graph)?,
        index: 0,
    })
}

/// Copies a part into the graph, with `arguments` for its inputs. Returns its outputs.
fn import(
    graph: &mut Graph,
    prefix: &str,
    part: &LoopPart,
    arguments: &[OutputRef],
    waits_for: NodeId,
) -> Result<Vec<OutputRef>> {
    let name = |output: &OutputRef| (part.graph.node(output.node).info.name.clone(), output.index);
    for output in part.inputs.iter().chain(part.outputs) {
        part.graph.output_type(*output)?;
    }
    let mut def = export_graph_def(part.graph);
    // The placeholders of the arguments are not part of the loop.
    def.node
        .retain(|node| !part.inputs.iter().any(|input| name(input).0 == node.name));
    let mut outputs: Vec<Option<OutputRef>> = Vec::new();
    let mut wanted = Vec::new();
    for output in part.outputs {
        let argument = part.inputs.iter().position(|input| input == output);
        outputs.push(argument.map(|index| arguments[index]));
        if argument.is_none() {
            wanted.push(name(output));
        }
    }
    let options = ImportOptions {
        prefix: prefix.to_string(),
        input_map: part
            .inputs
            .iter()
            .map(name)
            .zip(arguments.iter().copied())
            .collect(),
        control_dependencies: vec![waits_for],
        return_outputs: wanted,
        ..ImportOptions::default()
    };
    let mut imported = import_graph_def(graph, def, &options)?.return_outputs.into_iter();
    Ok(outputs
        .into_iter()
        .filter_map(|output| output.or_else(|| imported.next()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_op::Registry;
    use std::sync::Arc;

    fn placeholders(graph: &mut Graph) -> [OutputRef; 2] {
        ["x", "y"].map(|name| {
            let builder = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::INT32);
            one(graph, builder).unwrap()
        })
    }

    fn empty() -> Graph {
        Graph::new(Arc::new(Registry::new(&[])))
    }

    #[test]
    fn loop_has_the_nodes_of_the_reference() {
        let (mut graph, mut cond, mut body) = (empty(), empty(), empty());
        let inputs = placeholders(&mut graph);
        let [a, b] = placeholders(&mut cond);
        let less = one(&mut cond, NodeBuilder::new("Less", "less").input(a).input(b)).unwrap();
        let [c, d] = placeholders(&mut body);
        let sum = one(&mut body, NodeBuilder::new("AddV2", "add").input(c).input(d)).unwrap();
        let part = |graph, inputs, outputs| LoopPart {
            graph,
            inputs,
            outputs,
        };
        let (arguments, results) = ([[a, b], [c, d]], [vec![less], vec![sum, d]]);
        let mut build = || {
            add_while_loop(
                &mut graph,
                "loop",
                &inputs,
                part(&cond, &arguments[0], &results[0]),
                part(&body, &arguments[1], &results[1]),
            )
        };
        let exits = build().unwrap();
        assert_eq!(
            build().unwrap_err().message(),
            "WhileContext with frame name 'loop' already exists"
        );
        let def = export_graph_def(&graph);
        let inputs_of = |name: &str| {
            def.node
                .iter()
                .find(|node| node.name == name)
                .unwrap()
                .input
                .clone()
        };
        assert_eq!(def.node.len(), 2 + 2 + 2 + 2 + 4 + 3 - 2 + 2);
        assert_eq!(
            inputs_of("loop/Merge_1"),
            ["loop/Enter_1", "loop/NextIteration_1"]
        );
        assert_eq!(
            inputs_of("loop/cond/less"),
            ["loop/Merge", "loop/Merge_1", "^loop/Merge"]
        );
        assert_eq!(
            inputs_of("loop/body/add"),
            ["loop/Switch:1", "loop/Switch_1:1", "^loop/Switch"]
        );
        assert_eq!(inputs_of("loop/NextIteration_1"), ["loop/Switch_1:1"]);
        assert_eq!(graph.node(exits[1].node).info.name, "loop/Exit_1");
    }

    #[test]
    fn condition_must_be_a_bool() {
        let (mut graph, mut part) = (empty(), empty());
        let inputs = placeholders(&mut graph);
        let [a, b] = placeholders(&mut part);
        let cond = LoopPart {
            graph: &part,
            inputs: &[a, b],
            outputs: &[a],
        };
        let body = LoopPart {
            graph: &part,
            inputs: &[a, b],
            outputs: &[a, b],
        };
        let error = add_while_loop(&mut graph, "loop", &inputs, cond, body).unwrap_err();
        assert_eq!(
            error.message(),
            "BuildWhileLoop: 'cond' argument must return a boolean output, got int32"
        );
        assert_eq!(graph.len(), 2);
    }
}
