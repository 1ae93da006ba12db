//! Clusters: parts of a graph that run as one compiled program.
//!
//! [`cluster`] is a pass over a graph that is about to be planned:
//! 1. `mark` says which nodes can be part of a program, and which of them gain by it ([`Policy`]);
//! 2. `form` joins marked nodes along edges, as long as the graph of clusters stays free of cycles and no cluster holds
//!    values that are dead at different times;
//! 3. `encapsulate` puts one node in the place of each cluster.
//!
//! That node's kernel (`kernel`) runs the cluster op by op at first. Shapes that come again are lowered to HLO, compiled
//! behind the scenes, and run as a program from then on.
//!
//! With [`Mode::Auto`] a graph is clustered when it has run a few times ([`in_background`]), by what was seen of it: a
//! first run pays nothing, and a graph of small values stays as it is. Whether that pays is for the runtime to measure;
//! [`Watch`] says which runs tell.
//!
//! Contract: results, errors and what is dead are those of the nodes in the cluster. What cannot be lowered or compiled
//! keeps running op by op. A cluster never makes a step wait for a compiler, unless the policy is [`Mode::On`] or its nodes
//! ask for it ([`Mode::Asked`]).
//!
//! What it does not do: it knows nothing of sessions. The runtime gives it the way to run a cluster op by op.

mod acyclic;
mod compiler;
mod deadness;
mod encapsulate;
mod flags;
mod form;
mod kernel;
mod mark;
mod policy;
mod watch;

pub use compiler::in_background;
pub use encapsulate::MakeCallable;
pub use flags::{Flags, flags};
pub use kernel::{OP_NAME, num_programs};
pub use mark::fused_ops;
pub use policy::{Mode, Policy};
pub use watch::Watch;

use ff_graph::Graph;
use ff_graph::passes::Goal;
use ff_op::NodeInfo;
use ff_tensor::Result;
use std::sync::Arc;

/// Which nodes have values that are worth it.
pub type IsLarge<'a> = &'a dyn Fn(&Arc<NodeInfo>) -> bool;

/// Whether a graph has nodes that could make a cluster.
pub fn could_pay(graph: &Graph, policy: &Policy) -> bool {
    policy.mode != Mode::Off && mark::any(graph, policy)
}

/// How the runtime takes part.
pub struct Ways<'a> {
    /// Which nodes count towards the least size of a cluster.
    pub is_large: IsLarge<'a>,
    /// How a cluster runs op by op.
    pub make: MakeCallable<'a>,
    /// Told how far the clusters are.
    pub watch: &'a Arc<Watch>,
}

/// The graph with its clusters made nodes of op [`OP_NAME`], and the goal in terms of it.
pub fn cluster(graph: Graph, goal: Goal, policy: &Policy, ways: &Ways) -> Result<(Graph, Goal)> {
    if !could_pay(&graph, policy) {
        return Ok((graph, goal));
    }
    let marks = mark::mark(&graph, &goal, policy, ways.is_large);
    let clusters = form::form(&graph, &marks, policy)?;
    if clusters.accepted.is_empty() {
        return Ok((graph, goal));
    }
    encapsulate::encapsulate(graph, goal, &clusters, policy, ways)
}

#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod tests;
