//! Native kernels of convolutions for `f32` and `f64`; other types are lowered. Channels that come second are moved
//! last and back.

use super::conv::{axes, check_filter, overlooks_filter};
use super::conv_gradient::{check_shapes, sums_nothing};
use super::geometry::Format;
use crate::math::out_of_memory;
use crate::movement::transpose;
use ff_kernels::ThreadPool;
use ff_kernels::conv::{
    Axis, Convolution, PackedFilter, conv, conv_backward_filter, conv_backward_input, conv_packed,
};
use ff_kernels::gemm::{Element, Epilogue};
use ff_op::{KernelContext, PrepareContext, Prepared};
use ff_tensor::{DataType, Result, Shape, Tensor, ensure};
use std::sync::Arc;

/// What is kept for a node with a constant filter.
enum Packed {
    Nothing,
    Single(PackedFilter<f32>),
    Double(PackedFilter<f64>),
}

/// Packs the filter if it is constant and, as far as can be told from it alone, of one group.
pub fn prepare(context: &PrepareContext) -> Result<Prepared> {
    let packed = match context.constant_inputs.get(1).and_then(Option::as_ref) {
        Some(filter) if filter.rank() >= 3 => match filter.dtype() {
            DataType::FLOAT => Packed::Single(pack(filter)?),
            DataType::DOUBLE => Packed::Double(pack(filter)?),
            _ => Packed::Nothing,
        },
        _ => Packed::Nothing,
    };
    Ok(Arc::new(packed))
}

fn pack<T: Element + ff_tensor::Element>(filter: &Tensor) -> Result<PackedFilter<T>> {
    let out = filter.dims().last().map_or(0, |&extent| extent as usize);
    let rows = filter.num_elements().checked_div(out).unwrap_or(0);
    PackedFilter::new(ThreadPool::serial(), filter.as_slice()?, rows, out, 1).map_err(out_of_memory)
}

/// The geometry as the kernels take it, from shapes with channels last.
fn geometry(context: &KernelContext, input: &[i64], filter: &[i64], depthwise: bool) -> Result<Convolution> {
    let spatial = input.len() - 2;
    let format = Format::of(context.attrs(), spatial)?;
    let axes = axes(context.attrs(), format, &in_format(format, input), filter)?;
    let axes: Vec<Axis> = axes
        .iter()
        .map(|axis| Axis {
            input: axis.input as usize,
            output: axis.output as usize,
            window: axis.window as usize,
            stride: axis.stride as usize,
            low: axis.low as isize,
            input_dilation: 1,
            window_dilation: axis.dilation as usize,
        })
        .collect();
    let (channels, inner, outer) = (input[spatial + 1], filter[spatial], filter[spatial + 1]);
    let (outputs, groups) = if depthwise {
        (channels * outer, channels)
    } else {
        (outer, channels.checked_div(inner).unwrap_or(1))
    };
    ensure!(
        groups > 0 && outputs % groups == 0 && (depthwise || groups * inner == channels),
        InvalidArgument,
        "input depth must be evenly divisible by filter depth: {channels} vs {inner}"
    );
    Ok(Convolution::new(
        input[0] as usize,
        &axes,
        channels as usize,
        outputs as usize,
        groups as usize,
    ))
}

/// Extents with channels last as the format has them.
fn in_format(format: Format, dims: &[i64]) -> Vec<i64> {
    let mut dims = dims.to_vec();
    if !format.channels_last
        && let Some(channels) = dims.pop()
    {
        dims.insert(1, channels);
    }
    dims
}

/// A value with its channels moved from the second axis to the last, if that is where they are.
fn channels_last(format: Format, value: &Tensor) -> Result<Tensor> {
    if format.channels_last {
        return Ok(value.clone());
    }
    let order: Vec<usize> = [0].into_iter().chain(2..value.rank()).chain([1]).collect();
    transpose(value, &order)
}

/// A value with its channels last, as the format has it.
fn as_format(format: Format, value: Tensor) -> Result<Tensor> {
    if format.channels_last {
        return Ok(value);
    }
    let last = value.rank() - 1;
    let order: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
    transpose(&value, &order)
}

/// `Conv2D` and `Conv3D`.
pub fn convolve(context: &mut KernelContext) -> Result<()> {
    let packed = context.prepared::<Packed>()?;
    match (context.output_type(0), packed) {
        (DataType::FLOAT, Packed::Single(packed)) => run::<f32>(context, Some(packed), false),
        (DataType::FLOAT, _) => run::<f32>(context, None, false),
        (_, Packed::Double(packed)) => run::<f64>(context, Some(packed), false),
        _ => run::<f64>(context, None, false),
    }
}

/// `DepthwiseConv2dNative`.
pub fn convolve_depthwise(context: &mut KernelContext) -> Result<()> {
    crate::match_type!(context.output_type(0), (f32, f64), T => run::<T>(context, None, true))
}

