//! Mutexes: a lock is a variant; the mutex is free again when the last copy of it is gone.

use super::handle;
use super::stage::finish;
use ff_op::{AsyncKernelContext, Gradient, Kernel, Monitor, Op, Outcome, Value, shapes};
use ff_tensor::{Shape, Tensor, VariantObject, VariantValue, status};
use std::sync::Arc;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "MutexV2",
        shape: shapes::scalar,
        kernels: &[Kernel::native(|context| {
            let make = |_: &ff_op::KernelContext, _: &str| Ok(Mutex(Monitor::new(false, 1, true)));
            handle::find_or_create(context, "tensorflow::Mutex", make).map(drop)
        })],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "MutexLock",
        shape: shapes::scalar,
        kernels: &[Kernel::asynchronous(lock)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "ConsumeMutexLock",
        shape: shapes::none,
        kernels: &[Kernel::native(|context| {
            let lock = context.take_input(0)?;
            let is_lock = |value: &VariantValue| value.get::<Lock>().is_some();
            match lock.variants()?.iter().all(is_lock) {
                true => Ok(()),
                false => Err(status!(
                    InvalidArgument,
                    "Expected input to contain a SharedLockReleaser object."
                )),
            }
        })],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
];

/// Whether somebody has it.
struct Mutex(Arc<Monitor<bool>>);

/// Somebody's hold on a mutex.
struct Lock(Arc<Monitor<bool>>);

impl VariantObject for Lock {
    fn type_name(&self) -> &str {
        "tensorflow::SharedLockReleaser"
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.change(|held| *held = false);
    }
}

fn lock(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| handle::at_waiting::<Mutex>(context, 0);
    handle::or_fail(context, prepare, |context, mutex| {
        let cancellation = context.host.cancellation().clone();
        let (monitor, finish) = (mutex.0.clone(), finish(context));
        let attempt = |held: &mut bool| match std::mem::replace(held, true) {
            true => Outcome::Waits,
            false => Outcome::Done(Ok(Vec::new())),
        };
        // The lock is made outside of the monitor: should the step be gone, dropping it frees the mutex.
        let done = move |result: ff_tensor::Result<Vec<Value>>| {
            finish(result.and_then(|_| {
                let lock = VariantValue::new(Lock(monitor));
                Ok(vec![Value::Tensor(Tensor::from_variants(
                    Shape::scalar(),
                    vec![lock],
                )?)])
            }));
        };
        mutex.0.submit(0, &cancellation, attempt, Box::new(done));
    });
}
