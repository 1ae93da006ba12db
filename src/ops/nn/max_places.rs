//! Pooling ops that care where the largest elements are: positions as outputs, gradients by position, gradients of
//! gradients.
//!
//! Of equal elements the first counts, except for `MaxPool3DGrad`, where all do, as on the reference's CPU.

use super::geometry::{Axis, Format, Padding, axis, inferred_extents};
use super::pool::{Sizes, pool_attrs, second_max_gradient, windows_of};
use crate::movement::transpose;
use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Shape, Tensor, bail, ensure};

const GRADIENT_OF_GRADIENT: Op = Op {
    name: "MaxPoolGradGrad",
    shape: |context| forward_shape(context, 2),
    kernels: &[Kernel::native(|context| gradient_of_gradient(context, 2))],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::Fn(|context| second_max_gradient(context, "MaxPoolGrad")),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "MaxPoolWithArgmax",
        shape: positions_shape,
        kernels: &[Kernel::native(with_positions)],
        gradient: Gradient::Fn(positions_gradient),
        ..Op::PURE
    },
    &Op {
        name: "MaxPoolGradWithArgmax",
        shape: |context| {
            let input = context.input_with_rank(0, 4)?;
            context.input_with_rank(1, 4)?.merge(&context.input(2))?;
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(by_positions)],
        ..Op::PURE
    },
    &GRADIENT_OF_GRADIENT,
    &Op {
        name: "MaxPoolGradGradV2",
        shape: |context| {
            context.input_with_rank(3, 1)?;
            context.input_with_rank(4, 1)?;
            let input = context.input_with_rank(0, 4)?;
            context.input_with_rank(2, 4)?.merge(&input)?;
            let output = context.input_with_rank(1, 4)?;
            context.set_output(0, output);
            Ok(())
        },
        gradient: Gradient::Missing,
        ..GRADIENT_OF_GRADIENT
    },
    &Op {
        name: "MaxPool3DGradGrad",
        shape: |context| forward_shape(context, 3),
        kernels: &[Kernel::native(|context| gradient_of_gradient(context, 3))],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(|context| second_max_gradient(context, "MaxPool3DGrad")),
        ..Op::PURE
    },
    &Op {
        name: "MaxPool3DGrad",
        shape: |context| {
            let input = context.input_with_rank(0, 5)?;
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(volume_gradient)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(|context| second_max_gradient(context, "MaxPool3DGradGrad")),
        ..Op::PURE
    },
];

/// The output has the shape of the forward op's output, input 1.
fn forward_shape(context: &mut ShapeContext, spatial: usize) -> Result<()> {
    let output = context.input_with_rank(1, spatial + 2)?;
    context
        .input_with_rank(2, spatial + 2)?
        .merge(&context.input_with_rank(0, spatial + 2)?)?;
    context.set_output(0, output);
    Ok(())
}

fn positions_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank(0, 4)?;
    let format = Format {
        spatial: 2,
        channels_last: true,
    };
    let [windows, strides] = windows_of(context.attrs(), format)?;
    let padding = Padding::of(context.attrs(), format)?;
    let steps = |i: usize| [windows[i], strides[i], 1];
    let extents = inferred_extents(context, format, &padding, &input, steps)?;
    let shape = format.shape(input.dim(0), &extents, input.dim(3));
    context.set_output(0, shape.clone());
    context.set_output(1, shape);
    Ok(())
}

/// Windows over images with channels last.
struct Windows {
    batch: usize,
    axes: [Axis; 3],
    channels: usize,
}

impl Windows {
    /// From an image's extents with channels last.
    fn of(context: &KernelContext, format: Format, dims: &[i64]) -> Result<Windows> {
        let [windows, strides] = match context.num_inputs() {
            5 => Sizes::of_inputs(context.input_i64s(3)?, context.input_i64s(4)?, format)?.spatial(format)?,
            _ if context.node().op_name().ends_with("Argmax") => windows_of(context.attrs(), format)?,
            _ => Sizes::of(context.attrs()).spatial(format)?,
        };
        let padding = Padding::of(context.attrs(), format)?;
        let mut axes = [axis(&Padding::Valid, 0, 1, 1, 1, 1)?; 3];
        for i in 0..format.spatial {
            axes[3 - format.spatial + i] = axis(&padding, i, dims[i + 1], windows[i], strides[i], 1)?;
        }
        Ok(Windows {
            batch: dims[0] as usize,
            axes,
            channels: dims[format.spatial + 1] as usize,
        })
    }

