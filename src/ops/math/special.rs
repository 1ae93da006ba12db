//! Special functions: Bessel, gamma, zeta, probability and other integrals. Computed in double precision.

use super::gradients::{binary, scalar_like, set_broadcast, set_reduced, typed, unary};
use crate::elementwise::{map_same, zip_same};
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_kernels::math::special::*;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, ensure};

/// A function of one number, with its derivative from input and output.
macro_rules! row {
    ($name:literal, $function:expr, |$context:ident, $x:ident, $y:ident| $derivative:expr) => {
        Op {
            name: $name,
            shape: shapes::unchanged,
            kernels: &[Kernel::native(|context| map(context, $function))],
            lower: Some(crate::host_call::lower),
            gradient: Gradient::Fn(|$context| {
                let incoming = $context.incoming_or_zeros(0)?;
                let ($x, $y) = ($context.input(0)?, $context.output(0));
                let _ = ($x, $y);
                let derivative: OutputRef = $derivative;
                let gradient = binary($context, "Mul", incoming, derivative)?;
                $context.set(0, gradient);
                Ok(())
            }),
            ..Op::PURE
        }
    };
}

/// A function of two numbers, broadcast.
const fn pair(name: &'static str, kernels: &'static [Kernel], gradient: Gradient) -> Op {
    Op {
        name,
        shape: shapes::broadcast_binary,
        kernels,
        lower: Some(crate::host_call::lower),
        gradient,
        ..Op::PURE
    }
}

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &row!("BesselI0", bessel_i0, |context, x, y| unary(
        context, "BesselI1", x
    )?),
    &row!("BesselI1", bessel_i1, |context, x, y| {
        let (zeroth, ratio) = (unary(context, "BesselI0", x)?, binary(context, "Div", y, x)?);
        let elsewhere = binary(context, "Sub", zeroth, ratio)?;
        at(context, x, 0.0, 1.0, elsewhere)?
    }),
    &row!("BesselI0e", bessel_i0e, |context, x, y| {
        let (first, sign) = (unary(context, "BesselI1e", x)?, unary(context, "Sign", x)?);
        let signed = binary(context, "Mul", sign, y)?;
        binary(context, "Sub", first, signed)?
    }),
    &row!("BesselI1e", bessel_i1e, |context, x, y| {
        let (zeroth, sign) = (unary(context, "BesselI0e", x)?, unary(context, "Sign", x)?);
        let inverse = unary(context, "Reciprocal", x)?;
        let sum = binary(context, "AddV2", sign, inverse)?;
        let product = binary(context, "Mul", y, sum)?;
        let elsewhere = binary(context, "Sub", zeroth, product)?;
        at(context, x, 0.0, 0.5, elsewhere)?
    }),
    &row!("BesselJ0", bessel_j0, |context, x, y| minus(
        context, "BesselJ1", x
    )?),
    &row!("BesselJ1", bessel_j1, |context, x, y| {
        let (zeroth, ratio) = (unary(context, "BesselJ0", x)?, binary(context, "Div", y, x)?);
        let elsewhere = binary(context, "Sub", zeroth, ratio)?;
        at(context, x, 0.0, 0.5, elsewhere)?
    }),
    &row!("BesselY0", bessel_y0, |context, x, y| minus(
        context, "BesselY1", x
    )?),
    &row!("BesselY1", bessel_y1, |context, x, y| {
        let (zeroth, ratio) = (unary(context, "BesselY0", x)?, binary(context, "Div", y, x)?);
        binary(context, "Sub", zeroth, ratio)?
    }),
    &row!("BesselK0", bessel_k0, |context, x, y| minus(
        context, "BesselK1", x
    )?),
    &row!("BesselK0e", bessel_k0e, |context, x, y| {
        let first = unary(context, "BesselK1e", x)?;
        binary(context, "Sub", y, first)?
    }),
    &row!("BesselK1", bessel_k1, |context, x, y| {
        let (zeroth, ratio) = (minus(context, "BesselK0", x)?, binary(context, "Div", y, x)?);
        binary(context, "Sub", zeroth, ratio)?
    }),
    &row!("BesselK1e", bessel_k1e, |context, x, y| {
        let (one, inverse) = (scalar_like(context, 1.0, x)?, unary(context, "Reciprocal", x)?);
        let rest = binary(context, "Sub", one, inverse)?;
        let (product, zeroth) = (binary(context, "Mul", y, rest)?, unary(context, "BesselK0e", x)?);
        binary(context, "Sub", product, zeroth)?
    }),
    &row!("Dawsn", dawson, |context, x, y| {
        let (one, two) = (scalar_like(context, 1.0, x)?, scalar_like(context, 2.0, x)?);
        let product = binary(context, "Mul", x, y)?;
        let product = binary(context, "Mul", two, product)?;
        binary(context, "Sub", one, product)?
    }),
    &row!("Expint", exponential_integral, |context, x, y| {
        let exponential = unary(context, "Exp", x)?;
        binary(context, "Div", exponential, x)?
    }),
    &row!("FresnelCos", |x| fresnel(x).0, |context, x, y| {
        fresnel_derivative(context, "Cos", x)?
    }),
    &row!("FresnelSin", |x| fresnel(x).1, |context, x, y| {
        fresnel_derivative(context, "Sin", x)?
    }),
    &row!("Spence", spence, |context, x, y| {
        let (log, one) = (unary(context, "Log", x)?, scalar_like(context, 1.0, x)?);
        let rest = binary(context, "Sub", one, x)?;
        let elsewhere = binary(context, "Div", log, rest)?;
        at(context, x, 1.0, -1.0, elsewhere)?
    }),
    &row!("Ndtri", normal_quantile, |context, x, y| {
        let (half, square) = (scalar_like(context, 0.5, y)?, unary(context, "Square", y)?);
        let exponent = binary(context, "Mul", square, half)?;
        let exponential = unary(context, "Exp", exponent)?;
        let root = scalar_like(context, (2.0 * std::f64::consts::PI).sqrt(), y)?;
        binary(context, "Mul", root, exponential)?
    }),
    &pair(
        "Igamma",
        &[Kernel::native(|context| zip(context, igamma))],
        Gradient::Fn(|context| gamma_gradient(context, false)),
    ),
    &pair(
        "Igammac",
        &[Kernel::native(|context| zip(context, igammac))],
        Gradient::Fn(|context| gamma_gradient(context, true)),
    ),
    &pair(
        "IgammaGradA",
        &[Kernel::native(|context| zip(context, igamma_derivative))],
        Gradient::Missing,
    ),
    &pair(
        "RandomGammaGrad",
        &[Kernel::native(|context| zip(context, gamma_sample_derivative))],
        Gradient::Missing,
    ),
    &pair(
        "Polygamma",
        &[Kernel::native(|context| zip(context, polygamma))],
        Gradient::Fn(polygamma_gradient),
    ),
    &pair(
        "Zeta",
        &[Kernel::native(|context| zip(context, zeta))],
        Gradient::Fn(zeta_gradient),
    ),
    &Op {
        name: "Betainc",
        shape: beta_shape,
        kernels: &[Kernel::native(beta)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(beta_gradient),
        ..Op::PURE
    },
];

