//! Pooling and resizing of quantized images.

use super::range::{Range, from_integers, integers};
use super::requantize::set_range;
use crate::image::sampling::{Scale, linear};
use crate::nn::geometry::{Axis, Format, Padding, axis, inferred_extents};
use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
#[cfg(test)]
use ff_tensor::DataType;
use ff_tensor::{PartialShape, Result, dim, ensure};

const POOL: Op = Op {
    name: "QuantizedMaxPool",
    shape: pool_shape,
    kernels: &[Kernel::native(|context| pool(context, true))],
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &POOL,
    &Op {
        name: "QuantizedAvgPool",
        kernels: &[Kernel::native(|context| pool(context, false))],
        ..POOL
    },
    &Op {
        name: "QuantizedResizeBilinear",
        shape: |context| {
            let image = context.input_with_rank(0, 4)?;
            let size = context.input_with_rank(1, 1)?;
            dim::merge(size.dim(0), 2)?;
            context.input_with_rank(2, 0)?;
            context.input_with_rank(3, 0)?;
            let (height, width) = match context.input_as_i64s(1)? {
                Some(values) if values.len() == 2 => {
                    ensure!(
                        values.iter().all(|&extent| extent > 0),
                        InvalidArgument,
                        "output dimensions must be positive"
                    );
                    (values[0], values[1])
                }
                _ => (dim::UNKNOWN, dim::UNKNOWN),
            };
            finish_shape(
                context,
                PartialShape::new(&[image.dim(0), height, width, image.dim(3)]),
            )
        },
        kernels: &[Kernel::native(resize)],
        ..Op::PURE
    },
];

const FORMAT: Format = Format {
    spatial: 2,
    channels_last: true,
};

fn finish_shape(context: &mut ShapeContext, shape: PartialShape) -> Result<()> {
    context.set_output(0, shape);
    context.set_output(1, PartialShape::scalar());
    context.set_output(2, PartialShape::scalar());
    Ok(())
}

fn pool_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank(0, 4)?;
    context.input_with_rank(1, 0)?;
    context.input_with_rank(2, 0)?;
    let [windows, strides] = crate::nn::pool::windows_of(context.attrs(), FORMAT)?;
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let steps = |i: usize| [windows[i], strides[i], 1];
    let extents = inferred_extents(context, FORMAT, &padding, &input, steps)?;
    let shape = FORMAT.shape(input.dim(0), &extents, input.dim(3));
    finish_shape(context, shape)
}

fn pool(context: &mut KernelContext, largest: bool) -> Result<()> {
    let dims = context.input(0)?.dims();
    let [windows, strides] = crate::nn::pool::windows_of(context.attrs(), FORMAT)?;
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let along = |i: usize| axis(&padding, i, dims[i + 1], windows[i], strides[i], 1);
    let [rows, columns]: [Axis; 2] = [along(0)?, along(1)?];
    let channels = dims[3] as usize;
    let range = Range::of(context.input(1)?, context.input(2)?)?;
    let values = integers(context.input(0)?)?;
    let shape = context.output_shape(0)?.clone();
    let mut result: Vec<i64> = zeros(shape.num_elements())?;
    let pixels = (rows.output * columns.output) as usize;
    let span = |axis: Axis, at: i64| {
        let start = at * axis.stride - axis.low;
        start.max(0)..(start + axis.window).min(axis.input)
    };
    for (pixel, out) in result.chunks_exact_mut(channels.max(1)).enumerate() {
        let (image, place) = ((pixel / pixels) as i64, (pixel % pixels) as i64);
        let (ys, xs) = (
            span(rows, place / columns.output),
            span(columns, place % columns.output),
        );
        let count = (ys.end - ys.start) * (xs.end - xs.start);
        let mut first = true;
        for y in ys {
            for x in xs.clone() {
                let from = ((image * rows.input + y) * columns.input + x) as usize * channels;
                for (out, &value) in out.iter_mut().zip(&values[from..]) {
                    *out = match (largest, first) {
                        (_, true) => value,
                        (true, _) => value.max(*out),
                        (false, _) => value + *out,
                    };
                }
                first = false;
            }
        }
        if !largest && count > 0 {
            out.iter_mut()
                .for_each(|sum| *sum = (*sum as f64 / count as f64).round_ties_even() as i64);
        }
    }
    let result = from_integers(context.output_type(0), shape, &result)?;
    context.set_output(0, result)?;
    set_range(context, range)
}

