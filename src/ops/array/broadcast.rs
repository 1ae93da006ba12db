//! Repeating elements: tiles, broadcasts, and what broadcasting means for shapes.

use super::shape::of_type;
use crate::math::gradients::{shape_of, typed};
use crate::movement::{Region, Writer, broadcast, row_major};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, bail, dim, ensure};

static TILE: Op = Op {
    name: "Tile",
    shape: tile_shape,
    kernels: &[Kernel::native(tile)],
    lower: Some(lower_tile),
    gradient: Gradient::Fn(tile_gradient),
    ..Op::PURE
};
static BROADCAST_TO: Op = Op {
    name: "BroadcastTo",
    shape: broadcast_to_shape,
    kernels: &[Kernel::native(|context| {
        let shape = context.output_shape(0)?.clone();
        let result = broadcast(context.input(0)?, shape)?;
        context.set_output(0, result)
    })],
    lower: Some(|context| {
        let (input, dims) = (context.input(0)?, context.constant_i64s(1)?);
        let result = context.builder.broadcast_to(input, &dims)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(broadcast_to_gradient),
    ..Op::PURE
};
static BROADCAST_ARGS: Op = Op {
    name: "BroadcastArgs",
    shape: broadcast_args_shape,
    kernels: &[Kernel::native(broadcast_args)],
    lower: Some(crate::lowering::by_value),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static BROADCAST_GRADIENT_ARGS: Op = Op {
    name: "BroadcastGradientArgs",
    shape: |context| {
        context.input_with_rank(0, 1)?;
        context.input_with_rank(1, 1)?;
        context.set_output(0, PartialShape::of_rank(1));
        context.set_output(1, PartialShape::of_rank(1));
        Ok(())
    },
    kernels: &[Kernel::native(broadcast_gradient_args)],
    lower: Some(crate::lowering::by_value),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&TILE, &BROADCAST_TO, &BROADCAST_ARGS, &BROADCAST_GRADIENT_ARGS];

fn tile_shape(context: &mut ShapeContext) -> Result<()> {
    let (input, multiples) = (context.input(0), context.input_with_rank(1, 1)?);
    let rank = input.rank().or(usize::try_from(multiples.dim(0)).ok());
    let Some(rank) = rank else { return Ok(()) };
    let input = input.with_rank(rank)?;
    ensure!(
        multiples.dim(0) < 0 || multiples.dim(0) == rank as i64,
        InvalidArgument,
        "Expected multiples argument to be a vector of length {rank} but got length {}",
        multiples.dim(0)
    );
    let times = context.input_as_shape(1)?;
    let values = context.input_as_i64s(1)?.unwrap_or_default();
    if let Some(bad) = values.iter().find(|value| **value < 0) {
        bail!(InvalidArgument, "Expected multiples[0] >= 0, but got {bad}");
    }
    let dims: Vec<i64> = (0..rank as i64)
        .map(|axis| {
            if times.rank().is_some() {
                dim::mul(input.dim(axis), times.dim(axis))
            } else {
                Ok(dim::UNKNOWN)
            }
        })
        .collect::<Result<_>>()?;
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn tile(context: &mut KernelContext) -> Result<()> {
    let times = context.input_i64s(1)?;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    if input.shape() == &shape {
        let input = context.take_input(0)?;
        return context.set_output(0, input);
    }
    // Seen with an axis of repetitions before each axis, both sides are strided regions.
    let (to, from) = (row_major(shape.dims()), row_major(input.dims()));
    let (mut dims, mut to_strides, mut from_strides) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..shape.rank() {
        let extent = input.dims()[axis];
        dims.extend([times[axis], extent]);
        to_strides.extend([extent * to[axis], to[axis]]);
        from_strides.extend([0, from[axis]]);
    }
    let mut writer = Writer::new(input.dtype(), shape)?;
    let source = Region {
        offset: 0,
        strides: &from_strides,
    };
    writer.write(
        &dims,
        Region {
            offset: 0,
            strides: &to_strides,
        },
        input,
        source,
    )?;
    context.set_output(0, writer.finish()?)
}

fn lower_tile(context: &mut LowerContext) -> Result<()> {
    let (input, dims, times) = (
        context.input(0)?,
        context.input_dims(0)?,
        context.constant_i64s(1)?,
    );
    let (mut wide, mut kept, mut result) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, (&extent, &times)) in dims.iter().zip(&times).enumerate() {
        wide.extend([times, extent]);
        kept.push(2 * axis as i64 + 1);
        result.push(extent * times);
    }
    let repeated = context.builder.broadcast_in_dim(input, &wide, &kept)?;
    let result = context.builder.reshape(repeated, &result)?;
    context.set_output(0, result);
    Ok(())
}

/// Seen as `[times, extent]` for each axis, the gradient is summed over the times.
fn tile_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, multiples) = (context.input(0)?, context.input(1)?);
    let dims = shape_of(context, input)?;
    let times = if context.dtype(multiples) == DataType::INT32 {
        multiples
    } else {
        let attrs = ff_op::Attrs::new()
            .with("SrcT", DataType::INT64)
            .with("DstT", DataType::INT32);
        context.op("Cast", &[multiples], attrs)?
    };
    let attrs = typed(DataType::INT32).with("N", 2i64).with("axis", 1i64);
    let pairs = context.op("Pack", &[times, dims], attrs)?;
    let flat = context.int32s(&[-1])?;
    let split = context.op(
        "Reshape",
        &[pairs, flat],
        typed(DataType::INT32).with("Tshape", DataType::INT32),
    )?;
    let attrs = typed(context.dtype(incoming)).with("Tshape", DataType::INT32);
    let seen = context.op("Reshape", &[incoming, split], attrs)?;
    let (zero, two) = (context.int32(0)?, context.int32(2)?);
    let size = context.op(
        "Size",
        &[split],
        typed(DataType::INT32).with("out_type", DataType::INT32),
    )?;
    let axes = context.op(
        "Range",
        &[zero, size, two],
        ff_op::Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let attrs = typed(context.dtype(incoming)).with("Tidx", DataType::INT32);
    let sum = context.op("Sum", &[seen, axes], attrs)?;
    context.set(0, sum);
    Ok(())
}

fn broadcast_to_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank_at_most(1, 1)?;
    let (input, wanted) = (context.input(0), context.input_as_shape(1)?);
    if let (Some(input_dims), Some(dims)) = (input.dims(), wanted.dims()) {
        ensure!(
            input_dims.len() <= dims.len(),
            InvalidArgument,
            "Rank of input ({}) must be no greater than rank of output shape ({}).",
            input_dims.len(),
            dims.len()
        );
        let missing = dims.len() - input_dims.len();
        for (&from, &to) in input_dims.iter().zip(&dims[missing..]) {
            ensure!(
                from < 0 || to < 0 || from == to || from == 1,
                InvalidArgument,
                "Incompatible shapes: {input} vs. {wanted}"
            );
        }
    }
    context.set_output(0, wanted);
    Ok(())
}

fn broadcast_to_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    crate::math::gradients::set_reduced(context, 0, incoming)
}

