//! `TF_Graph`: a graph that clients extend while sessions run it.
//!
//! The state behind the handle is shared with the sessions, so deleting the graph first is legal. Operations are
//! boxes that the state owns: their addresses, and the strings they give out, stay until graph and sessions are gone.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::ffi::{Array, Handle, Out, Room, Text, given, given_mut, put};
use crate::guard::{guard, guard_or, quiet};
use crate::operation::{TF_Operation, TF_Output};
use crate::tensor::TF_Tensor;
use ff_graph::{Graph, NodeId, constant_value, export_graph_def};
use ff_op::OutputRef;
use ff_ops::registry;
use ff_runtime::SharedGraph;
use ff_tensor::{PartialShape, Result, ensure, status};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::ffi::{c_int, c_uchar};
use std::ptr::null_mut;
use std::sync::Arc;

/// A graph of operations. Any thread may use it at any time, also while sessions run it.
pub struct TF_Graph {
    /// What the handle shares with sessions.
    pub state: Arc<GraphState>,
    /// For the condition of a loop under construction: where the loop goes.
    pub parent: Option<WhileParent>,
}

/// Where a loop under construction goes.
pub struct WhileParent {
    /// The graph.
    pub state: Arc<GraphState>,
    /// First values of the loop's variables.
    pub inputs: Vec<OutputRef>,
}

/// A graph and the operations that C code has seen.
pub struct GraphState {
    /// The graph itself.
    pub graph: Arc<SharedGraph>,
    operations: RwLock<Vec<Option<Box<TF_Operation>>>>,
}

impl GraphState {
    /// An empty graph over all ops.
    pub fn new() -> Arc<GraphState> {
        let mut graph = Graph::new(registry());
        graph.requires_shape_functions = true;
        GraphState::of(graph)
    }

    /// The state of this graph.
    pub fn of(graph: Graph) -> Arc<GraphState> {
        Arc::new(GraphState {
            graph: Arc::new(Mutex::new(graph)),
            operations: RwLock::default(),
        })
    }

    /// The graph, for this thread alone.
    pub fn lock(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock()
    }

    /// The operation that stands for a node.
    pub fn operation(&self, id: NodeId) -> *mut TF_Operation {
        let index = id as usize;
        if let Some(Some(operation)) = self.operations.read().get(index) {
            return (&raw const **operation).cast_mut();
        }
        let mut operations = self.operations.write();
        if operations.len() <= index {
            operations.resize_with(index + 1, || None);
        }
        let operation = operations[index].get_or_insert_with(|| Box::new(TF_Operation::new(self, id)));
        (&raw const **operation).cast_mut()
    }

    /// An output as C has it.
    pub fn output(&self, output: OutputRef) -> TF_Output {
        TF_Output {
            oper: self.operation(output.node),
            index: output.index as c_int,
        }
    }

    /// The node of an operation of this graph. INVALID_ARGUMENT for NULL and for one of another graph.
    pub fn node_of(&self, operation: Handle<TF_Operation>) -> Result<NodeId> {
        let operation = given(operation, "the operation")?;
        ensure!(
            operation.belongs_to(self),
            InvalidArgument,
            "Node {} was not found in the graph",
            operation.name_text()
        );
        Ok(operation.id)
    }

    /// An output of this graph. INVALID_ARGUMENT for NULL, for another graph's, and for an index below zero.
    pub fn output_of(&self, output: TF_Output) -> Result<OutputRef> {
        let node = self.node_of(output.operation())?;
        let index = u32::try_from(output.index)
            .map_err(|_| status!(InvalidArgument, "an output has the index {}", output.index))?;
        Ok(OutputRef { node, index })
    }

    /// As [`GraphState::output_of`], with the graph for this thread alone. INVALID_ARGUMENT when the node has no such
    /// output.
    pub fn lock_output(&self, output: TF_Output) -> Result<(MutexGuard<'_, Graph>, OutputRef)> {
        let output = self.output_of(output)?;
        let graph = self.lock();
        graph.output_type(output)?;
        Ok((graph, output))
    }

    /// Outputs of this graph.
    pub fn outputs_of(&self, outputs: &[TF_Output]) -> Result<Vec<OutputRef>> {
        outputs.iter().map(|output| self.output_of(*output)).collect()
    }

    /// Nodes of this graph.
    pub fn nodes_of(&self, operations: &[Option<&TF_Operation>]) -> Result<Vec<NodeId>> {
        operations
            .iter()
            .map(|operation| self.node_of(*operation))
            .collect()
    }
}

/// The state behind a graph handle. INVALID_ARGUMENT for NULL.
pub(crate) fn state<'a>(graph: Handle<'a, TF_Graph>) -> Result<&'a Arc<GraphState>> {
    Ok(&given(graph, "the graph")?.state)
}

/// A new graph without operations. Free it with `TF_DeleteGraph`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewGraph() -> Option<Box<TF_Graph>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_Graph {
            state: GraphState::new(),
            parent: None,
        })))
    })
}

