//! Products with a logarithm or a reciprocal that are 0 where the first factor is 0, whatever the second is.

use super::gradients::{binary, scalar_like, set_broadcast, unary};
use ff_hlo::Opcode;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, shapes};
use ff_tensor::{DataType, Result};

const BASE: Op = Op {
    shape: shapes::broadcast_binary,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Xlogy",
        ..BASE
    },
    &Op {
        name: "Xlog1py",
        ..BASE
    },
    &Op {
        name: "Xdivy",
        ..BASE
    },
];

fn lower(context: &mut LowerContext) -> Result<()> {
    let (x, y) = (context.input(0)?, context.input(1)?);
    let not_zero = super::bits::lower_not_zero(context, x)?;
    let (name, dtype) = (context.node().op_name(), context.output_type(0));
    let builder = &mut context.builder;
    let value = match name {
        "Xlogy" => {
            let log = builder.unary(Opcode::Log, y)?;
            builder.binary_broadcast(Opcode::Multiply, x, log)?
        }
        "Xlog1py" => {
            let log = builder.unary(Opcode::LogPlusOne, y)?;
            builder.binary_broadcast(Opcode::Multiply, x, log)?
        }
        _ => builder.binary_broadcast(Opcode::Divide, x, y)?,
    };
    let dims = builder.dims(value).to_vec();
    let not_zero = builder.broadcast_to(not_zero, &dims)?;
    let zeros = builder.full(dtype, &dims, 0.0)?;
    let result = context.builder.select(not_zero, value, zeros)?;
    context.set_output(0, result);
    Ok(())
}

/// 1 where `x` is not 0.
fn not_zero(context: &mut GradientContext, x: OutputRef) -> Result<OutputRef> {
    let dtype = context.dtype(x);
    let zero = scalar_like(context, 0.0, x)?;
    let test = binary(context, "NotEqual", x, zero)?;
    context.op(
        "Cast",
        &[test],
        Attrs::new().with("SrcT", DataType::BOOL).with("DstT", dtype),
    )
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x, y) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let name = context.node().op_name().to_string();
    let mask = not_zero(context, x)?;
    let dx = binary(context, &name, mask, y)?;
    let dy = match name.as_str() {
        "Xlogy" => binary(context, "Xdivy", x, y)?,
        "Xlog1py" => {
            let one = scalar_like(context, 1.0, y)?;
            let sum = binary(context, "AddV2", y, one)?;
            binary(context, "Xdivy", x, sum)?
        }
        _ => {
            let (negative, square) = (unary(context, "Neg", x)?, unary(context, "Square", y)?);
            binary(context, "Xdivy", negative, square)?
        }
    };
    let dx = super::gradients::conjugate(context, dx)?;
    let dy = super::gradients::conjugate(context, dy)?;
    let (dx, dy) = (
        binary(context, "Mul", dx, incoming)?,
        binary(context, "Mul", dy, incoming)?,
    );
    set_broadcast(context, dx, dy)
}

crate::op_cases! {
    values: family(&["Xlogy", "Xlog1py", "Xdivy"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3, 1], &[1.5, 0.0, 2.0]), numbers(dtype, &[4], &[0.25, 1.0, 3.0, 7.5])])
    });
    outside: family(&["Xlogy", "Xlog1py", "Xdivy"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[0.0, 0.0, 1.0, 0.0]), numbers(dtype, &[4], &[0.0, -3.0, 0.0, f64::NAN])])
    });
    misfit: family(&["Xlogy", "Xlog1py", "Xdivy"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[0.0, 0.0]), numbers(dtype, &[3], &[0.0, -3.0, 0.0])]).fails(Code::InvalidArgument)
    });
    nothing: family(&["Xlogy", "Xlog1py", "Xdivy"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[0, 1], &[]), numbers(dtype, &[3], &[0.0, -3.0, 0.0])])
    });
}
