//! Rows of a tensor changed: `InplaceUpdate`, `InplaceAdd`, `InplaceSub`; tensors made to be written to.
//!
//! A tensor that something else still reads is copied first, so nothing changes under a reader.

use super::scatter::{Join, write_slices};
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Shape, ensure};

const IN_PLACE: Op = Op {
    shape: rows_shape,
    kernels: &[Kernel::native(rows)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "InplaceUpdate",
        ..IN_PLACE
    },
    &Op {
        name: "InplaceAdd",
        ..IN_PLACE
    },
    &Op {
        name: "InplaceSub",
        ..IN_PLACE
    },
    &Op {
        name: "DeepCopy",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(|context| {
            let copy = context.input(0)?.deep_copy()?;
            context.set_output(0, copy)
        })],
        gradient: Gradient::Missing,
        ..Op::STATEFUL
    },
    &Op {
        name: "Empty",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            let shape = context.input_as_shape(0)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let dims = context.input_i64s(0)?;
            if let Some(bad) = dims.iter().find(|&&dim| dim < 0) {
                ff_tensor::bail!(InvalidArgument, "Dimension {bad} must be >= 0");
            }
            let zeros = ff_tensor::Tensor::zeros(context.output_type(0), Shape::new(&dims)?)?;
            context.set_output(0, zeros)
        })],
        lower: Some(|context| {
            let (dims, dtype) = (context.constant_i64s(0)?, context.output_type(0));
            let zeros = context.builder.full(dtype, &dims, 0.0)?;
            context.set_output(0, zeros);
            Ok(())
        }),
        gradient: Gradient::Missing,
        ..Op::STATEFUL
    },
    &Op {
        name: "_ParallelConcatStart",
        shape: shapes::from_shape_attr,
        kernels: &[Kernel::native(|context| {
            let shape = context.output_shape(0)?.clone();
            let zeros = ff_tensor::Tensor::zeros(context.output_type(0), shape)?;
            context.set_output(0, zeros)
        })],
        gradient: Gradient::Missing,
        ..Op::STATEFUL
    },
    &Op {
        name: "_ParallelConcatUpdate",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(put_row)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "ParallelConcat",
        shape: concat_shape,
        kernels: &[Kernel::native(concat)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// Inputs: a tensor, numbers of rows, rows.
fn rows_shape(context: &mut ShapeContext) -> Result<()> {
    let output = context.input(0);
    context.set_output(0, output);
    Ok(())
}

fn rows(context: &mut KernelContext) -> Result<()> {
    let (places, values) = (context.input_i64s(1)?, context.input(2)?.clone());
    ensure!(
        context.input(1)?.rank() == 1,
        InvalidArgument,
        "i must be a vector. {}",
        context.input(1)?.shape()
    );
    let mut target = context.take_input(0)?;
    ensure!(
        target.rank() >= 1 && target.rank() == values.rank() && target.dims()[1..] == values.dims()[1..],
        InvalidArgument,
        "x and v shape doesn't match: {} vs. {}",
        target.shape(),
        values.shape()
    );
    ensure!(
        values.dims()[0] == places.len() as i64,
        InvalidArgument,
        "i and x shape doesn't match at index 0: {} vs. {}",
        places.len(),
        values.dims()[0]
    );
    if target.num_elements() == 0 {
        return context.set_output(0, target);
    }
    let join = match context.node().op_name() {
        "InplaceAdd" => Join::Add,
        "InplaceSub" => Join::Sub,
        _ => Join::Update,
    };
    let (count, width) = (target.dims()[0], values.num_elements() / places.len().max(1));
    let starts: Vec<usize> = places
        .iter()
        .map(|place| place.rem_euclid(count) as usize * width)
        .collect();
    target.make_writable()?;
    write_slices(&mut target, &starts, &values, width, join)?;
    context.set_output(0, target)
}

fn put_row(context: &mut KernelContext) -> Result<()> {
    let place = context.attrs().int("loc")?;
    let (target, update) = (context.take_input(0)?, context.input(1)?);
    ensure!(
        target.rank() == update.rank()
            && update.rank() > 0
            && update.dims()[0] == 1
            && update.dims()[1..] == target.dims()[1..],
        InvalidArgument,
        "update shape doesn't match: {} vs. {}",
        target.shape(),
        update.shape()
    );
    ensure!(
        target.dims()[0] > 0,
        InvalidArgument,
        "0th dimension of value = 0"
    );
    let place = place.rem_euclid(target.dims()[0]) as usize;
    let width = update.num_elements();
    let mut writer = Writer::onto(target)?;
    writer.copy(place * width, update, 0, width)?;
    context.set_output(0, writer.finish()?)
}

fn concat_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.attrs().shape("shape")?.clone();
    ensure!(
        shape.is_fully_known(),
        InvalidArgument,
        "shape attr must be fully defined."
    );
    let mut row = shape.clone();
    row = row.with_rank_at_least(1)?.with_dim(0, 1)?;
    for input in context.inputs() {
        ensure!(
            input.rank().is_none() || input.dim(0) == 1 || input.dim(0) < 0,
            InvalidArgument,
            "Size of first dimension must be 1."
        );
        row.merge(input)?;
    }
    let mut output = shape.dims().unwrap_or_default().to_vec();
    output[0] = context.num_inputs() as i64;
    context.set_output(0, PartialShape::new(&output));
    Ok(())
}

fn concat(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let mut writer = Writer::new(context.output_type(0), shape)?;
    let mut at = 0;
    for index in 0..context.num_inputs() {
        let row = context.input(index)?;
        writer.copy(at, row, 0, row.num_elements())?;
        at += row.num_elements();
    }
    let output = writer.finish()?;
    context.set_output(0, output)
}

#[cfg(test)]
const OPS_ON_ROWS: &[&str] = &["InplaceUpdate", "InplaceAdd", "InplaceSub"];

crate::op_cases! {
    rows_changed: family(OPS_ON_ROWS, &[DataType::FLOAT, DataType::INT32, DataType::INT64, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[3, 2]), vector(&[2, 0]), numbers(dtype, &[2, 2], &[10.0, 20.0, 30.0, 40.0])])
    });
    rows_of_nothing: Case::op("InplaceAdd").inputs([t::<f32>(&[0, 2], &[]), vector::<i32>(&[]), t::<f32>(&[0, 2], &[])]);
    rows_misfit: Case::op("InplaceAdd").inputs([t(&[1, 2], &[1, 2]), vector(&[0]), t(&[1, 3], &[1, 2, 3])]).fails(Code::InvalidArgument);
    rows_too_few: Case::op("InplaceSub").inputs([t(&[1, 2], &[1, 2]), vector(&[0, 0]), t(&[1, 2], &[1, 2])]).fails(Code::InvalidArgument);
    made_empty: family(&["Empty"], &[DataType::FLOAT, DataType::STRING, DataType::BOOL, DataType::COMPLEX64], |op, dtype| {
        Case::op(op).input(vector(&[2, 0])).attr("dtype", dtype).attr("init", true)
    });
    made_zeros: Case::op("Empty").input(vector(&[2])).attr("dtype", DataType::INT32).attr("init", true).gives(vector(&[0, 0]));
    made_of_scalar: Case::op("Empty").input(scalar(2)).attr("dtype", DataType::INT32).fails(Code::InvalidArgument);
    made_negative: Case::op("Empty").input(vector(&[-2])).attr("dtype", DataType::INT32).fails(Code::InvalidArgument);
    copied: Case::op("DeepCopy").input(vector(&[1, 2])).gives(vector(&[1, 2]));
    row_put: Case::op("_ParallelConcatUpdate").inputs([t(&[2, 1], &[1, 2]), t(&[1, 1], &[5])]).attr("loc", 1i64).gives(t(&[2, 1], &[1, 5]));
    row_misfit: Case::op("_ParallelConcatUpdate").inputs([t(&[2, 1], &[1, 2]), t(&[1, 2], &[5, 6])]).attr("loc", 1i64).fails(Code::InvalidArgument);
    rows_joined: Case::op("ParallelConcat").inputs([t(&[1, 2], &[1, 2]), t(&[1, 2], &[5, 6])]).attr("N", 2i64).attr("shape", PartialShape::new(&[2, 2])).gives(t(&[2, 2], &[1, 2, 5, 6]));
    rows_joined_misfit: Case::op("ParallelConcat").inputs([t(&[2, 1], &[1, 2]), t(&[2, 1], &[5, 6])]).attr("N", 2i64).attr("shape", PartialShape::new(&[2, 1])).fails(Code::InvalidArgument);
}