fn map(context: &mut KernelContext, f: fn(f64) -> f64) -> Result<()> {
    crate::match_float!(context.output_type(0), T => {
        map_same::<T>(context, 20.0 * cost::LIBRARY, |x| T::from_f64(f(Real::to_f64(x))))
    })
}

fn zip(context: &mut KernelContext, f: fn(f64, f64) -> f64) -> Result<()> {
    crate::match_float!(context.output_type(0), T => {
        zip_same::<T>(context, 50.0 * cost::LIBRARY, |a, b| T::from_f64(f(Real::to_f64(a), Real::to_f64(b))))
    })
}

fn minus(context: &mut GradientContext, op: &str, x: OutputRef) -> Result<OutputRef> {
    let value = unary(context, op, x)?;
    unary(context, "Neg", value)
}

/// `value` where `x` is `place`, and something else elsewhere.
fn at(
    context: &mut GradientContext,
    x: OutputRef,
    place: f64,
    value: f64,
    elsewhere: OutputRef,
) -> Result<OutputRef> {
    let (place, value) = (scalar_like(context, place, x)?, scalar_like(context, value, x)?);
    let test = binary(context, "Equal", x, place)?;
    let dtype = context.dtype(x);
    context.op("SelectV2", &[test, value, elsewhere], typed(dtype))
}

