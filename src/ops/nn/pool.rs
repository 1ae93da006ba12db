//! Pooling over windows: largest and mean values, with gradients.

use super::geometry::{Axis, Format, Padding, axis, inferred_extent, inferred_extents};
use ff_hlo::{ArrayShape, Builder, ComputationId, Direction, Op as HloOp, Opcode, Window, WindowDimension};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, ensure};

static MAX_POOL: Op = Op {
    name: "MaxPool",
    shape: |context| shape(context, 2),
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| lower_max(context, 2)),
    gradient: Gradient::Fn(|context| max_gradient(context, "MaxPoolGrad")),
    ..Op::PURE
};
static MAX_POOL_3D: Op = Op {
    name: "MaxPool3D",
    shape: |context| shape(context, 3),
    lower: Some(|context| lower_max(context, 3)),
    gradient: Gradient::Fn(|context| max_gradient(context, "MaxPool3DGrad")),
    ..MAX_POOL
};
static AVG_POOL: Op = Op {
    name: "AvgPool",
    lower: Some(|context| lower_avg(context, 2)),
    gradient: Gradient::Fn(|context| avg_gradient(context, "AvgPoolGrad")),
    ..MAX_POOL
};
static AVG_POOL_3D: Op = Op {
    name: "AvgPool3D",
    shape: |context| shape(context, 3),
    lower: Some(|context| lower_avg(context, 3)),
    gradient: Gradient::Fn(|context| avg_gradient(context, "AvgPool3DGrad")),
    ..MAX_POOL
};
static MAX_POOL_GRAD: Op = Op {
    name: "MaxPoolGrad",
    shape: max_grad_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_max_grad),
    gradient: Gradient::Fn(|context| second_max_gradient(context, "MaxPoolGradGrad")),
    ..Op::PURE
};
static MAX_POOL_V2: Op = Op {
    name: "MaxPoolV2",
    shape: shape_v2,
    gradient: Gradient::Fn(|context| max_gradient(context, "MaxPoolGradV2")),
    ..MAX_POOL
};
static MAX_POOL_GRAD_V2: Op = Op {
    name: "MaxPoolGradV2",
    gradient: Gradient::Fn(|context| second_max_gradient(context, "MaxPoolGradGradV2")),
    ..MAX_POOL_GRAD
};
static AVG_POOL_GRAD: Op = Op {
    name: "AvgPoolGrad",
    shape: |context| avg_grad_shape(context, 2),
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| lower_avg_grad(context, 2)),
    gradient: Gradient::Fn(|context| second_avg_gradient(context, "AvgPool")),
    ..Op::PURE
};
static AVG_POOL_3D_GRAD: Op = Op {
    name: "AvgPool3DGrad",
    shape: |context| avg_grad_shape(context, 3),
    lower: Some(|context| lower_avg_grad(context, 3)),
    gradient: Gradient::Fn(|context| second_avg_gradient(context, "AvgPool3D")),
    ..AVG_POOL_GRAD
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &MAX_POOL,
    &MAX_POOL_3D,
    &AVG_POOL,
    &AVG_POOL_3D,
    &MAX_POOL_GRAD,
    &AVG_POOL_GRAD,
    &MAX_POOL_V2,
    &MAX_POOL_GRAD_V2,
    &AVG_POOL_3D_GRAD,
];

/// Window extents and strides, with an entry for each axis.
pub struct Sizes {
    windows: Vec<i64>,
    strides: Vec<i64>,
}

impl Sizes {
    /// What the attributes `ksize` and `strides` say.
    pub fn of(attrs: &Attrs) -> Sizes {
        let list = |name| attrs.ints(name).unwrap_or_default().to_vec();
        Sizes {
            windows: list("ksize"),
            strides: list("strides"),
        }
    }

    /// A stride along channels is overlooked where windows are not over channels.
    fn of_windows(mut self, format: Format) -> Sizes {
        if self.depth(format).0 == 1
            && let Some(stride) = self.strides.get_mut(format.channels())
        {
            *stride = 1;
        }
        self
    }

