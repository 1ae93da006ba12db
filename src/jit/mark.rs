//! Which nodes can be part of a cluster.
//!
//! A node can when its op is pure and has a lowering, its values are plain, no control edge touches it, nothing asks for
//! the node itself, and inputs whose values shape its outputs are constants. With [`Mode::Auto`] its op must also be one
//! of those that gain: they do little work for each element, so that memory is what they wait for. With [`Mode::Asked`] the
//! node must ask for it. A node that says no is in no cluster.

use crate::IsLarge;
use crate::policy::{Mode, Policy};
use ff_graph::passes::{Goal, is_control_flow};
use ff_graph::{Graph, Node, NodeId, constant_behind};
use ff_op::{Effects, NodeInfo, ShapeContext, ShapeHost};
use ff_platform::vlog;
use ff_tensor::{DataType, PartialShape, Tensor};
use rustc_hash::FxHashSet;

/// Ops that compute each element, or each row, from little. Their kernels and lowerings agree bit for bit.
const FUSED: &[&str] = &[
    "Abs",
    "Add",
    "AddN",
    "AddV2",
    "BiasAdd",
    "Cast",
    "Ceil",
    "ClipByValue",
    "Div",
    "DivNoNan",
    "Elu",
    "EluGrad",
    "Equal",
    "Erf",
    "Exp",
    "Expm1",
    "Floor",
    "Greater",
    "GreaterEqual",
    "Inv",
    "InvGrad",
    "LeakyRelu",
    "LeakyReluGrad",
    "Less",
    "LessEqual",
    "Log",
    "Log1p",
    "LogSoftmax",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "Max",
    "Maximum",
    "Mean",
    "Min",
    "Minimum",
    "Mul",
    "MulNoNan",
    "Neg",
    "NotEqual",
    "OnesLike",
    "Pow",
    "RealDiv",
    "Reciprocal",
    "ReciprocalGrad",
    "Relu",
    "Relu6",
    "Relu6Grad",
    "ReluGrad",
    "Rint",
    "Round",
    "Rsqrt",
    "RsqrtGrad",
    "Select",
    "SelectV2",
    "Selu",
    "SeluGrad",
    "Sigmoid",
    "SigmoidGrad",
    "Sign",
    "Softmax",
    "Softplus",
    "SoftplusGrad",
    "Softsign",
    "SoftsignGrad",
    "Sqrt",
    "SqrtGrad",
    "Square",
    "SquaredDifference",
    "Sub",
    "Sum",
    "Tanh",
    "TanhGrad",
    "Xdivy",
    "Xlogy",
    "ZerosLike",
];

/// Ops that only look at their input in another way. They come along, but nobody gains by them.
const VIEWS: &[&str] = &[
    "ExpandDims",
    "Identity",
    "Reshape",
    "Snapshot",
    "Squeeze",
    "StopGradient",
];

/// Ops whose kernels and programs must agree bit for bit, for tests.
pub fn fused_ops() -> &'static [&'static str] {
    FUSED
}

/// What is known of each node.
pub struct Marks {
    /// Whether the node can be part of a cluster.
    pub can: Vec<bool>,
    /// Whether it computes something that is worth it.
    pub works: Vec<bool>,
}

/// Whether anything in the graph could be clustered: most small graphs are through with this.
pub fn any(graph: &Graph, policy: &Policy) -> bool {
    let mut works = 0;
    graph.nodes().any(|(_, node)| {
        let asks = policy.heeds_requests && node.info.asks_for_cluster() == Some(true);
        if asks && policy.mode != Mode::Auto && is_listed(&node.info, policy) {
            return true;
        }
        works += usize::from(is_listed(&node.info, policy) && !VIEWS.contains(&node.info.op_name()));
        works >= policy.least_members
    })
}

fn is_listed(info: &NodeInfo, policy: &Policy) -> bool {
    let name = info.op_name();
    if policy.heeds_requests && info.asks_for_cluster() == Some(false) {
        return false;
    }
    match policy.mode {
        Mode::Off => false,
        Mode::Asked => info.asks_for_cluster() == Some(true) && info.op.lower.is_some(),
        Mode::Auto => FUSED.binary_search(&name).is_ok() || VIEWS.contains(&name),
        Mode::On => info.op.lower.is_some(),
    }
}

