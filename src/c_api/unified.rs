//! The unified interface: one way to execute ops and to trace them into functions.
//!
//! A `TF_ExecutionContext` either executes, and is a `TFE_Context`, or traces: then each op becomes a node of a function.
//! The functions are exported and have a header of their own, which the reference does not install.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::eager_context::{TFE_Context, TFE_ContextOptions};
use crate::eager_tensor::TFE_TensorHandle;
use crate::ffi::{Array, Enum, Handle, Text, c_count, given, given_box, given_mut, missing};
use crate::function::TF_Function;
use crate::graph::partial_shape;
use crate::guard::{guard, guard_or, quiet};
use crate::unified_op::TF_AbstractOp;
use crate::unified_tracing::{Traced, Tracing};
use ff_tensor::{Result, ensure, status};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

/// Where ops are executed or traced. One thread at a time may trace; any thread may execute.
pub struct TF_ExecutionContext {
    /// Which of the two.
    pub kind: Execution,
}

/// The two kinds of contexts.
pub enum Execution {
    /// Ops are executed.
    Eager(Box<TFE_Context>),
    /// Ops become nodes of a function.
    Tracing(Arc<Tracing>),
}

/// An input or output of an op: a tensor, or an output of a node. Threads may read one at the same time.
pub struct TF_AbstractTensor {
    /// Which of the two.
    pub kind: Operand,
}

/// The two kinds of operands.
pub enum Operand {
    /// A handle, which belongs to this.
    Eager(*mut TFE_TensorHandle),
    /// An output of a node.
    Traced(Traced),
}

/// A function that was traced. Threads may read one at the same time.
pub struct TF_AbstractFunction {
    function: Box<TF_Function>,
}

/// A list of tensors, which do not belong to it. One thread at a time may use it.
pub struct TF_OutputList {
    /// The tensors; NULL where one is expected.
    pub outputs: Vec<*mut TF_AbstractTensor>,
}

/// A shape of which not everything need be known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_Shape {
    /// Number of dimensions; -1 for an unknown rank.
    pub num_dims: c_int,
    /// The extents; -1 for an unknown one.
    pub dim_sizes: *mut i64,
}

impl Drop for TF_AbstractTensor {
    fn drop(&mut self) {
        if let Operand::Eager(handle) = self.kind {
            // SAFETY: the handle belongs to this, and is given back once.
            drop(unsafe { Box::from_raw(handle) });
        }
    }
}

impl TF_AbstractTensor {
    /// The tensor of a handle, which then belongs to it.
    pub fn eager(handle: Box<TFE_TensorHandle>) -> TF_AbstractTensor {
        TF_AbstractTensor {
            kind: Operand::Eager(Box::into_raw(handle)),
        }
    }
}

/// Chooses what traces: `graphdef` is what there is; `mlir` is taken for it. INVALID_ARGUMENT for other names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetTracingImplementation(name: Text, status: Option<&mut TF_Status>) {
    guard(status, || {
        let name = name.text("name")?;
        ensure!(
            matches!(&*name, "graphdef" | "mlir"),
            InvalidArgument,
            "No tracing engine factory has been registered with the key '{name}' (available: graphdef, mlir)"
        );
        Ok(())
    });
}

/// A context that traces a function of this name. `TF_FinalizeFunction` makes the function and frees the context; without it,
/// free the context with `TF_DeleteExecutionContext`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CreateFunction(
    fn_name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_ExecutionContext>> {
    guard_or(status, None, || {
        let tracing = Tracing::new(&fn_name.text("fn_name")?);
        Ok(Some(Box::new(TF_ExecutionContext {
            kind: Execution::Tracing(Arc::new(tracing)),
        })))
    })
}

/// A context that executes. NULL options are the defaults. Free it with `TF_DeleteExecutionContext`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewEagerExecutionContext(
    options: Handle<TFE_ContextOptions>,
    s: Option<&mut TF_Status>,
) -> Option<Box<TF_ExecutionContext>> {
    guard_or(s, None, || {
        Ok(Some(Box::new(TF_ExecutionContext {
            kind: Execution::Eager(TFE_Context::boxed(options)?),
        })))
    })
}

/// Frees a context; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteExecutionContext(context: Option<Box<TF_ExecutionContext>>) {
    quiet((), || {
        drop(context);
        Ok(())
    });
}

/// The function that a context traces. INVALID_ARGUMENT, with this text, for one that executes.
fn tracing<'a>(context: Handle<'a, TF_ExecutionContext>, text: &str) -> Result<&'a Arc<Tracing>> {
    match &given(context, "the context")?.kind {
        Execution::Tracing(tracing) => Ok(tracing),
        Execution::Eager(_) => Err(status!(InvalidArgument, "{text}")),
    }
}

/// Adds a parameter to the function that is traced, after those before. Free the tensor with `TF_DeleteAbstractTensor`. NULL
/// with INVALID_ARGUMENT for a context that executes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddFunctionParameter(
    func: Handle<TF_ExecutionContext>,
    dtype: Enum<TF_DataType>,
    shape: TF_Shape,
    s: Option<&mut TF_Status>,
) -> Option<Box<TF_AbstractTensor>> {
    guard_or(s, None, || {
        let text = "TF_AddFunctionParameter must be called on a TracingContext.";
        let tracing = tracing(func, text)?;
        let dims = Array::at(shape.dim_sizes.cast_const());
        let shape = partial_shape(dims, shape.num_dims)?;
        let traced = Tracing::add_parameter(tracing, data_type(dtype), shape)?;
        Ok(Some(Box::new(TF_AbstractTensor {
            kind: Operand::Traced(traced),
        })))
    })
}

