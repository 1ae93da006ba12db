//! Quotients and remainders. Integer division by zero is an error with the reference's code: INVALID_ARGUMENT, but INTERNAL
//! for the truncating ops, whose message it does not know either. It is one in compiled functions too, on purpose: there
//! the reference gives -1, and the dividend for remainders.

use super::arithmetic::lower_binary;
use super::gradients::{binary, conjugate, set_broadcast, unary};
use super::number::{Number, Ordered};
use crate::dispatch::FAST;
use crate::elementwise::zip_same;
use ff_hlo::{Direction, Opcode};
use ff_kernels::elementwise::cost;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, shapes};
use ff_tensor::{Code, DataType, Element, Result, Status};

const BASE: Op = Op {
    shape: shapes::broadcast_binary,
    ..Op::PURE
};

static DIV: Op = Op {
    name: "Div",
    kernels: &[Kernel::native(divide).for_types(FAST), Kernel::FROM_LOWERING],
    lower: Some(lower_truncated),
    gradient: Gradient::Fn(|context| divide_gradient(context, "RealDiv")),
    ..BASE
};
static REAL_DIV: Op = Op {
    name: "RealDiv",
    kernels: &[Kernel::native(divide).for_types(FAST), Kernel::FROM_LOWERING],
    lower: Some(|context| lower_binary(context, Opcode::Divide)),
    gradient: Gradient::Fn(|context| divide_gradient(context, "RealDiv")),
    ..BASE
};
static TRUNCATE_DIV: Op = Op {
    name: "TruncateDiv",
    kernels: &[
        Kernel::native(divide).for_types(&[("T", &[DataType::INT32])]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_truncate_divide),
    gradient: Gradient::NotDifferentiable,
    ..BASE
};
static FLOOR_DIV: Op = Op {
    name: "FloorDiv",
    kernels: &[
        Kernel::native(floor_divide).for_types(FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_floor_divide),
    gradient: Gradient::NotDifferentiable,
    ..BASE
};
static FLOOR_MOD: Op = Op {
    name: "FloorMod",
    kernels: &[Kernel::native(floor_mod).for_types(FAST), Kernel::FROM_LOWERING],
    lower: Some(lower_floor_mod),
    gradient: Gradient::Fn(|context| mod_gradient(context, "FloorDiv")),
    ..BASE
};
static MOD: Op = Op {
    name: "Mod",
    kernels: &[
        Kernel::native(truncate_mod).for_types(FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_checked(context, Opcode::Remainder)),
    gradient: Gradient::NotDifferentiable,
    ..BASE
};
static TRUNCATE_MOD: Op = Op {
    name: "TruncateMod",
    gradient: Gradient::Fn(|context| mod_gradient(context, "TruncateDiv")),
    ..MOD
};
static DIV_NO_NAN: Op = Op {
    name: "DivNoNan",
    kernels: &[
        Kernel::native(divide_no_nan).for_types(FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_no_nan(context, Opcode::Divide)),
    gradient: Gradient::Fn(|context| divide_gradient(context, "DivNoNan")),
    ..BASE
};
static MUL_NO_NAN: Op = Op {
    name: "MulNoNan",
    kernels: &[
        Kernel::native(multiply_no_nan).for_types(FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_no_nan(context, Opcode::Multiply)),
    gradient: Gradient::Missing,
    ..BASE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &DIV,
    &REAL_DIV,
    &TRUNCATE_DIV,
    &FLOOR_DIV,
    &FLOOR_MOD,
    &MOD,
    &TRUNCATE_MOD,
    &DIV_NO_NAN,
    &MUL_NO_NAN,
];

/// Code and message of integer division by zero.
fn by_zero(op: &str) -> (Code, &'static str) {
    match op {
        "TruncateDiv" | "TruncateMod" => (
            Code::Internal,
            "Unexpected error in binary operator (only integer div and mod should have errors)",
        ),
        _ => (Code::InvalidArgument, "Integer division by zero"),
    }
}

/// An error when an integer divisor is zero and there is something to divide.
fn refuse_zero<T: Element + Default>(context: &KernelContext) -> Result<()> {
    if T::DTYPE.is_integer()
        && context.output_shape(0)?.num_elements() > 0
        && context.input_slice::<T>(1)?.contains(&T::default())
    {
        let (code, message) = by_zero(context.node().op_name());
        return Err(Status::new(code, message));
    }
    Ok(())
}

fn divide(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => {
        refuse_zero::<T>(context)?;
        zip_same::<T>(context, cost::SIMPLE, T::div)
    })
}

fn floor_divide(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => {
        refuse_zero::<T>(context)?;
        zip_same::<T>(context, cost::SIMPLE, T::floor_div)
    })
}

fn floor_mod(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => {
        refuse_zero::<T>(context)?;
        zip_same::<T>(context, cost::LIBRARY, T::floor_mod)
    })
}

fn truncate_mod(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => {
        refuse_zero::<T>(context)?;
        zip_same::<T>(context, cost::LIBRARY, T::truncate_mod)
    })
}

fn divide_no_nan(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, |a, b| {
        if b == T::default() { T::default() } else { a.div(b) }
    }))
}