    fn input_pixels(&self) -> usize {
        self.axes.iter().map(|axis| axis.input as usize).product()
    }

    fn output_pixels(&self) -> usize {
        self.axes.iter().map(|axis| axis.output as usize).product()
    }

    /// The input pixels under the window of an output pixel, within one image, in order.
    fn pixels(&self, output: usize) -> impl Iterator<Item = usize> {
        let [a, b, c] = self.axes;
        let (x, rest) = (output as i64 % c.output, output as i64 / c.output);
        let (y, z) = (rest % b.output, rest / b.output);
        let span = |axis: Axis, at: i64| {
            let start = at * axis.stride - axis.low;
            start.max(0)..(start + axis.window).min(axis.input)
        };
        let (xs, ys) = (span(c, x), span(b, y));
        span(a, z).flat_map(move |z| {
            let xs = xs.clone();
            ys.clone().flat_map(move |y| {
                xs.clone()
                    .map(move |x| ((z * b.input + y) * c.input + x) as usize)
            })
        })
    }

    /// Calls `found(image, output element, pixel)` with the first largest element of every window of every channel.
    fn for_each_largest(&self, x: &[f64], mut found: impl FnMut(usize, usize, usize)) {
        let (inputs, outputs) = (self.input_pixels(), self.output_pixels());
        for image in 0..self.batch {
            for output in 0..outputs {
                for c in 0..self.channels {
                    let at = |pixel: usize| x[(image * inputs + pixel) * self.channels + c];
                    let mut best: Option<usize> = None;
                    for pixel in self.pixels(output) {
                        if best.is_none_or(|best| at(pixel) > at(best)) {
                            best = Some(pixel);
                        }
                    }
                    if let Some(best) = best {
                        found(image, (image * outputs + output) * self.channels + c, best);
                    }
                }
            }
        }
    }
}

/// A value with its channels last.
fn channels_last(format: Format, value: &Tensor) -> Result<Tensor> {
    if format.channels_last {
        return Ok(value.clone());
    }
    let order: Vec<usize> = [0].into_iter().chain(2..value.rank()).chain([1]).collect();
    transpose(value, &order)
}

/// Sets output 0 from values with channels last, in the format.
fn set_in_format(context: &mut KernelContext, format: Format, dims: &[i64], values: &[f64]) -> Result<()> {
    let made = from_f64s(context.output_type(0), Shape::new(dims)?, values)?;
    if format.channels_last {
        return context.set_output(0, made);
    }
    let last = dims.len() - 1;
    let order: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
    context.set_output(0, transpose(&made, &order)?)
}

fn with_positions(context: &mut KernelContext) -> Result<()> {
    let format = Format {
        spatial: 2,
        channels_last: true,
    };
    ensure!(
        context.input(0)?.num_elements() > 0,
        InvalidArgument,
        "tensor_in must not be empty"
    );
    let windows = Windows::of(context, format, context.input(0)?.dims())?;
    let per_batch = context.attrs().bool("include_batch_in_index")?;
    let x = f64s(context.input(0)?)?;
    let shape = context.output_shape(0)?.clone();
    let mut largest: Vec<f64> = zeros(shape.num_elements())?;
    let mut places: Vec<f64> = zeros(shape.num_elements())?;
    let (pixels, channels) = (windows.input_pixels(), windows.channels);
    windows.for_each_largest(&x, |image, element, pixel| {
        largest[element] = x[(image * pixels + pixel) * channels + element % channels];
        let before = if per_batch { image * pixels } else { 0 };
        places[element] = ((before + pixel) * channels + element % channels) as f64;
    });
    let largest = from_f64s(context.output_type(0), shape.clone(), &largest)?;
    let places = from_f64s(context.output_type(1), shape, &places)?;
    context.set_output(0, largest)?;
    context.set_output(1, places)
}