/// Looks at every node.
pub fn mark(graph: &Graph, goal: &Goal, policy: &Policy, is_large: IsLarge) -> Marks {
    let mut kept: FxHashSet<NodeId> = goal.targets.iter().copied().collect();
    kept.extend(goal.feeds.iter().map(|feed| feed.node));
    let mut marks = Marks {
        can: Vec::with_capacity(graph.len()),
        works: Vec::with_capacity(graph.len()),
    };
    for (id, node) in graph.nodes() {
        let reason = if kept.contains(&id) {
            Some("it is fed or asked for")
        } else {
            why_not(graph, node, policy)
        };
        let is_told = policy.mode == Mode::On || node.info.asks_for_cluster() == Some(true);
        if let Some(reason) = reason.filter(|_| is_told) {
            vlog!(
                1,
                "not compilable: {} ({}): {reason}",
                node.info.name,
                node.info.op_name()
            );
        }
        marks.can.push(reason.is_none());
        marks
            .works
            .push(!VIEWS.contains(&node.info.op_name()) && is_large(&node.info));
    }
    marks
}

/// Why a node cannot be part of a cluster, if so.
fn why_not(graph: &Graph, node: &Node, policy: &Policy) -> Option<&'static str> {
    let info = &node.info;
    let types = || info.input_types.iter().chain(&info.output_types);
    match () {
        () if !is_listed(info, policy) => Some("it has no lowering, or none that pays"),
        () if info.op.lower.is_none() => Some("its op has no lowering"),
        () if info.op.effects != Effects::Pure || info.op.def.is_stateful => Some("it reads or writes state"),
        () if node.inputs.is_empty() => Some("it has no inputs"),
        () if is_control_flow(info.op_name()) => Some("it is control flow"),
        () if !node.control_inputs.is_empty() || !node.control_outputs.is_empty() => {
            Some("a control edge touches it")
        }
        () if types().any(|dtype| !dtype.is_plain() || dtype.is_ref()) => {
            Some("it has values that are not numbers")
        }
        () if policy.mode == Mode::Auto && reads_reference(graph, node) => {
            Some("it reads a reference variable, and when matters")
        }
        () if policy.mode == Mode::Auto && !is_exact(info) => {
            Some("its results could differ in the last bits")
        }
        () if needs_value(graph, node) => Some("its shape depends on a value that is not constant"),
        () => None,
    }
}

/// Whether program and kernels are known to agree in every bit, and in that there are no errors of values.
fn is_exact(info: &NodeInfo) -> bool {
    let is_counted = |dtype: &DataType| matches!(*dtype, DataType::INT32 | DataType::INT64);
    let is_plain = |dtype: &DataType| matches!(*dtype, DataType::FLOAT | DataType::BOOL);
    info.output_types.iter().all(is_plain)
        && (info.input_types.iter()).all(|dtype| is_plain(dtype) || is_counted(dtype))
}

/// Whether an input is a reference variable: a cluster may run later than the node would.
fn reads_reference(graph: &Graph, node: &Node) -> bool {
    let is_ref = |input| graph.output_type(input).is_ok_and(|dtype| dtype.is_ref());
    node.inputs.iter().any(|&input| is_ref(input))
}

/// Whether an input whose value the shape function asks for is not a constant.
fn needs_value(graph: &Graph, node: &Node) -> bool {
    let shapes: Vec<PartialShape> = node
        .inputs
        .iter()
        .map(|input| graph.output_shape(*input))
        .collect();
    let host = Constants { graph, node };
    let mut context = ShapeContext::new(&node.info, &shapes, &host);
    let fine = (node.info.op.shape)(&mut context).is_ok();
    let read = context.values_read();
    let is_constant = |index: usize| host.input_value(index).is_some();
    !fine || (0..node.inputs.len()).any(|index| read >> index.min(63) & 1 == 1 && !is_constant(index))
}

/// The values of inputs that are constants.
struct Constants<'a> {
    graph: &'a Graph,
    node: &'a Node,
}

impl ShapeHost for Constants<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        let constant = constant_behind(self.graph, *self.node.inputs.get(index)?)?;
        let value = self.graph.node(constant.node).info.attrs.tensor("value");
        value.ok().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(FUSED.is_sorted());
    }
}
