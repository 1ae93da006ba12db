//! Broadcasting arithmetic: sums, differences, products, extremes, powers.

use super::gradients::{self, binary, conjugate, set_broadcast, unary};
use super::number::{Number, maximum, minimum};
use crate::dispatch::{FAST, FAST_FLOATS};
use crate::elementwise::zip_same;
use ff_hlo::Opcode;
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, Result, TString, Tensor, bail};

/// An op that is one HLO opcode with broadcasting.
macro_rules! row {
    ($name:literal, $opcode:ident, $kernel:expr, $types:expr, $gradient:expr) => {
        Op {
            name: $name,
            shape: shapes::broadcast_binary,
            kernels: &[Kernel::native($kernel).for_types($types), Kernel::FROM_LOWERING],
            lower: Some(|context| lower_binary(context, Opcode::$opcode)),
            gradient: $gradient,
            ..Op::PURE
        }
    };
}

static ADD: Op = Op {
    kernels: &[
        Kernel::native(add).for_types(FAST),
        Kernel::native(join).for_types(&[("T", &[DataType::STRING])]),
        Kernel::FROM_LOWERING,
    ],
    ..row!("Add", Add, add, FAST, Gradient::Fn(add_gradient))
};
static ADD_V2: Op = row!("AddV2", Add, add, FAST, Gradient::Fn(add_gradient));
static SUB: Op = row!("Sub", Subtract, sub, FAST, Gradient::Fn(sub_gradient));
static MUL: Op = row!("Mul", Multiply, mul, FAST, Gradient::Fn(mul_gradient));
static MAXIMUM: Op = row!(
    "Maximum",
    Maximum,
    max,
    FAST,
    Gradient::Fn(|context| extreme_gradient(context, "GreaterEqual"))
);
static MINIMUM: Op = row!(
    "Minimum",
    Minimum,
    min,
    FAST,
    Gradient::Fn(|context| extreme_gradient(context, "LessEqual"))
);
static POW: Op = Op {
    kernels: &[
        Kernel::native(power).for_types(FAST_FLOATS),
        Kernel::native(integer_power).for_types(&[(
            "T",
            &[DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64],
        )]),
        Kernel::FROM_LOWERING,
    ],
    ..row!("Pow", Power, power, FAST, Gradient::Fn(power_gradient))
};
static ATAN2: Op = row!(
    "Atan2",
    Atan2,
    arc_tangent,
    FAST_FLOATS,
    Gradient::Fn(arc_tangent_gradient)
);
static NEXT_AFTER: Op = Op {
    kernels: &[Kernel::FROM_LOWERING],
    ..row!("NextAfter", NextAfter, add, FAST, Gradient::Missing)
};
static SQUARED_DIFFERENCE: Op = Op {
    name: "SquaredDifference",
    shape: shapes::broadcast_binary,
    kernels: &[
        Kernel::native(squared_difference).for_types(FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_squared_difference),
    gradient: Gradient::Fn(squared_difference_gradient),
    ..Op::PURE
};
static ADD_N: Op = Op {
    name: "AddN",
    shape: add_n_shape,
    kernels: &[
        Kernel::native(add_n).for_types(FAST),
        Kernel::native(add_lists).for_types(&[("T", &[DataType::VARIANT])]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_add_n),
    gradient: Gradient::Fn(add_n_gradient),
    ..Op::PURE
};

fn add_n_shape(context: &mut ShapeContext) -> Result<()> {
    shapes::merged(context).map_err(|error| {
        let first = context.input(0);
        let other = |index: &usize| !context.input(*index).is_compatible_with(&first);
        let index = (1..context.num_inputs()).find(other).unwrap_or(0);
        let (name, input) = (&context.node().name, context.input(index));
        context.in_words_of_kernel(error, || {
            format!("Inputs to operation {name} of type AddN must have the same size and shape.  Input 0: {first} != input {index}: {input}")
        })
    })
}

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &ADD,
    &ADD_V2,
    &SUB,
    &MUL,
    &MAXIMUM,
    &MINIMUM,
    &POW,
    &ATAN2,
    &NEXT_AFTER,
    &SQUARED_DIFFERENCE,
    &ADD_N,
];

/// Emits a binary opcode with broadcasting.
pub fn lower_binary(context: &mut LowerContext, opcode: Opcode) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let result = context.builder.binary_broadcast(opcode, a, b)?;
    context.set_output(0, result);
    Ok(())
}

fn add(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, T::add))
}