/// Frees a graph. Its operations stay valid while a session on it lives. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteGraph(graph: Option<Box<TF_Graph>>) {
    quiet((), || {
        drop(graph);
        Ok(())
    });
}

/// The shape that `dims` describes: unknown for a negative rank, -1 for an unknown extent.
pub(crate) fn partial_shape(dims: Array<i64>, num_dims: c_int) -> Result<PartialShape> {
    if num_dims < 0 {
        return Ok(PartialShape::unknown());
    }
    Ok(PartialShape::new(dims.of(num_dims, "dims")?))
}

/// Says more about the shape of an output: what is given is merged with what is known. A negative `num_dims` means an
/// unknown rank, -1 an unknown extent. Shapes that were inferred from it before do not change.
///
/// INVALID_ARGUMENT when the output is not in the graph or the shape contradicts what is known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphSetTensorShape(
    graph: Handle<TF_Graph>,
    output: TF_Output,
    dims: Array<i64>,
    num_dims: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let state = state(graph)?;
        let output = state.output_of(output)?;
        state.lock().refine_shape(output, &partial_shape(dims, num_dims)?)
    });
}

/// The number of dimensions of an output; -1 when it is not known.
///
/// INVALID_ARGUMENT when the output is not in the graph.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphGetTensorNumDims(
    graph: Handle<TF_Graph>,
    output: TF_Output,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, -1, || {
        let (graph, output) = state(graph)?.lock_output(output)?;
        Ok(graph.output_shape(output).rank().map_or(-1, |rank| rank as c_int))
    })
}

/// Writes the extents of an output, -1 for unknown ones, to `dims`, which has room for `num_dims`: what
/// `TF_GraphGetTensorNumDims` gives.
///
/// INVALID_ARGUMENT when the output is not in the graph or has another number of dimensions.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphGetTensorShape(
    graph: Handle<TF_Graph>,
    output: TF_Output,
    dims: Room<i64>,
    num_dims: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let (graph, output) = state(graph)?.lock_output(output)?;
        let shape = graph.output_shape(output);
        let rank = shape.rank().map_or(-1, |rank| rank as c_int);
        ensure!(
            rank == num_dims,
            InvalidArgument,
            "Expected rank is {num_dims} but actual rank is {rank}"
        );
        dims.write_all(num_dims, shape.dims().unwrap_or_default().to_vec(), "dims")
    });
}

/// The operation with this name, which belongs to the graph; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphOperationByName(graph: Handle<TF_Graph>, oper_name: Text) -> *mut TF_Operation {
    quiet(null_mut(), || {
        let state = state(graph)?;
        let id = state.lock().find(&oper_name.text("oper_name")?);
        Ok(id.map_or(null_mut(), |id| state.operation(id)))
    })
}

/// Goes through the operations, which belong to the graph: start with `*pos` 0 and call until NULL comes. Operations added
/// meanwhile are seen.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphNextOperation(
    graph: Handle<TF_Graph>,
    pos: Option<&mut usize>,
) -> *mut TF_Operation {
    quiet(null_mut(), || {
        let state = state(graph)?;
        let position = given_mut(pos, "pos")?;
        if *position >= state.lock().len() {
            return Ok(null_mut());
        }
        *position += 1;
        Ok(state.operation((*position - 1) as NodeId))
    })
}

/// Writes the graph as a serialized `GraphDef` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphToGraphDef(
    graph: Handle<TF_Graph>,
    output_graph_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let def = export_graph_def(&state(graph)?.lock());
        fill(output_graph_def, &def)
    });
}

/// Writes the `OpDef` of an op, or of a function of the graph, into an empty buffer. NOT_FOUND for an unknown name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphGetOpDef(
    graph: Handle<TF_Graph>,
    op_name: Text,
    output_op_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let record = state(graph)?.lock().find_op(&op_name.text("op_name")?)?;
        fill(output_op_def, &*record.def)
    });
}

/// Writes the graph's versions as a serialized `VersionDef` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphVersions(
    graph: Handle<TF_Graph>,
    output_version_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let versions = state(graph)?.lock().versions.clone();
        fill(output_version_def, &versions)
    });
}

/// Tries to compute an output from constants and known shapes alone, without a session. 1 when that succeeds: then
/// `*result` is the value, which the caller owns. 0 with an OK status when it cannot be known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TryEvaluateConstant(
    graph: Handle<TF_Graph>,
    output: TF_Output,
    result: Out<*mut TF_Tensor>,
    status: Option<&mut TF_Status>,
) -> c_uchar {
    guard(status, || {
        let result = given_mut(result, "result")?;
        result.write(null_mut());
        let (graph, output) = state(graph)?.lock_output(output)?;
        let Some(value) = constant_value(&graph, output) else {
            return Ok(0);
        };
        let tensor = TF_Tensor::boxed(value)?;
        put(Some(result), Box::into_raw(tensor), "result")?;
        Ok(1)
    })
}