fn multiply_no_nan(context: &mut KernelContext) -> Result<()> {
    crate::match_fast!(context.output_type(0), T => zip_same::<T>(context, cost::SIMPLE, |a, b| {
        if b == T::default() { T::default() } else { a.mul(b) }
    }))
}

/// The opcode after a check that no integer divisor is zero.
fn lower_checked(context: &mut LowerContext, opcode: Opcode) -> Result<()> {
    let divisor = context.input(1)?;
    if context.builder.dtype(divisor).is_integer() {
        let zero = context.builder.scalar_like(0.0, divisor)?;
        let is_nonzero = context.builder.compare_broadcast(Direction::Ne, divisor, zero)?;
        let (code, message) = by_zero(context.node().op_name());
        context.builder.check(is_nonzero, code, message)?;
    }
    lower_binary(context, opcode)
}

/// HLO's division truncates integers already.
fn lower_truncated(context: &mut LowerContext) -> Result<()> {
    lower_checked(context, Opcode::Divide)
}

/// Quotients of floats are rounded to zero.
fn lower_truncate_divide(context: &mut LowerContext) -> Result<()> {
    if !context.output_type(0).is_floating() {
        return lower_truncated(context);
    }
    let (a, b) = (context.input(0)?, context.input(1)?);
    let builder = &mut *context.builder;
    let quotient = builder.binary_broadcast(Opcode::Divide, a, b)?;
    let zero = builder.scalar_like(0.0, quotient)?;
    let is_negative = builder.compare_broadcast(Direction::Lt, quotient, zero)?;
    let (below, above) = (
        builder.unary(Opcode::Floor, quotient)?,
        builder.unary(Opcode::Ceil, quotient)?,
    );
    let truncated = builder.select(is_negative, above, below)?;
    context.set_output(0, truncated);
    Ok(())
}

fn lower_floor_divide(context: &mut LowerContext) -> Result<()> {
    lower_checked(context, Opcode::Divide)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let quotient = builder.binary_broadcast(Opcode::Divide, a, b)?;
    let floored = if dtype.is_floating() {
        builder.unary(Opcode::Floor, quotient)?
    } else {
        let rest = builder.binary_broadcast(Opcode::Remainder, a, b)?;
        let off = rest_differs(builder, rest, b)?;
        let off = builder.convert(off, dtype)?;
        builder.binary_broadcast(Opcode::Subtract, quotient, off)?
    };
    context.set_output(0, floored);
    Ok(())
}

/// Whether a remainder is not zero and has another sign than the divisor.
fn rest_differs(builder: &mut ff_hlo::Builder, rest: ff_hlo::Op, divisor: ff_hlo::Op) -> Result<ff_hlo::Op> {
    let zero = builder.scalar_like(0.0, rest)?;
    let is_nonzero = builder.compare_broadcast(Direction::Ne, rest, zero)?;
    let rest_negative = builder.compare_broadcast(Direction::Lt, rest, zero)?;
    let divisor_negative = builder.compare_broadcast(Direction::Lt, divisor, zero)?;
    let differs = builder.compare_broadcast(Direction::Ne, rest_negative, divisor_negative)?;
    builder.binary_broadcast(Opcode::And, is_nonzero, differs)
}

