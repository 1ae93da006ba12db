//! Staging areas by key: tuples that can come in parts, and leave in parts.

use super::handle;
use super::stage::{Bounds, bytes_of, finish, place_of};
use ff_op::{
    AsyncKernelContext, Gradient, Kernel, KernelContext, Monitor, NodeInfo, Op, Outcome, ResourceManager,
    Value, shapes,
};
use ff_tensor::{Result, Tensor, ensure, status};
use std::collections::BTreeMap;
use std::sync::Arc;

const WAITS: Op = Op {
    shape: shapes::unknown,
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const STAGE: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::asynchronous(stage)],
    ..WAITS
};
const PEEK: Op = Op {
    kernels: &[Kernel::asynchronous(|context| take(context, false))],
    ..WAITS
};
const UNSTAGE: Op = Op {
    kernels: &[Kernel::asynchronous(|context| take(context, true))],
    ..WAITS
};
const UNSTAGE_ANY: Op = Op {
    kernels: &[Kernel::asynchronous(take_any)],
    ..WAITS
};
const SIZE: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let size = area(context)?.monitor.read(|state| state.complete.len());
        context.set_output(0, Tensor::scalar(size as i32)?)
    })],
    ..WAITS
};
const INCOMPLETE_SIZE: Op = Op {
    kernels: &[Kernel::native(|context| {
        let size = area(context)?.monitor.read(|state| state.incomplete.len());
        context.set_output(0, Tensor::scalar(size as i32)?)
    })],
    ..SIZE
};
const CLEAR: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(|context| {
        area(context)?.monitor.change(|state| *state = State::default());
        Ok(())
    })],
    ..WAITS
};

/// The ops of this file. In both kinds the smallest key comes first when none is asked for.
pub static OPS: &[&Op] = &[
    &Op {
        name: "MapStage",
        ..STAGE
    },
    &Op {
        name: "MapPeek",
        ..PEEK
    },
    &Op {
        name: "MapUnstage",
        ..UNSTAGE
    },
    &Op {
        name: "MapUnstageNoKey",
        ..UNSTAGE_ANY
    },
    &Op {
        name: "MapSize",
        ..SIZE
    },
    &Op {
        name: "MapIncompleteSize",
        ..INCOMPLETE_SIZE
    },
    &Op {
        name: "MapClear",
        ..CLEAR
    },
    &Op {
        name: "OrderedMapStage",
        ..STAGE
    },
    &Op {
        name: "OrderedMapPeek",
        ..PEEK
    },
    &Op {
        name: "OrderedMapUnstage",
        ..UNSTAGE
    },
    &Op {
        name: "OrderedMapUnstageNoKey",
        ..UNSTAGE_ANY
    },
    &Op {
        name: "OrderedMapSize",
        ..SIZE
    },
    &Op {
        name: "OrderedMapIncompleteSize",
        ..INCOMPLETE_SIZE
    },
    &Op {
        name: "OrderedMapClear",
        ..CLEAR
    },
];

/// A tuple some of whose components are missing.
type Parts = Vec<Option<Tensor>>;

#[derive(Default)]
struct State {
    incomplete: BTreeMap<i64, Parts>,
    complete: BTreeMap<i64, Parts>,
}

struct KeyedArea {
    bounds: Bounds,
    /// Components of a tuple.
    width: usize,
    monitor: Arc<Monitor<State>>,
}

const PUTTING: usize = 0;
const TAKING: usize = 1;

fn area_of(node: &NodeInfo, manager: &ResourceManager) -> Result<Arc<KeyedArea>> {
    let (place, bounds) = (place_of(node)?, Bounds::of(&node.attrs)?);
    let width = node.attrs.types("dtypes")?.len();
    manager.find_or_create(&place.container, &place.name, || {
        Ok(KeyedArea {
            bounds,
            width,
            monitor: Monitor::new(State::default(), 2, false),
        })
    })
}

fn area(context: &KernelContext) -> Result<Arc<KeyedArea>> {
    area_of(context.node(), context.resources())
}

/// Which components an op is about: in ascending order.
fn indices_at(context: &AsyncKernelContext, input: usize) -> Result<Vec<i64>> {
    let indices = context.input(input)?.to_i64_vec()?;
    ensure!(
        indices.windows(2).all(|pair| pair[0] < pair[1]),
        InvalidArgument,
        "Indices are not strictly ordered"
    );
    Ok(indices)
}

/// INVALID_ARGUMENT for an index that tuples of so many components do not have.
fn place(index: i64, key: i64, width: usize) -> Result<usize> {
    let found = usize::try_from(index).ok().filter(|&index| index < width);
    found.ok_or_else(|| {
        status!(
            InvalidArgument,
            "Index '{index}' for key '{key}' was out of bounds '{width}'."
        )
    })
}

