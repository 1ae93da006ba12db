//! Convolutions: Conv2D, Conv3D, depthwise; any format, padding, dilation and number of groups.

use super::conv_kernel::{convolve, convolve_depthwise, prepare};
use super::geometry::{Axis, Format, Padding, axis, inferred_extents};
use ff_hlo::{Builder, ConvolutionConfig, ConvolutionDims, Op as HloOp, Window, WindowDimension};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, ensure, status};

/// Types with native kernels: packed filters and implicit products.
pub const NATIVE: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT, DataType::DOUBLE])];

static CONV2D: Op = Op {
    name: "Conv2D",
    shape: |context| shape(context, 2, false),
    prepare: Some(prepare),
    kernels: &[Kernel::native(convolve).for_types(NATIVE), Kernel::FROM_LOWERING],
    lower: Some(|context| lower(context, 2, false)),
    gradient: Gradient::Fn(|context| gradient(context, "Conv2DBackpropInput", "Conv2DBackpropFilter")),
    ..Op::PURE
};
static CONV3D: Op = Op {
    name: "Conv3D",
    shape: |context| shape(context, 3, false),
    prepare: Some(prepare),
    kernels: &[Kernel::native(convolve).for_types(NATIVE), Kernel::FROM_LOWERING],
    lower: Some(|context| lower(context, 3, false)),
    gradient: Gradient::Fn(|context| gradient(context, "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")),
    ..Op::PURE
};
static DEPTHWISE: Op = Op {
    name: "DepthwiseConv2dNative",
    shape: |context| shape(context, 2, true),
    kernels: &[
        Kernel::native(convolve_depthwise).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower(context, 2, true)),
    gradient: Gradient::Fn(|context| {
        gradient(
            context,
            "DepthwiseConv2dNativeBackpropInput",
            "DepthwiseConv2dNativeBackpropFilter",
        )
    }),
    ..Op::PURE
};

static CONV: Op = Op {
    name: "Conv",
    shape: generic_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_generic),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&CONV2D, &CONV3D, &DEPTHWISE, &CONV];

/// Axes in front of the spatial ones that are not channels, of `Conv`.
fn batch_axes(attrs: &Attrs) -> Result<usize> {
    let count = attrs.int("batch_dims")?;
    ensure!(
        (0..=8).contains(&count),
        InvalidArgument,
        "batch_dims must be non-negative, got {count}"
    );
    Ok(count as usize)
}

/// As [`shape`], with any number of batch axes.
fn generic_shape(context: &mut ShapeContext) -> Result<()> {
    let (input, filter) = (context.input(0), context.input(1));
    let Some(filter_rank) = filter.rank() else {
        return Ok(());
    };
    ensure!(
        filter_rank == 4 || filter_rank == 5,
        InvalidArgument,
        "convolutional op must have a filter of rank 4 or 5, got {filter}"
    );
    let spatial = filter_rank - 2;
    let batch = batch_axes(context.attrs())?;
    let input = input.with_rank(batch + spatial + 1)?;
    let dims = input.dims().unwrap_or(&[]).to_vec();
    if dims.is_empty() {
        return Ok(());
    }
    let collapsed = PartialShape::new(&[&[1], &dims[batch..]].concat());
    let result = convolved(context, &collapsed, &filter, spatial, false)?;
    let result = result.dims().unwrap_or(&[]);
    context.set_output(0, PartialShape::new(&[&dims[..batch], &result[1..]].concat()));
    Ok(())
}

/// Batch axes become one for the convolution.
fn lower_generic(context: &mut LowerContext) -> Result<()> {
    let (input, filter) = (context.input(0)?, context.input(1)?);
    let (dims, filter_dims) = (context.input_dims(0)?, context.input_dims(1)?);
    check_filter(&filter_dims)?;
    let spatial = filter_dims.len() - 2;
    let batch = batch_axes(context.attrs())?;
    let count: i64 = dims[..batch].iter().product();
    let collapsed = [&[count], &dims[batch..]].concat();
    let input = context.builder.reshape(input, &collapsed)?;
    let result = convolution(
        context.builder,
        &context.node().attrs,
        input,
        filter,
        spatial,
        false,
    )?;
    let made = context.builder.dims(result).to_vec();
    let result = context
        .builder
        .reshape(result, &[&dims[..batch], &made[1..]].concat())?;
    context.set_output(0, result);
    Ok(())
}

