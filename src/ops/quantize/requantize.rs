//! From 32-bit quantized numbers to narrower ones, and the ranges that they need.

use super::range::{Levels, Range, from_integers, integers};
use crate::wide::zeros;
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
#[cfg(test)]
use ff_tensor::DataType;
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Requantize",
        shape: |context| with_scalars(context, 1..5),
        kernels: &[Kernel::native(requantize)],
        ..Op::PURE
    },
    &Op {
        name: "QuantizeDownAndShrinkRange",
        shape: |context| with_scalars(context, 1..3),
        kernels: &[Kernel::native(shrink)],
        ..Op::PURE
    },
    &Op {
        name: "RequantizationRange",
        shape: |context| {
            context.input_with_rank(1, 0)?;
            context.input_with_rank(2, 0)?;
            context.set_output(0, PartialShape::scalar());
            context.set_output(1, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(range)],
        ..Op::PURE
    },
    &Op {
        name: "RequantizePerChannel",
        shape: |context| {
            context.input_with_rank(1, 1)?;
            context.input_with_rank(2, 1)?;
            context.input_with_rank(3, 0)?;
            context.input_with_rank(4, 0)?;
            set_with_scalars(context)
        },
        kernels: &[Kernel::native(requantize_channels)],
        ..Op::PURE
    },
    &Op {
        name: "RequantizationRangePerChannel",
        shape: |context| {
            let (mins, maxes) = (context.input_with_rank(1, 1)?, context.input_with_rank(2, 1)?);
            dim::merge(mins.dim(0), maxes.dim(0))?;
            context.set_output(0, PartialShape::scalar());
            context.set_output(1, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(range_of_channels)],
        ..Op::PURE
    },
];

/// Output 0 as input 0, two scalars after it; the inputs `scalars` are scalars.
pub fn with_scalars(context: &mut ShapeContext, scalars: std::ops::Range<usize>) -> Result<()> {
    for input in scalars {
        context.input_with_rank(input, 0)?;
    }
    set_with_scalars(context)
}

fn set_with_scalars(context: &mut ShapeContext) -> Result<()> {
    let values = context.input(0);
    context.set_output(0, values);
    context.set_output(1, PartialShape::scalar());
    context.set_output(2, PartialShape::scalar());
    Ok(())
}

/// Sets outputs 1 and 2 to the limits of a range.
pub fn set_range(context: &mut KernelContext, range: Range) -> Result<()> {
    context.set_output(1, Tensor::scalar(range.min)?)?;
    context.set_output(2, Tensor::scalar(range.max)?)
}

/// Integers of one range as integers of another. From 32 to 8 bits in fixed-point steps, as the reference does.
pub fn convert(values: &mut [i64], from: (Levels, Range), to: (Levels, Range)) {
    if from.0.highest == i64::from(i32::MAX) && to.0.lowest == 0 && to.0.highest == 255 {
        let (width_in, width_out) = (from.1.max - from.1.min, to.1.max - to.1.min);
        let inverse = if width_out == 0.0 {
            0.0
        } else {
            (255.0 / f64::from(width_out)) as f32
        };
        let middle = ((from.1.min + from.1.max) as f64 / 2.0) as f32;
        let (mut scale, mut offset_out) = (0i64, 0i64);
        if width_out != 0.0 {
            scale = (255.0 * 65536.0 * f64::from(width_in) / f64::from(width_out)) as i64;
            offset_out = (65536.0 * (f64::from(to.1.min) * 255.0) / f64::from(width_out)).round() as i64;
        }
        let offset_in = (middle * inverse * 65536.0) as i64;
        for value in values {
            let fixed = ((i128::from(*value) * i128::from(scale)) >> 32) + i128::from(offset_in);
            let rounded = (fixed - i128::from(offset_out) + (1 << 15)) >> 16;
            *value = rounded.clamp(0, 255) as i64;
        }
        return;
    }
    for value in values {
        *value = to.0.quantize(from.0.dequantize(*value, from.1), to.1);
    }
}

/// Sets the outputs: the integers of input 0 in another range.
fn set_converted(context: &mut KernelContext, from: Range, to: Range) -> Result<()> {
    let input = context.input(0)?;
    let levels = (Levels::of(input.dtype())?, Levels::of(context.output_type(0))?);
    let mut values = integers(input)?;
    convert(&mut values, (levels.0, from), (levels.1, to));
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)?;
    set_range(context, to)
}

fn requantize(context: &mut KernelContext) -> Result<()> {
    let from = Range::of(context.input(1)?, context.input(2)?)?;
    let to = Range::of(context.input(3)?, context.input(4)?)?;
    ensure!(
        to.min <= 0.0,
        InvalidArgument,
        "requested_output_min must be <= 0, but got {}",
        to.min
    );
    ensure!(
        to.max >= to.min,
        InvalidArgument,
        "requested_output_max must be >= requested_output_min, but got {} and {}",
        to.max,
        to.min
    );
    set_converted(context, from, to)
}

/// The range of the numbers that there are, with zero in it.
fn used(context: &KernelContext) -> Result<(Range, Range)> {
    let input = context.input(0)?;
    let from = Range::of(context.input(1)?, context.input(2)?)?;
    let levels = Levels::of(input.dtype())?;
    let values = integers(input)?;
    let least = values.iter().copied().fold(levels.highest, i64::min);
    let largest = values.iter().copied().fold(levels.lowest, i64::max);
    let range = Range {
        min: levels.dequantize(least, from).min(0.0),
        max: levels.dequantize(largest, from),
    };
    Ok((from, range))
}

fn shrink(context: &mut KernelContext) -> Result<()> {
    let (from, to) = used(context)?;
    set_converted(context, from, to)
}

