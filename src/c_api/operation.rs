//! `TF_Operation`: a node of a graph, and what can be asked of it.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::datatype::{TF_DataType, to_c};
use crate::ffi::{Enum, Handle, Room, Text, c_count, c_string, given};
use crate::graph::GraphState;
use crate::guard::{guard, guard_or, quiet};
use ff_graph::{Consumers, Graph, Node, NodeId, export_node_def};
use ff_proto::op_def::ArgDef;
use ff_tensor::{DataType, Result, status};
use parking_lot::Mutex;
use std::ffi::{CString, c_char, c_int};
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

/// A node of a graph. It belongs to the graph and is valid until the graph and the sessions on it are deleted. Any
/// thread may use it.
pub struct TF_Operation {
    state: NonNull<GraphState>,
    /// The node's number in its graph.
    pub id: NodeId,
    name: OnceLock<CString>,
    op_type: OnceLock<CString>,
    /// Every device name that was given out; the last is the present one.
    devices: Mutex<Vec<CString>>,
}

// SAFETY: the state is shared by threads and outlives its operations, which it owns; the rest is behind locks.
unsafe impl Send for TF_Operation {}
// SAFETY: as above.
unsafe impl Sync for TF_Operation {}

/// An input of an operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_Input {
    /// The operation.
    pub oper: *mut TF_Operation,
    /// Which of its inputs, from 0.
    pub index: c_int,
}

/// An output of an operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_Output {
    /// The operation.
    pub oper: *mut TF_Operation,
    /// Which of its outputs, from 0.
    pub index: c_int,
}

impl TF_Input {
    /// The operation; none for NULL.
    pub fn operation<'a>(self) -> Handle<'a, TF_Operation> {
        // SAFETY: C code passes NULL or an operation of a graph that lives.
        unsafe { self.oper.as_ref() }
    }
}

impl TF_Output {
    /// No output.
    pub const NONE: TF_Output = TF_Output {
        oper: null_mut(),
        index: 0,
    };

    /// The operation; none for NULL.
    pub fn operation<'a>(self) -> Handle<'a, TF_Operation> {
        // SAFETY: C code passes NULL or an operation of a graph that lives.
        unsafe { self.oper.as_ref() }
    }
}

impl TF_Operation {
    /// The operation for a node, to be owned by this state.
    pub fn new(state: &GraphState, id: NodeId) -> TF_Operation {
        TF_Operation {
            state: NonNull::from(state),
            id,
            name: OnceLock::new(),
            op_type: OnceLock::new(),
            devices: Mutex::default(),
        }
    }

    /// The state of its graph.
    pub fn state(&self) -> &GraphState {
        // SAFETY: the state owns this operation.
        unsafe { self.state.as_ref() }
    }

    /// Whether it is an operation of this graph.
    pub fn belongs_to(&self, state: &GraphState) -> bool {
        self.state == NonNull::from(state)
    }

    /// Looks at its node.
    pub fn with<T>(&self, look: impl FnOnce(&Node, &Graph) -> Result<T>) -> Result<T> {
        let graph = self.state().lock();
        let node = graph
            .get(self.id)
            .ok_or_else(|| status!(Internal, "an operation has lost its node"))?;
        look(node, &graph)
    }

    /// Its name, for messages.
    pub fn name_text(&self) -> String {
        self.with(|node, _| Ok(node.info.name.clone()))
            .unwrap_or_default()
    }

    fn name(&self) -> *const c_char {
        self.name.get_or_init(|| c_string(&self.name_text())).as_ptr()
    }
}

/// Looks at the node of an operation. INVALID_ARGUMENT for NULL.
pub(crate) fn look<T>(
    operation: Handle<TF_Operation>,
    look: impl FnOnce(&Node, &Graph) -> Result<T>,
) -> Result<T> {
    given(operation, "the operation")?.with(look)
}

/// The name. The string lives as long as the operation; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationName(oper: Handle<TF_Operation>) -> *const c_char {
    quiet(null(), || Ok(given(oper, "oper")?.name()))
}

/// The type of op. The string lives as long as the operation; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationOpType(oper: Handle<TF_Operation>) -> *const c_char {
    quiet(null(), || {
        let operation = given(oper, "oper")?;
        let op_type = || operation.with(|node, _| Ok(c_string(node.info.op_name())));
        Ok(operation
            .op_type
            .get_or_init(|| op_type().unwrap_or_default())
            .as_ptr())
    })
}

/// The device that was asked for; empty for any. The string lives as long as the operation; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationDevice(oper: Handle<TF_Operation>) -> *const c_char {
    quiet(null(), || {
        let operation = given(oper, "oper")?;
        let device = operation.with(|node, _| Ok(c_string(&node.info.device)))?;
        let mut devices = operation.devices.lock();
        if devices.last() != Some(&device) {
            devices.push(device);
        }
        Ok(devices.last().map_or(null(), |device| device.as_ptr()))
    })
}

/// The number of outputs; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationNumOutputs(oper: Handle<TF_Operation>) -> c_int {
    quiet(0, || {
        look(oper, |node, _| Ok(c_count(node.info.output_types.len())))
    })
}

fn type_at(types: &[DataType], index: c_int) -> Enum<TF_DataType> {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    types.get(index).map_or(Enum::new(0), |dtype| to_c(*dtype))
}

/// The element type of an output; 0 when there is no such output.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationOutputType(oper_out: TF_Output) -> Enum<TF_DataType> {
    let types = |node: &Node, _: &Graph| Ok(type_at(&node.info.output_types, oper_out.index));
    quiet(Enum::new(0), || look(oper_out.operation(), types))
}