/// The first version of addition also joins strings.
fn join(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let (a, b) = (context.input(0)?, context.input(1)?);
    let dims = crate::elementwise::extents(shape.dims());
    let operands = [
        crate::elementwise::extents(a.dims()),
        crate::elementwise::extents(b.dims()),
    ];
    let plan = ff_kernels::broadcast::Broadcast::new(&dims, [&operands[0], &operands[1]]);
    let (a, b) = (a.strings()?, b.strings()?);
    let mut joined = Vec::with_capacity(shape.num_elements());
    let [a_step, b_step] = plan.row_strides();
    plan.for_each_row(0..plan.len(), |row, [a_start, b_start]| {
        for i in 0..row.len() {
            let parts = [
                a[a_start + i * a_step].as_bytes(),
                b[b_start + i * b_step].as_bytes(),
            ];
            joined.push(TString::from(&parts.concat()[..]));
        }
    });
    context.set_output(0, Tensor::from_strings(shape, joined)?)
}

fn sub(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, T::sub))
}

fn mul(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, T::mul))
}

fn max(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, maximum))
}

fn min(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, minimum))
}

fn squared_difference(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, |a, b| {
        let difference = a.sub(b);
        difference.conjugate().mul(difference)
    }))
}

fn arc_tangent(context: &mut KernelContext) -> Result<()> {
    crate::match_fast_float!(context.output_type(0), T => zip_same::<T>(context, 2.0 * cost::TRANSCENDENTAL, T::arc_tangent2))
}

fn power(context: &mut KernelContext) -> Result<()> {
    crate::match_fast_float!(context.output_type(0), T => zip_same::<T>(context, 4.0 * cost::TRANSCENDENTAL, T::power))
}

/// Powers of integers; the reference refuses negative exponents.
fn integer_power(context: &mut KernelContext) -> Result<()> {
    crate::match_type!(context.output_type(0), (i8, i16, i32, i64), T => {
        let any = context.output_shape(0)?.num_elements() > 0;
        if any && context.input_slice::<T>(1)?.iter().any(|&exponent| exponent < 0) {
            bail!(InvalidArgument, "Integers to negative integer powers are not allowed");
        }
        zip_same::<T>(context, cost::LIBRARY, |base, exponent| base.wrapping_pow(exponent as u32))
    })
}

fn add_n(context: &mut KernelContext) -> Result<()> {
    let pool = context.pool();
    crate::match_fast!(context.output_type(0), T => {
        let (mut sum, in_place) = context.forward_or_allocate(0, 0)?;
        let values = sum.as_mut_slice::<T>()?;
        if !in_place {
            values.copy_from_slice(context.input_slice(0)?);
        }
        for index in 1..context.num_inputs() {
            let next = context.input_slice::<T>(index)?;
            ff_kernels::elementwise::binary_in_place(pool, values, next, cost::SIMPLE, T::add);
        }
        context.set_output(0, sum)
    })
}

/// Lists of tensors, added element by element.
fn add_lists(context: &mut KernelContext) -> Result<()> {
    let mut total = context.take_input(0)?;
    for index in 1..context.num_inputs() {
        total = crate::list::sum(&total, context.input(index)?)?;
    }
    context.set_output(0, total)
}

fn lower_squared_difference(context: &mut LowerContext) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let difference = context.builder.binary_broadcast(Opcode::Subtract, a, b)?;
    let conjugate = context.builder.conjugate(difference)?;
    let square = context.builder.multiply(conjugate, difference)?;
    context.set_output(0, square);
    Ok(())
}

fn lower_add_n(context: &mut LowerContext) -> Result<()> {
    let mut sum = context.input(0)?;
    for index in 1..context.num_inputs() {
        let next = context.input(index)?;
        sum = context.builder.add(sum, next)?;
    }
    context.set_output(0, sum);
    Ok(())
}

fn add_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    set_broadcast(context, gradient, gradient)
}

fn sub_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let negative = unary(context, "Neg", gradient)?;
    set_broadcast(context, gradient, negative)
}

fn mul_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a, b) = (conjugate(context, a)?, conjugate(context, b)?);
    let da = binary(context, "Mul", gradient, b)?;
    let db = binary(context, "Mul", a, gradient)?;
    set_broadcast(context, da, db)
}

/// The gradient goes to the input that was chosen; to the first when they are equal.
fn extreme_gradient(context: &mut GradientContext, comparison: &str) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let zeros = unary(context, "ZerosLike", gradient)?;
    let first = binary(context, comparison, a, b)?;
    let attrs = gradients::typed(context.dtype(gradient));
    let da = context.op("SelectV2", &[first, gradient, zeros], attrs.clone())?;
    let db = context.op("SelectV2", &[first, zeros, gradient], attrs)?;
    set_broadcast(context, da, db)
}

fn squared_difference_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let two = gradients::scalar_like(context, 2.0, gradient)?;
    let twice = binary(context, "Mul", two, gradient)?;
    let difference = binary(context, "Sub", a, b)?;
    let da = binary(context, "Mul", twice, difference)?;
    let db = unary(context, "Neg", da)?;
    set_broadcast(context, da, db)
}

