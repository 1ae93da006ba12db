//! Joining tensors along an axis that they have.

use super::shape::of_type;
use crate::movement::{Region, Writer, row_major};
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext,
};
use ff_tensor::{DataType, PartialShape, Result, Shape, Status, dim, ensure, status};

static CONCAT_V2: Op = Op {
    name: "ConcatV2",
    shape: concat_shape,
    kernels: &[Kernel::native(concat)],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static CONCAT: Op = Op {
    name: "Concat",
    ..CONCAT_V2
};
static CONCAT_OFFSET: Op = Op {
    name: "ConcatOffset",
    shape: |context| {
        for index in 0..context.num_outputs() {
            context.set_output(index, context.input(index + 1));
        }
        Ok(())
    },
    kernels: &[Kernel::native(offsets)],
    lower: Some(crate::lowering::by_value),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&CONCAT_V2, &CONCAT, &CONCAT_OFFSET];

/// Which input is the axis, and where the values start.
fn layout(op: &str, inputs: usize) -> (usize, usize) {
    if op == "Concat" { (0, 1) } else { (inputs - 1, 0) }
}

fn place(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "ConcatOp : Expected concatenating dimensions in the range [{}, {rank}), but got {axis}",
        -rank
    );
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

fn concat_shape(context: &mut ShapeContext) -> Result<()> {
    let (axis_input, first) = layout(context.node().op_name(), context.num_inputs());
    let values = &context.inputs()[first..first + context.num_inputs() - 1];
    context.input_with_rank(axis_input, 0)?;
    let Some(rank) = values.iter().find_map(PartialShape::rank) else {
        return Ok(());
    };
    ensure!(
        rank > 0,
        InvalidArgument,
        "Shape must be at least rank 1 but is rank 0 (Can't concatenate scalars (use tf.stack instead))"
    );
    let Some(axis) = context.input_as_scalar(axis_input)? else {
        context.set_output(0, PartialShape::of_rank(rank));
        return Ok(());
    };
    let axis = place(axis, rank).map_err(|error| {
        let least = if axis < 0 {
            axis.saturating_neg()
        } else {
            axis.saturating_add(1)
        };
        let built = status!(
            InvalidArgument,
            "Shape must be at least rank {least} but is rank {rank}"
        );
        context.in_words_of_kernel(built, || error.message().to_string())
    })?;
    // Extents before and after the axis agree; along it they add up.
    let (mut before, mut after) = (
        PartialShape::of_rank(axis),
        PartialShape::of_rank(rank - 1 - axis),
    );
    let mut total = 0;
    for (index, value) in values.iter().enumerate() {
        let value = value.with_rank(rank).map_err(|error| {
            let words = format!("ConcatOp : Ranks of all input tensors should match: shape[0] = {} vs. shape[{index}] = {value}", values[0]);
            context.in_words_of_kernel(error, || words)
        })?;
        let merged = before.merge(&value.slice(0, Some(axis as i64)));
        let merged =
            merged.and_then(|before| Ok((before, after.merge(&value.slice(axis as i64 + 1, None))?)));
        (before, after) = merged.map_err(|error| misfit(context, error, values, index, axis))?;
        total = dim::add(total, value.dim(axis as i64))?;
    }
    context.set_output(0, before.concat(&PartialShape::new(&[total])).concat(&after));
    Ok(())
}

#[cold]
fn misfit(
    context: &ShapeContext,
    error: Status,
    values: &[PartialShape],
    index: usize,
    axis: usize,
) -> Status {
    let (first, value) = (&values[0], &values[index]);
    let rank = first.rank().unwrap_or(0);
    let differs = |at: &usize| *at != axis && first.dim(*at as i64) != value.dim(*at as i64);
    let at = (0..rank).find(differs).unwrap_or(0);
    context.in_words_of_kernel(error, || {
        format!("ConcatOp : Dimension {at} in both shapes must be equal: shape[0] = {first} vs. shape[{index}] = {value}")
    })
}

fn concat(context: &mut KernelContext) -> Result<()> {
    let (axis_input, first) = layout(context.node().op_name(), context.num_inputs());
    let shape = context.output_shape(0)?.clone();
    let axis = place(context.input_i64(axis_input)?, shape.rank())?;
    let strides = row_major(shape.dims());
    let mut writer = Writer::new(context.output_type(0), shape)?;
    let mut offset = 0;
    for index in first..first + context.num_inputs() - 1 {
        let value = context.input(index)?;
        let dense = row_major(value.dims());
        let to = Region {
            offset: offset * strides[axis],
            strides: &strides,
        };
        writer.write(
            value.dims(),
            to,
            value,
            Region {
                offset: 0,
                strides: &dense,
            },
        )?;
        offset += value.dims()[axis];
    }
    context.set_output(0, writer.finish()?)
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (axis_input, first) = layout(context.node().op_name(), context.num_inputs());
    let axis = context.constant_i64s(axis_input)?.first().copied().unwrap_or(0);
    let axis = place(axis, context.input_dims(first)?.len())?;
    let mut values = Vec::new();
    for index in first..first + context.num_inputs() - 1 {
        values.push(context.input(index)?);
    }
    let result = context.builder.concatenate(&values, axis)?;
    context.set_output(0, result);
    Ok(())
}

/// For each input shape, where its part starts in the whole.
fn offsets(context: &mut KernelContext) -> Result<()> {
    ensure!(
        context.input(0)?.rank() == 0,
        InvalidArgument,
        "Concat dim tensor should be a scalar integer, but got shape {}",
        context.input(0)?.shape()
    );
    let axis = context.input_i64(0)?;
    let rank = context.input(1)?.num_elements();
    let axis = place(axis, rank)?;
    let first = context.input_i64s(1)?;
    let mut start = 0;
    for index in 0..context.num_outputs() {
        let dims = context.input_i64s(index + 1)?;
        ensure!(
            context.input(index + 1)?.rank() == 1,
            InvalidArgument,
            "input {index} should be a vector, but got shape {}",
            context.input(index + 1)?.shape()
        );
        ensure!(
            dims.len() == rank,
            InvalidArgument,
            "input {index} should contain {rank} elements, but got {}",
            dims.len()
        );
        let differs = |&other: &usize| other != axis && dims[other] != first[other];
        ensure!(
            (0..rank).find(differs).is_none(),
            InvalidArgument,
            "All dimensions except {axis} must match. Input {index} has shape {dims:?} and doesn't match input 0 with shape {first:?}."
        );
        let mut offset = vec![0; rank];
        offset[axis] = start;
        start += dims[axis];
        let value = of_type(context.output_type(index), Shape::vector(rank), &offset)?;
        context.set_output(index, value)?;
    }
    Ok(())
}

/// Each input's gradient is its part of the whole.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let inputs = context.num_inputs();
    let (axis_input, first) = layout(context.node().op_name(), inputs);
    let axis = context.input(axis_input)?;
    let values = first..first + inputs - 1;
    if values.len() == 1 {
        context.set(first, incoming);
        return Ok(());
    }
    let axis = if context.dtype(axis) == DataType::INT32 {
        axis
    } else {
        context.op(
            "Cast",
            &[axis],
            Attrs::new()
                .with("SrcT", DataType::INT64)
                .with("DstT", DataType::INT32),
        )?
    };
    let mut shapes = Vec::new();
    for index in values.clone() {
        let value = context.input(index)?;
        shapes.push(crate::math::gradients::shape_of(context, value)?);
    }
    let rank_axis = {
        let rank = context.op(
            "Rank",
            &[incoming],
            Attrs::new().with("T", context.dtype(incoming)),
        )?;
        crate::math::gradients::binary(context, "FloorMod", axis, rank)?
    };
    let all: Vec<OutputRef> = [&[rank_axis], &shapes[..]].concat();
    let attrs = Attrs::new()
        .with("N", shapes.len() as i64)
        .with("shape_type", DataType::INT32);
    let starts = context.node_of("ConcatOffset", &all, attrs)?;
    for (position, index) in values.enumerate() {
        let start = OutputRef {
            node: starts,
            index: position as u32,
        };
        let attrs = Attrs::new()
            .with("T", context.dtype(incoming))
            .with("Index", DataType::INT32);
        let part = context.op("Slice", &[incoming, start, shapes[position]], attrs)?;
        context.set(index, part);
    }
    Ok(())
}

