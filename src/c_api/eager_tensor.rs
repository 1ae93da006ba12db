//! `TFE_TensorHandle`: a tensor on a device.

use crate::TF_Status;
use crate::datatype::{TF_DataType, to_c};
use crate::eager_context::TFE_Context;
use crate::ffi::{Enum, Handle, Text, c_count, c_string, given};
use crate::guard::{guard_or, quiet};
use crate::tensor::TF_Tensor;
use ff_tensor::{Result, Shape, Tensor, ensure, status};
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;
use std::sync::Arc;

/// Where tensors are that no op made.
const HOST: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

/// A tensor on a device. Threads may use one handle at the same time; it never changes.
pub struct TFE_TensorHandle {
    /// The tensor.
    pub tensor: Tensor,
    /// Full name of the device.
    pub device: Arc<CString>,
}

/// Extents of a tensor as its device has it.
pub struct TFE_TensorDebugInfo {
    shape: Shape,
}

impl TFE_TensorHandle {
    /// A handle in its box.
    pub fn boxed(tensor: Tensor, device: Arc<CString>) -> Box<TFE_TensorHandle> {
        Box::new(TFE_TensorHandle { tensor, device })
    }

    /// A second handle of the same tensor.
    pub fn share(&self) -> Box<TFE_TensorHandle> {
        TFE_TensorHandle::boxed(self.tensor.clone(), self.device.clone())
    }
}

fn look<T>(
    handle: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
    otherwise: T,
    look: impl FnOnce(&TFE_TensorHandle) -> Result<T>,
) -> T {
    guard_or(status, otherwise, || {
        let handle = handle.ok_or_else(|| status!(InvalidArgument, "Invalid handle"))?;
        look(handle)
    })
}

/// A handle of a tensor, whose memory it shares and which must not change any more. Free it with `TFE_DeleteTensorHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewTensorHandle(
    t: Option<&TF_Tensor>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        let tensor = given(t, "t")?.tensor()?;
        Ok(Some(TFE_TensorHandle::boxed(tensor, Arc::new(c_string(HOST)))))
    })
}

/// Frees a handle; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteTensorHandle(h: Option<Box<TFE_TensorHandle>>) {
    quiet((), || {
        drop(h);
        Ok(())
    });
}

/// The element type; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDataType(h: Handle<TFE_TensorHandle>) -> Enum<TF_DataType> {
    h.map_or(Enum::new(0), |handle| to_c(handle.tensor.dtype()))
}

/// The number of dimensions; -1 with INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleNumDims(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> c_int {
    look(h, status, -1, |handle| Ok(c_count(handle.tensor.rank())))
}

/// The number of elements; -1 with INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleNumElements(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> i64 {
    look(h, status, -1, |handle| Ok(handle.tensor.num_elements() as i64))
}

/// An extent; -1 with INVALID_ARGUMENT when there is no such dimension.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDim(
    h: Handle<TFE_TensorHandle>,
    dim_index: c_int,
    status: Option<&mut TF_Status>,
) -> i64 {
    look(h, status, -1, |handle| {
        let index = usize::try_from(dim_index).unwrap_or(usize::MAX);
        let extent = handle.tensor.dims().get(index).copied();
        extent.ok_or_else(|| {
            status!(
                InvalidArgument,
                "dim_index {dim_index} is out of range for a tensor with {} dimensions",
                handle.tensor.rank()
            )
        })
    })
}

/// Full name of the device of the op that made the tensor. The string lives as long as the handle. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDeviceName(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    look(h, status, null(), |handle| Ok(handle.device.as_ptr()))
}

/// Full name of the device in whose memory the tensor is. The string lives as long as the handle. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleBackingDeviceName(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    look(h, status, null(), |handle| Ok(handle.device.as_ptr()))
}

/// A second handle of the same tensor. Free it with `TFE_DeleteTensorHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleCopySharingTensor(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    look(h, status, None, |handle| Ok(Some(handle.share())))
}

/// The tensor, sharing its memory. Free it with `TF_DeleteTensor`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleResolve(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    look(h, status, None, |handle| {
        TF_Tensor::boxed(handle.tensor.clone()).map(Some)
    })
}

/// A handle of the tensor on another device of the context; memory is shared where the devices share it. Free it with
/// `TFE_DeleteTensorHandle`. NULL with INVALID_ARGUMENT for a device that is not there.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleCopyToDevice(
    h: Handle<TFE_TensorHandle>,
    ctx: Handle<TFE_Context>,
    device_name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    look(h, status, None, |handle| {
        let context = &given(ctx, "ctx")?.context;
        let device = context.device(&device_name.text("device_name")?)?;
        let name = c_string(&context.devices()[device].name);
        Ok(Some(TFE_TensorHandle::boxed(
            handle.tensor.clone(),
            Arc::new(name),
        )))
    })
}

/// How the tensor lies on its device. Free it with `TFE_DeleteTensorDebugInfo`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleTensorDebugInfo(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorDebugInfo>> {
    look(h, status, None, |handle| {
        Ok(Some(Box::new(TFE_TensorDebugInfo {
            shape: handle.tensor.shape().clone(),
        })))
    })
}

/// Frees it; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteTensorDebugInfo(debug_info: Option<Box<TFE_TensorDebugInfo>>) {
    quiet((), || {
        drop(debug_info);
        Ok(())
    });
}

/// The number of dimensions on the device; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorDebugInfoOnDeviceNumDims(debug_info: Handle<TFE_TensorDebugInfo>) -> c_int {
    debug_info.map_or(0, |info| c_count(info.shape.rank()))
}

/// An extent on the device; -1 when there is no such dimension.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorDebugInfoOnDeviceDim(
    debug_info: Handle<TFE_TensorDebugInfo>,
    dim_index: c_int,
) -> i64 {
    quiet(-1, || {
        let shape = &given(debug_info, "debug_info")?.shape;
        let index = usize::try_from(dim_index).unwrap_or(usize::MAX);
        ensure!(index < shape.rank(), InvalidArgument, "no dimension {dim_index}");
        Ok(shape.dims()[index])
    })
}
