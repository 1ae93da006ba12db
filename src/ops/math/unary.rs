//! Functions of one number: one row each.

use super::gradients::{binary, conjugate, scalar_like, unary};
use super::number::Number;
use crate::dispatch::{FAST, FAST_FLOATS};
use crate::elementwise::{map, map_same};
use ff_hlo::Opcode;
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, shapes};
use ff_tensor::{Bool, Result};

/// An op that is one HLO opcode, with a native kernel for floating-point types.
const fn row(
    name: &'static str,
    kernels: &'static [Kernel],
    lower: ff_op::LowerFn,
    gradient: Gradient,
) -> Op {
    Op {
        name,
        shape: shapes::unchanged,
        kernels,
        lower: Some(lower),
        gradient,
        ..Op::PURE
    }
}

/// A row over a function of [`Real`].
macro_rules! real {
    ($name:literal, $function:ident, $cost:ident, $opcode:ident, $gradient:expr) => {
        row(
            $name,
            &[
                Kernel::native(|context| {
                    crate::match_fast_float!(context.output_type(0), T => map_same::<T>(context, cost::$cost, |x| Real::$function(x)))
                })
                .for_types(FAST_FLOATS),
                Kernel::FROM_LOWERING,
            ],
            |context| lower_unary(context, Opcode::$opcode),
            $gradient,
        )
    };
}

/// The derivative of a function: from the input, the output and the incoming gradient, conjugated where complex.
macro_rules! chain {
    (|$context:ident, $x:ident, $y:ident| $derivative:expr) => {
        Gradient::Fn(|$context| {
            let incoming = $context.incoming_or_zeros(0)?;
            let ($x, $y) = ($context.input(0)?, $context.output(0));
            let _ = ($x, $y);
            let derivative: OutputRef = $derivative;
            let derivative = conjugate($context, derivative)?;
            let gradient = binary($context, "Mul", incoming, derivative)?;
            $context.set(0, gradient);
            Ok(())
        })
    };
}

const NOT: Gradient = Gradient::NotDifferentiable;

