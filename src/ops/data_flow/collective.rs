//! Collective ops whose group is one device: what all of the group give together is what the one gives.
//!
//! A larger group needs other processes, so it is an error when the op runs. Keys of groups and instances tell groups apart;
//! with one member they have nothing to tell.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Tensor, bail, dim, ensure};

const REDUCE: Op = Op {
    name: "CollectiveReduce",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(pass)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const GATHER: Op = Op {
    name: "CollectiveGather",
    shape: shapes::from_shape_attr,
    kernels: &[Kernel::native(gather)],
    ..REDUCE
};
const RECEIVE: Op = Op {
    name: "CollectiveBcastRecv",
    shape: shapes::from_shape_attr,
    kernels: &[Kernel::native(receive)],
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
        kernels: &[Kernel::native(send)],
        ..REDUCE
    },
    &Op {
        name: "CollectiveBcastSendV2",
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
        kernels: &[Kernel::native(exchange)],
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

/// INVALID_ARGUMENT for a size that no group has; UNIMPLEMENTED for a group of several devices.
fn check_group(context: &KernelContext) -> Result<()> {
    let node = context.node();
    let place = node
        .op
        .def
        .input_arg
        .iter()
        .position(|arg| arg.name == "group_size");
    let size = match place {
        None => context.attrs().int("group_size")?,
        Some(place) => {
            let size = context.input(place)?;
            ensure!(
                size.rank() == 0,
                InvalidArgument,
                "Unexpected dimensions on input group_size, got {}",
                size.shape()
            );
            context.input_i64(place)?
        }
    };
    ensure!(
        size > 0,
        InvalidArgument,
        "group_size must be positive integer but got {size}"
    );
    ensure!(
        size == 1,
        Unimplemented,
        "{}: a group of {size} devices needs a distributed runtime, which this library does not have",
        node.op_name()
    );
    Ok(())
}

fn pass(context: &mut KernelContext) -> Result<()> {
    check_group(context)?;
    context.forward(0, 0);
    Ok(())
}

fn gather(context: &mut KernelContext) -> Result<()> {
    let rank = context.input(0)?.rank();
    ensure!(
        rank > 0,
        InvalidArgument,
        "input should have rank > 0, received {rank}"
    );
    pass(context)
}

fn send(context: &mut KernelContext) -> Result<()> {
    check_group(context)?;
    let declared = context.attrs().shape("shape")?;
    ensure!(
        declared.is_compatible_with(&context.input(0)?.partial_shape()),
        Internal,
        "Declared shape of op {} does not match shape of input",
        context.node().name
    );
    pass(context)
}

fn receive(context: &mut KernelContext) -> Result<()> {
    // The shape is known first.
    context.output_shape(0)?;
    check_group(context)?;
    bail!(
        Internal,
        "{} found no source for broadcast: the group has this one member",
        context.node().name
    )
}

fn exchange(context: &mut KernelContext) -> Result<()> {
    check_group(context)?;
    let first = context.input(0)?.dims().first().copied().unwrap_or(0);
    ensure!(
        first == 1,
        InvalidArgument,
        "input to all-to-all first dimension size ({first}) must be the same as the group size (1)"
    );
    pass(context)
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
