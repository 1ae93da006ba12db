//! Activations and their gradients: one row each, written as lowerings; the hot ones have a native loop.

use crate::dispatch::FAST;
use crate::elementwise::{map_same, zip_same};
use crate::math::gradients::typed;
use crate::math::number::{Number, maximum};
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode};
use ff_kernels::elementwise::cost;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, shapes};
use ff_tensor::Result;

type Emit = fn(&mut Builder, &Attrs, &[HloOp]) -> Result<HloOp>;

fn lower(context: &mut LowerContext, emit: Emit) -> Result<()> {
    let inputs: Vec<HloOp> = (0..context.num_inputs())
        .map(|index| context.input(index))
        .collect::<Result<_>>()?;
    let attrs = context.attrs();
    let result = emit(context.builder, attrs, &inputs)?;
    context.set_output(0, result);
    Ok(())
}

/// An activation `y = f(x)` whose gradient op is `gradient(dy, x or y)`.
macro_rules! row {
    ($name:literal, $kernels:expr, $emit:expr, $gradient:expr) => {
        Op {
            name: $name,
            shape: shapes::merged,
            kernels: $kernels,
            lower: Some(|context| lower(context, $emit)),
            gradient: $gradient,
            ..Op::PURE
        }
    };
}

/// Gradient `op(dy, value)`, where the value is the input or the output.
fn grad(context: &mut GradientContext, op: &str, of_output: bool) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let value = if of_output {
        context.output(0)
    } else {
        context.input(0)?
    };
    let mut attrs = typed(context.dtype(incoming));
    if let Ok(alpha) = context.attrs().float("alpha") {
        attrs.set("alpha", alpha);
    }
    let gradient = context.op(op, &[incoming, value], attrs)?;
    context.set(0, gradient);
    Ok(())
}

static RELU: Op = row!(
    "Relu",
    &[
        Kernel::native(|context| {
            crate::match_fast!(context.output_type(0), T => {
                map_same::<T>(context, cost::SIMPLE, |x| maximum(x, T::default()))
            })
        })
        .for_types(FAST),
        Kernel::FROM_LOWERING
    ],
    |builder, _, inputs| builder.relu(inputs[0]),
    Gradient::Fn(|context| grad(context, "ReluGrad", true))
);
static RELU6: Op = row!(
    "Relu6",
    &[
        Kernel::native(|context| {
            crate::match_fast!(context.output_type(0), T => {
                let six = [T::one(); 6].into_iter().fold(T::default(), T::add);
                map_same::<T>(context, cost::SIMPLE, move |x| {
                    let x = maximum(x, T::default());
                    if x > six { six } else { x }
                })
            })
        })
        .for_types(FAST),
        Kernel::FROM_LOWERING
    ],
    |builder, _, inputs| {
        let (zero, six) = (
            builder.scalar_like(0.0, inputs[0])?,
            builder.scalar_like(6.0, inputs[0])?,
        );
        let floor = builder.maximum(inputs[0], zero)?;
        builder.minimum(floor, six)
    },
    Gradient::Fn(|context| grad(context, "Relu6Grad", true))
);
static RELU_GRAD: Op =
    row!(
    "ReluGrad",
    &[Kernel::native(|context| {
        crate::match_fast!(context.output_type(0), T => {
            zip_same::<T>(context, cost::SIMPLE, |dy, x| if x > T::default() { dy } else { T::default() })
        })
    }).for_types(FAST), Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let zero = builder.scalar_like(0.0, inputs[1])?;
        let on = builder.compare_broadcast(Direction::Gt, inputs[1], zero)?;
        keep_where(builder, on, inputs[0])
    },
    Gradient::Missing
);
static RELU6_GRAD: Op = row!(
    "Relu6Grad",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let (zero, six) = (
            builder.scalar_like(0.0, inputs[1])?,
            builder.scalar_like(6.0, inputs[1])?,
        );
        let above = builder.compare_broadcast(Direction::Gt, inputs[1], zero)?;
        let below = builder.compare_broadcast(Direction::Lt, inputs[1], six)?;
        let on = builder.binary(Opcode::And, above, below)?;
        keep_where(builder, on, inputs[0])
    },
    Gradient::Missing
);
static LEAKY_RELU: Op = row!(
    "LeakyRelu",
    &[Kernel::FROM_LOWERING],
    |builder, attrs, inputs| {
        let scaled = scale(builder, inputs[0], f64::from(attrs.float("alpha")?))?;
        positive_or(builder, inputs[0], inputs[0], scaled)
    },
    Gradient::Fn(|context| grad(context, "LeakyReluGrad", false))
);
static LEAKY_RELU_GRAD: Op = row!(
    "LeakyReluGrad",
    &[Kernel::FROM_LOWERING],
    |builder, attrs, inputs| {
        let scaled = scale(builder, inputs[0], f64::from(attrs.float("alpha")?))?;
        positive_or(builder, inputs[1], inputs[0], scaled)
    },
    Gradient::Missing
);
static ELU: Op = row!(
    "Elu",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let below = builder.unary(Opcode::ExponentialMinusOne, inputs[0])?;
        positive_or(builder, inputs[0], inputs[0], below)
    },
    Gradient::Fn(|context| grad(context, "EluGrad", true))
);
static ELU_GRAD: Op = row!(
    "EluGrad",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let one = builder.scalar_like(1.0, inputs[1])?;
        let slope = builder.add(inputs[1], one)?;
        let below = builder.multiply(inputs[0], slope)?;
        positive_or(builder, inputs[1], inputs[0], below)
    },
    Gradient::Missing
);

