//! How `TFE_Execute` runs a call: on a device of the program if it belongs to one, otherwise on a device of the context.

use crate::eager_context::{ContextState, TFE_ContextDevicePlacementPolicy};
use crate::eager_op::TFE_Op;
use crate::eager_tensor::{Content, TFE_TensorHandle};
use ff_graph::DeviceSpec;
use ff_runtime::{DeviceName, EagerTensor};
use ff_tensor::{DataType, Result, bail, ensure};
use smallvec::SmallVec;
use std::ffi::c_int;

const EXPLICIT: i32 = TFE_ContextDevicePlacementPolicy::TFE_DEVICE_PLACEMENT_EXPLICIT as i32;
const SILENT_FOR_INT32: i32 = TFE_ContextDevicePlacementPolicy::TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 as i32;

/// Outputs of a call. Most have one.
pub type Handles = SmallVec<[Box<TFE_TensorHandle>; 1]>;

/// Runs a call that has room for so many outputs. It has no inputs after that.
pub fn execute(op: &mut TFE_Op, room: c_int) -> Result<Handles> {
    let room = usize::try_from(room).unwrap_or(0);
    if op.state.custom.any() {
        if let Some(device) = op.state.custom.place(op)? {
            let outputs = device.execute(op, room)?;
            drop(op.drain_inputs());
            return Ok(outputs.into());
        }
        copy_inputs_out(op)?;
    }
    let expected = op.op.fixed_inputs.unwrap_or(op.inputs().len());
    ensure!(
        expected == op.inputs().len(),
        InvalidArgument,
        "expected {expected} inputs, got {}",
        op.inputs().len()
    );
    let device = device(op)?;
    check_places(op, device)?;
    let kernel = op.state.context.kernel(&op.op, device, &op.attrs, &op.types())?;
    let count = kernel.node.output_types.len();
    ensure!(
        count <= room,
        InvalidArgument,
        "Expecting {count} outputs, but *num_retvals is {room}"
    );
    let (context, cancellation) = (op.state.clone(), op.cancellation.clone());
    let inputs = op.drain_inputs().map(tensor);
    let mut outputs = context.context.execute(&kernel, device, inputs, cancellation)?;
    op.set_device(device);
    let at_home = device == op.state.context.home();
    let mut handles = Handles::new();
    for tensor in outputs.drain(..) {
        let on_host = at_home || matches!(tensor.dtype(), DataType::STRING | DataType::RESOURCE);
        let mut handle = Box::new(TFE_TensorHandle::of(tensor, device));
        if on_host {
            handle.backing = DeviceName::host();
        }
        handles.push(handle);
    }
    Ok(handles)
}

/// An input as a tensor.
#[inline]
fn tensor(input: TFE_TensorHandle) -> Result<EagerTensor> {
    match input.content {
        Content::Tensor(tensor) => Ok(tensor),
        // One part is as good as another on devices that share memory.
        Content::Packed(parts) => match parts.first().map(|part| &part.content) {
            Some(Content::Tensor(tensor)) => Ok(tensor.clone()),
            _ => bail!(Internal, "a packed handle has no tensor"),
        },
        Content::Custom(_) => bail!(Internal, "an input is on a device of another context"),
    }
}

/// Copies inputs that are on devices of the program to where the call runs.
fn copy_inputs_out(op: &mut TFE_Op) -> Result<()> {
    let target = match op.device() {
        Some(name) => place(&op.state, name)?,
        None => op.state.context.home(),
    };
    for input in op.inputs_mut() {
        if let Content::Custom(custom) = &input.content {
            let copy = custom.copy_out(input, target)?;
            *input = *copy;
        }
    }
    Ok(())
}

/// The device that the call runs on: that of a resource among its inputs, the one that is asked for, or the first.
fn device(op: &TFE_Op) -> Result<DeviceName> {
    let resource = |input: &&TFE_TensorHandle| {
        input.dtype() == DataType::RESOURCE && matches!(input.content, Content::Tensor(_))
    };
    if let Some(resource) = op.inputs().iter().find(resource) {
        return Ok(resource.device);
    }
    match op.device() {
        Some(name) => place(&op.state, name),
        None => Ok(op.state.context.home()),
    }
}

/// The device that a name in a call means. INVALID_ARGUMENT when there is none, unless placement is soft.
fn place(state: &ContextState, name: DeviceName) -> Result<DeviceName> {
    let home = state.context.home();
    if name == home {
        return Ok(name);
    }
    let known = state.places.read().get(&name.address()).copied();
    if let Some(known) = known {
        return Ok(known);
    }
    match state.context.device(name.as_str()) {
        Ok(found) => {
            state.places.write().insert(name.address(), found);
            Ok(found)
        }
        Err(_) if state.context.soft_placement() && is_here(state, name) => Ok(home),
        Err(_) => bail!(
            InvalidArgument,
            "Could not satisfy device specification '{}'. enable_soft_placement={}. Supported device types [CPU]. All available devices [{}].",
            name.as_str(),
            u8::from(state.context.soft_placement()),
            state.context.device_names().join(", ")
        ),
    }
}

/// Whether a name is of a job, replica and task that the context has devices of: soft placement chooses among those.
fn is_here(state: &ContextState, name: DeviceName) -> bool {
    let Some(mut asked) = DeviceSpec::parse(name.as_str()) else {
        return false;
    };
    (asked.kind, asked.id) = (None, None);
    let names = state.context.device_names();
    let mut devices = names.iter().filter_map(|name| DeviceSpec::parse(name));
    devices.any(|device| asked.fits(&device))
}

/// INVALID_ARGUMENT when an input is on another device and the policy does not let it be copied.
fn check_places(op: &TFE_Op, device: DeviceName) -> Result<()> {
    // What the first device has is in the memory of the host.
    let memory = match device == op.state.context.home() {
        true => DeviceName::host(),
        false => device,
    };
    for (index, input) in op.inputs().iter().enumerate() {
        let dtype = input.dtype();
        if input.backing == memory
            || matches!(dtype, DataType::STRING | DataType::RESOURCE)
            || matches!(input.content, Content::Packed(_))
        {
            continue;
        }
        let policy = op.state.policy();
        ensure!(
            policy != EXPLICIT && (policy != SILENT_FOR_INT32 || dtype == DataType::INT32),
            InvalidArgument,
            "Tensors on conflicting devices: cannot compute {} as input #{index} was expected to be on {} but is actually on {} (operation running on {}) Tensors can be copied explicitly using: `with tf.device(device_name): x = tf.identity(x)` or transparently copied by using tf.config.experimental.set_device_policy('silent'). Copying tensors between devices may slow down your model",
            op.op_name(),
            device.as_str(),
            input.backing.as_str(),
            device.as_str()
        );
    }
    Ok(())
}
