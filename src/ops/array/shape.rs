//! Shapes as values: extents, sizes, ranks.

use ff_op::{Gradient, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, ensure, status};

static SHAPE: Op = Op {
    name: "Shape",
    shape: vector_of_rank,
    kernels: &[Kernel::native(shape)],
    lower: Some(lower_shape),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static SHAPE_N: Op = Op {
    name: "ShapeN",
    ..SHAPE
};
static SIZE: Op = Op {
    name: "Size",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let count = context.input(0)?.num_elements() as i64;
        let value = of_type(context.output_type(0), Shape::scalar(), &[count])?;
        context.set_output(0, value)
    })],
    lower: Some(|context| {
        let count = context.input_dims(0)?.iter().product();
        lower_constant(context, 0, Shape::scalar(), &[count])
    }),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static RANK: Op = Op {
    name: "Rank",
    kernels: &[Kernel::native(|context| {
        let rank = context.input(0)?.rank() as i64;
        let value = of_type(context.output_type(0), Shape::scalar(), &[rank])?;
        context.set_output(0, value)
    })],
    lower: Some(|context| {
        let rank = context.input_dims(0)?.len() as i64;
        lower_constant(context, 0, Shape::scalar(), &[rank])
    }),
    ..SIZE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&SHAPE, &SHAPE_N, &SIZE, &RANK];

/// Numbers as a tensor of int32 or int64. INVALID_ARGUMENT where one does not fit.
pub fn of_type(dtype: DataType, shape: Shape, values: &[i64]) -> Result<Tensor> {
    if dtype == DataType::INT64 {
        return Tensor::from_slice(shape, values);
    }
    ensure!(
        dtype == DataType::INT32,
        InvalidArgument,
        "Expected int32 or int64, got {dtype}"
    );
    let narrow = |&value: &i64| {
        i32::try_from(value).map_err(|_| {
            status!(
                InvalidArgument,
                "Shape output type is 32-bit  but dim size {value} exceeds it"
            )
        })
    };
    Tensor::from_slice(shape, &values.iter().map(narrow).collect::<Result<Vec<i32>>>()?)
}

fn vector_of_rank(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        let rank = context.input(index).rank().map_or(-1, |rank| rank as i64);
        context.set_output(index, PartialShape::new(&[rank]));
    }
    Ok(())
}

fn shape(context: &mut KernelContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        let input = context.input(index)?;
        let value = of_type(
            context.output_type(index),
            Shape::vector(input.rank()),
            input.dims(),
        )?;
        context.set_output(index, value)?;
    }
    Ok(())
}

fn lower_constant(context: &mut LowerContext, index: usize, shape: Shape, values: &[i64]) -> Result<()> {
    let value = of_type(context.output_type(index), shape, values)?;
    let constant = context.builder.constant(value)?;
    context.set_output(index, constant);
    Ok(())
}

fn lower_shape(context: &mut LowerContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        let dims = context.input_dims(index)?;
        lower_constant(context, index, Shape::vector(dims.len()), &dims)?;
    }
    Ok(())
}

crate::op_cases! {
    shape_of_scalar: Case::op("Shape").input(scalar(1.0f32)).gives(vector::<i32>(&[]));
    shape_in_64_bits: Case::op("Shape").input(counting(DataType::STRING, &[2, 0])).attr("out_type", DataType::INT64)
        .gives(vector(&[2i64, 0]));
    shapes_of_two: Case::op("ShapeN").inputs([counting(DataType::INT8, &[2]), counting(DataType::INT8, &[])]);
    size_of_empty: Case::op("Size").input(counting(DataType::INT8, &[2, 0])).gives(scalar(0));
    rank_of_matrix: Case::op("Rank").input(counting(DataType::INT8, &[2, 0])).gives(scalar(2));
}
