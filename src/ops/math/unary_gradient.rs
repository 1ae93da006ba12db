//! Gradients of functions whose derivative follows from the result: `NameGrad(y, dy)`, one row each.

use super::number::Number;
use crate::dispatch::FAST_FLOATS;
use ff_hlo::Opcode;
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_op::{Kernel, LowerContext, Op, shapes};
use ff_tensor::Result;

/// `Name(y, dy)` for functions whose derivative follows from the result.
macro_rules! result_gradient {
    ($name:literal, |$y:ident, $dy:ident| $value:expr, $lower:expr) => {
        Op {
            name: $name,
            shape: shapes::merged,
            kernels: &[
                Kernel::native(|context| {
                    crate::match_fast_float!(context.output_type(0), T => {
                        crate::elementwise::zip_same::<T>(context, cost::SIMPLE, |$y, $dy| $value)
                    })
                })
                .for_types(FAST_FLOATS),
                Kernel::FROM_LOWERING,
            ],
            lower: Some($lower),
            ..Op::PURE
        }
    };
}

static SIGMOID_GRAD: Op = result_gradient!(
    "SigmoidGrad",
    |y, dy| dy.mul(y.mul(Number::sub(Constants::one_of(y), y))),
    |context| {
        lower_result_gradient(context, |builder, y| {
            let one = builder.scalar_like(1.0, y)?;
            let rest = builder.binary_broadcast(Opcode::Subtract, one, y)?;
            builder.multiply(y, rest)
        })
    }
);
static TANH_GRAD: Op = result_gradient!(
    "TanhGrad",
    |y, dy| dy.mul(Number::sub(Constants::one_of(y), y.mul(y))),
    |context| {
        lower_result_gradient(context, |builder, y| {
            let one = builder.scalar_like(1.0, y)?;
            let square = builder.multiply(y, y)?;
            builder.binary_broadcast(Opcode::Subtract, one, square)
        })
    }
);
static SQRT_GRAD: Op = result_gradient!(
    "SqrtGrad",
    |y, dy| Constants::half_of(y).mul(dy).div(y),
    |context| {
        let (y, dy) = (context.input(0)?, context.input(1)?);
        let half = context.builder.scalar_like(0.5, dy)?;
        let half = context.builder.binary_broadcast(Opcode::Multiply, half, dy)?;
        let y = context.builder.conjugate(y)?;
        let result = context.builder.divide(half, y)?;
        context.set_output(0, result);
        Ok(())
    }
);
static RSQRT_GRAD: Op = result_gradient!(
    "RsqrtGrad",
    |y, dy| Number::sub(Constants::zero_of(y), Constants::half_of(y)).mul(dy.mul(y.mul(y.mul(y)))),
    |context| {
        lower_result_gradient(context, |builder, y| {
            let half = builder.scalar_like(-0.5, y)?;
            let square = builder.multiply(y, y)?;
            let cube = builder.multiply(square, y)?;
            builder.binary_broadcast(Opcode::Multiply, half, cube)
        })
    }
);
static RECIPROCAL_GRAD: Op = result_gradient!(
    "ReciprocalGrad",
    |y, dy| Number::sub(Constants::zero_of(y), dy).mul(y.mul(y)),
    |context| {
        let (y, dy) = (context.input(0)?, context.input(1)?);
        let zero = context.builder.scalar_like(0.0, dy)?;
        let less = context.builder.binary_broadcast(Opcode::Subtract, zero, dy)?;
        let y = context.builder.conjugate(y)?;
        let square = context.builder.multiply(y, y)?;
        let result = context.builder.multiply(less, square)?;
        context.set_output(0, result);
        Ok(())
    }
);
static INV_GRAD: Op = Op {
    name: "InvGrad",
    ..RECIPROCAL_GRAD
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SIGMOID_GRAD,
    &TANH_GRAD,
    &SQRT_GRAD,
    &RSQRT_GRAD,
    &RECIPROCAL_GRAD,
    &INV_GRAD,
];

/// Constants of the type of a value.
struct Constants;

impl Constants {
    #[inline(always)]
    fn one_of<T: Real>(_: T) -> T {
        T::from_f64(1.0)
    }

    #[inline(always)]
    fn half_of<T: Real>(_: T) -> T {
        T::from_f64(0.5)
    }

    #[inline(always)]
    fn zero_of<T: Real>(_: T) -> T {
        T::from_f64(0.0)
    }
}

/// Emits `dy * conj(derivative(y))`.
fn lower_result_gradient(
    context: &mut LowerContext,
    derivative: fn(&mut ff_hlo::Builder, ff_hlo::Op) -> Result<ff_hlo::Op>,
) -> Result<()> {
    let (y, dy) = (context.input(0)?, context.input(1)?);
    let mut derivative = derivative(context.builder, y)?;
    // Of these two the gradient conjugates the result before it gets here.
    if !matches!(context.node().op_name(), "SigmoidGrad" | "TanhGrad") {
        derivative = context.builder.conjugate(derivative)?;
    }
    let result = context.builder.multiply(dy, derivative)?;
    context.set_output(0, result);
    Ok(())
}
