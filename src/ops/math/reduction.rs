//! Reductions along axes: sums, means, products, extremes, logic; and the places of extremes.

use super::gradients::{binary, shape_of, typed};
use ff_hlo::{Builder, Direction, Opcode};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext};
use ff_tensor::{Bool, DataType, Element, PartialShape, Result, Shape, Tensor, bail, ensure};

/// A reduction by one opcode.
macro_rules! row {
    ($name:literal, $opcode:ident, $gradient:expr) => {
        Op {
            name: $name,
            shape: reduction_shape,
            kernels: &[Kernel::FROM_LOWERING],
            lower: Some(|context| {
                lower_reduction(context, |builder, x, axes| {
                    builder.reduce_by(Opcode::$opcode, x, axes)
                })
            }),
            gradient: $gradient,
            ..Op::PURE
        }
    };
}

static SUM: Op = Op {
    lower: Some(|context| lower_reduction(context, sum)),
    ..row!("Sum", Add, Gradient::Fn(sum_gradient))
};
static MEAN: Op = Op {
    lower: Some(|context| lower_reduction(context, mean)),
    ..row!("Mean", Add, Gradient::Fn(mean_gradient))
};
static PROD: Op = row!("Prod", Multiply, Gradient::Missing);
static MAX: Op = row!("Max", Maximum, Gradient::Fn(extreme_gradient));
static MIN: Op = row!("Min", Minimum, Gradient::Fn(extreme_gradient));
static ALL: Op = row!("All", And, Gradient::NotDifferentiable);
static ANY: Op = row!("Any", Or, Gradient::NotDifferentiable);
static EUCLIDEAN_NORM: Op = Op {
    lower: Some(|context| lower_reduction(context, euclidean_norm)),
    ..row!("EuclideanNorm", Add, Gradient::Missing)
};
static ARG_MAX: Op = Op {
    name: "ArgMax",
    shape: arg_shape,
    kernels: &[Kernel::native(|context| arg_extreme(context, true))],
    lower: Some(super::lower_count::arg_extreme),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static ARG_MIN: Op = Op {
    name: "ArgMin",
    kernels: &[Kernel::native(|context| arg_extreme(context, false))],
    ..ARG_MAX
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SUM,
    &MEAN,
    &PROD,
    &MAX,
    &MIN,
    &ALL,
    &ANY,
    &EUCLIDEAN_NORM,
    &ARG_MAX,
    &ARG_MIN,
];

/// The axes that a value of the second input names, in order. INVALID_ARGUMENT when one is out of range or named twice.
fn resolve_axes(axes: &[i64], rank: usize) -> Result<Vec<i64>> {
    let mut chosen = vec![false; rank];
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            InvalidArgument,
            "Invalid reduction dimension ({axis} for input with {rank} dimension(s)"
        );
        ensure!(
            !std::mem::replace(&mut chosen[place as usize], true),
            InvalidArgument,
            "Invalid reduction arguments: Axes contains duplicate dimension: {place}"
        );
    }
    Ok((0..rank as i64).filter(|&axis| chosen[axis as usize]).collect())
}

/// Shape of a reduction: axes go, or become 1 with `keep_dims`.
pub fn reduction_shape(context: &mut ShapeContext) -> Result<()> {
    let keep = context.attrs().bool("keep_dims")?;
    let input = context.input(0);
    context.input_with_rank_at_most(1, 1)?;
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some(axes) = context.input_value(1) else {
        if keep {
            context.set_output(0, PartialShape::of_rank(dims.len()));
        } else if let Some([count]) = context.input(1).dims().filter(|_| dims.len() == 1)
            && *count == 1
        {
            context.set_output(0, PartialShape::scalar());
        }
        return Ok(());
    };
    let axes = resolve_axes(&axes.to_i64_vec()?, dims.len())?;
    let mut result = Vec::new();
    for (axis, &extent) in dims.iter().enumerate() {
        match axes.contains(&(axis as i64)) {
            true if keep => result.push(1),
            true => {}
            false => result.push(extent),
        }
    }
    context.set_output(0, PartialShape::new(&result));
    Ok(())
}

type Reduce = fn(&mut Builder, ff_hlo::Op, &[i64]) -> Result<ff_hlo::Op>;

