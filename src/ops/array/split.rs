//! Cutting a tensor into parts along an axis.

use crate::movement::{Region, read, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

static SPLIT: Op = Op {
    name: "Split",
    shape: split_shape,
    kernels: &[Kernel::native(split)],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static SPLIT_V: Op = Op {
    name: "SplitV",
    shape: split_v_shape,
    ..SPLIT
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&SPLIT, &SPLIT_V];

/// Which inputs are the axis and the value.
fn layout(op: &str) -> (usize, usize) {
    if op == "Split" { (0, 1) } else { (2, 0) }
}

fn place(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"
    );
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

fn split_shape(context: &mut ShapeContext) -> Result<()> {
    let count = context.num_outputs() as i64;
    let value = context.input(1);
    let Some(rank) = value.rank() else { return Ok(()) };
    let shape = match context.input_as_scalar(0)? {
        Some(axis) => {
            let axis = place(axis, rank)? as i64;
            let extent = value.dim(axis);
            ensure!(
                extent < 0 || extent % count == 0,
                InvalidArgument,
                "Number of ways to split should evenly divide the split dimension, but got split_dim {axis} (size = {extent}) and num_split {count}"
            );
            value.with_dim(axis, if extent < 0 { dim::UNKNOWN } else { extent / count })?
        }
        None => PartialShape::of_rank(rank),
    };
    for index in 0..context.num_outputs() {
        context.set_output(index, shape.clone());
    }
    Ok(())
}

/// The sizes with the one that is -1 worked out. INVALID_ARGUMENT when they do not add up.
fn sizes(given: &[i64], extent: i64, count: usize) -> Result<Vec<i64>> {
    ensure!(
        given.len() == count,
        InvalidArgument,
        "size_splits must have {count} elements, got {}",
        given.len()
    );
    let mut sizes = given.to_vec();
    let open: Vec<usize> = (0..count).filter(|&index| sizes[index] == -1).collect();
    ensure!(
        open.len() <= 1,
        InvalidArgument,
        "There can only be one -1 in the input."
    );
    let sum: i64 = sizes.iter().filter(|size| **size != -1).sum();
    ensure!(
        sizes.iter().all(|size| *size >= -1)
            && (if open.is_empty() {
                sum == extent
            } else {
                sum <= extent
            }),
        InvalidArgument,
        "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the size of the input along split_dim if not fully specified.  Got: {sum}"
    );
    if let [index] = open[..] {
        sizes[index] = extent - sum;
    }
    Ok(sizes)
}

fn split_v_shape(context: &mut ShapeContext) -> Result<()> {
    let value = context.input(0);
    let Some(rank) = value.rank() else { return Ok(()) };
    let count = context.num_outputs();
    let (axis, given) = (context.input_as_scalar(2)?, context.input_as_i64s(1)?);
    for index in 0..count {
        let shape = match axis {
            Some(axis) => {
                let axis = place(axis, rank)? as i64;
                let size = match (&given, value.dim(axis)) {
                    (Some(given), extent) if extent >= 0 => sizes(given, extent, count)?[index],
                    (Some(given), _) => given.get(index).copied().unwrap_or(dim::UNKNOWN),
                    _ if count == 1 => value.dim(axis),
                    _ => dim::UNKNOWN,
                };
                value.with_dim(axis, size)?
            }
            None => PartialShape::of_rank(rank),
        };
        context.set_output(index, shape);
    }
    Ok(())
}

fn split(context: &mut KernelContext) -> Result<()> {
    let (axis_input, value_input) = layout(context.node().op_name());
    let axis = context.input_i64(axis_input)?;
    let value = context.input(value_input)?.clone();
    let axis = place(axis, value.rank())?;
    let strides = row_major(value.dims());
    let mut start = 0;
    for index in 0..context.num_outputs() {
        let shape = context.output_shape(index)?.clone();
        let size = shape.dims()[axis];
        let part = if axis == 0 {
            value.rows(start as usize, size as usize)?
        } else {
            read(
                &value,
                shape,
                Region {
                    offset: start * strides[axis],
                    strides: &strides,
                },
            )?
        };
        context.set_output(index, part)?;
        start += size;
    }
    Ok(())
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (axis_input, value_input) = layout(context.node().op_name());
    let axis = context.constant_i64s(axis_input)?.first().copied().unwrap_or(0);
    let (value, dims) = (context.input(value_input)?, context.input_dims(value_input)?);
    let axis = place(axis, dims.len())?;
    let count = context.node().output_types.len();
    let sizes = if value_input == 0 {
        sizes(&context.constant_i64s(1)?, dims[axis], count)?
    } else {
        vec![dims[axis] / count.max(1) as i64; count]
    };
    let mut start = 0;
    for (index, size) in sizes.into_iter().enumerate() {
        let part = context
            .builder
            .slice_in_dim(value, start, start + size, 1, axis)?;
        context.set_output(index, part);
        start += size;
    }
    Ok(())
}

/// The parts' gradients joined.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (axis_input, value_input) = layout(context.node().op_name());
    let count = context.node().output_types.len();
    let mut parts = (0..count)
        .map(|index| context.incoming_or_zeros(index))
        .collect::<Result<Vec<_>>>()?;
    let axis = context.input(axis_input)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(parts[0]))
        .with("N", count as i64)
        .with("Tidx", DataType::INT32);
    parts.push(axis);
    let joined = context.op("ConcatV2", &parts, attrs)?;
    context.set(value_input, joined);
    Ok(())
}

crate::op_cases! {
    split_in_three: Case::op("Split").inputs([scalar(1), counting(DataType::UINT8, &[2, 6])]).attr("num_split", 3i64);
    split_of_nothing: Case::op("Split").inputs([scalar(0), counting(DataType::UINT8, &[0, 6])]).attr("num_split", 3i64);
    split_uneven: Case::op("Split").inputs([scalar(1), counting(DataType::UINT8, &[2, 6])]).attr("num_split", 4i64)
        .fails(Code::InvalidArgument);
    split_by_sizes: Case::op("SplitV").inputs([counting(DataType::STRING, &[4]), vector(&[1, -1, 2]), scalar(0)])
        .attr("num_split", 3i64);
    split_by_small_sizes: Case::op("SplitV").inputs([vector(&[1, 2, 3]), vector(&[1i8, -1]), scalar(0)]).attr("num_split", 2)
        .gives(vector(&[1])).gives(vector(&[2, 3]));
    split_too_much: Case::op("SplitV").inputs([counting(DataType::INT32, &[4]), vector(&[1, 4]), scalar(0)])
        .attr("num_split", 2i64).fails(Code::InvalidArgument);
}
