//! Lowerings of factors and systems that HLO has as instructions, and of products with tridiagonal matrices.

use crate::lowering::{pad_axis, positions};
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode, TransposeKind, TriangularSolveOptions};
use ff_op::LowerContext;
use ff_tensor::Result;

/// `Cholesky`: the upper triangle is not read. A matrix that is not positive definite has no factor: not-a-number.
pub fn cholesky(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let builder = &mut *context.builder;
    let factor = builder.cholesky(input, true)?;
    let (dims, axes) = (builder.dims(factor).to_vec(), builder.rank(factor) as i64);
    let is_bad = builder.compare(Direction::Ne, factor, factor)?;
    let is_bad = builder.reduce_by(Opcode::Or, is_bad, &[axes - 2, axes - 1])?;
    let is_bad = builder.broadcast_reduced(is_bad, &dims, &[axes - 2, axes - 1])?;
    let row = positions(builder, &dims, dims.len() - 2)?;
    let column = positions(builder, &dims, dims.len() - 1)?;
    let is_lower = builder.compare(Direction::Ge, row, column)?;
    let is_none = builder.binary(Opcode::And, is_bad, is_lower)?;
    let none = builder.scalar_like(f64::NAN, factor)?;
    let factor = builder.select(is_none, none, factor)?;
    context.set_output(0, factor);
    Ok(())
}

/// `MatrixTriangularSolve`: leading axes are broadcast.
pub fn triangular(context: &mut LowerContext) -> Result<()> {
    let (left_dims, right_dims) = (context.input_dims(0)?, context.input_dims(1)?);
    let (lower, adjoint) = (context.attrs().bool("lower")?, context.attrs().bool("adjoint")?);
    let (left, right) = (context.input(0)?, context.input(1)?);
    let batch = ff_hlo::broadcast_dims(
        &left_dims[..left_dims.len() - 2],
        &right_dims[..right_dims.len() - 2],
    )?;
    let full = |dims: &[i64]| [&batch[..], &dims[dims.len() - 2..]].concat();
    let builder = &mut *context.builder;
    let left = builder.broadcast_to(left, &full(&left_dims))?;
    let right = builder.broadcast_to(right, &full(&right_dims))?;
    let options = TriangularSolveOptions {
        left_side: true,
        lower,
        unit_diagonal: false,
        transpose: if adjoint {
            TransposeKind::Adjoint
        } else {
            TransposeKind::None
        },
    };
    let output = builder.triangular_solve(left, right, options)?;
    context.set_output(0, output);
    Ok(())
}

/// `TridiagonalMatMul`: rows of the right side, moved by one, times the diagonals.
pub fn tridiagonal_product(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(3)?;
    let right = context.input(3)?;
    let diagonals = [context.input(0)?, context.input(1)?, context.input(2)?];
    let axis = dims.len() - 2;
    let builder = &mut *context.builder;
    let zero = builder.scalar(builder.dtype(right), 0.0)?;
    let mut sum: Option<HloOp> = None;
    for (diagonal, low) in [(diagonals[1], 0), (diagonals[0], -1), (diagonals[2], 1)] {
        let moved = pad_axis(builder, right, axis, low, -low, zero)?;
        let product = scaled_rows(builder, diagonal, moved)?;
        sum = Some(match sum {
            Some(sum) => builder.add(sum, product)?,
            None => product,
        });
    }
    if let Some(sum) = sum {
        context.set_output(0, sum);
    }
    Ok(())
}

/// Rows of matrices times the entries of a diagonal, which is a row.
fn scaled_rows(builder: &mut Builder, diagonal: HloOp, matrix: HloOp) -> Result<HloOp> {
    let dims = builder.dims(matrix).to_vec();
    let column = [&dims[..dims.len() - 1], &[1]].concat();
    let diagonal = builder.reshape(diagonal, &column)?;
    builder.multiply(diagonal, matrix)
}