fn broadcast_args_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (
        context.input_with_rank(0, 1)?.dim(0),
        context.input_with_rank(1, 1)?.dim(0),
    );
    context.set_output(
        0,
        PartialShape::new(&[if a < 0 || b < 0 { dim::UNKNOWN } else { a.max(b) }]),
    );
    Ok(())
}

/// The extents of two shapes, aligned at the end with ones in front.
fn aligned(a: &[i64], b: &[i64]) -> Vec<(i64, i64)> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[i64], axis: usize| {
        (axis + dims.len())
            .checked_sub(rank)
            .map_or(1, |index| dims[index])
    };
    (0..rank).map(|axis| (extent(a, axis), extent(b, axis))).collect()
}

fn check(pairs: &[(i64, i64)], a: &[i64], b: &[i64]) -> Result<()> {
    let text = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    ensure!(
        pairs.iter().all(|(x, y)| x == y || *x == 1 || *y == 1),
        InvalidArgument,
        "Incompatible shapes: [{}] vs. [{}]",
        text(a),
        text(b)
    );
    Ok(())
}

fn broadcast_args(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (context.input_i64s(0)?, context.input_i64s(1)?);
    let pairs = aligned(&a, &b);
    check(&pairs, &a, &b)?;
    let dims: Vec<i64> = pairs.iter().map(|&(x, y)| if x == 1 { y } else { x }).collect();
    let result = of_type(context.output_type(0), Shape::vector(dims.len()), &dims)?;
    context.set_output(0, result)
}

