//! `TF_OpKernelContext`: what a kernel sees of its node in a step.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::datatype::{TF_DataType, data_type, to_c};
use crate::ffi::{Array, Enum, Out, Text, c_count, given, given_mut, put};
use crate::guard::{guard, quiet};
use crate::kernel_builder::failure_of;
use crate::kernel_deferred::Deferred;
use crate::kernel_rendezvous::Meeting;
use crate::plugged_device::PluggedDevice;
use crate::tensor::{TF_AllocatorAttributes, TF_Tensor, shape_of};
use ff_op::KernelContext;
use ff_runtime::LoopTurn;
use ff_tensor::{DataType, Result, Status, Tensor, ensure, status};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// What a kernel sees of its node in a step; valid during that call, or until an asynchronous kernel is done. One thread at a
/// time may use it.
pub struct TF_OpKernelContext {
    context: *mut KernelContext<'static>,
    outputs: Vec<Option<Tensor>>,
    failure: Option<Status>,
    of_node: OfNode,
    deferred: Arc<Deferred>,
    meeting: Option<Box<Meeting>>,
    turn: LoopTurn,
}

/// What a kernel keeps of its node besides what every kernel does.
#[derive(Clone)]
pub(crate) struct OfNode {
    /// The names of its inputs and of what it waits for.
    pub input_names: Arc<[String]>,
    /// Where it runs; none for a CPU.
    pub device: Option<Placed>,
}

/// Where a kernel of a plugged device runs, and which of its inputs and outputs are in memory of the host all the same.
#[derive(Clone)]
pub(crate) struct Placed {
    /// The device.
    pub device: Arc<PluggedDevice>,
    /// One for each input.
    pub host_inputs: Arc<[bool]>,
    /// One for each output.
    pub host_outputs: Arc<[bool]>,
}

/// Runs a kernel of C on a context, then takes its outputs and its failure over.
pub(crate) fn run(
    context: &mut KernelContext,
    of_node: OfNode,
    compute: impl FnOnce(*mut TF_OpKernelContext),
) -> Result<()> {
    let mut view = TF_OpKernelContext::new((context as *mut KernelContext).cast(), of_node);
    compute(&raw mut view);
    view.deferred.clone().wait();
    for (index, tensor) in view.results()?.into_iter().enumerate() {
        context.set_output(index, tensor)?;
    }
    Ok(())
}

impl TF_OpKernelContext {
    /// The view of a context, which must stay where it is while C uses the view.
    pub(crate) fn new(context: *mut KernelContext<'static>, of_node: OfNode) -> TF_OpKernelContext {
        // SAFETY: the caller's context is there.
        let count = unsafe { (*context).num_outputs() };
        TF_OpKernelContext {
            context,
            outputs: vec![None; count],
            failure: None,
            of_node,
            deferred: Arc::default(),
            meeting: None,
            turn: LoopTurn::current(),
        }
    }

    /// The name of an input, or of what the node waits for.
    pub(crate) fn input_name(&self, index: usize) -> Option<&str> {
        self.of_node.input_names.get(index).map(String::as_str)
    }

    /// Work that goes on after the kernel has returned.
    pub(crate) fn deferred(&self) -> &Arc<Deferred> {
        &self.deferred
    }

    /// Keeps what C code uses as the step's rendezvous; the first one stays.
    pub(crate) fn keep(&mut self, meeting: Meeting) -> *mut c_void {
        let kept = self.meeting.get_or_insert_with(|| Box::new(meeting));
        (&raw mut **kept).cast()
    }

    /// The device whose memory an input is in; none for memory of the host.
    fn device_of_input(&self, index: usize) -> Option<&Arc<PluggedDevice>> {
        let placed = self.of_node.device.as_ref()?;
        (!placed.host_inputs.get(index)?).then_some(&placed.device)
    }

    /// The device whose memory an output is in; none for memory of the host.
    fn device_of_output(&self, index: usize) -> Option<&Arc<PluggedDevice>> {
        let placed = self.of_node.device.as_ref()?;
        (!placed.host_outputs.get(index)?).then_some(&placed.device)
    }

    /// The turn of the loop around it.
    pub(crate) fn turn(&self) -> LoopTurn {
        self.turn
    }

    /// The stream of the device that the kernel runs on, if a plug-in brought it.
    pub(crate) fn stream(&self) -> Option<*mut c_void> {
        self.of_node.device.as_ref().map(|placed| placed.device.stream())
    }

