//! A part of a tensor by start and size, and axes backwards.

use crate::math::gradients::{binary, typed};
use crate::movement::{Region, read, row_major};
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes,
};
use ff_tensor::{Bool, PartialShape, Result, dim, ensure};

static SLICE: Op = Op {
    name: "Slice",
    shape: slice_shape,
    kernels: &[Kernel::native(slice)],
    lower: Some(lower_slice),
    gradient: Gradient::Fn(slice_gradient),
    ..Op::PURE
};
static REVERSE_V2: Op = Op {
    name: "ReverseV2",
    shape: reverse_shape,
    kernels: &[Kernel::native(|context| {
        let axes = context.input_i64s(1)?;
        let rank = context.input(0)?.rank();
        reverse(context, &axes_once(&axes, rank)?)
    })],
    lower: Some(|context| {
        let axes = context.constant_i64s(1)?;
        let axes = axes_once(&axes, context.input_dims(0)?.len())?;
        let input = context.input(0)?;
        let result = context.builder.reverse(input, &axes)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(|context| {
        let (incoming, axes) = (context.incoming_or_zeros(0)?, context.input(1)?);
        let attrs = typed(context.dtype(incoming)).with("Tidx", context.dtype(axes));
        let gradient = context.op("ReverseV2", &[incoming, axes], attrs)?;
        context.set(0, gradient);
        Ok(())
    }),
    ..Op::PURE
};
static REVERSE: Op = Op {
    name: "Reverse",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        let flags = context.input_slice::<Bool>(1)?;
        let axes: Vec<i64> = (0..flags.len() as i64)
            .filter(|&axis| flags[axis as usize].get())
            .collect();
        let rank = context.input(0)?.rank();
        ensure!(
            flags.len() == rank,
            InvalidArgument,
            "'dims' must have {rank} elements, got {}",
            flags.len()
        );
        reverse(context, &axes)
    })],
    lower: Some(super::lower_movement::reverse_flagged),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&SLICE, &REVERSE_V2, &REVERSE];

/// Sizes with -1 (to the end) worked out. INVALID_ARGUMENT for a part that does not lie inside.
fn part(dims: &[i64], begin: &[i64], size: &[i64]) -> Result<Vec<i64>> {
    ensure!(
        begin.len() == dims.len() && size.len() == dims.len(),
        InvalidArgument,
        "Expected begin and size arguments to be 1-D tensors of size {}, but got shapes [{}] and [{}] instead.",
        dims.len(),
        begin.len(),
        size.len()
    );
    let mut sizes = Vec::with_capacity(dims.len());
    for axis in 0..dims.len() {
        let (extent, begin, size) = (dims[axis], begin[axis], size[axis]);
        ensure!(
            begin >= 0 && (extent < 0 || begin <= extent),
            InvalidArgument,
            "Expected begin[{axis}] in [0, {extent}], but got {begin}"
        );
        if size == -1 {
            sizes.push(if extent < 0 { dim::UNKNOWN } else { extent - begin });
            continue;
        }
        ensure!(
            size >= 0 && (extent < 0 || size <= extent - begin),
            InvalidArgument,
            "Expected size[{axis}] in [0, {}], but got {size}",
            extent - begin
        );
        sizes.push(size);
    }
    Ok(sizes)
}

fn slice_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let (begin, size) = (context.input_with_rank(1, 1)?, context.input_with_rank(2, 1)?);
    let rank = input
        .rank()
        .or(usize::try_from(begin.dim(0).max(size.dim(0))).ok());
    let Some(rank) = rank else { return Ok(()) };
    let input = input.with_rank(rank)?;
    let dims = input.dims().unwrap_or(&[]).to_vec();
    match (context.input_as_i64s(1)?, context.input_as_i64s(2)?) {
        (Some(begin), Some(size)) => context.set_output(0, PartialShape::new(&part(&dims, &begin, &size)?)),
        _ => {
            let sizes = context.input_as_shape(2)?;
            context.set_output(
                0,
                if sizes.rank() == Some(rank) {
                    sizes
                } else {
                    PartialShape::of_rank(rank)
                },
            );
        }
    }
    Ok(())
}

fn slice(context: &mut KernelContext) -> Result<()> {
    let begin = context.input_i64s(1)?;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    if input.shape() == &shape {
        let input = context.take_input(0)?;
        return context.set_output(0, input);
    }
    let strides = row_major(input.dims());
    let offset = begin
        .iter()
        .zip(&strides)
        .map(|(begin, stride)| begin * stride)
        .sum();
    let offset = if shape.num_elements() == 0 { 0 } else { offset };
    let result = read(
        input,
        shape,
        Region {
            offset,
            strides: &strides,
        },
    )?;
    context.set_output(0, result)
}

