//! Loops in a graph: condition and body are built as graphs of their own.

use crate::TF_Status;
use crate::ffi::{Handle, Room, given, missing};
use crate::graph::{GraphState, TF_Graph, WhileParent, state};
use crate::guard::{guard, guard_or, quiet};
use crate::operation::TF_Output;
use ff_graph::{LoopPart, NodeBuilder, add_while_loop};
use ff_op::OutputRef;
use ff_tensor::{DataType, Result, bail, ensure};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A loop under construction. The caller builds `cond_graph` and `body_graph` from their inputs, sets `cond_output`,
/// `body_outputs` and `name`, and calls `TF_FinishWhile`, or else `TF_AbortWhile`. What it points to belongs to the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_WhileParams {
    /// Number of variables; 0 after a failure.
    pub ninputs: c_int,
    /// Where the condition is built.
    pub cond_graph: *mut TF_Graph,
    /// The variables in the condition.
    pub cond_inputs: *const TF_Output,
    /// To be set: whether the loop goes on, one bool.
    pub cond_output: TF_Output,
    /// Where the body is built.
    pub body_graph: *mut TF_Graph,
    /// The variables in the body.
    pub body_inputs: *const TF_Output,
    /// To be set: the variables of the next turn.
    pub body_outputs: *mut TF_Output,
    /// To be set: the name of the loop, before all its operations.
    pub name: *const c_char,
}

const NO_PARAMS: TF_WhileParams = TF_WhileParams {
    ninputs: 0,
    cond_graph: null_mut(),
    cond_inputs: null(),
    cond_output: TF_Output::NONE,
    body_graph: null_mut(),
    body_inputs: null(),
    body_outputs: null_mut(),
    name: null(),
};

/// Starts a loop whose variables begin as `inputs`, outputs of `g`. INVALID_ARGUMENT without inputs, or for inputs that are
/// not of the graph.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewWhile(
    g: Handle<TF_Graph>,
    inputs: Room<TF_Output>,
    ninputs: c_int,
    status: Option<&mut TF_Status>,
) -> TF_WhileParams {
    guard_or(status, NO_PARAMS, || {
        ensure!(
            ninputs > 0,
            InvalidArgument,
            "TF_NewWhile() must be passed at least one input"
        );
        let parent = state(g)?;
        let inputs = parent.outputs_of(inputs.of(ninputs, "inputs")?)?;
        let types: Vec<DataType> = {
            let graph = parent.lock();
            let types = inputs.iter().map(|input| Ok(graph.output_type(*input)?.base()));
            types.collect::<Result<_>>()?
        };
        let (cond, cond_inputs) = part(parent, &types, "cond_input")?;
        let (body, body_inputs) = part(parent, &types, "body_input")?;
        let body_outputs = vec![TF_Output::NONE; types.len()];
        let graph = |state, parent| Box::into_raw(Box::new(TF_Graph { state, parent }));
        let parent = WhileParent {
            state: parent.clone(),
            inputs,
        };
        Ok(TF_WhileParams {
            ninputs,
            cond_graph: graph(cond, Some(parent)),
            cond_inputs: leak(cond_inputs),
            cond_output: TF_Output::NONE,
            body_graph: graph(body, None),
            body_inputs: leak(body_inputs),
            body_outputs: leak(body_outputs),
            name: null(),
        })
    })
}

/// A graph with a placeholder for each variable.
fn part(parent: &GraphState, types: &[DataType], name: &str) -> Result<(Arc<GraphState>, Vec<TF_Output>)> {
    let state = GraphState::new();
    for function in parent.lock().functions().functions() {
        state.lock().functions().add(function)?;
    }
    let mut inputs = Vec::with_capacity(types.len());
    for (index, dtype) in types.iter().enumerate() {
        let builder = NodeBuilder::new("Placeholder", format!("{name}{index}")).attr("dtype", *dtype);
        let node = builder.finish(&mut state.lock())?;
        inputs.push(state.output(OutputRef { node, index: 0 }));
    }
    Ok((state, inputs))
}

fn leak(outputs: Vec<TF_Output>) -> *mut TF_Output {
    Box::into_raw(outputs.into_boxed_slice()).cast()
}

/// What belongs to a loop under construction; dropping it frees it all.
struct Parts {
    cond_graph: Box<TF_Graph>,
    cond_inputs: Box<[TF_Output]>,
    body_graph: Box<TF_Graph>,
    body_inputs: Box<[TF_Output]>,
    body_outputs: Box<[TF_Output]>,
}

