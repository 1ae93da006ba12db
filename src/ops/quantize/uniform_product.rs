//! Products of uniformly quantized matrices, also with a left side that is quantized on the way.

use super::range::{from_integers, integers};
use super::uniform::{Multiplier, Scales, check_scales, limits, moved};
use crate::wide::{reserved, zeros};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "UniformQuantizedDot",
        shape: |context| {
            check_scales(context, 0, 2, "lhs_quantization_axis")?;
            check_scales(context, 1, 4, "rhs_quantization_axis")?;
            for axis in ["rhs_quantization_axis", "output_quantization_axis"] {
                ensure!(
                    [-1, 1].contains(&context.attrs().int(axis)?),
                    InvalidArgument,
                    "{axis} Attr must be 1 (per-channel) or -1 (per-tensor)."
                );
            }
            product_shape(context)
        },
        kernels: &[Kernel::native(dot)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformQuantizedDotHybrid",
        shape: |context| {
            check_scales(context, 1, 2, "rhs_quantization_axis")?;
            product_shape(context)
        },
        kernels: &[Kernel::native(hybrid)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
];

fn product_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
    dim::merge(a.dim(1), b.dim(0))?;
    context.set_output(0, PartialShape::new(&[a.dim(0), b.dim(1)]));
    Ok(())
}

/// Extents of a product: rows, terms, columns.
fn extents(context: &KernelContext) -> Result<(usize, usize, usize)> {
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    Ok((a[0] as usize, a[1] as usize, b[1] as usize))
}

/// Sums of products of integers less their zero points, modulo 2^32.
fn sums(
    (rows, terms, columns): (usize, usize, usize),
    a: &[i64],
    zero: i64,
    b: &[i64],
    scales: &Scales,
) -> Result<Vec<i64>> {
    let mut sums: Vec<i64> = zeros(rows * columns)?;
    for i in 0..rows {
        for t in 0..terms {
            let x = a[i * terms + t].wrapping_sub(zero);
            for (j, sum) in sums[i * columns..(i + 1) * columns].iter_mut().enumerate() {
                let at = t * columns + j;
                let y = b[at] - scales.zeros[scales.at(at)];
                *sum = i64::from(sum.wrapping_add(x.wrapping_mul(y)) as i32);
            }
        }
    }
    Ok(sums)
}

fn dot(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (least, largest) = limits(attrs, "output_")?;
    let (a_dims, b_dims) = (context.input(0)?.dims(), context.input(1)?.dims());
    let left = Scales::of(context, 2, a_dims, attrs.int("lhs_quantization_axis")?)?;
    let right = Scales::of(context, 4, b_dims, attrs.int("rhs_quantization_axis")?)?;
    let shape = context.output_shape(0)?.clone();
    let out = Scales::of(context, 6, shape.dims(), attrs.int("output_quantization_axis")?)?;
    let size = extents(context)?;
    let (a, b) = (integers(context.input(0)?)?, integers(context.input(1)?)?);
    let mut sums = sums(size, &a, left.zeros[0], &b, &right)?;
    for (i, sum) in sums.iter_mut().enumerate() {
        let (column, to) = (right.at(i % size.2.max(1)), out.at(i));
        let scale = f64::from(left.scales[0]) * f64::from(right.scales[column]);
        let multiplier = Multiplier::new(scale / f64::from(out.scales[to]));
        *sum = moved(multiplier.apply(*sum), out.zeros[to])
            .min(largest)
            .max(least);
    }
    let result = from_integers(context.output_type(0), shape, &sums)?;
    context.set_output(0, result)
}

/// Integers, scale and zero point that cover numbers from -128 to 127.
pub fn quantize_all(x: &[f32]) -> (Vec<i64>, f32, i64) {
    let (least, largest) = (-128.0f64, 127.0f64);
    let min = f64::from(x.iter().copied().fold(0.0, f32::min));
    let max = f64::from(x.iter().copied().fold(0.0, f32::max));
    let scale = ((max - min) / (largest - least)) as f32;
    let inverse = ((largest - least) / (max - min)) as f32;
    if scale == 0.0 || !inverse.is_finite() {
        return (vec![0; x.len()], 1.0, 0);
    }
    let (from_min, from_max) = (least - min / f64::from(scale), largest - max / f64::from(scale));
    let error = |level: f64, limit: f64| level.abs() + (limit / f64::from(scale)).abs();
    let zero = if error(least, min) < error(largest, max) {
        from_min
    } else {
        from_max
    };
    let zero = zero.clamp(least, largest).round() as i64;
    let values = x
        .iter()
        .map(|&x| (i64::from((x * inverse + 0.5).floor() as i32) + zero).clamp(-128, 127))
        .collect();
    (values, scale, zero)
}