fn stage(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let area = area_of(&context.node, context.host.resources())?;
        let key = context.input(0)?.single::<i64>()?;
        let indices = indices_at(context, 1)?;
        let tensors = context.tensors_from(2)?;
        ensure!(
            tensors.len() >= indices.len(),
            InvalidArgument,
            "Number of tensors ({}) does not match the number of indices ({})",
            tensors.len(),
            indices.len()
        );
        area.bounds.check(bytes_of(&tensors))?;
        Ok((area, key, indices, tensors))
    };
    handle::or_fail(context, prepare, |context, (area, key, indices, tensors)| {
        let (bounds, width, bytes) = (area.bounds, area.width, bytes_of(&tensors));
        let mut parts: Vec<(i64, Tensor)> = indices.into_iter().zip(tensors).collect();
        let attempt = move |state: &mut State| {
            let used = match bounds.memory {
                0 => 0,
                _ => bytes_of(
                    state
                        .complete
                        .values()
                        .chain(state.incomplete.values())
                        .flatten()
                        .flatten(),
                ),
            };
            if !bounds.allow(state.complete.len(), used, bytes) {
                return Outcome::Waits;
            }
            Outcome::Done(state.put(key, width, std::mem::take(&mut parts)))
        };
        let cancellation = context.host.cancellation().clone();
        area.monitor
            .submit(PUTTING, &cancellation, attempt, finish(context));
    });
}

impl State {
    /// Adds components to the tuple of a key; with the last, the tuple is complete.
    fn put(&mut self, key: i64, width: usize, parts: Vec<(i64, Tensor)>) -> Result<Vec<Value>> {
        let tuple = self.incomplete.entry(key).or_insert_with(|| vec![None; width]);
        for (index, tensor) in parts {
            let slot = &mut tuple[place(index, key, width)?];
            ensure!(
                slot.is_none(),
                InvalidArgument,
                "The tensor for index '{index}' for key '{key}' was already initialized '{width}'."
            );
            *slot = Some(tensor);
        }
        if tuple.iter().all(Option::is_some)
            && let Some(tuple) = self.incomplete.remove(&key)
        {
            self.complete.entry(key).or_insert(tuple);
        }
        Ok(Vec::new())
    }

    /// Components of a complete tuple, taken out or not; a tuple without any left is gone.
    fn get(&mut self, key: i64, indices: &[i64], remove: bool) -> Result<Vec<Value>> {
        let Some(tuple) = self.complete.get_mut(&key) else {
            return Ok(Vec::new());
        };
        let mut values = Vec::with_capacity(indices.len());
        for &index in indices {
            let component = place(index, key, tuple.len())?;
            let slot = &mut tuple[component];
            let tensor = if remove { slot.take() } else { slot.clone() };
            let tensor = tensor.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Tensor at index '{index}' for key '{key}' has already been removed."
                )
            })?;
            values.push(Value::Tensor(tensor));
        }
        if tuple.iter().all(Option::is_none) {
            self.complete.remove(&key);
        }
        Ok(values)
    }
}

fn take(context: AsyncKernelContext, remove: bool) {
    let prepare = |context: &AsyncKernelContext| {
        let area = area_of(&context.node, context.host.resources())?;
        let key = context.input(0)?.single::<i64>()?;
        let indices = indices_at(context, 1)?;
        Ok((area, key, indices))
    };
    handle::or_fail(context, prepare, move |context, (area, key, indices)| {
        let attempt = move |state: &mut State| match state.complete.contains_key(&key) {
            false => Outcome::Waits,
            true => Outcome::Done(state.get(key, &indices, remove)),
        };
        let cancellation = context.host.cancellation().clone();
        area.monitor
            .submit(TAKING, &cancellation, attempt, finish(context));
    });
}

/// Takes the tuple with the smallest key; the key is the first output.
fn take_any(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let area = area_of(&context.node, context.host.resources())?;
        let indices = indices_at(context, 0)?;
        Ok((area, indices))
    };
    handle::or_fail(context, prepare, |context, (area, indices)| {
        let attempt = move |state: &mut State| {
            let Some(&key) = state.complete.keys().next() else {
                return Outcome::Waits;
            };
            let values = Tensor::scalar(key).and_then(|shown| {
                let mut values = vec![Value::Tensor(shown)];
                values.extend(state.get(key, &indices, true)?);
                Ok(values)
            });
            Outcome::Done(values)
        };
        let cancellation = context.host.cancellation().clone();
        area.monitor
            .submit(TAKING, &cancellation, attempt, finish(context));
    });
}