fn lower_floor_mod(context: &mut LowerContext) -> Result<()> {
    lower_checked(context, Opcode::Remainder)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let builder = &mut *context.builder;
    let rest = builder.binary_broadcast(Opcode::Remainder, a, b)?;
    let off = rest_differs(builder, rest, b)?;
    let moved = builder.binary_broadcast(Opcode::Add, rest, b)?;
    let result = builder.select(off, moved, rest)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_no_nan(context: &mut LowerContext, opcode: Opcode) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let builder = &mut *context.builder;
    let result = builder.binary_broadcast(opcode, a, b)?;
    let zero = builder.scalar_like(0.0, result)?;
    let is_zero = builder.compare_broadcast(Direction::Eq, b, zero)?;
    let dims = builder.dims(result).to_vec();
    let is_zero = builder.broadcast_to(is_zero, &dims)?;
    let zeros = builder.broadcast_to(zero, &dims)?;
    let result = builder.select(is_zero, zeros, result)?;
    context.set_output(0, result);
    Ok(())
}

/// `d(a/b) = da / b - (a/b) / b db`, with the division of the op.
fn divide_gradient(context: &mut GradientContext, division: &str) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a, b) = (conjugate(context, a)?, conjugate(context, b)?);
    let da = binary(context, division, gradient, b)?;
    let negative = unary(context, "Neg", a)?;
    let quotient = binary(context, division, negative, b)?;
    let quotient = binary(context, division, quotient, b)?;
    let db = binary(context, "Mul", gradient, quotient)?;
    set_broadcast(context, da, db)
}

/// `d(a mod b) = da - floor(a/b) db`.
fn mod_gradient(context: &mut GradientContext, division: &str) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let quotient = binary(context, division, a, b)?;
    let quotient = unary(context, "Neg", quotient)?;
    let db = binary(context, "Mul", gradient, quotient)?;
    set_broadcast(context, gradient, db)
}

crate::op_cases! {
    fractions: family(&["RealDiv", "Div"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[7.0, -1.0, 3.0]), numbers(dtype, &[3], &[2.0, 4.0, -8.0])])
    });
    by_zero: family(&["RealDiv", "DivNoNan"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[7.0, -1.0, 0.0]), numbers(dtype, &[], &[0.0])])
    });
    integers: family(&["Div", "TruncateDiv", "FloorDiv", "FloorMod"], SIGNED, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[7.0, -7.0, 7.0, -7.0]), numbers(dtype, &[4], &[2.0, 2.0, -2.0, -2.0])])
    });
    unsigned: family(&["TruncateDiv", "FloorDiv", "FloorMod"], &INTEGERS[4..], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[7.0, 250.0]), numbers(dtype, &[], &[4.0])])
    });
    floats: family(&["FloorDiv", "FloorMod", "TruncateDiv"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[7.5, -7.5, 7.5, -7.5]), numbers(dtype, &[4], &[2.0, 2.0, -2.0, -2.0])])
    });
    remainders: family(&["Mod", "TruncateMod"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[7.0, -7.0]), numbers(dtype, &[], &[3.0])])
    });
    integers_by_zero: family(&["Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod"], &[DataType::INT32, DataType::INT64], |op, dtype| {
        let code = if op.starts_with("Truncate") { Code::Internal } else { Code::InvalidArgument };
        Case::op(op).inputs([numbers(dtype, &[2], &[7.0, 1.0]), numbers(dtype, &[2], &[1.0, 0.0])]).fails(code)
    });
    smallest_by_minus_one: Case::op("TruncateDiv").inputs([vector(&[i32::MIN]), vector(&[1])]).gives(vector(&[i32::MIN]));
    without_nan: family(&["DivNoNan", "MulNoNan"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[6.0, 3.0]), numbers(dtype, &[2], &[2.0, 4.0])])
    });
    infinity_by_zero: Case::op("MulNoNan").inputs([vector(&[f32::INFINITY, f32::NAN]), vector(&[0.0f32, 0.0])]).gives(vector(&[0.0f32, 0.0]));
    misfits: Case::op("RealDiv").inputs([vector(&[1.0f32, 2.0]), vector(&[1.0f32, 2.0, 3.0])]).fails(Code::InvalidArgument);
}
