//! Products and convolutions of quantized numbers, in 32 bits.

use super::range::{Levels, Range, from_integers, integers};
use super::requantize::set_range;
use crate::nn::geometry::{Axis, Format, Padding, axis, output_extent};
use crate::wide::zeros;
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "QuantizedMatMul",
        shape: |context| {
            let (a, b) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
            let (ta, tb) = (
                i64::from(context.attrs().bool("transpose_a")?),
                i64::from(context.attrs().bool("transpose_b")?),
            );
            dim::merge(a.dim(1 - ta), b.dim(tb))?;
            finish_shape(context, PartialShape::new(&[a.dim(ta), b.dim(1 - tb)]))
        },
        kernels: &[Kernel::native(mat_mul)],
        ..Op::PURE
    },
    &Op {
        name: "QuantizedConv2D",
        shape: |context| convolution_shape(context, false),
        kernels: &[Kernel::native(|context| convolution(context, false))],
        ..Op::PURE
    },
    &Op {
        name: "QuantizedDepthwiseConv2D",
        shape: |context| convolution_shape(context, true),
        kernels: &[Kernel::native(|context| convolution(context, true))],
        ..Op::PURE
    },
];

fn finish_shape(context: &mut ShapeContext, shape: PartialShape) -> Result<()> {
    for input in 2..6 {
        context.input_with_rank(input, 0)?;
    }
    context.set_output(0, shape);
    context.set_output(1, PartialShape::scalar());
    context.set_output(2, PartialShape::scalar());
    Ok(())
}

const FORMAT: Format = Format {
    spatial: 2,
    channels_last: true,
};

fn convolution_shape(context: &mut ShapeContext, depthwise: bool) -> Result<()> {
    let (input, filter) = (context.input_with_rank(0, 4)?, context.input_with_rank(1, 4)?);
    let strides = FORMAT.spatial_of(context.attrs(), "strides", false)?;
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let inner = dim::merge(input.dim(3), filter.dim(2))?;
    let channels = if depthwise {
        dim::mul(inner, filter.dim(3))?
    } else {
        filter.dim(3)
    };
    let mut extents = Vec::new();
    for i in 0..2 {
        let (extent, window) = (input.dim(i as i64 + 1), filter.dim(i as i64));
        extents.push(output_extent(&padding, i, extent, window, strides[i], 1)?);
    }
    finish_shape(context, FORMAT.shape(input.dim(0), &extents, channels))
}

/// Integers of both operands, less what stands for zero, and the range of their products.
struct Operands {
    a: Vec<i64>,
    b: Vec<i64>,
    range: Range,
}

impl Operands {
    fn of(context: &KernelContext) -> Result<Operands> {
        let ranges = [
            Range::of(context.input(2)?, context.input(3)?)?,
            Range::of(context.input(4)?, context.input(5)?)?,
        ];
        let levels = [
            Levels::of(context.input(0)?.dtype())?,
            Levels::of(context.input(1)?.dtype())?,
        ];
        let centred = |i: usize| -> Result<Vec<i64>> {
            let zero = levels[i].unclamped(0.0, ranges[i]);
            let values = integers(context.input(i)?)?;
            crate::wide::collected(values.into_iter().map(|value| value - zero))
        };
        Ok(Operands {
            a: centred(0)?,
            b: centred(1)?,
            range: Range::of_products((levels[0], ranges[0]), (levels[1], ranges[1])),
        })
    }
}

fn finish(context: &mut KernelContext, sums: &[i64], range: Range) -> Result<()> {
    let shape: Shape = context.output_shape(0)?.clone();
    let wrapped: Vec<i64> = crate::wide::collected(sums.iter().map(|&sum| i64::from(sum as i32)))?;
    let result = from_integers(context.output_type(0), shape, &wrapped)?;
    context.set_output(0, result)?;
    set_range(context, range)
}

fn mat_mul(context: &mut KernelContext) -> Result<()> {
    let operands = Operands::of(context)?;
    let (ta, tb) = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    let (m, k) = if ta { (a[1], a[0]) } else { (a[0], a[1]) };
    let n = if tb { b[0] } else { b[1] };
    let (m, k, n) = (m as usize, k as usize, n as usize);
    let mut sums: Vec<i64> = zeros(m * n)?;
    for i in 0..m {
        for t in 0..k {
            let x = operands.a[if ta { t * m + i } else { i * k + t }];
            for (j, sum) in sums[i * n..(i + 1) * n].iter_mut().enumerate() {
                *sum += x * operands.b[if tb { j * k + t } else { t * n + j }];
            }
        }
    }
    finish(context, &sums, operands.range)
}

