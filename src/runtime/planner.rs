//! From a graph and what is asked of it to a plan: the passes, in order, then assembly.

use crate::better_plan::{KeptPlan, Source};
use crate::options::SessionOptions;
use crate::plan::{Plan, Signature};
use crate::sketch::{Seen, Sketch};
use ff_graph::passes::{Goal, Level, optimize, plugin};
use ff_graph::{FunctionBody, Graph};
use ff_jit::{Mode, Policy, Watch, Ways};
use ff_op::{Callable, KernelHost, NodeInfo};
use ff_tensor::Result;
use std::sync::Arc;

/// Works out the plan for a signature, with the clusters that are asked for, by `policy` or by nodes; and with what a better
/// one can be made of, where others could pay.
pub fn plan(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    policy: &Policy,
    host: &dyn KernelHost,
) -> Result<Arc<KeptPlan>> {
    let (graph, goal) = optimized(graph, signature, options, host)?;
    let (graph, goal) = clustered(graph, goal, policy)?;
    let plan = Plan::build(&graph, &signature_of(&goal), host)?;
    // Values that go from device to device are not looked at behind the scenes.
    let can = policy.mode == Mode::Auto && host.device_names().len() == 1;
    let can = can && ff_jit::could_pay(&graph, policy);
    let source = can.then(|| (Source::Graph(Box::new(graph), goal), *policy));
    Ok(KeptPlan::new(plan, source))
}

/// Works out the plan for a function that asks to be compiled: as for a graph, with the clusters that `policy` gives.
pub fn plan_body(body: &FunctionBody, policy: &Policy, host: &dyn KernelHost) -> Result<Plan> {
    let (graph, goal) = optimize(body.graph(), &body.goal(), Level::Full)?;
    let (graph, goal) = clustered(graph, goal, policy)?;
    Plan::build(&graph, &signature_of(&goal), host)
}

/// With what is clustered before the first run.
fn clustered(graph: Graph, goal: Goal, policy: &Policy) -> Result<(Graph, Goal)> {
    let Some(policy) = policy.at_once() else {
        return Ok((graph, goal));
    };
    let ways = Ways {
        is_large: &|_| true,
        make: &make,
        watch: &Arc::default(),
    };
    ff_jit::cluster(graph, goal, &policy, &ways)
}

/// The plan with clusters of what a plan was seen to do with large values; none where there are none.
pub fn improved(
    earlier: &Sketch,
    (graph, goal): (Graph, Goal),
    policy: &Policy,
    watch: &Arc<Watch>,
    host: &dyn KernelHost,
) -> Result<Option<Plan>> {
    let is_large = |node: &Arc<NodeInfo>| {
        let seen = earlier.of(node);
        seen.map_or(0, Seen::most_elements) >= policy.least_elements
    };
    let ways = Ways {
        is_large: &is_large,
        make: &make,
        watch,
    };
    let count = |graph: &Graph| {
        let names = graph.nodes().map(|(_, node)| node.info.op_name());
        names.filter(|name| *name == ff_jit::OP_NAME).count()
    };
    let before = count(&graph);
    let (graph, goal) = ff_jit::cluster(graph, goal, policy, &ways)?;
    if count(&graph) == before {
        return Ok(None);
    }
    Plan::build_after(&graph, &signature_of(&goal), host, earlier).map(Some)
}

fn make(body: Arc<FunctionBody>) -> Arc<dyn Callable> {
    crate::functions::callable("cluster", body)
}

/// Works out the plan for a partial run.
pub fn plan_partial(
    graph: &Graph,
    signature: &Signature,
    options: &SessionOptions,
    host: &dyn KernelHost,
) -> Result<Plan> {
    let (graph, goal) = optimized(graph, signature, options, host)?;
    Plan::build_partial(&graph, &signature_of(&goal), host)
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

fn signature_of(goal: &Goal) -> Signature {
    Signature {
        feeds: goal.feeds.as_slice().into(),
        fetches: goal.fetches.as_slice().into(),
        targets: goal.targets.as_slice().into(),
    }
}
