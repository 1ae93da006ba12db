//! An op with a shape function and a kernel, registered through the C functions, in a graph that a session runs.

use ff_c_api::ffi::{Array, Enum, Room, Text};
use ff_c_api::*;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

const FLOAT: Enum<TF_DataType> = Enum::new(1);

static CREATED: AtomicUsize = AtomicUsize::new(0);
static DELETED: AtomicUsize = AtomicUsize::new(0);

fn check(status: &TF_Status) {
    // SAFETY: the message of a live status.
    let message = unsafe { CStr::from_ptr(TF_Message(Some(status))) };
    assert_eq!(TF_GetCode(Some(status)).0, 0, "{message:?}");
}

/// The output has the shape of the input.
unsafe extern "C" fn shape(context: *mut TF_ShapeInferenceContext, status: *mut TF_Status) {
    // SAFETY: both live for the call.
    let (context, status) = unsafe { (&mut *context, &mut *status) };
    let mut handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(Some(context), 0, handle.as_deref_mut(), Some(status));
    TF_ShapeInferenceContextSetOutput(Some(context), 0, handle.as_deref_mut(), Some(status));
    TF_DeleteShapeHandle(handle);
}

/// The state of a kernel is its attribute `factor`.
unsafe extern "C" fn create(construction: *mut TF_OpKernelConstruction) -> *mut c_void {
    let mut status = TF_NewStatus();
    let mut factor = MaybeUninit::new(0.0f32);
    // SAFETY: it lives for the call.
    let construction = unsafe { construction.as_mut() };
    TF_OpKernelConstruction_GetAttrFloat(
        construction,
        Text::new(c"factor"),
        Some(&mut factor),
        Some(&mut status),
    );
    check(&status);
    CREATED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: it was set from the start.
    Box::into_raw(Box::new(unsafe { factor.assume_init() })).cast()
}

/// Multiplies by the factor; a negative first element is an error.
unsafe extern "C" fn compute(kernel: *mut c_void, context: *mut TF_OpKernelContext) {
    // SAFETY: what `create` made, and a context that lives for the call.
    let (factor, context) = unsafe { (*kernel.cast::<f32>(), &mut *context) };
    let mut status = TF_NewStatus();
    let mut input = MaybeUninit::new(null_mut());
    TF_GetInput(Some(context), 0, Some(&mut input), Some(&mut status));
    check(&status);
    // SAFETY: the call gave a tensor.
    let input = unsafe { Box::from_raw(input.assume_init()) };
    let dims = [TF_Dim(Some(&input), 0)];
    let bytes = TF_TensorByteSize(Some(&input));
    let output = TF_AllocateOutput(
        Some(context),
        0,
        FLOAT,
        Array::new(&dims),
        1,
        bytes,
        Some(&mut status),
    );
    check(&status);
    let count = dims[0] as usize;
    // SAFETY: both tensors hold that many floats.
    let (from, to) = unsafe {
        let data = TF_TensorData(output.as_deref()).cast::<f32>();
        let from = TF_TensorData(Some(&input)).cast::<f32>();
        (
            std::slice::from_raw_parts(from, count),
            std::slice::from_raw_parts_mut(data, count),
        )
    };
    to.iter_mut().zip(from).for_each(|(to, from)| *to = factor * from);
    if from.first().is_some_and(|first| *first < 0.0) {
        TF_SetStatus(Some(&mut status), Enum::new(3), Text::new(c"too low"));
        TF_OpKernelContext_Failure(Some(context), Some(&mut status));
    }
    TF_DeleteTensor(output);
    TF_DeleteTensor(Some(input));
}

unsafe extern "C" fn delete(kernel: *mut c_void) {
    // SAFETY: what `create` made.
    drop(unsafe { Box::from_raw(kernel.cast::<f32>()) });
    DELETED.fetch_add(1, Ordering::SeqCst);
}

