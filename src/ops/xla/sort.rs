//! Sorting: the last axis in ascending order, or any axis by a function.

use super::{computation, input_types, set_results};
use ff_hlo::{ArrayShape, Direction};
use ff_op::{Gradient, Kernel, LowerContext, Op};
use ff_tensor::{Result, ensure, status};

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
    let types = input_types(context, 0, count)?;
    let operands = (0..count)
        .map(|index| context.input(index))
        .collect::<Result<Vec<_>>>()?;
    let rank = context.builder.rank(operands[0]);
    ensure!(
        rank > 0,
        InvalidArgument,
        "{} sorts arrays, got a scalar",
        context.node().describe()
    );
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
    set_results(context, result)
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
    a_scalar: Case::op("XlaSort").input(scalar(1)).fails(Code::InvalidArgument);
    with_values: Case::op("XlaKeyValueSort").inputs([vector(&[3, 1, 2]), vector(&[0.5f32, 1.5, 2.5])])
        .gives(vector(&[1, 2, 3])).gives(vector(&[1.5f32, 2.5, 0.5]));
}
