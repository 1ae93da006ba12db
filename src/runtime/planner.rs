//! From a graph and what is asked of it to a plan: the passes, in order, then assembly.

use crate::plan::{Plan, Signature};
use ff_graph::Graph;
use ff_graph::passes::{Goal, Level, optimize};
use ff_op::KernelHost;
use ff_tensor::Result;

/// Works out the plan for a signature.
pub fn plan(graph: &Graph, signature: &Signature, level: Level, host: &dyn KernelHost) -> Result<Plan> {
    let (graph, signature) = optimized(graph, signature, level)?;
    Plan::build(&graph, &signature, host)
}

/// Works out the plan for a partial run.
pub fn plan_partial(
    graph: &Graph,
    signature: &Signature,
    level: Level,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, signature) = optimized(graph, signature, level)?;
    Plan::build_partial(&graph, &signature, host)
}

/// The graph after the passes, and the signature in it.
fn optimized(graph: &Graph, signature: &Signature, level: Level) -> Result<(Graph, Signature)> {
    let goal = Goal {
        feeds: signature.feeds.to_vec(),
        fetches: signature.fetches.to_vec(),
        targets: signature.targets.to_vec(),
    };
    let (graph, goal) = optimize(graph, &goal, level)?;
    let signature = Signature {
        feeds: goal.feeds.into(),
        fetches: goal.fetches.into(),
        targets: goal.targets.into(),
    };
    Ok((graph, signature))
}
