//! Bodies of functions as graphs.

use crate::{FunctionLibrary, Graph, NodeId};
use ff_op::{FunctionRef, FunctionSignature, OutputRef, Registry};
use ff_tensor::{Result, status};
use std::sync::Arc;

/// A function's body for certain attribute values.
pub struct FunctionBody {
    graph: Graph,
    arguments: Vec<OutputRef>,
    results: Vec<OutputRef>,
    targets: Vec<NodeId>,
    signature: FunctionSignature,
}

impl FunctionBody {
    /// Builds the body. NOT_FOUND when the library has no such function.
    pub fn instantiate(
        _registry: &Arc<Registry>,
        library: &Arc<FunctionLibrary>,
        function: &FunctionRef,
    ) -> Result<FunctionBody> {
        library.find(&function.name)?;
        Err(status!(Unimplemented, "function {}", function.name))
    }

    /// Types of arguments and results.
    pub fn signature(&self) -> FunctionSignature {
        self.signature.clone()
    }

    /// One output per argument: that of its `_Arg` node.
    pub fn arguments(&self) -> &[OutputRef] {
        &self.arguments
    }

    /// What each result returns.
    pub fn results(&self) -> &[OutputRef] {
        &self.results
    }

    /// Nodes that must run although no result needs them.
    pub fn targets(&self) -> &[NodeId] {
        &self.targets
    }

    /// The body.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}
