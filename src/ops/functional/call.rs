//! Calls of a function.

use super::in_turn;
use ff_op::{
    AsyncKernelContext, Callable, FunctionRef, Gradient, HandleShapes, Kernel, KernelContext, KernelHost, Op,
    ShapeContext,
};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, ensure, status};
use std::sync::Arc;

static PARTITIONED_CALL: Op = Op {
    name: "PartitionedCall",
    shape: |context| {
        let function = context.attrs().func("f")?.clone();
        call_shape(context, &function, 0)
    },
    kernels: &[Kernel::calls(
        |context| {
            let function = instantiate(context, &*context.node().called_function("f")?)?;
            let arguments = arguments(context, 0)?;
            let results = function.run(context.host(), arguments)?;
            set_results(context, results)
        },
        |context| {
            in_turn::call(context, 0, |context| {
                Ok(context.node.called_function("f")?.into_owned())
            })
        },
    )],
    lower: Some(super::lower::call),
    gradient: Gradient::Fn(super::gradient::call),
    ..Op::PURE
};
static STATEFUL_PARTITIONED_CALL: Op = Op {
    name: "StatefulPartitionedCall",
    effects: ff_op::Effects::Writes,
    ..PARTITIONED_CALL
};

/// A call as graphs hold it that the reference has made clusters of; all inputs are arguments, in order.
static XLA_LAUNCH: Op = Op {
    name: "XlaLaunch",
    shape: |context| {
        let function = context.attrs().func("function")?.clone();
        call_shape(context, &function, 0)
    },
    kernels: &[Kernel::calls(
        |context| {
            let function = instantiate(context, context.attrs().func("function")?)?;
            let arguments = arguments(context, 0)?;
            let results = function.run(context.host(), arguments)?;
            set_results(context, results)
        },
        |context| {
            in_turn::call(context, 0, |context| {
                Ok(context.node.attrs.func("function")?.clone())
            })
        },
    )],
    lower: Some(super::lower::launch),
    gradient: Gradient::Missing,
    ..Op::WRITES
};

