//! Losses: cross entropy with logits (dense and sparse labels), and the L2 norm.

use super::softmax::shifted;
use crate::math::gradients::{binary, typed};
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode};
use ff_op::{Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, ShapeContext, shapes};
use ff_tensor::{Code, DataType, PartialShape, Result, Tensor, ensure};

static SPARSE: Op = Op {
    name: "SparseSoftmaxCrossEntropyWithLogits",
    shape: sparse_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_sparse),
    gradient: Gradient::Fn(sparse_gradient),
    ..Op::PURE
};
static DENSE: Op = Op {
    name: "SoftmaxCrossEntropyWithLogits",
    shape: dense_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_dense),
    gradient: Gradient::Fn(dense_gradient),
    ..Op::PURE
};
static L2_LOSS: Op = Op {
    name: "L2Loss",
    shape: shapes::scalar,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_l2),
    gradient: Gradient::Fn(l2_gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&SPARSE, &DENSE, &L2_LOSS];

/// Logits `[n, classes]`, labels `[n]`: loss `[n]` and its gradient `[n, classes]`.
fn sparse_shape(context: &mut ShapeContext) -> Result<()> {
    let (logits, labels) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 1)?);
    let batch = ff_tensor::dim::merge(logits.dim(0), labels.dim(0))?;
    context.set_output(0, PartialShape::new(&[batch]));
    context.set_output(1, PartialShape::new(&[batch, logits.dim(1)]));
    Ok(())
}

/// Logits and labels broadcast to `[n, classes]`.
fn dense_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = shapes::broadcast(&context.input(0), &context.input(1))?.with_rank(2)?;
    context.set_output(0, PartialShape::new(&[shape.dim(0)]));
    context.set_output(1, shape);
    Ok(())
}

/// The pieces of a softmax in `f32` or wider: shifted logits, exponentials, their sum, repeated over the classes.
struct Pieces {
    shifted: HloOp,
    exponential: HloOp,
    sum: HloOp,
}

fn pieces(builder: &mut Builder, logits: HloOp) -> Result<Pieces> {
    let dims = builder.dims(logits).to_vec();
    let (shifted, axis) = shifted(builder, logits)?;
    let exponential = builder.unary(Opcode::Exponential, shifted)?;
    let sum = builder.reduce_sum(exponential, &[axis])?;
    let sum = builder.broadcast_reduced(sum, &dims, &[axis])?;
    Ok(Pieces {
        shifted,
        exponential,
        sum,
    })
}

fn wide(dtype: DataType) -> DataType {
    if dtype.size() < 4 { DataType::FLOAT } else { dtype }
}

fn lower_sparse(context: &mut LowerContext) -> Result<()> {
    let (logits, labels) = (context.input(0)?, context.input(1)?);
    let dims = context.input_dims(0)?;
    ensure!(
        dims[1] > 0 || dims[0] == 0,
        InvalidArgument,
        "Must have at least one class, but got logits shape {dims:?}"
    );
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let (zero, classes) = (
        builder.scalar_like(0.0, labels)?,
        builder.scalar_like(dims[1] as f64, labels)?,
    );
    let not_below = builder.compare_broadcast(Direction::Ge, labels, zero)?;
    let not_above = builder.compare_broadcast(Direction::Lt, labels, classes)?;
    let in_range = builder.binary(Opcode::And, not_below, not_above)?;
    let message = format!(
        "Received a label value of {{0}} which is outside the valid range of [0, {}).  Label values: {{0*}}",
        dims[1]
    );
    builder.check_values(in_range, &[labels], Code::InvalidArgument, &message)?;
    let logits = builder.convert(logits, wide(dtype))?;
    let parts = pieces(builder, logits)?;
    let label_type = builder.dtype(labels);
    let numbers = builder.iota(label_type, &dims, 1)?;
    let wanted = builder.broadcast_in_dim(labels, &dims, &[0])?;
    let hot = builder.compare(Direction::Eq, numbers, wanted)?;
    let logarithm = builder.unary(Opcode::Log, parts.sum)?;
    let each = builder.binary(Opcode::Subtract, logarithm, parts.shifted)?;
    let zeros = builder.full(wide(dtype), &dims, 0.0)?;
    let each = builder.select(hot, each, zeros)?;
    let loss = builder.reduce_sum(each, &[1])?;
    let softmax = builder.binary(Opcode::Divide, parts.exponential, parts.sum)?;
    let hot = builder.convert(hot, wide(dtype))?;
    let gradient = builder.binary(Opcode::Subtract, softmax, hot)?;
    let (loss, gradient) = (builder.convert(loss, dtype)?, builder.convert(gradient, dtype)?);
    context.set_output(0, loss);
    context.set_output(1, gradient);
    Ok(())
}

