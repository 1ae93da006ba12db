//! Tensors with a given diagonal, and diagonals of tensors: `Diag`, `DiagPart`, `MatrixBandPart`.

use crate::math::gradients::unary;
use crate::movement::{Region, Writer};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, dim, ensure};

const BAND_PART: Op = Op {
    name: "MatrixBandPart",
    shape: |context| {
        let input = context.input_with_rank_at_least(0, 2)?;
        context.input_with_rank(1, 0)?;
        context.input_with_rank(2, 0)?;
        context.set_output(0, input);
        Ok(())
    },
    kernels: &[Kernel::native(band_part)],
    lower: Some(super::lower_movement::band_part),
    gradient: Gradient::Fn(|context| {
        let (incoming, lower, upper) = (
            context.incoming_or_zeros(0)?,
            context.input(1)?,
            context.input(2)?,
        );
        let attrs = context.attrs().clone();
        let gradient = context.op("MatrixBandPart", &[incoming, lower, upper], attrs)?;
        context.set(0, gradient);
        Ok(())
    }),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Diag",
        shape: |context| {
            let input = context.input(0);
            if input.rank().is_some() {
                let input = input.with_rank_at_least(1)?;
                context.set_output(0, input.concat(&input));
            }
            Ok(())
        },
        kernels: &[Kernel::native(diagonal)],
        lower: Some(super::lower_movement::diagonal),
        gradient: Gradient::Fn(|context| {
            let incoming = context.incoming_or_zeros(0)?;
            let gradient = unary(context, "DiagPart", incoming)?;
            context.set(0, gradient);
            Ok(())
        }),
        ..Op::PURE
    },
    &Op {
        name: "DiagPart",
        shape: part_shape,
        kernels: &[Kernel::native(diagonal_part)],
        lower: Some(super::lower_movement::diagonal_part),
        gradient: Gradient::Fn(|context| {
            let incoming = context.incoming_or_zeros(0)?;
            let gradient = unary(context, "Diag", incoming)?;
            context.set(0, gradient);
            Ok(())
        }),
        ..Op::PURE
    },
    &BAND_PART,
    &Op {
        name: "BatchMatrixBandPart",
        gradient: Gradient::Missing,
        ..BAND_PART
    },
];

fn diagonal(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let count = input.num_elements() as i64;
    let mut writer = Writer::zeros(input.dtype(), shape)?;
    let (to, from) = ([count + 1], [1]);
    writer.write(
        &[count],
        Region {
            offset: 0,
            strides: &to,
        },
        input,
        Region {
            offset: 0,
            strides: &from,
        },
    )?;
    context.set_output(0, writer.finish()?)
}

/// The first half of the axes, which must be as the second half.
fn part_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let Some(rank) = input.rank() else { return Ok(()) };
    ensure!(
        rank % 2 == 0 && rank > 0,
        InvalidArgument,
        "Input must have even and non-zero rank, input rank is {rank}"
    );
    let mut dims = Vec::new();
    for axis in 0..rank / 2 {
        dims.push(dim::merge(
            input.dim(axis as i64),
            input.dim((axis + rank / 2) as i64),
        )?);
    }
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn diagonal_part(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let count = shape.num_elements() as i64;
    let input = context.input(0)?;
    let mut writer = Writer::new(input.dtype(), shape)?;
    let (to, from) = ([1], [count + 1]);
    writer.write(
        &[count],
        Region {
            offset: 0,
            strides: &to,
        },
        input,
        Region {
            offset: 0,
            strides: &from,
        },
    )?;
    context.set_output(0, writer.finish()?)
}

/// Keeps `lower` diagonals below the main one and `upper` above it; all where negative.
fn band_part(context: &mut KernelContext) -> Result<()> {
    let (lower, upper) = (context.input_i64(1)?, context.input_i64(2)?);
    let input = context.input(0)?;
    let rank = input.rank();
    let (rows, columns) = (input.dims()[rank - 2], input.dims()[rank - 1]);
    ensure!(
        lower <= rows,
        InvalidArgument,
        "num_lower must be negative or less or equal to number of rows ({rows}) got: {lower}"
    );
    ensure!(
        upper <= columns,
        InvalidArgument,
        "num_upper must be negative or less or equal to number of columns ({columns}) got: {upper}"
    );
    let mut writer = Writer::zeros(input.dtype(), Shape::new(input.dims())?)?;
    if input.num_elements() == 0 {
        return context.set_output(0, writer.finish()?);
    }
    let batches: i64 = input.dims()[..rank - 2].iter().product();
    let strides = [rows * columns, 1];
    for row in 0..rows {
        let first = if lower < 0 { 0 } else { (row - lower).max(0) };
        let end = if upper < 0 {
            columns
        } else {
            (row + upper + 1).min(columns)
        };
        if first < end {
            let region = Region {
                offset: row * columns + first,
                strides: &strides,
            };
            writer.write(&[batches, end - first], region, input, region)?;
        }
    }
    context.set_output(0, writer.finish()?)
}

crate::op_cases! {
    of_vector: family(&["Diag"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64, DataType::HALF, DataType::COMPLEX64], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[3]))
    });
    of_matrix: Case::op("Diag").input(t(&[2, 2], &[1, 2, 3, 4]));
    of_nothing: Case::op("Diag").input(vector::<f32>(&[])).gives(t::<f32>(&[0, 0], &[]));
    of_scalar: Case::op("Diag").input(scalar(1)).fails(Code::InvalidArgument);
    part: Case::op("DiagPart").input(t(&[2, 2], &[1, 2, 3, 4])).gives(vector(&[1, 4]));
    part_of_four: Case::op("DiagPart").input(cycle(DataType::COMPLEX128, &[2, 3, 2, 3]));
    part_of_nothing: Case::op("DiagPart").input(t::<f32>(&[0, 0], &[])).gives(vector::<f32>(&[]));
    part_odd: Case::op("DiagPart").input(vector(&[1])).fails(Code::InvalidArgument);
    part_misfit: Case::op("DiagPart").input(t(&[1, 2], &[1, 2])).fails(Code::InvalidArgument);
    band: family(&["MatrixBandPart"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4]), scalar(1i64), scalar(0i64)])
    });
    band_upper: Case::op("MatrixBandPart").inputs([cycle(DataType::INT32, &[4, 3]), scalar(0), scalar(-1)]);
    band_lower: Case::op("BatchMatrixBandPart").inputs([cycle(DataType::INT32, &[4, 3]), scalar(-1i64), scalar(1i64)]);
    band_nothing: Case::op("MatrixBandPart").inputs([t::<f32>(&[0, 3], &[]), scalar(0), scalar(1)]);
    band_of_rows_of_nothing: Case::op("MatrixBandPart").inputs([t::<f32>(&[1 << 40, 0], &[]), scalar(0i64), scalar(0i64)])
        .gives(t::<f32>(&[1 << 40, 0], &[]));
    band_beyond: Case::op("MatrixBandPart").inputs([cycle(DataType::INT32, &[2, 3]), scalar(3), scalar(1)]).fails(Code::InvalidArgument);
    band_of_vector: Case::op("MatrixBandPart").inputs([vector(&[1]), scalar(0), scalar(1)]).fails(Code::InvalidArgument);
}
