//! Passes that plug-ins add at run time: each gets the graph of a step as a message and gives it back improved.
//!
//! Assumes: nothing of a plug-in.
//! Guarantees: where a plug-in fails, or what it gives is no graph with everything that is fed, fetched and targeted, the
//! graph stays as it was and the failure is logged. One optimizer for each type of device.
//! Does not: look into functions, whose bodies plug-ins see in the library of the message only.

use super::Goal;
use crate::{Graph, ImportOptions, NodeId, export_library, export_node_def, import_graph_def};
use ff_op::OutputRef;
use ff_proto::GraphDef;
use ff_tensor::{Code, Result, bail, status};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an optimizer gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// The graph, with all functions.
    pub graph: GraphDef,
    /// Names of outputs that are fed: `node:0`.
    pub feeds: Vec<String>,
    /// Names of outputs that are fetched, and of nodes that are to run.
    pub fetches: Vec<String>,
}

impl Item {
    /// Names of nodes that must stay as they are: those of feeds and fetches, sorted.
    pub fn nodes_to_preserve(&self) -> Vec<String> {
        let named = self.fetches.iter().chain(&self.feeds);
        let nodes: BTreeSet<&str> = named.map(|name| name.split(':').next().unwrap_or(name)).collect();
        nodes.into_iter().map(str::to_string).collect()
    }
}

/// A pass of a plug-in. Threads call it at the same time.
pub trait Optimizer: Send + Sync {
    /// The graph to run instead. ABORTED when there is nothing to do.
    fn optimize(&self, item: &Item) -> Result<GraphDef>;
}

/// Which passes of ours a device does without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchedOff {
    /// Calls stay calls.
    pub inlining: bool,
    /// No arithmetic simplification.
    pub simplification: bool,
    /// Constants stay as they are.
    pub folding: bool,
    /// Equal nodes stay apart.
    pub merging: bool,
}

struct Added {
    device: String,
    off: SwitchedOff,
    optimizer: Arc<dyn Optimizer>,
}

static ADDED: RwLock<Vec<Added>> = RwLock::new(Vec::new());

/// Adds the optimizer of a type of device. ALREADY_EXISTS when there is one.
pub fn add(device: &str, off: SwitchedOff, optimizer: Arc<dyn Optimizer>) -> Result<()> {
    let mut added = ADDED.write();
    if added.iter().any(|it| it.device == device) {
        bail!(
            AlreadyExists,
            "Multiple graph optimizers are registered for device type {device}"
        );
    }
    added.push(Added {
        device: device.to_string(),
        off,
        optimizer,
    });
    Ok(())
}

/// The passes of ours that some device does without.
pub fn switched_off() -> SwitchedOff {
    let mut all = SwitchedOff::default();
    for it in ADDED.read().iter() {
        all.inlining |= it.off.inlining;
        all.simplification |= it.off.simplification;
        all.folding |= it.off.folding;
        all.merging |= it.off.merging;
    }
    all
}

/// The graph as plug-ins improve it, and the goal in terms of it; none where there is nothing new. `device` is the full name
/// of that of nodes that name none; graphs of fewer than `least_nodes` nodes are left alone.
pub fn run(graph: &Graph, goal: &Goal, device: &str, least_nodes: usize) -> Option<(Graph, Goal)> {
    if ADDED.read().is_empty() || graph.len() < least_nodes {
        return None;
    }
    let mut item = item(graph, goal, device);
    let kinds: BTreeSet<String> = item.graph.node.iter().map(|node| kind_of(&node.device)).collect();
    let chosen: Vec<(String, Arc<dyn Optimizer>)> = ADDED
        .read()
        .iter()
        .filter(|it| kinds.contains(&it.device))
        .map(|it| (it.device.clone(), it.optimizer.clone()))
        .collect();
    let mut improved = None;
    for (kind, optimizer) in chosen {
        let outcome = optimizer.optimize(&item).and_then(|def| {
            let result = import(graph, goal, &def)?;
            item.graph = def;
            Ok(result)
        });
        match outcome {
            Ok(result) => improved = Some(result),
            Err(error) if error.code() == Code::Aborted => {}
            Err(error) => {
                ff_platform::error!("The graph optimizer for {kind} failed: {}", error.message());
            }
        }
    }
    improved
}

