//! Handles and the memory behind them.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::eager_context::{TFE_Context, context};
use crate::eager_tensor::{Content, TFE_TensorHandle, look};
use crate::ffi::{Array, Enum, Handle, Text, given};
use crate::guard::{guard, guard_or};
use crate::tensor::{Foreign, TF_Tensor, shape_of};
use ff_runtime::{DeviceName, EagerTensor};
use ff_tensor::{Result, ensure, status};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// The memory of the tensor, once it is there; for a device of the program, what that gave. It must not be written to, and
/// lives as long as the handle. NULL with INVALID_ARGUMENT for NULL, or with the error of the call that should have made the
/// tensor.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDevicePointer(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *mut c_void {
    look(h, status, null_mut(), |handle| match &handle.content {
        Content::Custom(custom) => Ok(custom.data),
        _ => Ok(handle.tensor()?.data_ptr().cast()),
    })
}

/// The number of bytes of that memory. 0 with INVALID_ARGUMENT for NULL and for a device of the program, or with the error of
/// the call that should have made the tensor.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDeviceMemorySize(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> usize {
    look(h, status, 0, |handle| {
        ensure!(
            !matches!(handle.content, Content::Custom(_)),
            InvalidArgument,
            "TFE_TensorHandleDeviceMemorySize may not be called on a REMOTE tensor handle."
        );
        Ok(handle.tensor()?.byte_size())
    })
}

/// A handle of `len` bytes at `data`, on the named device; in use until `deallocator` is called with `data`, `len` and
/// `deallocator_arg`. That happens exactly once, on any thread; right away where the memory is copied because its address is
/// not a multiple of 64, or when this fails. Free the handle with `TFE_DeleteTensorHandle`.
///
/// NULL with INVALID_ARGUMENT when there is no such device, or the bytes do not fit type and shape.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewTensorHandleFromDeviceMemory(
    ctx: Handle<TFE_Context>,
    device_name: Text,
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    data: *mut c_void,
    len: usize,
    deallocator: Option<unsafe extern "C" fn(data: *mut c_void, len: usize, arg: *mut c_void)>,
    deallocator_arg: *mut c_void,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        let memory = Foreign::new(data, len, deallocator, deallocator_arg);
        let state = &given(ctx, "ctx")?.state;
        let name = device_name.text("device_name")?;
        let device = match state.custom.find(&name) {
            Some(_) => DeviceName::of(&name),
            None => state.context.device(&name)?,
        };
        let shape = shape_of(dims, num_dims)?;
        let tensor = TF_Tensor::over(data_type(dtype), shape, memory)?.tensor()?;
        let handle = TFE_TensorHandle::on(device, &state.context, EagerTensor::Ready(tensor));
        Ok(Some(Box::new(handle)))
    })
}

/// A handle of a scalar with a copy of `len` bytes at `data`. Free it with `TFE_DeleteTensorHandle`. NULL with
/// INVALID_ARGUMENT when the type takes another number of bytes, or none that can be copied.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewTensorHandleFromScalar(
    data_type: Enum<TF_DataType>,
    data: *mut c_void,
    len: usize,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        let dtype = crate::datatype::data_type(data_type);
        ensure!(
            dtype.is_plain() && dtype.size() == len && !data.is_null(),
            InvalidArgument,
            "{len} bytes are no scalar of type {dtype}"
        );
        let mut tensor = ff_tensor::Tensor::allocate(dtype, ff_tensor::Shape::scalar())?;
        if let Some(room) = tensor.bytes_mut() {
            // SAFETY: C vouches for `len` bytes; there is room for as many.
            unsafe { std::ptr::copy_nonoverlapping(data.cast(), room.as_mut_ptr(), len.min(room.len())) };
        }
        Ok(Some(TFE_TensorHandle::on_host(tensor)))
    })
}

/// A tensor for the program to fill and to make a handle of. Free it with `TF_DeleteTensor`. NULL with INVALID_ARGUMENT for a
/// shape that is not valid or a type that takes no bytes; with RESOURCE_EXHAUSTED when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_AllocateHostTensor(
    ctx: Handle<TFE_Context>,
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard_or(status, None, || {
        context(ctx)?;
        let (dtype, shape) = (data_type(dtype), shape_of(dims, num_dims)?);
        let length = shape.num_elements().checked_mul(dtype.size());
        let length = length.ok_or_else(|| {
            status!(
                ResourceExhausted,
                "OOM when allocating tensor with shape{shape} and type {dtype}"
            )
        })?;
        Ok(Some(Box::new(TF_Tensor::allocate(dtype, shape, length)?)))
    })
}

/// As `TFE_NewTensorHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewTensorHandleFromTensor(
    ctx: Handle<TFE_Context>,
    t: Handle<TF_Tensor>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        context(ctx)?;
        Ok(Some(TFE_TensorHandle::on_host(given(t, "t")?.tensor()?)))
    })
}

fn kind_and_number(handle: &TFE_TensorHandle) -> Result<(&'static str, c_int)> {
    handle.device.kind_and_number().ok_or_else(|| {
        status!(
            InvalidArgument,
            "'{}' names no device in full",
            handle.device.as_str()
        )
    })
}

/// The type of the device of the op that made the tensor, such as `CPU`. The string is never freed. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDeviceType(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    look(h, status, null(), |handle| {
        let (kind, _) = kind_and_number(handle)?;
        Ok(DeviceName::of(kind).as_c().as_ptr())
    })
}

/// The number of the device of the op that made the tensor. -1 with INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDeviceID(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> c_int {
    look(h, status, -1, |handle| Ok(kind_and_number(handle)?.1))
}

/// The state of the connection to the process that has the tensor: OK, as all tensors are in this one. INVALID_ARGUMENT for
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleGetStatus(h: Handle<TFE_TensorHandle>, status: Option<&mut TF_Status>) {
    guard(status, || crate::eager_tensor::valid(h).map(|_| ()));
}
