//! Passes over a graph that is about to be planned. Each makes a new graph; the client's stays as it is.
//!
//! [`optimize`] is the pipeline. A pass keeps what [`Goal`] names: the values fed, fetched and the nodes targeted.

mod cse;
mod fold;
mod inline;
pub mod plugin;
mod prune;
mod rebuild;
mod simplify;

pub use cse::is_control_flow;
pub use rebuild::{Rebuild, in_order};

use crate::{Graph, NodeId};
use ff_op::OutputRef;
use ff_tensor::Result;

/// What a run wants of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Outputs whose values are given.
    pub feeds: Vec<OutputRef>,
    /// Outputs whose values are wanted.
    pub fetches: Vec<OutputRef>,
    /// Nodes to run.
    pub targets: Vec<NodeId>,
}

/// How much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Only take out what is not needed.
    Prune,
    /// Also inline calls, fold constants, merge equal nodes.
    Full,
}

/// A graph with only what `goal` needs, improved as far as `level` says, and the goal in terms of it.
pub fn optimize(graph: &Graph, goal: &Goal, level: Level) -> Result<(Graph, Goal)> {
    match level {
        Level::Prune => prune::run(graph, goal),
        Level::Full => full(graph, goal, true),
    }
}

/// As [`optimize`] in full, also where calls that must be compiled cannot be.
pub(crate) fn optimize_unchecked(graph: &Graph, goal: &Goal) -> Result<(Graph, Goal)> {
    full(graph, goal, false)
}

fn full(graph: &Graph, goal: &Goal, checked: bool) -> Result<(Graph, Goal)> {
    let (graph, goal) = prune::run(graph, goal)?;
    let off = plugin::switched_off();
    let (mut graph, mut goal) = (graph, goal);
    if !off.inlining {
        (graph, goal) = inline::run(graph, goal, checked)?;
    }
    if !off.simplification {
        (graph, goal) = simplify::run(graph, goal)?;
    }
    if !off.folding {
        (graph, goal) = fold::run(graph, goal)?;
    }
    if !off.merging {
        (graph, goal) = cse::run(graph, goal)?;
    }
    prune::run(&graph, &goal)
}

#[cfg(test)]
mod tests;