fn lower_dense(context: &mut LowerContext) -> Result<()> {
    let (logits, labels) = (context.input(0)?, context.input(1)?);
    let dims = ff_hlo::broadcast_dims(&context.input_dims(0)?, &context.input_dims(1)?)?;
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let (logits, labels) = (
        builder.convert(logits, wide(dtype))?,
        builder.convert(labels, wide(dtype))?,
    );
    let (logits, labels) = (
        builder.broadcast_to(logits, &dims)?,
        builder.broadcast_to(labels, &dims)?,
    );
    let parts = pieces(builder, logits)?;
    let logarithm = builder.unary(Opcode::Log, parts.sum)?;
    let each = builder.binary(Opcode::Subtract, logarithm, parts.shifted)?;
    let weighted = builder.multiply(labels, each)?;
    // A label of zero counts for nothing even where the logarithm is infinite.
    let zero = builder.scalar_like(0.0, labels)?;
    let is_zero = builder.compare_broadcast(Direction::Eq, labels, zero)?;
    let zeros = builder.full(wide(dtype), &dims, 0.0)?;
    let weighted = builder.select(is_zero, zeros, weighted)?;
    let loss = builder.reduce_sum(weighted, &[1])?;
    let softmax = builder.binary(Opcode::Divide, parts.exponential, parts.sum)?;
    let gradient = builder.binary(Opcode::Subtract, softmax, labels)?;
    let (loss, gradient) = (builder.convert(loss, dtype)?, builder.convert(gradient, dtype)?);
    context.set_output(0, loss);
    context.set_output(1, gradient);
    Ok(())
}

fn lower_l2(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let input = builder.convert(input, wide(dtype))?;
    let square = builder.square(input)?;
    let axes: Vec<i64> = (0..builder.rank(square) as i64).collect();
    let sum = builder.reduce_sum(square, &axes)?;
    let half = builder.scalar_like(0.5, sum)?;
    let loss = builder.multiply(sum, half)?;
    let loss = builder.convert(loss, dtype)?;
    context.set_output(0, loss);
    Ok(())
}

/// A vector's elements times the rows of a matrix.
fn scale_rows(context: &mut GradientContext, vector: OutputRef, matrix: OutputRef) -> Result<OutputRef> {
    let axis = context.constant(Tensor::scalar(-1i32)?)?;
    let attrs = typed(context.dtype(vector)).with("Tdim", DataType::INT32);
    let column = context.op("ExpandDims", &[vector, axis], attrs)?;
    binary(context, "Mul", column, matrix)
}

fn sparse_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, local) = (context.incoming_or_zeros(0)?, context.output(1));
    let gradient = scale_rows(context, incoming, local)?;
    context.set(0, gradient);
    Ok(())
}

fn dense_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, local, logits) = (
        context.incoming_or_zeros(0)?,
        context.output(1),
        context.input(0)?,
    );
    let gradient = scale_rows(context, incoming, local)?;
    let attrs = typed(context.dtype(logits));
    let logarithm = context.op("LogSoftmax", &[logits], attrs.clone())?;
    let negative = context.op("Neg", &[logarithm], attrs)?;
    let labels = scale_rows(context, incoming, negative)?;
    context.set(0, gradient);
    context.set(1, labels);
    Ok(())
}

fn l2_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let gradient = binary(context, "Mul", input, incoming)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    by_label: family(&["SparseSoftmaxCrossEntropyWithLogits"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, -1.0, 0.0, 1.0]), vector(&[2i64, 0])])
    });
    label_outside: Case::op("SparseSoftmaxCrossEntropyWithLogits").inputs([t(&[1, 2], &[1.0f32, 2.0]), vector(&[2])]).fails(Code::InvalidArgument);
    labels_misfit: Case::op("SparseSoftmaxCrossEntropyWithLogits").inputs([t(&[1, 2], &[1.0f32, 2.0]), vector(&[0, 1])]).fails(Code::InvalidArgument);
    no_labels: Case::op("SparseSoftmaxCrossEntropyWithLogits").inputs([t::<f32>(&[0, 2], &[]), vector::<i32>(&[])]);
    by_distribution: family(&["SoftmaxCrossEntropyWithLogits"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 2], &[1.0, 2.0, 3.0, -1.0]), numbers(dtype, &[2, 2], &[0.25, 0.75, 1.0, 0.0])])
    });
    distributions_misfit: Case::op("SoftmaxCrossEntropyWithLogits").inputs([t(&[1, 2], &[1.0f32, 2.0]), t(&[1, 3], &[0.0f32, 1.0, 0.0])])
        .fails(Code::InvalidArgument);
    half_of_squares: family(&["L2Loss"], FLOATS, |op, dtype| Case::op(op).input(numbers(dtype, &[3], &[1.0, -2.0, 3.0])));
    squares_of_nothing: Case::op("L2Loss").input(t::<f32>(&[0], &[])).gives(scalar(0.0f32));
}
