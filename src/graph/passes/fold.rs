//! Computes nodes whose inputs are all constants.
//!
//! Assumes: a pruned graph.
//! Guarantees: a folded node is a `Const` for each output that is read; control edges to it are gone, as there is
//! nothing left to wait for.
//! Does not: fold nodes with effects or control inputs, results above [`LARGEST`], or nodes whose kernel reports an
//! error: the error belongs to the run.

use super::cse::is_control_flow;
use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph};
use crate::Node;
use ff_op::{Attrs, Effects, NodeInfo, OutputRef, RunOneHost, run_one};
use ff_tensor::{Result, Tensor};
use std::sync::Arc;

/// Bytes of the largest result that is kept in a plan for a node that computed it from less.
const LARGEST: usize = 10 << 20;

/// See the module.
pub fn run(graph: Graph, goal: Goal) -> Result<(Graph, Goal)> {
    let mut rebuild = Rebuild::of(&graph);
    let host = RunOneHost::new();
    for id in in_order(&graph)? {
        let node = graph.node(id);
        let inputs = if can_fold(node) && !goal.targets.contains(&id) {
            constants(&rebuild, node)
        } else {
            None
        };
        match inputs.and_then(|inputs| fold(node, inputs, &host)) {
            Some(outputs) => {
                for (index, output) in outputs.into_iter().enumerate() {
                    let value = add_constant(&mut rebuild, node, index, output)?;
                    rebuild.set_value(
                        OutputRef {
                            node: id,
                            index: index as u32,
                        },
                        value,
                    );
                }
            }
            None => {
                rebuild.copy(&graph, id)?;
            }
        }
    }
    rebuild.finish(&goal)
}

fn can_fold(node: &Node) -> bool {
    node.info.op.effects == Effects::Pure
        && !node.info.op.def.is_stateful
        && !node.inputs.is_empty()
        && node.control_inputs.is_empty()
        && !is_control_flow(node.info.op_name())
        && node
            .info
            .output_types
            .iter()
            .all(|dtype| dtype.is_plain() && !dtype.is_ref())
        && node.info.input_types.iter().all(|dtype| !dtype.is_ref())
}

/// The values of the inputs, if all are constants of the new graph.
fn constants(rebuild: &Rebuild, node: &Node) -> Option<Vec<Tensor>> {
    let constant = |input: &OutputRef| {
        let source = rebuild.graph.node(rebuild.value(*input)?.node);
        let is_constant = source.info.op_name() == "Const" && source.control_inputs.is_empty();
        is_constant
            .then(|| source.info.attrs.tensor("value").ok().cloned())
            .flatten()
    };
    node.inputs.iter().map(constant).collect()
}

fn fold(node: &Node, inputs: Vec<Tensor>, host: &RunOneHost) -> Option<Vec<Tensor>> {
    let given: usize = inputs.iter().map(Tensor::byte_size).sum();
    // A shape that is known tells before the work whether the result is too large to keep.
    let known: i64 = node.shapes.iter().map(|shape| shape.num_elements().max(0)).sum();
    if known as usize > LARGEST {
        return None;
    }
    let outputs = run_one(&node.info, inputs, host).ok()?;
    let made: usize = outputs.iter().map(Tensor::byte_size).sum();
    (made <= LARGEST || made <= given).then_some(outputs)
}

fn add_constant(rebuild: &mut Rebuild, node: &Node, index: usize, value: Tensor) -> Result<OutputRef> {
    let shape = value.partial_shape();
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    let name = if index == 0 {
        node.info.name.clone()
    } else {
        format!("{}/folded_{index}", node.info.name)
    };
    let op = rebuild.graph.registry().find("Const")?;
    let info = Arc::new(NodeInfo::new(name, op, node.info.device.clone(), attrs)?);
    let value = OutputRef {
        node: rebuild.add(info, Vec::new(), Vec::new())?,
        index: 0,
    };
    rebuild.graph.set_shape(value, shape);
    Ok(value)
}
