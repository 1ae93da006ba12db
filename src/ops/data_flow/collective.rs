//! Collective ops: the devices of a group give a value each, and get what comes of all. They meet in [`ff_op::Collectives`].
//!
//! The devices of a group are of one process; there is no runtime for others.

use crate::math::number::Number;
use ff_op::{
    AsyncKernelContext, CollectiveCall, Combine, Gradient, Kernel, KernelContext, Op, ShapeContext, shapes,
};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, dim, ensure, status};
use std::sync::Arc;
use std::time::Duration;

const REDUCE: Op = Op {
    name: "CollectiveReduce",
    shape: shapes::unchanged,
    kernels: &[Kernel::asynchronous(|context| meet(context, &REDUCES))],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const GATHER: Op = Op {
    name: "CollectiveGather",
    shape: shapes::from_shape_attr,
    kernels: &[Kernel::asynchronous(|context| meet(context, &GATHERS))],
    ..REDUCE
};
const RECEIVE: Op = Op {
    name: "CollectiveBcastRecv",
    shape: shapes::from_shape_attr,
    kernels: &[Kernel::asynchronous(|context| meet(context, &TAKES))],
    ..REDUCE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &REDUCE,
    &Op {
        name: "CollectiveReduceV2",
        ..REDUCE
    },
    &GATHER,
    &Op {
        name: "CollectiveGatherV2",
        shape: gathered,
        ..GATHER
    },
    &Op {
        name: "CollectiveBcastSend",
        shape: shapes::from_shape_attr,
        kernels: &[Kernel::asynchronous(|context| meet(context, &SENDS))],
        ..REDUCE
    },
    &Op {
        name: "CollectiveBcastSendV2",
        kernels: &[Kernel::asynchronous(|context| meet(context, &SENDS))],
        ..REDUCE
    },
    &RECEIVE,
    &Op {
        name: "CollectiveBcastRecvV2",
        shape: |context: &mut ShapeContext| {
            let shape = context.input_as_shape(3)?;
            context.set_output(0, shape);
            Ok(())
        },
        ..RECEIVE
    },
    &Op {
        name: "CollectiveAllToAllV2",
        kernels: &[Kernel::asynchronous(|context| meet(context, &EXCHANGES))],
        ..REDUCE
    },
    &Op {
        name: "CollectiveAssignGroupV2",
        shape: |context: &mut ShapeContext| {
            (0..2).for_each(|output| context.set_output(output, PartialShape::scalar()));
            Ok(())
        },
        kernels: &[Kernel::native(assign_group)],
        ..REDUCE
    },
];

/// Of a group whose size is an input only the first extent is unknown.
fn gathered(context: &mut ShapeContext) -> Result<()> {
    let mut shape = PartialShape::unknown();
    if let Some(dims) = context.input(0).dims()
        && !dims.is_empty()
    {
        let mut dims = dims.to_vec();
        dims[0] = dim::UNKNOWN;
        shape = PartialShape::new(&dims);
    }
    context.set_output(0, shape);
    Ok(())
}

/// The number at an attribute, or the input that newer versions of the op have in its place. INVALID_ARGUMENT unless that is
/// a scalar.
fn key(context: &AsyncKernelContext, name: &str) -> Result<i64> {
    let args = &context.node.op.def.input_arg;
    let Some(place) = args.iter().position(|arg| arg.name == name) else {
        return context.node.attrs.int(name);
    };
    let value = context.input(place)?;
    ensure!(
        value.rank() == 0,
        InvalidArgument,
        "Unexpected dimensions on input {name}, got {}",
        value.shape()
    );
    Ok(value.to_i64_vec()?[0])
}

/// A value, if there is one, and the shape in which all must agree.
type Brought = (Option<Tensor>, Shape);

/// What ops of a kind do with the values of all.
struct Kind {
    /// The reference's number of it.
    number: u8,
    /// What the device brings to a group of a size. The error when its values are of no use.
    bring: fn(&AsyncKernelContext, i64) -> Result<Brought>,
    /// What is done with what all bring.
    combine: fn(&AsyncKernelContext) -> Result<Combine>,
}

const REDUCES: Kind = Kind {
    number: 0,
    bring: |context, _| all(context),
    combine: |context| {
        let attrs = &context.node.attrs;
        let (merge, last) = (
            Merge::named(attrs.string("merge_op")?)?,
            attrs.string("final_op")?,
        );
        let divides = last == "Div";
        Ok(Box::new(move |values| merged(values, merge, divides)))
    },
};

const GATHERS: Kind = Kind {
    number: 2,
    bring: |context, _| {
        let rank = context.input(0)?.rank();
        ensure!(
            rank > 0,
            InvalidArgument,
            "input should have rank > 0, received {rank}"
        );
        all(context)
    },
    combine: |_| Ok(Box::new(|values| join_rows(&brought(values)?))),
};

const EXCHANGES: Kind = Kind {
    number: 4,
    bring: |context, size| {
        let first = context.input(0)?.dims().first().copied().unwrap_or(0);
        ensure!(
            first == size,
            InvalidArgument,
            "input to all-to-all first dimension size ({first}) must be the same as the group size ({size})"
        );
        all(context)
    },
    combine: |_| Ok(Box::new(|values| exchange(&brought(values)?))),
};

const SENDS: Kind = Kind {
    number: 1,
    bring: |context, _| {
        if let Ok(declared) = context.node.attrs.shape("shape") {
            ensure!(
                declared.is_compatible_with(&context.input(0)?.partial_shape()),
                Internal,
                "Declared shape of op {} does not match shape of input",
                context.node.name
            );
        }
        all(context)
    },
    combine: hand_out,
};

const TAKES: Kind = Kind {
    number: 1,
    bring: |context, _| Ok((None, taken_shape(context)?)),
    combine: hand_out,
};

/// The whole input.
fn all(context: &AsyncKernelContext) -> Result<Brought> {
    let value = context.input(0)?.clone();
    let shape = value.shape().clone();
    Ok((Some(value), shape))
}

/// The shape that a value is announced to have. INVALID_ARGUMENT when it is not known as a whole.
fn taken_shape(context: &AsyncKernelContext) -> Result<Shape> {
    let args = &context.node.op.def.input_arg;
    match args.iter().position(|arg| arg.name == "shape") {
        Some(place) => Shape::new(&context.input(place)?.to_i64_vec()?),
        None => {
            let shape = context.node.attrs.shape("shape")?;
            let known = shape.to_shape();
            known.ok_or_else(|| status!(InvalidArgument, "shape {shape} is not fully defined"))
        }
    }
}

fn brought(values: Vec<Option<Tensor>>) -> Result<Vec<Tensor>> {
    let value = |value: Option<Tensor>| value.ok_or_else(|| status!(Internal, "a device brought nothing"));
    values.into_iter().map(value).collect()
}

/// How values are merged.
#[derive(Clone, Copy)]
enum Merge {
    Add,
    Mul,
    Min,
    Max,
}

impl Merge {
    fn named(name: &str) -> Result<Merge> {
        Ok(match name {
            "Add" => Merge::Add,
            "Mul" => Merge::Mul,
            "Min" => Merge::Min,
            "Max" => Merge::Max,
            _ => bail!(
                InvalidArgument,
                "merge_op must be one of {{\"Min\", \"Max\", \"Mul\", \"Add\"}} but got {name}"
            ),
        })
    }
}

/// The values merged in the order of their devices; every device gets the same.
fn merged(values: Vec<Option<Tensor>>, merge: Merge, divides: bool) -> Result<Vec<Tensor>> {
    let values = brought(values)?;
    let count = values.len();
    let mut result = values[0].clone();
    crate::match_real!(result.dtype(), T => {
        if count > 1 {
            result.make_writable()?;
        }
        for other in &values[1..] {
            let pairs = result.as_mut_slice::<T>()?.iter_mut().zip(other.as_slice::<T>()?);
            match merge {
                Merge::Add => pairs.for_each(|(a, &b)| *a = a.add(b)),
                Merge::Mul => pairs.for_each(|(a, &b)| *a = a.mul(b)),
                Merge::Min => pairs.for_each(|(a, &b)| if b < *a { *a = b }),
                Merge::Max => pairs.for_each(|(a, &b)| if b > *a { *a = b }),
            }
        }
        if divides && count > 1 {
            let divisor = (1..count).fold(T::one(), |sum, _| sum.add(T::one()));
            result.as_mut_slice::<T>()?.iter_mut().for_each(|a| *a = a.div(divisor));
        }
        Ok::<(), ff_tensor::Status>(())
    })?;
    Ok(vec![result; count])
}

/// The values one after the other along the first axis; every device gets the same.
fn join_rows(values: &[Tensor]) -> Result<Vec<Tensor>> {
    let first = &values[0];
    let count = values.len();
    let mut dims = first.dims().to_vec();
    let joined = super::rows::stack(first.dtype(), &dims, values)?;
    let rows = dims[0].checked_mul(count as i64);
    dims[0] = rows.ok_or_else(|| status!(InvalidArgument, "{count} times {} rows are too many", dims[0]))?;
    Ok(vec![joined.into_shape(Shape::new(&dims)?)?; count])
}

/// Each device gets of each the row with its own number.
fn exchange(values: &[Tensor]) -> Result<Vec<Tensor>> {
    let row = &values[0].dims()[1..];
    let rows_for = |member| values.iter().map(move |value| super::rows::row(value, member));
    (0..values.len())
        .map(|member| {
            let rows: Vec<Tensor> = rows_for(member).collect::<Result<_>>()?;
            super::rows::stack(values[0].dtype(), row, &rows)
        })
        .collect()
}

/// Every device gets what the one that has something brings.
fn hand_out(context: &AsyncKernelContext) -> Result<Combine> {
    let (instance, size) = (key(context, "instance_key")?, key(context, "group_size")?);
    Ok(Box::new(move |values| {
        let sources: Vec<usize> = (0..values.len())
            .filter(|&index| values[index].is_some())
            .collect();
        match sources[..] {
            [source] => Ok(vec![
                brought(vec![values[source].clone()])?.remove(0);
                values.len()
            ]),
            [] => bail!(
                Internal,
                "Instance {instance} found no source for broadcast.  This could mean that there were group_size={size} BcastRecvs but no BcastSend."
            ),
            [first, second, ..] => bail!(
                Internal,
                "Instance {instance} already has source {first}, received second claim from {second}"
            ),
        }
    }))
}

/// Meets the other devices of the group. Where there is nobody to meet, as a step is a single node, the group must be one.
fn meet(context: AsyncKernelContext, kind: &Kind) {
    let prepare = |context: &AsyncKernelContext| {
        let size = key(context, "group_size")?;
        ensure!(
            size > 0,
            InvalidArgument,
            "group_size must be positive integer but got {size}"
        );
        let (value, shape) = (kind.bring)(context, size)?;
        let seconds = context.node.attrs.float("timeout_seconds")?;
        let call = CollectiveCall {
            group: key(context, "group_key")?,
            size: size as usize,
            instance: key(context, "instance_key")?,
            device: context.host.device_name().to_string(),
            kind: kind.number,
            dtype: context.node.attrs.dtype("T")?,
            shape,
            value,
            combine: (kind.combine)(context)?,
            done: Box::new(drop),
        };
        let known = context.host.collectives().cloned();
        ensure!(
            known.is_some() || size == 1,
            Unimplemented,
            "{}: there are no other devices",
            context.node.op_name()
        );
        Ok((call, known.unwrap_or_default(), seconds))
    };
    super::handle::or_fail(context, prepare, |context, (mut call, collectives, seconds)| {
        let cancellation = context.host.cancellation().clone();
        call.done = Box::new(|result| context.finish(result.map(|value| vec![value.into()])));
        let number = collectives.join(call, &cancellation);
        if let (Some(number), Ok(time)) = (number, Duration::try_from_secs_f32(seconds))
            && !time.is_zero()
        {
            let collectives = Arc::downgrade(&collectives);
            super::timer::after(time, move || {
                if let Some(collectives) = collectives.upgrade() {
                    let cause = status!(
                        DeadlineExceeded,
                        "Collective has timed out waiting for other workers."
                    );
                    collectives.give_up(number, cause);
                }
            });
        }
    });
}

/// The size and the key of the group that a device is in: each row of a matrix is a group.
fn assign_group(context: &mut KernelContext) -> Result<()> {
    let groups = context.input(0)?;
    ensure!(
        groups.rank() == 2,
        InvalidArgument,
        "group_assignment must be a matrix, but its shape is {}",
        groups.shape()
    );
    let width = usize::try_from(groups.dims()[1]).unwrap_or(0);
    let members = context.input_i64s(0)?;
    ensure!(
        members
            .iter()
            .all(|&member| usize::try_from(member).is_ok_and(|member| member < members.len())),
        InvalidArgument,
        "Not all items in group_assignment are within [0, number of devices)"
    );
    let (device, base) = (context.input_i64(1)?, context.input_i64(2)?);
    let Some(place) = members.iter().position(|&member| member == device) else {
        bail!(
            InvalidArgument,
            "device_index {device} is not found in group_assignment"
        );
    };
    // A key is an int32, of which the sum wraps around as any other.
    let key = base.wrapping_add((place / width) as i64) as i32;
    context.set_output(0, Tensor::scalar(width as i32)?)?;
    context.set_output(1, Tensor::scalar(key)?)
}

crate::op_cases! {
    reduced: reduce("CollectiveReduce", 1).input(vector(&[1f32, 2.0])).attr("subdiv_offsets", vec![0i64]).gives(vector(&[1f32, 2.0]));
    reduced_by_none: reduce("CollectiveReduce", 0).input(vector(&[1f32])).attr("subdiv_offsets", Vec::<i64>::new()).fails(Code::InvalidArgument);
    reduced_by_two: reduce("CollectiveReduce", 2).input(vector(&[1f32])).attr("subdiv_offsets", Vec::<i64>::new()).fails(Code::Unimplemented);
    reduced_by_inputs: with_group(Case::op("CollectiveReduceV2").input(scalar(2f32)), scalar(1i32))
        .attr("merge_op", "Mul").attr("final_op", "Div").attr("Nordering_token", 0i64).gives(scalar(2f32));
    size_of_another_shape: with_group(Case::op("CollectiveReduceV2").input(scalar(2f32)), vector(&[1i32]))
        .attr("merge_op", "Mul").attr("final_op", "Div").attr("Nordering_token", 0i64).fails(Code::InvalidArgument);
    gathered_rows: of_shape("CollectiveGather", &[2]).input(vector(&[1f32, 2.0])).gives(vector(&[1f32, 2.0]));
    gathered_scalar: of_shape("CollectiveGather", &[1]).input(scalar(1f32)).fails(Code::InvalidArgument);
    gathered_by_inputs: with_group(Case::op("CollectiveGatherV2").input(vector(&[1i32, 2])), scalar(1i32))
        .attr("Nordering_token", 0i64).gives(vector(&[1i32, 2]));
    gathered_scalar_by_inputs: with_group(Case::op("CollectiveGatherV2").input(scalar(1i32)), scalar(1i32))
        .attr("Nordering_token", 0i64).fails(Code::InvalidArgument);
    sent: of_shape("CollectiveBcastSend", &[2]).input(vector(&[1f32, 2.0])).gives(vector(&[1f32, 2.0]));
    sent_with_another_shape: of_shape("CollectiveBcastSend", &[3]).input(vector(&[1f32, 2.0])).fails(Code::Internal);
    sent_by_inputs: with_group(Case::op("CollectiveBcastSendV2").input(vector(&[1f32])), scalar(1i32)).gives(vector(&[1f32]));
    received: of_shape("CollectiveBcastRecv", &[2]).attr("T", DataType::FLOAT).fails(Code::Internal);
    received_by_inputs: with_group(Case::op("CollectiveBcastRecvV2"), scalar(1i32)).input(vector(&[2i32]))
        .attr("T", DataType::FLOAT).fails(Code::Internal);
    received_in_an_unknown_shape: with_group(Case::op("CollectiveBcastRecvV2"), scalar(1i32)).input(vector(&[-1i32]))
        .attr("T", DataType::FLOAT).fails(Code::InvalidArgument);
    exchanged: with_group(Case::op("CollectiveAllToAllV2").input(t::<f32>(&[1, 2], &[1.0, 2.0])), scalar(1i32))
        .attr("Nordering_token", 0i64).gives(t::<f32>(&[1, 2], &[1.0, 2.0]));
    exchanged_by_more: with_group(Case::op("CollectiveAllToAllV2").input(vector(&[1f32, 2.0])), scalar(1i32))
        .attr("Nordering_token", 0i64).fails(Code::InvalidArgument);
    second_group: assign(&[0, 1, 2, 3], 2).gives(scalar(2i32)).gives(scalar(2i32));
    no_group: assign(&[0, 1, 2, 3], 7).fails(Code::InvalidArgument);
    member_below_zero: assign(&[-1, 0, 1, 2], 0).fails(Code::InvalidArgument);
}

#[cfg(test)]
fn reduce(op: &'static str, size: i64) -> crate::testing::Case {
    use crate::testing::Case;
    let case = Case::op(op).attr("merge_op", "Add").attr("final_op", "Id");
    case.attr("group_size", size)
        .attr("group_key", 1i64)
        .attr("instance_key", 1i64)
}

#[cfg(test)]
fn of_shape(op: &'static str, dims: &[i64]) -> crate::testing::Case {
    use crate::testing::Case;
    let case = Case::op(op).attr("shape", PartialShape::new(dims));
    case.attr("group_size", 1i64)
        .attr("group_key", 1i64)
        .attr("instance_key", 1i64)
}

#[cfg(test)]
fn with_group(case: crate::testing::Case, size: Tensor) -> crate::testing::Case {
    use crate::testing::scalar;
    case.input(size).input(scalar(1i32)).input(scalar(1i32))
}

#[cfg(test)]
fn assign(members: &[i32], device: i32) -> crate::testing::Case {
    use crate::testing::{Case, scalar, t};
    let groups = t::<i32>(&[2, 2], members);
    Case::op("CollectiveAssignGroupV2")
        .input(groups)
        .input(scalar(device))
        .input(scalar(1i32))
}