fn register(status: &mut TF_Status) {
    let mut op = TF_NewOpDefinitionBuilder(Text::new(c"TimesFactor"));
    TF_OpDefinitionBuilderAddAttr(op.as_deref_mut(), Text::new(c"factor: float = 2.0"));
    TF_OpDefinitionBuilderAddInput(op.as_deref_mut(), Text::new(c"x: float"));
    TF_OpDefinitionBuilderAddOutput(op.as_deref_mut(), Text::new(c"y: float"));
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op.as_deref_mut(), Some(shape));
    TF_RegisterOpDefinition(op, Some(status));
    check(status);
    let kernel = TF_NewKernelBuilder(
        Text::new(c"TimesFactor"),
        Text::new(c"CPU"),
        Some(create),
        Some(compute),
        Some(delete),
    );
    TF_RegisterKernelBuilder(Text::new(c"TimesFactorKernel"), kernel, Some(status));
    check(status);
}

fn build(graph: &TF_Graph, status: &mut TF_Status) -> (TF_Output, TF_Output) {
    let mut x = TF_NewOperation(Some(graph), Text::new(c"Placeholder"), Text::new(c"x"));
    TF_SetAttrType(x.as_deref_mut(), Text::new(c"dtype"), FLOAT);
    TF_SetAttrShape(x.as_deref_mut(), Text::new(c"shape"), Array::new(&[-1]), 1);
    let x = TF_Output {
        oper: TF_FinishOperation(x, Some(status)),
        index: 0,
    };
    check(status);
    let mut y = TF_NewOperation(Some(graph), Text::new(c"TimesFactor"), Text::new(c"y"));
    TF_AddInput(y.as_deref_mut(), x);
    TF_SetAttrFloat(y.as_deref_mut(), Text::new(c"factor"), 3.0);
    let y = TF_Output {
        oper: TF_FinishOperation(y, Some(status)),
        index: 0,
    };
    check(status);
    assert_eq!(TF_GraphGetTensorNumDims(Some(graph), y, Some(status)), 1);
    (x, y)
}

fn run(
    session: &TF_Session,
    x: TF_Output,
    y: TF_Output,
    values: &[f32],
    status: &mut TF_Status,
) -> Option<Vec<f32>> {
    let dims = [values.len() as i64];
    let feed = TF_AllocateTensor(FLOAT, Array::new(&dims), 1, 4 * values.len());
    // SAFETY: the memory holds that many floats.
    unsafe {
        let data = TF_TensorData(feed.as_deref()).cast::<f32>();
        data.copy_from_nonoverlapping(values.as_ptr(), values.len());
    }
    let mut results = [null_mut()];
    TF_SessionRun(
        Some(session),
        None,
        Array::new(&[x]),
        Array::new(&[feed.as_deref()]),
        1,
        Array::new(&[y]),
        Room::new(&mut results),
        1,
        Array::new(&[]),
        0,
        None,
        Some(status),
    );
    TF_DeleteTensor(feed);
    if results[0].is_null() {
        return None;
    }
    // SAFETY: the run gave a tensor of as many floats.
    unsafe {
        let result = Box::from_raw(results[0]);
        let data = TF_TensorData(Some(&result)).cast::<f32>();
        let values = std::slice::from_raw_parts(data, TF_TensorElementCount(Some(&result)) as usize).to_vec();
        TF_DeleteTensor(Some(result));
        Some(values)
    }
}

#[test]
fn an_op_of_c_runs_in_a_session() {
    let mut status = TF_NewStatus();
    register(&mut status);
    let graph = TF_NewGraph().unwrap();
    let (x, y) = build(&graph, &mut status);
    let session = TF_NewSession(Some(&graph), None, Some(&mut status)).unwrap();
    assert_eq!(
        run(&session, x, y, &[1.0, 2.5], &mut status),
        Some(vec![3.0, 7.5])
    );
    assert_eq!(run(&session, x, y, &[4.0], &mut status), Some(vec![12.0]));
    assert_eq!(run(&session, x, y, &[-4.0], &mut status), None);
    assert_eq!(TF_GetCode(Some(&status)).0, 3);
    assert_eq!(run(&session, x, y, &[], &mut status), Some(vec![]));
    assert_eq!(CREATED.load(Ordering::SeqCst), 1);
    TF_DeleteGraph(Some(graph));
    TF_DeleteSession(Some(session), Some(&mut status));
    check(&status);
    assert_eq!(DELETED.load(Ordering::SeqCst), 1);
    TF_DeleteStatus(Some(status));
}
