//! Stacks: what loops of version 1 keep for their gradients.

use super::handle;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, Tensor, ensure, status};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAKE: Op = Op {
    shape: |context| {
        context.set_output(0, PartialShape::new(&[2]));
        Ok(())
    },
    kernels: &[Kernel::native(make)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const PUSH: Op = Op {
    shape: pushed_shape,
    kernels: &[Kernel::native(push)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const POP: Op = Op {
    shape: shapes::unknown,
    kernels: &[Kernel::native(pop)],
    ..PUSH
};
const CLOSE: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(|context| {
        *handle::at::<Stack>(context, 0)?.tensors.lock() = None;
        Ok(())
    })],
    ..PUSH
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Stack",
        ..MAKE
    },
    &Op {
        name: "StackV2",
        ..MAKE
    },
    &Op {
        name: "StackPush",
        ..PUSH
    },
    &Op {
        name: "StackPushV2",
        ..PUSH
    },
    &Op {
        name: "StackPop",
        ..POP
    },
    &Op {
        name: "StackPopV2",
        ..POP
    },
    &Op {
        name: "StackClose",
        ..CLOSE
    },
    &Op {
        name: "StackCloseV2",
        ..CLOSE
    },
];

struct Stack {
    name: String,
    /// The most tensors that it holds.
    limit: usize,
    /// None once closed.
    tensors: Mutex<Option<Vec<Tensor>>>,
}

impl Stack {
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Tensor>) -> Result<R>) -> Result<R> {
        let mut tensors = self.tensors.lock();
        let tensors = tensors
            .as_mut()
            .ok_or_else(|| status!(InvalidArgument, "Stack[{}] has already been closed.", self.name))?;
        change(tensors)
    }
}

fn pushed_shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, context.input(1));
    Ok(())
}

/// How many stacks this process has made: part of their names in messages.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A stack of the step; the handle of the second version holds it, the first names it.
fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let limit = match context.num_inputs() {
        1 => {
            let size = context.input(0)?;
            ensure!(
                size.rank() == 0,
                InvalidArgument,
                "Stack size must be a scalar, but had shape: {}",
                size.shape()
            );
            size.single::<i32>()?
        }
        _ => -1,
    };
    let name = match attrs.string("stack_name")? {
        "" => context.node().name.as_str(),
        name => name,
    };
    let shown = format!("{name}_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let name = ff_op::unique_resource_name(name);
    let stack = Arc::new(Stack {
        name: shown,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        tensors: Mutex::new(Some(Vec::new())),
    });
    if context.node().output_types[0] == DataType::RESOURCE {
        let object: Arc<dyn Any + Send + Sync> = stack;
        return handle::give(context, "", &name, "tensorflow::Stack", Some(object));
    }
    let container = context.resources().step_container(context.host().step_id());
    context.resources().clone().create(&container, &name, stack)?;
    handle::give(context, &container, &name, "tensorflow::Stack", None)
}

fn push(context: &mut KernelContext) -> Result<()> {
    let stack = handle::at::<Stack>(context, 0)?;
    let tensor = context.input(1)?.clone();
    stack.change(|tensors| {
        ensure!(
            tensors.len() < stack.limit,
            InvalidArgument,
            "Stack[{}] overflowed its max_size ({})",
            stack.name,
            stack.limit
        );
        tensors.push(tensor);
        Ok(())
    })?;
    context.forward(1, 0);
    Ok(())
}

fn pop(context: &mut KernelContext) -> Result<()> {
    let stack = handle::at::<Stack>(context, 0)?;
    let tensor = stack.change(|tensors| {
        let popped = tensors.pop();
        popped.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Stack[{}] is empty when calling Pop().",
                stack.name
            )
        })
    })?;
    context.set_output(0, tensor)
}
