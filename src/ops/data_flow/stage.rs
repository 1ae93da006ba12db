//! Staging areas: tuples wait in order ([`Area`]) or by key ([`KeyedArea`]) until another op takes them.

use super::handle::{self, Place};
use super::store::Tuple;
use ff_op::{AsyncKernelContext, Done, Gradient, Kernel, KernelContext, Monitor, Op, Outcome, Value, shapes};
use ff_tensor::{Result, Tensor, ensure, status};
use std::collections::VecDeque;
use std::sync::Arc;

const WAITS: Op = Op {
    shape: shapes::unknown,
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Stage",
        shape: shapes::none,
        kernels: &[Kernel::asynchronous(stage)],
        ..WAITS
    },
    &Op {
        name: "Unstage",
        kernels: &[Kernel::asynchronous(|context| take(context, false))],
        ..WAITS
    },
    &Op {
        name: "StagePeek",
        kernels: &[Kernel::asynchronous(|context| take(context, true))],
        ..WAITS
    },
    &Op {
        name: "StageSize",
        shape: shapes::scalar,
        kernels: &[Kernel::native(|context| {
            let size = area(context)?.monitor.read(|tuples| tuples.len());
            context.set_output(0, Tensor::scalar(size as i32)?)
        })],
        ..WAITS
    },
    &Op {
        name: "StageClear",
        shape: shapes::none,
        kernels: &[Kernel::native(|context| {
            area(context)?.monitor.change(VecDeque::clear);
            Ok(())
        })],
        ..WAITS
    },
];

/// Bounds of a staging area.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The most tuples; 0 for any number.
    pub capacity: usize,
    /// The most bytes; 0 for any number.
    pub memory: usize,
}

impl Bounds {
    /// The bounds that a node's attributes say.
    pub fn of(attrs: &ff_op::Attrs) -> Result<Bounds> {
        let bound = |name: &str| Ok(usize::try_from(attrs.int(name)?).unwrap_or(0));
        Ok(Bounds {
            capacity: bound("capacity")?,
            memory: bound("memory_limit")?,
        })
    }

    /// Whether a tuple of so many bytes has room beside `count` tuples of `used` bytes.
    pub fn allow(&self, count: usize, used: usize, bytes: usize) -> bool {
        (self.capacity == 0 || count < self.capacity) && (self.memory == 0 || used + bytes <= self.memory)
    }

    /// RESOURCE_EXHAUSTED for a tuple that never has room.
    pub fn check(&self, bytes: usize) -> Result<()> {
        ensure!(
            self.memory == 0 || bytes <= self.memory,
            ResourceExhausted,
            "Attempted to insert tensors with combined size of '{bytes}' bytes into Staging Area with a memory limit of '{}'.",
            self.memory
        );
        Ok(())
    }
}

/// Bytes of a tuple, those of its strings included.
pub fn bytes_of<'a>(tuple: impl IntoIterator<Item = &'a Tensor>) -> usize {
    let texts = |tensor: &Tensor| {
        let strings = tensor.strings().unwrap_or(&[]);
        strings.iter().map(|text| text.as_bytes().len()).sum::<usize>()
    };
    let bytes = |tensor: &Tensor| tensor.byte_size() + texts(tensor);
    tuple.into_iter().map(bytes).sum()
}

/// The name and container that a node's attributes say, as messages and resources have them.
pub fn place_of(node: &ff_op::NodeInfo) -> Result<Place> {
    let attrs = &node.attrs;
    let name = match attrs.string("shared_name")? {
        "" => node.name.as_str(),
        name => name,
    };
    Ok(Place {
        container: attrs.string("container")?.to_string(),
        name: name.to_string(),
        shown: name.to_string(),
    })
}

/// Tuples in order.
struct Area {
    bounds: Bounds,
    monitor: Arc<Monitor<VecDeque<Tuple>>>,
}

const PUTTING: usize = 0;
const TAKING: usize = 1;

fn area_of(node: &ff_op::NodeInfo, manager: &ff_op::ResourceManager) -> Result<Arc<Area>> {
    let (place, bounds) = (place_of(node)?, Bounds::of(&node.attrs)?);
    manager.find_or_create(&place.container, &place.name, || {
        Ok(Area {
            bounds,
            monitor: Monitor::new(VecDeque::new(), 2, true),
        })
    })
}

fn area(context: &KernelContext) -> Result<Arc<Area>> {
    area_of(context.node(), context.resources())
}

/// Finishes a node with what a wait gave.
pub fn finish(context: AsyncKernelContext) -> Done {
    Box::new(move |result| context.finish(result))
}

fn stage(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let area = area_of(&context.node, context.host.resources())?;
        let tuple = context.tensors_from(0)?;
        area.bounds.check(bytes_of(&tuple))?;
        Ok((area, tuple))
    };
    handle::or_fail(context, prepare, |context, (area, tuple)| {
        let (bounds, bytes) = (area.bounds, bytes_of(&tuple));
        let mut tuple = Some(tuple);
        let attempt = move |tuples: &mut VecDeque<Tuple>| {
            let used = if bounds.memory == 0 {
                0
            } else {
                bytes_of(tuples.iter().flatten())
            };
            if !bounds.allow(tuples.len(), used, bytes) {
                return Outcome::Waits;
            }
            tuples.extend(tuple.take());
            Outcome::Done(Ok(Vec::new()))
        };
        let cancellation = context.host.cancellation().clone();
        area.monitor
            .submit(PUTTING, &cancellation, attempt, finish(context));
    });
}

fn values(tuple: Tuple, wanted: usize) -> Result<Vec<Value>> {
    ensure!(
        tuple.len() == wanted,
        InvalidArgument,
        "Mismatch stage/unstage: {} vs. {wanted}",
        tuple.len()
    );
    Ok(tuple.into_iter().map(Value::Tensor).collect())
}

fn take(context: AsyncKernelContext, peek: bool) {
    let prepare = |context: &AsyncKernelContext| {
        let area = area_of(&context.node, context.host.resources())?;
        let index = if peek {
            context.input(0)?.single::<i32>()?
        } else {
            0
        };
        let index = usize::try_from(index)
            .map_err(|_| status!(InvalidArgument, "index {index} must not be negative"))?;
        Ok((area, index))
    };
    handle::or_fail(context, prepare, move |context, (area, index)| {
        let wanted = context.node.output_types.len();
        let attempt = move |tuples: &mut VecDeque<Tuple>| {
            let found = if peek {
                tuples.get(index).cloned()
            } else {
                tuples.pop_front()
            };
            match found {
                None => Outcome::Waits,
                Some(tuple) => Outcome::Done(values(tuple, wanted)),
            }
        };
        let cancellation = context.host.cancellation().clone();
        area.monitor
            .submit(TAKING, &cancellation, attempt, finish(context));
    });
}
