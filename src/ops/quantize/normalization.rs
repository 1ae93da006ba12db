//! Normalization of quantized images: by their own statistics, and by given ones.

use super::range::{Levels, Range, from_integers, integers};
use super::requantize::set_range;
use crate::wide::zeros;
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "QuantizedInstanceNorm",
        shape: |context| {
            let x = context.input_with_rank(0, 4)?;
            context.input_with_rank(1, 0)?;
            context.input_with_rank(2, 0)?;
            context.set_output(0, x);
            context.set_output(1, PartialShape::scalar());
            context.set_output(2, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(instances)],
        ..Op::PURE
    },
    &Op {
        name: "QuantizedBatchNormWithGlobalNormalization",
        shape: |context| {
            let x = context.input_with_rank(0, 4)?;
            let mut channels = x.dim(3);
            for vector in [3, 6, 9, 12] {
                channels = dim::merge(channels, context.input_with_rank(vector, 1)?.dim(0))?;
            }
            context.set_output(0, x.with_dim(3, channels)?);
            context.set_output(1, PartialShape::scalar());
            context.set_output(2, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(global)],
        ..Op::PURE
    },
];

/// The numbers of a quantized input, whose limits follow it.
fn numbers(context: &KernelContext, input: usize) -> Result<(Vec<f32>, Range)> {
    let range = Range::of(context.input(input + 1)?, context.input(input + 2)?)?;
    let levels = Levels::of(context.input(input)?.dtype())?;
    let values = integers(context.input(input)?)?;
    let numbers = values
        .into_iter()
        .map(|value| levels.dequantize(value, range))
        .collect();
    Ok((numbers, range))
}

fn instances(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (epsilon, separation) = (
        f64::from(attrs.float("variance_epsilon")?),
        attrs.float("min_separation")?,
    );
    let given = attrs.bool("output_range_given")?;
    let (given_min, given_max) = (attrs.float("given_y_min")?, attrs.float("given_y_max")?);
    ensure!(
        !given || given_min < given_max,
        InvalidArgument,
        "given_y_min must be less than given_y_max"
    );
    let (mut x, _) = numbers(context, 0)?;
    let dims = context.input(0)?.dims();
    let channels = dims[3].max(1) as usize;
    let image = ((dims[1] * dims[2]) as usize * channels).max(1);
    let (mut sums, mut squares): (Vec<f64>, Vec<f64>) = (zeros(channels)?, zeros(channels)?);
    for image in x.chunks_exact_mut(image) {
        sums.fill(0.0);
        squares.fill(0.0);
        let count = (image.len() / channels) as f64;
        for (i, &x) in image.iter().enumerate() {
            sums[i % channels] += f64::from(x);
        }
        for (i, &x) in image.iter().enumerate() {
            squares[i % channels] += (f64::from(x) - sums[i % channels] / count).powi(2);
        }
        for (i, x) in image.iter_mut().enumerate() {
            let c = i % channels;
            let centred = f64::from(*x) - sums[c] / count;
            *x = (centred / (squares[c] / count + epsilon).sqrt()) as f32;
        }
    }
    let range = if given {
        Range {
            min: given_min,
            max: given_max,
        }
    } else {
        let min = x.iter().copied().fold(f32::MAX, f32::min);
        let max = x.iter().copied().fold(f32::MIN, f32::max);
        Range {
            min,
            max: max.max(min + separation),
        }
    };
    let levels = Levels::of(context.output_type(0))?;
    let values: Vec<i64> = crate::wide::collected(x.iter().map(|&x| levels.quantize(x, range)))?;
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)?;
    set_range(context, range)
}

/// In fixed-point steps over a range of 2^21.
fn global(context: &mut KernelContext) -> Result<()> {
    let epsilon = context.attrs().float("variance_epsilon")?;
    let scaled = context.attrs().bool("scale_after_normalization")?;
    let (mean, variance) = (numbers(context, 3)?.0, numbers(context, 6)?.0);
    let (beta, gamma) = (numbers(context, 9)?.0, numbers(context, 12)?.0);
    let range = Range {
        min: -((1 << 20) as f32),
        max: (1 << 20) as f32,
    };
    let wide = Levels::of(DataType::QINT32)?;
    let (mut scales, mut offsets) = (Vec::new(), Vec::new());
    for c in 0..mean.len() {
        let factor = if scaled { gamma[c] } else { 1.0 };
        let scale = 1.0 / (variance[c] + epsilon).sqrt() * factor;
        scales.push(wide.quantize(scale, range));
        offsets.push(wide.quantize(-mean[c] * scale + beta[c], range));
    }
    let one = wide.quantize(1.0, range).max(1);
    let (x, _) = numbers(context, 0)?;
    let channels = mean.len().max(1);
    let values: Vec<i64> = x
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let value = wide.quantize(x, range);
            let product = value * scales[i % channels] / one;
            (product + offsets[i % channels]).clamp(wide.lowest, wide.highest)
        })
        .collect();
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)?;
    set_range(context, range)
}

#[cfg(test)]
use super::convert::q;

crate::op_cases! {
    own: Case::op("QuantizedInstanceNorm").inputs([q(DataType::QUINT8, &[1, 2, 2, 2], &[0, 10, 100, 127, 200, 255, 3, 4]), scalar(-1.0f32), scalar(3.0f32)]);
    own_given: Case::op("QuantizedInstanceNorm").inputs([q(DataType::QUINT8, &[1, 2, 2, 2], &[0, 10, 100, 127, 200, 255, 3, 4]), scalar(-1.0f32), scalar(3.0f32)])
        .attr("output_range_given", true).attr("given_y_min", -2.0f32).attr("given_y_max", 2.0f32);
    own_of_rows: Case::op("QuantizedInstanceNorm").inputs([q(DataType::QUINT8, &[2, 2], &[0, 10, 100, 127]), scalar(-1.0f32), scalar(3.0f32)]).fails(Code::InvalidArgument);
    given: Case::op("QuantizedBatchNormWithGlobalNormalization").inputs([q(DataType::QUINT8, &[1, 1, 2, 2], &[0, 10, 100, 255]), scalar(-1.0f32), scalar(3.0f32)])
        .inputs([q(DataType::QUINT8, &[2], &[100, 20]), scalar(-1.0f32), scalar(3.0f32), q(DataType::QUINT8, &[2], &[200, 220]), scalar(-1.0f32), scalar(3.0f32)])
        .inputs([q(DataType::QUINT8, &[2], &[50, 20]), scalar(-1.0f32), scalar(3.0f32), q(DataType::QUINT8, &[2], &[200, 150]), scalar(-1.0f32), scalar(3.0f32)])
        .attr("variance_epsilon", 0.001f32).attr("scale_after_normalization", true).attr("out_type", DataType::QINT32);
    given_misfit: Case::op("QuantizedBatchNormWithGlobalNormalization").inputs([q(DataType::QUINT8, &[1, 1, 2, 2], &[0, 10, 100, 255]), scalar(-1.0f32), scalar(3.0f32)])
        .inputs([q(DataType::QUINT8, &[1], &[100]), scalar(-1.0f32), scalar(3.0f32), q(DataType::QUINT8, &[2], &[200, 220]), scalar(-1.0f32), scalar(3.0f32)])
        .inputs([q(DataType::QUINT8, &[2], &[50, 20]), scalar(-1.0f32), scalar(3.0f32), q(DataType::QUINT8, &[2], &[200, 150]), scalar(-1.0f32), scalar(3.0f32)])
        .attr("variance_epsilon", 0.001f32).attr("scale_after_normalization", true).attr("out_type", DataType::QINT32).fails(Code::InvalidArgument);
}
