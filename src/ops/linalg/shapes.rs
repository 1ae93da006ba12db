//! Shapes that ops on matrices share.

use ff_op::ShapeContext;
use ff_tensor::{PartialShape, Result, dim, ensure};

/// An input of square matrices.
pub fn square(context: &ShapeContext, index: usize) -> Result<PartialShape> {
    let shape = context.input_with_rank_at_least(index, 2)?;
    if shape.rank().is_none() {
        return Ok(shape);
    }
    let extent = dim::merge(shape.dim(-2), shape.dim(-1))?;
    shape.with_dim(-2, extent)?.with_dim(-1, extent)
}

/// The leading axes: all but the last two.
pub fn batch(shape: &PartialShape) -> PartialShape {
    shape.slice(0, Some(-2))
}

/// Square matrices in, matrices of the same size out.
pub fn same_square(context: &mut ShapeContext) -> Result<()> {
    let shape = square(context, 0)?;
    context.set_output(0, shape);
    Ok(())
}

/// Square matrices in, a number for each out, at all outputs.
pub fn number_each(context: &mut ShapeContext) -> Result<()> {
    let shape = batch(&square(context, 0)?);
    for index in 0..context.num_outputs() {
        context.set_output(index, shape.clone());
    }
    Ok(())
}

/// Systems: a matrix and right-hand sides with as many rows, of equal leading axes; the solution has a row for each
/// column of the matrix.
pub fn system(context: &mut ShapeContext, is_square: bool) -> Result<()> {
    let left = if is_square {
        square(context, 0)?
    } else {
        context.input_with_rank_at_least(0, 2)?
    };
    let right = context.input_with_rank_at_least(1, 2)?;
    if left.rank().is_none() || right.rank().is_none() {
        return Ok(());
    }
    let leading = batch(&left).merge(&batch(&right))?;
    dim::merge(left.dim(-2), right.dim(-2))?;
    let last = PartialShape::new(&[left.dim(-1), right.dim(-1)]);
    context.set_output(0, leading.concat(&last));
    Ok(())
}

/// As [`system`] for square matrices given in `rows` rows, but leading axes are broadcast.
pub fn broadcast_system(context: &mut ShapeContext, banded: bool) -> Result<()> {
    let left = if banded {
        context.input_with_rank_at_least(0, 2)?
    } else {
        square(context, 0)?
    };
    let right = context.input_with_rank_at_least(1, 2)?;
    if left.rank().is_none() || right.rank().is_none() {
        return Ok(());
    }
    let rows = dim::merge(left.dim(-1), right.dim(-2))?;
    if banded {
        ensure!(
            left.dim(-2) != 0,
            InvalidArgument,
            "The matrix must have at least one band, got {left}"
        );
        ensure!(
            left.dim(-2) < 0 || rows < 0 || left.dim(-2) <= rows,
            InvalidArgument,
            "Number of bands {} cannot exceed the size of the matrix {rows}",
            left.dim(-2)
        );
    }
    let leading = ff_op::shapes::broadcast(&batch(&left), &batch(&right))?;
    let last = PartialShape::new(&[rows, right.dim(-1)]);
    context.set_output(0, leading.concat(&last));
    Ok(())
}
