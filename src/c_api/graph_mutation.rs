//! Changes to a graph that is built already, as language bindings make them.
//!
//! A session that ran an operation keeps to what it was then; runs whose plan is made later see the change.

use crate::TF_Status;
use crate::attr_set::decode_value;
use crate::buffer::TF_Buffer;
use crate::ffi::{Handle, Text, given};
use crate::graph::{GraphState, TF_Graph, state};
use crate::guard::{guard, quiet};
use crate::operation::{TF_Input, TF_Operation, TF_Output};
use ff_op::{Attrs, NodeInfo};
use ff_proto::{FullTypeDef, Message};
use ff_tensor::{Result, ensure, status};
use std::sync::Arc;

/// Makes `op` wait for `input`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddOperationControlInput(
    graph: Handle<TF_Graph>,
    op: Handle<TF_Operation>,
    input: Handle<TF_Operation>,
) {
    quiet((), || {
        let state = state(graph)?;
        let (from, to) = (state.node_of(input)?, state.node_of(op)?);
        state.lock().add_control_edge(from, to);
        Ok(())
    });
}

/// Replaces the info of a node by one with other attributes.
fn with_attrs(
    state: &GraphState,
    operation: Handle<TF_Operation>,
    change: impl FnOnce(&mut Attrs) -> Result<()>,
) -> Result<()> {
    let id = state.node_of(operation)?;
    let mut graph = state.lock();
    let info = graph.node(id).info.clone();
    let mut attrs = info.attrs.clone();
    change(&mut attrs)?;
    let changed = NodeInfo::new(info.name.clone(), info.op.clone(), info.device.clone(), attrs)?;
    graph.replace_info(id, Arc::new(changed))
}

/// Sets an attribute of an operation to a serialized `AttrValue`. INVALID_ARGUMENT for other bytes, and for a value that the
/// operation's types cannot follow from.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttr(
    graph: Handle<TF_Graph>,
    op: Handle<TF_Operation>,
    attr_name: Text,
    attr_value_proto: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let buffer = given(attr_value_proto.as_deref(), "attr_value_proto")?;
        let value = decode_value(buffer.bytes()?);
        let value = value.map_err(|_| status!(InvalidArgument, "Invalid AttrValue proto"))?;
        let value = value.ok_or_else(|| status!(InvalidArgument, "the AttrValue has no value"))?;
        let name = attr_name.text("attr_name")?.into_owned();
        with_attrs(state(graph)?, op, |attrs| {
            attrs.set(name, value);
            Ok(())
        })
    });
}

/// Removes an attribute of an operation. INVALID_ARGUMENT for one that the operation's types follow from.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ClearAttr(
    graph: Handle<TF_Graph>,
    op: Handle<TF_Operation>,
    attr_name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let name = attr_name.text("attr_name")?;
        with_attrs(state(graph)?, op, |attrs| {
            attrs.remove(&name);
            Ok(())
        })
    });
}

/// Gives an operation a full type, a serialized `FullTypeDef`: exports and copies have it. Other bytes give an empty one.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetFullType(
    graph: Handle<TF_Graph>,
    op: Handle<TF_Operation>,
    full_type_proto: Option<&TF_Buffer>,
) {
    quiet((), || {
        let state = state(graph)?;
        let id = state.node_of(op)?;
        let full_type = FullTypeDef::decode(given(full_type_proto, "full_type_proto")?.bytes()?);
        state.lock().give_full_type(id, full_type.unwrap_or_default());
        Ok(())
    });
}

/// Asks for another device for an operation.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetRequestedDevice(graph: Handle<TF_Graph>, op: Handle<TF_Operation>, device: Text) {
    quiet((), || {
        let state = state(graph)?;
        let id = state.node_of(op)?;
        let mut graph = state.lock();
        let mut info = (*graph.node(id).info).clone();
        info.device = device.or_empty().into_owned();
        graph.replace_info(id, Arc::new(info))
    });
}

/// Makes an operation wait for nothing but what it reads.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RemoveAllControlInputs(graph: Handle<TF_Graph>, op: Handle<TF_Operation>) {
    quiet((), || {
        let state = state(graph)?;
        let id = state.node_of(op)?;
        state.lock().remove_control_inputs(id);
        Ok(())
    });
}

/// Whether an op that was added without a shape function is an error, as it is unless this says otherwise. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetRequireShapeInferenceFns(graph: Handle<TF_Graph>, require: bool) {
    quiet((), || {
        state(graph)?.lock().requires_shape_functions = require;
        Ok(())
    });
}

/// Makes the input `dst` read `new_src`. OUT_OF_RANGE when either is not there, INVALID_ARGUMENT when the types differ.
#[unsafe(no_mangle)]
pub extern "C" fn TF_UpdateEdge(
    graph: Handle<TF_Graph>,
    new_src: TF_Output,
    dst: TF_Input,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let state = state(graph)?;
        let source = state.output_of(new_src)?;
        let id = state.node_of(dst.operation())?;
        let mut graph = state.lock();
        let beyond = |what: &str, index: i32, of: &str, count: usize| {
            status!(
                OutOfRange,
                "Cannot update edge. {what} index [{index}] is greater than the number of total {of} [{count}]."
            )
        };
        let outputs = graph.node(source.node).info.output_types.len();
        let dtype = graph.output_type(source);
        let dtype = dtype.map_err(|_| beyond("Output", new_src.index, "outputs", outputs))?;
        let index = usize::try_from(dst.index).unwrap_or(usize::MAX);
        let inputs = &graph.node(id).info.input_types;
        let wanted = inputs.get(index).copied();
        let wanted = wanted.ok_or_else(|| beyond("Input", dst.index, "inputs", inputs.len()))?;
        ensure!(
            wanted.base() == dtype.base(),
            InvalidArgument,
            "Input {} of node {} has type {wanted}, not {dtype}",
            dst.index,
            graph.node(id).info.name
        );
        graph.replace_input(id, index, source)
    });
}

/// Adds an input to a While operation whose attribute `T` already allows for it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddWhileInputHack(
    graph: Handle<TF_Graph>,
    new_src: TF_Output,
    dst: Handle<TF_Operation>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let state = state(graph)?;
        let source = state.output_of(new_src)?;
        let id = state.node_of(dst)?;
        state.lock().push_input(id, source)
    });
}
