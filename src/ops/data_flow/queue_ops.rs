//! Ops on queues, in both versions: with handles that are references to names, and with resource handles.

use super::handle;
use super::queue::{Kind, Queue, Wanted, list, shape_list};
use super::rows;
use super::store::{Store, Tuple};
use ff_op::{
    AsyncKernelContext, Gradient, Kernel, KernelContext, KernelHost, NodeInfo, Op, ShapeContext, Value,
    shapes,
};
use ff_tensor::{Bool, DataType, PartialShape, Result, Tensor, ensure, status};
use std::sync::Arc;

const MAKE: Op = Op {
    shape: |context| {
        let is_name = context.node().output_types[0].is_ref();
        context.set_output(
            0,
            if is_name {
                PartialShape::new(&[2])
            } else {
                PartialShape::scalar()
            },
        );
        Ok(())
    },
    kernels: &[Kernel::native(|context| make(context, Kind::Fifo))],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const PADDING: Op = Op {
    kernels: &[Kernel::native(|context| make(context, Kind::PaddingFifo))],
    ..MAKE
};
const PRIORITY: Op = Op {
    kernels: &[Kernel::native(|context| make(context, Kind::Priority))],
    ..MAKE
};
const SHUFFLE: Op = Op {
    kernels: &[Kernel::native(|context| make(context, Kind::RandomShuffle))],
    ..MAKE
};
const ENQUEUE: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::attempted(enqueue_now, enqueue)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const ENQUEUE_MANY: Op = Op {
    kernels: &[Kernel::asynchronous(enqueue_many)],
    ..ENQUEUE
};
const DEQUEUE: Op = Op {
    shape: |_| Ok(()),
    kernels: &[Kernel::attempted(dequeue_now, dequeue)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const DEQUEUE_MANY: Op = Op {
    shape: count_shape,
    kernels: &[Kernel::asynchronous(|context| dequeue_many(context, false))],
    ..DEQUEUE
};
const DEQUEUE_UP_TO: Op = Op {
    kernels: &[Kernel::asynchronous(|context| dequeue_many(context, true))],
    ..DEQUEUE_MANY
};
const CLOSE: Op = Op {
    kernels: &[Kernel::asynchronous(close)],
    ..ENQUEUE
};
const SIZE: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let size = handle::at::<Queue>(context, 0)?.len();
        context.set_output(0, Tensor::scalar(size as i32)?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
const IS_CLOSED: Op = Op {
    kernels: &[Kernel::native(|context| {
        let closed = handle::at::<Queue>(context, 0)?.is_closed();
        context.set_output(0, Tensor::scalar(Bool::from(closed))?)
    })],
    ..SIZE
};
/// A handle of the first version for a queue of the second.
const AS_NAME: Op = Op {
    name: "FakeQueue",
    shape: |_| Ok(()),
    kernels: &[Kernel::native(|context| {
        let queue = context.handle(0)?.clone();
        handle::give(context, &queue.container, &queue.name, &queue.type_name, None)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &AS_NAME,
    &Op {
        name: "FIFOQueue",
        ..MAKE
    },
    &Op {
        name: "FIFOQueueV2",
        ..MAKE
    },
    &Op {
        name: "PaddingFIFOQueue",
        ..PADDING
    },
    &Op {
        name: "PaddingFIFOQueueV2",
        ..PADDING
    },
    &Op {
        name: "PriorityQueue",
        ..PRIORITY
    },
    &Op {
        name: "PriorityQueueV2",
        ..PRIORITY
    },
    &Op {
        name: "RandomShuffleQueue",
        ..SHUFFLE
    },
    &Op {
        name: "RandomShuffleQueueV2",
        ..SHUFFLE
    },
    &Op {
        name: "QueueEnqueue",
        ..ENQUEUE
    },
    &Op {
        name: "QueueEnqueueV2",
        ..ENQUEUE
    },
    &Op {
        name: "QueueEnqueueMany",
        ..ENQUEUE_MANY
    },
    &Op {
        name: "QueueEnqueueManyV2",
        ..ENQUEUE_MANY
    },
    &Op {
        name: "QueueDequeue",
        ..DEQUEUE
    },
    &Op {
        name: "QueueDequeueV2",
        ..DEQUEUE
    },
    &Op {
        name: "QueueDequeueMany",
        ..DEQUEUE_MANY
    },
    &Op {
        name: "QueueDequeueManyV2",
        ..DEQUEUE_MANY
    },
    &Op {
        name: "QueueDequeueUpTo",
        ..DEQUEUE_UP_TO
    },
    &Op {
        name: "QueueDequeueUpToV2",
        ..DEQUEUE_UP_TO
    },
    &Op {
        name: "QueueClose",
        ..CLOSE
    },
    &Op {
        name: "QueueCloseV2",
        ..CLOSE
    },
    &Op {
        name: "QueueSize",
        ..SIZE
    },
    &Op {
        name: "QueueSizeV2",
        ..SIZE
    },
    &Op {
        name: "QueueIsClosed",
        ..IS_CLOSED
    },
    &Op {
        name: "QueueIsClosedV2",
        ..IS_CLOSED
    },
];

/// Types and shapes of a queue's components as a node states them; a priority comes before them.
fn components(context: &KernelContext, kind: Kind) -> Result<(Vec<DataType>, Vec<PartialShape>)> {
    let attrs = context.attrs();
    let (mut types, mut shapes) = (
        attrs.types("component_types")?.to_vec(),
        attrs.shapes("shapes")?.to_vec(),
    );
    if kind == Kind::PaddingFifo || kind == Kind::Priority {
        ensure!(
            shapes.len() == types.len(),
            InvalidArgument,
            "Shapes must be provided for all components, but received {} dtypes and {} shapes.",
            types.len(),
            shapes.len()
        );
    }
    ensure!(
        shapes.is_empty() || shapes.len() == types.len(),
        InvalidArgument,
        "Different number of component types.  Types: {}, Shapes: {}",
        list(&types),
        shape_list(&shapes)
    );
    for shape in &shapes {
        match kind {
            Kind::PaddingFifo => ensure!(
                shape.rank().is_some(),
                InvalidArgument,
                "shape {shape} must have known rank."
            ),
            _ => ensure!(
                shape.is_fully_known(),
                InvalidArgument,
                "Shape {shape} is not fully defined"
            ),
        }
    }
    if kind == Kind::Priority {
        types.insert(0, DataType::INT64);
        shapes.insert(0, PartialShape::scalar());
    }
    Ok((types, shapes))
}

fn make(context: &mut KernelContext, kind: Kind) -> Result<()> {
    let attrs = context.attrs();
    let (types, shapes) = components(context, kind)?;
    let capacity = attrs.int("capacity")?;
    let left = attrs.int("min_after_dequeue").unwrap_or(0);
    ensure!(
        left >= 0,
        InvalidArgument,
        "min_after_dequeue {left} must be >= 0"
    );
    ensure!(
        left == 0 || capacity < 0 || left < capacity,
        InvalidArgument,
        "min_after_dequeue {left} must be < capacity {capacity}"
    );
    let seeds = (attrs.int("seed").unwrap_or(0), attrs.int("seed2").unwrap_or(0));
    let capacity = usize::try_from(capacity).unwrap_or(i32::MAX as usize);
    let queue = handle::find_or_create(context, "tensorflow::QueueInterface", |_, name| {
        let store = match kind {
            Kind::Fifo | Kind::PaddingFifo => Store::in_order(),
            Kind::Priority => Store::by_priority(),
            Kind::RandomShuffle => Store::shuffled(seeds.0, seeds.1),
        };
        let mut queue = Queue::new(kind, name, types.clone(), shapes.clone(), store);
        queue.capacity = capacity;
        queue.left = left as usize;
        queue.seeds = seeds;
        Ok(queue)
    })?;
    check_shared(context, &queue, kind, capacity, &types, &shapes)?;
    check_shuffler(&queue, left as usize, seeds)
}

/// INVALID_ARGUMENT when a queue in random order that was made by another node is not as this node states it.
fn check_shuffler(queue: &Queue, left: usize, seeds: (i64, i64)) -> Result<()> {
    if queue.kind != Kind::RandomShuffle {
        return Ok(());
    }
    ensure!(
        queue.left == left,
        InvalidArgument,
        "Shared queue '{}' has min_after_dequeue {} but requested min_after_dequeue was {left}.",
        queue.name,
        queue.left
    );
    ensure!(
        seeds == (0, 0) || queue.seeds == seeds,
        InvalidArgument,
        "Shared queue '{}' has random seeds {:?} but requested seeds are {seeds:?}.",
        queue.name,
        queue.seeds
    );
    Ok(())
}

/// INVALID_ARGUMENT when a queue that was made by another node is not as this node states it.
fn check_shared(
    context: &KernelContext,
    queue: &Queue,
    kind: Kind,
    capacity: usize,
    types: &[DataType],
    shapes: &[PartialShape],
) -> Result<()> {
    ensure!(
        queue.kind == kind,
        InvalidArgument,
        "Expected {}, found {}",
        queue.kind.name(),
        context.node().op_name()
    );
    ensure!(
        queue.capacity == capacity,
        InvalidArgument,
        "Shared queue '{}' has capacity {} but requested capacity was {capacity}",
        queue.name,
        queue.capacity
    );
    ensure!(
        queue.types == types,
        InvalidArgument,
        "Shared queue '{}' has component types {} but requested component types were {}",
        queue.name,
        list(&queue.types),
        list(types)
    );
    ensure!(
        queue.shapes == shapes,
        InvalidArgument,
        "Shared queue '{}' has component shapes {} but requested component shapes were {}",
        queue.name,
        shape_list(&queue.shapes),
        shape_list(shapes)
    );
    Ok(())
}

fn queue_at(context: &AsyncKernelContext) -> Result<Arc<Queue>> {
    queue_of(&context.node, context.inputs.first(), &*context.host)
}

/// The queue that a node's input 0 means, if the components that the node brings or takes are the queue's.
fn queue_of(node: &NodeInfo, handle: Option<&Value>, host: &dyn KernelHost) -> Result<Arc<Queue>> {
    ensure!(
        node.attrs.int("timeout_ms").unwrap_or(-1) == -1,
        InvalidArgument,
        "Timeout not supported yet."
    );
    let queue: Arc<Queue> = handle::resolve(handle, host)?;
    let handle = node.input_types[0];
    let taking = node.attrs.get("component_types").is_some();
    let inputs = if taking { &[][..] } else { &node.input_types[1..] };
    let outputs = &node.output_types[..];
    let found = if taking { outputs } else { inputs };
    if found != queue.types {
        let count = if taking && node.input_types.len() > 1 {
            ", int32"
        } else {
            ""
        };
        let (have, expected) = (list(found), list(&queue.types));
        let signature = |components: &str| match (taking, components.is_empty()) {
            (true, _) => format!("{handle}{count}->{components}"),
            (false, true) => format!("{handle}->"),
            (false, false) => format!("{handle}, {components}->"),
        };
        return Err(status!(
            InvalidArgument,
            "Signature mismatch, have: {} expected: {}",
            signature(&have),
            signature(&expected)
        ));
    }
    Ok(queue)
}

fn enqueue_now(context: &mut KernelContext) -> Result<bool> {
    let queue = queue_of(context.node(), context.value(0), context.host())?;
    let inputs = 1..context.num_inputs();
    if !queue.shapes.is_empty() {
        queue.check(context.input_tensors(inputs.clone())?)?;
    }
    let tuple = || inputs.map(|index| context.take_input(index)).collect();
    match queue.bring_now(tuple) {
        Some(result) => result.map(|()| true),
        None => Ok(false),
    }
}

fn dequeue_now(context: &mut KernelContext) -> Result<bool> {
    let queue = queue_of(context.node(), context.value(0), context.host())?;
    let Some(tuple) = queue.take_now() else {
        return Ok(false);
    };
    for (index, tensor) in tuple.into_iter().enumerate() {
        context.set_output(index, tensor)?;
    }
    Ok(true)
}

fn enqueue(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let queue = queue_at(context)?;
        let tuple = context.tensors_from(1)?;
        queue.check(&tuple)?;
        Ok((queue, vec![tuple]))
    };
    handle::or_fail(context, prepare, bring);
}

fn bring(context: AsyncKernelContext, (queue, tuples): (Arc<Queue>, Vec<Tuple>)) {
    let cancellation = context.host.cancellation().clone();
    queue.bring(tuples, &cancellation, Box::new(|result| context.finish(result)));
}

fn enqueue_many(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let queue = queue_at(context)?;
        let tuples = tuples_of(&queue, &context.tensors_from(1)?)?;
        Ok((queue, tuples))
    };
    handle::or_fail(context, prepare, bring);
}

/// The rows of the tensors as tuples. INVALID_ARGUMENT unless they fit the queue.
fn tuples_of(queue: &Queue, tensors: &[Tensor]) -> Result<Vec<Tuple>> {
    let extent = |tensor: &Tensor| {
        let extent = tensor.dims().first().copied();
        extent.ok_or_else(|| status!(InvalidArgument, "Input components must have at least rank 1"))
    };
    let count = tensors.first().map_or(Ok(0), extent)?;
    for (index, tensor) in tensors.iter().enumerate() {
        if let Some(shape) = queue.shapes.get(index) {
            let expected = PartialShape::new(&[count]).concat(shape);
            ensure!(
                expected.is_compatible_with(&tensor.partial_shape()),
                InvalidArgument,
                "Shape mismatch in tuple component {index}. Expected {expected}, got {}",
                tensor.shape()
            );
        } else {
            ensure!(
                extent(tensor)? == count,
                InvalidArgument,
                "All input tensors must have the same size in the 0th dimension. Component {index} has {}, and should have {count}",
                extent(tensor)?
            );
        }
    }
    let tuple = |index: usize| tensors.iter().map(|tensor| rows::row(tensor, index)).collect();
    crate::wide::try_collected((0..count as usize).map(tuple))
}

fn dequeue(context: AsyncKernelContext) {
    handle::or_fail(context, queue_at, |context, queue| {
        let cancellation = context.host.cancellation().clone();
        let wanted = Wanted {
            count: 1,
            together: false,
            or_fewer: false,
        };
        queue.take(wanted, &cancellation, Box::new(|result| context.finish(result)));
    });
}

fn count_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(1, 0)?;
    if let Some(count) = context.input_as_scalar(1)? {
        ensure!(
            count >= 0,
            InvalidArgument,
            "Input 'n' must be >= 0, but is {count}"
        );
    }
    Ok(())
}

fn dequeue_many(context: AsyncKernelContext, or_fewer: bool) {
    let prepare = |context: &AsyncKernelContext| {
        let queue = queue_at(context)?;
        let count = context.input(1)?.single::<i32>()?;
        ensure!(
            count >= 0,
            InvalidArgument,
            "Dequeue{}Op requested {count} < 0 elements",
            if or_fewer { "UpTo" } else { "Many" }
        );
        ensure!(
            queue.shapes.len() == queue.types.len(),
            InvalidArgument,
            "{}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
            queue.kind.name()
        );
        Ok((queue, count as usize))
    };
    handle::or_fail(context, prepare, move |context, (queue, count)| {
        if count == 0 {
            let nothing = stacked(&context.node, &queue, Vec::new());
            return context.finish(nothing);
        }
        let (shared, cancellation) = (queue.clone(), context.host.cancellation().clone());
        let done = move |result: Result<Vec<Value>>| {
            let result = result.and_then(|values| stacked(&context.node, &shared, values));
            context.finish(result);
        };
        let wanted = Wanted {
            count,
            together: true,
            or_fewer,
        };
        queue.take(wanted, &cancellation, Box::new(done));
    });
}

/// One tensor per component, with a first axis over the elements; `values` are their components, one element after the
/// other. Elements of a padding queue are filled up with zeros.
fn stacked(node: &NodeInfo, queue: &Queue, values: Vec<Value>) -> Result<Vec<Value>> {
    let width = node.output_types.len();
    let mut columns: Vec<Vec<Tensor>> = vec![Vec::new(); width];
    for (index, value) in values.into_iter().enumerate() {
        if let Value::Tensor(tensor) = value {
            columns[index % width].push(tensor);
        }
    }
    let stack = |(component, column): (usize, Vec<Tensor>)| {
        let row = row_shape(&queue.shapes[component], &column);
        Ok(Value::Tensor(rows::stack(queue.types[component], &row, &column)?))
    };
    columns.into_iter().enumerate().map(stack).collect()
}

/// The extents that all of these tensors fit in; unknown ones are 0 without tensors.
fn row_shape(shape: &PartialShape, tensors: &[Tensor]) -> Vec<i64> {
    let known = shape.dims().unwrap_or(&[]);
    let extent = |(axis, &extent): (usize, &i64)| match extent {
        known if known >= 0 => known,
        _ => tensors
            .iter()
            .map(|tensor| tensor.dims()[axis])
            .max()
            .unwrap_or(0),
    };
    known.iter().enumerate().map(extent).collect()
}

fn close(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let cancel = context.node.attrs.bool("cancel_pending_enqueues")?;
        Ok((handle::at_waiting::<Queue>(context, 0)?, cancel))
    };
    handle::or_fail(context, prepare, |context, (queue, cancel)| {
        let cancellation = context.host.cancellation().clone();
        queue.close(cancel, &cancellation, Box::new(|result| context.finish(result)));
    });
}