    /// What two inputs say. INVALID_ARGUMENT where one has another number of entries than there are axes.
    pub fn of_inputs(windows: Vec<i64>, strides: Vec<i64>, format: Format) -> Result<Sizes> {
        for (name, list) in [("ksize", &windows), ("strides", &strides)] {
            ensure!(
                list.len() == format.spatial + 2,
                InvalidArgument,
                "Sliding window {name} field must specify {} dimensions",
                format.spatial + 2
            );
        }
        Ok(Sizes { windows, strides })
    }

    /// Window extent and stride of the channels: 1 but for maxima over neighbouring channels.
    fn depth(&self, format: Format) -> (i64, i64) {
        let of = |list: &[i64]| list.get(format.channels()).copied().unwrap_or(1);
        (of(&self.windows), of(&self.strides))
    }

    /// Those of the spatial axes. UNIMPLEMENTED for windows over batch or channels.
    pub fn spatial(&self, format: Format) -> Result<[Vec<i64>; 2]> {
        ensure!(
            [&self.windows, &self.strides]
                .iter()
                .all(|list| list.first().is_none_or(|&batch| batch == 1)),
            Unimplemented,
            "Pooling is not yet supported on the batch dimension."
        );
        ensure!(
            self.depth(format) == (1, 1),
            Unimplemented,
            "Pooling over channels together with width and height is not supported"
        );
        Ok([
            format.spatial_in(&self.windows, "ksize", false)?,
            format.spatial_in(&self.strides, "strides", false)?,
        ])
    }

    /// The window of a maximum over neighbouring channels alone; none when the window is not over channels. UNIMPLEMENTED
    /// when windows overlap, or do not fill the channels.
    fn over_channels(&self, format: Format, dims: &[i64]) -> Result<Option<Window>> {
        let (window, stride) = self.depth(format);
        let alone = self.windows.iter().filter(|&&extent| extent != 1);
        if (window, stride) == (1, 1) || alone.count() != 1 {
            return Ok(None);
        }
        ensure!(
            window == stride && window > 0 && dims[format.channels()] % window == 0,
            Unimplemented,
            "Depthwise max pooling requires the depth window to evenly divide the input depth and to equal the depth stride"
        );
        let mut all: Window = dims.iter().map(|_| WindowDimension::new(1)).collect();
        all[format.channels()] = WindowDimension {
            stride,
            ..WindowDimension::new(window)
        };
        Ok(Some(all))
    }
}

/// The sizes that the second version of a maximum has as inputs.
fn sizes_v2(windows: Vec<i64>, strides: Vec<i64>, format: Format) -> Result<Sizes> {
    let sizes = Sizes::of_inputs(windows, strides, format)?;
    ensure!(
        sizes.windows.iter().all(|&extent| extent > 0),
        InvalidArgument,
        "Sliding window ksize must be positive."
    );
    Ok(sizes.of_windows(format))
}

fn shape(context: &mut ShapeContext, spatial: usize) -> Result<()> {
    let format = Format::of(context.attrs(), spatial)?;
    let windows = format.spatial_of(context.attrs(), "ksize", true)?;
    let strides = format.spatial_of(context.attrs(), "strides", true)?;
    let depth = match context.node().op_name() {
        "MaxPool" => Sizes::of(context.attrs()).of_windows(format).depth(format),
        _ => (1, 1),
    };
    pooled_shape(context, format, &windows, &strides, depth)
}

/// Window extents and strides are inputs.
fn shape_v2(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(1, 1)?;
    context.input_with_rank(2, 1)?;
    let format = Format::of(context.attrs(), 2)?;
    match (context.input_as_i64s(1)?, context.input_as_i64s(2)?) {
        (Some(windows), Some(strides)) => {
            let sizes = sizes_v2(windows, strides, format)?;
            let windows = format.spatial_in(&sizes.windows, "ksize", true)?;
            let strides = format.spatial_in(&sizes.strides, "strides", true)?;
            pooled_shape(context, format, &windows, &strides, sizes.depth(format))
        }
        _ => {
            context.input_with_rank(0, 4)?;
            context.set_output(0, PartialShape::of_rank(4));
            Ok(())
        }
    }
}