/// For each shape, the axes along which its gradient is summed: those that were repeated, and those where both are 1.
fn broadcast_gradient_args(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (context.input_i64s(0)?, context.input_i64s(1)?);
    let pairs = aligned(&a, &b);
    check(&pairs, &a, &b)?;
    let same = a == b;
    for index in 0..2 {
        let summed = |&(x, y): &(i64, i64)| (if index == 0 { x } else { y }) == 1;
        let axes: Vec<i64> = (0..pairs.len() as i64)
            .filter(|&axis| !same && summed(&pairs[axis as usize]))
            .collect();
        let result = of_type(context.output_type(index), Shape::vector(axes.len()), &axes)?;
        context.set_output(index, result)?;
    }
    Ok(())
}

crate::op_cases! {
    broadcast_shapes: Case::op("BroadcastArgs").inputs([vector(&[2, 1]), vector(&[1, 5, 1, 3])])
        .gives(vector(&[1, 5, 2, 3]));
    broadcast_misfits: Case::op("BroadcastArgs").inputs([vector(&[2]), vector(&[3])]).fails(Code::InvalidArgument);
    summed_axes: Case::op("BroadcastGradientArgs").inputs([vector(&[2, 1, 1]), vector(&[4, 1, 3, 1])]);
    summed_axes_equal: Case::op("BroadcastGradientArgs").inputs([vector(&[2, 1]), vector(&[2, 1])]);
    summed_axes_zero: Case::op("BroadcastGradientArgs").inputs([vector(&[0, 1]), vector(&[1, 1])]);
    summed_misfit: Case::op("BroadcastGradientArgs").inputs([vector(&[2i64]), vector(&[3i64])]).fails(Code::InvalidArgument);
    tiled_twice: Case::op("Tile").inputs([counting(DataType::INT16, &[2, 2]), vector(&[2, 3])]);
    tiled_strings: Case::op("Tile").inputs([counting(DataType::STRING, &[2]), vector(&[2i64])]);
    tiled_away: Case::op("Tile").inputs([counting(DataType::INT32, &[2, 2]), vector(&[0, 3])]);
    tiled_scalar: Case::op("Tile").inputs([scalar(5), vector::<i32>(&[])]).gives(scalar(5));
    tiled_negative: Case::op("Tile").inputs([counting(DataType::INT32, &[2]), vector(&[-1])]).fails(Code::InvalidArgument);
    tiled_short: Case::op("Tile").inputs([counting(DataType::INT32, &[2, 2]), vector(&[2])]).fails(Code::InvalidArgument);
    broadcast_up: Case::op("BroadcastTo").inputs([counting(DataType::DOUBLE, &[3, 1]), vector(&[2, 3, 2])]);
    broadcast_empty: Case::op("BroadcastTo").inputs([counting(DataType::DOUBLE, &[1]), vector(&[0])]);
    broadcast_misfit: Case::op("BroadcastTo").inputs([counting(DataType::DOUBLE, &[3]), vector(&[2])])
        .fails(Code::InvalidArgument);
}
