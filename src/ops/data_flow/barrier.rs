//! Barriers: tuples whose components come one by one, by key, and leave when they are complete, those that were begun
//! first first. What is complete is in a queue by priority.

use super::handle;
use super::queue::{TAKING_CANCELLED, list, shape_list};
use super::rows;
use super::stage::finish;
use super::store::{Store, Tuple};
use ff_op::{
    AsyncKernelContext, Gradient, Kernel, KernelContext, Monitor, NodeInfo, Op, Outcome, Value, shapes,
};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, ensure, status};
use std::collections::HashMap;
use std::sync::Arc;

const USE: Op = Op {
    shape: shapes::none,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Barrier",
        shape: |context| {
            context.set_output(0, PartialShape::new(&[2]));
            Ok(())
        },
        kernels: &[Kernel::native(make)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "BarrierInsertMany",
        kernels: &[Kernel::native(insert_many)],
        ..USE
    },
    &Op {
        name: "BarrierTakeMany",
        shape: shapes::unknown,
        kernels: &[Kernel::asynchronous(take_many)],
        ..USE
    },
    &Op {
        name: "BarrierClose",
        kernels: &[Kernel::native(close)],
        ..USE
    },
    &Op {
        name: "BarrierReadySize",
        shape: shapes::scalar,
        kernels: &[Kernel::native(|context| size(context, |state| state.ready.len()))],
        ..USE
    },
    &Op {
        name: "BarrierIncompleteSize",
        shape: shapes::scalar,
        kernels: &[Kernel::native(|context| {
            size(context, |state| state.incomplete.len())
        })],
        ..USE
    },
];

struct Barrier {
    name: String,
    types: Vec<DataType>,
    shapes: Vec<PartialShape>,
    monitor: Arc<Monitor<State>>,
}

struct State {
    /// By key: the number of the insertion that its first component came with, and the components.
    incomplete: HashMap<Vec<u8>, (i64, Vec<Option<Tensor>>)>,
    /// That number, the key, and the components.
    ready: Store,
    /// Number of insertions that brought new keys, from the smallest number on.
    next: i64,
    closed: bool,
    cancelled: bool,
}

fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (types, shapes) = (
        attrs.types("component_types")?.to_vec(),
        attrs.shapes("shapes")?.to_vec(),
    );
    ensure!(
        shapes.len() == types.len(),
        InvalidArgument,
        "All of the component shapes must be specified"
    );
    for shape in &shapes {
        ensure!(
            shape.is_fully_known(),
            InvalidArgument,
            "Shape {shape} is not fully defined"
        );
    }
    ensure!(
        attrs.int("capacity")? == -1,
        InvalidArgument,
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited capacity."
    );
    let barrier = handle::find_or_create(context, "tensorflow::barrier::Barrier", |_, name| {
        let state = State {
            incomplete: HashMap::new(),
            ready: Store::by_priority(),
            next: i64::MIN,
            closed: false,
            cancelled: false,
        };
        Ok(Barrier {
            name: name.to_string(),
            types: types.clone(),
            shapes: shapes.clone(),
            monitor: Monitor::with_words(state, 1, true, &[TAKING_CANCELLED]),
        })
    })?;
    ensure!(
        barrier.types == types,
        InvalidArgument,
        "Shared barrier '{}' has component types {} but requested component types were {}",
        barrier.name,
        list(&barrier.types),
        list(&types)
    );
    ensure!(
        barrier.shapes == shapes,
        InvalidArgument,
        "Shared barrier '{}' has component shapes {} but requested component shapes were {}",
        barrier.name,
        shape_list(&barrier.shapes),
        shape_list(&shapes)
    );
    Ok(())
}

/// INVALID_ARGUMENT unless a node has these types of inputs and outputs.
fn check_signature(node: &NodeInfo, inputs: &[DataType], outputs: &[DataType]) -> Result<()> {
    let signature =
        |inputs: &[DataType], outputs: &[DataType]| format!("{}->{}", list(inputs), list(outputs));
    ensure!(
        node.input_types[..] == *inputs && node.output_types[..] == *outputs,
        InvalidArgument,
        "Signature mismatch, have: {} expected: {}",
        signature(&node.input_types, &node.output_types),
        signature(inputs, outputs)
    );
    Ok(())
}

