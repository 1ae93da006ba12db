//! Gradients of Fourier transforms: transforms in the other direction.

use super::transform::transformed;
use crate::math::gradients::{binary, shape_of, typed, unary};
use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{DataType, Result};

/// The name of a transform of as many axes as the present one.
fn name(context: &GradientContext, start: &str) -> String {
    match transformed(context.node()) {
        1 => start.to_string(),
        rank => format!("{start}{rank}D"),
    }
}

/// Entries of a vector from `begin` on, or before `end`; negative places count from the end.
fn part(
    context: &mut GradientContext,
    dims: OutputRef,
    begin: Option<i32>,
    end: Option<i32>,
) -> Result<OutputRef> {
    let (from, to, step) = (
        context.int32s(&[begin.unwrap_or(0)])?,
        context.int32s(&[end.unwrap_or(0)])?,
        context.int32s(&[1])?,
    );
    let attrs = typed(DataType::INT32)
        .with("Index", DataType::INT32)
        .with("begin_mask", i64::from(begin.is_none()))
        .with("end_mask", i64::from(end.is_none()));
    context.op("StridedSlice", &[dims, from, to, step], attrs)
}

fn cast(context: &mut GradientContext, value: OutputRef, dtype: DataType) -> Result<OutputRef> {
    let attrs = Attrs::new()
        .with("SrcT", context.dtype(value))
        .with("DstT", dtype);
    context.op("Cast", &[value], attrs)
}

/// The number of elements that one transform of a value takes, as a scalar of `dtype`.
fn size(context: &mut GradientContext, value: OutputRef, dtype: DataType) -> Result<OutputRef> {
    let rank = transformed(context.node()) as i32;
    let dims = shape_of(context, value)?;
    let last = part(context, dims, Some(-rank), None)?;
    let axes = context.int32s(&[0])?;
    let attrs = typed(DataType::INT32)
        .with("Tidx", DataType::INT32)
        .with("keep_dims", false);
    let product = context.op("Prod", &[last, axes], attrs)?;
    cast(context, product, dtype)
}

/// Between complex numbers: the other transform, without its scale.
pub fn of_complex(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let dtype = context.dtype(incoming);
    let inverse = context.node().op_name().starts_with('I');
    let other = name(context, if inverse { "FFT" } else { "IFFT" });
    let attrs = Attrs::new().with("Tcomplex", dtype);
    let turned = context.op(&other, &[incoming], attrs)?;
    let size = size(context, incoming, dtype)?;
    let gradient = binary(context, if inverse { "RealDiv" } else { "Mul" }, turned, size)?;
    context.set(0, gradient);
    Ok(())
}

/// `value` with zeros after its end along each axis, up to extents `dims`.
fn pad_to(context: &mut GradientContext, value: OutputRef, dims: OutputRef) -> Result<OutputRef> {
    let present = shape_of(context, value)?;
    let missing = binary(context, "Sub", dims, present)?;
    let before = unary(context, "ZerosLike", missing)?;
    let attrs = typed(DataType::INT32).with("N", 2i64).with("axis", 1i64);
    let paddings = context.op("Pack", &[before, missing], attrs)?;
    let attrs = typed(context.dtype(value)).with("Tpaddings", DataType::INT32);
    context.op("Pad", &[value, paddings], attrs)
}

/// From real numbers to a half spectrum: the real part of the inverse of what comes in, filled up by zeros.
pub fn of_real(context: &mut GradientContext) -> Result<()> {
    let (incoming, input, lengths) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let (real, complex) = (context.dtype(input), context.dtype(incoming));
    let rank = transformed(context.node()) as i32;
    let (input_dims, zero) = (shape_of(context, input)?, context.int32(0)?);
    let batch = part(context, input_dims, None, Some(-rank))?;
    let attrs = typed(DataType::INT32)
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let full = context.op("ConcatV2", &[batch, lengths, zero], attrs)?;
    let padded = pad_to(context, incoming, full)?;
    let other = name(context, "IFFT");
    let turned = context.op(&other, &[padded], Attrs::new().with("Tcomplex", complex))?;
    let attrs = Attrs::new().with("T", complex).with("Tout", real);
    let parts = context.op("Real", &[turned], attrs)?;
    let size = size(context, parts, real)?;
    let scaled = binary(context, "Mul", parts, size)?;
    let gradient = pad_to(context, scaled, input_dims)?;
    context.set(0, gradient);
    Ok(())
}

/// 1 at frequency 0 and at the highest one of even lengths, 2 elsewhere: how often a half spectrum's entry counts.
fn weights(context: &mut GradientContext, length: OutputRef, dtype: DataType) -> Result<OutputRef> {
    let two = context.int32s(&[2])?;
    let (one, zero) = (context.int32s(&[1])?, context.int32(0)?);
    let half = binary(context, "FloorDiv", length, two)?;
    let odd = binary(context, "FloorMod", length, two)?;
    let even = binary(context, "Sub", one, odd)?;
    let doubled = binary(context, "Sub", half, even)?;
    let (single, double) = (
        crate::math::gradients::scalar_of(dtype, 1.0)?,
        crate::math::gradients::scalar_of(dtype, 2.0)?,
    );
    let (single, double) = (context.constant(single)?, context.constant(double)?);
    let mut parts = Vec::new();
    for (count, value) in [(one, single), (doubled, double), (even, single)] {
        let attrs = typed(dtype).with("index_type", DataType::INT32);
        parts.push(context.op("Fill", &[count, value], attrs)?);
    }
    parts.push(zero);
    let attrs = typed(dtype).with("N", 3i64).with("Tidx", DataType::INT32);
    context.op("ConcatV2", &parts, attrs)
}

/// From a half spectrum to real numbers.
pub fn of_half_spectrum(context: &mut GradientContext) -> Result<()> {
    let (incoming, input, lengths) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let (real, complex) = (context.dtype(incoming), context.dtype(input));
    let other = name(context, "RFFT");
    let attrs = Attrs::new().with("Treal", real).with("Tcomplex", complex);
    let turned = context.op(&other, &[incoming, lengths], attrs)?;
    let last = part(context, lengths, Some(-1), None)?;
    let weights = weights(context, last, real)?;
    let size = size(context, incoming, real)?;
    let scale = binary(context, "RealDiv", weights, size)?;
    let scale = cast(context, scale, complex)?;
    let scaled = binary(context, "Mul", turned, scale)?;
    let dims = shape_of(context, input)?;
    let gradient = pad_to(context, scaled, dims)?;
    context.set(0, gradient);
    Ok(())
}