fn hybrid(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let b_dims = context.input(1)?.dims();
    let right = Scales::of(context, 2, b_dims, attrs.int("rhs_quantization_axis")?)?;
    let x = context.input_slice::<f32>(0)?;
    let b = integers(context.input(1)?)?;
    let size = extents(context)?;
    let mut result: Vec<f32> = reserved(size.0 * size.2)?;
    for row in 0..size.0 {
        // Each row is quantized by itself.
        let (a, scale, zero) = quantize_all(&x[row * size.1..(row + 1) * size.1]);
        let sums = sums((1, size.1, size.2), &a, zero, &b, &right)?;
        result.extend(sums.iter().enumerate().map(|(column, &sum)| {
            let column = right.at(column);
            sum as f32 * scale * right.scales[column]
        }));
    }
    let shape = context.output_shape(0)?.clone();
    context.set_output(0, Tensor::from_slice(shape, &result)?)
}

#[cfg(test)]
use super::convert::q;

#[cfg(test)]
fn bounded(case: crate::testing::Case, all: &[(&str, i64, i64)]) -> crate::testing::Case {
    all.iter().fold(case, |case, &(prefix, least, largest)| {
        case.attr(&format!("{prefix}quantization_min_val"), least)
            .attr(&format!("{prefix}quantization_max_val"), largest)
    })
}

#[cfg(test)]
const ALL: &[(&str, i64, i64)] = &[
    ("lhs_", -128, 127),
    ("rhs_", -128, 127),
    ("output_", i32::MIN as i64, i32::MAX as i64),
];

crate::op_cases! {
    products_beyond_32_bits: bounded(Case::op("UniformQuantizedDot").inputs([q(DataType::QINT8, &[1, 2], &[1, 2]), q(DataType::QINT8, &[2, 3], &[1, 2, 3, 4, 5, 6])])
        .inputs([scalar(2.0f32), scalar(2_147_483_646), scalar(0.5f32), scalar(2), scalar(0.25f32), scalar(-20)]).attr("Tout", DataType::QINT32), ALL)
        .gives(q(DataType::QINT32, &[1, 3], &[2_147_483_628; 3]));
    products: bounded(Case::op("UniformQuantizedDot").inputs([q(DataType::QINT8, &[2, 2], &[1, 2, 3, 4]), q(DataType::QINT8, &[2, 3], &[1, 2, 3, 4, 5, 6])])
        .inputs([scalar(0.5f32), scalar(1), scalar(0.5f32), scalar(2), scalar(0.25f32), scalar(-20)]).attr("Tout", DataType::QINT32), ALL);
    products_each: bounded(Case::op("UniformQuantizedDot").inputs([q(DataType::QINT8, &[2, 2], &[1, 2, 3, 4]), q(DataType::QINT8, &[2, 3], &[1, 2, 3, 4, 5, 6])])
        .inputs([scalar(0.5f32), scalar(1), vector(&[0.5f32, 0.25, 0.75]), vector(&[2, 4, 3]), scalar(0.25f32), scalar(-20)]).attr("Tout", DataType::QINT32)
        .attr("rhs_quantization_axis", 1i64), ALL);
    products_of_no_axis: bounded(Case::op("UniformQuantizedDot").inputs([q(DataType::QINT8, &[0, 1], &[]), q(DataType::QINT8, &[1, 1], &[1])])
        .inputs([scalar(0.5f32), scalar(1), scalar(0.5f32), scalar(2), scalar(0.25f32), scalar(-20)]).attr("Tout", DataType::QINT32)
        .attr("output_quantization_axis", 2i64), ALL).fails(Code::InvalidArgument);
    products_misfit: bounded(Case::op("UniformQuantizedDot").inputs([q(DataType::QINT8, &[2, 2], &[1, 2, 3, 4]), q(DataType::QINT8, &[3, 2], &[1, 2, 3, 4, 5, 6])])
        .inputs([scalar(0.5f32), scalar(1), scalar(0.5f32), scalar(2), scalar(0.25f32), scalar(-20)]).attr("Tout", DataType::QINT32), ALL).fails(Code::InvalidArgument);
    mixed: bounded(Case::op("UniformQuantizedDotHybrid").inputs([t(&[2, 2], &[-32.2f32, -12.1, 10.7, 11.6]), q(DataType::QINT8, &[2, 3], &[-14, -1, 3, 5, 10, 6])])
        .inputs([scalar(2.0f32), scalar(4)]).attr("Tout", DataType::FLOAT), &ALL[1..2]);
    mixed_misfit: bounded(Case::op("UniformQuantizedDotHybrid").inputs([t(&[2, 2], &[-32.2f32, -12.1, 10.7, 11.6]), q(DataType::QINT8, &[3, 2], &[-14, -1, 3, 5, 10, 6])])
        .inputs([scalar(2.0f32), scalar(4)]).attr("Tout", DataType::FLOAT), &ALL[1..2]).fails(Code::InvalidArgument);
}