/// The type of a device: `CPU` of `/job:localhost/device:CPU:0`.
fn kind_of(device: &str) -> String {
    let part = device.split('/').find_map(|part| {
        part.strip_prefix("device:")
            .or_else(|| Some(part).filter(|part| part.starts_with("cpu:") || part.starts_with("gpu:")))
    });
    let kind = part.and_then(|part| part.split(':').next()).unwrap_or("CPU");
    kind.to_uppercase()
}

fn output_name(graph: &Graph, output: &OutputRef) -> String {
    format!("{}:{}", graph.node(output.node).info.name, output.index)
}

fn item(graph: &Graph, goal: &Goal, device: &str) -> Item {
    let mut needed = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = goal.targets.clone();
    stack.extend(goal.fetches.iter().chain(&goal.feeds).map(|output| output.node));
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut needed[id as usize], true) {
            let node = graph.node(id);
            stack.extend(node.inputs.iter().map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
    }
    let kept = graph.nodes().filter(|(id, _)| needed[*id as usize]);
    let nodes = kept.map(|(_, node)| {
        let mut def = export_node_def(graph, node);
        if def.device.is_empty() {
            def.device = device.to_string();
        }
        def
    });
    let targets = goal.targets.iter().map(|id| graph.node(*id).info.name.clone());
    Item {
        graph: GraphDef {
            node: nodes.collect(),
            library: Some(export_library(graph.functions())),
            versions: Some(graph.versions.clone()),
            ..GraphDef::default()
        },
        feeds: goal.feeds.iter().map(|feed| output_name(graph, feed)).collect(),
        fetches: goal
            .fetches
            .iter()
            .map(|fetch| output_name(graph, fetch))
            .chain(targets)
            .collect(),
    }
}

/// A graph of what a plug-in gave, and the goal in it.
fn import(old: &Graph, goal: &Goal, def: &GraphDef) -> Result<(Graph, Goal)> {
    let mut graph = Graph::with_functions(old.registry().clone(), old.functions().clone());
    import_graph_def(&mut graph, def.clone(), &ImportOptions::default())?;
    let node = |id: NodeId| {
        let name = &old.node(id).info.name;
        graph
            .find(name)
            .ok_or_else(|| status!(InvalidArgument, "The optimized graph has no node '{name}'"))
    };
    let output = |output: &OutputRef| {
        let moved = OutputRef {
            node: node(output.node)?,
            index: output.index,
        };
        let dtype = graph.output_type(moved)?;
        if dtype != old.output_type(*output)? {
            bail!(
                InvalidArgument,
                "{} is {dtype} in the optimized graph",
                output_name(old, output)
            );
        }
        Ok(moved)
    };
    let goal = Goal {
        feeds: goal.feeds.iter().map(output).collect::<Result<_>>()?,
        fetches: goal.fetches.iter().map(output).collect::<Result<_>>()?,
        targets: goal.targets.iter().map(|id| node(*id)).collect::<Result<_>>()?,
    };
    Ok((graph, goal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_devices() {
        assert_eq!(kind_of("/job:localhost/replica:0/task:0/device:CPU:0"), "CPU");
        assert_eq!(kind_of("/device:MY_DEVICE:3"), "MY_DEVICE");
        assert_eq!(kind_of("/gpu:0"), "GPU");
        assert_eq!(kind_of(""), "CPU");
    }

    #[test]
    fn nodes_to_preserve_are_named_once() {
        let item = Item {
            feeds: vec!["x:0".to_string()],
            fetches: vec!["y:1".to_string(), "y".to_string(), "a".to_string()],
            ..Item::default()
        };
        assert_eq!(item.nodes_to_preserve(), ["a", "x", "y"]);
    }
}