fn pooled_shape(
    context: &mut ShapeContext,
    format: Format,
    windows: &[i64],
    strides: &[i64],
    depth: (i64, i64),
) -> Result<()> {
    let input = context.input_with_rank(0, format.spatial + 2)?;
    let padding = Padding::of(context.attrs(), format)?;
    let steps = |i: usize| [windows[i], strides[i], 1];
    let extents = inferred_extents(context, format, &padding, &input, steps)?;
    let mut channels = input.dim(format.channels() as i64);
    if depth != (1, 1) {
        let padding = match padding {
            Padding::Same => Padding::Same,
            _ => Padding::Valid,
        };
        channels = inferred_extent(context, &padding, 0, channels, [depth.0, depth.1, 1])?;
    }
    context.set_output(0, format.shape(input.dim(0), &extents, channels));
    Ok(())
}

/// Window extents and strides of the spatial axes, from attributes. UNIMPLEMENTED for windows over batch or channels.
pub fn windows_of(attrs: &Attrs, format: Format) -> Result<[Vec<i64>; 2]> {
    Sizes::of(attrs).of_windows(format).spatial(format)
}

/// The axis with a window that has no element that is in the padding everywhere: windows may be far larger than images.
fn trimmed(mut axis: Axis) -> Axis {
    if axis.output > 0 && axis.input > 0 {
        let before = (axis.low - (axis.output - 1) * axis.stride).clamp(0, axis.window - 1);
        axis.low -= before;
        axis.window -= before;
        let after = (axis.window - axis.low - axis.input).clamp(0, axis.window - 1);
        axis.high -= after;
        axis.window -= after;
    }
    axis
}

