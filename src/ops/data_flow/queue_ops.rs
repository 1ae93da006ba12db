//! Ops on first-in, first-out queues.

use super::queue::Queue;
use crate::movement::Writer;
use ff_op::{
    AsyncKernelContext, Gradient, Kernel, KernelContext, NodeInfo, Op, ResourceManager, Value, shapes,
};
use ff_tensor::{Bool, HandleInfo, PartialShape, ResourceHandle, Result, Shape, Tensor, ensure, status};
use std::sync::Arc;

static FIFO_QUEUE_V2: Op = Op {
    name: "FIFOQueueV2",
    shape: shapes::scalar,
    kernels: &[Kernel::native(make)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
static ENQUEUE_V2: Op = Op {
    name: "QueueEnqueueV2",
    shape: shapes::none,
    kernels: &[Kernel::asynchronous(enqueue)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static ENQUEUE_MANY_V2: Op = Op {
    name: "QueueEnqueueManyV2",
    kernels: &[Kernel::asynchronous(enqueue_many)],
    ..ENQUEUE_V2
};
static DEQUEUE_V2: Op = Op {
    name: "QueueDequeueV2",
    shape: |_| Ok(()),
    kernels: &[Kernel::asynchronous(dequeue)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static DEQUEUE_MANY_V2: Op = Op {
    name: "QueueDequeueManyV2",
    kernels: &[Kernel::asynchronous(dequeue_many)],
    ..DEQUEUE_V2
};
static CLOSE_V2: Op = Op {
    name: "QueueCloseV2",
    shape: shapes::none,
    kernels: &[Kernel::native(|context| {
        let cancel = context.attrs().bool("cancel_pending_enqueues")?;
        context.resource::<Queue>(0)?.close(cancel);
        Ok(())
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static SIZE_V2: Op = Op {
    name: "QueueSizeV2",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let size = context.resource::<Queue>(0)?.len();
        context.set_output(0, Tensor::scalar(size as i32)?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static IS_CLOSED_V2: Op = Op {
    name: "QueueIsClosedV2",
    kernels: &[Kernel::native(|context| {
        let closed = context.resource::<Queue>(0)?.is_closed();
        context.set_output(0, Tensor::scalar(Bool::from(closed))?)
    })],
    ..SIZE_V2
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &FIFO_QUEUE_V2,
    &ENQUEUE_V2,
    &ENQUEUE_MANY_V2,
    &DEQUEUE_V2,
    &DEQUEUE_MANY_V2,
    &CLOSE_V2,
    &SIZE_V2,
    &IS_CLOSED_V2,
];

fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let shared = attrs.string("shared_name")?;
    let name = if shared.is_empty() {
        context.node().name.as_str()
    } else {
        shared
    };
    let container = attrs.string("container")?;
    let container = if container.is_empty() {
        ff_op::DEFAULT_CONTAINER
    } else {
        container
    };
    let (types, shapes) = (
        attrs.types("component_types")?.to_vec(),
        attrs.shapes("shapes")?.to_vec(),
    );
    ensure!(
        shapes.is_empty() || shapes.len() == types.len(),
        InvalidArgument,
        "Different number of component types.  Types: {types:?}, Shapes: {shapes:?}"
    );
    let capacity = attrs.int("capacity")?;
    let manager: &Arc<ResourceManager> = context.resources();
    manager.find_or_create(container, name, || {
        let shown = if shared.is_empty() {
            ff_op::unique_resource_name(name)
        } else {
            shared.to_string()
        };
        Ok(Queue::new(shown, types, shapes, capacity))
    })?;
    let handle = ResourceHandle::new(HandleInfo {
        device: context.host().device_name().to_string(),
        container: container.to_string(),
        name: name.to_string(),
        type_name: "tensorflow::QueueInterface".to_string(),
        ..HandleInfo::default()
    });
    context.set_output(0, Tensor::from_resources(Shape::scalar(), vec![handle])?)
}

/// The queue at input 0, and all tensors from input 1 on.
fn operands(context: &AsyncKernelContext) -> Result<(Arc<Queue>, Vec<Tensor>)> {
    let queue = context.resource::<Queue>(0)?;
    let tensors = (1..context.inputs.len())
        .map(|index| context.input(index).cloned())
        .collect::<Result<_>>()?;
    Ok((queue, tensors))
}

fn enqueue(context: AsyncKernelContext) {
    match operands(&context).and_then(|(queue, tuple)| queue.check(&tuple).map(|()| (queue, tuple))) {
        Ok((queue, tuple)) => {
            let cancellation = context.host.cancellation().clone();
            queue.enqueue(
                tuple,
                &cancellation,
                Box::new(move |result| context.finish(result.map(|()| Vec::new()))),
            );
        }
        Err(error) => context.finish(Err(error)),
    }
}

/// The rows of the tensors as tuples.
fn rows(tensors: &[Tensor]) -> Result<Vec<Vec<Tensor>>> {
    let count = tensors.first().and_then(|tensor| tensor.dims().first().copied());
    let count =
        count.ok_or_else(|| status!(InvalidArgument, "Input components must have at least rank 1"))?;
    let mut tuples = Vec::new();
    for row in 0..count as usize {
        let part = |tensor: &Tensor| {
            ensure!(
                tensor.dims().first() == Some(&count),
                InvalidArgument,
                "All input tensors must have the same size in the 0th dimension, got {} and {count}",
                tensor.shape()
            );
            tensor.rows(row, 1)?.into_shape(Shape::new(&tensor.dims()[1..])?)
        };
        tuples.push(tensors.iter().map(part).collect::<Result<Vec<_>>>()?);
    }
    Ok(tuples)
}

fn enqueue_many(context: AsyncKernelContext) {
    let prepared = operands(&context).and_then(|(queue, tensors)| {
        let tuples = rows(&tensors)?;
        tuples.iter().try_for_each(|tuple| queue.check(tuple))?;
        Ok((queue, tuples))
    });
    match prepared {
        Ok((queue, tuples)) => enqueue_next(context, queue, tuples.into_iter()),
        Err(error) => context.finish(Err(error)),
    }
}

/// Puts in one element after the other. Elements for which there is room at once are put in by a loop, so the stack
/// does not grow with their number.
fn enqueue_next(context: AsyncKernelContext, queue: Arc<Queue>, mut tuples: std::vec::IntoIter<Vec<Tensor>>) {
    let cancellation = context.host.cancellation().clone();
    let last = match tuples.next_back() {
        Some(last) => last,
        None => return context.finish(Ok(Vec::new())),
    };
    let failed = Arc::new(parking_lot::Mutex::new(None));
    for tuple in tuples {
        let failed = failed.clone();
        let note = move |result: Result<()>| {
            if let Err(error) = result {
                *failed.lock() = Some(error);
            }
        };
        queue.enqueue(tuple, &cancellation, Box::new(note));
    }
    // Waiters are served in order: when the last is in, all are.
    let done = move |result: Result<()>| {
        let earlier = failed.lock().take();
        context.finish(match earlier {
            Some(error) => Err(error),
            None => result.map(|()| Vec::new()),
        });
    };
    queue.enqueue(last, &cancellation, Box::new(done));
}

fn dequeue(context: AsyncKernelContext) {
    match context.resource::<Queue>(0) {
        Ok(queue) => {
            let cancellation = context.host.cancellation().clone();
            let done = move |result: Result<Vec<Tensor>>| {
                context.finish(result.map(|tuple| tuple.into_iter().map(Value::Tensor).collect()));
            };
            queue.dequeue(&cancellation, Box::new(done));
        }
        Err(error) => context.finish(Err(error)),
    }
}

/// Gathers elements until there are as many as wanted.
struct Gathering {
    context: Option<AsyncKernelContext>,
    tuples: Vec<Vec<Tensor>>,
    missing: usize,
}

fn dequeue_many(context: AsyncKernelContext) {
    let wanted = context.input(1).and_then(|count| count.single::<i32>());
    let (queue, count) = match (context.resource::<Queue>(0), wanted) {
        (Ok(queue), Ok(count)) if count >= 0 => (queue, count as usize),
        (Ok(_), Ok(count)) => {
            let error = status!(InvalidArgument, "DequeueManyOp requested {count} < 0 elements");
            return context.finish(Err(error));
        }
        (Err(error), _) | (_, Err(error)) => return context.finish(Err(error)),
    };
    let cancellation = context.host.cancellation().clone();
    if count == 0 {
        let result = stacked(&context.node, &queue, &[]);
        return context.finish(result);
    }
    let gathering = Gathering {
        context: Some(context),
        tuples: Vec::new(),
        missing: count,
    };
    let gathering = Arc::new(parking_lot::Mutex::new(gathering));
    for _ in 0..count {
        let (gathering, shared) = (gathering.clone(), queue.clone());
        queue.dequeue(
            &cancellation,
            Box::new(move |result| gather(&gathering, &shared, result)),
        );
    }
}

fn gather(gathering: &parking_lot::Mutex<Gathering>, queue: &Queue, result: Result<Vec<Tensor>>) {
    let mut state = gathering.lock();
    let finished = match result {
        Ok(tuple) => {
            state.tuples.push(tuple);
            state.missing -= 1;
            if state.missing > 0 {
                return;
            }
            None
        }
        Err(error) => Some(error),
    };
    let Some(context) = state.context.take() else {
        return;
    };
    let tuples = std::mem::take(&mut state.tuples);
    drop(state);
    let result = match finished {
        Some(error) => Err(error),
        None => stacked(&context.node, queue, &tuples),
    };
    context.finish(result);
}

/// One tensor per component, with a first axis over the tuples.
fn stacked(node: &NodeInfo, queue: &Queue, tuples: &[Vec<Tensor>]) -> Result<Vec<Value>> {
    let mut outputs = Vec::with_capacity(node.output_types.len());
    for (component, dtype) in node.output_types.iter().enumerate() {
        let row = match tuples.first() {
            Some(tuple) => tuple[component].shape().clone(),
            None => {
                let shape: Option<Shape> = queue.shapes.get(component).and_then(PartialShape::to_shape);
                shape
                    .ok_or_else(|| status!(InvalidArgument, "no shape is known for component {component}"))?
            }
        };
        let shape = Shape::new(&[&[tuples.len() as i64], row.dims()].concat())?;
        let size = row.num_elements();
        let mut writer = Writer::new(*dtype, shape)?;
        for (index, tuple) in tuples.iter().enumerate() {
            ensure!(
                *tuple[component].shape() == row,
                InvalidArgument,
                "elements of component {component} differ in shape: {} and {row}",
                tuple[component].shape()
            );
            if size > 0 {
                writer.copy(index * size, &tuple[component], 0, size)?;
            }
        }
        outputs.push(Value::Tensor(writer.finish()?));
    }
    Ok(outputs)
}
