//! Merges nodes that compute the same: same op, attributes, device and inputs.
//!
//! Assumes: a pruned graph.
//! Guarantees: of equal pure nodes without control edges, the first stays.
//! Does not: merge nodes with effects, or large constants.

use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph};
use crate::{Node, NodeId};
use ff_op::{AttrValue, Effects, OutputRef};
use ff_tensor::Result;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{BuildHasher, BuildHasherDefault};

/// Bytes of the largest constant that is compared.
const LARGEST: usize = 1024;

/// See the module.
pub fn run(graph: Graph, goal: Goal) -> Result<(Graph, Goal)> {
    let mut rebuild = Rebuild::of(&graph);
    let mut known: FxHashMap<u64, SmallVec<[NodeId; 1]>> = FxHashMap::default();
    let hasher = BuildHasherDefault::<FxHasher>::default();
    for id in in_order(&graph)? {
        let node = graph.node(id);
        let inputs: Option<SmallVec<[OutputRef; 4]>> =
            node.inputs.iter().map(|input| rebuild.value(*input)).collect();
        let inputs = inputs.filter(|_| can_merge(node) && !goal.targets.contains(&id));
        let Some(inputs) = inputs else {
            rebuild.copy(&graph, id)?;
            continue;
        };
        let info = &node.info;
        let hash = hasher.hash_one((info.op_name(), &info.attrs, &inputs[..]));
        let same = known.get(&hash).into_iter().flatten().copied().find(|&other| {
            let other = rebuild.graph.node(other);
            other.info.op_name() == info.op_name()
                && other.info.device == info.device
                && other.inputs[..] == inputs[..]
                && other.info.attrs == info.attrs
        });
        match same {
            Some(same) => rebuild.adopt(&graph, id, same),
            None => known.entry(hash).or_default().push(rebuild.copy(&graph, id)?),
        }
    }
    rebuild.finish(&goal)
}

fn can_merge(node: &Node) -> bool {
    let is_small = |value: &AttrValue| match value {
        AttrValue::Tensor(tensor) => tensor.byte_size() <= LARGEST,
        AttrValue::Tensors(tensors) => tensors.is_empty(),
        _ => true,
    };
    let info = &node.info;
    let is_source = node.inputs.is_empty() && info.op_name() != "Const";
    info.op.effects == Effects::Pure
        && !info.op.def.is_stateful
        && !is_source
        && node.control_inputs.is_empty()
        && node.control_outputs.is_empty()
        && !info
            .input_types
            .iter()
            .chain(&info.output_types)
            .any(|dtype| dtype.is_ref())
        && !is_control_flow(info.op_name())
        && info.attrs.iter().all(|(_, value)| is_small(value))
}

/// Ops of v1 control flow: merging them would join loops.
pub fn is_control_flow(op: &str) -> bool {
    let op = op.strip_prefix("Ref").unwrap_or(op);
    matches!(
        op,
        "Switch" | "_SwitchN" | "Merge" | "Enter" | "Exit" | "NextIteration" | "LoopCond" | "ControlTrigger"
    )
}