/// Input `[N, spatial.., C]` (or `[N, C, spatial..]`), filter `[spatial.., C / groups, out]`; depthwise
/// `[spatial.., C, multiplier]`.
pub fn shape(context: &mut ShapeContext, spatial: usize, depthwise: bool) -> Result<()> {
    let input = context.input_with_rank(0, spatial + 2)?;
    let filter = context.input_with_rank(1, spatial + 2)?;
    let result = convolved(context, &input, &filter, spatial, depthwise)?;
    context.set_output(0, result);
    Ok(())
}

/// The shape of a convolution.
pub fn convolved(
    context: &ShapeContext,
    input: &PartialShape,
    filter: &PartialShape,
    spatial: usize,
    depthwise: bool,
) -> Result<PartialShape> {
    let attrs = context.attrs();
    let format = Format::of(attrs, spatial)?;
    let strides = format.spatial_of(attrs, "strides", false)?;
    let dilations = format.spatial_of(attrs, "dilations", false)?;
    let padding = Padding::of(attrs, format)?;
    let channels = input.dim(format.channels() as i64);
    let (filter_in, filter_out) = (filter.dim(spatial as i64), filter.dim(spatial as i64 + 1));
    let uneven =
        || format!("input depth must be evenly divisible by filter depth: {channels} vs {filter_in}");
    let out = if depthwise {
        ff_tensor::dim::merge(channels, filter_in)
            .map_err(|error| context.in_words_of_kernel(error, uneven))?;
        ff_tensor::dim::mul(filter_in.max(channels), filter_out)?
    } else {
        if channels > 0 && filter_in >= 0 && (filter_in == 0 || channels % filter_in != 0) {
            let error = status!(
                InvalidArgument,
                "Depth of input ({channels}) is not a multiple of input depth of filter ({filter_in})"
            );
            return Err(context.in_words_of_kernel(error, uneven));
        }
        ensure!(
            channels != 0 || filter_in <= 0,
            InvalidArgument,
            "Number of groups must not be 0"
        );
        if channels > 0 && filter_in > 0 && filter_out >= 0 {
            let groups = channels / filter_in;
            ensure!(
                filter_out % groups == 0,
                InvalidArgument,
                "Depth of output ({filter_out}) is not a multiple of the number of groups ({groups})"
            );
        }
        filter_out
    };
    let steps = |i: usize| [filter.dim(i as i64), strides[i], dilations[i]];
    let extents = inferred_extents(context, format, &padding, input, steps)?;
    Ok(format.shape(input.dim(0), &extents, out))
}

/// The geometry of each spatial axis, for full input and filter shapes.
pub fn axes(attrs: &Attrs, format: Format, input: &[i64], filter: &[i64]) -> Result<Vec<Axis>> {
    let strides = format.spatial_of(attrs, "strides", false)?;
    let dilations = format.spatial_of(attrs, "dilations", false)?;
    let padding = Padding::of(attrs, format)?;
    (0..format.spatial)
        .map(|i| {
            axis(
                &padding,
                i,
                input[format.axis(i)],
                filter[i],
                strides[i],
                dilations[i],
            )
        })
        .collect()
}

/// HLO's axes for a data format.
pub fn convolution_dims(format: Format) -> ConvolutionDims {
    if format.channels_last {
        ConvolutionDims::channels_last(format.spatial)
    } else {
        ConvolutionDims::channels_first(format.spatial)
    }
}

/// INVALID_ARGUMENT where a filter has no elements.
pub fn check_filter(dims: &[i64]) -> Result<()> {
    ensure!(
        !dims.contains(&0),
        InvalidArgument,
        "filter must not have zero elements (i.e. all dimensions must be non-zero)"
    );
    Ok(())
}

