//! Targets whose inputs are one message: functions, tensors, attributes, configurations.

use super::graph_use::{buffer, is_ok, look, run_some};
use super::{Form, Target, change_message};
use crate::random::Choices;
use ff_c_api::ffi::{Blob, Enum, Room, Text};
use ff_c_api::*;
use std::ffi::CStr;

/// FunctionDefs.
pub static FUNCTION: Target = Target {
    name: "function",
    about: "FunctionDefs: import, copy into a graph, call",
    form: Form::Message,
    from: &["function"],
    make: change_message,
    run: function,
};

/// TensorProtos.
pub static TENSOR: Target = Target {
    name: "tensor",
    about: "TensorProtos: decode, as an attribute, back",
    form: Form::Message,
    from: &["tensor"],
    make: change_message,
    run: tensor,
};

/// AttrValues.
pub static ATTRIBUTE: Target = Target {
    name: "attribute",
    about: "AttrValues: set and get on operations, functions, nodes",
    form: Form::Message,
    from: &["attribute"],
    make: change_message,
    run: attribute,
};

/// ConfigProtos and RunOptions.
pub static CONFIG: Target = Target {
    name: "config",
    about: "ConfigProtos and RunOptions: sessions and runs with them",
    form: Form::Message,
    from: &["config"],
    make: change_message,
    run: config,
};

fn function(bytes: &[u8]) {
    let mut status = TF_NewStatus();
    let graph = TF_NewGraph();
    let function = TF_FunctionImportFunctionDef(Blob::new(bytes), bytes.len(), Some(&mut status));
    if let (Some(graph), Some(function)) = (graph.as_deref(), function.as_deref()) {
        TF_GraphCopyFunction(Some(graph), Some(function), None, Some(&mut status));
        if is_ok(&status) {
            // SAFETY: the name of a function that lives.
            call(graph, unsafe { CStr::from_ptr(TF_FunctionName(Some(function))) });
        }
    }
    TF_DeleteFunction(function);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(Some(status));
}

/// Calls a function with as many float placeholders as it takes, up to four, and runs it.
fn call(graph: &TF_Graph, name: &CStr) {
    let mut status = TF_NewStatus();
    let mut inputs = Vec::new();
    for name in [c"p0", c"p1", c"p2", c"p3"] {
        let mut placeholder = TF_NewOperation(Some(graph), Text::new(c"Placeholder"), Text::new(name));
        TF_SetAttrType(placeholder.as_deref_mut(), Text::new(c"dtype"), Enum::new(1));
        inputs.push(TF_FinishOperation(placeholder, Some(&mut status)));
    }
    for count in 0..=inputs.len() {
        let own = std::ffi::CString::new(format!("call{count}")).unwrap_or_default();
        let mut call = TF_NewOperation(Some(graph), Text::new(name), Text::new(&own));
        for &oper in &inputs[..count] {
            TF_AddInput(call.as_deref_mut(), TF_Output { oper, index: 0 });
        }
        TF_FinishOperation(call, Some(&mut status));
        if is_ok(&status) {
            look(graph);
            run_some(graph, &mut Choices::new(&[1, 200, 199, 1, 3, 5, 255, 254]));
            break;
        }
    }
    TF_DeleteStatus(Some(status));
}

fn tensor(bytes: &[u8]) {
    let mut status = TF_NewStatus();
    let mut tensor = TF_AllocateTensor(Enum::new(1), ff_c_api::ffi::Array::new(&[]), 0, 4);
    let proto = buffer(bytes);
    TF_TensorFromProto(proto.as_deref(), tensor.as_deref_mut(), Some(&mut status));
    if is_ok(&status) {
        let graph = TF_NewGraph();
        let mut constant = TF_NewOperation(graph.as_deref(), Text::new(c"Const"), Text::new(c"c"));
        TF_SetAttrType(
            constant.as_deref_mut(),
            Text::new(c"dtype"),
            TF_TensorType(tensor.as_deref()),
        );
        TF_SetAttrTensor(
            constant.as_deref_mut(),
            Text::new(c"value"),
            tensor.as_deref(),
            Some(&mut status),
        );
        TF_FinishOperation(constant, Some(&mut status));
        if let Some(graph) = graph.as_deref().filter(|_| is_ok(&status)) {
            look(graph);
            run_some(graph, &mut Choices::new(&[]));
        }
        TF_DeleteGraph(graph);
    }
    TF_DeleteBuffer(proto);
    TF_DeleteTensor(tensor);
    TF_DeleteStatus(Some(status));
}