/// `da = g b a^(b-1)`, `db = g a^b log(a)`, where the logarithm is taken as 0 for `a <= 0`.
fn power_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b, result) = (context.input(0)?, context.input(1)?, context.output(0));
    let (a, b) = (
        gradients::conjugate(context, a)?,
        gradients::conjugate(context, b)?,
    );
    let result = gradients::conjugate(context, result)?;
    let one = gradients::scalar_like(context, 1.0, b)?;
    let less = binary(context, "Sub", b, one)?;
    let lower = binary(context, "Pow", a, less)?;
    let scaled = binary(context, "Mul", gradient, b)?;
    let da = binary(context, "Mul", scaled, lower)?;
    let zeros = unary(context, "ZerosLike", a)?;
    let is_positive = if context.dtype(a).is_complex() {
        let attrs = gradients::typed(context.dtype(a)).with("incompatible_shape_error", true);
        context.op("NotEqual", &[a, zeros], attrs)?
    } else {
        binary(context, "Greater", a, zeros)?
    };
    let ones = unary(context, "OnesLike", a)?;
    let attrs = gradients::typed(context.dtype(a));
    let safe = context.op("SelectV2", &[is_positive, a, ones], attrs.clone())?;
    let logarithm = unary(context, "Log", safe)?;
    let logarithm = context.op("SelectV2", &[is_positive, logarithm, zeros], attrs)?;
    let scaled = binary(context, "Mul", gradient, result)?;
    let db = binary(context, "Mul", scaled, logarithm)?;
    set_broadcast(context, da, db)
}

/// `d atan2(y, x) = (x dy - y dx) / (x^2 + y^2)`.
fn arc_tangent_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (y, x) = (context.input(0)?, context.input(1)?);
    let (x_square, y_square) = (unary(context, "Square", x)?, unary(context, "Square", y)?);
    let norm = binary(context, "AddV2", x_square, y_square)?;
    let scaled = binary(context, "RealDiv", gradient, norm)?;
    let dy = binary(context, "Mul", x, scaled)?;
    let dx = binary(context, "Mul", y, scaled)?;
    let dx = unary(context, "Neg", dx)?;
    set_broadcast(context, dy, dx)
}

fn add_n_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    for index in 0..context.num_inputs() {
        context.set(index, gradient);
    }
    Ok(())
}

crate::op_cases! {
    negative_powers_of_nothing: Case::op("Pow").inputs([vector::<i32>(&[]), vector(&[-1])]).gives(vector::<i32>(&[]));
    broadcast: family(&["AddV2", "Sub", "Mul"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[7.0, 100.0]), numbers(dtype, &[3], &[1.0, 3.0, 90.0])])
    });
    old_add: family(&["Add"], &[FRACTIONS, SIGNED].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[7.0, 100.0]), numbers(dtype, &[], &[3.0])])
    });
    extremes: family(&["Maximum", "Minimum"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[7.0, 1.0, 0.0]), numbers(dtype, &[3], &[1.0, 3.0, 0.0])])
    });
    extremes_of_nan: family(&["Maximum", "Minimum"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[f64::NAN, 1.0]), numbers(dtype, &[2], &[1.0, f64::NAN])])
    });
    powers: family(&["Pow"], &[FRACTIONS, SIGNED].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[2.0, 3.0, 1.0, 0.0]), numbers(dtype, &[4], &[3.0, 2.0, 0.0, 2.0])])
    });
    negative_powers: Case::op("Pow").inputs([vector(&[2]), vector(&[-1])]).fails(Code::InvalidArgument);
    angles: family(&["Atan2"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[1.0, -1.0, 0.0, 2.0]), numbers(dtype, &[4], &[-1.0, 2.0, -3.0, 0.0])])
    });
    neighbours: family(&["NextAfter"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[1.0, 1.0, 0.0]), numbers(dtype, &[3], &[2.0, 0.0, -1.0])])
    });
    squared: family(&["SquaredDifference"], &[FRACTIONS, &SIGNED[2..]].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[1.0, 4.0]), numbers(dtype, &[2], &[3.0, 0.0])])
    });
    sums: family(&["AddN"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([1.0, 2.0, 3.0].map(|x| numbers(dtype, &[2], &[x, 10.0 * x])))
    });
    sums_misfit: Case::op("AddN").inputs([vector(&[1.0f32, 2.0]), vector(&[1.0f32])]).fails(Code::InvalidArgument);
    misfits: family(&["AddV2", "Sub", "Mul", "Maximum", "Pow"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, 2.0]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])]).fails(Code::InvalidArgument)
    });
    empty: family(&["AddV2", "Sub", "Mul", "Minimum"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[0, 2], &[]), numbers(dtype, &[2], &[1.0, 2.0])])
    });
    strings_joined: Case::op("Add").inputs([strings(&[2], &["a", "b"]), strings(&[], &["c"])]).gives(strings(&[2], &["ac", "bc"]));
}
