//! From a graph and what is asked of it to a plan: the passes, in order, then assembly.

use crate::options::SessionOptions;
use crate::plan::{Plan, Signature};
use ff_graph::Graph;
use ff_graph::passes::{Goal, optimize, plugin};
use ff_jit::Policy;
use ff_op::KernelHost;
use ff_tensor::Result;

/// Works out the plan for a signature, with clusters as `policy` says.
pub fn plan(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    policy: &Policy,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, goal) = optimized(graph, signature, options, host)?;
    let make = |body| crate::functions::callable("cluster", body);
    let (graph, goal) = ff_jit::cluster(graph, goal, policy, &make)?;
    Plan::build(&graph, &signature_of(goal), host)
}

/// Works out the plan for a partial run.
pub fn plan_partial(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, goal) = optimized(graph, signature, options, host)?;
    Plan::build_partial(&graph, &signature_of(goal), host)
}

/// The graph after the passes, and the goal in it.
pub fn optimized(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<(Graph, Goal)> {
    let goal = Goal {
        feeds: signature.feeds.to_vec(),
        fetches: signature.fetches.to_vec(),
        targets: signature.targets.to_vec(),
    };
    let improved = options
        .plugin_passes()
        .and_then(|least_nodes| plugin::run(graph, &goal, host.device_name(), least_nodes));
    match &improved {
        Some((graph, goal)) => optimize(graph, goal, options.passes()),
        None => optimize(graph, &goal, options.passes()),
    }
}

fn signature_of(goal: Goal) -> Signature {
    Signature {
        feeds: goal.feeds.into(),
        fetches: goal.fetches.into(),
        targets: goal.targets.into(),
    }
}
