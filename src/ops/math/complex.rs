//! Complex numbers from their parts, and the parts of complex numbers.

use super::gradients::{binary, set_broadcast, unary};
use ff_hlo::Opcode;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, shapes};
use ff_tensor::{DataType, Result};

static COMPLEX: Op = Op {
    name: "Complex",
    shape: shapes::broadcast_binary,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| super::arithmetic::lower_binary(context, Opcode::Complex)),
    gradient: Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let (real, imaginary) = (part(context, "Real", incoming)?, part(context, "Imag", incoming)?);
        set_broadcast(context, real, imaginary)
    }),
    ..Op::PURE
};
static CONJ: Op = Op {
    name: "Conj",
    lower: Some(|context| {
        let input = context.input(0)?;
        let result = context.builder.conjugate(input)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let gradient = unary(context, "Conj", incoming)?;
        context.set(0, gradient);
        Ok(())
    }),
    ..PART
};
static REAL: Op = Op {
    name: "Real",
    gradient: Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let gradient = whole(context, incoming, true)?;
        context.set(0, gradient);
        Ok(())
    }),
    ..PART
};
static IMAG: Op = Op {
    name: "Imag",
    lower: Some(|context| lower_part(context, Opcode::Imag)),
    gradient: Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let gradient = whole(context, incoming, false)?;
        context.set(0, gradient);
        Ok(())
    }),
    ..PART
};
static COMPLEX_ABS: Op = Op {
    name: "ComplexAbs",
    lower: Some(|context| lower_part(context, Opcode::Abs)),
    gradient: Gradient::Fn(abs_gradient),
    ..PART
};
static ANGLE: Op = Op {
    name: "Angle",
    lower: Some(|context| {
        let input = context.input(0)?;
        let real = context.builder.unary(Opcode::Real, input)?;
        let imaginary = context.builder.unary(Opcode::Imag, input)?;
        let result = context.builder.binary(Opcode::Atan2, imaginary, real)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(angle_gradient),
    ..PART
};

/// A function of each complex number; as it stands, the real part.
const PART: Op = Op {
    name: "",
    shape: shapes::unchanged,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| lower_part(context, Opcode::Real)),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&COMPLEX, &CONJ, &REAL, &IMAG, &COMPLEX_ABS, &ANGLE];

fn lower_part(context: &mut LowerContext, opcode: Opcode) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.unary(opcode, input)?;
    context.set_output(0, result);
    Ok(())
}

/// The type of the parts of complex numbers, and the type of complex numbers of such parts.
fn types_of(dtype: DataType) -> (DataType, DataType) {
    match dtype {
        DataType::COMPLEX128 | DataType::DOUBLE => (DataType::DOUBLE, DataType::COMPLEX128),
        _ => (DataType::FLOAT, DataType::COMPLEX64),
    }
}

/// Adds `Real` or `Imag`.
fn part(context: &mut GradientContext, op: &str, value: OutputRef) -> Result<OutputRef> {
    let (real, complex) = types_of(context.dtype(value));
    context.op(op, &[value], Attrs::new().with("T", complex).with("Tout", real))
}

/// A complex number with `value` as its real or imaginary part and 0 as the other.
pub fn whole(context: &mut GradientContext, value: OutputRef, is_real: bool) -> Result<OutputRef> {
    let (real, complex) = types_of(context.dtype(value));
    let zero = super::gradients::scalar_like(context, 0.0, value)?;
    let parts = if is_real { [value, zero] } else { [zero, value] };
    context.op(
        "Complex",
        &parts,
        Attrs::new().with("T", real).with("Tout", complex),
    )
}

/// `dy x / |x|`, 0 at 0.
fn abs_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x, y) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let (incoming, size) = (whole(context, incoming, true)?, whole(context, y, true)?);
    let product = binary(context, "Mul", incoming, x)?;
    let gradient = binary(context, "DivNoNan", product, size)?;
    context.set(0, gradient);
    Ok(())
}

/// `-dy / (imag x + i real x)`.
fn angle_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let (real_type, complex) = types_of(context.dtype(x));
    let (real, imaginary) = (part(context, "Real", x)?, part(context, "Imag", x)?);
    let attrs = Attrs::new().with("T", real_type).with("Tout", complex);
    let turned = context.op("Complex", &[imaginary, real], attrs)?;
    let inverse = unary(context, "Reciprocal", turned)?;
    let incoming = whole(context, incoming, true)?;
    let negative = unary(context, "Neg", incoming)?;
    let gradient = binary(context, "Mul", negative, inverse)?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
fn part_case(op: &'static str, dtype: DataType, values: &[f64]) -> crate::testing::Case {
    use crate::testing::{Case, numbers};
    let case = Case::op(op).input(numbers(dtype, &[values.len() as i64], values));
    if op == "Conj" {
        case
    } else {
        case.attr("Tout", types_of(dtype).0)
    }
}

crate::op_cases! {
    from_parts: family(&["Complex"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[1.0, -2.0]), numbers(dtype, &[3], &[0.5, 0.0, 4.0])])
            .attr("Tout", types_of(dtype).1)
    });
    from_parts_that_misfit: Case::op("Complex").inputs([vector(&[1.0f32, 2.0]), vector(&[1.0f32, 2.0, 3.0])])
        .attr("Tout", DataType::COMPLEX64).fails(Code::InvalidArgument);
    parts: family(&["Conj", "Real", "Imag", "Angle", "ComplexAbs"], &FRACTIONS[4..], |op, dtype| {
        part_case(op, dtype, &[-3.0, -0.25, 0.0, 0.5, 2.0, 9.0])
    });
    nothing: family(&["Conj", "Real", "Imag", "Angle", "ComplexAbs"], &FRACTIONS[4..], |op, dtype| {
        part_case(op, dtype, &[])
    });
}
