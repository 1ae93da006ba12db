//! Transforms of complex numbers, and between real numbers and half spectra.
//!
//! The transforms of real numbers take a length for each axis: longer inputs are cut off, shorter ones refused.

use super::gradient;
use ff_hlo::FftKind;
use ff_op::{Gradient, Kernel, LowerContext, NodeInfo, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

const COMPLEX: Op = Op {
    shape: |context| {
        let rank = transformed(context.node());
        let input = context.input_with_rank_at_least(0, rank)?;
        context.set_output(0, input);
        Ok(())
    },
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_complex),
    gradient: Gradient::Fn(gradient::of_complex),
    ..Op::PURE
};
const FROM_REAL: Op = Op {
    shape: real_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_real),
    gradient: Gradient::Fn(gradient::of_real),
    ..Op::PURE
};
const TO_REAL: Op = Op {
    gradient: Gradient::Fn(gradient::of_half_spectrum),
    ..FROM_REAL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "FFT",
        ..COMPLEX
    },
    &Op {
        name: "FFT2D",
        ..COMPLEX
    },
    &Op {
        name: "FFT3D",
        ..COMPLEX
    },
    &Op {
        name: "IFFT",
        ..COMPLEX
    },
    &Op {
        name: "IFFT2D",
        ..COMPLEX
    },
    &Op {
        name: "IFFT3D",
        ..COMPLEX
    },
    &Op {
        name: "RFFT",
        ..FROM_REAL
    },
    &Op {
        name: "RFFT2D",
        ..FROM_REAL
    },
    &Op {
        name: "RFFT3D",
        ..FROM_REAL
    },
    &Op {
        name: "IRFFT",
        ..TO_REAL
    },
    &Op {
        name: "IRFFT2D",
        ..TO_REAL
    },
    &Op {
        name: "IRFFT3D",
        ..TO_REAL
    },
];

/// How many axes are transformed: the name says it.
pub fn transformed(node: &NodeInfo) -> usize {
    match node.op_name() {
        name if name.ends_with("2D") => 2,
        name if name.ends_with("3D") => 3,
        _ => 1,
    }
}

/// Whether the output is real.
fn to_real(node: &NodeInfo) -> bool {
    node.op_name().starts_with("IRFFT")
}

/// Fails unless the last axes of the input, where known, are long enough for the lengths.
fn check_lengths(input: &PartialShape, lengths: &[i64], to_real: bool) -> Result<()> {
    let rank = input.rank().unwrap_or(0) as i64;
    for (i, &length) in lengths.iter().enumerate() {
        ensure!(
            length >= 0,
            InvalidArgument,
            "fft_length[{i}] must >= 0, but got: {length}"
        );
        let axis = rank - lengths.len() as i64 + i as i64;
        let least = if to_real && i + 1 == lengths.len() {
            length / 2 + 1
        } else {
            length
        };
        let extent = input.dim(axis);
        ensure!(
            extent <= 0 || extent >= least,
            InvalidArgument,
            "Input dimension {axis} must have length of at least {least} but got: {extent}"
        );
    }
    Ok(())
}

fn real_shape(context: &mut ShapeContext) -> Result<()> {
    let count = transformed(context.node());
    let input = context.input_with_rank_at_least(0, count)?;
    let given = context.input_with_rank(1, 1)?;
    dim::merge(given.dim(0), count as i64)?;
    let lengths = context.input_as_i64s(1)?;
    let Some(rank) = input.rank() else { return Ok(()) };
    let mut last = vec![dim::UNKNOWN; count];
    if let Some(lengths) = lengths {
        check_lengths(&input, &lengths, to_real(context.node()))?;
        last = lengths;
        if !to_real(context.node()) && last[count - 1] > 0 {
            last[count - 1] = last[count - 1] / 2 + 1;
        }
    }
    let batch = input.slice(0, Some((rank - count) as i64));
    context.set_output(0, batch.concat(&PartialShape::new(&last)));
    Ok(())
}