fn fresnel_derivative(context: &mut GradientContext, op: &str, x: OutputRef) -> Result<OutputRef> {
    let (half, square) = (
        scalar_like(context, std::f64::consts::FRAC_PI_2, x)?,
        unary(context, "Square", x)?,
    );
    let angle = binary(context, "Mul", half, square)?;
    unary(context, op, angle)
}

/// By `a` the special derivative, by `x` the density of the gamma distribution; turned around for the upper function.
fn gamma_gradient(context: &mut GradientContext, upper: bool) -> Result<()> {
    let (incoming, a, x) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let incoming = if upper {
        unary(context, "Neg", incoming)?
    } else {
        incoming
    };
    let by_a = binary(context, "IgammaGradA", a, x)?;
    let one = scalar_like(context, 1.0, a)?;
    let (power, log) = (binary(context, "Sub", a, one)?, unary(context, "Log", x)?);
    let product = binary(context, "Mul", power, log)?;
    let (rest, constant) = (binary(context, "Sub", product, x)?, unary(context, "Lgamma", a)?);
    let exponent = binary(context, "Sub", rest, constant)?;
    let by_x = unary(context, "Exp", exponent)?;
    let (da, dx) = (
        binary(context, "Mul", by_a, incoming)?,
        binary(context, "Mul", by_x, incoming)?,
    );
    set_broadcast(context, da, dx)
}

fn polygamma_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, n, x) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let one = scalar_like(context, 1.0, n)?;
    let next = binary(context, "AddV2", n, one)?;
    let derivative = binary(context, "Polygamma", next, x)?;
    let gradient = binary(context, "Mul", incoming, derivative)?;
    set_reduced(context, 1, gradient)
}

fn zeta_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x, q) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let one = scalar_like(context, 1.0, x)?;
    let (next, negative) = (binary(context, "AddV2", x, one)?, unary(context, "Neg", x)?);
    let value = binary(context, "Zeta", next, q)?;
    let derivative = binary(context, "Mul", negative, value)?;
    let gradient = binary(context, "Mul", incoming, derivative)?;
    set_reduced(context, 1, gradient)
}

/// Scalars among the three inputs go with any shape of the others.
fn beta_shape(context: &mut ShapeContext) -> Result<()> {
    let mut merged = PartialShape::unknown();
    let (mut scalars, mut unsure) = (0, false);
    for input in context.inputs() {
        match input.rank() {
            Some(0) => scalars += 1,
            Some(_) => merged = merged.merge(input)?,
            None => unsure = true,
        }
    }
    if scalars == context.num_inputs() {
        context.set_output(0, PartialShape::scalar());
    } else if !unsure || scalars + 1 < context.num_inputs() {
        context.set_output(0, merged);
    }
    Ok(())
}

fn beta(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let count = shape.num_elements();
    for index in 0..3 {
        let input = context.input(index)?;
        ensure!(
            input.rank() == 0 || *input.shape() == shape,
            InvalidArgument,
            "Shapes of inputs are inconsistent: {} vs. {shape}",
            input.shape()
        );
    }
    let mut output = context.allocate_output(0)?;
    crate::match_float!(context.output_type(0), T => {
        let (a, b, x) = (context.input_slice::<T>(0)?, context.input_slice::<T>(1)?, context.input_slice::<T>(2)?);
        let value = |values: &[T], at: usize| Real::to_f64(if values.len() == count { values[at] } else { values[0] });
        for (at, slot) in output.as_mut_slice::<T>()?.iter_mut().enumerate() {
            *slot = T::from_f64(betainc(value(a, at), value(b, at), value(x, at)));
        }
        Ok(())
    })?;
    context.set_output(0, output)
}