/// Whether an output without elements is made without a look at the filter.
pub fn overlooks_filter(op: &str, dtype: DataType) -> bool {
    op == "Conv2D" && !matches!(dtype, DataType::FLOAT | DataType::BFLOAT16)
}

fn lower(context: &mut LowerContext, spatial: usize, depthwise: bool) -> Result<()> {
    let filter_dims = context.input_dims(1)?;
    if overlooks_filter(context.node().op_name(), context.output_type(0)) {
        let input_dims = context.input_dims(0)?;
        let format = Format::of(context.attrs(), spatial)?;
        let axes = axes(context.attrs(), format, &input_dims, &filter_dims)?;
        let extents: Vec<i64> = axes.iter().map(|axis| axis.output).collect();
        let shape = format.shape(input_dims[0], &extents, filter_dims[spatial + 1]);
        let dims = shape.dims().unwrap_or(&[]);
        if dims.contains(&0) {
            let none = context.builder.full(context.output_type(0), dims, 0.0)?;
            context.set_output(0, none);
            return Ok(());
        }
    }
    check_filter(&filter_dims)?;
    let (input, filter) = (context.input(0)?, context.input(1)?);
    let attrs = &context.node().attrs;
    let result = convolution(context.builder, attrs, input, filter, spatial, depthwise)?;
    context.set_output(0, result);
    Ok(())
}

/// Emits a convolution with the geometry that the attributes say.
pub fn convolution(
    builder: &mut Builder,
    attrs: &Attrs,
    input: HloOp,
    mut filter: HloOp,
    spatial: usize,
    depthwise: bool,
) -> Result<HloOp> {
    let (input_dims, mut filter_dims) = (builder.dims(input).to_vec(), builder.dims(filter).to_vec());
    let format = Format::of(attrs, spatial)?;
    let axes = axes(attrs, format, &input_dims, &filter_dims)?;
    let channels = input_dims[format.channels()];
    if depthwise {
        filter_dims[spatial + 1] *= filter_dims[spatial];
        filter_dims[spatial] = 1;
        filter = builder.reshape(filter, &filter_dims)?;
    }
    let window: Window = axes
        .iter()
        .map(|axis| WindowDimension {
            stride: axis.stride,
            padding_low: axis.low,
            padding_high: axis.high,
            window_dilation: axis.dilation,
            ..WindowDimension::new(axis.window)
        })
        .collect();
    let config = ConvolutionConfig {
        window,
        dims: convolution_dims(format),
        feature_group_count: if filter_dims[spatial] == 0 {
            1
        } else {
            channels / filter_dims[spatial]
        },
        batch_group_count: 1,
    };
    builder.convolution(input, filter, config, None)
}

/// The two gradient ops take the shape of what they make, and have the attributes of the forward op.
fn gradient(context: &mut GradientContext, input_op: &str, filter_op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, filter) = (context.input(0)?, context.input(1)?);
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
    let shape = |context: &mut GradientContext, value: OutputRef| {
        let attrs = Attrs::new()
            .with("T", context.dtype(value))
            .with("out_type", DataType::INT32);
        context.op("Shape", &[value], attrs)
    };
    let (input_shape, filter_shape) = (shape(context, input)?, shape(context, filter)?);
    let dx = context.op(input_op, &[input_shape, filter, incoming], attrs.clone())?;
    let df = context.op(filter_op, &[input, filter_shape, incoming], attrs)?;
    context.set(0, dx);
    context.set(1, df);
    Ok(())
}

