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

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, vector};
    use ff_kernels::ThreadPool;
    use ff_op::{
        Attrs, Cancellation, Executable, FunctionHost, KernelHost, NodeInfo, Rendezvous, ResourceManager,
        RunOneHost, Value,
    };
    use ff_tensor::{Code, DataType, Result, Tensor};
    use std::any::Any;
    use std::sync::{Arc, mpsc};

    /// A step of single nodes with a place to meet.
    struct Step(RunOneHost, Arc<Rendezvous>);

    impl KernelHost for Step {
        fn pool(&self) -> &ThreadPool {
            self.0.pool()
        }
        fn resources(&self) -> &Arc<ResourceManager> {
            self.0.resources()
        }
        fn functions(&self) -> &dyn FunctionHost {
            self.0.functions()
        }
        fn cancellation(&self) -> &Cancellation {
            self.0.cancellation()
        }
        fn step_id(&self) -> u64 {
            self.0.step_id()
        }
        fn device_name(&self) -> &str {
            self.0.device_name()
        }
        fn node_state(
            &self,
            node: &str,
            make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
        ) -> Result<Arc<dyn Any + Send + Sync>> {
            self.0.node_state(node, make)
        }
        fn share(&self) -> Option<Arc<dyn KernelHost>> {
            None
        }
        fn rendezvous(&self) -> Option<&Arc<Rendezvous>> {
            Some(&self.1)
        }
    }

    fn attrs(name: &str) -> Attrs {
        Attrs::new()
            .with("tensor_name", name)
            .with("send_device", "/cpu:0")
            .with("recv_device", "/cpu:1")
            .with("send_device_incarnation", 1i64)
    }

    fn executable(op: &str, attrs: Attrs, inputs: &[DataType], host: &Step) -> Executable {
        let record = crate::registry().find(op).unwrap();
        let attrs = attrs.complete(&record.def, inputs).unwrap();
        let node = NodeInfo::new(op.to_string(), record, String::new(), attrs).unwrap();
        let constants = vec![None; inputs.len()];
        Executable::new(Arc::new(node), "CPU", &constants, host).unwrap()
    }

    #[test]
    fn what_is_sent_arrives() {
        for (send, receive) in [("Send", "Recv"), ("_Send", "_Recv"), ("_HostSend", "_HostRecv")] {
            let step = Arc::new(Step(RunOneHost::new(), Arc::default()));
            let receiver = executable(
                receive,
                attrs("x").with("tensor_type", DataType::FLOAT),
                &[],
                &step,
            );
            let (sender, received) = mpsc::channel();
            receiver.start(
                Vec::new(),
                step.clone(),
                Arc::new(crate::testing::NoDriver),
                Box::new(move |result| drop(sender.send(result))),
            );
            assert!(received.try_recv().is_err(), "{receive} does not wait");
            let sent: Tensor = vector(&[1.0f32, 2.0]);
            let node = executable(send, attrs("x"), &[DataType::FLOAT], &step);
            let mut inputs = vec![Value::Tensor(sent.clone())];
            let specialization = node.specialize(&inputs, &*step).unwrap();
            node.run(&specialization, &mut inputs, &mut [], &*step).unwrap();
            let arrived = received.try_recv().unwrap().unwrap().remove(0);
            let arrived = crate::testing::tensor_of(arrived).unwrap();
            assert!(arrived.bitwise_eq(&sent), "{send}");
        }
    }

    #[test]
    fn a_single_node_has_nobody_to_meet() {
        let runner = OpRunner::new();
        for op in ["Send", "_HostSend"] {
            let result = runner.run(op, &[vector(&[1.0f32])], attrs("x"));
            assert_eq!(code(result), Some(Code::Internal), "{op}");
        }
        for op in ["Recv", "_HostRecv"] {
            let ended = runner.start(op, op, &[], attrs("x").with("tensor_type", DataType::FLOAT));
            drop(ended);
        }
    }
}
