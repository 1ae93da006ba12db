//! Systems with more or fewer equations than unknowns.

use super::factor::cholesky;
use super::matrix::{Matrix, Scalar};
use super::svd::svd;
use super::triangular::{Triangle, solve_triangular};
use crate::OutOfMemory;

/// Minimizes `|matrix x - right|^2 + regularizer |x|^2` through the normal equations; with fewer equations than
/// unknowns, the shortest solution. None when the equations are not positive definite.
pub fn least_squares_regularized<T: Scalar>(
    matrix: &Matrix<T>,
    right: &Matrix<T>,
    regularizer: f64,
) -> Result<Option<Matrix<T>>, OutOfMemory> {
    let adjoint = matrix.adjoint()?;
    let tall = matrix.rows >= matrix.columns;
    let mut gram = if tall {
        adjoint.times(matrix)?
    } else {
        matrix.times(&adjoint)?
    };
    for i in 0..gram.rows {
        gram[(i, i)] += T::real(regularizer);
    }
    let Some(factor) = cholesky(&gram)? else {
        return Ok(None);
    };
    let mut x = if tall {
        adjoint.times(right)?
    } else {
        right.copy()?
    };
    solve_triangular(
        &factor,
        Triangle {
            lower: true,
            adjoint: false,
        },
        &mut x,
    );
    solve_triangular(
        &factor,
        Triangle {
            lower: true,
            adjoint: true,
        },
        &mut x,
    );
    Ok(Some(if tall { x } else { adjoint.times(&x)? }))
}

/// The shortest `x` that minimizes `|matrix x - right|`, also where the matrix lacks rank.
pub fn least_squares<T: Scalar>(matrix: &Matrix<T>, right: &Matrix<T>) -> Result<Matrix<T>, OutOfMemory> {
    let parts = svd(matrix, false)?;
    let largest = parts.values.first().copied().unwrap_or(0.0);
    let least = largest * f64::EPSILON * matrix.rows.min(matrix.columns) as f64;
    let mut x = parts.u.adjoint()?.times(right)?;
    for (row, &value) in parts.values.iter().enumerate() {
        let scale = if value > least { 1.0 / value } else { 0.0 };
        x.row_mut(row)
            .iter_mut()
            .for_each(|entry| *entry *= T::real(scale));
    }
    parts.v.times(&x)
}
