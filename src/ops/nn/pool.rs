//! Pooling over windows: largest and mean values, with gradients.

use super::geometry::{Axis, Format, Padding, axis, output_extent};
use ff_hlo::{ArrayShape, Builder, ComputationId, Direction, Op as HloOp, Opcode, Window, WindowDimension};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result};

static MAX_POOL: Op = Op {
    name: "MaxPool",
    shape: |context| shape(context, 2),
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| lower_max(context, 2)),
    gradient: Gradient::Fn(max_gradient),
    ..Op::PURE
};
static MAX_POOL_3D: Op = Op {
    name: "MaxPool3D",
    shape: |context| shape(context, 3),
    lower: Some(|context| lower_max(context, 3)),
    gradient: Gradient::Missing,
    ..MAX_POOL
};
static AVG_POOL: Op = Op {
    name: "AvgPool",
    lower: Some(|context| lower_avg(context, 2)),
    gradient: Gradient::Fn(avg_gradient),
    ..MAX_POOL
};
static AVG_POOL_3D: Op = Op {
    name: "AvgPool3D",
    shape: |context| shape(context, 3),
    lower: Some(|context| lower_avg(context, 3)),
    gradient: Gradient::Missing,
    ..MAX_POOL
};
static MAX_POOL_GRAD: Op = Op {
    name: "MaxPoolGrad",
    shape: max_grad_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_max_grad),
    gradient: Gradient::Missing,
    ..Op::PURE
};
static AVG_POOL_GRAD: Op = Op {
    name: "AvgPoolGrad",
    shape: avg_grad_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_avg_grad),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &MAX_POOL,
    &MAX_POOL_3D,
    &AVG_POOL,
    &AVG_POOL_3D,
    &MAX_POOL_GRAD,
    &AVG_POOL_GRAD,
];

fn shape(context: &mut ShapeContext, spatial: usize) -> Result<()> {
    let input = context.input_with_rank(0, spatial + 2)?;
    let format = Format::of(context.attrs(), spatial)?;
    let windows = format.spatial_of(context.attrs(), "ksize", false)?;
    let strides = format.spatial_of(context.attrs(), "strides", false)?;
    let padding = Padding::of(context.attrs(), format)?;
    let mut extents = Vec::with_capacity(spatial);
    for i in 0..spatial {
        extents.push(output_extent(
            &padding,
            i,
            input.dim(format.axis(i) as i64),
            windows[i],
            strides[i],
            1,
        )?);
    }
    context.set_output(
        0,
        format.shape(input.dim(0), &extents, input.dim(format.channels() as i64)),
    );
    Ok(())
}

/// The geometry of each spatial axis, and HLO's window over all axes.
fn window(attrs: &Attrs, format: Format, input: &[i64]) -> Result<(Vec<Axis>, Window)> {
    let windows = format.spatial_of(attrs, "ksize", false)?;
    let strides = format.spatial_of(attrs, "strides", false)?;
    let padding = Padding::of(attrs, format)?;
    let mut all: Window = input.iter().map(|_| WindowDimension::new(1)).collect();
    let mut axes = Vec::new();
    for i in 0..format.spatial {
        let place = format.axis(i);
        let geometry = axis(&padding, i, input[place], windows[i], strides[i], 1)?;
        all[place] = WindowDimension {
            stride: geometry.stride,
            padding_low: geometry.low,
            padding_high: geometry.high,
            ..WindowDimension::new(geometry.window)
        };
        axes.push(geometry);
    }
    Ok((axes, all))
}

fn lower_max(context: &mut LowerContext, spatial: usize) -> Result<()> {
    let (input, dims) = (context.input(0)?, context.input_dims(0)?);
    let (_, window) = window(context.attrs(), Format::of(context.attrs(), spatial)?, &dims)?;
    let dtype = context.output_type(0);
    let init = context.builder.identity(Opcode::Maximum, dtype)?;
    let largest = context.builder.reducer(Opcode::Maximum, dtype)?;
    let result = context
        .builder
        .reduce_window(&[input], &[init], largest, window)?;
    context.set_output(0, result);
    Ok(())
}

fn sum_windows(builder: &mut Builder, x: HloOp, window: Window) -> Result<HloOp> {
    let dtype = builder.dtype(x);
    let init = builder.identity(Opcode::Add, dtype)?;
    let add = builder.reducer(Opcode::Add, dtype)?;
    builder.reduce_window(&[x], &[init], add, window)
}

/// How many elements each window has within the input, in the output's shape.
fn counts(builder: &mut Builder, dtype: DataType, input: &[i64], window: &Window) -> Result<HloOp> {
    let ones = builder.full(dtype, input, 1.0)?;
    sum_windows(builder, ones, window.clone())
}

fn lower_avg(context: &mut LowerContext, spatial: usize) -> Result<()> {
    let (input, dims) = (context.input(0)?, context.input_dims(0)?);
    let (axes, window) = window(context.attrs(), Format::of(context.attrs(), spatial)?, &dims)?;
    let dtype = context.output_type(0);
    let wide = if dtype.size() < 4 { DataType::FLOAT } else { dtype };
    let builder = &mut *context.builder;
    let input = builder.convert(input, wide)?;
    let sum = sum_windows(builder, input, window.clone())?;
    let count = if axes.iter().all(|axis| axis.low <= 0 && axis.high <= 0) {
        let count: i64 = axes.iter().map(|axis| axis.window).product();
        builder.scalar(wide, count as f64)?
    } else {
        counts(builder, wide, &dims, &window)?
    };
    let mean = builder.divide(sum, count)?;
    let mean = builder.convert(mean, dtype)?;
    context.set_output(0, mean);
    Ok(())
}

