//! Devices that a program registers with a context: what they do is functions of the program.
//!
//! Ops go to such a device when it is asked for, or when one of their inputs is on it and nothing else is asked for;
//! tensors are copied to and from it by the program. Its functions may be called from any thread that uses the context.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::datatype::{TF_DataType, data_type};
use crate::eager_context::TFE_Context;
use crate::eager_op::TFE_Op;
use crate::eager_tensor::{Content, TFE_TensorHandle, valid};
use crate::ffi::{Enum, Handle, Room, Text, given, given_mut};
use crate::guard::{guard, guard_or, quiet};
use ff_runtime::{DeviceName, EagerContext};
use ff_tensor::{DataType, Result, ensure, status};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type CopyTo = unsafe extern "C" fn(
    context: *mut TFE_Context,
    tensor: *mut TFE_TensorHandle,
    status: *mut TF_Status,
    device_info: *mut c_void,
) -> *mut TFE_TensorHandle;
type CopyFrom = unsafe extern "C" fn(
    context: *mut TFE_Context,
    tensor: *mut TFE_TensorHandle,
    target_device_name: *const c_char,
    status: *mut TF_Status,
    device_info: *mut c_void,
) -> *mut TFE_TensorHandle;
type Execute = unsafe extern "C" fn(
    op: *const TFE_Op,
    num_outputs: *mut c_int,
    outputs: *mut *mut TFE_TensorHandle,
    s: *mut TF_Status,
    device_info: *mut c_void,
);
type Pack = unsafe extern "C" fn(
    context: *mut TFE_Context,
    handles: *mut *mut TFE_TensorHandle,
    num_handles: c_int,
    s: *mut TF_Status,
    device_info: *mut c_void,
) -> *mut TFE_TensorHandle;
type Pins = unsafe extern "C" fn(op: *const TFE_Op, s: *mut TF_Status) -> bool;

/// What a device does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TFE_CustomDevice {
    version: c_int,
    copy_tensor_to_device: Option<CopyTo>,
    copy_tensor_from_device: Option<CopyFrom>,
    execute: Option<Execute>,
    delete_device: Option<unsafe extern "C" fn(device_info: *mut c_void)>,
    pack: Option<Pack>,
    shall_pin_to_this_device: Option<Pins>,
}

/// What can be asked of a tensor of such a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TFE_CustomDeviceTensorHandle {
    version: c_int,
    num_dims: Option<unsafe extern "C" fn(data: *mut c_void, status: *mut TF_Status) -> c_int>,
    dim: Option<unsafe extern "C" fn(data: *mut c_void, dim_index: c_int, status: *mut TF_Status) -> i64>,
    deallocator: Option<unsafe extern "C" fn(data: *mut c_void)>,
    summarize: Option<unsafe extern "C" fn(data: *mut c_void, status: *mut TF_Status) -> *mut TF_Buffer>,
}

/// A registered device. Deleted with the last tensor on it, but not before the context.
pub struct CustomDevice {
    name: DeviceName,
    context: *mut TFE_Context,
    methods: TFE_CustomDevice,
    info: *mut c_void,
}

// SAFETY: the program vouches that its functions may be called from every thread that uses the context.
unsafe impl Send for CustomDevice {}
// SAFETY: as above.
unsafe impl Sync for CustomDevice {}

impl Drop for CustomDevice {
    fn drop(&mut self) {
        if let Some(delete_device) = self.methods.delete_device {
            // SAFETY: the device's own function, called once with what came with it.
            unsafe { delete_device(self.info) };
        }
    }
}

/// What a device of the program keeps as a tensor.
pub struct CustomTensor {
    /// Its element type.
    pub dtype: DataType,
    /// What the program gave.
    pub data: *mut c_void,
    device: Arc<CustomDevice>,
    methods: TFE_CustomDeviceTensorHandle,
}

// SAFETY: as for the device.
unsafe impl Send for CustomTensor {}
// SAFETY: as above.
unsafe impl Sync for CustomTensor {}

impl Drop for CustomTensor {
    fn drop(&mut self) {
        if let Some(deallocator) = self.methods.deallocator {
            // SAFETY: the tensor's own function, called once with what came with it.
            unsafe { deallocator(self.data) };
        }
    }
}

/// Calls a function of the program with a status, and makes a result of that.
fn asked<T>(call: impl FnOnce(*mut TF_Status) -> T) -> Result<T> {
    let mut status = TF_Status::default();
    let value = call(&raw mut status);
    match status.error() {
        Some(error) => Err(error.clone()),
        None => Ok(value),
    }
}

