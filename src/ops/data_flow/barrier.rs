//! Barriers: tuples whose components come one by one, by key, and leave when they are complete.

use super::handle;
use super::rows;
use super::stage::finish;
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, Monitor, Op, Outcome, Value, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, ensure, status};
use std::collections::{BTreeMap, HashMap};
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
    /// By key: when its first component came, and the components.
    incomplete: HashMap<Vec<u8>, (i64, Vec<Option<Tensor>>)>,
    /// By when the first component came: key and components.
    ready: BTreeMap<i64, (TString, Vec<Tensor>)>,
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
        shapes.is_empty() || shapes.len() == types.len(),
        InvalidArgument,
        "All of the component shapes must be specified"
    );
    ensure!(
        attrs.int("capacity")? == -1,
        InvalidArgument,
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited capacity."
    );
    handle::find_or_create(context, "tensorflow::barrier::Barrier", |_, name| {
        let state = State {
            incomplete: HashMap::new(),
            ready: BTreeMap::new(),
            next: i64::MIN,
            closed: false,
            cancelled: false,
        };
        Ok(Barrier {
            name: name.to_string(),
            types,
            shapes,
            monitor: Monitor::new(state, 1, true),
        })
    })?;
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
        "The component ID is out of range {component} > num_components (={count})"
    );
    let component = component as usize;
    let (keys, values) = (context.input(1)?, context.input(2)?);
    ensure!(
        values.dtype() == barrier.types[component],
        InvalidArgument,
        "Type mismatch in tuple component {component}. Expected {}, got {}",
        barrier.types[component],
        values.dtype()
    );
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
        for (key, value) in keys.iter().zip(values) {
            state.insert(&barrier, key, component, value)?;
        }
        Ok(())
    })
}

impl State {
    fn insert(&mut self, barrier: &Barrier, key: &TString, component: usize, value: Tensor) -> Result<()> {
        let name = &barrier.name;
        ensure!(!self.cancelled, Cancelled, "Barrier {name} is closed.");
        let bytes = key.as_bytes().to_vec();
        if !self.incomplete.contains_key(&bytes) {
            ensure!(
                !self.closed,
                Cancelled,
                "Barrier {name} is closed, but attempted to insert a brand new key: {}.  Pending inserts cancelled: false.  Insertion index: {component}.",
                String::from_utf8_lossy(&bytes)
            );
            self.incomplete
                .insert(bytes.clone(), (self.next, vec![None; barrier.types.len()]));
            self.next += 1;
        }
        let Some((_, tuple)) = self.incomplete.get_mut(&bytes) else {
            return Ok(());
        };
        ensure!(
            tuple[component].is_none(),
            InvalidArgument,
            "Key {} already has a value for component {component} in barrier {name}",
            String::from_utf8_lossy(&bytes)
        );
        tuple[component] = Some(value);
        if tuple.iter().all(Option::is_some)
            && let Some((index, tuple)) = self.incomplete.remove(&bytes)
        {
            let tuple = tuple.into_iter().flatten().collect();
            self.ready.insert(index, (key.clone(), tuple));
        }
        Ok(())
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
        let wanted = context.input(1)?.single::<i32>()?;
        let wanted = usize::try_from(wanted)
            .map_err(|_| status!(InvalidArgument, "num_elements must not be negative, was {wanted}"))?;
        let small = context.node.attrs.bool("allow_small_batch")?;
        let all = context.node.attrs.bool("wait_for_incomplete")?;
        Ok((barrier, wanted, small, all))
    };
    handle::or_fail(context, prepare, |context, (barrier, wanted, small, all)| {
        let shared = barrier.clone();
        let attempt = move |state: &mut State| {
            let there = state.ready.len();
            if there >= wanted && (!all || !small) {
                return Outcome::Done(state.take(&shared, wanted));
            }
            // Nothing more can come once the barrier is closed and no tuple is under way.
            let final_number = state.closed && state.incomplete.is_empty();
            if there >= wanted {
                return Outcome::Done(state.take(&shared, wanted));
            }
            if state.closed && small && there > 0 && (!all || final_number) {
                return Outcome::Done(state.take(&shared, there));
            }
            if !final_number {
                return Outcome::Waits;
            }
            Outcome::Done(Err(status!(
                OutOfRange,
                "Barrier '{}' is closed and has insufficient elements (requested {wanted}, total size {there})",
                shared.name
            )))
        };
        let cancellation = context.host.cancellation().clone();
        barrier.monitor.submit(0, &cancellation, attempt, finish(context));
    });
}

impl State {
    fn take(&mut self, barrier: &Barrier, count: usize) -> Result<Vec<Value>> {
        let mut indices = Vec::with_capacity(count);
        let mut keys = Vec::with_capacity(count);
        let mut columns: Vec<Vec<Tensor>> = vec![Vec::new(); barrier.types.len()];
        for _ in 0..count {
            let Some((index, (key, tuple))) = self.ready.pop_first() else {
                break;
            };
            indices.push(index);
            keys.push(key);
            for (column, tensor) in columns.iter_mut().zip(tuple) {
                column.push(tensor);
            }
        }
        let mut values = vec![
            Value::Tensor(Tensor::vector(&indices)?),
            Value::Tensor(Tensor::from_strings(Shape::vector(keys.len()), keys)?),
        ];
        for (component, column) in columns.iter().enumerate() {
            let row = match (
                column.first(),
                barrier.shapes.get(component).and_then(PartialShape::dims),
            ) {
                (Some(first), _) => first.dims().to_vec(),
                (None, dims) => dims.unwrap_or(&[]).iter().map(|&extent| extent.max(0)).collect(),
            };
            for tensor in column {
                ensure!(
                    tensor.dims() == row,
                    InvalidArgument,
                    "elements of component {component} of barrier {} differ in shape",
                    barrier.name
                );
            }
            values.push(Value::Tensor(rows::stack(
                barrier.types[component],
                &row,
                column,
            )?));
        }
        Ok(values)
    }
}
