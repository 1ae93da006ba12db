//! `QuantizeV2` and `Dequantize`, in three modes, of the whole tensor or of each slice along an axis.

use super::range::{Levels, Range, from_integers, integers};
use crate::wide::{from_f32s, zeros};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, bail, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "QuantizeV2",
        shape: |context| {
            let limits = check_limits(context)?;
            let values = context.input(0);
            context.set_output(0, values);
            context.set_output(1, limits.clone());
            context.set_output(2, limits);
            Ok(())
        },
        kernels: &[Kernel::native(quantize)],
        ..Op::PURE
    },
    &Op {
        name: "Dequantize",
        shape: |context| {
            check_limits(context)?;
            let values = context.input(0);
            context.set_output(0, values);
            Ok(())
        },
        kernels: &[Kernel::native(dequantize)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
];

/// The shape of the limits: a scalar, or one for each slice along the attribute `axis`.
fn check_limits(context: &ShapeContext) -> Result<PartialShape> {
    let axis = context.attrs().int("axis").unwrap_or(-1);
    ensure!(
        axis >= -1,
        InvalidArgument,
        "axis should be at least -1, got {axis}"
    );
    let rank = usize::from(axis >= 0);
    for limit in [1, 2] {
        context.input_with_rank(limit, rank)?;
    }
    if axis < 0 {
        return Ok(PartialShape::scalar());
    }
    let mut count = context.input_with_rank_at_least(0, axis as usize + 1)?.dim(axis);
    for limit in [1, 2] {
        count = dim::merge(count, context.input(limit).dim(0))?;
    }
    Ok(PartialShape::new(&[count]))
}

/// The ranges of the slices, and which slice an element is in.
struct Slices {
    ranges: Vec<Range>,
    inner: usize,
}

impl Slices {
    fn of(context: &KernelContext) -> Result<Slices> {
        let axis = context.attrs().int("axis").unwrap_or(-1);
        let dims = context.input(0)?.dims();
        let inner = match usize::try_from(axis) {
            Ok(axis) => dims[axis + 1..].iter().product::<i64>() as usize,
            Err(_) => 1,
        };
        let (mins, maxes) = (context.input_slice::<f32>(1)?, context.input_slice::<f32>(2)?);
        let ranges = mins
            .iter()
            .zip(maxes)
            .map(|(&min, &max)| Range { min, max })
            .collect();
        Ok(Slices { ranges, inner })
    }

    fn at(&self, element: usize) -> usize {
        element / self.inner.max(1) % self.ranges.len().max(1)
    }
}

/// The scale of the mode SCALED: the integers that are used, and how many of them per unit.
fn scaled(levels: Levels, narrow: bool, range: Range) -> (f32, f32, f32) {
    let least = (levels.lowest + i64::from(narrow)) as f32;
    let largest = levels.highest as f32;
    let side = |level: f32, limit: f32| {
        if level * limit > 0.0 {
            level / limit
        } else {
            f32::MAX
        }
    };
    (
        least,
        largest,
        side(least, range.min).min(side(largest, range.max)),
    )
}

fn quantize(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (mode, rounding) = (attrs.string("mode")?, attrs.string("round_mode")?);
    let to_even = match rounding {
        "HALF_TO_EVEN" => true,
        "HALF_AWAY_FROM_ZERO" => false,
        other => bail!(
            InvalidArgument,
            "Round mode string must be 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN', is '{other}'"
        ),
    };
    ensure!(
        !to_even || mode == "SCALED",
        InvalidArgument,
        "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
    );
    let (narrow, least_width) = (attrs.bool("narrow_range")?, attrs.float("ensure_minimum_range")?);
    let levels = Levels::of(context.output_type(0))?;
    let mut slices = Slices::of(context)?;
    for range in &mut slices.ranges {
        ensure!(
            range.min <= range.max,
            InvalidArgument,
            "min_range must be smaller than max_range: {} > {}",
            range.min,
            range.max
        );
        // The range holds zero, and is not empty.
        let epsilon = range.min.abs().max(range.max.abs()).max(1.0) * least_width;
        range.min = range.min.min(0.0);
        range.max = range.max.max(range.min + epsilon).max(0.0);
    }
    let mut scales = Vec::new();
    for range in &mut slices.ranges {
        scales.push(match mode {
            "SCALED" => {
                let (least, largest, scale) = scaled(levels, narrow, *range);
                range.min = least / scale;
                range.max = largest / scale;
                scale
            }
            "MIN_COMBINED" => {
                ((levels.highest - levels.lowest) as f64 / f64::from(range.max - range.min)) as f32
            }
            "MIN_FIRST" => 0.0,
            other => bail!(
                InvalidArgument,
                "Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{other}'"
            ),
        });
    }
    let half = if levels.is_signed() {
        ((levels.highest - levels.lowest + 1) / 2) as f32
    } else {
        0.0
    };
    let x = context.input_slice::<f32>(0)?;
    let mut result: Vec<i64> = zeros(x.len())?;
    for (i, (out, &x)) in result.iter_mut().zip(x).enumerate() {
        let slice = slices.at(i);
        let (range, scale) = (slices.ranges[slice], scales[slice]);
        let held = x.min(range.max).max(range.min);
        let value = match mode {
            "SCALED" if to_even => (held * scale).round_ties_even() as i64,
            "SCALED" => (held * scale).round() as i64,
            "MIN_FIRST" if levels.highest == 255 => {
                (f64::from(x - range.min) * 255.0 / f64::from(range.max - range.min)).round() as i64
            }
            "MIN_FIRST" => levels.quantize(x, range),
            _ if levels.is_signed() => ((held - range.min) * scale - half).round() as i64,
            _ => ((held - range.min) * scale + 0.5) as i64,
        };
        *out = value.clamp(levels.lowest, levels.highest);
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &result)?;
    context.set_output(0, result)?;
    let limits = context.output_shape(1)?.clone();
    let mins: Vec<f32> = slices.ranges.iter().map(|range| range.min).collect();
    let maxes: Vec<f32> = slices.ranges.iter().map(|range| range.max).collect();
    context.set_output(1, Tensor::from_slice(limits.clone(), &mins)?)?;
    context.set_output(2, Tensor::from_slice(limits, &maxes)?)
}

fn dequantize(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (mode, narrow) = (attrs.string("mode")?, attrs.bool("narrow_range")?);
    ensure!(
        matches!(mode, "MIN_COMBINED" | "MIN_FIRST" | "SCALED"),
        InvalidArgument,
        "Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{mode}'"
    );
    let levels = Levels::of(context.input(0)?.dtype())?;
    let slices = Slices::of(context)?;
    let half = if levels.is_signed() {
        ((levels.highest - levels.lowest + 1) / 2) as f32
    } else {
        0.0
    };
    let values = integers(context.input(0)?)?;
    let mut result: Vec<f32> = zeros(values.len())?;
    for (i, (out, &value)) in result.iter_mut().zip(&values).enumerate() {
        let range = slices.ranges[slices.at(i)];
        *out = match mode {
            "MIN_FIRST" => levels.dequantize(value, range),
            "SCALED" => {
                let (least, largest, _) = scaled(levels, narrow, range);
                let scale = if levels.lowest == 0 {
                    range.max / largest
                } else {
                    (range.min / least).max(range.max / largest)
                };
                value as f32 * scale
            }
            _ => (value as f32 + half) * levels.step(range) + range.min,
        };
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_f32s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

#[cfg(test)]
use ff_tensor::DataType as Types;
#[cfg(test)]
const QUANTIZED: &[Types] = &[
    Types::QINT8,
    Types::QUINT8,
    Types::QINT16,
    Types::QUINT16,
    Types::QINT32,
];

#[cfg(test)]
fn some() -> Tensor {
    crate::testing::t(&[2, 4], &[-9.0f32, -1.26, -0.1, 0.0, 0.3, 0.555, 2.49, 7.0])
}

/// A quantized tensor.
#[cfg(test)]
pub fn q(dtype: Types, dims: &[i64], values: &[i64]) -> Tensor {
    let shape = ff_tensor::Shape::new(dims).expect("extents of a case");
    from_integers(dtype, shape, values).expect("elements of a case")
}

crate::op_cases! {
    combined: family(&["QuantizeV2"], &QUANTIZED[..4], |op, dtype| Case::op(op).inputs([some(), scalar(-3.0f32), scalar(5.0f32)]).attr("T", dtype));
    first: family(&["QuantizeV2"], &QUANTIZED[..4], |op, dtype| Case::op(op).inputs([some(), scalar(-3.0f32), scalar(5.0f32)]).attr("T", dtype).attr("mode", "MIN_FIRST"));
    scaled_away: family(&["QuantizeV2"], &QUANTIZED[..4], |op, dtype| Case::op(op).inputs([some(), scalar(-3.0f32), scalar(5.0f32)]).attr("T", dtype).attr("mode", "SCALED").attr("narrow_range", true));
    scaled_even: family(&["QuantizeV2"], &QUANTIZED[..2], |op, dtype| {
        Case::op(op).inputs([some(), vector(&[-3.0f32, -1.0]), vector(&[5.0f32, 0.5])]).attr("T", dtype).attr("mode", "SCALED").attr("round_mode", "HALF_TO_EVEN").attr("axis", 0i64)
    });
    narrow_range: Case::op("QuantizeV2").inputs([some(), scalar(0.0f32), scalar(0.0f32)]).attr("T", DataType::QUINT8);
    even_combined: Case::op("QuantizeV2").inputs([some(), scalar(0.0f32), scalar(1.0f32)]).attr("T", DataType::QUINT8).attr("round_mode", "HALF_TO_EVEN").fails(Code::InvalidArgument);
    turned: Case::op("QuantizeV2").inputs([some(), scalar(2.0f32), scalar(1.0f32)]).attr("T", DataType::QUINT8).fails(Code::InvalidArgument);
    back_combined: family(&["Dequantize"], QUANTIZED, |op, dtype| Case::op(op).inputs([q(dtype, &[3], &[0, 5, 127]), scalar(-3.0f32), scalar(5.0f32)]));
    back_first: family(&["Dequantize"], QUANTIZED, |op, dtype| Case::op(op).inputs([q(dtype, &[3], &[0, 5, 127]), scalar(-3.0f32), scalar(5.0f32)]).attr("mode", "MIN_FIRST"));
    back_scaled: family(&["Dequantize"], QUANTIZED, |op, dtype| {
        Case::op(op).inputs([q(dtype, &[1, 3], &[0, 5, 127]), vector(&[-3.0f32]), vector(&[5.0f32])]).attr("mode", "SCALED").attr("axis", 0i64)
    });
    back_to_half: Case::op("Dequantize").inputs([q(DataType::QUINT8, &[3], &[0, 5, 127]), scalar(-3.0f32), scalar(5.0f32)]).attr("dtype", DataType::BFLOAT16);
    back_misfit: Case::op("Dequantize").inputs([q(DataType::QUINT8, &[1, 3], &[0, 5, 127]), vector(&[-3.0f32, 1.0]), vector(&[5.0f32, 2.0])]).attr("axis", 0i64).fails(Code::InvalidArgument);
}