crate::op_cases! {
    nothing_by_no_filter: family(&["Conv2D"], &[DataType::DOUBLE, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[0, 3, 3, 1], &[]), numbers(dtype, &[0, 2, 1, 1], &[])]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
            .gives(numbers(dtype, &[0, 2, 3, 1], &[])).without_gradient()
    });
    generic_of_no_filter: Case::op("Conv").inputs([t::<f32>(&[0, 1, 1, 1], &[]), t::<f32>(&[1, 1, 1, 0], &[])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    no_filter_of_depths: Case::op("DepthwiseConv2dNative").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 1]), t::<f32>(&[2, 2, 1, 0], &[])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    no_groups: Case::op("Conv2D").inputs([t::<f32>(&[1, 4, 4, 0], &[]), cycle(DataType::FLOAT, &[2, 2, 1, 1])]).attr("strides", vec![1i64; 4])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    planes: family(&["Conv2D"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 3]), cycle(dtype, &[3, 2, 3, 2])]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    planes_dilated: family(&["Conv2D"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 5, 6, 2]), cycle(dtype, &[2, 2, 1, 4])])
            .attr("strides", vec![1i64, 1, 2, 1]).attr("dilations", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    planes_with_paddings: Case::op("Conv2D").inputs([cycle(DataType::FLOAT, &[1, 3, 3, 1]), cycle(DataType::FLOAT, &[2, 2, 1, 1])])
        .attr("strides", vec![1i64; 4]).attr("padding", "EXPLICIT").attr("explicit_paddings", vec![0i64, 0, 1, 0, 0, 2, 0, 0]);
    no_filter: family(&["Conv3D"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[0, 3, 3, 3, 1]), cycle(dtype, &[1, 0, 1, 1, 1])]).attr("strides", vec![1i64; 5]).attr("padding", "SAME").fails(Code::InvalidArgument)
    });
    no_planes: Case::op("Conv2D").inputs([cycle(DataType::FLOAT, &[0, 3, 3, 1]), cycle(DataType::FLOAT, &[2, 2, 1, 1])])
        .attr("strides", vec![1i64; 4]).attr("padding", "VALID").gives(t::<f32>(&[0, 2, 2, 1], &[]));
    planes_misfit: Case::op("Conv2D").inputs([cycle(DataType::FLOAT, &[1, 3, 3, 3]), cycle(DataType::FLOAT, &[2, 2, 2, 1])])
        .attr("strides", vec![1i64; 4]).attr("padding", "VALID").fails(Code::InvalidArgument);
    planes_too_small: Case::op("Conv2D").inputs([cycle(DataType::FLOAT, &[1, 1, 1, 1]), cycle(DataType::FLOAT, &[3, 3, 1, 1])])
        .attr("strides", vec![1i64; 4]).attr("padding", "VALID").fails(Code::InvalidArgument);
    volumes: family(&["Conv3D"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 4, 3, 2]), cycle(dtype, &[2, 2, 2, 2, 3])]).attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME")
    });
    volumes_misfit: Case::op("Conv3D").inputs([cycle(DataType::FLOAT, &[1, 3, 4, 3, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 3, 3])])
        .attr("strides", vec![1i64; 5]).attr("padding", "SAME").fails(Code::InvalidArgument);
    generic: family(&["Conv"], &[FLOATS, &[DataType::INT32]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 3]), cycle(dtype, &[3, 2, 3, 2])]).attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME")
    });
    generic_volumes: Case::op("Conv").inputs([cycle(DataType::FLOAT, &[1, 3, 4, 3, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 2, 3])])
        .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "VALID");
    generic_misfit: Case::op("Conv").inputs([cycle(DataType::FLOAT, &[2, 5, 4, 3]), cycle(DataType::FLOAT, &[3, 2, 2, 2])])
        .attr("strides", vec![1i64, 2, 1, 1]).attr("padding", "SAME").fails(Code::InvalidArgument);
    by_depth: family(&["DepthwiseConv2dNative"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 5, 2]), cycle(dtype, &[3, 3, 2, 2])]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME")
    });
    by_depth_misfit: Case::op("DepthwiseConv2dNative").inputs([cycle(DataType::FLOAT, &[1, 4, 5, 2]), cycle(DataType::FLOAT, &[3, 3, 3, 1])])
        .attr("strides", vec![1i64; 4]).attr("padding", "SAME").fails(Code::InvalidArgument);
}