static EXP: Op = real!(
    "Exp",
    exponential,
    TRANSCENDENTAL,
    Exponential,
    chain!(|context, x, y| y)
);
static EXPM1: Op = real!(
    "Expm1",
    exponential_minus_one,
    TRANSCENDENTAL,
    ExponentialMinusOne,
    chain!(|context, x, y| unary(context, "Exp", x)?)
);
static LOG: Op = real!(
    "Log",
    logarithm,
    TRANSCENDENTAL,
    Log,
    chain!(|context, x, y| unary(context, "Reciprocal", x)?)
);
static LOG1P: Op = real!(
    "Log1p",
    logarithm_plus_one,
    TRANSCENDENTAL,
    LogPlusOne,
    chain!(|context, x, y| {
        let one = scalar_like(context, 1.0, x)?;
        let sum = binary(context, "AddV2", one, x)?;
        unary(context, "Reciprocal", sum)?
    })
);
static SIGMOID: Op = real!(
    "Sigmoid",
    logistic,
    TRANSCENDENTAL,
    Logistic,
    Gradient::Fn(|context| conjugate_grad_op(context, "SigmoidGrad"))
);
static TANH: Op = real!(
    "Tanh",
    hyperbolic_tangent,
    TRANSCENDENTAL,
    Tanh,
    Gradient::Fn(|context| conjugate_grad_op(context, "TanhGrad"))
);
static SQRT: Op = real!(
    "Sqrt",
    square_root,
    SIMPLE,
    Sqrt,
    Gradient::Fn(|context| grad_op(context, "SqrtGrad"))
);
static RSQRT: Op = real!(
    "Rsqrt",
    reciprocal_square_root,
    SIMPLE,
    Rsqrt,
    Gradient::Fn(|context| grad_op(context, "RsqrtGrad"))
);
static ERF: Op = real!(
    "Erf",
    error_function,
    TRANSCENDENTAL,
    Erf,
    chain!(|context, x, y| erf_derivative(context, x, 1.0)?)
);
static ERFC: Op = real!(
    "Erfc",
    complementary_error_function,
    TRANSCENDENTAL,
    Erfc,
    chain!(|context, x, y| erf_derivative(context, x, -1.0)?)
);
static LGAMMA: Op = real!(
    "Lgamma",
    log_gamma,
    LIBRARY,
    LogGamma,
    chain!(|context, x, y| unary(context, "Digamma", x)?)
);
static SIN: Op = real!(
    "Sin",
    sine,
    TRANSCENDENTAL,
    Sine,
    chain!(|context, x, y| unary(context, "Cos", x)?)
);
static COS: Op = real!(
    "Cos",
    cosine,
    TRANSCENDENTAL,
    Cosine,
    chain!(|context, x, y| {
        let sine = unary(context, "Sin", x)?;
        unary(context, "Neg", sine)?
    })
);
static TAN: Op = real!(
    "Tan",
    tangent,
    TRANSCENDENTAL,
    Tan,
    chain!(|context, x, y| {
        let cosine = unary(context, "Cos", x)?;
        let secant = unary(context, "Reciprocal", cosine)?;
        unary(context, "Square", secant)?
    })
);
static ASIN: Op = real!(
    "Asin",
    arc_sine,
    TRANSCENDENTAL,
    Asin,
    chain!(|context, x, y| {
        let square = unary(context, "Square", x)?;
        let one = scalar_like(context, 1.0, x)?;
        let rest = binary(context, "Sub", one, square)?;
        unary(context, "Rsqrt", rest)?
    })
);
static ACOS: Op = real!(
    "Acos",
    arc_cosine,
    TRANSCENDENTAL,
    Acos,
    chain!(|context, x, y| {
        let square = unary(context, "Square", x)?;
        let one = scalar_like(context, 1.0, x)?;
        let rest = binary(context, "Sub", one, square)?;
        let root = unary(context, "Rsqrt", rest)?;
        unary(context, "Neg", root)?
    })
);
static ATAN: Op = real!(
    "Atan",
    arc_tangent,
    TRANSCENDENTAL,
    Atan,
    chain!(|context, x, y| {
        let square = unary(context, "Square", x)?;
        let one = scalar_like(context, 1.0, x)?;
        let sum = binary(context, "AddV2", one, square)?;
        unary(context, "Reciprocal", sum)?
    })
);
static SINH: Op = real!(
    "Sinh",
    hyperbolic_sine,
    TRANSCENDENTAL,
    Sinh,
    chain!(|context, x, y| unary(context, "Cosh", x)?)
);
static COSH: Op = real!(
    "Cosh",
    hyperbolic_cosine,
    TRANSCENDENTAL,
    Cosh,
    chain!(|context, x, y| unary(context, "Sinh", x)?)
);
static ASINH: Op = real!(
    "Asinh",
    area_sine,
    TRANSCENDENTAL,
    Asinh,
    chain!(|context, x, y| {
        let cosh = unary(context, "Cosh", y)?;
        unary(context, "Reciprocal", cosh)?
    })
);
static ACOSH: Op = real!(
    "Acosh",
    area_cosine,
    TRANSCENDENTAL,
    Acosh,
    chain!(|context, x, y| {
        let sinh = unary(context, "Sinh", y)?;
        unary(context, "Reciprocal", sinh)?
    })
);
static ATANH: Op = real!(
    "Atanh",
    area_tangent,
    TRANSCENDENTAL,
    Atanh,
    chain!(|context, x, y| {
        let square = unary(context, "Square", x)?;
        let one = scalar_like(context, 1.0, x)?;
        let rest = binary(context, "Sub", one, square)?;
        unary(context, "Reciprocal", rest)?
    })
);
static FLOOR: Op = real!("Floor", floor, SIMPLE, Floor, NOT);
static CEIL: Op = real!("Ceil", ceiling, SIMPLE, Ceil, NOT);
static RINT: Op = real!("Rint", round_even, SIMPLE, RoundNearestEven, NOT);
static ROUND: Op = Op {
    kernels: &[
        Kernel::native(round).for_types(FAST_FLOATS),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_round),
    ..real!("Round", round_even, SIMPLE, RoundNearestEven, NOT)
};
static NEG: Op = row(
    "Neg",
    &[Kernel::native(negate).for_types(FAST), Kernel::FROM_LOWERING],
    |context| lower_unary(context, Opcode::Negate),
    Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let gradient = unary(context, "Neg", incoming)?;
        context.set(0, gradient);
        Ok(())
    }),
);
static ABS: Op = row(
    "Abs",
    &[Kernel::native(absolute).for_types(FAST), Kernel::FROM_LOWERING],
    |context| lower_unary(context, Opcode::Abs),
    chain!(|context, x, y| unary(context, "Sign", x)?),
);
static SIGN: Op = row(
    "Sign",
    &[Kernel::native(sign).for_types(FAST), Kernel::FROM_LOWERING],
    |context| lower_unary(context, Opcode::Sign),
    Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        let zeros = unary(context, "ZerosLike", incoming)?;
        context.set(0, zeros);
        Ok(())
    }),
);
static SQUARE: Op = row(
    "Square",
    &[Kernel::native(square).for_types(FAST), Kernel::FROM_LOWERING],
    lower_square,
    chain!(|context, x, y| {
        let two = scalar_like(context, 2.0, x)?;
        binary(context, "Mul", two, x)?
    }),
);
static RECIPROCAL: Op = row(
    "Reciprocal",
    &[Kernel::native(reciprocal).for_types(FAST), Kernel::FROM_LOWERING],
    lower_reciprocal,
    Gradient::Fn(|context| grad_op(context, "ReciprocalGrad")),
);
static INV: Op = Op {
    name: "Inv",
    ..RECIPROCAL
};
static DIGAMMA: Op = row(
    "Digamma",
    &[Kernel::FROM_LOWERING],
    |context| lower_unary(context, Opcode::Digamma),
    chain!(|context, x, y| {
        let one = scalar_like(context, 1.0, x)?;
        binary(context, "Polygamma", one, x)?
    }),
);
static ERFINV: Op = row(
    "Erfinv",
    &[Kernel::FROM_LOWERING],
    |context| lower_unary(context, Opcode::ErfInv),
    chain!(|context, x, y| {
        let square = unary(context, "Square", y)?;
        let exponential = unary(context, "Exp", square)?;
        let half_root = scalar_like(context, std::f64::consts::PI.sqrt() / 2.0, x)?;
        binary(context, "Mul", half_root, exponential)?
    }),
);
static IS_NAN: Op = row(
    "IsNan",
    &[
        Kernel::native(is_nan).for_types(FAST_FLOATS),
        Kernel::FROM_LOWERING,
    ],
    lower_is_nan,
    NOT,
);
static IS_INF: Op = row(
    "IsInf",
    &[
        Kernel::native(is_inf).for_types(FAST_FLOATS),
        Kernel::FROM_LOWERING,
    ],
    lower_is_inf,
    NOT,
);
static IS_FINITE: Op = row(
    "IsFinite",
    &[
        Kernel::native(is_finite).for_types(FAST_FLOATS),
        Kernel::FROM_LOWERING,
    ],
    |context| lower_unary(context, Opcode::IsFinite),
    NOT,
);

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &EXP,
    &EXPM1,
    &LOG,
    &LOG1P,
    &SIGMOID,
    &TANH,
    &SQRT,
    &RSQRT,
    &ERF,
    &ERFC,
    &LGAMMA,
    &SIN,
    &COS,
    &TAN,
    &ASIN,
    &ACOS,
    &ATAN,
    &SINH,
    &COSH,
    &ASINH,
    &ACOSH,
    &ATANH,
    &FLOOR,
    &CEIL,
    &RINT,
    &ROUND,
    &NEG,
    &ABS,
    &SIGN,
    &SQUARE,
    &RECIPROCAL,
    &INV,
    &DIGAMMA,
    &ERFINV,
    &IS_NAN,
    &IS_INF,
    &IS_FINITE,
];

