//! From a graph and what is asked of it to a plan: the passes, in order, then assembly.

use crate::plan::{Plan, Signature};
use ff_graph::Graph;
use ff_op::KernelHost;
use ff_tensor::Result;

/// Works out the plan for a signature.
pub fn plan(graph: &Graph, signature: &Signature, host: &dyn KernelHost) -> Result<Plan> {
    Plan::build(graph, signature, host)
}