fn pool_attrs(context: &GradientContext) -> Attrs {
    let mut attrs = Attrs::new();
    for name in [
        "T",
        "ksize",
        "strides",
        "padding",
        "explicit_paddings",
        "data_format",
    ] {
        if let Some(value) = context.attrs().get(name) {
            attrs.set(name, value.clone());
        }
    }
    attrs
}

fn max_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input, output) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let attrs = pool_attrs(context);
    let gradient = context.op("MaxPoolGrad", &[input, output, incoming], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn avg_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let dims = crate::math::gradients::shape_of(context, input)?;
    let attrs = pool_attrs(context);
    let gradient = context.op("AvgPoolGrad", &[dims, incoming], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn max_grad_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_with_rank(0, 4)?;
    context.set_output(0, shape);
    Ok(())
}

fn avg_grad_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_as_shape(0)?.with_rank(4)?;
    context.set_output(0, PartialShape::new(shape.dims().unwrap_or(&[])));
    Ok(())
}

/// "The first is at least the second": the earliest of equal values stays selected.
fn at_least(builder: &mut Builder, dtype: DataType) -> Result<ComputationId> {
    builder.computation("at_least", |builder| {
        let a = builder.parameter(0, ArrayShape::scalar(dtype), "a")?;
        let b = builder.parameter(1, ArrayShape::scalar(dtype), "b")?;
        builder.compare(Direction::Ge, a, b)
    })
}

fn lower_max_grad(context: &mut LowerContext) -> Result<()> {
    let (input, incoming, dims) = (context.input(0)?, context.input(2)?, context.input_dims(0)?);
    let (_, window) = window(context.attrs(), Format::of(context.attrs(), 2)?, &dims)?;
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let select = at_least(builder, dtype)?;
    let scatter = builder.reducer(Opcode::Add, dtype)?;
    let zero = builder.scalar(dtype, 0.0)?;
    let result = builder.select_and_scatter(input, incoming, zero, select, scatter, window)?;
    context.set_output(0, result);
    Ok(())
}

/// Each output's share goes to every element of its window: a sum over windows of the spread-out shares.
fn lower_avg_grad(context: &mut LowerContext) -> Result<()> {
    let dims = context.constant_i64s(0)?;
    let incoming = context.input(1)?;
    let format = Format::of(context.attrs(), 2)?;
    let (axes, forward) = window(context.attrs(), format, &dims)?;
    let dtype = context.output_type(0);
    let wide = if dtype.size() < 4 { DataType::FLOAT } else { dtype };
    let builder = &mut *context.builder;
    let incoming = builder.convert(incoming, wide)?;
    let count = counts(builder, wide, &dims, &forward)?;
    let share = builder.divide(incoming, count)?;
    let mut backward: Window = dims.iter().map(|_| WindowDimension::new(1)).collect();
    for (i, axis) in axes.iter().enumerate() {
        let spread = (axis.output - 1) * axis.stride + 1;
        let low = axis.window - 1 - axis.low;
        backward[format.axis(i)] = WindowDimension {
            base_dilation: axis.stride,
            padding_low: low,
            padding_high: axis.input - spread - low + axis.window - 1,
            ..WindowDimension::new(axis.window)
        };
    }
    let result = sum_windows(builder, share, backward)?;
    let result = builder.convert(result, dtype)?;
    context.set_output(0, result);
    Ok(())
}

crate::op_cases! {
    planes: family(&["MaxPool", "AvgPool"], FLOATS, |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 5, 4, 2])).attr("ksize", vec![1i64, 3, 2, 1]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    planes_inside: family(&["MaxPool", "AvgPool"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 5, 4, 2])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    planes_of_integers: family(&["MaxPool"], &INTEGERS[..6], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 4, 1])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    no_planes: family(&["MaxPool", "AvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[0, 4, 4, 1])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    too_few_axes: family(&["MaxPool", "AvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[4, 4])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
            .fails(Code::InvalidArgument)
    });
    volumes: family(&["MaxPool3D", "AvgPool3D"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 4, 3, 2])).attr("ksize", vec![1i64, 2, 2, 2, 1]).attr("strides", vec![1i64, 2, 1, 1, 1]).attr("padding", "SAME")
    });
    volumes_too_small: family(&["MaxPool3D", "AvgPool3D"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 1, 1, 1, 1])).attr("ksize", vec![1i64, 3, 3, 3, 1]).attr("strides", vec![1i64; 5]).attr("padding", "VALID")
            .fails(Code::InvalidArgument)
    });
    gradient_of_max: family(&["MaxPoolGrad"], FLOATS, |op, dtype| {
        let input = numbers(dtype, &[1, 2, 4, 1], &[1.0, 2.0, 9.0, 3.0, 4.0, 4.0, 5.0, 6.0]);
        Case::op(op).inputs([input, numbers(dtype, &[1, 1, 2, 1], &[4.0, 9.0]), numbers(dtype, &[1, 1, 2, 1], &[10.0, 20.0])])
            .attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    gradient_of_max_misfit: Case::op("MaxPoolGrad")
        .inputs([cycle(DataType::FLOAT, &[1, 2, 4, 1]), cycle(DataType::FLOAT, &[1, 1, 2, 1]), cycle(DataType::FLOAT, &[1, 1, 3, 1])])
        .attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
    gradient_of_average: family(&["AvgPoolGrad"], FLOATS, |op, dtype| {
        Case::op(op).inputs([vector(&[1, 5, 4, 1]), cycle(dtype, &[1, 3, 4, 1])])
            .attr("ksize", vec![1i64, 3, 2, 1]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
}
