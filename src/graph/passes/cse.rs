//! Merges nodes that compute the same: same op, attributes, device and inputs.
//!
//! Assumes: a pruned graph.
//! Guarantees: of equal pure nodes without control edges, the first stays.
//! Does not: merge nodes with effects, constants, or nodes whose attributes hold tensors or functions.

use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph};
use crate::Node;
use ff_op::{AttrValue, Effects, OutputRef};
use ff_tensor::Result;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// See the module.
pub fn run(graph: Graph, goal: Goal) -> Result<(Graph, Goal)> {
    let mut rebuild = Rebuild::of(&graph);
    let mut first: FxHashMap<String, u32> = FxHashMap::default();
    for id in in_order(&graph)? {
        let node = graph.node(id);
        let inputs: Option<Vec<OutputRef>> = node.inputs.iter().map(|input| rebuild.value(*input)).collect();
        let key = match inputs {
            Some(inputs) if can_merge(node) && !goal.targets.contains(&id) => Some(key(node, &inputs)),
            _ => None,
        };
        if let Some(same) = key.as_ref().and_then(|key| first.get(key).copied()) {
            rebuild.adopt(&graph, id, same);
            continue;
        }
        let new = rebuild.copy(&graph, id)?;
        if let Some(key) = key {
            first.insert(key, new);
        }
    }
    rebuild.finish(&goal)
}

fn can_merge(node: &Node) -> bool {
    let plain = |value: &AttrValue| {
        !matches!(
            value,
            AttrValue::Tensor(_) | AttrValue::Tensors(_) | AttrValue::Func(_) | AttrValue::Funcs(_)
        )
    };
    node.info.op.effects == Effects::Pure
        && !node.info.op.def.is_stateful
        && !node.inputs.is_empty()
        && node.control_inputs.is_empty()
        && node.control_outputs.is_empty()
        && !node
            .info
            .input_types
            .iter()
            .chain(&node.info.output_types)
            .any(|dtype| dtype.is_ref())
        && !is_control_flow(node.info.op_name())
        && node.info.attrs.iter().all(|(_, value)| plain(value))
}

/// Ops of v1 control flow: merging them would join loops.
pub fn is_control_flow(op: &str) -> bool {
    let op = op.strip_prefix("Ref").unwrap_or(op);
    matches!(
        op,
        "Switch" | "_SwitchN" | "Merge" | "Enter" | "Exit" | "NextIteration" | "LoopCond" | "ControlTrigger"
    )
}

fn key(node: &Node, inputs: &[OutputRef]) -> String {
    let mut attrs: Vec<_> = node.info.attrs.iter().collect();
    attrs.sort_by_key(|(name, _)| *name);
    let mut key = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        key,
        "{} {} {:?} {:?}",
        node.info.op_name(),
        node.info.device,
        inputs,
        attrs
    );
    key
}