fn attribute(bytes: &[u8]) {
    const OPS: &[(&CStr, &CStr)] = &[
        (c"Const", c"value"),
        (c"Placeholder", c"shape"),
        (c"Placeholder", c"dtype"),
        (c"PlaceholderV2", c"shape"),
        (c"RandomUniformInt", c"seed"),
        (c"PartitionedCall", c"f"),
        (c"Batch", c"allowed_batch_sizes"),
        (c"QueueDequeueV2", c"component_types"),
        (c"NoOp", c"_anything"),
        (c"FIFOQueueV2", c"shapes"),
        (c"StatelessCase", c"branches"),
    ];
    let graph = TF_NewGraph();
    for (number, (op, name)) in OPS.iter().enumerate() {
        let mut status = TF_NewStatus();
        let own = std::ffi::CString::new(format!("n{number}")).unwrap_or_default();
        let mut node = TF_NewOperation(graph.as_deref(), Text::new(op), Text::new(&own));
        TF_SetAttrType(node.as_deref_mut(), Text::new(c"dtype"), Enum::new(1));
        let blob = Blob::new(bytes);
        TF_SetAttrValueProto(
            node.as_deref_mut(),
            Text::new(name),
            blob,
            bytes.len(),
            Some(&mut status),
        );
        let operation = TF_FinishOperation(node, Some(&mut status));
        if is_ok(&status) {
            get_back(super::graph_use::at(operation), name);
        }
        TF_DeleteStatus(Some(status));
    }
    if let Some(graph) = graph.as_deref() {
        look(graph);
    }
    TF_DeleteGraph(graph);
}

/// Reads an attribute as what it is.
fn get_back(operation: Option<&TF_Operation>, name: &CStr) {
    let mut status = TF_NewStatus();
    let mut value = TF_NewBuffer();
    let name = Text::new(name);
    TF_OperationGetAttrMetadata(operation, name, Some(&mut status));
    TF_OperationGetAttrValueProto(operation, name, Some(&mut value), Some(&mut status));
    let mut numbers = [0i64; 8];
    TF_OperationGetAttrIntList(operation, name, Room::new(&mut numbers), 8, Some(&mut status));
    TF_OperationGetAttrShape(operation, name, Room::new(&mut numbers), 8, Some(&mut status));
    let mut tensor = std::mem::MaybeUninit::new(std::ptr::null_mut());
    TF_OperationGetAttrTensor(operation, name, Some(&mut tensor), Some(&mut status));
    if is_ok(&status) {
        // SAFETY: set from the start; NULL, or a tensor that the call gave us.
        TF_DeleteTensor(unsafe {
            let pointer: *mut TF_Tensor = tensor.assume_init();
            (!pointer.is_null()).then(|| Box::from_raw(pointer))
        });
    }
    TF_DeleteBuffer(Some(value));
    TF_DeleteStatus(Some(status));
}

fn config(bytes: &[u8]) {
    let mut status = TF_NewStatus();
    let graph = TF_NewGraph();
    let mut options = TF_NewSessionOptions();
    TF_SetConfig(
        Some(&mut options),
        Blob::new(bytes),
        bytes.len(),
        Some(&mut status),
    );
    let mut node = TF_NewOperation(graph.as_deref(), Text::new(c"NoOp"), Text::new(c"n"));
    TF_SetDevice(node.as_deref_mut(), Text::new(c"/cpu:0"));
    TF_FinishOperation(node, Some(&mut status));
    let session = TF_NewSession(graph.as_deref(), Some(&options), Some(&mut status));
    if let (Some(graph), Some(session)) = (graph.as_deref(), session.as_deref()) {
        let node = TF_GraphOperationByName(Some(graph), Text::new(c"n"));
        let run_options = buffer(bytes);
        let mut metadata = TF_NewBuffer();
        TF_SessionRun(
            Some(session),
            run_options.as_deref(),
            ff_c_api::ffi::Array::new(&[]),
            ff_c_api::ffi::Array::new(&[]),
            0,
            ff_c_api::ffi::Array::new(&[]),
            ff_c_api::ffi::Room::new(&mut []),
            0,
            ff_c_api::ffi::Array::new(&[super::graph_use::at(node)]),
            1,
            Some(&mut metadata),
            Some(&mut status),
        );
        TF_DeleteBuffer(Some(metadata));
        TF_DeleteBuffer(run_options);
    }
    TF_DeleteSession(session, Some(&mut status));
    TF_DeleteSessionOptions(Some(options));
    TF_DeleteGraph(graph);
    TF_DeleteStatus(Some(status));
}
