//! Softmax and its logarithm over the last axis.

use crate::math::gradients::{binary, typed};
use ff_hlo::{Builder, Op as HloOp, Opcode};
use ff_kernels::softmax::softmax as softmax_rows;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, Result, Tensor};

static SOFTMAX: Op = Op {
    name: "Softmax",
    shape,
    kernels: &[
        Kernel::native(|context| row_by_row(context, false)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower(context, softmax)),
    gradient: Gradient::Fn(softmax_gradient),
    ..Op::PURE
};
static LOG_SOFTMAX: Op = Op {
    name: "LogSoftmax",
    kernels: &[
        Kernel::native(|context| row_by_row(context, true)).for_types(NATIVE),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower(context, log_softmax)),
    gradient: Gradient::Fn(log_softmax_gradient),
    ..SOFTMAX
};

/// Types with a native kernel: each row is read once from memory, where the lowering makes three passes over all rows
/// (measured 2 to 4 times faster on ten million elements).
const NATIVE: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT, DataType::DOUBLE])];

/// Every op of this file.
pub static OPS: &[&Op] = &[&SOFTMAX, &LOG_SOFTMAX];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_with_rank_at_least(0, 1)?;
    context.set_output(0, shape);
    Ok(())
}

fn row_by_row(context: &mut KernelContext, logarithm: bool) -> Result<()> {
    let input = context.input(0)?.clone();
    let mut output = context.allocate_output(0)?;
    let width = input.dims().last().map_or(0, |&extent| extent as usize);
    let pool = context.pool();
    if input.num_elements() > 0 {
        crate::match_type!(input.dtype(), (f32, f64), T => {
            softmax_rows(pool, input.as_slice::<T>()?, width, output.as_mut_slice::<T>()?, logarithm);
            Ok(())
        })?;
    }
    context.set_output(0, output)
}

fn lower(context: &mut LowerContext, emit: fn(&mut Builder, HloOp) -> Result<HloOp>) -> Result<()> {
    let input = context.input(0)?;
    let dtype = context.output_type(0);
    let wide = if dtype.size() < 4 { DataType::FLOAT } else { dtype };
    let input = context.builder.convert(input, wide)?;
    let result = emit(context.builder, input)?;
    let result = context.builder.convert(result, dtype)?;
    context.set_output(0, result);
    Ok(())
}

/// `x - max(x)` along the last axis, and the axis.
pub fn shifted(builder: &mut Builder, x: HloOp) -> Result<(HloOp, i64)> {
    let dims = builder.dims(x).to_vec();
    let axis = dims.len() as i64 - 1;
    let largest = builder.reduce_max(x, &[axis])?;
    let largest = builder.broadcast_reduced(largest, &dims, &[axis])?;
    Ok((builder.binary(Opcode::Subtract, x, largest)?, axis))
}

fn softmax(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let dims = builder.dims(x).to_vec();
    let (shifted, axis) = shifted(builder, x)?;
    let exponential = builder.unary(Opcode::Exponential, shifted)?;
    let sum = builder.reduce_sum(exponential, &[axis])?;
    // One division for a row, as the kernel has it.
    let one = builder.scalar_like(1.0, sum)?;
    let scale = builder.binary(Opcode::Divide, one, sum)?;
    let scale = builder.broadcast_reduced(scale, &dims, &[axis])?;
    builder.binary(Opcode::Multiply, exponential, scale)
}

fn log_softmax(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let dims = builder.dims(x).to_vec();
    let (shifted, axis) = shifted(builder, x)?;
    let exponential = builder.unary(Opcode::Exponential, shifted)?;
    let sum = builder.reduce_sum(exponential, &[axis])?;
    let logarithm = builder.unary(Opcode::Log, sum)?;
    let logarithm = builder.broadcast_reduced(logarithm, &dims, &[axis])?;
    builder.binary(Opcode::Subtract, shifted, logarithm)
}

fn sum_last(context: &mut GradientContext, value: OutputRef) -> Result<OutputRef> {
    let axis = context.constant(Tensor::vector(&[-1i32])?)?;
    let attrs = typed(context.dtype(value))
        .with("Tidx", DataType::INT32)
        .with("keep_dims", true);
    context.op("Sum", &[value, axis], attrs)
}

/// `dx = (dy - sum(dy * y)) * y`.
fn softmax_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, y) = (context.incoming_or_zeros(0)?, context.output(0));
    let product = binary(context, "Mul", incoming, y)?;
    let sum = sum_last(context, product)?;
    let rest = binary(context, "Sub", incoming, sum)?;
    let gradient = binary(context, "Mul", rest, y)?;
    context.set(0, gradient);
    Ok(())
}

/// `dx = dy - sum(dy) * exp(y)`.
fn log_softmax_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, y) = (context.incoming_or_zeros(0)?, context.output(0));
    let attrs = typed(context.dtype(y));
    let softmax = context.op("Exp", &[y], attrs)?;
    let sum = sum_last(context, incoming)?;
    let product = binary(context, "Mul", sum, softmax)?;
    let gradient = binary(context, "Sub", incoming, product)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    rows: family(&["Softmax", "LogSoftmax"], FLOATS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, -1.0, 0.0, 100.0]))
    });
    not_numbers: family(&["Softmax", "LogSoftmax"], FLOATS, |op, dtype| {
        let row = [f64::NEG_INFINITY, 1.0, 2.0, 1.0, f64::NAN, 2.0, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        Case::op(op).input(numbers(dtype, &[4, 3], &row))
    });
    of_nothing: family(&["Softmax", "LogSoftmax"], &FLOATS[..1], |op, dtype| Case::op(op).input(numbers(dtype, &[0, 3], &[])));
    of_scalar: family(&["Softmax", "LogSoftmax"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[], &[1.0])).fails(Code::InvalidArgument)
    });
}