/// Emits an opcode of one operand.
pub fn lower_unary(context: &mut LowerContext, opcode: Opcode) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.unary(opcode, input)?;
    context.set_output(0, result);
    Ok(())
}

/// The gradient through an op `Name(y, dy)`.
fn grad_op(context: &mut GradientContext, op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let y = context.output(0);
    let gradient = binary(context, op, y, incoming)?;
    context.set(0, gradient);
    Ok(())
}

/// As [`grad_op`], of the conjugate of the result.
fn conjugate_grad_op(context: &mut GradientContext, op: &str) -> Result<()> {
    let (incoming, y) = (context.incoming_or_zeros(0)?, context.output(0));
    let y = super::gradients::conjugate(context, y)?;
    let gradient = binary(context, op, y, incoming)?;
    context.set(0, gradient);
    Ok(())
}

/// `2 / sqrt(pi) e^(-x^2)`, with a sign.
fn erf_derivative(context: &mut GradientContext, x: OutputRef, sign: f64) -> Result<OutputRef> {
    let square = unary(context, "Square", x)?;
    let negative = unary(context, "Neg", square)?;
    let exponential = unary(context, "Exp", negative)?;
    let scale = scalar_like(context, sign * std::f64::consts::FRAC_2_SQRT_PI, x)?;
    binary(context, "Mul", scale, exponential)
}

