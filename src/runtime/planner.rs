//! From a graph and what is asked of it to a plan: the passes, in order, then assembly.

use crate::options::SessionOptions;
use crate::plan::{Plan, Signature};
use ff_graph::Graph;
use ff_graph::passes::{Goal, optimize, plugin};
use ff_op::KernelHost;
use ff_tensor::Result;

/// Works out the plan for a signature.
pub fn plan(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, signature) = optimized(graph, signature, options, host)?;
    Plan::build(&graph, &signature, host)
}

/// Works out the plan for a partial run.
pub fn plan_partial(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, signature) = optimized(graph, signature, options, host)?;
    Plan::build_partial(&graph, &signature, host)
}

/// The graph after the passes, and the signature in it.
fn optimized(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<(Graph, Signature)> {
    let goal = Goal {
        feeds: signature.feeds.to_vec(),
        fetches: signature.fetches.to_vec(),
        targets: signature.targets.to_vec(),
    };
    let improved = options
        .plugin_passes()
        .and_then(|least_nodes| plugin::run(graph, &goal, host.device_name(), least_nodes));
    let (graph, goal) = match &improved {
        Some((graph, goal)) => optimize(graph, goal, options.passes())?,
        None => optimize(graph, &goal, options.passes())?,
    };
    let signature = Signature {
        feeds: goal.feeds.into(),
        fetches: goal.fetches.into(),
        targets: goal.targets.into(),
    };
    Ok((graph, signature))
}