fn lower_slice(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let (begin, size) = (context.constant_i64s(1)?, context.constant_i64s(2)?);
    let sizes = part(&dims, &begin, &size)?;
    let limit: Vec<i64> = begin
        .iter()
        .zip(&sizes)
        .map(|(begin, size)| begin + size)
        .collect();
    let input = context.input(0)?;
    let result = context
        .builder
        .slice(input, &begin, &limit, &vec![1; dims.len()])?;
    context.set_output(0, result);
    Ok(())
}

/// The gradient with zeros around: padded by `[begin, dims - size - begin]`.
fn slice_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, begin) = (context.input(0)?, context.input(1)?);
    let index_type = context.dtype(begin);
    let dims = context.op(
        "Shape",
        &[input],
        typed(context.dtype(input)).with("out_type", index_type),
    )?;
    let sizes = context.op(
        "Shape",
        &[incoming],
        typed(context.dtype(incoming)).with("out_type", index_type),
    )?;
    let rest = binary(context, "Sub", dims, sizes)?;
    let after = binary(context, "Sub", rest, begin)?;
    let attrs = Attrs::new()
        .with("T", index_type)
        .with("N", 2i64)
        .with("axis", 1i64);
    let paddings = context.op("Pack", &[begin, after], attrs)?;
    let attrs = typed(context.dtype(incoming)).with("Tpaddings", index_type);
    let padded = context.op("Pad", &[incoming, paddings], attrs)?;
    context.set(0, padded);
    Ok(())
}

/// The axes that are named, each once. INVALID_ARGUMENT for one that is out of range or named twice.
fn axes_once(axes: &[i64], rank: usize) -> Result<Vec<i64>> {
    let mut seen = vec![false; rank];
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            InvalidArgument,
            "'axis'[{axis}] is out of valid range [0, {rank})"
        );
        ensure!(
            !seen[place as usize],
            InvalidArgument,
            "axis {place} specified more than once."
        );
        seen[place as usize] = true;
    }
    Ok((0..rank as i64).filter(|&axis| seen[axis as usize]).collect())
}

fn reverse_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(1, 1)?;
    if let (Some(axes), Some(rank)) = (context.input_as_i64s(1)?, context.input(0).rank()) {
        axes_once(&axes, rank)?;
    }
    context.set_output(0, context.input(0));
    Ok(())
}

fn reverse(context: &mut KernelContext, axes: &[i64]) -> Result<()> {
    let input = context.input(0)?;
    let mut strides = row_major(input.dims());
    let mut offset = 0;
    for &axis in axes {
        let axis = axis as usize;
        offset += (input.dims()[axis] - 1) * strides[axis];
        strides[axis] = -strides[axis];
    }
    let shape = input.shape().clone();
    let offset = if shape.num_elements() == 0 { 0 } else { offset };
    let result = read(
        input,
        shape,
        Region {
            offset,
            strides: &strides,
        },
    )?;
    context.set_output(0, result)
}

crate::op_cases! {
    reversed: Case::op("ReverseV2").inputs([counting(DataType::INT32, &[2, 3]), vector(&[-1])])
        .gives(t(&[2, 3], &[2, 1, 0, 5, 4, 3]));
    reversed_empty: Case::op("ReverseV2").inputs([counting(DataType::INT32, &[2, 0]), vector(&[0, 1])]);
    reversed_twice: Case::op("ReverseV2").inputs([counting(DataType::INT32, &[2, 3]), vector(&[1, -1])])
        .fails(Code::InvalidArgument);
    reversed_by_flags: Case::op("Reverse").inputs([counting(DataType::STRING, &[2, 2]), bools(&[2], &[true, false])]);
    reversed_by_few_flags: Case::op("Reverse").inputs([counting(DataType::INT32, &[2, 2]), bools(&[1], &[true])])
        .fails(Code::InvalidArgument);
    cut: Case::op("Slice").inputs([counting(DataType::FLOAT, &[3, 4]), vector(&[1, 0]), vector(&[-1, 2])])
        .gives(t(&[2, 2], &[4.0f32, 5.0, 8.0, 9.0]));
    cut_nothing: Case::op("Slice").inputs([counting(DataType::STRING, &[3]), vector(&[3i64]), vector(&[0i64])]);
    cut_outside: Case::op("Slice").inputs([counting(DataType::FLOAT, &[3]), vector(&[2]), vector(&[2])])
        .fails(Code::InvalidArgument);
    cut_negative: Case::op("Slice").inputs([counting(DataType::FLOAT, &[3]), vector(&[-1]), vector(&[1])])
        .fails(Code::InvalidArgument);
}