/// Constants of the scaled exponential linear unit (Klambauer et al. 2017).
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_SCALE_ALPHA: f64 = 1.758_099_340_847_376_6;

static SELU: Op = row!(
    "Selu",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let above = scale(builder, inputs[0], SELU_SCALE)?;
        let below = builder.unary(Opcode::ExponentialMinusOne, inputs[0])?;
        let below = scale(builder, below, SELU_SCALE_ALPHA)?;
        positive_or(builder, inputs[0], above, below)
    },
    Gradient::Fn(|context| grad(context, "SeluGrad", true))
);
static SELU_GRAD: Op = row!(
    "SeluGrad",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let above = scale(builder, inputs[0], SELU_SCALE)?;
        let offset = builder.scalar_like(SELU_SCALE_ALPHA, inputs[1])?;
        let slope = builder.add(inputs[1], offset)?;
        let below = builder.multiply(inputs[0], slope)?;
        // A result of zero counts as one of the upper branch.
        let zero = builder.scalar_like(0.0, inputs[1])?;
        let is_below = builder.compare_broadcast(Direction::Lt, inputs[1], zero)?;
        builder.select(is_below, below, above)
    },
    Gradient::Missing
);
static SOFTPLUS: Op = row!(
    "Softplus",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| builder.softplus(inputs[0]),
    Gradient::Fn(|context| grad(context, "SoftplusGrad", false))
);
static SOFTPLUS_GRAD: Op = row!(
    "SoftplusGrad",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let slope = builder.logistic(inputs[1])?;
        builder.multiply(inputs[0], slope)
    },
    Gradient::Missing
);
static SOFTSIGN: Op = row!(
    "Softsign",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let divisor = one_plus_magnitude(builder, inputs[0])?;
        builder.divide(inputs[0], divisor)
    },
    Gradient::Fn(|context| grad(context, "SoftsignGrad", false))
);
static SOFTSIGN_GRAD: Op = row!(
    "SoftsignGrad",
    &[Kernel::FROM_LOWERING],
    |builder, _, inputs| {
        let divisor = one_plus_magnitude(builder, inputs[1])?;
        let square = builder.square(divisor)?;
        builder.divide(inputs[0], square)
    },
    Gradient::Missing
);

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &RELU,
    &RELU6,
    &RELU_GRAD,
    &RELU6_GRAD,
    &LEAKY_RELU,
    &LEAKY_RELU_GRAD,
    &ELU,
    &ELU_GRAD,
    &SELU,
    &SELU_GRAD,
    &SOFTPLUS,
    &SOFTPLUS_GRAD,
    &SOFTSIGN,
    &SOFTSIGN_GRAD,
];

fn scale(builder: &mut Builder, x: HloOp, factor: f64) -> Result<HloOp> {
    let factor = builder.scalar_like(factor, x)?;
    builder.multiply(x, factor)
}

fn one_plus_magnitude(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let magnitude = builder.unary(Opcode::Abs, x)?;
    let one = builder.scalar_like(1.0, x)?;
    builder.add(magnitude, one)
}

/// `value` where `on`, zero elsewhere.
fn keep_where(builder: &mut Builder, on: HloOp, value: HloOp) -> Result<HloOp> {
    let (dtype, dims) = (builder.dtype(value), builder.dims(value).to_vec());
    let zeros = builder.full(dtype, &dims, 0.0)?;
    builder.select(on, value, zeros)
}

/// `above` where `x > 0`, `below` elsewhere.
fn positive_or(builder: &mut Builder, x: HloOp, above: HloOp, below: HloOp) -> Result<HloOp> {
    let zero = builder.scalar_like(0.0, x)?;
    let on = builder.compare_broadcast(Direction::Gt, x, zero)?;
    builder.select(on, above, below)
}

crate::op_cases! {
    forward: family(&["Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"], FLOATS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 3], &[-20.0, -1.0, 0.0, 0.5, 6.5, 30.0]))
    });
    of_integers: family(&["Relu", "Relu6"], INTEGERS, |op, dtype| Case::op(op).input(numbers(dtype, &[3], &[0.0, 5.0, 9.0])));
    of_nan: family(&["Relu", "Relu6", "Elu", "Softplus"], &FLOATS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2], &[f64::NAN, f64::NEG_INFINITY]))
    });
    of_nothing: family(&["Relu", "Elu", "Softplus"], &FLOATS[..1], |op, dtype| Case::op(op).input(numbers(dtype, &[0], &[])));
    backward: family(&["ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[5], &[1.0, -2.0, 3.0, 4.0, 5.0]), numbers(dtype, &[5], &[-0.5, 0.0, 0.5, 6.0, 7.0])])
    });
    backward_misfits: family(&["ReluGrad", "EluGrad", "SoftplusGrad"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, -2.0]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])]).fails(Code::InvalidArgument)
    });
}