/// A handle that the program gave. INTERNAL for NULL.
fn taken(handle: *mut TFE_TensorHandle, function: &str) -> Result<Box<TFE_TensorHandle>> {
    ensure!(
        !handle.is_null(),
        Internal,
        "{function} of a custom device gave no tensor and no error"
    );
    // SAFETY: the program gives up a handle that it got from this library.
    Ok(unsafe { Box::from_raw(handle) })
}

fn lacks(function: &str) -> ff_tensor::Status {
    status!(Unimplemented, "This custom device has no {function}.")
}

impl CustomTensor {
    /// The extents that the program states.
    pub fn dims(&self) -> Result<Vec<i64>> {
        let num_dims = self.methods.num_dims.ok_or_else(|| lacks("num_dims"))?;
        let dim = self.methods.dim.ok_or_else(|| lacks("dim"))?;
        // SAFETY: the tensor's own function with its data.
        let rank = asked(|status| unsafe { num_dims(self.data, status) })?;
        // SAFETY: as above.
        let extent = |index| asked(|status| unsafe { dim(self.data, index, status) });
        (0..rank).map(extent).collect()
    }

    /// The tensor, of which `handle` is one, on another device.
    pub fn copy_out(&self, handle: &TFE_TensorHandle, target: DeviceName) -> Result<Box<TFE_TensorHandle>> {
        let device = &self.device;
        let copy = device.methods.copy_tensor_from_device;
        let copy = copy.ok_or_else(|| lacks("copy_tensor_from_device"))?;
        let (pointer, name) = ((&raw const *handle).cast_mut(), target.as_c().as_ptr());
        // SAFETY: the device's own function; handle and name live for the call.
        let copied = asked(|status| unsafe { copy(device.context, pointer, name, status, device.info) })?;
        taken(copied, "copy_tensor_from_device")
    }
}

impl CustomDevice {
    fn copy_in(&self, handle: &TFE_TensorHandle) -> Result<Box<TFE_TensorHandle>> {
        let copy = self.methods.copy_tensor_to_device;
        let copy = copy.ok_or_else(|| lacks("copy_tensor_to_device"))?;
        let pointer = (&raw const *handle).cast_mut();
        // SAFETY: the device's own function; the handle lives for the call.
        let copied = asked(|status| unsafe { copy(self.context, pointer, status, self.info) })?;
        taken(copied, "copy_tensor_to_device")
    }

    /// Whether the program says that the op belongs here; none when it leaves that open.
    fn pins(&self, op: &TFE_Op) -> Option<bool> {
        let pins = self.methods.shall_pin_to_this_device?;
        // SAFETY: the device's own function; the op lives for the call.
        asked(|status| unsafe { pins(&raw const *op, status) }).ok()
    }

    /// Lets the program execute an op. `room` is how many outputs there is room for.
    pub fn execute(&self, op: &TFE_Op, room: usize) -> Result<Vec<Box<TFE_TensorHandle>>> {
        let execute = self.methods.execute.ok_or_else(|| lacks("execute"))?;
        let mut outputs: Vec<*mut TFE_TensorHandle> = vec![null_mut(); room];
        let mut count = c_int::try_from(room).unwrap_or(c_int::MAX);
        // SAFETY: the device's own function; op and room live for the call.
        let run = |status| unsafe {
            execute(
                &raw const *op,
                &raw mut count,
                outputs.as_mut_ptr(),
                status,
                self.info,
            )
        };
        asked(run)?;
        let given = outputs.into_iter().take(usize::try_from(count).unwrap_or(0));
        given.map(|output| taken(output, "execute")).collect()
    }

    /// Lets the program make one tensor of several.
    pub fn pack(&self, handles: &[Handle<TFE_TensorHandle>]) -> Result<Box<TFE_TensorHandle>> {
        let pack = self.methods.pack.ok_or_else(|| {
            status!(
                Unimplemented,
                "This custom device does not support packing tensors."
            )
        })?;
        let pointer = |handle: &Handle<TFE_TensorHandle>| {
            handle.map_or(null_mut(), |handle| (&raw const *handle).cast_mut())
        };
        let mut pointers: Vec<_> = handles.iter().map(pointer).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the device's own function; the array lives for the call.
        let packed =
            asked(|status| unsafe { pack(self.context, pointers.as_mut_ptr(), count, status, self.info) })?;
        taken(packed, "pack")
    }
}

/// The devices of the program in one context.
#[derive(Default)]
pub struct CustomDevices {
    devices: RwLock<FxHashMap<String, Arc<CustomDevice>>>,
    any: AtomicBool,
}

/// Custom devices of a call's inputs.
fn devices_of(inputs: &[TFE_TensorHandle]) -> impl Iterator<Item = &Arc<CustomDevice>> {
    inputs.iter().filter_map(|input| match &input.content {
        Content::Custom(custom) => Some(&custom.device),
        _ => None,
    })
}