fn arg_index(args: &[ArgDef], name: &str, kind: &str) -> Result<usize> {
    let index = args.iter().position(|arg| arg.name == name);
    index.ok_or_else(|| status!(InvalidArgument, "{kind} arg '{name}' not found"))
}

/// How many outputs an output argument of the op has; -1 with INVALID_ARGUMENT when there is no such argument.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationOutputListLength(
    oper: Handle<TF_Operation>,
    arg_name: Text,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, -1, || {
        let name = arg_name.text("arg_name")?;
        look(oper, |node, _| {
            let index = arg_index(&node.info.op.def.output_arg, &name, "Output")?;
            Ok(c_count(node.info.output_range(index).len()))
        })
    })
}

/// The number of inputs; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationNumInputs(oper: Handle<TF_Operation>) -> c_int {
    quiet(0, || look(oper, |node, _| Ok(c_count(node.inputs.len()))))
}

/// The element type of an input; 0 when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationInputType(oper_in: TF_Input) -> Enum<TF_DataType> {
    let types = |node: &Node, _: &Graph| Ok(type_at(&node.info.input_types, oper_in.index));
    quiet(Enum::new(0), || look(oper_in.operation(), types))
}

/// How many inputs an input argument of the op has; -1 with INVALID_ARGUMENT when there is no such argument.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationInputListLength(
    oper: Handle<TF_Operation>,
    arg_name: Text,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, -1, || {
        let name = arg_name.text("arg_name")?;
        look(oper, |node, _| {
            let index = arg_index(&node.info.op.def.input_arg, &name, "Input")?;
            Ok(c_count(node.info.input_range(index).len()))
        })
    })
}

/// The output that an input reads; no operation when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationInput(oper_in: TF_Input) -> TF_Output {
    quiet(TF_Output::NONE, || {
        let operation = given(oper_in.operation(), "the operation")?;
        let index = usize::try_from(oper_in.index).unwrap_or(usize::MAX);
        let source = operation.with(|node, _| Ok(node.inputs.get(index).copied()))?;
        Ok(source.map_or(TF_Output::NONE, |source| operation.state().output(source)))
    })
}

/// Writes the outputs that the inputs read, `max_inputs` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationAllInputs(
    oper: Handle<TF_Operation>,
    inputs: Room<TF_Output>,
    max_inputs: c_int,
) {
    quiet((), || {
        let operation = given(oper, "oper")?;
        let sources = operation.with(|node, _| Ok(node.inputs.clone()))?;
        let state = operation.state();
        inputs.write(max_inputs, sources.into_iter().map(|source| state.output(source)));
        Ok(())
    });
}

/// The inputs that read an output.
fn consumers_of(output: TF_Output) -> Result<Consumers> {
    let index = usize::try_from(output.index).unwrap_or(usize::MAX);
    look(output.operation(), |node, _| {
        Ok(node.consumers.get(index).cloned().unwrap_or_default())
    })
}

/// How many inputs read an output.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationOutputNumConsumers(oper_out: TF_Output) -> c_int {
    quiet(0, || Ok(c_count(consumers_of(oper_out)?.len())))
}

/// Writes the inputs that read an output, `max_consumers` at most, and returns how many there are. The graph may
/// change between two calls.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationOutputConsumers(
    oper_out: TF_Output,
    consumers: Room<TF_Input>,
    max_consumers: c_int,
) -> c_int {
    quiet(0, || {
        let found = consumers_of(oper_out)?;
        let operation = given(oper_out.operation(), "the operation")?;
        let count = c_count(found.len());
        let inputs = found.into_iter().map(|(node, index)| TF_Input {
            oper: operation.state().operation(node),
            index: index as c_int,
        });
        consumers.write(max_consumers, inputs);
        Ok(count)
    })
}

/// Writes the operations of these nodes, and returns how many there are.
fn write_operations(
    operation: Handle<TF_Operation>,
    nodes: impl FnOnce(&Node) -> Vec<NodeId>,
    room: Room<*mut TF_Operation>,
    count: c_int,
) -> Result<c_int> {
    let operation = given(operation, "the operation")?;
    let nodes = operation.with(|node, _| Ok(nodes(node)))?;
    let total = c_count(nodes.len());
    room.write(
        count,
        nodes.into_iter().map(|node| operation.state().operation(node)),
    );
    Ok(total)
}

/// How many operations must run before this one, beside those it reads.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationNumControlInputs(oper: Handle<TF_Operation>) -> c_int {
    quiet(0, || look(oper, |node, _| Ok(c_count(node.control_inputs.len()))))
}

/// Writes those operations, `max_control_inputs` at most, and returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetControlInputs(
    oper: Handle<TF_Operation>,
    control_inputs: Room<*mut TF_Operation>,
    max_control_inputs: c_int,
) -> c_int {
    let nodes = |node: &Node| node.control_inputs.clone();
    quiet(0, || {
        write_operations(oper, nodes, control_inputs, max_control_inputs)
    })
}

/// How many operations wait for this one without reading it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationNumControlOutputs(oper: Handle<TF_Operation>) -> c_int {
    quiet(0, || {
        look(oper, |node, _| Ok(c_count(node.control_outputs.len())))
    })
}

/// Writes those operations, `max_control_outputs` at most, and returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetControlOutputs(
    oper: Handle<TF_Operation>,
    control_outputs: Room<*mut TF_Operation>,
    max_control_outputs: c_int,
) -> c_int {
    let nodes = |node: &Node| node.control_outputs.clone();
    quiet(0, || {
        write_operations(oper, nodes, control_outputs, max_control_outputs)
    })
}

/// Writes the operation as a serialized `NodeDef` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationToNodeDef(
    oper: Handle<TF_Operation>,
    output_node_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let def = look(oper, |node, graph| Ok(export_node_def(graph, node)))?;
        fill(output_node_def, &def)
    });
}