fn lower_complex(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let lengths = &dims[dims.len() - transformed(context.node())..];
    let input = context.input(0)?;
    if dims.contains(&0) {
        context.set_output(0, input);
        return Ok(());
    }
    let inverse = context.node().op_name().starts_with('I');
    let kind = if inverse { FftKind::Ifft } else { FftKind::Fft };
    let result = context.builder.fft(input, kind, lengths)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_real(context: &mut LowerContext) -> Result<()> {
    let attrs = context.attrs();
    let types = (attrs.dtype("Treal")?, attrs.dtype("Tcomplex")?);
    ensure!(
        matches!(
            types,
            (DataType::FLOAT, DataType::COMPLEX64) | (DataType::DOUBLE, DataType::COMPLEX128)
        ),
        InvalidArgument,
        "Wrong types for a real FFT: {} and {}",
        types.0,
        types.1
    );
    let lengths = context.constant_i64s(1)?;
    let (mut dims, inverse) = (context.input_dims(0)?, to_real(context.node()));
    let (mut input, dtype) = (context.input(0)?, context.output_type(0));
    let first = dims.len() - lengths.len();
    let mut result_dims = dims[..first].to_vec();
    result_dims.extend(&lengths);
    let Some(last) = result_dims.last_mut() else {
        return Ok(());
    };
    if !inverse && *last > 0 {
        *last = *last / 2 + 1;
    }
    if dims.contains(&0) || result_dims.contains(&0) {
        let zeros = context.builder.full(dtype, &result_dims, 0.0)?;
        context.set_output(0, zeros);
        return Ok(());
    }
    dims.truncate(first);
    dims.extend(&lengths);
    if inverse {
        let last = dims.len() - 1;
        dims[last] = dims[last] / 2 + 1;
    }
    for axis in first..dims.len() {
        if context.builder.dims(input)[axis] > dims[axis] {
            input = context.builder.slice_in_dim(input, 0, dims[axis], 1, axis)?;
        }
    }
    let kind = if inverse { FftKind::Irfft } else { FftKind::Rfft };
    let result = context.builder.fft(input, kind, &lengths)?;
    context.set_output(0, result);
    Ok(())
}

#[cfg(test)]
const COMPLEX_TYPES: &[ff_tensor::DataType] =
    &[ff_tensor::DataType::COMPLEX64, ff_tensor::DataType::COMPLEX128];

#[cfg(test)]
fn wave(dtype: ff_tensor::DataType, dims: &[i64]) -> ff_tensor::Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count)
        .map(|i| ((i * i + 3 * i) % 11) as f64 * 0.25 - 1.0)
        .collect();
    crate::testing::numbers(dtype, dims, &values)
}

/// A transform of real numbers of single (`T` is float) or double precision.
#[cfg(test)]
fn real_case(
    op: &'static str,
    dtype: ff_tensor::DataType,
    dims: &[i64],
    lengths: &[i32],
) -> crate::testing::Case {
    use crate::testing::{Case, vector};
    use ff_tensor::DataType;
    let (real, complex) = match dtype {
        DataType::DOUBLE => (DataType::DOUBLE, DataType::COMPLEX128),
        _ => (DataType::FLOAT, DataType::COMPLEX64),
    };
    let input = if op.starts_with('I') { complex } else { real };
    Case::op(op)
        .inputs([wave(input, dims), vector(lengths)])
        .attr("Treal", real)
        .attr("Tcomplex", complex)
}

crate::op_cases! {
    types_misfit: Case::op("RFFT").inputs([vector(&[1.0f32, 2.0]), vector(&[2])]).attr("Tcomplex", DataType::COMPLEX128).fails(Code::InvalidArgument);
    lines: family(&["FFT", "IFFT"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[2, 7])));
    lines_of_powers: family(&["FFT", "IFFT"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[16])));
    planes: family(&["FFT2D", "IFFT2D"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[2, 3, 8])));
    volumes: family(&["FFT3D", "IFFT3D"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[3, 2, 5])));
    nothing: family(&["FFT", "IFFT2D"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[2, 0, 3])));
    scalars: family(&["FFT", "IFFT"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[])).fails(Code::InvalidArgument));
    vectors: family(&["FFT2D", "IFFT2D", "FFT3D"], COMPLEX_TYPES, |op, dtype| Case::op(op).input(wave(dtype, &[3])).fails(Code::InvalidArgument));
    real_lines: family(&["RFFT", "IRFFT"], &FLOATS[..2], |op, dtype| real_case(op, dtype, &[2, 8], &[8]));
    real_lines_cut: family(&["RFFT", "IRFFT"], &FLOATS[..2], |op, dtype| real_case(op, dtype, &[2, 8], &[5]));
    real_planes: family(&["RFFT2D", "IRFFT2D"], &FLOATS[..2], |op, dtype| real_case(op, dtype, &[2, 4, 6], &[3, 6]));
    real_volumes: family(&["RFFT3D", "IRFFT3D"], &FLOATS[..2], |op, dtype| real_case(op, dtype, &[2, 4, 6], &[2, 4, 5]));
    real_nothing: family(&["RFFT", "IRFFT"], &FLOATS[..2], |op, dtype| real_case(op, dtype, &[0, 8], &[8]));
    real_of_nothing: family(&["RFFT", "IRFFT"], &FLOATS[..1], |op, dtype| real_case(op, dtype, &[2, 0], &[0]));
    real_too_short: family(&["RFFT", "IRFFT"], &FLOATS[..1], |op, dtype| real_case(op, dtype, &[2, 4], &[9]).fails(Code::InvalidArgument));
    real_lengths: family(&["RFFT2D", "IRFFT2D"], &FLOATS[..1], |op, dtype| real_case(op, dtype, &[2, 4], &[4]).fails(Code::InvalidArgument));
    real_negative: family(&["RFFT", "IRFFT"], &FLOATS[..1], |op, dtype| real_case(op, dtype, &[2, 4], &[-1]).fails(Code::InvalidArgument));
}
