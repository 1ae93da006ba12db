//! What a program does with a graph: asks for everything, exports it, runs parts of it.

use crate::random::Choices;
use ff_c_api::ffi::{Array, Blob, Room};
use ff_c_api::*;
use ff_tensor::{DataType, Shape, TString, Tensor};
use std::ptr::null_mut;

/// Serialized RunOptions: a deadline of 1.5 seconds.
const DEADLINE: &[u8] = &[0x10, 0xdc, 0x0b];

/// Most operations of a graph that are looked at.
const MOST_OPERATIONS: usize = 3000;

/// A buffer with these bytes.
pub fn buffer(bytes: &[u8]) -> Option<Box<TF_Buffer>> {
    TF_NewBufferFromString(Blob::new(bytes), bytes.len())
}

/// A buffer with a deadline, to be the options of a run.
pub fn deadline() -> Option<Box<TF_Buffer>> {
    buffer(DEADLINE)
}

/// NULL in place of room for results.
pub fn no_room<T>() -> Room<'static, T> {
    // SAFETY: it is a pointer in another type, and NULL is one of its values.
    unsafe { std::mem::transmute::<*mut T, Room<'static, T>>(null_mut()) }
}

/// Whether a status is OK.
pub fn is_ok(status: &TF_Status) -> bool {
    TF_GetCode(Some(status)).0 == 0
}

/// The operations of a graph.
pub fn operations(graph: &TF_Graph) -> Vec<*mut TF_Operation> {
    let mut position = 0;
    let mut found = Vec::new();
    loop {
        let operation = TF_GraphNextOperation(Some(graph), Some(&mut position));
        if operation.is_null() || found.len() == MOST_OPERATIONS {
            return found;
        }
        found.push(operation);
    }
}

/// The operation behind a pointer that the graph gave.
pub fn at<'a>(operation: *mut TF_Operation) -> Option<&'a TF_Operation> {
    // SAFETY: the callers' graphs outlive what they ask of their operations.
    unsafe { operation.as_ref() }
}

/// The outputs of a graph with their types.
pub fn outputs(graph: &TF_Graph) -> Vec<(TF_Output, DataType)> {
    let mut found = Vec::new();
    for oper in operations(graph) {
        for index in 0..TF_OperationNumOutputs(at(oper)).min(20) {
            let output = TF_Output { oper, index };
            found.push((output, DataType(TF_OperationOutputType(output).0)));
        }
    }
    found
}

/// Asks a graph for what it knows of each operation, and exports it.
pub fn look(graph: &TF_Graph) {
    let mut status = TF_NewStatus();
    let mut dims = [0i64; 16];
    for (output, _) in outputs(graph) {
        let rank = TF_GraphGetTensorNumDims(Some(graph), output, Some(&mut status));
        let room = rank.clamp(0, 16);
        TF_GraphGetTensorShape(Some(graph), output, Room::new(&mut dims), room, Some(&mut status));
        TF_OperationOutputNumConsumers(output);
    }
    for oper in operations(graph).into_iter().take(50) {
        let mut node = TF_NewBuffer();
        TF_OperationToNodeDef(at(oper), Some(&mut node), Some(&mut status));
        TF_DeleteBuffer(Some(node));
    }
    let mut exported = TF_NewBuffer();
    TF_GraphToGraphDef(Some(graph), Some(&mut exported), Some(&mut status));
    TF_DeleteBuffer(Some(exported));
    TF_DeleteStatus(Some(status));
}

