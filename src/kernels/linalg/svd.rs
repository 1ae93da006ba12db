//! Singular values and vectors by one-sided Jacobi rotations.

use super::matrix::{Matrix, Scalar};
use super::qr::qr;
use crate::OutOfMemory;

/// `matrix = U diag(values) V^H`.
pub struct Svd<T> {
    /// In descending order, as many as the smaller extent.
    pub values: Vec<f64>,
    /// Columns are left singular vectors: as many as values, or all rows.
    pub u: Matrix<T>,
    /// Columns are right singular vectors: as many as values, or all columns.
    pub v: Matrix<T>,
}

/// Rounds of rotations after which the result is taken as it is.
const MOST_SWEEPS: usize = 60;

/// The decomposition; `full` completes both sets of vectors to bases.
pub fn svd<T: Scalar>(matrix: &Matrix<T>, full: bool) -> Result<Svd<T>, OutOfMemory> {
    if matrix.rows < matrix.columns {
        let turned = svd(&matrix.adjoint()?, full)?;
        return Ok(Svd {
            values: turned.values,
            u: turned.v,
            v: turned.u,
        });
    }
    let (m, n) = (matrix.rows, matrix.columns);
    // Rows are the columns of matrix and V: rotations then run over neighbours.
    let mut columns = transpose(matrix)?;
    let mut v = Matrix::identity(n, n)?;
    for _ in 0..MOST_SWEEPS {
        if !sweep(&mut columns, &mut v) {
            break;
        }
    }
    let lengths: Vec<f64> = (0..n).map(|i| length(columns.row(i))).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
    let values: Vec<f64> = order.iter().map(|&i| lengths[i]).collect();
    let least = values
        .first()
        .map_or(0.0, |&largest| largest * f64::EPSILON * 1e-3);
    let good = values
        .iter()
        .take_while(|&&value| value > least && value > 0.0)
        .count();
    let (mut left, mut right) = (Matrix::zeros(m, good)?, Matrix::zeros(n, n)?);
    for (to, &from) in order.iter().enumerate() {
        for i in 0..n {
            right[(i, to)] = v[(from, i)];
        }
        if to < good {
            for i in 0..m {
                left[(i, to)] = columns[(from, i)] / T::real(values[to]);
            }
        }
    }
    Ok(Svd {
        values,
        u: complete(left, if full { m } else { n })?,
        v: right,
    })
}

fn transpose<T: Scalar>(matrix: &Matrix<T>) -> Result<Matrix<T>, OutOfMemory> {
    let mut result = Matrix::zeros(matrix.columns, matrix.rows)?;
    for i in 0..matrix.rows {
        for j in 0..matrix.columns {
            result[(j, i)] = matrix[(i, j)];
        }
    }
    Ok(result)
}

fn length<T: Scalar>(row: &[T]) -> f64 {
    let largest = row
        .iter()
        .map(|value| value.size())
        .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    row.iter()
        .map(|value| (value.size() / largest).powi(2))
        .sum::<f64>()
        .sqrt()
        * largest
}

/// Turns each pair of columns until they are orthogonal; whether any was not.
fn sweep<T: Scalar>(columns: &mut Matrix<T>, v: &mut Matrix<T>) -> bool {
    let n = columns.rows;
    let mut turned = false;
    for p in 0..n {
        for q in p + 1..n {
            let (a, b) = (columns.row(p), columns.row(q));
            let (mut alpha, mut beta, mut gamma) = (0.0, 0.0, T::default());
            for (&x, &y) in a.iter().zip(b) {
                alpha += x.square_size();
                beta += y.square_size();
                gamma += x.conj() * y;
            }
            let size = gamma.size();
            if size.is_nan() || size <= f64::EPSILON * (alpha * beta).sqrt() || size < f64::MIN_POSITIVE {
                continue;
            }
            turned = true;
            let zeta = (beta - alpha) / (2.0 * size);
            let t = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
            let c = 1.0 / t.hypot(1.0);
            let phase = gamma.conj() / T::real(size);
            rotate(columns, p, q, (c, c * t), phase);
            rotate(v, p, q, (c, c * t), phase);
        }
    }
    turned
}

fn rotate<T: Scalar>(matrix: &mut Matrix<T>, p: usize, q: usize, (c, s): (f64, f64), phase: T) {
    let width = matrix.columns;
    let (first, second) = matrix.data.split_at_mut(q * width);
    let pair = first[p * width..(p + 1) * width]
        .iter_mut()
        .zip(&mut second[..width]);
    for (low, high) in pair {
        let (x, y) = (*low, *high * phase);
        *low = T::real(c) * x - T::real(s) * y;
        *high = T::real(s) * x + T::real(c) * y;
    }
}

/// Orthonormal columns with more of them, up to `count`.
fn complete<T: Scalar>(columns: Matrix<T>, count: usize) -> Result<Matrix<T>, OutOfMemory> {
    let (rows, known) = (columns.rows, columns.columns);
    if known == count {
        return Ok(columns);
    }
    let (mut basis, _) = qr(columns.copy()?, count)?;
    for row in 0..rows {
        basis.row_mut(row)[..known].copy_from_slice(columns.row(row));
    }
    Ok(basis)
}