impl CustomDevices {
    /// Whether there ever was one.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The device with this full name.
    pub fn find(&self, name: &str) -> Option<Arc<CustomDevice>> {
        if !self.any() {
            return None;
        }
        self.devices.read().get(name).cloned()
    }

    /// Lets all go.
    pub fn clear(&self) {
        let devices = std::mem::take(&mut *self.devices.write());
        drop(devices);
    }

    fn add(&self, context: &EagerContext, name: &str, device: CustomDevice) -> Result<()> {
        ensure!(
            !context.device_names().iter().any(|present| present == name),
            AlreadyExists,
            "{name} already registered as a physical device."
        );
        ensure!(
            is_full_name(name),
            InvalidArgument,
            "{name} could not be parsed as a device name. Use the full /job:<name>/replica:<replica>/task:<task>/device:<type>:<device_num> format."
        );
        let mut devices = self.devices.write();
        ensure!(
            !devices.contains_key(name),
            AlreadyExists,
            "{name} already registered as a custom device."
        );
        devices.insert(name.to_string(), Arc::new(device));
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    /// A handle of the tensor on the device with this name, which may be one of the program or not.
    pub fn copy(
        &self,
        context: &EagerContext,
        handle: &TFE_TensorHandle,
        name: &str,
    ) -> Result<Box<TFE_TensorHandle>> {
        if let Some(device) = self.find(name) {
            return device.copy_in(handle);
        }
        let target = context.device(name)?;
        match &handle.content {
            Content::Custom(custom) => custom.copy_out(handle, target),
            Content::Tensor(tensor) => Ok(Box::new(TFE_TensorHandle::on(target, context, tensor.clone()))),
            Content::Packed(_) => Err(status!(
                InvalidArgument,
                "Resolve() is not supported on packed TensorHandles."
            )),
        }
    }

    /// The device of the program that an op belongs to. INVALID_ARGUMENT when its inputs are on several.
    pub fn place(&self, op: &TFE_Op) -> Result<Option<Arc<CustomDevice>>> {
        let mut first: Option<&Arc<CustomDevice>> = None;
        for device in devices_of(op.inputs()) {
            match first {
                Some(first) if !Arc::ptr_eq(first, device) => {
                    return Err(status!(
                        InvalidArgument,
                        "If an operation has one of its inputs in a custom device, then all inputs should be on that same custom device or another physical device. Operation {} has one input in custom device {} and at least one input in a different custom device {}",
                        op.op_name(),
                        first.name.as_str(),
                        device.name.as_str()
                    ));
                }
                _ => first = Some(device),
            }
        }
        let asked_for = op.device().and_then(|name| self.find(name.as_str()));
        let Some(first) = first else { return Ok(asked_for) };
        if let Some(pins) = first.pins(op) {
            return Ok(if pins { Some(first.clone()) } else { asked_for });
        }
        // A resource decides before what was asked for.
        let mut inputs = op.inputs().iter();
        if let Some(resource) = inputs.find(|input| input.dtype() == DataType::RESOURCE) {
            return Ok(match &resource.content {
                Content::Custom(_) => Some(first.clone()),
                _ => asked_for,
            });
        }
        match op.device() {
            None => Ok(Some(first.clone())),
            Some(_) => Ok(asked_for),
        }
    }

    /// The device of the first of these handles that is on one of the program.
    pub fn of_handles(handles: &[Handle<TFE_TensorHandle>]) -> Option<Arc<CustomDevice>> {
        let device = |handle: &Handle<TFE_TensorHandle>| match &(*handle)?.content {
            Content::Custom(custom) => Some(custom.device.clone()),
            _ => None,
        };
        handles.iter().find_map(device)
    }
}

/// Whether a name says job, replica, task, type and number, and nothing else.
fn is_full_name(name: &str) -> bool {
    let parts: SmallVec<[&str; 5]> = name.split('/').collect();
    let [empty, job, replica, task, device] = parts[..] else {
        return false;
    };
    let number = |text: Option<&str>| text.is_some_and(|text| text.parse::<u32>().is_ok());
    let kind_and_number = device
        .strip_prefix("device:")
        .and_then(|text| text.split_once(':'));
    empty.is_empty()
        && job.strip_prefix("job:").is_some_and(|job| !job.is_empty())
        && number(replica.strip_prefix("replica:"))
        && number(task.strip_prefix("task:"))
        && kind_and_number.is_some_and(|(kind, text)| !kind.is_empty() && number(Some(text)))
}

/// Registers a device of the program, under a full name that no other device of the context has. `device_info` is passed to
/// its functions. When the device goes, with the context and the last tensor on it, `delete_device` is called; right away
/// when this fails.
///
/// INVALID_ARGUMENT for a name of another form; ALREADY_EXISTS for one that is taken.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_RegisterCustomDevice(
    ctx: Handle<TFE_Context>,
    device: TFE_CustomDevice,
    device_name: Text,
    device_info: *mut c_void,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let ctx = ctx.map(|ctx| (ctx, (&raw const *ctx).cast_mut()));
        let device = CustomDevice {
            name: DeviceName::of(&device_name.or_empty()),
            context: ctx.map_or(null_mut(), |(_, pointer)| pointer),
            methods: device,
            info: device_info,
        };
        let state = &given(ctx.map(|(ctx, _)| ctx), "ctx")?.state;
        let name = device_name.text("device_name")?;
        state.custom.add(&state.context, &name, device)
    });
}

