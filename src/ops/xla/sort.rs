//! Sorting: the last axis in ascending order, or any axis by a function.
//!
//! Numbers are in the total order of IEEE 754: zeros by their sign, and what is no number at the ends by its sign.

use super::{computation, input_types, set_results};
use ff_hlo::{ArrayShape, Builder, Direction, Op as HloOp, Opcode};
use ff_op::{Gradient, Kernel, LowerContext, Op};
use ff_tensor::{DataType, Result, ensure, status};

static SORT: Op = Op {
    name: "XlaSort",
    shape: |context| {
        for index in 0..context.num_outputs() {
            context.set_output(index, context.input(index));
        }
        Ok(())
    },
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(ascending),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &SORT,
    &Op {
        name: "XlaKeyValueSort",
        ..SORT
    },
    &Op {
        name: "XlaVariadicSort",
        lower: Some(by_function),
        ..SORT
    },
];

/// All inputs along the last axis, by the first.
fn ascending(context: &mut LowerContext) -> Result<()> {
    let count = context.num_inputs();
    let mut types = input_types(context, 0, count)?;
    let mut operands = (0..count)
        .map(|index| context.input(index))
        .collect::<Result<Vec<_>>>()?;
    let rank = context.builder.rank(operands[0]);
    if rank == 0 && count > 1 {
        set_each(context, &operands);
        return Ok(());
    }
    ensure!(
        rank > 0,
        InvalidArgument,
        "{} sorts arrays, got a scalar",
        context.node().describe()
    );
    let key = total_order(context.builder, operands[0])?;
    operands.insert(0, key);
    types.insert(0, context.builder.dtype(key));
    let comparator = context.builder.computation("less", |builder| {
        let mut first = Vec::with_capacity(2);
        for (index, &dtype) in types.iter().flat_map(|dtype| [dtype; 2]).enumerate() {
            let argument = builder.parameter(index, ArrayShape::scalar(dtype), "argument")?;
            if index < 2 {
                first.push(argument);
            }
        }
        builder.compare(Direction::Lt, first[0], first[1])
    })?;
    let result = context.builder.sort(&operands, rank - 1, comparator, true)?;
    let results = context.builder.tuple_elements(result)?;
    set_each(context, &results[1..]);
    Ok(())
}

fn set_each(context: &mut LowerContext, results: &[HloOp]) {
    for (index, &result) in results.iter().enumerate() {
        context.set_output(index, result);
    }
}

/// Numbers that are in the order of other numbers: those, or integers where not all can be compared.
fn total_order(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let integer = match builder.dtype(x) {
        DataType::HALF | DataType::BFLOAT16 => DataType::INT16,
        DataType::FLOAT => DataType::INT32,
        DataType::DOUBLE => DataType::INT64,
        _ => return Ok(x),
    };
    let bits = builder.bitcast_convert(x, integer)?;
    // Of negative numbers, all bits but the sign are turned over: the larger the size, the smaller the number.
    let width = builder.scalar_like((8 * integer.size() - 1) as f64, bits)?;
    let one = builder.scalar_like(1.0, bits)?;
    let sign = builder.binary(Opcode::ShiftRightArithmetic, bits, width)?;
    let turned = builder.binary(Opcode::ShiftRightLogical, sign, one)?;
    builder.binary(Opcode::Xor, bits, turned)
}

fn by_function(context: &mut LowerContext) -> Result<()> {
    let count = context.num_inputs() - 1;
    let types: Vec<_> = input_types(context, 0, count)?
        .into_iter()
        .flat_map(|dtype| [dtype; 2])
        .collect();
    let operands = (0..count)
        .map(|index| context.input(index))
        .collect::<Result<Vec<_>>>()?;
    let rank = context.builder.rank(operands[0]);
    let axis = context.constant(count)?.single::<i32>()?;
    let place = if axis < 0 {
        i64::from(axis) + rank as i64
    } else {
        i64::from(axis)
    };
    let place = usize::try_from(place).ok().filter(|&place| place < rank);
    let place = place.ok_or_else(|| {
        status!(
            InvalidArgument,
            "dimension {axis} is out of range for rank {rank}"
        )
    })?;
    let stable = context.attrs().bool("is_stable")?;
    let comparator = computation(context, "comparator", &types, 1)?;
    let result = context.builder.sort(&operands, place, comparator, stable)?;
    set_results(context, result)
}

crate::op_cases! {
    sorted: Case::op("XlaSort").input(t(&[2, 2], &[2.0f32, 1.0, f32::NAN, -1.0])).gives(t(&[2, 2], &[1.0f32, 2.0, -1.0, f32::NAN]));
    zeros_and_no_numbers: family(&["XlaSort"], FLOATS, |op, dtype| {
        let x = numbers(dtype, &[7], &[0.0, -0.0, f64::NAN, 1.0, -f64::NAN, f64::INFINITY, -1.0]);
        Case::op(op).input(x).gives(numbers(dtype, &[7], &[-f64::NAN, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN]))
    });
    zeros_with_values: Case::op("XlaKeyValueSort").inputs([vector(&[0.0f32, -0.0, 0.0, -0.0, f32::NAN, -f32::NAN]), vector(&[0, 1, 2, 3, 4, 5])])
        .gives(vector(&[-f32::NAN, -0.0, -0.0, 0.0, 0.0, f32::NAN])).gives(vector(&[5, 1, 3, 0, 2, 4]));
    one_pair: Case::op("XlaKeyValueSort").inputs([scalar(3), scalar(1.5f32)]).gives(scalar(3)).gives(scalar(1.5f32));
    a_scalar: Case::op("XlaSort").input(scalar(1)).fails(Code::InvalidArgument);
    with_values: Case::op("XlaKeyValueSort").inputs([vector(&[3, 1, 2]), vector(&[0.5f32, 1.5, 2.5])])
        .gives(vector(&[1, 2, 3])).gives(vector(&[1.5f32, 2.5, 0.5]));
}
