//! Takes out every node that the goal does not need; a fed value becomes a node without inputs.
//!
//! Assumes: the goal names values and nodes of the graph.
//! Guarantees: the new graph has only nodes from which a fetch or target can be reached without passing a feed, and
//! one `_Arg` node per feed, which no plan runs.
//! Does not: look at what ops do; a node with effects that nothing needs is taken out, as the reference does.

use super::rebuild::{Rebuild, in_order};
use super::{Goal, Graph, NodeId};
use ff_op::{Attrs, NodeInfo, OutputRef};
use ff_tensor::Result;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// See the module.
pub fn run(graph: &Graph, goal: &Goal) -> Result<(Graph, Goal)> {
    let fed: FxHashSet<OutputRef> = goal.feeds.iter().copied().collect();
    // A placeholder that is fed does not run for those who wait for it, either: there is nothing to wait for. As a target it
    // does, and fails.
    let replaced: FxHashSet<NodeId> = goal
        .feeds
        .iter()
        .map(|feed| feed.node)
        .filter(|id| {
            let op = graph.node(*id).info.op_name();
            matches!(op, "Placeholder" | "PlaceholderV2" | "_Arg")
        })
        .collect();
    let mut needed = vec![false; graph.len()];
    // What an earlier pass made of a target may be an argument, which is there already.
    let is_argument = |id: &NodeId| replaced.contains(id) && graph.node(*id).info.op_name() == "_Arg";
    let mut stack: Vec<NodeId> = goal.targets.clone();
    stack.retain(|id| !is_argument(id));
    stack.extend(
        goal.fetches
            .iter()
            .filter(|fetch| !fed.contains(fetch))
            .map(|fetch| fetch.node),
    );
    while let Some(id) = stack.pop() {
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
        stack.extend(node.control_inputs.iter().filter(|id| !replaced.contains(id)));
    }
    let mut rebuild = Rebuild::of(graph);
    for (index, feed) in goal.feeds.iter().enumerate() {
        let argument = feed_node(graph, *feed, index)?;
        let argument = rebuild.add(argument, Vec::new(), Vec::new())?;
        let value = OutputRef {
            node: argument,
            index: 0,
        };
        rebuild.graph.set_shape(value, graph.output_shape(*feed));
        rebuild.set_value(*feed, value);
    }
    for id in in_order(graph)?.into_iter().filter(|id| needed[*id as usize]) {
        let new = rebuild.copy(graph, id)?;
        debug_assert!(rebuild.graph.get(new).is_some());
        // What is fed stays fed, also when its node runs for another of its outputs.
        for (index, feed) in goal.feeds.iter().enumerate().filter(|(_, feed)| feed.node == id) {
            rebuild.set_value(
                *feed,
                OutputRef {
                    node: index as u32,
                    index: 0,
                },
            );
        }
    }
    rebuild.finish(goal)
}

/// The node that stands for a fed value.
fn feed_node(graph: &Graph, feed: OutputRef, index: usize) -> Result<Arc<NodeInfo>> {
    let source = &graph.node(feed.node).info;
    if source.op_name() == "_Arg" {
        return Ok(source.clone());
    }
    let dtype = graph.output_type(feed)?.base();
    let attrs = Attrs::new().with("T", dtype).with("index", index as i64);
    let name = format!("_arg_{}_{}_{index}", graph.node(feed.node).info.name, feed.index);
    Ok(Arc::new(NodeInfo::new(
        name,
        graph.registry().find("_Arg")?,
        String::new(),
        attrs,
    )?))
}