fn lower_reduction(context: &mut LowerContext, reduce: Reduce) -> Result<()> {
    let dims = context.input_dims(0)?;
    let axes = resolve_axes(&context.constant_i64s(1)?, dims.len())?;
    let input = context.input(0)?;
    let mut result = reduce(context.builder, input, &axes)?;
    if context.attrs().bool("keep_dims")? {
        let kept: Vec<i64> = dims
            .iter()
            .enumerate()
            .map(|(axis, &n)| if axes.contains(&(axis as i64)) { 1 } else { n })
            .collect();
        result = context.builder.reshape(result, &kept)?;
    }
    context.set_output(0, result);
    Ok(())
}

/// The type in which a sum of this type is accumulated.
fn accumulator(dtype: DataType) -> DataType {
    if matches!(dtype, DataType::HALF | DataType::BFLOAT16) {
        DataType::FLOAT
    } else {
        dtype
    }
}

fn sum(builder: &mut Builder, x: ff_hlo::Op, axes: &[i64]) -> Result<ff_hlo::Op> {
    let dtype = builder.dtype(x);
    let wide = builder.convert(x, accumulator(dtype))?;
    let sum = builder.reduce_sum(wide, axes)?;
    builder.convert(sum, dtype)
}

fn mean(builder: &mut Builder, x: ff_hlo::Op, axes: &[i64]) -> Result<ff_hlo::Op> {
    let (dtype, dims) = (builder.dtype(x), builder.dims(x).to_vec());
    let count: i64 = axes.iter().map(|&axis| dims[axis as usize]).product();
    let wide = builder.convert(x, accumulator(dtype))?;
    let sum = builder.reduce_sum(wide, axes)?;
    if dtype.is_integer() && count == 0 {
        return Ok(sum);
    }
    let count = builder.scalar_like(count as f64, sum)?;
    let mean = builder.divide(sum, count)?;
    builder.convert(mean, dtype)
}

fn euclidean_norm(builder: &mut Builder, x: ff_hlo::Op, axes: &[i64]) -> Result<ff_hlo::Op> {
    let conjugate = builder.conjugate(x)?;
    let square = builder.multiply(x, conjugate)?;
    let total = sum(builder, square, axes)?;
    let dtype = builder.dtype(total);
    if !dtype.is_integer() {
        return builder.unary(Opcode::Sqrt, total);
    }
    // The root of a sum that has wrapped around to below zero is what a conversion makes of NaN on x86: the least number of
    // the wide types, 0 of the narrow ones.
    let wide = builder.convert(total, DataType::DOUBLE)?;
    let root = builder.unary(Opcode::Sqrt, wide)?;
    let root = builder.convert(root, dtype)?;
    let least = match dtype {
        DataType::INT32 | DataType::INT64 => builder.extreme_scalar(dtype, false)?,
        DataType::INT8 | DataType::INT16 => builder.scalar(dtype, 0.0)?,
        _ => return Ok(root),
    };
    let zero = builder.scalar_like(0.0, total)?;
    let negative = builder.compare(Direction::Lt, total, zero)?;
    let dims = builder.dims(total).to_vec();
    let least = builder.broadcast_scalar(least, &dims)?;
    builder.select(negative, least, root)
}

fn arg_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    context.input_with_rank(1, 0)?;
    let Some(dims) = input.dims() else { return Ok(()) };
    if dims.len() <= 1 {
        context.set_output(0, PartialShape::scalar());
        return Ok(());
    }
    let Some(axis) = context.input_as_scalar(1)? else {
        context.set_output(0, PartialShape::of_rank(dims.len() - 1));
        return Ok(());
    };
    let rank = dims.len() as i64;
    let place = if axis < 0 { axis + rank } else { axis };
    ensure!(
        (0..rank).contains(&place),
        InvalidArgument,
        "Dimension must be in the range [{}, {rank}), got {axis}",
        -rank
    );
    let mut rest = dims.to_vec();
    rest.remove(place as usize);
    context.set_output(0, PartialShape::new(&rest));
    Ok(())
}