/// A value for a result that a branch does not compute; nobody reads it.
static FAKE_PARAM: Op = Op {
    name: "FakeParam",
    shape: ff_op::shapes::unknown,
    kernels: &[Kernel::native(|context| {
        let shape = context.attrs().shape("shape")?;
        let dims: Vec<i64> = shape
            .dims()
            .unwrap_or(&[0])
            .iter()
            .map(|extent| (*extent).max(0))
            .collect();
        let value = Tensor::zeros(context.output_type(0), Shape::new(&dims)?)?;
        context.set_output(0, value)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// A call on the device that the first input names, which must be a CPU of this process.
static REMOTE_CALL: Op = Op {
    name: "RemoteCall",
    shape: |context| {
        let function = context.attrs().func("f")?.clone();
        if !context.in_step() {
            context.input_with_rank(0, 0)?;
        }
        call_shape(context, &function, 1)
    },
    kernels: &[Kernel::calls(
        |context| {
            let host = context.host();
            let device = device_of(context.input(0)?, host)?;
            let function = instantiate(context, context.attrs().func("f")?)?;
            let arguments = arguments(context, 1)?;
            let results = function.run(host.on_device(device).unwrap_or(host), arguments)?;
            set_results(context, results)
        },
        start_remote,
    )],
    gradient: Gradient::Missing,
    ..Op::WRITES
};

/// The number of the device that the first element names, which must be of this process. INVALID_ARGUMENT for what is no
/// device's name, INTERNAL for a device that is not here.
fn device_of(target: &Tensor, host: &dyn KernelHost) -> Result<usize> {
    let Some(name) = target.strings()?.first() else {
        bail!(InvalidArgument, "target must name a device");
    };
    let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
    let full = full_device_name(&name).ok_or_else(|| {
        status!(
            InvalidArgument,
            "Could not parse {name} into a device specification."
        )
    })?;
    let found = host
        .device_names()
        .iter()
        .position(|device| device.eq_ignore_ascii_case(&full));
    found.ok_or_else(|| {
        status!(
            Internal,
            "Currently don't support instantiating functions on device: {full}"
        )
    })
}

/// A device's name with all of its parts: those that it lacks are of the first processor of this process. `/gpu:1` is short
/// for `/device:GPU:1`. None for what is no such name.
fn full_device_name(name: &str) -> Option<String> {
    let (mut job, mut replica, mut task) = ("localhost", 0u32, 0u32);
    let mut device = ("CPU".to_string(), 0u32);
    for part in name.split('/').skip(1) {
        let (key, value) = part.split_once(':')?;
        match key.to_ascii_lowercase().as_str() {
            "job" => job = value,
            "replica" => replica = value.parse().ok()?,
            "task" => task = value.parse().ok()?,
            "device" => {
                let (kind, number) = value.split_once(':').unwrap_or((value, "0"));
                device = (kind.to_ascii_uppercase(), number.parse().ok()?);
            }
            kind @ ("cpu" | "gpu") => device = (kind.to_ascii_uppercase(), value.parse().ok()?),
            _ => return None,
        }
    }
    let starts_well = name.is_empty() || name.starts_with('/');
    starts_well.then(|| {
        let (kind, number) = device;
        format!("/job:{job}/replica:{replica}/task:{task}/device:{kind}:{number}")
    })
}

/// A call that may wait, on the device that the first input names.
fn start_remote(context: AsyncKernelContext) {
    let device = context.input(0).and_then(|name| device_of(name, &*context.host));
    let host = device.and_then(|device| match context.host.on_device(device) {
        None => Ok(context.host.clone()),
        Some(host) => host
            .share()
            .ok_or_else(|| status!(Internal, "nothing may wait in this step")),
    });
    match host {
        Ok(host) => {
            let context = AsyncKernelContext { host, ..context };
            in_turn::call(context, 1, |context| Ok(context.node.attrs.func("f")?.clone()));
        }
        Err(error) => context.finish(Err(error)),
    }
}

/// Which of some types of devices the node runs on.
static DEVICE_INDEX: Op = Op {
    name: "DeviceIndex",
    shape: ff_op::shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let names = context.attrs().strings("device_names")?;
        let index = names
            .iter()
            .position(|name| &name[..] == b"CPU")
            .unwrap_or(names.len());
        context.set_output(0, Tensor::scalar(index as i32)?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &PARTITIONED_CALL,
    &STATEFUL_PARTITIONED_CALL,
    &XLA_LAUNCH,
    &Op {
        name: "XlaLaunchV2",
        ..XLA_LAUNCH
    },
    &FAKE_PARAM,
    &REMOTE_CALL,
    &DEVICE_INDEX,
];

/// A function that a node names, ready to run.
pub fn instantiate(context: &KernelContext, function: &FunctionRef) -> Result<Arc<dyn Callable>> {
    context.host().functions().instantiate(function)
}

/// The inputs from `first` on, taken out.
pub fn arguments(context: &mut KernelContext, first: usize) -> Result<Vec<Tensor>> {
    (first..context.num_inputs())
        .map(|index| context.take_input(index))
        .collect()
}

/// Sets all outputs. INTERNAL when there are not as many results.
pub fn set_results(context: &mut KernelContext, results: Vec<Tensor>) -> Result<()> {
    let (found, wanted) = (results.len(), context.num_outputs());
    ensure!(
        found >= wanted,
        Internal,
        "Missing {found}-th output from {}",
        context.node().describe()
    );
    ensure!(
        found == wanted,
        Internal,
        "Expect to produce {wanted} tensors, but only get {found}"
    );
    for (index, result) in results.into_iter().enumerate() {
        context.set_output(index, result)?;
    }
    Ok(())
}

/// The shapes of a function's results for the inputs from `first` on; unknown where functions are not known.
pub fn infer(
    context: &ShapeContext,
    function: &FunctionRef,
    first: usize,
) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
    let shapes = &context.inputs()[first..];
    let handles: Vec<_> = (first..context.num_inputs())
        .map(|index| context.input_handle(index))
        .collect();
    match context.functions() {
        Some(functions) => functions.infer(function, shapes, &handles),
        None => Ok((vec![PartialShape::unknown(); context.num_outputs()], Vec::new())),
    }
}

/// Sets output shapes to those of a function's results. A body that cannot be inferred leaves them unknown: what is
/// wrong in it is reported when it runs.
pub fn call_shape(context: &mut ShapeContext, function: &FunctionRef, first: usize) -> Result<()> {
    let Ok((shapes, handles)) = infer(context, function, first) else {
        return Ok(());
    };
    for (index, shape) in shapes.into_iter().enumerate() {
        context.set_output(index, shape);
    }
    for (index, handle) in handles.into_iter().enumerate() {
        if let Some(handle) = handle {
            context.set_output_handle(index, handle);
        }
    }
    Ok(())
}