crate::op_cases! {
    offsets_by_vector: Case::op("ConcatOffset").inputs([vector(&[1]), vector(&[2, 1]), vector(&[2, 4])]).fails(Code::InvalidArgument);
    offsets_of_matrices: Case::op("ConcatOffset").inputs([scalar(0), t(&[1, 2], &[1, 2]), t(&[1, 2], &[1, 2])]).attr("N", 2i64).fails(Code::InvalidArgument);
    offsets: Case::op("ConcatOffset").inputs([scalar(1), vector(&[2, 3]), vector(&[2, 4])]);
    offsets_misfit: Case::op("ConcatOffset").inputs([scalar(1), vector(&[2, 3]), vector(&[3, 4])]).fails(Code::InvalidArgument);
    joined: Case::op("ConcatV2").inputs([t(&[2, 1], &[1i64, 2]), t(&[2, 2], &[3i64, 4, 5, 6]), scalar(-1)])
        .gives(t(&[2, 3], &[1i64, 3, 4, 2, 5, 6]));
    joined_with_nothing: Case::op("ConcatV2").inputs([t::<f64>(&[0], &[]), vector(&[1.0f64]), scalar(0i64)])
        .gives(vector(&[1.0f64]));
    joined_misfits: Case::op("ConcatV2").inputs([t(&[2, 1], &[1i64, 2]), t(&[1, 2], &[3i64, 4]), scalar(0)])
        .fails(Code::InvalidArgument);
    joined_outside: Case::op("ConcatV2").inputs([vector(&[1]), vector(&[2]), scalar(1)]).fails(Code::InvalidArgument);
    joined_old: Case::op("Concat").inputs([scalar(0), strings(&[1], &["a"]), strings(&[1], &["b"])]);
    joined_old_outside: Case::op("Concat").inputs([scalar(2), vector(&[1]), vector(&[2])]).fails(Code::InvalidArgument);
}
