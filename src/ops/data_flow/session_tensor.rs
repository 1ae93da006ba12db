//! Tensors that a session keeps from step to step under a handle.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, HandleInfo, ResourceHandle, Result, Shape, TString, Tensor, ensure, status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KEEP: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(keep)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "GetSessionHandle",
        ..KEEP
    },
    &Op {
        name: "GetSessionHandleV2",
        ..KEEP
    },
    &Op {
        name: "GetSessionTensor",
        shape: |context: &mut ShapeContext| context.input_with_rank(0, 0).map(drop),
        kernels: &[Kernel::native(get)],
        ..KEEP
    },
    &Op {
        name: "DeleteSessionTensor",
        shape: |context: &mut ShapeContext| context.input_with_rank(0, 0).map(drop),
        kernels: &[Kernel::native(|context| {
            let name = name(context)?;
            let manager = context.resources().clone();
            manager.delete(CONTAINER, &name).map_err(|_| {
                status!(
                    InvalidArgument,
                    "Failed to delete a tensor with handle '{name}' in the session store."
                )
            })
        })],
        ..KEEP
    },
];

const CONTAINER: &str = "__session_tensors";

struct Kept(Tensor);

fn unknown(name: &str) -> ff_tensor::Status {
    status!(
        InvalidArgument,
        "The tensor with handle '{name}' is not in the session store."
    )
}

/// Handles are `node;number;device`.
fn keep(context: &mut KernelContext) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let device = context.host().device_name().to_string();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{};{number};{device}", context.node().name);
    let value = context.input(0)?.clone();
    let manager = context.resources().clone();
    manager.create(CONTAINER, &name, Arc::new(Kept(value)))?;
    if context.output_type(0) == DataType::STRING {
        let name = TString::from(name.as_str());
        return context.set_output(0, Tensor::from_strings(Shape::scalar(), vec![name])?);
    }
    let handle = ResourceHandle::new(HandleInfo {
        device,
        container: CONTAINER.to_string(),
        name,
        type_name: "tensorflow::SessionTensor".to_string(),
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
    let name = name(context)?;
    let kept = context.resources().find::<Kept>(CONTAINER, &name);
    let value = kept.map_err(|_| unknown(&name))?.0.clone();
    ensure!(
        value.dtype() == context.output_type(0),
        InvalidArgument,
        "The tensor with handle '{name}' is of type {}, not {}",
        value.dtype(),
        context.output_type(0)
    );
    context.set_output(0, value)
}