fn range(context: &mut KernelContext) -> Result<()> {
    ensure!(
        context.input(0)?.num_elements() > 0,
        InvalidArgument,
        "Input must not be empty."
    );
    let (_, range) = used(context)?;
    context.set_output(0, Tensor::scalar(range.min)?)?;
    context.set_output(1, Tensor::scalar(range.max)?)
}

/// The larger distance of both limits from zero, of each channel.
fn reaches(context: &KernelContext) -> Result<Vec<f32>> {
    let channels = context.input(0)?.dims().last().copied().unwrap_or(0);
    let (mins, maxes) = (context.input_slice::<f32>(1)?, context.input_slice::<f32>(2)?);
    ensure!(
        mins.len() as i64 == channels && maxes.len() as i64 == channels,
        InvalidArgument,
        "input_min and input_max must have {channels} elements"
    );
    Ok(mins
        .iter()
        .zip(maxes)
        .map(|(min, max)| min.abs().max(max.abs()))
        .collect())
}

fn requantize_channels(context: &mut KernelContext) -> Result<()> {
    ensure!(
        context.input(0)?.rank() == 4,
        InvalidArgument,
        "Current RequantizePerChannel operator supports 4D tensors only."
    );
    let reaches = reaches(context)?;
    let to = Range::of(context.input(3)?, context.input(4)?)?;
    let reach = to.min.abs().max(to.max.abs());
    let levels = Levels::of(context.output_type(0))?;
    let mut values = integers(context.input(0)?)?;
    let channels = reaches.len().max(1);
    for (i, value) in values.iter_mut().enumerate() {
        let scale = levels.highest as f32 * (reaches[i % channels] / reach / (1u64 << 31) as f32);
        *value = ((*value as f32 * scale).round_ties_even() as i64).clamp(levels.lowest, levels.highest);
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)?;
    set_range(context, to)
}

fn range_of_channels(context: &mut KernelContext) -> Result<()> {
    let clip = context.attrs().float("clip_value_max")?;
    let reaches = reaches(context)?;
    let values = integers(context.input(0)?)?;
    let channels = reaches.len().max(1);
    let mut largest: Vec<i64> = zeros(channels)?;
    for (i, value) in values.iter().enumerate() {
        largest[i % channels] = largest[i % channels].max(value.abs());
    }
    let reach = reaches
        .iter()
        .zip(&largest)
        .map(|(&reach, &largest)| reach * largest as f32 / (1u64 << 31) as f32)
        .fold(f32::MIN, f32::max)
        .min(clip);
    let least = if values.iter().all(|&value| value >= 0) {
        0.0
    } else {
        -reach
    };
    context.set_output(0, Tensor::scalar(least)?)?;
    context.set_output(1, Tensor::scalar(reach)?)
}

#[cfg(test)]
fn some() -> Tensor {
    super::convert::q(
        DataType::QINT32,
        &[2, 3],
        &[-2_000_000_000, -70_000, 0, 1_234_567, 900_000_000, 2_100_000_000],
    )
}

crate::op_cases! {
    to_bytes: family(&["Requantize"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([some(), scalar(-1000.0f32), scalar(1000.0f32), scalar(-250.0f32), scalar(500.0f32)]).attr("out_type", dtype)
    });
    to_positive: Case::op("Requantize").inputs([some(), scalar(-1000.0f32), scalar(1000.0f32), scalar(2.0f32), scalar(500.0f32)])
        .attr("out_type", DataType::QUINT8).fails(Code::InvalidArgument);
    shrunk: Case::op("QuantizeDownAndShrinkRange").inputs([some(), scalar(-3.0f32), scalar(5.0f32)]).attr("out_type", DataType::QUINT8);
    shrunk_misfit: Case::op("QuantizeDownAndShrinkRange").inputs([some(), vector(&[-3.0f32, 1.0]), scalar(5.0f32)]).attr("out_type", DataType::QUINT8).fails(Code::InvalidArgument);
    ranges: Case::op("RequantizationRange").inputs([some(), scalar(-3.0f32), scalar(5.0f32)]);
    ranges_of_nothing: Case::op("RequantizationRange").inputs([crate::quantize::convert::q(DataType::QINT32, &[0], &[]), scalar(-3.0f32), scalar(5.0f32)]).fails(Code::InvalidArgument);
    channels: family(&["RequantizePerChannel"], &[DataType::QINT8, DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([crate::quantize::convert::q(DataType::QINT32, &[1, 1, 2, 3], &[-2_000_000_000, -70_000, 0, 1_234_567, 900_000_000, 2_100_000_000])])
            .inputs([vector(&[-3.0f32, -2.0, -1.0]), vector(&[1.0f32, 2.0, 5.0]), scalar(-4.0f32), scalar(4.0f32)]).attr("out_type", dtype)
    });
    channels_misfit: Case::op("RequantizePerChannel").inputs([some(), scalar(-3.0f32), vector(&[1.0f32]), scalar(-4.0f32), scalar(4.0f32)]).attr("out_type", DataType::QINT8)
        .fails(Code::InvalidArgument);
    range_channels: Case::op("RequantizationRangePerChannel").attr("clip_value_max", 4.5f32)
        .inputs([crate::quantize::convert::q(DataType::QINT32, &[1, 1, 2, 3], &[-2_000_000_000, -70_000, 0, 1_234_567, 900_000_000, 2_100_000_000])])
        .inputs([vector(&[-3.0f32, -2.0, -1.0]), vector(&[1.0f32, 2.0, 5.0])]);
    range_channels_misfit: Case::op("RequantizationRangePerChannel").attr("clip_value_max", 4.5f32)
        .inputs([some(), vector(&[-3.0f32, -2.0, -1.0]), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
}