/// A tensor that fits these dims, where unknown ones are 2; none for types without values or too large ones.
fn value(dtype: DataType, dims: &[i64], choices: &mut Choices) -> Option<Tensor> {
    let dims: Vec<i64> = dims
        .iter()
        .map(|&extent| if extent < 0 { 2 } else { extent })
        .collect();
    let shape = Shape::new(&dims)
        .ok()
        .filter(|shape| shape.num_elements() < 1 << 16)?;
    if dtype == DataType::STRING {
        let strings = (0..shape.num_elements()).map(|_| TString::from("a")).collect();
        return Tensor::from_strings(shape, strings).ok();
    }
    if !dtype.is_plain() || dtype.is_ref() {
        return None;
    }
    let mut tensor = Tensor::zeros(dtype, shape).ok()?;
    let fill = choices.byte() & 1;
    let size = dtype.size();
    for element in tensor.bytes_mut()?.chunks_exact_mut(size) {
        element[0] = fill;
    }
    Some(tensor)
}

/// Feeds for the placeholders of a graph.
fn feeds(graph: &TF_Graph, choices: &mut Choices) -> (Vec<TF_Output>, Vec<Box<TF_Tensor>>) {
    let mut status = TF_NewStatus();
    let (mut inputs, mut values) = (Vec::new(), Vec::new());
    for oper in operations(graph) {
        // SAFETY: the type of an operation of a graph that lives.
        let op = unsafe { std::ffi::CStr::from_ptr(TF_OperationOpType(at(oper))) };
        if op != c"Placeholder" {
            continue;
        }
        let output = TF_Output { oper, index: 0 };
        let mut dims = [0i64; 8];
        let rank = TF_GraphGetTensorNumDims(Some(graph), output, Some(&mut status)).clamp(0, 8);
        TF_GraphGetTensorShape(Some(graph), output, Room::new(&mut dims), rank, Some(&mut status));
        let dtype = DataType(TF_OperationOutputType(output).0);
        let value = value(dtype, &dims[..rank as usize], choices);
        if let Some(tensor) = value.and_then(|value| TF_Tensor::boxed(value).ok()) {
            inputs.push(output);
            values.push(tensor);
        }
    }
    (inputs, values)
}

/// Runs outputs with feeds and lets the results go.
pub fn run_once(
    session: &TF_Session,
    inputs: &[TF_Output],
    values: &[Box<TF_Tensor>],
    fetches: &[TF_Output],
) {
    let mut status = TF_NewStatus();
    let options = deadline();
    let handles: Vec<Option<&TF_Tensor>> = values.iter().map(|value| Some(&**value)).collect();
    let mut results = vec![null_mut(); fetches.len()];
    TF_SessionRun(
        Some(session),
        options.as_deref(),
        Array::new(inputs),
        Array::new(&handles),
        inputs.len() as i32,
        Array::new(fetches),
        Room::new(&mut results),
        fetches.len() as i32,
        Array::new(&[]),
        0,
        None,
        Some(&mut status),
    );
    for result in results {
        // SAFETY: NULL, or a tensor that the run gave us.
        TF_DeleteTensor((!result.is_null()).then(|| unsafe { Box::from_raw(result) }));
    }
    TF_DeleteBuffer(options);
    TF_DeleteStatus(Some(status));
}

/// Runs a few outputs of a graph.
pub fn run_some(graph: &TF_Graph, choices: &mut Choices) {
    let mut status = TF_NewStatus();
    let session = TF_NewSession(Some(graph), None, Some(&mut status));
    if let Some(session) = &session {
        run_in(graph, session, choices);
    }
    TF_DeleteSession(session, Some(&mut status));
    TF_DeleteStatus(Some(status));
}

/// As [`run_some`], in a session that is there.
pub fn run_in(graph: &TF_Graph, session: &TF_Session, choices: &mut Choices) {
    let outputs = outputs(graph);
    if outputs.is_empty() {
        return;
    }
    let (inputs, values) = feeds(graph, choices);
    for _ in 0..3 {
        let fetches: Vec<TF_Output> = (0..=choices.below(2)).map(|_| choices.pick(&outputs).0).collect();
        run_once(session, &inputs, &values, &fetches);
    }
    values.into_iter().for_each(|value| TF_DeleteTensor(Some(value)));
}
