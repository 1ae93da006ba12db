//! Tensors made from a rule: filled, zeros, ones, ranges, one-hot rows.

use crate::math::number::{Number, Ordered};
use crate::movement::Writer;
use ff_hlo::Direction;
use ff_kernels::math::Real;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes,
};
use ff_tensor::{Bool, DataType, PartialShape, Result, Shape, Tensor, dim, ensure, status};

static FILL: Op = Op {
    name: "Fill",
    shape: |context| {
        context.input_with_rank(0, 1)?;
        context.input_with_rank(1, 0)?;
        let shape = context.input_as_shape(0)?;
        context.set_output(0, shape);
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        let shape = match context.output_shape(0) {
            Ok(shape) => shape.clone(),
            Err(_) => Shape::new(&context.input_i64s(0)?)?,
        };
        let filled = Writer::filled(context.input(1)?, shape)?.finish()?;
        context.set_output(0, filled)
    })],
    lower: Some(|context| {
        let dims = context.constant_i64s(0)?;
        let value = context.input(1)?;
        let result = context.builder.broadcast_scalar(value, &dims)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(fill_gradient),
    ..Op::PURE
};
static ZEROS_LIKE: Op = Op {
    name: "ZerosLike",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        let input = context.input(0)?;
        let zeros = match input.dtype() {
            DataType::VARIANT => crate::list::zeros_like(input)?,
            dtype => Tensor::zeros(dtype, input.shape().clone())?,
        };
        context.set_output(0, zeros)
    })],
    lower: Some(|context| lower_full(context, 0.0)),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static ONES_LIKE: Op = Op {
    name: "OnesLike",
    kernels: &[Kernel::native(ones_like)],
    lower: Some(|context| lower_full(context, 1.0)),
    ..ZEROS_LIKE
};
static RANGE: Op = Op {
    name: "Range",
    shape: range_shape,
    kernels: &[Kernel::native(range)],
    lower: Some(crate::lowering::by_value),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static LIN_SPACE: Op = Op {
    name: "LinSpace",
    shape: |context| {
        for index in 0..3 {
            context.input_with_rank(index, 0)?;
        }
        let count = context.input_as_scalar(2)?;
        ensure!(
            count.is_none_or(|count| count > 0),
            InvalidArgument,
            "Requires num > 0: {}",
            count.unwrap_or(0)
        );
        context.set_output(0, PartialShape::new(&[count.unwrap_or(dim::UNKNOWN)]));
        Ok(())
    },
    kernels: &[Kernel::native(lin_space)],
    lower: Some(crate::lowering::by_value),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static ONE_HOT: Op = Op {
    name: "OneHot",
    shape: one_hot_shape,
    kernels: &[
        Kernel::FROM_LOWERING,
        Kernel {
            priority: 1,
            ..Kernel::native(one_hot_of_any)
                .for_types(&[("T", &[DataType::STRING, DataType::RESOURCE, DataType::VARIANT])])
        },
    ],
    lower: Some(lower_one_hot),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&FILL, &ZEROS_LIKE, &ONES_LIKE, &RANGE, &LIN_SPACE, &ONE_HOT];

/// The sum over all axes.
fn fill_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (zero, one) = (context.int32(0)?, context.int32(1)?);
    let rank = context.op(
        "Rank",
        &[incoming],
        Attrs::new().with("T", context.dtype(incoming)),
    )?;
    let axes = context.op(
        "Range",
        &[zero, rank, one],
        Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let attrs = Attrs::new()
        .with("T", context.dtype(incoming))
        .with("Tidx", DataType::INT32);
    let sum = context.op("Sum", &[incoming, axes], attrs)?;
    context.set(1, sum);
    Ok(())
}

fn ones_like(context: &mut KernelContext) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    if let Ok(values) = output.as_mut_slice::<Bool>() {
        values.fill(Bool::TRUE);
        return context.set_output(0, output);
    }
    crate::match_number!(output.dtype(), T => {
        output.as_mut_slice::<T>()?.fill(T::one());
        Ok(())
    })?;
    context.set_output(0, output)
}

fn lower_full(context: &mut LowerContext, value: f64) -> Result<()> {
    let dims = context.input_dims(0)?;
    let result = context.builder.full(context.output_type(0), &dims, value)?;
    context.set_output(0, result);
    Ok(())
}

/// INVALID_ARGUMENT for a zero step or one in the wrong direction.
fn check_step<T: Ordered>(start: T, limit: T, delta: T) -> Result<()> {
    let zero = T::default();
    ensure!(delta != zero, InvalidArgument, "Requires delta != 0");
    ensure!(
        if delta > zero {
            start <= limit
        } else {
            start >= limit
        },
        InvalidArgument,
        "Requires start {} limit when delta {} 0",
        if delta > zero { "<=" } else { ">=" },
        if delta > zero { ">" } else { "<" }
    );
    Ok(())
}

/// The number of steps, computed as the reference does: in integers for integers, rounded up in `f64` for floats.
fn steps(dtype: DataType, values: [&Tensor; 3]) -> Result<usize> {
    crate::match_real!(dtype, T => {
        let [start, limit, delta]: [T; 3] = [values[0].single()?, values[1].single()?, values[2].single()?];
        check_step(start, limit, delta)
    })?;
    if dtype.is_integer() {
        let wide = |tensor: &Tensor| -> Result<i128> {
            crate::match_integer!(dtype, T => Ok(i128::from(tensor.single::<T>()?)))
        };
        let (start, limit, delta) = (wide(values[0])?, wide(values[1])?, wide(values[2])?);
        let distance = (limit - start).abs();
        let count = (distance + delta.abs() - 1) / delta.abs();
        return usize::try_from(count)
            .map_err(|_| status!(InvalidArgument, "Requires ((limit - start) / delta) to fit"));
    }
    let wide = |tensor: &Tensor| -> Result<f64> {
        crate::match_float!(dtype, T => Ok(Real::to_f64(tensor.single::<T>()?)))
    };
    let count = ((wide(values[1])? - wide(values[0])?) / wide(values[2])?)
        .abs()
        .ceil();
    ensure!(
        count < 9.0e18,
        InvalidArgument,
        "Requires ((limit - start) / delta) <= 9223372036854775807"
    );
    Ok(count as usize)
}

fn range_shape(context: &mut ShapeContext) -> Result<()> {
    for index in 0..3 {
        context.input_with_rank(index, 0)?;
    }
    let values = (
        context.input_value(0),
        context.input_value(1),
        context.input_value(2),
    );
    let count = match &values {
        (Some(start), Some(limit), Some(delta)) => {
            steps(context.attrs().dtype("Tidx")?, [start, limit, delta])? as i64
        }
        _ => dim::UNKNOWN,
    };
    context.set_output(0, PartialShape::new(&[count]));
    Ok(())
}

fn range(context: &mut KernelContext) -> Result<()> {
    let dtype = context.output_type(0);
    let values = [context.input(0)?, context.input(1)?, context.input(2)?];
    let count = steps(dtype, values)?;
    let mut output = context.allocate(dtype, Shape::vector(count))?;
    crate::match_real!(dtype, T => {
        let (mut value, delta): (T, T) = (values[0].single()?, values[2].single()?);
        for slot in output.as_mut_slice::<T>()? {
            *slot = value;
            value = value.add(delta);
        }
        Ok(())
    })?;
    context.set_output(0, output)
}

fn lin_space(context: &mut KernelContext) -> Result<()> {
    let count = context.input_i64(2)?;
    ensure!(count > 0, InvalidArgument, "Requires num > 0: {count}");
    let mut output = context.allocate(context.output_type(0), Shape::vector(count as usize))?;
    crate::match_float!(output.dtype(), T => {
        let (start, stop): (T, T) = (context.input(0)?.single()?, context.input(1)?.single()?);
        let values = output.as_mut_slice::<T>()?;
        let step = Number::div(Number::sub(stop, start), <T as Real>::from_f64((count - 1).max(1) as f64));
        for (index, slot) in values.iter_mut().enumerate() {
            *slot = start.add(step.mul(<T as Real>::from_f64(index as f64)));
        }
        if let (Some(last), true) = (values.last_mut(), count > 1) {
            *last = stop;
        }
        Ok(())
    })?;
    context.set_output(0, output)
}

fn hot_axis(axis: i64, rank: usize) -> Result<usize> {
    ensure!(
        axis == -1 || (0..=rank as i64).contains(&axis),
        InvalidArgument,
        "Expected axis to be -1 or between [0, {rank}]. But received: {axis}"
    );
    Ok(if axis == -1 { rank } else { axis as usize })
}

fn one_hot_shape(context: &mut ShapeContext) -> Result<()> {
    for index in 1..4 {
        context.input_with_rank(index, 0)?;
    }
    let depth = context.input_as_scalar(1)?;
    ensure!(
        depth.is_none_or(|depth| depth >= 0),
        InvalidArgument,
        "depth must be non-negative, got: {}",
        depth.unwrap_or(0)
    );
    let indices = context.input(0);
    let Some(dims) = indices.dims() else { return Ok(()) };
    let axis = hot_axis(context.attrs().int("axis")?, dims.len())?;
    let mut dims = dims.to_vec();
    dims.insert(axis, depth.unwrap_or(dim::UNKNOWN));
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

/// For elements that are no numbers.
fn one_hot_of_any(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let indices = context.input(0)?;
    let axis = hot_axis(context.attrs().int("axis")?, indices.rank())?;
    let depth = shape.dim(axis);
    let inner: i64 = shape.dims()[axis + 1..].iter().product();
    let indices: Vec<i64> = match indices.dtype() {
        DataType::INT8 => crate::wide::collected(indices.as_slice::<i8>()?.iter().map(|&i| i64::from(i)))?,
        DataType::UINT8 => crate::wide::collected(indices.as_slice::<u8>()?.iter().map(|&i| i64::from(i)))?,
        _ => indices.to_i64_vec()?,
    };
    let mut writer = Writer::filled(context.input(3)?, shape)?;
    for (number, &index) in indices.iter().enumerate() {
        if (0..depth as i64).contains(&index) {
            let (outer, rest) = (number / inner as usize, number % inner as usize);
            let place = (outer * depth + index as usize) * inner as usize + rest;
            writer.copy(place, context.input(2)?, 0, 1)?;
        }
    }
    let output = writer.finish()?;
    context.set_output(0, output)
}

fn lower_one_hot(context: &mut LowerContext) -> Result<()> {
    let indices = context.input(0)?;
    let mut dims = context.input_dims(0)?;
    let depth = context.constant_i64s(1)?.first().copied().unwrap_or(0);
    let axis = hot_axis(context.attrs().int("axis")?, dims.len())?;
    dims.insert(axis, depth);
    let (on, off) = (context.input(2)?, context.input(3)?);
    let builder = &mut *context.builder;
    let dtype = builder.dtype(indices);
    let kept: Vec<i64> = (0..dims.len() as i64)
        .filter(|&other| other != axis as i64)
        .collect();
    let indices = builder.broadcast_in_dim(indices, &dims, &kept)?;
    let numbers = builder.iota(dtype, &dims, axis)?;
    let hot = builder.compare(Direction::Eq, indices, numbers)?;
    let (on, off) = (
        builder.broadcast_scalar(on, &dims)?,
        builder.broadcast_scalar(off, &dims)?,
    );
    let result = builder.select(hot, on, off)?;
    context.set_output(0, result);
    Ok(())
}

crate::op_cases! {
    one_hot_of_strings: Case::op("OneHot").inputs([t(&[2, 2], &[0, 2, -1, 1]), scalar(3), strings(&[], &["on"]), strings(&[], &["off"])]);
    one_hot_of_strings_first: Case::op("OneHot").inputs([vector(&[1u8, 0]), scalar(2), strings(&[], &["on"]), strings(&[], &["off"])]).attr("axis", 0i64)
        .gives(strings(&[2, 2], &["off", "on", "on", "off"]));
    filled: Case::op("Fill").inputs([vector(&[2, 1]), scalar(7i64)]).gives(t(&[2, 1], &[7i64, 7]));
    filled_with_nothing: Case::op("Fill").inputs([vector(&[0i64, 3]), strings(&[], &["a"])]);
    filled_negative: Case::op("Fill").inputs([vector(&[-2]), scalar(7i64)]).fails(Code::InvalidArgument);
    zeros: Case::op("ZerosLike").input(counting(DataType::COMPLEX64, &[2]));
    zeros_of_strings: Case::op("ZerosLike").input(strings(&[1], &["a"])).gives(strings(&[1], &[""]));
    ones: Case::op("OnesLike").input(counting(DataType::HALF, &[2, 0]));
    ones_of_bool: Case::op("OnesLike").input(bools(&[2], &[false, true])).gives(bools(&[2], &[true, true]));
    counted: Case::op("Range").inputs([scalar(2), scalar(9), scalar(3)]).gives(vector(&[2, 5, 8]));
    counted_back: Case::op("Range").inputs([scalar(2i64), scalar(-3i64), scalar(-2i64)]).gives(vector(&[2i64, 0, -2]));
    counted_floats: Case::op("Range").inputs([scalar(0.0f32), scalar(1.0f32), scalar(0.1f32)]);
    counted_to_nothing: Case::op("Range").inputs([scalar(2), scalar(2), scalar(1)]).gives(vector::<i32>(&[]));
    counted_away: Case::op("Range").inputs([scalar(2), scalar(0), scalar(1)]).fails(Code::InvalidArgument);
    counted_by_zero: Case::op("Range").inputs([scalar(2), scalar(3), scalar(0)]).fails(Code::InvalidArgument);
    spaced: Case::op("LinSpace").inputs([scalar(0.1f32), scalar(1.0f32), scalar(7)]);
    spaced_one: Case::op("LinSpace").inputs([scalar(0.5f64), scalar(1.0), scalar(1)]).gives(vector(&[0.5f64]));
    spaced_none: Case::op("LinSpace").inputs([scalar(0.5f64), scalar(1.0), scalar(0)]).fails(Code::InvalidArgument);
}
