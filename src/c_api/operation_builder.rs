//! `TF_OperationDescription`: an operation under construction.
//!
//! Functions without a status remember the first misuse; `TF_FinishOperation` reports it.

use crate::TF_Status;
use crate::ffi::{Array, Handle, Text, given_box, given_mut};
use crate::graph::{GraphState, TF_Graph, state};
use crate::guard::{guard_or, quiet};
use crate::operation::{TF_Operation, TF_Output};
use ff_graph::NodeBuilder;
use ff_op::AttrValue;
use ff_tensor::{Result, Status};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

/// An operation under construction. One thread at a time may use it.
pub struct TF_OperationDescription {
    state: Arc<GraphState>,
    builder: NodeBuilder,
    error: Option<Status>,
}

impl TF_OperationDescription {
    /// Sets an attribute.
    pub fn set_attr(&mut self, name: Text, value: impl Into<AttrValue>) -> Result<()> {
        self.builder.set_attr(&name.text("attr_name")?, value);
        Ok(())
    }
}

/// Does something to a description; an error is remembered.
pub(crate) fn change(
    description: Option<&mut TF_OperationDescription>,
    change: impl FnOnce(&mut TF_OperationDescription) -> Result<()>,
) {
    quiet((), || {
        let description = given_mut(description, "desc")?;
        if let Err(error) = change(description) {
            description.error.get_or_insert(error);
        }
        Ok(())
    });
}

/// Starts an operation of type `op_type` named `oper_name`; `TF_FinishOperation` adds it to the graph and frees the
/// description. NULL for a NULL graph.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewOperation(
    graph: Handle<TF_Graph>,
    op_type: Text,
    oper_name: Text,
) -> Option<Box<TF_OperationDescription>> {
    quiet(None, || {
        let mut description = Box::new(TF_OperationDescription {
            state: state(graph)?.clone(),
            builder: NodeBuilder::new(op_type.or_empty(), oper_name.or_empty()),
            error: None,
        });
        for (text, name) in [(op_type, "op_type"), (oper_name, "oper_name")] {
            if let Err(error) = text.given(name) {
                description.error.get_or_insert(error);
            }
        }
        Ok(Some(description))
    })
}

/// The same as `TF_NewOperation`: no lock need be held.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewOperationLocked(
    graph: Handle<TF_Graph>,
    op_type: Text,
    oper_name: Text,
) -> Option<Box<TF_OperationDescription>> {
    TF_NewOperation(graph, op_type, oper_name)
}

/// Asks for a device; empty for any.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetDevice(desc: Option<&mut TF_OperationDescription>, device: Text) {
    change(desc, |description| {
        description.builder.set_device(device.text("device")?);
        Ok(())
    });
}

/// Adds an input, for an input argument that takes one tensor. Inputs come in the order of the op's arguments.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddInput(desc: Option<&mut TF_OperationDescription>, input: TF_Output) {
    change(desc, |description| {
        let input = description.state.output_of(input)?;
        description.builder.add_input(input);
        Ok(())
    });
}

/// Adds all inputs of an input argument that takes a list.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddInputList(
    desc: Option<&mut TF_OperationDescription>,
    inputs: Array<TF_Output>,
    num_inputs: c_int,
) {
    change(desc, |description| {
        let inputs = description.state.outputs_of(inputs.of(num_inputs, "inputs")?)?;
        description.builder.add_input_list(&inputs);
        Ok(())
    });
}

/// Makes the operation wait for another one.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddControlInput(
    desc: Option<&mut TF_OperationDescription>,
    input: Handle<TF_Operation>,
) {
    change(desc, |description| {
        let node = description.state.node_of(input)?;
        description.builder.add_control(node);
        Ok(())
    });
}

/// Asks for the device on which another operation is placed.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ColocateWith(desc: Option<&mut TF_OperationDescription>, op: Handle<TF_Operation>) {
    change(desc, |description| {
        let node = description.state.node_of(op)?;
        let name = description.state.lock().node(node).info.name.clone();
        description.builder.colocate_with(&name);
        Ok(())
    });
}

/// Adds the operation to its graph and frees the description, also on failure. Attributes that follow from inputs, and
/// defaults, are filled in; shapes are inferred.
///
/// NULL with INVALID_ARGUMENT for an unknown op, a name that is taken, inputs or attributes that do not fit the op; the
/// graph is unchanged then.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FinishOperation(
    desc: Option<Box<TF_OperationDescription>>,
    status: Option<&mut TF_Status>,
) -> *mut TF_Operation {
    guard_or(status, null_mut(), || {
        let description = *given_box(desc, "desc")?;
        if let Some(error) = description.error {
            return Err(error);
        }
        let id = description.builder.finish(&mut description.state.lock())?;
        Ok(description.state.operation(id))
    })
}

/// The same as `TF_FinishOperation`: no lock need be held.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FinishOperationLocked(
    desc: Option<Box<TF_OperationDescription>>,
    status: Option<&mut TF_Status>,
) -> *mut TF_Operation {
    TF_FinishOperation(desc, status)
}
