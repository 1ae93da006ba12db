//! Tensors that a session keeps from step to step under a handle.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, StepTensors, shapes};
use ff_tensor::{DataType, HandleInfo, ResourceHandle, Result, Shape, TString, Tensor, ensure, status};

const KEPT: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(offer)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "GetSessionHandle",
        ..KEPT
    },
    &Op {
        name: "GetSessionHandleV2",
        ..KEPT
    },
    &Op {
        name: "GetSessionTensor",
        shape: |context: &mut ShapeContext| context.input_with_rank(0, 0).map(drop),
        kernels: &[Kernel::native(get)],
        ..KEPT
    },
    &Op {
        name: "DeleteSessionTensor",
        shape: |context: &mut ShapeContext| context.input_with_rank(0, 0).map(drop),
        kernels: &[Kernel::native(delete)],
        ..KEPT
    },
];

/// Where the values of a session are. FAILED_PRECONDITION outside of sessions.
fn tensors<'a>(context: &'a KernelContext) -> Result<&'a StepTensors> {
    context.host().session_tensors().ok_or_else(|| {
        let op = context.node().op_name();
        status!(FailedPrecondition, "{op} called on null session state")
    })
}

/// How handles call themselves, and where they say that they are.
const HANDLE: &str = "TensorHandle";

fn offer(context: &mut KernelContext) -> Result<()> {
    let device = context.host().device_name().to_string();
    let value = context.input(0)?.clone();
    let name = tensors(context)?.offer(&context.node().name, &device, value)?;
    if context.output_type(0) == DataType::STRING {
        let name = TString::from(name.as_str());
        return context.set_output(0, Tensor::from_strings(Shape::scalar(), vec![name])?);
    }
    let handle = ResourceHandle::new(HandleInfo {
        device,
        container: HANDLE.to_string(),
        name,
        type_name: HANDLE.to_string(),
        ..HandleInfo::default()
    });
    context.set_output(0, Tensor::from_resources(Shape::scalar(), vec![handle])?)
}

fn name(context: &KernelContext) -> Result<String> {
    match context.input(0)?.strings()? {
        [name] => Ok(String::from_utf8_lossy(name.as_bytes()).into_owned()),
        _ => Err(status!(InvalidArgument, "a handle must be a scalar")),
    }
}

fn get(context: &mut KernelContext) -> Result<()> {
    let value = tensors(context)?.get(&name(context)?)?;
    let (actual, declared) = (value.dtype(), context.output_type(0));
    ensure!(
        actual == declared,
        Internal,
        "Output 0 of type {actual} does not match declared output type {declared}"
    );
    context.set_output(0, value)
}

fn delete(context: &mut KernelContext) -> Result<()> {
    tensors(context)?.delete(&name(context)?)
}
