//! Takes out nodes that only pass their input on.
//!
//! Assumes: a pruned graph.
//! Guarantees: readers of the node read its input; what waited for it waits for its inputs.
//! Does not: touch a node that reads a reference variable (it takes a snapshot at its place in the order), that is
//! targeted, or that stands between control edges.

use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph};
use ff_op::OutputRef;
use ff_tensor::Result;

/// Ops whose only output is their first input.
const PASS_ON: [&str; 4] = ["Identity", "StopGradient", "PreventGradient", "Snapshot"];

/// See the module.
pub fn run(graph: Graph, goal: Goal) -> Result<(Graph, Goal)> {
    let mut rebuild = Rebuild::of(&graph);
    for id in in_order(&graph)? {
        let node = graph.node(id);
        let passes_on = PASS_ON.contains(&node.info.op_name())
            && !graph.output_type(node.inputs[0])?.is_ref()
            && node.control_inputs.is_empty()
            && node.control_outputs.is_empty()
            && !goal.targets.contains(&id);
        match passes_on.then(|| rebuild.value(node.inputs[0])).flatten() {
            Some(value) => rebuild.set_value(OutputRef { node: id, index: 0 }, value),
            None => {
                rebuild.copy(&graph, id)?;
            }
        }
    }
    rebuild.finish(&goal)
}
