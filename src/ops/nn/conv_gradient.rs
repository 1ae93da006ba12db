//! Gradients of convolutions with respect to input and filter, as convolutions.

use super::conv::{NATIVE, axes, convolution_dims};
use super::conv_kernel::{backward_filter, backward_input};
use super::geometry::{Axis, Format};
use ff_hlo::{ConvolutionConfig, ConvolutionDims, Window, WindowDimension};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, ensure};

static INPUT: Op = Op {
    name: "Conv2DBackpropInput",
    shape: |context| given_shape(context, 0),
    kernels: &[
        Kernel::native(|context| backward_input(context, false)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_input(context, false)),
    gradient: Gradient::Missing,
    ..Op::PURE
};
static FILTER: Op = Op {
    name: "Conv2DBackpropFilter",
    shape: |context| given_shape(context, 1),
    kernels: &[
        Kernel::native(|context| backward_filter(context, false)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_filter(context, false)),
    ..INPUT
};
static DEPTHWISE_INPUT: Op = Op {
    name: "DepthwiseConv2dNativeBackpropInput",
    kernels: &[
        Kernel::native(|context| backward_input(context, true)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_input(context, true)),
    ..INPUT
};
static DEPTHWISE_FILTER: Op = Op {
    name: "DepthwiseConv2dNativeBackpropFilter",
    kernels: &[
        Kernel::native(|context| backward_filter(context, true)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_filter(context, true)),
    ..FILTER
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&INPUT, &FILTER, &DEPTHWISE_INPUT, &DEPTHWISE_FILTER];

/// The shape that an input's value says.
fn given_shape(context: &mut ShapeContext, index: usize) -> Result<()> {
    for other in (0..3).filter(|other| *other != index) {
        context.input(other).with_rank(4)?;
    }
    let shape = context.input_as_shape(index)?.with_rank(4)?;
    context.set_output(0, PartialShape::new(shape.dims().unwrap_or(&[])));
    Ok(())
}

/// Checks that the gradient that comes in has the shape of the forward output.
fn check_incoming(format: Format, axes: &[Axis], incoming: &[i64]) -> Result<()> {
    for (i, axis) in axes.iter().enumerate() {
        ensure!(
            incoming[format.axis(i)] == axis.output,
            InvalidArgument,
            "Conv2DBackprop: Size of out_backprop doesn't match computed: actual = {}, computed = {}",
            incoming[format.axis(i)],
            axis.output
        );
    }
    Ok(())
}

/// `dx = conv(dy spread by the strides, filter turned around)`.
fn lower_input(context: &mut LowerContext, depthwise: bool) -> Result<()> {
    let input_dims = context.constant_i64s(0)?;
    let (mut filter_dims, incoming_dims) = (context.input_dims(1)?, context.input_dims(2)?);
    let format = Format::of(context.attrs(), 2)?;
    let axes = axes(context.attrs(), format, &input_dims, &filter_dims)?;
    check_incoming(format, &axes, &incoming_dims)?;
    let (mut filter, incoming) = (context.input(1)?, context.input(2)?);
    let channels = input_dims[format.channels()];
    let builder = &mut *context.builder;
    if depthwise {
        filter_dims[3] *= filter_dims[2];
        filter_dims[2] = 1;
        filter = builder.reshape(filter, &filter_dims)?;
    }
    let (height, width, inner, outer) = (filter_dims[0], filter_dims[1], filter_dims[2], filter_dims[3]);
    let groups = if inner == 0 { 1 } else { channels / inner };
    // From [h, w, in / g, out] to [h, w, in, out / g]: each group's input features become its outputs.
    if groups > 1 {
        filter = builder.reshape(filter, &[height, width, inner, groups, outer / groups])?;
        filter = builder.transpose(filter, &[0, 1, 3, 2, 4])?;
        filter = builder.reshape(filter, &[height, width, channels, outer / groups])?;
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
        kernel_input_feature: 3,
        kernel_output_feature: 2,
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
fn lower_filter(context: &mut LowerContext, depthwise: bool) -> Result<()> {
    let filter_dims = context.constant_i64s(1)?;
    let (input_dims, incoming_dims) = (context.input_dims(0)?, context.input_dims(2)?);
    let format = Format::of(context.attrs(), 2)?;
    let axes = axes(context.attrs(), format, &input_dims, &filter_dims)?;
    check_incoming(format, &axes, &incoming_dims)?;
    let (input, incoming) = (context.input(0)?, context.input(2)?);
    let channels = input_dims[format.channels()];
    let inner = if depthwise { 1 } else { filter_dims[2] };
    let groups = if inner == 0 { 1 } else { channels / inner };
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
        output_batch: 2,
        output_feature: 3,
        output_spatial: (0..2).collect(),
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
    by_depth_of_input: family(&["DepthwiseConv2dNativeBackpropInput"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 4, 5, 2]), cycle(dtype, &[3, 3, 2, 2]), cycle(dtype, &[1, 2, 3, 4])])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME")
    });
    by_depth_of_filter: family(&["DepthwiseConv2dNativeBackpropFilter"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 5, 2]), vector(&[3, 3, 2, 2]), cycle(dtype, &[1, 2, 3, 4])])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME")
    });
}
