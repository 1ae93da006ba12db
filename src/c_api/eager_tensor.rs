//! `TFE_TensorHandle`: a tensor on a device; or one that a call has yet to make, one of a device of the program, or several
//! that stand for one.

use crate::TF_Status;
use crate::datatype::{TF_DataType, to_c};
use crate::eager_context::TFE_Context;
use crate::eager_custom_device::CustomTensor;
use crate::ffi::{Enum, Handle, Text, c_count, given};
use crate::guard::{guard_or, quiet};
use crate::tensor::TF_Tensor;
use ff_runtime::{DeviceName, EagerContext, EagerTensor};
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure, status};
use std::ffi::{c_char, c_int};
use std::ptr::null;
use std::sync::Arc;

/// A tensor on a device. Threads may use one handle at the same time; it never changes.
#[derive(Clone)]
pub struct TFE_TensorHandle {
    /// What the handle is of.
    pub content: Content,
    /// The device of the op that made it.
    pub device: DeviceName,
    /// The device in whose memory it is.
    pub backing: DeviceName,
}

/// What a handle is of.
#[derive(Clone)]
pub enum Content {
    /// A tensor in memory of ours.
    Tensor(EagerTensor),
    /// What a device of the program keeps.
    Custom(Arc<CustomTensor>),
    /// One tensor on each part of a device that stands for several; never none.
    Packed(Arc<Vec<TFE_TensorHandle>>),
}

/// Extents of a tensor as its device has it. Threads may read them at the same time.
pub struct TFE_TensorDebugInfo {
    shape: Shape,
}

impl TFE_TensorHandle {
    /// A handle in memory of this device.
    #[inline]
    pub fn of(tensor: EagerTensor, device: DeviceName) -> TFE_TensorHandle {
        TFE_TensorHandle {
            content: Content::Tensor(tensor),
            device,
            backing: device,
        }
    }

    /// A handle on a device of a context: what the first device has is in memory of the host.
    pub fn on(device: DeviceName, context: &EagerContext, tensor: EagerTensor) -> TFE_TensorHandle {
        let mut handle = TFE_TensorHandle::of(tensor, device);
        if device == context.home() {
            handle.backing = DeviceName::host();
        }
        handle
    }

    /// A handle of a tensor that no op made, in its box.
    pub fn on_host(tensor: Tensor) -> Box<TFE_TensorHandle> {
        let tensor = EagerTensor::Ready(tensor);
        Box::new(TFE_TensorHandle::of(tensor, DeviceName::host()))
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DataType {
        match &self.content {
            Content::Tensor(tensor) => tensor.dtype(),
            Content::Custom(custom) => custom.dtype,
            Content::Packed(parts) => parts.first().map_or(DataType::INVALID, |part| part.dtype()),
        }
    }

    /// The tensor in memory of ours, once it is there.
    pub fn tensor(&self) -> Result<Tensor> {
        match &self.content {
            Content::Tensor(tensor) => tensor.wait(),
            Content::Custom(custom) => custom.copy_out(self, DeviceName::host())?.tensor(),
            Content::Packed(_) => bail!(
                InvalidArgument,
                "Resolve() is not supported on packed TensorHandles."
            ),
        }
    }

    /// The extents, once they are known.
    fn dims(&self) -> Result<Vec<i64>> {
        match &self.content {
            Content::Tensor(tensor) => Ok(tensor.wait()?.dims().to_vec()),
            Content::Custom(custom) => custom.dims(),
            Content::Packed(parts) => match parts.first() {
                Some(first) => first.dims(),
                None => Ok(Vec::new()),
            },
        }
    }
}

/// The handle. INVALID_ARGUMENT for NULL.
pub(crate) fn valid(handle: Handle<'_, TFE_TensorHandle>) -> Result<&TFE_TensorHandle> {
    handle.ok_or_else(|| status!(InvalidArgument, "Invalid handle"))
}

pub(crate) fn look<T>(
    handle: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
    otherwise: T,
    look: impl FnOnce(&TFE_TensorHandle) -> Result<T>,
) -> T {
    guard_or(status, otherwise, || look(valid(handle)?))
}

/// A handle of a tensor, whose memory it shares and which must not change any more. Free it with `TFE_DeleteTensorHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewTensorHandle(
    t: Option<&TF_Tensor>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        Ok(Some(TFE_TensorHandle::on_host(given(t, "t")?.tensor()?)))
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
    h.map_or(Enum::new(0), |handle| to_c(handle.dtype()))
}

/// The number of dimensions, once it is known; -1 with INVALID_ARGUMENT for NULL, or with the error of the call that should
/// have made the tensor.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleNumDims(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> c_int {
    look(h, status, -1, |handle| Ok(c_count(handle.dims()?.len())))
}

/// The number of elements, once it is known; -1 with INVALID_ARGUMENT for NULL, or with the error of the call that should
/// have made the tensor.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleNumElements(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> i64 {
    look(h, status, -1, |handle| {
        Ok(handle
            .dims()?
            .iter()
            .fold(1, |count: i64, extent| count.saturating_mul(*extent)))
    })
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
        let dims = handle.dims()?;
        dims.get(index).copied().ok_or_else(|| {
            status!(
                InvalidArgument,
                "dim_index {dim_index} is out of range for a tensor with {} dimensions",
                dims.len()
            )
        })
    })
}

/// Full name of the device of the op that made the tensor. The string is never freed. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleDeviceName(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    look(h, status, null(), |handle| Ok(handle.device.as_c().as_ptr()))
}

/// Full name of the device in whose memory the tensor is. The string is never freed. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleBackingDeviceName(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    look(h, status, null(), |handle| Ok(handle.backing.as_c().as_ptr()))
}

/// A second handle of the same tensor. Free it with `TFE_DeleteTensorHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleCopySharingTensor(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    look(h, status, None, |handle| Ok(Some(Box::new(handle.clone()))))
}

/// The tensor, sharing its memory; waits for the call that makes it. Free it with `TF_DeleteTensor`. NULL with the error of
/// that call, with INVALID_ARGUMENT for a packed handle, or with what a device of the program says.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleResolve(
    h: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    look(h, status, None, |handle| {
        TF_Tensor::boxed(handle.tensor()?).map(Some)
    })
}

/// A handle of the tensor on another device of the context; memory is shared where the devices share it, and devices of the
/// program are asked to copy. Free it with `TFE_DeleteTensorHandle`. NULL with INVALID_ARGUMENT for a device that is not
/// there, or with what the program says.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_TensorHandleCopyToDevice(
    h: Handle<TFE_TensorHandle>,
    ctx: Handle<TFE_Context>,
    device_name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    look(h, status, None, |handle| {
        let state = &given(ctx, "ctx")?.state;
        let name = device_name.text("device_name")?;
        state.custom.copy(&state.context, handle, &name).map(Some)
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
            shape: Shape::new(&handle.dims()?)?,
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