fn negate(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, negated))
}

/// `-x`; unlike `0 - x` it gives the other zero for a zero.
#[inline(always)]
fn negated<T: Number>(x: T) -> T {
    x.mul(T::default().sub(T::one()))
}

fn square(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, |x| x.mul(x)))
}

fn reciprocal(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, |x| T::one().div(x)))
}

fn absolute(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, |x| {
        // Adding zero makes a negative zero a positive one.
        if x < T::default() { T::default().sub(x) } else { x.add(T::default()) }
    }))
}

fn sign(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, |x| {
        if x > T::default() {
            T::one()
        } else if x < T::default() {
            T::default().sub(T::one())
        } else {
            // A zero of either sign, or not a number.
            x
        }
    }))
}

fn round(context: &mut KernelContext) -> Result<()> {
    crate::match_fast_float!(context.output_type(0), T => map_same::<T>(context, cost::SIMPLE, Real::round_even))
}

/// Integers stay as they are.
fn lower_round(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    if context.output_type(0).is_integer() {
        context.set_output(0, input);
        return Ok(());
    }
    lower_unary(context, Opcode::RoundNearestEven)
}

fn lower_square(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.multiply(input, input)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_reciprocal(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.reciprocal(input)?;
    context.set_output(0, result);
    Ok(())
}

/// Output 0 says of each element whether `test` holds for its value as `f64`.
fn classify(context: &mut KernelContext, test: fn(f64) -> bool) -> Result<()> {
    crate::match_fast_float!(context.input(0)?.dtype(), T => {
        map::<T, Bool>(context, cost::SIMPLE, |x| Bool::from(test(Real::to_f64(x))))
    })
}

fn is_nan(context: &mut KernelContext) -> Result<()> {
    classify(context, f64::is_nan)
}

fn is_inf(context: &mut KernelContext) -> Result<()> {
    classify(context, f64::is_infinite)
}

fn is_finite(context: &mut KernelContext) -> Result<()> {
    classify(context, f64::is_finite)
}

fn lower_is_nan(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.compare(ff_hlo::Direction::Ne, input, input)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_is_inf(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let magnitude = context.builder.unary(Opcode::Abs, input)?;
    let infinity = context.builder.scalar_like(f64::INFINITY, input)?;
    let result = context
        .builder
        .compare_broadcast(ff_hlo::Direction::Eq, magnitude, infinity)?;
    context.set_output(0, result);
    Ok(())
}

crate::op_cases! {
    complex_limits: family(&["Cosh", "Sinh", "Tanh"], &[DataType::COMPLEX64, DataType::COMPLEX128], |op, dtype| {
        let inf = f64::INFINITY;
        let parts = [(inf, 0.0), (-inf, 0.0), (inf, 1.0), (-inf, 1.0), (inf, inf), (f64::NAN, 0.0), (0.5, 0.0), (1.0, inf)];
        let wide: Vec<ff_tensor::Complex128> = parts.iter().map(|&(re, im)| ff_tensor::Complex128::new(re, im)).collect();
        let narrow: Vec<ff_tensor::Complex64> = wide.iter().map(|z| ff_tensor::Complex64::new(z.re as f32, z.im as f32)).collect();
        let x = if dtype == DataType::COMPLEX64 { vector(&narrow) } else { vector(&wide) };
        Case::op(op).input(x).without_gradient()
    });
    everywhere: family(&["Exp", "Expm1", "Sigmoid", "Tanh", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh"], FRACTIONS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[7], &[-3.0, -1.0, -0.25, 0.0, 0.5, 1.5, 4.0]))
    });
    of_reals: family(&["IsNan", "IsInf", "IsFinite", "Floor", "Ceil"], FLOATS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 4], &[-3.5, -1.0, -0.25, 0.0, 2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]))
    });
    finite_errors: family(&["Erf", "Erfc"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[4], &[-1.5, -0.25, 0.0, 0.75]))
    });
    errors: family(&["Erf", "Erfc"], FLOATS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[8], &[-3.5, -1.0, -0.25, 0.0, 2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]))
    });
    of_positives: family(&["Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv"], FRACTIONS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[5], &[0.125, 0.5, 1.0, 2.0, 9.0]))
    });
    outside_their_domain: family(&["Log", "Log1p", "Sqrt", "Rsqrt", "Acosh", "Asin", "Acos", "Atanh"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[3], &[-2.0, 0.0, f64::INFINITY]))
    });
    complex_without_bounds: family(&["Sigmoid", "Rsqrt"], &[DataType::COMPLEX64, DataType::COMPLEX128], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[4], &[-1e3, 1e3, 4.0, f64::NEG_INFINITY]))
    });
    of_the_unit_interval: family(&["Asin", "Acos", "Atanh", "Tan", "Erfinv"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[5], &[-0.75, -0.1, 0.0, 0.3, 0.9]))
    });
    gamma: family(&["Lgamma", "Digamma"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[6], &[-1.5, 0.25, 1.0, 2.5, 10.0, 171.0]))
    });
    acosh: family(&["Acosh"], FRACTIONS, |op, dtype| Case::op(op).input(numbers(dtype, &[3], &[1.0, 1.5, 20.0])));
    to_even: family(&["Round", "Rint"], &FLOATS[..2], |op, dtype| Case::op(op).input(numbers(dtype, &[4], &[-2.5, -0.5, 1.5, 2.5])));
    signs: family(&["Neg", "Sign", "Square"], &[FRACTIONS, SIGNED].concat(), |op, dtype| {
        Case::op(op).input(numbers(dtype, &[5], &[-3.0, -1.0, 0.0, 2.0, 5.0]))
    });
    sizes: family(&["Abs"], &[FLOATS, SIGNED].concat(), |op, dtype| Case::op(op).input(numbers(dtype, &[3], &[-3.0, 0.0, 2.0])));
    most_negative: Case::op("Abs").input(vector(&[i32::MIN])).gives(vector(&[i32::MIN]));
    empty: family(&["Exp", "Neg", "Sqrt", "Tanh"], &FLOATS[..1], |op, dtype| Case::op(op).input(numbers(dtype, &[0, 2], &[])));
    wrong_type: family(&["Exp", "Floor", "Sqrt"], &[DataType::INT32], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[1], &[1.0])).fails(Code::InvalidArgument)
    });
    gradients_misfit: family(&["SigmoidGrad", "TanhGrad", "SqrtGrad"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[0.25, 0.5]), numbers(dtype, &[3], &[1.0, -2.0, 3.0])]).fails(Code::InvalidArgument)
    });
    gradients: family(&["SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[0.25, 0.5, 0.75]), numbers(dtype, &[3], &[1.0, -2.0, 3.0])])
    });
}