fn size(context: &mut KernelContext, count: impl FnOnce(&State) -> usize) -> Result<()> {
    let size = handle::at::<Barrier>(context, 0)?.monitor.read(count);
    context.set_output(0, Tensor::scalar(size as i32)?)
}

/// Inputs: handle, keys, a value for each.
fn insert_many(context: &mut KernelContext) -> Result<()> {
    let barrier = handle::at::<Barrier>(context, 0)?;
    let component = context.attrs().int("component_index")?;
    let count = barrier.types.len();
    ensure!(
        (0..count as i64).contains(&component),
        InvalidArgument,
        "The component ID is out of range {component} > num_components (= {count})"
    );
    let component = component as usize;
    let (keys, values) = (context.input(1)?, context.input(2)?);
    let inputs = [
        context.node().input_types[0],
        DataType::STRING,
        barrier.types[component],
    ];
    check_signature(context.node(), &inputs, &[])?;
    ensure!(
        values.dims().first().copied() == Some(keys.num_elements() as i64),
        InvalidArgument,
        "The number of values ({}) does not match the number of keys ({})",
        values.shape(),
        keys.num_elements()
    );
    if let Some(shape) = barrier.shapes.get(component) {
        let row = PartialShape::new(&values.dims()[1..]);
        ensure!(
            shape.is_compatible_with(&row),
            InvalidArgument,
            "Shape mismatch in tuple component {component}. Expected {shape}, got {row}"
        );
    }
    let keys = keys.strings()?;
    let values = (0..keys.len()).map(|index| rows::row(values, index));
    let values = values.collect::<Result<Vec<_>>>()?;
    barrier.monitor.change(|state| {
        ensure!(
            !state.cancelled && (!state.closed || keys.is_empty() || !state.incomplete.is_empty()),
            Cancelled,
            "Barrier {} is closed.  Pending enqueues cancelled: {}.  Number of new insertions: {}.  Number of incomplete keys: {}.",
            barrier.name,
            i32::from(state.cancelled),
            keys.len(),
            state.incomplete.len()
        );
        let mut any_new = false;
        for (index, (key, value)) in keys.iter().zip(values).enumerate() {
            any_new |= state.insert(&barrier, (index, key), component, value)?;
        }
        state.next += i64::from(any_new);
        Ok(())
    })
}

impl State {
    /// Adds a component to the tuple of a key; whether the key is new.
    fn insert(
        &mut self,
        barrier: &Barrier,
        (index, key): (usize, &TString),
        component: usize,
        value: Tensor,
    ) -> Result<bool> {
        let name = &barrier.name;
        let bytes = key.as_bytes().to_vec();
        let is_new = !self.incomplete.contains_key(&bytes);
        ensure!(
            !is_new || !self.closed,
            Cancelled,
            "Barrier {name} is closed, but attempted to insert a brand new key: {}.  Pending enqueues cancelled: {}.  Insertion index: {index}.  Number of incomplete keys: {}.",
            String::from_utf8_lossy(&bytes),
            i32::from(self.cancelled),
            self.incomplete.len()
        );
        let first = (self.next, vec![None; barrier.types.len()]);
        let (_, tuple) = self.incomplete.entry(bytes.clone()).or_insert(first);
        ensure!(
            tuple[component].is_none(),
            InvalidArgument,
            "Key {} already has a value for component {component} in barrier {name}",
            String::from_utf8_lossy(&bytes)
        );
        tuple[component] = Some(value);
        if tuple.iter().all(Option::is_some)
            && let Some((number, tuple)) = self.incomplete.remove(&bytes)
        {
            let key = Tensor::from_strings(Shape::scalar(), vec![key.clone()])?;
            let start = [Tensor::scalar(number)?, key];
            self.ready
                .push(start.into_iter().chain(tuple.into_iter().flatten()).collect())?;
        }
        Ok(is_new)
    }
}

