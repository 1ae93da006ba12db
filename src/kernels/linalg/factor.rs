//! Cholesky's factor and its gradient; triangular factors with exchanged rows.

use super::matrix::{Matrix, Scalar};
use super::triangular::{Triangle, solve_triangular};
use crate::OutOfMemory;

/// The lower factor `L` of a Hermitian matrix `L L^H`, of which the lower triangle is read; the upper triangle of the
/// result is zero. None when the matrix is not positive definite.
pub fn cholesky<T: Scalar>(matrix: &Matrix<T>) -> Result<Option<Matrix<T>>, OutOfMemory> {
    let n = matrix.rows;
    let mut factor = Matrix::<T>::zeros(n, n)?;
    for i in 0..n {
        for j in 0..=i {
            let mut sum = matrix[(i, j)];
            let (row, column) = (&factor.row(i)[..j], &factor.row(j)[..j]);
            row.iter().zip(column).for_each(|(&a, &b)| sum -= a * b.conj());
            factor[(i, j)] = if i == j {
                // Not-a-number is refused too.
                if sum.re().is_nan() || sum.re() <= 0.0 {
                    return Ok(None);
                }
                T::real(sum.re().sqrt())
            } else {
                sum / factor[(j, j)]
            };
        }
    }
    Ok(Some(factor))
}

/// The gradient by a matrix from that by its factor: Hermitian. None when the factor has a zero on its diagonal.
pub fn cholesky_gradient<T: Scalar>(
    factor: &Matrix<T>,
    gradient: &Matrix<T>,
) -> Result<Option<Matrix<T>>, OutOfMemory> {
    let n = factor.rows;
    let mut lower = factor.copy()?;
    for i in 0..n {
        lower.row_mut(i)[i + 1..].fill(T::default());
    }
    let mut incoming = gradient.copy()?;
    for i in 0..n {
        incoming.row_mut(i)[i + 1..].fill(T::default());
    }
    let mut middle = lower.adjoint()?.times(&incoming)?;
    for i in 0..n {
        middle[(i, i)] *= T::real(0.5);
        middle.row_mut(i)[i + 1..].fill(T::default());
    }
    let adjoint = Triangle {
        lower: true,
        adjoint: true,
    };
    // L^-H middle L^-1: the second step works on the adjoint.
    solve_triangular(&lower, adjoint, &mut middle);
    let mut turned = middle.adjoint()?;
    solve_triangular(&lower, adjoint, &mut turned);
    let mut result = turned.adjoint()?;
    result.add_scaled(T::one(), &turned);
    result.scale(T::real(0.5));
    let finite = (0..n).all(|i| lower[(i, i)] != T::default());
    Ok(finite.then_some(result))
}

/// A matrix whose rows are exchanged, as a product of a lower factor with ones on its diagonal and an upper one.
pub struct Lu<T> {
    /// Both factors in one matrix; the ones are left out.
    pub packed: Matrix<T>,
    /// The row of the matrix that each row of the product is.
    pub order: Vec<usize>,
    /// Whether the number of exchanges is odd.
    pub odd: bool,
}

/// Gauss' elimination with the largest pivots of columns.
pub fn lu<T: Scalar>(mut packed: Matrix<T>) -> Lu<T> {
    let n = packed.rows;
    let mut order: Vec<usize> = (0..n).collect();
    let mut odd = false;
    for k in 0..n {
        let mut pivot = k;
        for row in k + 1..n {
            if packed[(row, k)].size() > packed[(pivot, k)].size() {
                pivot = row;
            }
        }
        if pivot != k {
            packed.swap_rows(pivot, k);
            order.swap(pivot, k);
            odd = !odd;
        }
        if packed[(k, k)] == T::default() {
            continue;
        }
        let (upper, lower) = packed.data.split_at_mut((k + 1) * n);
        let pivot_row = &upper[k * n..];
        for row in lower.chunks_exact_mut(n) {
            let factor = row[k] / pivot_row[k];
            row[k] = factor;
            if factor != T::default() {
                row[k + 1..]
                    .iter_mut()
                    .zip(&pivot_row[k + 1..])
                    .for_each(|(a, &b)| *a -= factor * b);
            }
        }
    }
    Lu { packed, order, odd }
}

impl<T: Scalar> Lu<T> {
    /// Whether all pivots differ from zero.
    pub fn is_invertible(&self) -> bool {
        (0..self.packed.rows).all(|i| self.packed[(i, i)].size() > 0.0)
    }

    /// Solves a system with this matrix for each column; all pivots must differ from zero.
    pub fn solve(&self, right: &Matrix<T>) -> Result<Matrix<T>, OutOfMemory> {
        let n = self.packed.rows;
        let mut result = Matrix::zeros(n, right.columns)?;
        for (row, &from) in self.order.iter().enumerate() {
            result.row_mut(row).copy_from_slice(right.row(from));
        }
        for i in 1..n {
            for k in 0..i {
                let factor = self.packed[(i, k)];
                let (above, row) = result.data.split_at_mut(i * right.columns);
                let source = &above[k * right.columns..(k + 1) * right.columns];
                row.iter_mut().zip(source).for_each(|(a, &b)| *a -= factor * b);
            }
        }
        solve_triangular(
            &self.packed,
            Triangle {
                lower: false,
                adjoint: false,
            },
            &mut result,
        );
        Ok(result)
    }
}