fn arg_extreme(context: &mut KernelContext, largest: bool) -> Result<()> {
    let shape = context.input(0)?.shape().clone();
    let axis = context.input_i64(1)?;
    let rank = shape.rank() as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "Expected dimension in the range [{}, {rank}), but got {axis}",
        -rank
    );
    let axis = shape.axis(axis)?;
    let name = if largest { "ArgMax" } else { "ArgMin" };
    ensure!(
        shape.dim(axis) > 0,
        InvalidArgument,
        "Reduction axis {axis} is empty in shape {shape} ({name})"
    );
    let places = crate::match_type!(
        context.input(0)?.dtype(),
        (f32, f64, i32, i64, ff_tensor::f16, ff_tensor::bf16, i8, i16, u8, u16, u32, u64),
        T => Ok(arg_places::<T>(context.input_slice(0)?, &shape, axis, |a, b| if largest { a > b } else { a < b }))
    )
    .or_else(|error| match context.input_slice::<Bool>(0) {
        Ok(values) => {
            let bytes: Vec<u8> = crate::wide::collected(values.iter().map(|value| u8::from(value.get())))?;
            Ok(arg_places(&bytes, &shape, axis, |a, b| if largest { a > b } else { a < b }))
        }
        Err(_) => Err(error),
    })?;
    let output_shape = context.output_shape(0)?.clone();
    let output = match context.output_type(0) {
        DataType::INT64 => Tensor::from_slice(output_shape, &places)?,
        DataType::INT32 => narrow(output_shape, &places, |place| place as i32)?,
        DataType::INT16 => narrow(output_shape, &places, |place| place as i16)?,
        DataType::UINT16 => narrow(output_shape, &places, |place| place as u16)?,
        other => bail!(Unimplemented, "{name} with output type {other}"),
    };
    context.set_output(0, output)
}

fn narrow<T: Element>(shape: Shape, places: &[i64], convert: impl Fn(i64) -> T) -> Result<Tensor> {
    Tensor::from_slice(
        shape,
        &crate::wide::collected(places.iter().map(|&place| convert(place)))?,
    )
}

/// For each line along the axis, where the first element is that beats all others.
fn arg_places<T: Copy>(values: &[T], shape: &Shape, axis: usize, beats: impl Fn(T, T) -> bool) -> Vec<i64> {
    let count = shape.dim(axis);
    let inner: usize = shape.dims()[axis + 1..].iter().map(|&n| n as usize).product();
    let outer: usize = shape.dims()[..axis].iter().map(|&n| n as usize).product();
    let mut places = Vec::with_capacity(outer * inner);
    for line in 0..outer {
        for column in 0..inner {
            let start = line * count * inner + column;
            let mut best = 0;
            for place in 1..count {
                if beats(values[start + place * inner], values[start + best * inner]) {
                    best = place;
                }
            }
            places.push(best as i64);
        }
    }
    places
}

/// The incoming gradient spread over the input's shape.
fn spread(context: &mut GradientContext, incoming: OutputRef) -> Result<(OutputRef, OutputRef)> {
    let (input, axes) = (context.input(0)?, context.input(1)?);
    let dims = shape_of(context, input)?;
    let kept = if context.attrs().bool("keep_dims")? {
        incoming
    } else {
        let kept_dims = kept_dims(context, dims, axes)?;
        let attrs = typed(context.dtype(incoming)).with("Tshape", DataType::INT32);
        context.op("Reshape", &[incoming, kept_dims], attrs)?
    };
    let attrs = typed(context.dtype(incoming)).with("Tidx", DataType::INT32);
    Ok((context.op("BroadcastTo", &[kept, dims], attrs)?, kept))
}

/// The input's extents with 1 at the reduced axes: `DynamicStitch([range, axes], [dims, ones])`.
fn kept_dims(context: &mut GradientContext, dims: OutputRef, axes: OutputRef) -> Result<OutputRef> {
    let int = |context: &mut GradientContext, value: i32| context.constant(Tensor::scalar(value)?);
    let (zero, one) = (int(context, 0)?, int(context, 1)?);
    let axes = if context.dtype(axes) == DataType::INT32 {
        axes
    } else {
        let attrs = ff_op::Attrs::new()
            .with("SrcT", DataType::INT64)
            .with("DstT", DataType::INT32);
        context.op("Cast", &[axes], attrs)?
    };
    let flat = context.constant(Tensor::vector(&[-1i32])?)?;
    let attrs = typed(DataType::INT32).with("Tshape", DataType::INT32);
    let axes = context.op("Reshape", &[axes, flat], attrs)?;
    let rank = context.op(
        "Size",
        &[dims],
        typed(DataType::INT32).with("out_type", DataType::INT32),
    )?;
    let summed = binary(context, "AddV2", axes, rank)?;
    let axes = binary(context, "FloorMod", summed, rank)?;
    let range = context.op(
        "Range",
        &[zero, rank, one],
        ff_op::Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let ones = context.op("OnesLike", &[axes], typed(DataType::INT32))?;
    context.op(
        "DynamicStitch",
        &[range, axes, dims, ones],
        typed(DataType::INT32).with("N", 2i64),
    )
}

fn sum_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (gradient, _) = spread(context, incoming)?;
    context.set(0, gradient);
    Ok(())
}

