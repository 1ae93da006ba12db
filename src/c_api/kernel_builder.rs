//! `TF_KernelBuilder`: kernels registered at run time.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::ffi::{Enum, Text, given_box, given_mut};
use crate::guard::{guard, quiet};
use crate::kernel_construction::TF_OpKernelConstruction;
use crate::kernel_context::{OfNode, Placed, TF_OpKernelContext, run};
use crate::kernel_waiting::Waiting;
use crate::plugged_device;
use ff_op::{
    AsyncKernelContext, DynKernel, InputNames, KernelContext, KernelInstance, KernelRecord, NodeInfo,
};
use ff_ops::registry;
use ff_proto::KernelDef;
use ff_tensor::{DataType, Result, Status, bail, status};
use parking_lot::{Condvar, Mutex};
use std::ffi::c_void;
use std::sync::Arc;

/// Makes the state of a kernel for one node.
pub type CreateFunction = Option<unsafe extern "C" fn(ctx: *mut TF_OpKernelConstruction) -> *mut c_void>;
/// Computes.
pub type ComputeFunction = Option<unsafe extern "C" fn(kernel: *mut c_void, ctx: *mut TF_OpKernelContext)>;
/// Starts to compute; the callback says when it is done.
pub type ComputeAsyncFunction = Option<
    unsafe extern "C" fn(
        kernel: *mut c_void,
        ctx: *mut TF_OpKernelContext,
        done: *mut TF_AsyncOpKernelDoneCallback,
    ),
>;
/// Frees the state of a kernel.
pub type DeleteFunction = Option<unsafe extern "C" fn(kernel: *mut c_void)>;

/// A kernel under construction. One thread at a time may use it.
pub struct TF_KernelBuilder {
    op: String,
    device: String,
    functions: Functions,
    types: Vec<(String, Vec<DataType>)>,
    label: String,
    priority: i32,
    host_memory: Vec<String>,
}

#[derive(Clone, Copy)]
enum Compute {
    Now(ComputeFunction),
    Later(ComputeAsyncFunction),
}

#[derive(Clone, Copy)]
struct Functions {
    create: CreateFunction,
    compute: Compute,
    delete: DeleteFunction,
}

/// Says that an asynchronous kernel is done with a node. It is used once, on any thread.
pub struct TF_AsyncOpKernelDoneCallback(Done);

enum Done {
    /// Somebody waits for it.
    Awaited(Arc<(Mutex<bool>, Condvar)>),
    /// The step has gone on; this ends the node's run.
    Ends(Waiting),
}

fn new_builder(op_name: Text, device_name: Text, functions: Functions) -> Option<Box<TF_KernelBuilder>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_KernelBuilder {
            op: op_name.text("op_name")?.into_owned(),
            device: device_name.text("device_name")?.into_owned(),
            functions,
            types: Vec::new(),
            label: String::new(),
            priority: 0,
            host_memory: Vec::new(),
        })))
    })
}

/// Starts a kernel for an op on a type of device (`CPU`).
///
/// For each node that uses it, `create_func` is called once, unless it is NULL, and what it returns is passed to the other
/// functions; `compute_func` is called in each step, by any thread, also by several at the same time; `delete_func` is called
/// at the end, unless it is NULL. Contexts are valid during the calls only.
///
/// `TF_RegisterKernelBuilder` or `TF_DeleteKernelBuilder` frees the builder. NULL for NULL names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewKernelBuilder(
    op_name: Text,
    device_name: Text,
    create_func: CreateFunction,
    compute_func: ComputeFunction,
    delete_func: DeleteFunction,
) -> Option<Box<TF_KernelBuilder>> {
    let functions = Functions {
        create: create_func,
        compute: Compute::Now(compute_func),
        delete: delete_func,
    };
    new_builder(op_name, device_name, functions)
}

/// As `TF_NewKernelBuilder`, for a kernel that may return before it is done: it calls
/// `TF_RunAsyncOpKernelDoneCallback` then, on any thread, and may use its context until it does.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewAsyncKernelBuilder(
    op_name: Text,
    device_name: Text,
    create_func: CreateFunction,
    compute_async_func: ComputeAsyncFunction,
    delete_func: DeleteFunction,
) -> Option<Box<TF_KernelBuilder>> {
    let functions = Functions {
        create: create_func,
        compute: Compute::Later(compute_async_func),
        delete: delete_func,
    };
    new_builder(op_name, device_name, functions)
}