fn resize(context: &mut KernelContext) -> Result<()> {
    let range = Range::of(context.input(2)?, context.input(3)?)?;
    let input = context.input(0)?;
    let attrs = context.attrs();
    let (align, half_pixel) = (attrs.bool("align_corners")?, attrs.bool("half_pixel_centers")?);
    ensure!(
        !(align && half_pixel),
        InvalidArgument,
        "If half_pixel_centers is True, align_corners must be False."
    );
    let quantized = input.dtype().is_quantized();
    // Linear interpolation of integers is that of what they stand for.
    let numbers: Vec<f64> = if quantized {
        crate::wide::collected(integers(input)?.into_iter().map(|value| value as f64))?
    } else {
        f64s(input)?.into_owned()
    };
    let shape = context.output_shape(0)?.clone();
    let (from, to) = (input.dims(), shape.dims());
    ensure!(
        from[1] > 0 && from[2] > 0,
        InvalidArgument,
        "input image must be of non-zero size"
    );
    let places = |axis: usize| {
        let (input, output) = (from[axis] as usize, to[axis] as usize);
        linear(Scale::new(input, output, align, half_pixel), input, output)
    };
    let places = [places(1)?, places(2)?];
    let (height, width, channels) = (from[1] as usize, from[2] as usize, from[3] as usize);
    let mut result: Vec<f64> = zeros(shape.num_elements())?;
    let mut at = 0;
    for image in 0..from[0] as usize {
        for y in &places[0] {
            for x in &places[1] {
                for c in 0..channels {
                    let read = |row: usize, column: usize| {
                        numbers[((image * height + row) * width + column) * channels + c]
                    };
                    let above = read(y.lower, x.lower);
                    let above = above + (read(y.lower, x.upper) - above) * f64::from(x.weight);
                    let below = read(y.upper, x.lower);
                    let below = below + (read(y.upper, x.upper) - below) * f64::from(x.weight);
                    result[at] = above + (below - above) * f64::from(y.weight);
                    at += 1;
                }
            }
        }
    }
    let dtype = context.output_type(0);
    let made = if quantized {
        let values: Vec<i64> = crate::wide::collected(result.iter().map(|x| x.round() as i64))?;
        from_integers(dtype, shape, &values)?
    } else {
        from_f64s(dtype, shape, &result)?
    };
    context.set_output(0, made)?;
    set_range(context, range)
}

#[cfg(test)]
fn spread(dtype: DataType, dims: &[i64]) -> ff_tensor::Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<i64> = (0..count).map(|i| i * 37 % 127).collect();
    super::convert::q(dtype, dims, &values)
}

crate::op_cases! {
    pools: family(&["QuantizedMaxPool", "QuantizedAvgPool"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([spread(dtype, &[2, 5, 4, 2]), scalar(-1.0f32), scalar(3.0f32)]).attr("ksize", vec![1i64, 2, 2, 1])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID")
    });
    pools_misfit: family(&["QuantizedMaxPool", "QuantizedAvgPool"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([spread(dtype, &[5, 4, 2]), scalar(-1.0f32), scalar(3.0f32)]).attr("ksize", vec![1i64, 2, 2, 1])
            .attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID").fails(Code::InvalidArgument)
    });
    resized: family(&["QuantizedResizeBilinear"], &[DataType::QUINT8, DataType::QINT32], |op, dtype| {
        Case::op(op).inputs([spread(dtype, &[1, 3, 4, 2]), vector(&[5, 3]), scalar(-1.0f32), scalar(3.0f32)])
    });
    resized_floats: Case::op("QuantizedResizeBilinear").inputs([cycle(DataType::FLOAT, &[1, 3, 4, 2]), vector(&[5, 3]), scalar(-1.0f32), scalar(3.0f32)]).attr("align_corners", true);
    resized_to_nothing: Case::op("QuantizedResizeBilinear").inputs([spread(DataType::QUINT8, &[1, 3, 4, 2]), vector(&[0, 3]), scalar(-1.0f32), scalar(3.0f32)])
        .fails(Code::InvalidArgument);
}