/// Takes over what belongs to a loop. INVALID_ARGUMENT for NULL and for a loop that was not started.
fn take(params: Option<&TF_WhileParams>) -> Result<Parts> {
    let params = given(params, "params")?;
    if params.ninputs <= 0 || params.cond_graph.is_null() || params.body_graph.is_null() {
        bail!(InvalidArgument, "the loop was not started");
    }
    let count = params.ninputs as usize;
    // SAFETY: `TF_NewWhile` made these from boxes, and each loop is finished or aborted once.
    unsafe {
        let outputs = |start: *mut TF_Output| Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, count));
        Ok(Parts {
            cond_graph: Box::from_raw(params.cond_graph),
            cond_inputs: outputs(params.cond_inputs.cast_mut()),
            body_graph: Box::from_raw(params.body_graph),
            body_inputs: outputs(params.body_inputs.cast_mut()),
            body_outputs: outputs(params.body_outputs),
        })
    }
}

/// Adds the loop to its graph, writes the last values of its variables to `outputs`, and frees what belongs to `params`,
/// also on failure.
///
/// INVALID_ARGUMENT when something was not set or does not fit; the graph is unchanged then, and `outputs` untouched.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FinishWhile(
    params: Option<&TF_WhileParams>,
    status: Option<&mut TF_Status>,
    outputs: Room<TF_Output>,
) {
    guard(status, || {
        let parts = take(params)?;
        finish_into(&parts, given(params, "params")?, outputs)
    });
}

/// Checks what was set, adds the loop, writes its results.
fn finish_into(parts: &Parts, params: &TF_WhileParams, outputs: Room<TF_Output>) -> Result<()> {
    if params.name.is_null() {
        bail!(InvalidArgument, "TF_WhileParams `name` field is null");
    }
    // SAFETY: the caller set the name to a C string.
    let name = unsafe { CStr::from_ptr(params.name) }.to_string_lossy();
    ensure!(
        !params.cond_output.oper.is_null(),
        InvalidArgument,
        "TF_WhileParams `cond_output` field isn't set"
    );
    if let Some(index) = parts.body_outputs.iter().position(|output| output.oper.is_null()) {
        bail!(
            InvalidArgument,
            "TF_WhileParams `body_outputs[{index}]` field isn't set"
        );
    }
    let parent = parts
        .cond_graph
        .parent
        .as_ref()
        .ok_or_else(|| missing("the loop's graph"))?;
    let results = finish(parts, params.cond_output, &name, parent)?;
    let results = results.into_iter().map(|output| parent.state.output(output));
    outputs.write_all(params.ninputs, results.collect(), "outputs")
}

/// `TF_FinishWhile` without freeing what belongs to `params`: after it `TF_AbortWhile`
/// frees that. In no header of TensorFlow's, but exported by it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FinishWhileHelper(
    params: Option<&TF_WhileParams>,
    status: Option<&mut TF_Status>,
    outputs: Room<TF_Output>,
) {
    guard(status, || {
        // What belongs to the loop stays the caller's.
        let parts = std::mem::ManuallyDrop::new(take(params)?);
        finish_into(&parts, given(params, "params")?, outputs)
    });
}

fn finish(parts: &Parts, holds: TF_Output, name: &str, parent: &WhileParent) -> Result<Vec<OutputRef>> {
    let (cond, body) = (&parts.cond_graph.state, &parts.body_graph.state);
    let cond_inputs = cond.outputs_of(&parts.cond_inputs)?;
    let cond_outputs = [result_of(cond, holds)?];
    let body_inputs = body.outputs_of(&parts.body_inputs)?;
    let results = parts.body_outputs.iter();
    let body_outputs: Vec<OutputRef> = results
        .map(|output| result_of(body, *output))
        .collect::<Result<_>>()?;
    let (cond, body) = (cond.lock(), body.lock());
    let condition = LoopPart {
        graph: &cond,
        inputs: &cond_inputs,
        outputs: &cond_outputs,
    };
    let body = LoopPart {
        graph: &body,
        inputs: &body_inputs,
        outputs: &body_outputs,
    };
    add_while_loop(&mut parent.state.lock(), name, &parent.inputs, condition, body)
}

/// A result of a part. INVALID_ARGUMENT, with the reference's text, for one of another graph.
fn result_of(part: &GraphState, output: TF_Output) -> Result<OutputRef> {
    part.output_of(output).map_err(|error| match output.operation() {
        Some(operation) if !std::ptr::eq(operation.state(), part) => ff_tensor::status!(
            InvalidArgument,
            "Requested return tensor '{}:{}' not found in graph def",
            operation.name_text(),
            output.index
        ),
        _ => error,
    })
}

/// Frees what belongs to `params` without adding a loop. NULL and a loop that was not started are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AbortWhile(params: Option<&TF_WhileParams>) {
    quiet((), || take(params).map(drop));
}