/// Says that an asynchronous kernel is done, and frees the callback. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RunAsyncOpKernelDoneCallback(done: Option<Box<TF_AsyncOpKernelDoneCallback>>) {
    quiet((), || {
        match done.map(|callback| callback.0) {
            Some(Done::Awaited(done)) => {
                let (done, changed) = &*done;
                *done.lock() = true;
                changed.notify_all();
            }
            Some(Done::Ends(waiting)) => waiting.deferred().finish(waiting),
            None => {}
        }
        Ok(())
    });
}

/// Restricts the kernel to one more value of an attribute that is an element type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_KernelBuilder_TypeConstraint(
    kernel_builder: Option<&mut TF_KernelBuilder>,
    attr_name: Text,
    dtype: Enum<TF_DataType>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let builder = given_mut(kernel_builder, "kernel_builder")?;
        let (name, dtype) = (attr_name.text("attr_name")?, data_type(dtype));
        match builder.types.iter_mut().find(|(attr, _)| *attr == name) {
            Some((_, types)) => types.push(dtype),
            None => builder.types.push((name.into_owned(), vec![dtype])),
        }
        Ok(())
    });
}

/// Says that an input or output argument is in memory of the host also on another device. On a CPU all are.
#[unsafe(no_mangle)]
pub extern "C" fn TF_KernelBuilder_HostMemory(kernel_builder: Option<&mut TF_KernelBuilder>, arg_name: Text) {
    quiet((), || {
        let builder = given_mut(kernel_builder, "kernel_builder")?;
        builder.host_memory.push(arg_name.text("arg_name")?.into_owned());
        Ok(())
    });
}

/// Sets the priority: of the kernels that fit a node, the highest wins.
#[unsafe(no_mangle)]
pub extern "C" fn TF_KernelBuilder_Priority(
    kernel_builder: Option<&mut TF_KernelBuilder>,
    priority_number: i32,
) {
    if let Some(builder) = kernel_builder {
        builder.priority = priority_number;
    }
}

/// Restricts the kernel to nodes whose attribute `_kernel` has this value.
#[unsafe(no_mangle)]
pub extern "C" fn TF_KernelBuilder_Label(kernel_builder: Option<&mut TF_KernelBuilder>, label: Text) {
    quiet((), || {
        let builder = given_mut(kernel_builder, "kernel_builder")?;
        builder.label = label.text("label")?.into_owned();
        Ok(())
    });
}

/// Adds the kernel to those of this process and frees the builder, also on failure. The op may be added later.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RegisterKernelBuilder(
    _kernel_name: Text,
    builder: Option<Box<TF_KernelBuilder>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let builder = *given_box(builder, "builder")?;
        let kernel = KernelRecord::Dynamic {
            device: builder.device.clone(),
            types: builder.types,
            label: builder.label,
            priority: builder.priority,
            kernel: Arc::new(CKernel {
                functions: builder.functions,
                device: builder.device,
                host_memory: builder.host_memory,
            }),
        };
        registry().add_kernel(&builder.op, kernel);
        Ok(())
    });
}

/// As `TF_RegisterKernelBuilder`, with restrictions, label and priority from a `KernelDef` in serialized form that ends at
/// its first zero byte; NULL for those of the builder.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RegisterKernelBuilderWithKernelDef(
    serialized_kernel_def: Text,
    name: Text,
    builder: Option<Box<TF_KernelBuilder>>,
    status: Option<&mut TF_Status>,
) {
    let Some(bytes) = serialized_kernel_def.bytes() else {
        return TF_RegisterKernelBuilder(name, builder, status);
    };
    let mut failed = TF_Status::default();
    let builder = guard(Some(&mut failed), || {
        let mut builder = given_box(builder, "builder")?;
        let def: KernelDef = crate::buffer::decode(bytes, "Unparseable KernelDef")?;
        builder.label = def.label;
        builder.priority = def.priority;
        builder.types = def.constraint.into_iter().filter_map(types_of).collect();
        Ok(Some(builder))
    });
    match builder {
        Some(builder) => TF_RegisterKernelBuilder(name, Some(builder), status),
        None => guard(status, || match failed.error() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }),
    }
}

fn types_of(constraint: ff_proto::kernel_def::AttrConstraint) -> Option<(String, Vec<DataType>)> {
    match constraint.allowed_values?.value? {
        ff_proto::attr_value::Value::List(list) => Some((
            constraint.name,
            list.r#type.iter().map(|&number| DataType(number)).collect(),
        )),
        _ => None,
    }
}

