//! Products and systems with tridiagonal matrices.

use super::gradients;
use super::matrices::{Field, match_field, matrices, no_memory, stack};
use super::shapes::batch;
use ff_kernels::linalg::{Matrix, tridiagonal_multiply, tridiagonal_solve};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "TridiagonalMatMul",
        shape: multiply_shape,
        kernels: &[Kernel::native(multiply)],
        lower: Some(super::lower::tridiagonal_product),
        gradient: Gradient::Fn(gradients::of_tridiagonal_product),
        ..Op::PURE
    },
    &Op {
        name: "TridiagonalSolve",
        shape: solve_shape,
        kernels: &[Kernel::native(solve)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(gradients::of_tridiagonal_solve),
        ..Op::PURE
    },
];

/// Three diagonals as rows, and a matrix with a row for each of their entries.
fn multiply_shape(context: &mut ShapeContext) -> Result<()> {
    let right = context.input_with_rank_at_least(3, 2)?;
    let mut leading = batch(&right);
    let mut rows = right.dim(-2);
    for index in 0..3 {
        let diagonal = context.input_with_rank_at_least(index, 2)?;
        if diagonal.rank().is_some() {
            leading = leading.merge(&batch(&diagonal))?;
            rows = dim::merge(rows, diagonal.dim(-1))?;
            dim::merge(diagonal.dim(-2), 1)?;
        }
    }
    if right.rank().is_some() {
        let last = PartialShape::new(&[rows, right.dim(-1)]);
        context.set_output(0, leading.concat(&last));
    }
    Ok(())
}

fn multiply(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let above = matrices::<T>(context.input(0)?)?;
        let main = matrices::<T>(context.input(1)?)?;
        let below = matrices::<T>(context.input(2)?)?;
        let right = matrices::<T>(context.input(3)?)?;
        let mut results = Vec::new();
        for (i, right) in right.iter().enumerate() {
            let rows = (above[i].data.as_slice(), main[i].data.as_slice(), below[i].data.as_slice());
            results.push(tridiagonal_multiply(rows, right).map_err(no_memory)?);
        }
        let output = stack(context.output_type(0), context.output_shape(0)?.clone(), &results)?;
        context.set_output(0, output)
    })
}

fn solve_shape(context: &mut ShapeContext) -> Result<()> {
    let left = context.input_with_rank_at_least(0, 2)?;
    let right = context.input_with_rank_at_least(1, 2)?;
    let (Some(_), Some(_)) = (left.rank(), right.rank()) else {
        return Ok(());
    };
    let leading = batch(&left).merge(&batch(&right))?;
    dim::merge(left.dim(-2), 3)?;
    let rows = dim::merge(left.dim(-1), right.dim(-2))?;
    let last = PartialShape::new(&[rows, right.dim(-1)]);
    context.set_output(0, leading.concat(&last));
    Ok(())
}

/// What counts as no pivot.
fn least_pivot<T: Field>(all: &[T]) -> f64 {
    let largest = all.iter().map(|value| value.size()).fold(0.0, f64::max);
    (largest * f64::EPSILON).max(f64::MIN_POSITIVE)
}

/// Not-a-number where a pivot is zero.
fn solve(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (pivoting, perturb) = (attrs.bool("partial_pivoting")?, attrs.bool("perturb_singular")?);
    ensure!(
        pivoting || !perturb,
        InvalidArgument,
        "Setting perturb_singular requires pivoting."
    );
    match_field!(context.output_type(0), T => {
        let (left, mut right) = (matrices::<T>(context.input(0)?)?, matrices::<T>(context.input(1)?)?);
        for (diagonals, right) in left.iter().zip(&mut right) {
            solve_one(diagonals, right, pivoting, perturb);
        }
        let output = stack(context.output_type(0), context.output_shape(0)?.clone(), &right)?;
        context.set_output(0, output)
    })
}

fn solve_one<T: Field>(diagonals: &Matrix<T>, right: &mut Matrix<T>, pivoting: bool, perturb: bool) {
    let rows = (diagonals.row(0), diagonals.row(1), diagonals.row(2));
    let least = if perturb {
        least_pivot(&diagonals.data)
    } else {
        0.0
    };
    if !tridiagonal_solve(rows, right, pivoting, least) {
        right.data.fill(T::real(f64::NAN));
    }
}

#[cfg(test)]
use super::factor::{FIELDS, sample};

crate::op_cases! {
    products: family(&["TridiagonalMatMul"], FIELDS, |op, dtype| {
        Case::op(op).inputs([sample(dtype, &[2, 1, 4]), cycle(dtype, &[2, 1, 4]), sample(dtype, &[2, 1, 4]), cycle(dtype, &[2, 4, 3])])
    });
    products_of_nothing: family(&["TridiagonalMatMul"], &FIELDS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4]), cycle(dtype, &[1, 4]), cycle(dtype, &[1, 4]), cycle(dtype, &[4, 0])])
    });
    products_misfit: family(&["TridiagonalMatMul"], &FIELDS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4]), cycle(dtype, &[1, 4]), cycle(dtype, &[1, 3]), cycle(dtype, &[4, 2])]).fails(Code::InvalidArgument)
    });
    systems: family(&["TridiagonalSolve"], FIELDS, |op, dtype| Case::op(op).inputs([sample(dtype, &[2, 3, 5]), cycle(dtype, &[2, 5, 2])]));
    systems_as_they_are: family(&["TridiagonalSolve"], FIELDS, |op, dtype| {
        Case::op(op).inputs([sample(dtype, &[3, 5]), cycle(dtype, &[5, 2])]).attr("partial_pivoting", false)
    });
    one_equation: Case::op("TridiagonalSolve").inputs([t(&[3, 1], &[0.0f32, 4.0, 0.0]), t(&[1, 2], &[2.0f32, 6.0])]).gives(t(&[1, 2], &[0.5f32, 1.5]));
    singular: Case::op("TridiagonalSolve").inputs([t(&[3, 3], &[1.0f64, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]), t(&[3, 1], &[1.0f64; 3])]);
    singular_moved: Case::op("TridiagonalSolve").inputs([t(&[3, 3], &[1.0f64, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]), t(&[3, 1], &[1.0f64; 3])])
        .attr("perturb_singular", true);
    two_diagonals: Case::op("TridiagonalSolve").inputs([t(&[2, 1], &[0.0f32, 4.0]), t(&[1, 1], &[2.0f32])]).fails(Code::InvalidArgument);
    rows_misfit: Case::op("TridiagonalSolve").inputs([t(&[3, 1], &[0.0f32, 4.0, 0.0]), t(&[2, 1], &[2.0f32, 6.0])]).fails(Code::InvalidArgument);
}