fn convolution(context: &mut KernelContext, depthwise: bool) -> Result<()> {
    let operands = Operands::of(context)?;
    let (input, filter) = (context.input(0)?.dims(), context.input(1)?.dims());
    let strides = FORMAT.spatial_of(context.attrs(), "strides", false)?;
    let dilations = FORMAT.spatial_of(context.attrs(), "dilations", false)?;
    ensure!(
        dilations == [1, 1],
        Unimplemented,
        "{} does not support dilations, got {dilations:?}",
        context.node().op_name()
    );
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let along = |i: usize| axis(&padding, i, input[i + 1], filter[i], strides[i], 1);
    let axes: [Axis; 2] = [along(0)?, along(1)?];
    let (inner, multiplier) = (filter[2] as usize, filter[3] as usize);
    let channels = if depthwise { inner * multiplier } else { multiplier };
    let mut sums: Vec<i64> = zeros(context.output_shape(0)?.num_elements())?;
    let [rows, columns] = axes;
    let pixels = (rows.output * columns.output) as usize;
    for (pixel, out) in sums.chunks_exact_mut(channels.max(1)).enumerate() {
        let (b, place) = ((pixel / pixels) as i64, (pixel % pixels) as i64);
        let (y, x) = (place / columns.output, place % columns.output);
        for fy in 0..rows.window {
            let row = y * rows.stride - rows.low + fy;
            for fx in 0..columns.window {
                let column = x * columns.stride - columns.low + fx;
                if !(0..rows.input).contains(&row) || !(0..columns.input).contains(&column) {
                    continue;
                }
                let from = ((b * rows.input + row) * columns.input + column) as usize * inner;
                let by = (fy * columns.window + fx) as usize * inner * multiplier;
                for (c, &value) in operands.a[from..from + inner].iter().enumerate() {
                    let weights = &operands.b[by + c * multiplier..][..multiplier];
                    let start = if depthwise { c * multiplier } else { 0 };
                    for (sum, weight) in out[start..].iter_mut().zip(weights) {
                        *sum += value * weight;
                    }
                }
            }
        }
    }
    finish(context, &sums, operands.range)
}

#[cfg(test)]
fn spread(dtype: ff_tensor::DataType, dims: &[i64]) -> ff_tensor::Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<i64> = (0..count).map(|i| i * 37 % 127).collect();
    super::convert::q(dtype, dims, &values)
}

crate::op_cases! {
    products: Case::op("QuantizedMatMul").inputs([spread(DataType::QUINT8, &[2, 3]), spread(DataType::QUINT8, &[3, 4])])
        .inputs([scalar(-3.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]);
    products_turned: Case::op("QuantizedMatMul").inputs([spread(DataType::QUINT8, &[3, 2]), spread(DataType::QUINT8, &[4, 3])])
        .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).attr("transpose_a", true).attr("transpose_b", true);
    products_misfit: Case::op("QuantizedMatMul").inputs([spread(DataType::QUINT8, &[2, 3]), spread(DataType::QUINT8, &[2, 4])])
        .inputs([scalar(-3.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).fails(Code::InvalidArgument);
    planes: Case::op("QuantizedConv2D").inputs([spread(DataType::QUINT8, &[2, 4, 5, 2]), spread(DataType::QUINT8, &[3, 2, 2, 3])])
        .inputs([scalar(-3.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "SAME");
    planes_inside: Case::op("QuantizedConv2D").inputs([spread(DataType::QUINT8, &[2, 4, 5, 2]), spread(DataType::QUINT8, &[3, 2, 2, 3])])
        .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).attr("strides", vec![1i64; 4]).attr("padding", "VALID");
    planes_misfit: Case::op("QuantizedConv2D").inputs([spread(DataType::QUINT8, &[2, 4, 5, 2]), spread(DataType::QUINT8, &[3, 2, 3, 3])])
        .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).attr("strides", vec![1i64; 4]).attr("padding", "VALID").fails(Code::InvalidArgument);
    by_depth: Case::op("QuantizedDepthwiseConv2D").inputs([spread(DataType::QUINT8, &[1, 4, 5, 2]), spread(DataType::QINT8, &[3, 2, 2, 1])])
        .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(1.0f32)]).attr("strides", vec![1i64; 4]).attr("padding", "SAME");
    by_depth_misfit: Case::op("QuantizedDepthwiseConv2D").inputs([spread(DataType::QUINT8, &[1, 4, 5, 2]), spread(DataType::QINT8, &[3, 2, 3, 1])])
        .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(1.0f32)]).attr("strides", vec![1i64; 4]).attr("padding", "SAME").fails(Code::InvalidArgument);
}