fn run<T: Element + ff_tensor::Element>(
    context: &mut KernelContext,
    packed: Option<&PackedFilter<T>>,
    depthwise: bool,
) -> Result<()> {
    let format = Format::of(context.attrs(), context.input(0)?.rank() - 2)?;
    let input = channels_last(format, context.input(0)?)?;
    let filter = context.input(1)?;
    let is_empty = context.output_shape(0)?.num_elements() == 0;
    if !(is_empty && overlooks_filter(context.node().op_name(), filter.dtype())) {
        check_filter(filter.dims())?;
    }
    if is_empty || filter.num_elements() == 0 || input.num_elements() == 0 {
        let zeros = Tensor::zeros(context.output_type(0), context.output_shape(0)?.clone())?;
        return context.set_output(0, zeros);
    }
    let shape = geometry(context, input.dims(), filter.dims(), depthwise)?;
    let mut dims = context.output_shape(0)?.dims().to_vec();
    if !format.channels_last {
        let channels = dims.remove(1);
        dims.push(channels);
    }
    let mut output = context.allocate(context.output_type(0), Shape::new(&dims)?)?;
    let (pool, epilogue) = (context.pool(), Epilogue::default());
    let target = output.as_mut_slice::<T>()?;
    match packed {
        Some(packed) if shape.groups == 1 => {
            conv_packed(pool, &shape, input.as_slice()?, packed, target, &epilogue)
        }
        _ => conv(
            pool,
            &shape,
            input.as_slice()?,
            filter.as_slice()?,
            target,
            &epilogue,
        ),
    }
    .map_err(out_of_memory)?;
    context.set_output(0, as_format(format, output)?)
}

/// Gradient for the input: inputs are its shape, the filter, and the gradient of the output.
pub fn backward_input(context: &mut KernelContext, depthwise: bool) -> Result<()> {
    let format = Format::of(context.attrs(), 2)?;
    let result = context.input_i64s(0)?;
    let (filter, incoming) = (context.input(1)?, context.input(2)?);
    let Some(shape) = backward_geometry(
        context,
        format,
        [&result, filter.dims(), incoming.dims()],
        depthwise,
    )?
    else {
        return set_zeros(context, &result);
    };
    let mut output = Tensor::zeros(filter.dtype(), Shape::new(&format.channels_last_of(&result))?)?;
    let incoming = channels_last(format, incoming)?;
    crate::match_type!(output.dtype(), (f32, f64), T => {
        let (filter, incoming) = (filter.as_slice::<T>()?, incoming.as_slice::<T>()?);
        conv_backward_input(context.pool(), &shape, filter, incoming, output.as_mut_slice()?).map_err(out_of_memory)
    })?;
    context.set_output(0, as_format(format, output)?)
}

/// Gradient for the filter: inputs are the input, the filter's shape, and the gradient of the output.
pub fn backward_filter(context: &mut KernelContext, depthwise: bool) -> Result<()> {
    let format = Format::of(context.attrs(), 2)?;
    let result = context.input_i64s(1)?;
    let (input, incoming) = (context.input(0)?, context.input(2)?);
    let Some(shape) = backward_geometry(
        context,
        format,
        [input.dims(), &result, incoming.dims()],
        depthwise,
    )?
    else {
        return set_zeros(context, &result);
    };
    let mut output = Tensor::zeros(input.dtype(), Shape::new(&result)?)?;
    let (input, incoming) = (channels_last(format, input)?, channels_last(format, incoming)?);
    crate::match_type!(output.dtype(), (f32, f64), T => {
        let (input, incoming) = (input.as_slice::<T>()?, incoming.as_slice::<T>()?);
        conv_backward_filter(context.pool(), &shape, input, incoming, output.as_mut_slice()?).map_err(out_of_memory)
    })?;
    context.set_output(0, output)
}

fn set_zeros(context: &mut KernelContext, dims: &[i64]) -> Result<()> {
    let zeros = Tensor::zeros(context.output_type(0), Shape::new(dims)?)?;
    context.set_output(0, zeros)
}

/// The geometry of a gradient, from the shapes of input, filter and incoming gradient; none where it is all zeros.
fn backward_geometry(
    context: &KernelContext,
    format: Format,
    shapes: [&[i64]; 3],
    depthwise: bool,
) -> Result<Option<Convolution>> {
    for dims in shapes {
        Shape::new(dims)?;
    }
    if sums_nothing(context.node().op_name(), context.output_type(0), shapes) {
        return Ok(None);
    }
    let [input, filter, incoming] = shapes;
    ensure!(
        shapes.iter().all(|dims| dims.len() == 4),
        InvalidArgument,
        "Conv2DBackprop: expected 4-D shapes, got {input:?}, {filter:?} and {incoming:?}"
    );
    let axes = axes(context.attrs(), format, input, filter)?;
    let (input, incoming) = (format.channels_last_of(input), format.channels_last_of(incoming));
    check_shapes([&input, filter, &incoming], &axes, depthwise)?;
    if shapes.iter().any(|dims| dims.contains(&0)) {
        return Ok(None);
    }
    geometry(context, &input, filter, depthwise).map(Some)
}
