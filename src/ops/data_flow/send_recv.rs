//! Send and Recv through the rendezvous of the step, as clients and partitioned graphs have them.

use ff_op::{AsyncKernelContext, Attrs, Gradient, Kernel, KernelContext, Op, Rendezvous, shapes};
use ff_tensor::{Result, status};
use std::sync::Arc;

const SEND: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(send)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const RECV: Op = Op {
    shape: shapes::unknown,
    kernels: &[Kernel::asynchronous(receive)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op { name: "Send", ..SEND },
    &Op {
        name: "_Send",
        ..SEND
    },
    &Op {
        name: "_HostSend",
        ..SEND
    },
    &Op { name: "Recv", ..RECV },
    &Op {
        name: "_Recv",
        ..RECV
    },
    &Op {
        name: "_HostRecv",
        ..RECV
    },
];

/// What a value is known by: both devices, the incarnation of the one that sends, the tensor's name.
fn key(attrs: &Attrs) -> Result<String> {
    Ok(format!(
        "{};{:016x};{};{}",
        attrs.string("send_device")?,
        attrs.int("send_device_incarnation")?,
        attrs.string("recv_device")?,
        attrs.string("tensor_name")?
    ))
}

fn no_rendezvous(op: &str) -> ff_tensor::Status {
    status!(
        Internal,
        "Op kernel context needs to provide a rendezvous for {op}."
    )
}

/// A dead input is sent as nothing, so that who receives it is dead too.
fn send(context: &mut KernelContext) -> Result<()> {
    let rendezvous = context.host().rendezvous();
    let rendezvous = rendezvous
        .ok_or_else(|| no_rendezvous(context.node().op_name()))?
        .clone();
    let key = key(context.attrs())?;
    let value = match context.has_input(0) {
        true => context.take_input(0)?.into(),
        false => ff_op::Value::Absent,
    };
    rendezvous.send(&key, value);
    Ok(())
}

fn receive(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| -> Result<(Arc<Rendezvous>, String)> {
        let rendezvous = context.host.rendezvous();
        let rendezvous = rendezvous.ok_or_else(|| no_rendezvous(context.node.op_name()))?;
        Ok((rendezvous.clone(), key(&context.node.attrs)?))
    };
    super::handle::or_fail(context, prepare, |context, (rendezvous, key)| {
        let cancellation = context.host.cancellation().clone();
        let done = |result: Result<ff_op::Value>| context.finish(result.map(|value| vec![value]));
        rendezvous.receive(&key, &cancellation, Box::new(done));
    });
}