fn mean_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (gradient, _) = spread(context, incoming)?;
    let (input, output) = (context.input(0)?, context.output(0));
    let mut sizes = Vec::new();
    for value in [input, output] {
        let attrs = typed(context.dtype(value)).with("out_type", DataType::INT32);
        sizes.push(context.op("Size", &[value], attrs)?);
    }
    let one = context.constant(Tensor::scalar(1i32)?)?;
    let outputs = binary(context, "Maximum", sizes[1], one)?;
    let factor = binary(context, "FloorDiv", sizes[0], outputs)?;
    let attrs = ff_op::Attrs::new()
        .with("SrcT", DataType::INT32)
        .with("DstT", context.dtype(gradient));
    let factor = context.op("Cast", &[factor], attrs)?;
    let gradient = binary(context, "RealDiv", gradient, factor)?;
    context.set(0, gradient);
    Ok(())
}

/// The gradient goes in equal parts to all elements that equal the extreme.
fn extreme_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, output, axes) = (context.input(0)?, context.output(0), context.input(1)?);
    let (gradient, _) = spread(context, incoming)?;
    let (extreme, _) = spread(context, output)?;
    let attrs = typed(context.dtype(input)).with("incompatible_shape_error", true);
    let chosen = context.op("Equal", &[input, extreme], attrs)?;
    let dtype = context.dtype(gradient);
    let attrs = ff_op::Attrs::new()
        .with("SrcT", DataType::BOOL)
        .with("DstT", dtype);
    let chosen = context.op("Cast", &[chosen], attrs)?;
    let attrs = typed(dtype)
        .with("Tidx", context.dtype(axes))
        .with("keep_dims", context.attrs().bool("keep_dims")?);
    let count = context.op("Sum", &[chosen, axes], attrs)?;
    let (count, _) = spread(context, count)?;
    let share = binary(context, "RealDiv", chosen, count)?;
    let gradient = binary(context, "Mul", share, gradient)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    along_rows: family(&["Sum", "Mean", "Prod"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 1.0]), vector(&[1])])
    });
    extremes: family(&["Max", "Min"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 1.0]), vector(&[0i64])]).attr("keep_dims", true)
    });
    everything: family(&["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 2, 2], &[1.0, -2.0, 3.0, 4.0, 5.0, 0.5, -1.0, 2.0]), vector(&[0, -1, 1])])
    });
    lengths_of_integers: family(&["EuclideanNorm"], INTEGERS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4, 2], &[3.0, 4.0, 5.0, 7.0, 100.0, 100.0, 9.0, 7.0]), vector(&[1])])
    });
    length_that_wraps_around: Case::op("EuclideanNorm").inputs([vector(&[46_341, 0]), vector(&[0])]).gives(scalar(i32::MIN));
    over_no_axis: family(&["Sum", "Max"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, -2.0]), vector::<i32>(&[])])
    });
    of_nothing: family(&["Sum", "Mean", "Prod", "Max", "Min"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 0], &[]), vector(&[1])])
    });
    of_nan: family(&["Max", "Min"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 2], &[f64::NAN, 1.0, 1.0, f64::NAN]), scalar(1)])
    });
    truths: family(&["All", "Any"], &[DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 2], &[1.0, 0.0, 1.0, 1.0]), vector(&[1])])
    });
    truths_of_nothing: family(&["All", "Any"], &[DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[0, 2], &[]), vector(&[0])])
    });
    axis_outside: family(&["Sum", "Mean", "Prod", "Max", "Min"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, 2.0]), vector(&[1])]).fails(Code::InvalidArgument)
    });
    truth_axis_outside: family(&["All", "Any"], &[DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, 0.0]), vector(&[-2])]).fails(Code::InvalidArgument)
    });
    axis_twice: Case::op("Sum").inputs([t(&[1, 2], &[1.0f32, 2.0]), vector(&[1, -1])]).fails(Code::InvalidArgument);
    places: family(&["ArgMax", "ArgMin"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 3.0, 3.0, 1.0, 5.0, 1.0]), scalar(-1)])
    });
    places_in_32_bits: family(&["ArgMax", "ArgMin"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 3.0, 3.0, 1.0, 5.0, 1.0]), scalar(0i64)]).attr("output_type", DataType::INT32)
    });
    place_outside: Case::op("ArgMax").inputs([vector(&[1.0f32, 2.0]), scalar(1)]).fails(Code::InvalidArgument);
    place_in_nothing: Case::op("ArgMax").inputs([t::<f32>(&[0], &[]), scalar(0)]).fails(Code::InvalidArgument);
}