/// Makes a function of what was traced, with these outputs, and frees the context, also on failure. Free the function with
/// `TF_DeleteAbstractFunction`.
///
/// NULL with INVALID_ARGUMENT for a context that executes, which is not freed; with UNIMPLEMENTED for an output that was
/// executed.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FinalizeFunction(
    ctx: *mut TF_ExecutionContext,
    outputs: Handle<TF_OutputList>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_AbstractFunction>> {
    guard_or(status, None, || {
        // SAFETY: NULL or a context that C code holds.
        let context = unsafe { ctx.as_ref() };
        let traced = tracing(context, "Only TracingContext can be converted into a function.")?.clone();
        // SAFETY: C code gives the context up.
        drop(unsafe { Box::from_raw(ctx) });
        let mut results = Vec::new();
        for output in &given(outputs, "outputs")?.outputs {
            // SAFETY: NULL or a tensor that C code holds.
            let output = given(unsafe { output.as_ref() }, "an output")?;
            match &output.kind {
                Operand::Traced(traced) => results.push(traced.clone()),
                Operand::Eager(_) => {
                    return Err(status!(
                        Unimplemented,
                        "Returning a non-graph tensor from a function has not been implemented yet."
                    ));
                }
            }
        }
        let function = traced.finalize(&results)?;
        Ok(Some(Box::new(TF_AbstractFunction { function })))
    })
}

/// Frees a function; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteAbstractFunction(func: Option<Box<TF_AbstractFunction>>) {
    quiet((), || {
        drop(func);
        Ok(())
    });
}

/// Adds a function to a context that executes. INVALID_ARGUMENT when another has its name; UNIMPLEMENTED for a context that
/// traces.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExecutionContextRegisterFunction(
    ctx: Handle<TF_ExecutionContext>,
    func: Handle<TF_AbstractFunction>,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let function = given(func, "func")?.function.def().clone();
        match &given(ctx, "ctx")?.kind {
            Execution::Eager(eager) => eager.state.context.add_function(function),
            Execution::Tracing(_) => Err(status!(
                Unimplemented,
                "Registering graph functions has not been implemented yet."
            )),
        }
    });
}

/// The context that executes. It belongs to `ctx`. NULL with INVALID_ARGUMENT for one that traces.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExecutionContextGetTFEContext(
    ctx: Handle<TF_ExecutionContext>,
    s: Option<&mut TF_Status>,
) -> *mut TFE_Context {
    guard_or(s, null_mut(), || match &given(ctx, "ctx")?.kind {
        Execution::Eager(eager) => Ok((&raw const **eager).cast_mut()),
        Execution::Tracing(_) => Err(status!(InvalidArgument, "Not an eager context handle.")),
    })
}

/// A tensor of a handle, which then belongs to the tensor. Free it with `TF_DeleteAbstractTensor`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CreateAbstractTensorFromEagerTensor(
    t: Option<Box<TFE_TensorHandle>>,
    s: Option<&mut TF_Status>,
) -> Option<Box<TF_AbstractTensor>> {
    guard_or(s, None, || {
        Ok(Some(Box::new(TF_AbstractTensor::eager(given_box(t, "t")?))))
    })
}

/// The handle of a tensor, to which it belongs. NULL with INVALID_ARGUMENT for an output of a node.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AbstractTensorGetEagerTensor(
    at: Handle<TF_AbstractTensor>,
    s: Option<&mut TF_Status>,
) -> *mut TFE_TensorHandle {
    guard_or(s, null_mut(), || match given(at, "at")?.kind {
        Operand::Eager(handle) => Ok(handle),
        Operand::Traced(_) => Err(status!(InvalidArgument, "Not an eager tensor handle.")),
    })
}

/// Frees a tensor; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteAbstractTensor(tensor: Option<Box<TF_AbstractTensor>>) {
    quiet((), || {
        drop(tensor);
        Ok(())
    });
}

/// A new list without tensors. Free it with `TF_DeleteOutputList`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewOutputList() -> Box<TF_OutputList> {
    Box::new(TF_OutputList { outputs: Vec::new() })
}

/// Frees a list, but not its tensors; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteOutputList(o: Option<Box<TF_OutputList>>) {
    quiet((), || {
        drop(o);
        Ok(())
    });
}

/// Empties a list and says how many tensors it is to have.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OutputListSetNumOutputs(
    o: Option<&mut TF_OutputList>,
    num_outputs: c_int,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let count = usize::try_from(num_outputs)
            .unwrap_or(0)
            .min(usize::from(u16::MAX));
        given_mut(o, "o")?.outputs = vec![null_mut(); count];
        Ok(())
    });
}

/// The number of tensors; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OutputListNumOutputs(o: Handle<TF_OutputList>) -> c_int {
    o.map_or(0, |list| c_count(list.outputs.len()))
}

/// A tensor of the list, which does not belong to the list: free it with `TF_DeleteAbstractTensor`, once. NULL when there is
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OutputListGet(o: Handle<TF_OutputList>, i: c_int) -> *mut TF_AbstractTensor {
    let index = usize::try_from(i).unwrap_or(usize::MAX);
    o.and_then(|list| list.outputs.get(index))
        .copied()
        .unwrap_or(null_mut())
}

/// Adds a tensor at the end of the list, which does not own it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OutputListPushBack(
    o: Option<&mut TF_OutputList>,
    tensor: *mut TF_AbstractTensor,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let list = given_mut(o, "o")?;
        if tensor.is_null() {
            return Err(missing("tensor"));
        }
        list.outputs.push(tensor);
        Ok(())
    });
}

/// An op to be executed or traced in a context, which must live as long. Free it with `TF_DeleteAbstractOp`. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewAbstractOp(ctx: Handle<TF_ExecutionContext>) -> Option<Box<TF_AbstractOp>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_AbstractOp::new(given(ctx, "ctx")?))))
    })
}