fn by_positions(context: &mut KernelContext) -> Result<()> {
    let format = Format {
        spatial: 2,
        channels_last: true,
    };
    let per_batch = context.attrs().bool("include_batch_in_index")?;
    let (input, incoming, places) = (context.input(0)?, context.input(1)?, context.input_i64s(2)?);
    let dims = pooled(&Windows::of(context, format, input.dims())?, 2);
    check_dims("grad", incoming, &dims)?;
    check_dims("argmax", context.input(2)?, &dims)?;
    let batch = input.dims()[0].max(1) as usize;
    let image = input.num_elements() / batch;
    let each = (places.len() / batch).max(1);
    let mut result: Vec<f64> = zeros(input.num_elements())?;
    for (i, (&place, &gradient)) in places.iter().zip(f64s(incoming)?.iter()).enumerate() {
        let start = if per_batch { 0 } else { i / each * image };
        // A place may lead into another image of the batch.
        let to = place
            .checked_add(start as i64)
            .and_then(|to| usize::try_from(to).ok());
        let Some(to) = to.and_then(|to| result.get_mut(to)) else {
            bail!(InvalidArgument, "Encountered invalid argmax index: {place}");
        };
        *to += gradient;
    }
    let shape = input.shape().clone();
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

/// Checks that a tensor has the pooled, or the whole, extents.
fn check_dims(what: &str, actual: &Tensor, expected: &[i64]) -> Result<()> {
    ensure!(
        actual.dims() == expected,
        InvalidArgument,
        "Expected {what} shape to be {expected:?}, but got {}",
        actual.shape()
    );
    Ok(())
}

/// Extents of the output, with channels last.
fn pooled(windows: &Windows, spatial: usize) -> Vec<i64> {
    let mut dims = vec![windows.batch as i64];
    dims.extend(windows.axes[3 - spatial..].iter().map(|axis| axis.output));
    dims.push(windows.channels as i64);
    dims
}

fn gradient_of_gradient(context: &mut KernelContext, spatial: usize) -> Result<()> {
    let format = Format::of(context.attrs(), spatial)?;
    let input = channels_last(format, context.input(0)?)?;
    let output = channels_last(format, context.input(1)?)?;
    let incoming = channels_last(format, context.input(2)?)?;
    let windows = Windows::of(context, format, input.dims())?;
    let dims = pooled(&windows, spatial);
    check_dims("orig_output", &output, &dims)?;
    check_dims("grad", &incoming, input.dims())?;
    let (x, largest, incoming) = (f64s(&input)?, f64s(&output)?, f64s(&incoming)?);
    let mut result: Vec<f64> = zeros(output.num_elements())?;
    let (inputs, outputs, channels) = (windows.input_pixels(), windows.output_pixels(), windows.channels);
    for (element, result) in result.iter_mut().enumerate() {
        let (image, pixel) = (element / channels / outputs, element / channels % outputs);
        let place = |source: usize| (image * inputs + source) * channels + element % channels;
        let found = windows
            .pixels(pixel)
            .find(|&source| x[place(source)] == largest[element]);
        if let Some(source) = found {
            *result = incoming[place(source)];
        }
    }
    set_in_format(context, format, &dims, &result)
}

fn volume_gradient(context: &mut KernelContext) -> Result<()> {
    let format = Format::of(context.attrs(), 3)?;
    let input = channels_last(format, context.input(0)?)?;
    let output = channels_last(format, context.input(1)?)?;
    let incoming = channels_last(format, context.input(2)?)?;
    let windows = Windows::of(context, format, input.dims())?;
    let dims = pooled(&windows, 3);
    check_dims("orig_output", &output, &dims)?;
    check_dims("grad", &incoming, &dims)?;
    let (x, largest, incoming) = (f64s(&input)?, f64s(&output)?, f64s(&incoming)?);
    let mut result: Vec<f64> = zeros(x.len())?;
    let (inputs, outputs, channels) = (windows.input_pixels(), windows.output_pixels(), windows.channels);
    for image in 0..windows.batch {
        for pixel in 0..outputs {
            for source in windows.pixels(pixel) {
                for c in 0..channels {
                    let from = (image * outputs + pixel) * channels + c;
                    let to = (image * inputs + source) * channels + c;
                    if x[to] == largest[from] {
                        result[to] += incoming[from];
                    }
                }
            }
        }
    }
    set_in_format(context, format, input.dims(), &result)
}

fn positions_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, places) = (context.input(0)?, context.output(1));
    let attrs = pool_attrs(context).with("Targmax", context.dtype(places)).with(
        "include_batch_in_index",
        context.attrs().bool("include_batch_in_index")?,
    );
    let gradient = context.op("MaxPoolGradWithArgmax", &[input, incoming, places], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// Attributes of windows of 2 x 2 that overlap along the first axis.
#[cfg(test)]
fn windowed(case: crate::testing::Case, spatial: usize) -> crate::testing::Case {
    let mut ksize = vec![2i64; spatial + 2];
    (ksize[0], ksize[spatial + 1]) = (1, 1);
    let mut strides = ksize.clone();
    strides[1] = 1;
    case.attr("ksize", ksize)
        .attr("strides", strides)
        .attr("padding", "VALID")
}

#[cfg(test)]
const IMAGE: [f64; 16] = [
    1.0, 2.0, 9.0, 3.0, 4.0, 4.0, 5.0, 6.0, 7.0, 1.0, 0.0, -1.0, 2.0, 8.0, 3.0, 3.0,
];

crate::op_cases! {
    by_position_in_another_image: windowed(Case::op("MaxPoolGradWithArgmax").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 1]), t(&[2, 1, 1, 1], &[1.0f32, 2.0]), t(&[2, 1, 1, 1], &[5i64, -1])]), 2)
        .gives(t(&[2, 2, 2, 1], &[0.0f32, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0]));
    by_position_of_another_shape: windowed(Case::op("MaxPoolGradWithArgmax").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 1]), cycle(DataType::FLOAT, &[1, 2, 1, 1]), t(&[1, 2, 1, 1], &[1i64, 2])]), 2)
        .fails(Code::InvalidArgument);
    by_position_over_batch: Case::op("MaxPoolGradWithArgmax").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 1]), cycle(DataType::FLOAT, &[2, 1, 1, 1]), t(&[2, 1, 1, 1], &[3i64, 1])])
        .attr("ksize", vec![2i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::Unimplemented);
    places_in_nothing: Case::op("MaxPoolWithArgmax").input(t::<f32>(&[0, 1, 0, 0], &[])).attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1])
        .attr("padding", "SAME").fails(Code::InvalidArgument);
    positions: family(&["MaxPoolWithArgmax"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        windowed(Case::op(op).input(cycle(dtype, &[2, 4, 5, 2])), 2)
    });
    positions_padded: Case::op("MaxPoolWithArgmax").input(cycle(DataType::FLOAT, &[2, 4, 5, 2])).attr("ksize", vec![1i64, 3, 3, 1])
        .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME").attr("include_batch_in_index", true).attr("Targmax", DataType::INT32);
    positions_of_plane: windowed(Case::op("MaxPoolWithArgmax").input(cycle(DataType::FLOAT, &[4, 5])), 2).fails(Code::InvalidArgument);
    by_position: family(&["MaxPoolGradWithArgmax"], FLOATS, |op, dtype| {
        windowed(Case::op(op).inputs([cycle(dtype, &[2, 2, 2, 1]), cycle(dtype, &[2, 1, 1, 1]), t(&[2, 1, 1, 1], &[3i64, 1])]), 2)
    });
    by_position_of_batch: windowed(Case::op("MaxPoolGradWithArgmax").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 1]), cycle(DataType::FLOAT, &[2, 1, 1, 1]), t(&[2, 1, 1, 1], &[3i64, 7])])
        .attr("include_batch_in_index", true), 2);
    position_out_of_range: windowed(Case::op("MaxPoolGradWithArgmax").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 1]), cycle(DataType::FLOAT, &[2, 1, 1, 1]), t(&[2, 1, 1, 1], &[3i64, 99])]), 2)
        .fails(Code::InvalidArgument);
    second: family(&["MaxPoolGradGrad"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        windowed(Case::op(op).inputs([numbers(dtype, &[1, 4, 4, 1], &IMAGE), numbers(dtype, &[1, 3, 2, 1], &[4.0, 9.0, 7.0, 6.0, 8.0, 3.0]), counting(dtype, &[1, 4, 4, 1])]), 2)
    });
    second_of_others: windowed(Case::op("MaxPoolGradGrad").inputs([numbers(DataType::FLOAT, &[1, 2, 2, 1], &[1.0, 2.0, 2.0, 3.0]), numbers(DataType::FLOAT, &[1, 1, 1, 1], &[2.0]), counting(DataType::FLOAT, &[1, 2, 2, 1])]), 2)
        .gives(numbers(DataType::FLOAT, &[1, 1, 1, 1], &[1.0])).without_gradient();
    second_of_none: windowed(Case::op("MaxPoolGradGrad").inputs([numbers(DataType::FLOAT, &[1, 2, 2, 1], &[1.0, 2.0, 2.0, 3.0]), numbers(DataType::FLOAT, &[1, 1, 1, 1], &[7.0]), counting(DataType::FLOAT, &[1, 2, 2, 1])]), 2)
        .gives(numbers(DataType::FLOAT, &[1, 1, 1, 1], &[0.0])).without_gradient();
    second_misfit: windowed(Case::op("MaxPoolGradGrad").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 1]), cycle(DataType::FLOAT, &[1, 2, 2, 1]), cycle(DataType::FLOAT, &[1, 4, 4, 1])]), 2)
        .fails(Code::InvalidArgument);
    second_by_inputs: family(&["MaxPoolGradGradV2"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[1, 4, 4, 1], &IMAGE), numbers(dtype, &[1, 3, 2, 1], &[4.0, 9.0, 7.0, 6.0, 8.0, 3.0]), counting(dtype, &[1, 4, 4, 1])])
            .inputs([vector(&[1, 2, 2, 1]), vector(&[1, 1, 2, 1])]).attr("padding", "VALID")
    });
    second_by_inputs_of_vector: Case::op("MaxPoolGradGradV2").inputs([vector(&[1.0f32]), cycle(DataType::FLOAT, &[1, 3, 2, 1]), cycle(DataType::FLOAT, &[1, 4, 4, 1])])
        .inputs([vector(&[1, 2, 2, 1]), vector(&[1, 2, 2, 1])]).attr("padding", "VALID").fails(Code::InvalidArgument);
    second_by_inputs_misfit: Case::op("MaxPoolGradGradV2").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 1]), cycle(DataType::FLOAT, &[1, 3, 2, 1]), cycle(DataType::FLOAT, &[1, 4, 4, 1])])
            .inputs([vector(&[1, 2, 2]), vector(&[1, 1, 2, 1])]).attr("padding", "VALID").fails(Code::InvalidArgument);
    volumes: family(&["MaxPool3DGrad"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        windowed(Case::op(op).inputs([numbers(dtype, &[1, 2, 2, 4, 1], &IMAGE), numbers(dtype, &[1, 1, 1, 2, 1], &[8.0, 9.0]), counting(dtype, &[1, 1, 1, 2, 1])]), 3)
    });
    volumes_tied: windowed(Case::op("MaxPool3DGrad").inputs([numbers(DataType::FLOAT, &[1, 2, 2, 4, 1], &[2.0; 16]), numbers(DataType::FLOAT, &[1, 1, 1, 2, 1], &[2.0, 2.0]), counting(DataType::FLOAT, &[1, 1, 1, 2, 1])]), 3).without_gradient();
    volumes_misfit: windowed(Case::op("MaxPool3DGrad").inputs([cycle(DataType::FLOAT, &[1, 2, 2, 4, 1]), cycle(DataType::FLOAT, &[1, 1, 1, 2, 1]), counting(DataType::FLOAT, &[1, 1, 1, 3, 1])]), 3)
        .fails(Code::InvalidArgument);
    volumes_second: family(&["MaxPool3DGradGrad"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        windowed(Case::op(op).inputs([numbers(dtype, &[1, 2, 2, 4, 1], &IMAGE), numbers(dtype, &[1, 1, 1, 2, 1], &[8.0, 9.0]), counting(dtype, &[1, 2, 2, 4, 1])]), 3)
    });
    volumes_second_misfit: windowed(Case::op("MaxPool3DGradGrad").inputs([cycle(DataType::FLOAT, &[1, 2, 2, 4, 1]), cycle(DataType::FLOAT, &[1, 1, 1, 3, 1]), counting(DataType::FLOAT, &[1, 2, 2, 4, 1])]), 3)
        .fails(Code::InvalidArgument);
}