/// Whether a device of the program has this full name. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_IsCustomDevice(ctx: Handle<TFE_Context>, device_name: Text) -> bool {
    quiet(false, || {
        let name = device_name.text("device_name")?;
        Ok(given(ctx, "ctx")?.state.custom.find(&name).is_some())
    })
}

/// A handle of what a device of the program keeps as a tensor. `data` is passed to the functions in `methods`; its
/// `deallocator` is called when the last handle goes, and right away when this fails. Free the handle with
/// `TFE_DeleteTensorHandle`. NULL with INVALID_ARGUMENT when there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewCustomDeviceTensorHandle(
    ctx: Handle<TFE_Context>,
    device_name: Text,
    dtype: Enum<TF_DataType>,
    data: *mut c_void,
    methods: TFE_CustomDeviceTensorHandle,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        let name = device_name.text("device_name")?;
        let device = given(ctx, "ctx")?.state.custom.find(&name);
        let Some(device) = device else {
            if let Some(deallocator) = methods.deallocator {
                // SAFETY: the tensor's own function, called once with what came with it.
                unsafe { deallocator(data) };
            }
            return Err(status!(InvalidArgument, "{name} unknown device."));
        };
        let name = device.name;
        Ok(Some(Box::new(TFE_TensorHandle {
            content: Content::Custom(Arc::new(CustomTensor {
                dtype: data_type(dtype),
                data,
                device,
                methods,
            })),
            device: name,
            backing: name,
        })))
    })
}

/// One handle for tensors of one type on several devices, as functions that run on all of them take it; or what a device of
/// the program makes of them, when one of them is on it. Free it with `TFE_DeleteTensorHandle`.
///
/// NULL with INVALID_ARGUMENT for no tensors, or a packed one among them; with UNIMPLEMENTED when the device of the program
/// cannot pack.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CreatePackedTensorHandle(
    ctx: Handle<TFE_Context>,
    handles: Room<*mut TFE_TensorHandle>,
    num_handles: Option<&mut c_int>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_TensorHandle>> {
    guard_or(status, None, || {
        let state = &given(ctx, "ctx")?.state;
        let handles = handles.handles(*given_mut(num_handles, "num_handles")?, "handles")?;
        if let Some(device) = CustomDevices::of_handles(&handles) {
            return device.pack(&handles).map(Some);
        }
        ensure!(
            !handles.is_empty(),
            InvalidArgument,
            "Handles should not be empty."
        );
        let parts = handles.iter().map(|handle| valid(*handle).cloned());
        let parts: Vec<TFE_TensorHandle> = parts.collect::<Result<_>>()?;
        for part in &parts {
            ensure!(
                !matches!(part.content, Content::Packed(_)),
                InvalidArgument,
                "Expect device type COMPOSITE; but got type CPU from device: {} when creating CompositeDevice.",
                DeviceName::host().as_str()
            );
        }
        let names: Vec<DeviceName> = parts.iter().map(|part| part.device).collect();
        let mut composites = state.composites.lock();
        let number = composites.iter().position(|known| *known == names);
        let number = number.unwrap_or_else(|| {
            composites.push(names);
            composites.len() - 1
        });
        let name = DeviceName::of(&format!(
            "/job:localhost/replica:0/task:0/device:COMPOSITE:{number}"
        ));
        Ok(Some(Box::new(TFE_TensorHandle {
            content: Content::Packed(Arc::new(parts)),
            device: name,
            backing: name,
        })))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names() {
        assert!(is_full_name("/job:a/replica:0/task:1/device:CUSTOM:2"));
        for name in [
            "",
            "nonsense",
            "/device:CUSTOM:0",
            "/job:a/replica:0/task:0/device:C",
            "/job:a/replica:x/task:0/device:C:0",
        ] {
            assert!(!is_full_name(name), "{name}");
        }
    }
}