/// Frees a builder that is not registered; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteKernelBuilder(builder: Option<Box<TF_KernelBuilder>>) {
    quiet((), || {
        drop(builder);
        Ok(())
    });
}

/// A kernel of C, as the library runs it.
struct CKernel {
    functions: Functions,
    /// The type of device.
    device: String,
    /// Arguments in memory of the host.
    host_memory: Vec<String>,
}

impl CKernel {
    /// Where the kernel of a node runs; none on a CPU.
    fn placed(&self, node: &NodeInfo) -> Option<Placed> {
        let device = plugged_device::find(&node.device).or_else(|| plugged_device::first_of(&self.device))?;
        let mut host_inputs: Vec<bool> = node.input_types.iter().map(|dtype| !dtype.is_plain()).collect();
        let mut host_outputs: Vec<bool> = node.output_types.iter().map(|dtype| !dtype.is_plain()).collect();
        for name in &self.host_memory {
            let inputs = node.input_range_of(name).unwrap_or_default();
            let outputs = node.output_range_of(name).unwrap_or_default();
            inputs.for_each(|index| host_inputs[index] = true);
            outputs.for_each(|index| host_outputs[index] = true);
        }
        Some(Placed {
            device,
            host_inputs: host_inputs.into(),
            host_outputs: host_outputs.into(),
        })
    }
}

impl DynKernel for CKernel {
    fn create(&self, node: &NodeInfo, inputs: InputNames) -> Result<Arc<dyn KernelInstance>> {
        let input_names: Arc<[String]> = inputs().into();
        let mut construction = TF_OpKernelConstruction::new(node, &input_names);
        let state = match self.functions.create {
            // SAFETY: the construction lives for the call, and C vouches that its function takes it.
            Some(create) => unsafe { create(&raw mut construction) },
            None => std::ptr::null_mut(),
        };
        let instance = Instance {
            functions: self.functions,
            state,
            of_node: OfNode {
                input_names,
                device: self.placed(node),
            },
        };
        match construction.failure() {
            Some(error) => Err(error),
            None => Ok(Arc::new(instance)),
        }
    }

    fn may_wait(&self) -> bool {
        matches!(self.functions.compute, Compute::Later(Some(_)))
    }
}

/// The state of a C kernel for one node.
struct Instance {
    functions: Functions,
    state: *mut c_void,
    of_node: OfNode,
}

// SAFETY: C vouches that its functions may be called on any thread, also at the same time.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl KernelInstance for Instance {
    fn run(&self, context: &mut KernelContext) -> Result<()> {
        match self.functions.compute {
            Compute::Now(Some(compute)) => run(context, self.of_node.clone(), |view| {
                // SAFETY: the context lives for the call, and C vouches that its function takes it.
                unsafe { compute(self.state, view) };
            }),
            Compute::Later(Some(compute)) => run(context, self.of_node.clone(), |view| {
                let done = Arc::new((Mutex::new(false), Condvar::new()));
                let callback = Box::new(TF_AsyncOpKernelDoneCallback(Done::Awaited(done.clone())));
                // SAFETY: the context lives until the callback is run, and C vouches that its function takes it.
                unsafe { compute(self.state, view, Box::into_raw(callback)) };
                let mut is_done = done.0.lock();
                while !*is_done {
                    done.1.wait(&mut is_done);
                }
            }),
            _ => bail!(
                Unimplemented,
                "{} has no compute function",
                context.node().describe()
            ),
        }
    }

    fn may_wait(&self) -> bool {
        matches!(self.functions.compute, Compute::Later(Some(_)))
    }

    fn start(&self, context: AsyncKernelContext) {
        let Compute::Later(Some(compute)) = self.functions.compute else {
            let error = status!(Internal, "{} cannot wait", context.node.describe());
            return context.finish(Err(error));
        };
        let mut waiting = Waiting::new(context, self.of_node.clone());
        let view = waiting.view();
        let callback = Box::new(TF_AsyncOpKernelDoneCallback(Done::Ends(waiting)));
        // SAFETY: the callback keeps what the context points at, and C vouches that its function takes both.
        unsafe { compute(self.state, view, Box::into_raw(callback)) };
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(delete) = self.functions.delete {
            // SAFETY: called once with what `create` gave.
            unsafe { delete(self.state) };
        }
    }
}

/// The error that a C status holds.
pub(crate) fn failure_of(status: Option<&mut TF_Status>) -> Status {
    match status.as_deref().and_then(TF_Status::error) {
        Some(error) => error.clone(),
        None => status!(Unknown, "the kernel failed without an error"),
    }
}
