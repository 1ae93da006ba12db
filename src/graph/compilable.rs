//! Whether a body that must be compiled can be.
//!
//! What can be is what has a lowering, and what the reference's compiler knows besides: reads and updates of variables,
//! lists, random numbers, results whose shape depends on values. Those run as they are, around what is compiled. All else
//! is refused as the reference refuses it, whether or not it would be met.

use crate::gradients::reach;
use crate::passes::{Goal, optimize_unchecked};
use crate::{FunctionBody, Graph, called_by_name};
use ff_op::{FunctionRef, NodeInfo};
use ff_tensor::{DataType, Result, status};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Ops without a lowering that the reference compiles.
const BESIDE: &[&str] = &[
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "AssignVariableXlaConcatND",
    "CollectiveAssignGroupV2",
    "CollectiveReduceV2",
    "ControlTrigger",
    "DeviceIndex",
    "DynamicPartition",
    "EmptyTensorList",
    "FakeParam",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "ReadVariableOp",
    "ReadVariableXlaSplitND",
    "ResourceApplyAdaMax",
    "ResourceApplyAdadelta",
    "ResourceApplyAdagrad",
    "ResourceApplyAdagradDA",
    "ResourceApplyAdagradV2",
    "ResourceApplyAdam",
    "ResourceApplyAddSign",
    "ResourceApplyCenteredRMSProp",
    "ResourceApplyFtrl",
    "ResourceApplyFtrlV2",
    "ResourceApplyGradientDescent",
    "ResourceApplyKerasMomentum",
    "ResourceApplyMomentum",
    "ResourceApplyPowerSign",
    "ResourceApplyProximalAdagrad",
    "ResourceApplyProximalGradientDescent",
    "ResourceApplyRMSProp",
    "ResourceGather",
    "ResourceScatterAdd",
    "ResourceScatterDiv",
    "ResourceScatterMax",
    "ResourceScatterMin",
    "ResourceScatterMul",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceScatterNdUpdate",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ResourceStridedSliceAssign",
    "RngReadAndSkip",
    "RngSkip",
    "StackCloseV2",
    "StackPopV2",
    "StackPushV2",
    "StackV2",
    "StatefulStandardNormalV2",
    "StatefulTruncatedNormal",
    "StatefulUniform",
    "StatefulUniformFullInt",
    "StatefulUniformInt",
    "SymbolicGradient",
    "TensorArrayCloseV3",
    "TensorArrayConcatV3",
    "TensorArrayGatherV3",
    "TensorArrayGradV3",
    "TensorArrayReadV3",
    "TensorArrayScatterV3",
    "TensorArraySizeV3",
    "TensorArraySplitV3",
    "TensorArrayV3",
    "TensorArrayWriteV3",
    "TensorListConcatV2",
    "TensorListElementShape",
    "TensorListFromTensor",
    "TensorListGather",
    "TensorListGetItem",
    "TensorListLength",
    "TensorListPopBack",
    "TensorListPushBack",
    "TensorListReserve",
    "TensorListSetItem",
    "TensorListSplit",
    "TensorListStack",
    "TruncatedNormal",
    "Unique",
    "UniqueV2",
    "VarIsInitializedOp",
    "VariableShape",
    "Where",
    "XlaAllReduce",
    "XlaCallModule",
    "XlaConcatND",
    "XlaCustomCall",
    "XlaCustomCallV2",
    "XlaDequantize",
    "XlaRecv",
    "XlaReduceScatter",
    "XlaSend",
    "XlaSplitND",
    "_Arg",
];

impl FunctionBody {
    /// Whether this body, which is that of `function`, can be compiled with all that it calls. INVALID_ARGUMENT naming the
    /// first node that cannot.
    pub fn check_compilable(&self, function: &str) -> Result<()> {
        let Some(_) = refused(self.graph(), &self.goal(), function, false) else {
            return Ok(());
        };
        // What is constant, or is not needed, is not compiled.
        let (graph, goal) = optimize_unchecked(self.graph(), &self.goal())?;
        let Some((function, node)) = refused(&graph, &goal, function, true) else {
            return Ok(());
        };
        let (op, name) = (
            node.op_name(),
            &node.origin.as_ref().map_or(&node, |(_, node)| node).name,
        );
        Err(status!(
            InvalidArgument,
            "Detected unsupported operations when trying to compile graph {function}[] on XLA_CPU_JIT: {op} (No registered '{op}' OpKernel for XLA_CPU_JIT devices compatible with node {{{{node {name}}}}}){{{{node {name}}}}}"
        ))
    }
}

/// The first node that cannot be compiled, and the function in whose body it is.
fn refused(graph: &Graph, goal: &Goal, function: &str, optimize: bool) -> Option<(String, Arc<NodeInfo>)> {
    let mut seen: FxHashSet<FunctionRef> = FxHashSet::default();
    let mut left: Vec<FunctionRef> = Vec::new();
    if let Some(node) = refused_here(graph, goal, &mut left) {
        return Some((function.to_string(), node));
    }
    while let Some(function) = left.pop() {
        if !seen.insert(function.clone()) {
            continue;
        }
        // What is wrong with a function is said where it is called.
        let Ok(body) = FunctionBody::instantiate(graph.registry(), graph.functions(), &function) else {
            continue;
        };
        let optimized = optimize
            .then(|| optimize_unchecked(body.graph(), &body.goal()).ok())
            .flatten();
        let found = match &optimized {
            Some((graph, goal)) => refused_here(graph, goal, &mut left),
            None => refused_here(body.graph(), &body.goal(), &mut left),
        };
        if let Some(node) = found {
            return Some((function.name, node));
        }
    }
    None
}

/// The first node of one graph that cannot be compiled; `called` gets the functions that its nodes call.
fn refused_here(graph: &Graph, goal: &Goal, called: &mut Vec<FunctionRef>) -> Option<Arc<NodeInfo>> {
    let wanted = goal.fetches.iter().chain(&goal.feeds).map(|output| output.node);
    let needed = reach(graph, wanted.chain(goal.targets.iter().copied()), |node, next| {
        next.extend(node.inputs.iter().map(|input| input.node));
        next.extend(&node.control_inputs);
    });
    for (_, node) in graph.nodes().filter(|(id, _)| needed[*id as usize]) {
        let info = &node.info;
        match called_by_name(graph, info) {
            Some(function) => called.push(function),
            None if is_compilable(info) => called.extend(info.functions()),
            None => return Some(info.clone()),
        }
    }
    None
}

fn is_compilable(info: &NodeInfo) -> bool {
    let name = info.op_name();
    let mut types = info.input_types.iter().chain(&info.output_types);
    let has_text = types.any(|dtype| dtype.base() == DataType::STRING);
    match name {
        // Texts may be there, as long as nobody reads them.
        "Const" => true,
        _ => !has_text && (info.op.lower.is_some() || BESIDE.binary_search(&name).is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(BESIDE.is_sorted());
    }
}