fn close(context: &mut KernelContext) -> Result<()> {
    let barrier = handle::at::<Barrier>(context, 0)?;
    let cancel = context.attrs().bool("cancel_pending_enqueues")?;
    barrier.monitor.change(|state| {
        ensure!(
            !state.closed || (cancel && !state.cancelled),
            Cancelled,
            "Barrier '{}' is already closed.",
            barrier.name
        );
        state.closed = true;
        if cancel {
            state.cancelled = true;
            state.incomplete.clear();
        }
        Ok(())
    })
}

/// Outputs: when each key first came, the keys, and a tensor per component.
fn take_many(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let barrier = handle::at_waiting::<Barrier>(context, 0)?;
        let outputs = [&[DataType::INT64, DataType::STRING], &barrier.types[..]].concat();
        let handle = context.node.input_types[0];
        check_signature(&context.node, &[handle, DataType::INT32], &outputs)?;
        let wanted = context.input(1)?.single::<i32>()?;
        let wanted = usize::try_from(wanted)
            .map_err(|_| status!(InvalidArgument, "num_elements must not be negative, was {wanted}"))?;
        let small = context.node.attrs.bool("allow_small_batch")?;
        let patient = context.node.attrs.bool("wait_for_incomplete")?;
        Ok((barrier, wanted, small, patient))
    };
    handle::or_fail(context, prepare, |context, (barrier, wanted, small, patient)| {
        let shared = barrier.clone();
        let mut begun_open = false;
        let attempt = move |state: &mut State| {
            let there = state.ready.len();
            begun_open |= !state.closed;
            if there >= wanted && (wanted > 0 || !state.closed) {
                return Outcome::Done(state.take(&shared, wanted));
            }
            // Nothing more can come once the barrier is closed and no tuple is under way.
            let ended = state.closed && state.incomplete.is_empty();
            if state.closed && small && there > 0 && (!patient || ended) {
                return Outcome::Done(state.take(&shared, there));
            }
            let enough_under_way = there + state.incomplete.len() >= wanted.max(1);
            if !state.closed || !small && enough_under_way || patient && !ended {
                return Outcome::Waits;
            }
            Outcome::Done(Err(too_few(&shared, wanted, there, small, begun_open)))
        };
        let cancellation = context.host.cancellation().clone();
        barrier.monitor.submit(0, &cancellation, attempt, finish(context));
    });
}

/// Who came when the barrier was open hears of the queue within.
fn too_few(
    barrier: &Barrier,
    wanted: usize,
    there: usize,
    small: bool,
    begun_open: bool,
) -> ff_tensor::Status {
    let name = &barrier.name;
    let requested = if small { wanted.min(there) } else { wanted };
    match begun_open {
        true => status!(
            OutOfRange,
            "PriorityQueue '{name}_queue' is closed and has insufficient elements (requested {wanted}, current size {there})"
        ),
        false => status!(
            OutOfRange,
            "Barrier '{name}' is closed and has insufficient elements (requested {requested}, total size {there})"
        ),
    }
}

impl State {
    fn take(&mut self, barrier: &Barrier, count: usize) -> Result<Vec<Value>> {
        let elements: Vec<Tuple> = std::iter::from_fn(|| self.ready.pop()).take(count).collect();
        let types = [DataType::INT64, DataType::STRING].into_iter();
        let shapes = [PartialShape::scalar(), PartialShape::scalar()].into_iter();
        let types = types.chain(barrier.types.iter().copied());
        let shapes = shapes.chain(barrier.shapes.iter().cloned());
        let mut values = Vec::new();
        for (component, (dtype, shape)) in types.zip(shapes).enumerate() {
            let column: Vec<Tensor> = elements.iter().map(|tuple| tuple[component].clone()).collect();
            let row = shape.dims().unwrap_or(&[]);
            values.push(Value::Tensor(rows::stack(dtype, row, &column)?));
        }
        Ok(values)
    }
}