/// The geometry of each spatial axis, and HLO's window over all axes.
fn window(
    attrs: &Attrs,
    format: Format,
    [windows, strides]: [Vec<i64>; 2],
    input: &[i64],
) -> Result<(Vec<Axis>, Window)> {
    let padding = Padding::of(attrs, format)?;
    let mut all: Window = input.iter().map(|_| WindowDimension::new(1)).collect();
    let mut axes = Vec::new();
    for i in 0..format.spatial {
        let place = format.axis(i);
        let geometry = trimmed(axis(&padding, i, input[place], windows[i], strides[i], 1)?);
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
    let format = Format::of(context.attrs(), spatial)?;
    let sizes = match context.num_inputs() {
        3 => sizes_v2(context.constant_i64s(1)?, context.constant_i64s(2)?, format)?,
        _ => Sizes::of(context.attrs()).of_windows(format),
    };
    let window = match sizes.over_channels(format, &dims)? {
        Some(window) => window,
        None => window(context.attrs(), format, sizes.spatial(format)?, &dims)?.1,
    };
    let dtype = context.output_type(0);
    let (init, largest) = match lowest(dtype) {
        Some(lowest) => (
            context.builder.scalar(dtype, lowest)?,
            greater(context.builder, dtype)?,
        ),
        None => (
            context.builder.identity(Opcode::Maximum, dtype)?,
            context.builder.reducer(Opcode::Maximum, dtype)?,
        ),
    };
    let result = context
        .builder
        .reduce_window(&[input], &[init], largest, window)?;
    context.set_output(0, result);
    Ok(())
}

/// What a maximum of floating-point numbers starts from: it is never less, and not-a-number is never greater.
fn lowest(dtype: DataType) -> Option<f64> {
    match dtype {
        DataType::FLOAT => Some(f64::from(f32::MIN)),
        DataType::DOUBLE => Some(f64::MIN),
        DataType::HALF => Some(-65504.0),
        DataType::BFLOAT16 => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// "The second where it is greater, else the first".
fn greater(builder: &mut Builder, dtype: DataType) -> Result<ComputationId> {
    builder.computation("greater", |builder| {
        let a = builder.parameter(0, ArrayShape::scalar(dtype), "a")?;
        let b = builder.parameter(1, ArrayShape::scalar(dtype), "b")?;
        let is_greater = builder.compare(Direction::Gt, b, a)?;
        builder.select(is_greater, b, a)
    })
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
    let format = Format::of(context.attrs(), spatial)?;
    let windows = windows_of(context.attrs(), format)?;
    let (axes, window) = window(context.attrs(), format, windows, &dims)?;
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

/// The attributes that a pooling op and its gradients share.
pub fn pool_attrs(context: &GradientContext) -> Attrs {
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

fn max_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let (incoming, input, output) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let mut attrs = pool_attrs(context);
    let mut inputs = vec![input, output, incoming];
    match op {
        "MaxPool3DGrad" => attrs.set("TInput", context.input_type(0)),
        "MaxPoolGradV2" => inputs.extend([context.input(1)?, context.input(2)?]),
        _ => {}
    }
    let gradient = context.op(op, &inputs, attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// The gradient of a largest value's gradient: inputs and outputs of the forward op take part only by place.
pub fn second_max_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, output) = (context.input(0)?, context.input(1)?);
    let mut attrs = pool_attrs(context);
    attrs.remove("explicit_paddings");
    if op == "MaxPool3DGrad" {
        attrs.set("TInput", context.input_type(0));
    }
    let mut inputs = vec![input, output, incoming];
    for index in 3..context.num_inputs() {
        inputs.push(context.input(index)?);
    }
    let gradient = context.op(op, &inputs, attrs)?;
    for (index, value) in [(0, input), (1, output)] {
        let zeros = crate::math::gradients::unary(context, "ZerosLike", value)?;
        context.set(index, zeros);
    }
    context.set(2, gradient);
    Ok(())
}

fn second_avg_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let attrs = pool_attrs(context);
    let gradient = context.op(op, &[incoming], attrs)?;
    context.set(1, gradient);
    Ok(())
}

fn avg_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let dims = crate::math::gradients::shape_of(context, input)?;
    let attrs = pool_attrs(context);
    let gradient = context.op(op, &[dims, incoming], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn max_grad_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_with_rank(0, 4)?;
    context.set_output(0, shape);
    Ok(())
}

fn avg_grad_shape(context: &mut ShapeContext, spatial: usize) -> Result<()> {
    let shape = context.input_as_shape(0)?.with_rank(spatial + 2)?;
    context.set_output(0, PartialShape::new(shape.dims().unwrap_or(&[])));
    Ok(())
}

/// "The second is not greater than the first": the earliest of equal values stays selected.
fn not_less(builder: &mut Builder, dtype: DataType) -> Result<ComputationId> {
    builder.computation("not_less", |builder| {
        let a = builder.parameter(0, ArrayShape::scalar(dtype), "a")?;
        let b = builder.parameter(1, ArrayShape::scalar(dtype), "b")?;
        let less = builder.compare(Direction::Lt, a, b)?;
        builder.unary(Opcode::Not, less)
    })
}

fn lower_max_grad(context: &mut LowerContext) -> Result<()> {
    let (input, incoming, dims) = (context.input(0)?, context.input(2)?, context.input_dims(0)?);
    let format = Format::of(context.attrs(), 2)?;
    let sizes = match context.num_inputs() {
        5 => Sizes::of_inputs(context.constant_i64s(3)?, context.constant_i64s(4)?, format)?,
        _ => Sizes::of(context.attrs()),
    };
    let (axes, window) = window(context.attrs(), format, sizes.spatial(format)?, &dims)?;
    let mut pooled = dims;
    for (i, axis) in axes.iter().enumerate() {
        pooled[format.axis(i)] = axis.output;
    }
    let given = context.input_dims(1)?;
    ensure!(
        given == pooled,
        InvalidArgument,
        "Expected orig_output shape to be {pooled:?}, but got {given:?}"
    );
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let select = not_less(builder, dtype)?;
    let scatter = builder.reducer(Opcode::Add, dtype)?;
    let zero = builder.scalar(dtype, 0.0)?;
    let result = builder.select_and_scatter(input, incoming, zero, select, scatter, window)?;
    context.set_output(0, result);
    Ok(())
}

/// Each output's share goes to every element of its window: a sum over windows of the spread-out shares.
fn lower_avg_grad(context: &mut LowerContext, spatial: usize) -> Result<()> {
    let dims = context.constant_i64s(0)?;
    let incoming = context.input(1)?;
    let format = Format::of(context.attrs(), spatial)?;
    ensure!(
        dims.len() == spatial + 2,
        InvalidArgument,
        "out_backprop and orig_input_shape must have {} dimensions",
        spatial + 2
    );
    let windows = windows_of(context.attrs(), format)?;
    let (axes, forward) = window(context.attrs(), format, windows, &dims)?;
    let actual = context.input_dims(1)?;
    ensure!(
        actual.len() == spatial + 2,
        InvalidArgument,
        "out_backprop must be {}-dimensional",
        spatial + 2
    );
    let mut along = axes.iter().enumerate();
    if actual.contains(&0) && along.all(|(i, axis)| actual[format.axis(i)] <= axis.output) {
        let zeros = context.builder.full(context.output_type(0), &dims, 0.0)?;
        context.set_output(0, zeros);
        return Ok(());
    }
    ensure!(
        axes.iter()
            .enumerate()
            .all(|(i, axis)| actual[format.axis(i)] == axis.output)
            && actual[0] == dims[0]
            && actual[format.channels()] == dims[format.channels()],
        InvalidArgument,
        "out_backprop has shape {actual:?}, which does not fit an input of shape {dims:?}"
    );
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
    huge_windows: family(&["MaxPool", "AvgPool"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 3, 4, 1])).attr("ksize", vec![1i64, 2147483647, 3, 1]).attr("strides", vec![1i64, 1, 2, 1]).attr("padding", "SAME").without_gradient()
    });
    stride_over_channels: family(&["MaxPool", "AvgPool"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 4, 2])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 3]).attr("padding", "VALID").without_gradient()
    });
    stride_over_channels_as_input: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), vector(&[1, 2, 2, 1]), vector(&[1, 2, 2, 3])])
        .attr("padding", "VALID").without_gradient();
    channels_by_inputs: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), vector(&[1, 1, 1, 2]), vector(&[1, 1, 1, 2])])
        .attr("padding", "VALID").without_gradient();
    batch_by_inputs: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[2, 4, 4, 2]), vector(&[2, 2, 2, 1]), vector(&[1, 2, 2, 1])])
        .attr("padding", "VALID").fails(Code::Unimplemented);
    planes_and_channels_by_inputs: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[2, 4, 4, 2]), vector(&[1, 2, 2, 2]), vector(&[1, 2, 2, 2])])
        .attr("padding", "VALID").fails(Code::Unimplemented);
    no_window_by_inputs: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[2, 4, 4, 2]), vector(&[0, 2, 2, 1]), vector(&[1, 2, 2, 1])])
        .attr("padding", "VALID").fails(Code::InvalidArgument);
    gradient_over_channels: family(&["MaxPoolGrad"], &FLOATS[..1], |op, dtype| Case::op(op)
        .inputs([cycle(dtype, &[1, 4, 4, 2]), cycle(dtype, &[1, 4, 4, 1]), cycle(dtype, &[1, 4, 4, 1])])
        .attr("ksize", vec![1i64, 1, 1, 2]).attr("strides", vec![1i64, 1, 1, 2]).attr("padding", "VALID").fails(Code::Unimplemented));
    gradient_by_inputs_over_batch: Case::op("MaxPoolGradV2")
        .inputs([cycle(DataType::FLOAT, &[2, 4, 4, 2]), cycle(DataType::FLOAT, &[1, 2, 2, 2]), cycle(DataType::FLOAT, &[1, 2, 2, 2])])
        .inputs([vector(&[2, 2, 2, 1]), vector(&[1, 2, 2, 1])]).attr("padding", "VALID").fails(Code::Unimplemented);
    gradient_of_average_of_nothing: family(&["AvgPoolGrad"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 2, 1, 1]), numbers(dtype, &[0, 1, 1, 0], &[])]).attr("ksize", vec![1i64, 3, 2, 1]).attr("strides", vec![1i64, 2, 1, 1])
            .attr("padding", "SAME").gives(numbers(dtype, &[1, 2, 1, 1], &[0.0; 2])).without_gradient()
    });
    gradient_of_max_of_another_output: Case::op("MaxPoolGrad")
        .inputs([cycle(DataType::FLOAT, &[1, 2, 4, 1]), t::<f32>(&[0, 0, 0, 0], &[]), cycle(DataType::FLOAT, &[1, 1, 2, 1])])
        .attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
    planes: family(&["MaxPool", "AvgPool"], FLOATS, |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 5, 4, 2])).attr("ksize", vec![1i64, 3, 2, 1]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    planes_inside: family(&["MaxPool", "AvgPool"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 5, 4, 2])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    planes_of_integers: family(&["MaxPool"], &INTEGERS[..6], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 4, 1])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    over_channels: family(&["MaxPool"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 3, 3, 6])).attr("ksize", vec![1i64, 1, 1, 2]).attr("strides", vec![1i64, 1, 1, 2]).attr("padding", "VALID")
    });
    over_batch: family(&["MaxPool", "AvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[4, 4, 4, 1])).attr("ksize", vec![2i64, 2, 2, 1]).attr("strides", vec![1i64; 4]).attr("padding", "VALID")
            .fails(Code::Unimplemented)
    });
    over_planes_and_channels: family(&["MaxPool", "AvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 4, 6])).attr("ksize", vec![1i64, 2, 2, 2]).attr("strides", vec![1i64, 1, 1, 2]).attr("padding", "VALID")
            .fails(Code::Unimplemented)
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
    not_numbers: family(&["MaxPool"], FLOATS, |op, dtype| {
        let lowest = if dtype == DataType::BFLOAT16 { f64::NEG_INFINITY } else { super::lowest(dtype).unwrap_or_default() };
        Case::op(op).input(numbers(dtype, &[1, 1, 4, 1], &[f64::NAN, 2.0, f64::NAN, f64::NEG_INFINITY])).attr("ksize", vec![1i64, 1, 2, 1])
            .attr("strides", vec![1i64, 1, 2, 1]).attr("padding", "VALID").gives(numbers(dtype, &[1, 1, 2, 1], &[2.0, lowest]))
    });
    gradient_of_not_numbers: family(&["MaxPoolGrad"], FLOATS, |op, dtype| {
        let input = numbers(dtype, &[1, 1, 4, 1], &[f64::NAN, 2.0, 2.0, f64::NAN]);
        Case::op(op).inputs([input, numbers(dtype, &[1, 1, 2, 1], &[2.0, 2.0]), numbers(dtype, &[1, 1, 2, 1], &[10.0, 20.0])])
            .attr("ksize", vec![1i64, 1, 2, 1]).attr("strides", vec![1i64, 1, 2, 1]).attr("padding", "VALID")
            .gives(numbers(dtype, &[1, 1, 4, 1], &[10.0, 0.0, 20.0, 0.0])).without_gradient()
    });
    gradient_of_max_misfit: Case::op("MaxPoolGrad")
        .inputs([cycle(DataType::FLOAT, &[1, 2, 4, 1]), cycle(DataType::FLOAT, &[1, 1, 2, 1]), cycle(DataType::FLOAT, &[1, 1, 3, 1])])
        .attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
    sizes_as_inputs: family(&["MaxPoolV2"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 2]), vector(&[1, 3, 2, 1]), vector(&[1, 2, 1, 1])]).attr("padding", "SAME")
    });
    sizes_of_three: Case::op("MaxPoolV2").inputs([cycle(DataType::FLOAT, &[2, 5, 4, 2]), vector(&[1, 3, 2]), vector(&[1, 2, 1, 1])])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    gradient_of_max_v2: family(&["MaxPoolGradV2"], FLOATS, |op, dtype| {
        let input = numbers(dtype, &[1, 2, 4, 1], &[1.0, 2.0, 9.0, 3.0, 4.0, 4.0, 5.0, 6.0]);
        Case::op(op).inputs([input, numbers(dtype, &[1, 1, 2, 1], &[4.0, 9.0]), numbers(dtype, &[1, 1, 2, 1], &[10.0, 20.0])])
            .inputs([vector(&[1, 2, 2, 1]), vector(&[1, 2, 2, 1])]).attr("padding", "VALID")
    });
    gradient_of_volumes: family(&["AvgPool3DGrad"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 4, 4, 3, 2]), cycle(dtype, &[1, 2, 4, 3, 2])])
            .attr("ksize", vec![1i64, 2, 2, 2, 1]).attr("strides", vec![1i64, 2, 1, 1, 1]).attr("padding", "SAME")
    });
    gradient_of_volumes_misfit: Case::op("AvgPool3DGrad").inputs([vector(&[1, 4, 4, 3, 2]), cycle(DataType::FLOAT, &[1, 3, 4, 3, 2])])
        .attr("ksize", vec![1i64, 2, 2, 2, 1]).attr("strides", vec![1i64, 2, 1, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument);
    gradient_of_average: family(&["AvgPoolGrad"], FLOATS, |op, dtype| {
        Case::op(op).inputs([vector(&[1, 5, 4, 1]), cycle(dtype, &[1, 3, 4, 1])])
            .attr("ksize", vec![1i64, 3, 2, 1]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
}