    /// What the kernel computed, or its failure. INTERNAL when an output is missing.
    pub(crate) fn results(&mut self) -> Result<Vec<Tensor>> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        if let Some(placed) = &self.of_node.device {
            placed.device.wait()?;
        }
        let outputs = std::mem::take(&mut self.outputs).into_iter().enumerate();
        let missing = |index: usize| {
            status!(
                Internal,
                "Missing {index}-th output from {}",
                self.context().node().describe()
            )
        };
        outputs
            .map(|(index, output)| {
                let tensor = output.ok_or_else(|| missing(index))?;
                match self.device_of_output(index) {
                    Some(device) => device.download(&tensor),
                    None => Ok(tensor),
                }
            })
            .collect()
    }

    pub(crate) fn context(&self) -> &KernelContext<'static> {
        // SAFETY: valid while the kernel runs; it uses its context from one thread at a time.
        unsafe { &*self.context }
    }

    fn context_mut(&mut self) -> &mut KernelContext<'static> {
        // SAFETY: as above.
        unsafe { &mut *self.context }
    }

    fn input_index(&self, index: c_int) -> Result<usize> {
        in_range(index, self.context().num_inputs(), "input")
    }

    fn output_index(&self, index: c_int) -> Result<usize> {
        in_range(index, self.outputs.len(), "output")
    }

    /// Checks the type of an output.
    fn expect(&self, index: usize, dtype: DataType) -> Result<()> {
        let expected = self.context().output_type(index);
        ensure!(
            expected == dtype,
            InvalidArgument,
            "Output {index} of {} has type {expected}, not {dtype}",
            self.context().node().describe()
        );
        Ok(())
    }
}

fn in_range(index: c_int, count: usize, what: &str) -> Result<usize> {
    usize::try_from(index)
        .ok()
        .filter(|&index| index < count)
        .ok_or_else(|| status!(OutOfRange, "{what} index out of range"))
}

/// The number of inputs; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NumInputs(ctx: Option<&mut TF_OpKernelContext>) -> c_int {
    ctx.map_or(0, |ctx| c_count(ctx.context().num_inputs()))
}

/// The number of outputs; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NumOutputs(ctx: Option<&mut TF_OpKernelContext>) -> c_int {
    ctx.map_or(0, |ctx| c_count(ctx.outputs.len()))
}

/// Gets an input, which the caller owns and must not change. OUT_OF_RANGE when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetInput(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    tensor: Out<*mut TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.input_index(i)?;
        let value = match ctx.context().ref_input(index) {
            Ok(variable) => variable.read()?,
            Err(_) => ctx.context().input(index)?.clone(),
        };
        let value = match ctx.device_of_input(index) {
            Some(device) => device.upload(&value)?,
            None => value,
        };
        put(tensor, Box::into_raw(TF_Tensor::boxed(value)?), "tensor")
    });
}

/// Which inputs an input argument of the op has.
#[repr(C)]
pub struct TF_InputRange_Args {
    /// `TF_InputRange_Args_STRUCT_SIZE`.
    pub struct_size: usize,
    /// Not used.
    pub private: *mut c_void,
    /// Set to the first input.
    pub start: c_int,
    /// Set to the one after the last.
    pub stop: c_int,
    /// Set to the outcome.
    pub status: *mut TF_Status,
}

/// Finds the inputs of the input argument with this name. INVALID_ARGUMENT when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InputRange(
    ctx: Option<&mut TF_OpKernelContext>,
    name: Text,
    args: Option<&mut TF_InputRange_Args>,
) {
    let Some(args) = args else { return };
    // SAFETY: NULL or a status of the caller's.
    let status = unsafe { args.status.as_mut() };
    guard(status, || {
        let node = given_mut(ctx, "ctx")?.context().node();
        let range = node.input_range_of(&name.text("name")?);
        let range = range.map_err(|error| status!(InvalidArgument, "{}", error.message()))?;
        args.start = range.start as c_int;
        args.stop = range.end as c_int;
        Ok(())
    });
}

/// The element type of an input; 0 when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InputDatatype(ctx: Option<&mut TF_OpKernelContext>, index: c_int) -> Enum<TF_DataType> {
    quiet(Enum::new(0), || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.input_index(index)?;
        let types = &ctx.context().node().input_types;
        Ok(types.get(index).map_or(Enum::new(0), |dtype| to_c(*dtype)))
    })
}

/// Sets an output; the tensor's memory is shared, and the caller keeps its handle. OUT_OF_RANGE when there is no such
/// output, INVALID_ARGUMENT for another type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetOutput(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    tensor: Option<&TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.output_index(i)?;
        let tensor = given(tensor, "tensor")?.tensor()?;
        ctx.expect(index, tensor.dtype())?;
        ctx.outputs[index] = Some(tensor);
        Ok(())
    });
}

/// The output that was set or allocated, which the caller owns and may write. NULL with OUT_OF_RANGE when there is no such
/// output; NULL when it is not set.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetMutableOutput(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.output_index(i)?;
        ctx.outputs[index].clone().map(TF_Tensor::boxed).transpose()
    })
}

/// Reports that the kernel failed.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelContext_Failure(
    ctx: Option<&mut TF_OpKernelContext>,
    status: Option<&mut TF_Status>,
) {
    if let Some(ctx) = ctx {
        ctx.failure.get_or_insert(failure_of(status));
    }
}

