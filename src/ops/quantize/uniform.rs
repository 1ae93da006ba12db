//! Uniform quantization: a scale and a zero point for the whole tensor, or for each slice along an axis.

use super::range::{from_integers, integers};
use crate::wide::{from_f32s, zeros};
use ff_op::{Attrs, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "UniformQuantize",
        shape: |context| {
            check_scales(context, 0, 1, "quantization_axis")?;
            unchanged(context)
        },
        kernels: &[Kernel::native(quantize)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformDequantize",
        shape: |context| {
            check_scales(context, 0, 1, "quantization_axis")?;
            unchanged(context)
        },
        kernels: &[Kernel::native(dequantize)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformRequantize",
        shape: |context| {
            check_scales(context, 0, 1, "input_quantization_axis")?;
            check_scales(context, 0, 3, "output_quantization_axis")?;
            unchanged(context)
        },
        kernels: &[Kernel::native(requantize)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformQuantizedAdd",
        shape: |context| {
            check_scales(context, 0, 2, "lhs_quantization_axis")?;
            check_scales(context, 1, 4, "rhs_quantization_axis")?;
            shapes::broadcast_binary(context)
        },
        kernels: &[Kernel::native(add)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformQuantizedClipByValue",
        shape: |context| {
            check_scales(context, 0, 3, "quantization_axis")?;
            check_scales(context, 0, 1, "quantization_axis")?;
            unchanged(context)
        },
        kernels: &[Kernel::native(clip)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
];

fn unchanged(context: &mut ShapeContext) -> Result<()> {
    let values = context.input(0);
    context.set_output(0, values);
    Ok(())
}

/// Checks scales and zero points (inputs `scales` and `scales + 1`) of the values at an input.
pub fn check_scales(context: &ShapeContext, values: usize, scales: usize, axis: &str) -> Result<()> {
    let axis = context.attrs().int(axis)?;
    ensure!(
        axis >= -1,
        InvalidArgument,
        "quantization_axis must be >= -1, given: {axis}"
    );
    let rank = usize::from(axis >= 0);
    let both = context
        .input_with_rank(scales, rank)?
        .merge(&context.input_with_rank(scales + 1, rank)?)?;
    let shape: PartialShape = context.input(values);
    if let (true, Some(rank)) = (axis >= 0, shape.rank()) {
        ensure!(
            axis < rank as i64,
            InvalidArgument,
            "quantization_axis must be smaller than the rank {rank}, given: {axis}"
        );
        dim::merge(both.dim(0), shape.dim(axis))?;
    }
    Ok(())
}

/// Scales and zero points of the slices along an axis.
pub struct Scales {
    /// Numbers per step.
    pub scales: Vec<f32>,
    /// Integers that stand for zero.
    pub zeros: Vec<i64>,
    inner: usize,
}

impl Scales {
    /// From inputs `first` and `first + 1`, for values of these extents. INVALID_ARGUMENT for scales that are not
    /// positive.
    pub fn of(context: &KernelContext, first: usize, dims: &[i64], axis: i64) -> Result<Scales> {
        let scales = context.input_slice::<f32>(first)?.to_vec();
        ensure!(
            scales.iter().all(|&scale| scale > 0.0),
            InvalidArgument,
            "scales elements must be all positive."
        );
        let zeros = context.input_i64s(first + 1)?;
        ensure!(
            scales.len() == zeros.len(),
            InvalidArgument,
            "scales and zero_points must have the same number of elements"
        );
        let inner = match usize::try_from(axis) {
            Ok(axis) if axis < dims.len() => dims[axis + 1..].iter().product::<i64>() as usize,
            _ => 1,
        };
        Ok(Scales { scales, zeros, inner })
    }

    /// The slice of an element.
    pub fn at(&self, element: usize) -> usize {
        element / self.inner.max(1) % self.scales.len().max(1)
    }
}

/// The limits that attributes with a prefix say.
pub fn limits(attrs: &Attrs, prefix: &str) -> Result<(i64, i64)> {
    Ok((
        attrs.int(&format!("{prefix}quantization_min_val"))?,
        attrs.int(&format!("{prefix}quantization_max_val"))?,
    ))
}

fn quantize(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (least, largest) = limits(attrs, "")?;
    let scales = Scales::of(
        context,
        1,
        context.input(0)?.dims(),
        attrs.int("quantization_axis")?,
    )?;
    let x = context.input_slice::<f32>(0)?;
    let mut result: Vec<i64> = zeros(x.len())?;
    for (i, (out, &x)) in result.iter_mut().zip(x).enumerate() {
        let slice = scales.at(i);
        *out = rounded(x, scales.scales[slice], scales.zeros[slice])
            .min(largest)
            .max(least);
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

/// The nearest step, halves up.
fn rounded(x: f32, scale: f32, zero: i64) -> i64 {
    moved((x * (1.0 / scale) + 0.5).floor() as i32 as i64, zero)
}

/// The sum of a 32-bit integer and a zero point, modulo 2^32.
pub fn moved(x: i64, zero: i64) -> i64 {
    i64::from((x as i32).wrapping_add(zero as i32))
}

fn dequantize(context: &mut KernelContext) -> Result<()> {
    let axis = context.attrs().int("quantization_axis")?;
    let scales = Scales::of(context, 1, context.input(0)?.dims(), axis)?;
    let values = integers(context.input(0)?)?;
    let mut result: Vec<f32> = zeros(values.len())?;
    for (i, (out, &value)) in result.iter_mut().zip(&values).enumerate() {
        let slice = scales.at(i);
        *out = (value - scales.zeros[slice]) as f32 * scales.scales[slice];
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_f32s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

/// A factor as a 32-bit fixed-point number and a shift.
#[derive(Clone, Copy)]
pub struct Multiplier {
    fixed: i64,
    shift: i32,
}

impl Multiplier {
    /// The nearest to a positive factor.
    pub fn new(factor: f64) -> Multiplier {
        // The factor is `part * 2^shift`, the part from 1/2 to 1.
        let mut shift = factor.log2().floor() as i32 + 1;
        let mut part = factor / 2f64.powi(shift);
        if part >= 1.0 {
            part /= 2.0;
            shift += 1;
        } else if part < 0.5 {
            part *= 2.0;
            shift -= 1;
        }
        let mut fixed = (part * (1u64 << 31) as f64).round() as i64;
        if fixed == 1 << 31 {
            fixed /= 2;
            shift += 1;
        }
        if shift < -31 {
            (shift, fixed) = (0, 0);
        } else if shift > 30 {
            (shift, fixed) = (30, (1 << 31) - 1);
        }
        Multiplier { fixed, shift }
    }

    /// The product, rounded to the nearest integer, halves up.
    pub fn apply(self, x: i64) -> i64 {
        let shift = 31 - self.shift;
        let product = x * self.fixed + (1 << (shift - 1));
        (product >> shift).clamp(i64::from(i32::MIN), i64::from(i32::MAX))
    }
}

/// Integers with one scale and zero point as integers with another.
fn rescaled(values: &mut [i64], from: &Scales, to: &Scales, (least, largest): (i64, i64)) {
    for (i, value) in values.iter_mut().enumerate() {
        let (a, b) = (from.at(i), to.at(i));
        let multiplier = Multiplier::new(f64::from(from.scales[a]) / f64::from(to.scales[b]));
        let product = multiplier.apply(moved(*value, from.zeros[a].wrapping_neg()));
        *value = moved(product, to.zeros[b]).min(largest).max(least);
    }
}

fn requantize(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let limits = limits(attrs, "output_")?;
    let dims = context.input(0)?.dims();
    let from = Scales::of(context, 1, dims, attrs.int("input_quantization_axis")?)?;
    let to = Scales::of(context, 3, dims, attrs.int("output_quantization_axis")?)?;
    let mut values = integers(context.input(0)?)?;
    rescaled(&mut values, &from, &to, limits);
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)
}

fn add(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (least, largest) = limits(attrs, "output_")?;
    let whole = (i64::from(i32::MIN), i64::from(i32::MAX));
    let dims = context.output_shape(0)?.dims().to_vec();
    let axis = attrs.int("output_quantization_axis")?;
    let to = Scales::of(context, 6, &dims, axis)?;
    let mut operands = Vec::new();
    for (input, first, name) in [(0, 2, "lhs_quantization_axis"), (1, 4, "rhs_quantization_axis")] {
        let own = context.input(input)?.dims();
        let from = Scales::of(context, first, own, attrs.int(name)?)?;
        let mut values = integers(context.input(input)?)?;
        // The output's scales, along the operand's own axis.
        let target = Scales::of(context, 6, own, attrs.int(name)?)?;
        rescaled(&mut values, &from, &target, whole);
        operands.push(values);
    }
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    let sums = super::arithmetic::combine(&dims, a, b, |i, j| operands[0][i] + operands[1][j])?;
    let values: Vec<i64> = sums
        .into_iter()
        .enumerate()
        .map(|(i, sum)| {
            moved(sum, to.zeros[to.at(i)].wrapping_neg())
                .min(largest)
                .max(least)
        })
        .collect();
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)
}

fn clip(context: &mut KernelContext) -> Result<()> {
    let dims = context.input(0)?.dims();
    let scales = Scales::of(context, 3, dims, context.attrs().int("quantization_axis")?)?;
    let (mins, maxes) = (integers(context.input(1)?)?, integers(context.input(2)?)?);
    let mut values = integers(context.input(0)?)?;
    for (i, value) in values.iter_mut().enumerate() {
        let slice = scales.at(i);
        *value = (*value)
            .min(maxes[slice % maxes.len()])
            .max(mins[slice % mins.len()]);
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, &values)?;
    context.set_output(0, result)
}

#[cfg(test)]
use super::convert::q;

#[cfg(test)]
fn bounded(case: crate::testing::Case, prefixes: &[&str]) -> crate::testing::Case {
    prefixes.iter().fold(case, |case, prefix| {
        case.attr(&format!("{prefix}quantization_min_val"), -128i64)
            .attr(&format!("{prefix}quantization_max_val"), 127i64)
    })
}

#[cfg(test)]
fn bounded_wide(case: crate::testing::Case, prefixes: &[&str]) -> crate::testing::Case {
    prefixes.iter().fold(case, |case, prefix| {
        case.attr(&format!("{prefix}quantization_min_val"), i64::from(i32::MIN))
            .attr(&format!("{prefix}quantization_max_val"), i64::from(i32::MAX))
    })
}

crate::op_cases! {
    zero_points_beyond_32_bits: Case::op("UniformQuantize").attr("Tin", DataType::FLOAT).attr("Tout", DataType::QINT8).attr("quantization_min_val", -128i64).attr("quantization_max_val", 127i64)
        .inputs([t(&[1, 1], &[2.0f32]), scalar(0.25f32), scalar(2_147_483_646)]).gives(q(DataType::QINT8, &[1, 1], &[-128]));
    to_integers: family(&["UniformQuantize"], &[DataType::QINT8, DataType::QINT32], |op, dtype| {
        let case = Case::op(op).inputs([t(&[2, 3], &[-27.0f32, -20.0, 0.0, 1.0, 0.625, 90.0]), scalar(0.25f32), scalar(-20)]).attr("Tout", dtype);
        if dtype == DataType::QINT8 { bounded(case, &[""]) } else { bounded_wide(case, &[""]) }
    });
    to_integers_each: bounded(Case::op("UniformQuantize").inputs([t(&[2, 3], &[-27.0f32, -20.0, 0.0, 1.0, 0.625, 90.0]), vector(&[0.25f32, 0.5]), vector(&[-20, 10])])
        .attr("Tout", DataType::QINT8).attr("quantization_axis", 0i64), &[""]);
    no_scale: bounded(Case::op("UniformQuantize").inputs([t(&[1], &[-27.0f32]), scalar(-0.25f32), scalar(-20)]).attr("Tout", DataType::QINT8), &[""])
        .fails(Code::InvalidArgument);
    from_integers: family(&["UniformDequantize"], &[DataType::QINT8, DataType::QINT32], |op, dtype| {
        let case = Case::op(op).inputs([q(dtype, &[2, 3], &[-128, -100, -20, -16, 0, 20]), vector(&[0.25f32, 0.5]), vector(&[-20, 10])])
            .attr("Tout", DataType::FLOAT).attr("quantization_axis", 0i64);
        if dtype == DataType::QINT8 { bounded(case, &[""]) } else { bounded_wide(case, &[""]) }
    });
    from_integers_misfit: bounded(Case::op("UniformDequantize").inputs([q(DataType::QINT8, &[1, 3], &[-128, -100, -20]), vector(&[0.25f32, 0.5]), vector(&[-20, 10])])
        .attr("Tout", DataType::FLOAT).attr("quantization_axis", 0i64), &[""]).fails(Code::InvalidArgument);
    between: bounded(Case::op("UniformRequantize").inputs([q(DataType::QINT8, &[2, 3], &[-128, -100, -20, -16, 0, 20]), vector(&[0.25f32, 0.5]), vector(&[-20, 10])])
        .inputs([scalar(0.125f32), scalar(-10)]).attr("Tout", DataType::QINT8).attr("input_quantization_axis", 0i64), &["input_", "output_"]);
    between_wide: bounded(bounded_wide(Case::op("UniformRequantize").inputs([q(DataType::QINT32, &[2, 3], &[-128, -100, -20, -16, 0, 20]), scalar(0.3f32), scalar(-20)])
        .inputs([scalar(0.7f32), scalar(-10)]).attr("Tout", DataType::QINT8), &["input_"]), &["output_"]);
    between_misfit: bounded(Case::op("UniformRequantize").inputs([q(DataType::QINT8, &[1, 3], &[-128, -100, -20]), vector(&[0.25f32, 0.5]), vector(&[-20, 10])])
        .inputs([scalar(0.125f32), scalar(-10)]).attr("Tout", DataType::QINT8).attr("input_quantization_axis", 0i64), &["input_", "output_"]).fails(Code::InvalidArgument);
    sums: bounded_wide(Case::op("UniformQuantizedAdd").inputs([q(DataType::QINT32, &[2, 3], &[-28, -21, 1, 0, 4, 9]), q(DataType::QINT32, &[3], &[-28, 100, 13])])
        .inputs([scalar(2.0f32), scalar(-10), scalar(0.5f32), scalar(-2), scalar(0.25f32), scalar(-20)]), &["lhs_", "rhs_", "output_"]);
    sums_misfit: bounded_wide(Case::op("UniformQuantizedAdd").inputs([q(DataType::QINT32, &[2, 3], &[-28, -21, 1, 0, 4, 9]), q(DataType::QINT32, &[2], &[-28, 100])])
        .inputs([scalar(2.0f32), scalar(-10), scalar(0.5f32), scalar(-2), scalar(0.25f32), scalar(-20)]), &["lhs_", "rhs_", "output_"]).fails(Code::InvalidArgument);
    clipped: bounded_wide(Case::op("UniformQuantizedClipByValue").inputs([q(DataType::QINT32, &[2, 3], &[-28, -21, 1, 0, 4, 9]), q(DataType::QINT32, &[3], &[-1, -5, -1])])
        .inputs([q(DataType::QINT32, &[3], &[1, 5, 1]), vector(&[2.0f32, 3.0, 4.0]), vector(&[-20, 0, 20])]).attr("quantization_axis", 1i64), &[""]);
    clipped_misfit: bounded_wide(Case::op("UniformQuantizedClipByValue").inputs([q(DataType::QINT32, &[2, 3], &[-28, -21, 1, 0, 4, 9]), q(DataType::QINT32, &[2], &[-1, -5])])
        .inputs([q(DataType::QINT32, &[2], &[1, 5]), vector(&[2.0f32, 3.0]), vector(&[-20, 0])]).attr("quantization_axis", 1i64), &[""]).fails(Code::InvalidArgument);
}