/// By `x` only: the density of the beta distribution.
fn beta_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, a, b, x) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
        context.input(2)?,
    );
    let (one, negative, sum) = (
        scalar_like(context, 1.0, a)?,
        unary(context, "Neg", x)?,
        binary(context, "AddV2", a, b)?,
    );
    let (of_a, of_b) = (unary(context, "Lgamma", a)?, unary(context, "Lgamma", b)?);
    let (both, of_sum) = (
        binary(context, "AddV2", of_a, of_b)?,
        unary(context, "Lgamma", sum)?,
    );
    let log_beta = binary(context, "Sub", both, of_sum)?;
    let (less_a, less_b) = (binary(context, "Sub", a, one)?, binary(context, "Sub", b, one)?);
    let (first, second) = (
        binary(context, "Xlog1py", less_b, negative)?,
        binary(context, "Xlogy", less_a, x)?,
    );
    let logs = binary(context, "AddV2", first, second)?;
    let exponent = binary(context, "Sub", logs, log_beta)?;
    let density = unary(context, "Exp", exponent)?;
    let gradient = binary(context, "Mul", density, incoming)?;
    set_reduced(context, 2, gradient)
}

#[cfg(test)]
const OF_ONE: &[&str] = &[
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Dawsn",
    "Expint",
    "FresnelCos",
    "FresnelSin",
    "Spence",
    "Ndtri",
];

#[cfg(test)]
const OF_TWO: &[&str] = &[
    "Igamma",
    "Igammac",
    "IgammaGradA",
    "RandomGammaGrad",
    "Polygamma",
    "Zeta",
];

#[cfg(test)]
fn grid(op: &'static str, dtype: ff_tensor::DataType, a: &[f64], b: &[f64]) -> crate::testing::Case {
    use crate::testing::{Case, numbers};
    Case::op(op).inputs([
        numbers(dtype, &[a.len() as i64, 1], a),
        numbers(dtype, &[b.len() as i64], b),
    ])
}

crate::op_cases! {
    of_halves: family(&OF_ONE[..12], &[DataType::HALF], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[4], &[0.125, 0.75, 2.5, 8.0]))
    });
    of_positives: family(OF_ONE, &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[12], &[1e-3, 0.125, 0.372, 0.5, 0.9, 1.0, 1.75, 2.5, 8.0, 12.5, 33.0, 61.5]))
    });
    of_others: family(OF_ONE, &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[3, 3], &[0.0, -0.75, -4.0, -40.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.999, 1e-20]))
    });
    of_nothing: family(OF_ONE, &FLOATS[..1], |op, dtype| Case::op(op).input(numbers(dtype, &[0, 2], &[])));
    of_two: family(&OF_TWO[..4], &FLOATS[..2], |op, dtype| {
        grid(op, dtype, &[0.25, 1.0, 3.5, 20.0, 70.0], &[0.0, 0.01, 0.75, 2.0, 5.5, 19.0, 75.0])
    });
    of_two_outside: family(OF_TWO, &FLOATS[..2], |op, dtype| {
        grid(op, dtype, &[-1.0, 0.0, 1.0, f64::INFINITY, f64::NAN], &[-2.0, 0.0, 1.0, f64::INFINITY, f64::NAN])
    });
    zetas: family(&["Zeta"], &FLOATS[..2], |op, dtype| grid(op, dtype, &[1.0, 1.5, 2.0, 3.0, 12.0], &[-1.5, 0.25, 1.0, 7.5, 40.0]));
    polygammas: family(&["Polygamma"], &FLOATS[..2], |op, dtype| grid(op, dtype, &[0.0, 1.0, 2.0, 5.0, 0.5], &[0.25, 1.0, 7.5, 40.0]));
    misfit: family(OF_TWO, &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, 2.0]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])]).fails(Code::InvalidArgument)
    });
    betas: family(&["Betainc"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6], &[0.5, 1.0, 3.0, 20.0, 0.0, 2.0]), numbers(dtype, &[], &[2.5]), numbers(dtype, &[6], &[0.25, 0.5, 0.9, 0.75, 0.5, 1.5])])
    });
    betas_of_scalars: Case::op("Betainc").inputs([scalar(2.0f64), scalar(3.0f64), scalar(0.0f64)]).gives(scalar(0.0f64));
    betas_of_nothing: Case::op("Betainc").inputs([t::<f32>(&[0], &[]), scalar(3.0f32), scalar(0.5f32)]).gives(t::<f32>(&[0], &[]));
    betas_misfit: Case::op("Betainc").inputs([vector(&[2.0f64]), vector(&[3.0f64, 1.0]), scalar(0.0f64)]).fails(Code::InvalidArgument);
}
