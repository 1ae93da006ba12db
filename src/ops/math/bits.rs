//! Shifts by any distance, the number of set bits, and equality within a tolerance.

use ff_hlo::{Direction, Opcode};
use ff_op::{Gradient, Kernel, LowerContext, Op, shapes};
use ff_tensor::{DataType, Result};

static LEFT_SHIFT: Op = Op {
    name: "LeftShift",
    shape: shapes::broadcast_binary,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_shift),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static RIGHT_SHIFT: Op = Op {
    name: "RightShift",
    ..LEFT_SHIFT
};
static APPROXIMATE_EQUAL: Op = Op {
    name: "ApproximateEqual",
    shape: shapes::merged,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| {
        let (x, y) = (context.input(0)?, context.input(1)?);
        let tolerance = context.attrs().float("tolerance")?;
        let difference = context.builder.subtract(x, y)?;
        let distance = context.builder.unary(Opcode::Abs, difference)?;
        let tolerance = context.builder.scalar_like(f64::from(tolerance), distance)?;
        let result = context
            .builder
            .compare_broadcast(Direction::Le, distance, tolerance)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static POPULATION_COUNT: Op = Op {
    name: "PopulationCount",
    shape: shapes::unchanged,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(|context| {
        let input = context.input(0)?;
        let count = context.builder.unary(Opcode::Popcnt, input)?;
        let result = context.builder.convert(count, DataType::UINT8)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&LEFT_SHIFT, &RIGHT_SHIFT, &POPULATION_COUNT, &APPROXIMATE_EQUAL];

/// Distances outside the bits of the type count as the nearest one inside.
fn lower_shift(context: &mut LowerContext) -> Result<()> {
    let (value, distance) = (context.input(0)?, context.input(1)?);
    let dtype = context.output_type(0);
    let last = dtype.size() as f64 * 8.0 - 1.0;
    let builder = &mut context.builder;
    let signed = matches!(
        dtype,
        DataType::INT8 | DataType::INT16 | DataType::INT32 | DataType::INT64
    );
    let (zero, last) = (builder.scalar(dtype, 0.0)?, builder.scalar(dtype, last)?);
    let distance = builder.binary_broadcast(Opcode::Minimum, distance, last)?;
    let distance = builder.binary_broadcast(Opcode::Maximum, distance, zero)?;
    let opcode = match context.node().op_name() {
        "LeftShift" => Opcode::ShiftLeft,
        _ if signed => Opcode::ShiftRightArithmetic,
        _ => Opcode::ShiftRightLogical,
    };
    let result = context.builder.binary_broadcast(opcode, value, distance)?;
    context.set_output(0, result);
    Ok(())
}

/// Whether each element differs from zero.
pub fn lower_not_zero(context: &mut LowerContext, value: ff_hlo::Op) -> Result<ff_hlo::Op> {
    let zero = context.builder.scalar_like(0.0, value)?;
    context.builder.compare_broadcast(Direction::Ne, value, zero)
}

crate::op_cases! {
    left: family(&["LeftShift", "RightShift"], INTEGERS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[1.0, 77.0]), numbers(dtype, &[5], &[0.0, 1.0, 3.0, 7.0, 100.0])])
    });
    negative: family(&["LeftShift", "RightShift"], SIGNED, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[-1.0, -100.0, 3.0, -7.0]), numbers(dtype, &[4], &[1.0, 2.0, -1.0, 90.0])])
    });
    misfit: Case::op("LeftShift").inputs([vector(&[1, 2]), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
    near: family(&["ApproximateEqual"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[4], &[1.0, 1.0, f64::NAN, -2.0]), numbers(dtype, &[4], &[1.0, 1.5, f64::NAN, -2.125])]).attr("tolerance", 0.25f32)
    });
    at_the_limit: Case::op("ApproximateEqual").attr("tolerance", 0.25f32)
        .inputs([vector(&[1.0f32, f32::INFINITY, f32::NAN, 0.0]), vector(&[0.75f32, f32::INFINITY, f32::NAN, 0.5])])
        .gives(bools(&[4], &[true, false, false, false]));
    equal: Case::op("ApproximateEqual").attr("tolerance", 0.0f32).inputs([scalar(1.0f64), scalar(1.0f64)]).gives(bools(&[], &[true]));
    near_misfit: Case::op("ApproximateEqual").inputs([vector(&[1.0f32]), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    counts: family(&["PopulationCount"], INTEGERS, |op, dtype| Case::op(op).input(numbers(dtype, &[4], &[0.0, 1.0, 7.0, 100.0])));
    counts_of_negatives: Case::op("PopulationCount").input(vector(&[-1i64, i64::MIN, -2])).gives(vector(&[64u8, 1, 63]));
    count_of_nothing: Case::op("PopulationCount").input(vector::<i16>(&[])).gives(vector::<u8>(&[]));
}
