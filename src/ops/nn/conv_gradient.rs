//! Gradients of convolutions with respect to input and filter, as convolutions.

use super::conv::{NATIVE, axes, convolution_dims};
use super::conv_kernel::{backward_filter, backward_input};
use super::geometry::{Axis, Format};
use ff_hlo::{ConvolutionConfig, ConvolutionDims, Window, WindowDimension};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, ensure};

static INPUT: Op = Op {
    name: "Conv2DBackpropInput",
    shape: |context| given_shape(context, 0, 4),
    kernels: &[
        Kernel::native(|context| backward_input(context, false)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_input(context, 2, false)),
    gradient: Gradient::Fn(|context| input_gradient(context, "Conv2DBackpropFilter", "Conv2D")),
    ..Op::PURE
};
static FILTER: Op = Op {
    name: "Conv2DBackpropFilter",
    shape: |context| given_shape(context, 1, 4),
    kernels: &[
        Kernel::native(|context| backward_filter(context, false)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_filter(context, 2, false)),
    gradient: Gradient::Fn(|context| filter_gradient(context, "Conv2DBackpropInput", "Conv2D")),
    ..INPUT
};
static DEPTHWISE_INPUT: Op = Op {
    name: "DepthwiseConv2dNativeBackpropInput",
    kernels: &[
        Kernel::native(|context| backward_input(context, true)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_input(context, 2, true)),
    gradient: Gradient::Fn(|context| {
        input_gradient(
            context,
            "DepthwiseConv2dNativeBackpropFilter",
            "DepthwiseConv2dNative",
        )
    }),
    ..INPUT
};
static DEPTHWISE_FILTER: Op = Op {
    name: "DepthwiseConv2dNativeBackpropFilter",
    kernels: &[
        Kernel::native(|context| backward_filter(context, true)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_filter(context, 2, true)),
    gradient: Gradient::Fn(|context| {
        filter_gradient(
            context,
            "DepthwiseConv2dNativeBackpropInput",
            "DepthwiseConv2dNative",
        )
    }),
    ..FILTER
};

static VOLUME_INPUT: Op = Op {
    name: "Conv3DBackpropInputV2",
    shape: |context| given_shape(context, 0, 5),
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| lower_input(context, 3, false)),
    gradient: Gradient::Fn(|context| input_gradient(context, "Conv3DBackpropFilterV2", "Conv3D")),
    ..Op::PURE
};
static VOLUME_FILTER: Op = Op {
    name: "Conv3DBackpropFilterV2",
    shape: |context| given_shape(context, 1, 5),
    lower: Some(|context| lower_filter(context, 3, false)),
    gradient: Gradient::Fn(|context| filter_gradient(context, "Conv3DBackpropInputV2", "Conv3D")),
    ..VOLUME_INPUT
};
/// The first versions take a tensor in place of its shape.
static VOLUME_INPUT_V1: Op = Op {
    name: "Conv3DBackpropInput",
    shape: |context| shape_of(context, 0),
    gradient: Gradient::Missing,
    ..VOLUME_INPUT
};
static VOLUME_FILTER_V1: Op = Op {
    name: "Conv3DBackpropFilter",
    shape: |context| shape_of(context, 1),
    gradient: Gradient::Missing,
    ..VOLUME_FILTER
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &INPUT,
    &FILTER,
    &DEPTHWISE_INPUT,
    &DEPTHWISE_FILTER,
    &VOLUME_INPUT,
    &VOLUME_FILTER,
    &VOLUME_INPUT_V1,
    &VOLUME_FILTER_V1,
];

/// The shape of an input of rank 5, as all are.
fn shape_of(context: &mut ShapeContext, index: usize) -> Result<()> {
    for other in (0..3).filter(|other| *other != index) {
        context.input_with_rank(other, 5)?;
    }
    let shape = context.input_with_rank(index, 5)?;
    context.set_output(0, shape);
    Ok(())
}

/// The extents that an input says: its value's, or its own where it is a tensor of them.
fn given_dims(context: &mut LowerContext, index: usize) -> Result<Vec<i64>> {
    let dims = context.input_dims(index)?;
    if dims.len() == 1 {
        context.constant_i64s(index)
    } else {
        Ok(dims)
    }
}

/// The attributes of the forward op.
fn forward_attrs(context: &GradientContext) -> Attrs {
    let mut attrs = Attrs::new();
    for name in [
        "T",
        "strides",
        "padding",
        "explicit_paddings",
        "data_format",
        "dilations",
    ] {
        if let Some(value) = context.attrs().get(name) {
            attrs.set(name, value.clone());
        }
    }
    attrs
}

/// What comes in takes the input's place: gradients for the filter, and for the gradient of the output.
fn input_gradient(context: &mut GradientContext, filter_op: &str, forward_op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (filter, output) = (context.input(1)?, context.input(2)?);
    let dims = crate::math::gradients::shape_of(context, filter)?;
    let attrs = forward_attrs(context);
    let of_filter = context.op(filter_op, &[incoming, dims, output], attrs.clone())?;
    let of_output = context.op(forward_op, &[incoming, filter], attrs)?;
    context.set(1, of_filter);
    context.set(2, of_output);
    Ok(())
}

/// What comes in takes the filter's place.
fn filter_gradient(context: &mut GradientContext, input_op: &str, forward_op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, output) = (context.input(0)?, context.input(2)?);
    let dims = crate::math::gradients::shape_of(context, input)?;
    let attrs = forward_attrs(context);
    let of_input = context.op(input_op, &[dims, incoming, output], attrs.clone())?;
    let of_output = context.op(forward_op, &[input, incoming], attrs)?;
    context.set(0, of_input);
    context.set(2, of_output);
    Ok(())
}

/// The shape that an input's value says. One op looks at the ranks of the others.
fn given_shape(context: &mut ShapeContext, index: usize, rank: usize) -> Result<()> {
    if context.node().op_name() == "Conv2DBackpropInput" {
        context.input_with_rank(1, rank)?;
        context.input_with_rank(2, rank)?;
    }
    let shape = context.input_as_shape(index)?.with_rank(rank)?;
    context.set_output(0, PartialShape::new(shape.dims().unwrap_or(&[])));
    Ok(())
}

/// Whether the gradient is all zeros whatever else the shapes of input, filter and incoming gradient are: one of them has
/// no elements. Only single precision and bfloat16 are taken so; of other types, and for the first versions of the ops on
/// volumes, shapes have to fit all the same.
pub fn sums_nothing(op: &str, dtype: DataType, shapes: [&[i64]; 3]) -> bool {
    !matches!(op, "Conv3DBackpropInput" | "Conv3DBackpropFilter")
        && matches!(dtype, DataType::FLOAT | DataType::BFLOAT16)
        && shapes.iter().any(|dims| dims.contains(&0))
}

/// Checks that the shapes of input, filter and incoming gradient, channels last, are those of a forward op with these axes.
pub fn check_shapes([input, filter, incoming]: [&[i64]; 3], axes: &[Axis], depthwise: bool) -> Result<()> {
    let spatial = axes.len();
    let (channels, inner, outer) = (input[spatial + 1], filter[spatial], filter[spatial + 1]);
    ensure!(
        inner > 0
            && if depthwise {
                channels == inner
            } else {
                channels > 0 && channels % inner == 0
            },
        InvalidArgument,
        "input depth must be evenly divisible by filter depth: {channels} vs {inner}"
    );
    let outputs = if depthwise {
        ff_tensor::dim::mul(channels, outer)?
    } else {
        outer
    };
    ensure!(
        depthwise || outputs % (channels / inner) == 0,
        InvalidArgument,
        "Depth of output ({outputs}) is not a multiple of the number of groups ({})",
        channels / inner
    );
    let mut computed = vec![input[0]];
    computed.extend(axes.iter().map(|axis| axis.output));
    computed.push(outputs);
    ensure!(
        incoming == computed,
        InvalidArgument,
        "Size of out_backprop doesn't match computed: actual = {incoming:?}, computed = {computed:?}"
    );
    Ok(())
}

/// The shapes of input, filter and incoming gradient, and what follows from them.
struct Geometry {
    format: Format,
    input: Vec<i64>,
    filter: Vec<i64>,
    axes: Vec<Axis>,
    /// Whether the gradient is all zeros.
    is_zero: bool,
}

fn geometry(context: &mut LowerContext, spatial: usize, depthwise: bool) -> Result<Geometry> {
    let name = context.node().op_name();
    let (sizes, dtype) = (usize::from(name.contains("Filter")), context.output_type(0));
    let mut dims = [
        context.input_dims(0)?,
        context.input_dims(1)?,
        context.input_dims(2)?,
    ];
    dims[sizes] = given_dims(context, sizes)?;
    let format = Format::of(context.attrs(), spatial)?;
    let mut is_zero = sums_nothing(name, dtype, [&dims[0], &dims[1], &dims[2]]);
    let mut along = Vec::new();
    if !is_zero {
        ensure!(
            dims.iter().all(|dims| dims.len() == spatial + 2),
            InvalidArgument,
            "{name} needs shapes of {} extents, got {dims:?}",
            spatial + 2
        );
        along = axes(context.attrs(), format, &dims[0], &dims[1])?;
        let (input, incoming) = (
            format.channels_last_of(&dims[0]),
            format.channels_last_of(&dims[2]),
        );
        check_shapes([&input, &dims[1], &incoming], &along, depthwise)?;
        is_zero = dims.iter().any(|dims| dims.contains(&0));
    }
    let [input, filter, _] = dims;
    Ok(Geometry {
        format,
        input,
        filter,
        axes: along,
        is_zero,
    })
}

fn set_zeros(context: &mut LowerContext, dims: &[i64]) -> Result<()> {
    let zeros = context.builder.full(context.output_type(0), dims, 0.0)?;
    context.set_output(0, zeros);
    Ok(())
}

/// `dx = conv(dy spread by the strides, filter turned around)`.
fn lower_input(context: &mut LowerContext, spatial: usize, depthwise: bool) -> Result<()> {
    let geometry = geometry(context, spatial, depthwise)?;
    let (format, axes, mut filter_dims) = (geometry.format, geometry.axes, geometry.filter);
    if geometry.is_zero {
        return set_zeros(context, &geometry.input);
    }
    let (mut filter, incoming) = (context.input(1)?, context.input(2)?);
    let channels = geometry.input[format.channels()];
    let builder = &mut *context.builder;
    if depthwise {
        filter_dims[spatial + 1] *= filter_dims[spatial];
        filter_dims[spatial] = 1;
        filter = builder.reshape(filter, &filter_dims)?;
    }
    let (inner, outer) = (filter_dims[spatial], filter_dims[spatial + 1]);
    let groups = channels / inner;
    // From [.., in / g, out] to [.., in, out / g]: each group's input features become its outputs.
    if groups > 1 {
        let extents = &filter_dims[..spatial];
        filter = builder.reshape(filter, &[extents, &[inner, groups, outer / groups]].concat())?;
        let s = spatial as i64;
        let order: Vec<i64> = (0..s).chain([s + 1, s, s + 2]).collect();
        filter = builder.transpose(filter, &order)?;
        filter = builder.reshape(filter, &[extents, &[channels, outer / groups]].concat())?;
    }
    let window: Window = axes
        .iter()
        .map(|axis| {
            let reach = (axis.window - 1) * axis.dilation + 1;
            let spread = (axis.output - 1) * axis.stride + 1;
            let low = reach - 1 - axis.low;
            WindowDimension {
                padding_low: low,
                padding_high: axis.input - spread - low + reach - 1,
                window_dilation: axis.dilation,
                base_dilation: axis.stride,
                window_reversal: true,
                ..WindowDimension::new(axis.window)
            }
        })
        .collect();
    let dims = ConvolutionDims {
        kernel_input_feature: spatial as i64 + 1,
        kernel_output_feature: spatial as i64,
        ..convolution_dims(format)
    };
    let config = ConvolutionConfig {
        window,
        dims,
        feature_group_count: groups,
        batch_group_count: 1,
    };
    let result = builder.convolution(incoming, filter, config, None)?;
    context.set_output(0, result);
    Ok(())
}

/// `df = conv(x, dy)`, where features take the place of the batch, and the batch that of features.
fn lower_filter(context: &mut LowerContext, spatial: usize, depthwise: bool) -> Result<()> {
    let geometry = geometry(context, spatial, depthwise)?;
    let (format, axes, filter_dims) = (geometry.format, geometry.axes, geometry.filter);
    if geometry.is_zero {
        return set_zeros(context, &filter_dims);
    }
    let (input, incoming) = (context.input(0)?, context.input(2)?);
    let channels = geometry.input[format.channels()];
    let groups = if depthwise {
        channels
    } else {
        channels / filter_dims[spatial]
    };
    let window: Window = axes
        .iter()
        .map(|axis| WindowDimension {
            stride: axis.dilation,
            padding_low: axis.low,
            padding_high: (axis.window - 1) * axis.dilation + (axis.output - 1) * axis.stride + 1
                - axis.input
                - axis.low,
            window_dilation: axis.stride,
            ..WindowDimension::new(axis.output)
        })
        .collect();
    let forward = convolution_dims(format);
    let dims = ConvolutionDims {
        input_batch: forward.input_feature,
        input_feature: forward.input_batch,
        input_spatial: forward.input_spatial,
        kernel_input_feature: forward.output_batch,
        kernel_output_feature: forward.output_feature,
        kernel_spatial: forward.output_spatial,
        output_batch: spatial as i64,
        output_feature: spatial as i64 + 1,
        output_spatial: (0..spatial as i64).collect(),
    };
    let config = ConvolutionConfig {
        window,
        dims,
        feature_group_count: 1,
        batch_group_count: groups,
    };
    let result = context.builder.convolution(input, incoming, config, None)?;
    let result = context.builder.reshape(result, &filter_dims)?;
    context.set_output(0, result);
    Ok(())
}

crate::op_cases! {
    volumes_of_empty_tensors: family(&["Conv3DBackpropInput", "Conv3DBackpropFilter"], &FLOATS[..2], |op, dtype| {
        let empty = || numbers(dtype, &[0; 5], &[]);
        Case::op(op).inputs([empty(), empty(), empty()]).attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument)
    });
    another_batch: family(&["Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput"], &[DataType::DOUBLE, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 4, 4, 1]), cycle(dtype, &[2, 2, 1, 1]), cycle(dtype, &[2, 4, 4, 1])]).attr("strides", vec![1i64; 4])
            .attr("padding", "SAME").fails(Code::InvalidArgument)
    });
    volumes_of_another_batch: Case::op("Conv3DBackpropInputV2")
        .inputs([vector(&[1, 2, 2, 2, 2]), cycle(DataType::DOUBLE, &[1, 2, 2, 2, 3]), cycle(DataType::DOUBLE, &[2, 2, 2, 2, 3])]).attr("strides", vec![1i64; 5])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    volumes_of_other_depths: Case::op("Conv3DBackpropFilterV2")
        .inputs([cycle(DataType::DOUBLE, &[1, 1, 1, 1, 2]), vector(&[2, 2, 2, 2, 3]), cycle(DataType::DOUBLE, &[1, 1, 1, 1, 1])]).attr("strides", vec![1i64; 5])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    volumes_by_no_filter: Case::op("Conv3DBackpropInputV2").without_gradient()
        .inputs([vector(&[1, 1, 1, 1, 2]), numbers(DataType::DOUBLE, &[0, 0, 0, 2, 3], &[]), cycle(DataType::DOUBLE, &[1, 1, 1, 1, 3])]).attr("strides", vec![1i64; 5])
        .attr("padding", "SAME").gives(numbers(DataType::DOUBLE, &[1, 1, 1, 1, 2], &[0.0; 2]));
    extents_in_a_matrix: Case::op("Conv2DBackpropFilter")
        .inputs([cycle(DataType::DOUBLE, &[1, 4, 4, 1]), t(&[1, 4], &[2, 2, 1, 1]), cycle(DataType::DOUBLE, &[1, 4, 4, 1])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    ranks_of_nothing: Case::op("Conv2DBackpropFilter").without_gradient()
        .inputs([t::<f32>(&[0], &[]), vector(&[1, 1, 1, 1]), t::<f32>(&[0, 0, 0, 0], &[])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").gives(t(&[1, 1, 1, 1], &[0.0f32]));
    of_nothing: family(&["Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| Case::op(op).without_gradient()
        .inputs([vector(&[1, 4, 4, 2]), numbers(dtype, &[2, 2, 0, 1], &[]), cycle(dtype, &[1, 3, 4, 1])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").gives(numbers(dtype, &[1, 4, 4, 2], &[0.0; 32])));
    of_nothing_else: family(&["Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"], &[DataType::DOUBLE, DataType::HALF], |op, dtype| Case::op(op)
        .inputs([numbers(dtype, &[1, 4, 4, 0], &[]), vector(&[2, 2, 1, 1]), cycle(dtype, &[1, 4, 4, 1])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").fails(Code::InvalidArgument));
    volumes_of_nothing: Case::op("Conv3DBackpropFilterV2").without_gradient()
        .inputs([numbers(DataType::FLOAT, &[1, 2, 2, 2, 0], &[]), vector(&[1, 1, 1, 1, 2]), cycle(DataType::FLOAT, &[1, 2, 2, 2, 2])]).attr("strides", vec![1i64; 5])
        .attr("padding", "SAME").gives(numbers(DataType::FLOAT, &[1, 1, 1, 1, 2], &[0.0; 2]));
    filter_of_no_channels: family(&["Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"], &[DataType::FLOAT], |op, dtype| Case::op(op)
        .inputs([numbers(dtype, &[0, 0, 0, 0], &[]), vector(&[2, 2, 1, 1]), numbers(dtype, &[0, 0, 0, 1], &[])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").gives(numbers(dtype, &[2, 2, 1, 1], &[0.0; 4])));
    of_input: family(&["Conv2DBackpropInput"], FLOATS, |op, dtype| {
        Case::op(op).inputs([vector(&[2, 5, 4, 3]), cycle(dtype, &[3, 2, 3, 2]), cycle(dtype, &[2, 3, 4, 2])])
            .attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    of_input_inside: Case::op("Conv2DBackpropInput")
        .inputs([vector(&[1, 5, 5, 1]), cycle(DataType::FLOAT, &[2, 2, 1, 2]), cycle(DataType::FLOAT, &[1, 2, 2, 2])])
        .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID");
    of_input_misfit: Case::op("Conv2DBackpropInput")
        .inputs([vector(&[1, 5, 5, 1]), cycle(DataType::FLOAT, &[2, 2, 1, 2]), cycle(DataType::FLOAT, &[1, 3, 2, 2])])
        .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
    of_filter: family(&["Conv2DBackpropFilter"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 3]), vector(&[3, 2, 3, 2]), cycle(dtype, &[2, 3, 4, 2])])
            .attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    of_filter_misfit: Case::op("Conv2DBackpropFilter")
        .inputs([cycle(DataType::FLOAT, &[1, 5, 5, 1]), vector(&[2, 2, 1, 2]), cycle(DataType::FLOAT, &[1, 3, 2, 2])])
        .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
    volumes_of_input: family(&["Conv3DBackpropInputV2"], FLOATS, |op, dtype| {
        Case::op(op).inputs([vector(&[1, 3, 4, 3, 2]), cycle(dtype, &[2, 2, 2, 2, 3]), cycle(dtype, &[1, 3, 2, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME")
    });
    volumes_of_input_misfit: Case::op("Conv3DBackpropInputV2").inputs([vector(&[1, 3, 4, 3, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 2, 3]), cycle(DataType::FLOAT, &[1, 3, 3, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument);
    volumes_of_filter: family(&["Conv3DBackpropFilterV2"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 4, 3, 2]), vector(&[2, 2, 2, 2, 3]), cycle(dtype, &[1, 3, 2, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME")
    });
    volumes_of_filter_misfit: Case::op("Conv3DBackpropFilterV2").inputs([cycle(DataType::FLOAT, &[1, 3, 4, 3, 2]), vector(&[2, 2, 2, 2, 3]), cycle(DataType::FLOAT, &[1, 3, 3, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument);
    volumes_of_tensors: family(&["Conv3DBackpropInput", "Conv3DBackpropFilter"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 4, 3, 2]), cycle(dtype, &[2, 2, 2, 2, 3]), cycle(dtype, &[1, 3, 2, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME")
    });
    volumes_of_tensors_misfit: family(&["Conv3DBackpropInput", "Conv3DBackpropFilter"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 4, 3, 2]), cycle(dtype, &[2, 2, 2, 2, 3]), cycle(dtype, &[1, 3, 3, 3, 3])])
            .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument)
    });
    by_depth_of_input: family(&["DepthwiseConv2dNativeBackpropInput"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 4, 5, 2]), cycle(dtype, &[3, 3, 2, 2]), cycle(dtype, &[1, 2, 3, 4])])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME")
    });
    by_depth_of_filter: family(&["DepthwiseConv2dNativeBackpropFilter"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 5, 2]), vector(&[3, 3, 2, 2]), cycle(dtype, &[1, 2, 3, 4])])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME")
    });
}