/// The element type that an output must have; 0 when there is no such output.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExpectedOutputDataType(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
) -> Enum<TF_DataType> {
    quiet(Enum::new(0), || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.output_index(i)?;
        Ok(to_c(ctx.context().output_type(index)))
    })
}

/// Whether an input of a kernel of another device is in memory of the host, because the kernel asked for it. On a CPU there
/// is no difference, and so it is false. OUT_OF_RANGE when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_IsHostMemoryInput(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    status: Option<&mut TF_Status>,
) -> bool {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.input_index(i)?;
        Ok(ctx.of_node.device.is_some() && ctx.device_of_input(index).is_none())
    })
}

/// Whether an output is in memory of the host, likewise. OUT_OF_RANGE when there is no such output.
#[unsafe(no_mangle)]
pub extern "C" fn TF_IsHostMemoryOutput(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    status: Option<&mut TF_Status>,
) -> bool {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.output_index(i)?;
        Ok(ctx.of_node.device.is_some() && ctx.device_of_output(index).is_none())
    })
}

/// Writes the handle in a resource input as a serialized `ResourceHandleProto` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetSerializedResourceHandleProto(
    ctx: Option<&mut TF_OpKernelContext>,
    i: c_int,
    serialized_resource_handle_proto: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let index = ctx.input_index(i)?;
        fill(
            serialized_resource_handle_proto,
            &ctx.context().handle(index)?.to_proto(),
        )
    });
}

/// Allocates an output, which the caller fills; it owns the handle. `len` is the number of bytes, at least what type and
/// shape need. NULL with OUT_OF_RANGE when there is no such output, INVALID_ARGUMENT for another type or too few bytes,
/// RESOURCE_EXHAUSTED when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AllocateOutput(
    context: Option<&mut TF_OpKernelContext>,
    index: c_int,
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    len: usize,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let ctx = given_mut(context, "context")?;
        let (index, dtype) = (ctx.output_index(index)?, data_type(dtype));
        ctx.expect(index, dtype)?;
        let shape = shape_of(dims, num_dims)?;
        let needed = shape.num_elements().saturating_mul(dtype.size());
        let tensor = match ctx.device_of_output(index) {
            Some(device) => TF_Tensor::new(device.tensor(dtype, shape)?)?,
            None => TF_Tensor::allocate(dtype, shape, len.max(needed))?,
        };
        ctx.outputs[index] = Some(tensor.tensor()?);
        Ok(Some(Box::new(tensor)))
    })
}

/// Uses the memory of the first of these inputs that nobody else needs and that fits the output, with its values in it;
/// otherwise allocates the output. `*forwarded_input`, unless that is NULL, is the input or -1. The caller owns the handle
/// and fills the memory.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ForwardInputOrAllocateOutput(
    context: Option<&mut TF_OpKernelContext>,
    candidate_input_indices: Array<c_int>,
    num_candidate_input_indices: c_int,
    output_index: c_int,
    output_dims: Array<i64>,
    output_num_dims: c_int,
    forwarded_input: Option<&mut c_int>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let ctx = given_mut(context, "context")?;
        let output = ctx.output_index(output_index)?;
        let candidates =
            candidate_input_indices.of(num_candidate_input_indices, "candidate_input_indices")?;
        let shape = shape_of(output_dims, output_num_dims)?;
        let dtype = ctx.context().output_type(output);
        let mut found = None;
        for &candidate in candidates {
            let input = ctx.input_index(candidate)?;
            if ctx.of_node.device.is_some() {
                continue;
            }
            if let Some(tensor) = ctx.context_mut().forward_as(input, dtype, &shape) {
                found = Some((candidate, tensor));
                break;
            }
        }
        let (input, tensor) = match found {
            Some(found) => found,
            None => match ctx.device_of_output(output) {
                Some(device) => (-1, device.tensor(dtype, shape)?),
                None => (-1, ctx.context().allocate(dtype, shape)?),
            },
        };
        if let Some(forwarded) = forwarded_input {
            *forwarded = input;
        }
        ctx.outputs[output] = Some(tensor.clone());
        Ok(Some(TF_Tensor::boxed(tensor)?))
    })
}

/// Allocates memory for the time of the computation, of the device unless `alloc_attrs` asks for the host's; the caller frees the tensor. NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AllocateTemp(
    context: Option<&mut TF_OpKernelContext>,
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    alloc_attrs: Option<&mut TF_AllocatorAttributes>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let ctx = given_mut(context, "context")?;
        let (dtype, shape) = (data_type(dtype), shape_of(dims, num_dims)?);
        let on_host = alloc_attrs.is_some_and(|attrs| attrs.on_host != 0);
        let tensor = match &ctx.of_node.device {
            Some(placed) if !on_host && dtype.is_plain() => placed.device.tensor(dtype, shape)?,
            _ => ctx.context().allocate(dtype, shape)?,
        };
        Ok(Some(TF_Tensor::boxed(tensor)?))
    })
}
