//! Products and systems with tridiagonal matrices.

use super::matrix::{Matrix, Scalar};
use crate::OutOfMemory;

/// The product of a tridiagonal matrix with `right`. Row `i` has `below[i]`, `main[i]`, `above[i]`; the first of
/// `below` and the last of `above` do not count.
pub fn tridiagonal_multiply<T: Scalar>(
    (above, main, below): (&[T], &[T], &[T]),
    right: &Matrix<T>,
) -> Result<Matrix<T>, OutOfMemory> {
    let n = right.rows;
    let mut result = Matrix::zeros(n, right.columns)?;
    for i in 0..n {
        for j in 0..right.columns {
            let mut sum = main[i] * right[(i, j)];
            if i + 1 < n {
                sum += above[i] * right[(i + 1, j)];
            }
            if i > 0 {
                sum += below[i] * right[(i - 1, j)];
            }
            result[(i, j)] = sum;
        }
    }
    Ok(result)
}

/// Solves a tridiagonal system in place; see [`tridiagonal_multiply`]. With `pivoting` neighbouring rows are exchanged
/// where the lower has the larger element; pivots smaller than `least` become that. False when a pivot is zero.
pub fn tridiagonal_solve<T: Scalar>(
    (above, main, below): (&[T], &[T], &[T]),
    right: &mut Matrix<T>,
    pivoting: bool,
    least: f64,
) -> bool {
    let n = right.rows;
    if n == 0 {
        return true;
    }
    // Each row as its pivot and the two elements after it.
    let mut rows: Vec<[T; 3]> = Vec::with_capacity(n);
    let zero = T::default();
    let mut current = [main[0], if n > 1 { above[0] } else { zero }, zero];
    for i in 0..n - 1 {
        let mut next = [
            below[i + 1],
            main[i + 1],
            if i + 2 < n { above[i + 1] } else { zero },
        ];
        if pivoting && next[0].size() > current[0].size() {
            std::mem::swap(&mut current, &mut next);
            right.swap_rows(i, i + 1);
        }
        current[0] = away(current[0], least);
        if current[0] == zero {
            return false;
        }
        let factor = next[0] / current[0];
        for j in 0..right.columns {
            let value = right[(i, j)];
            right[(i + 1, j)] -= factor * value;
        }
        rows.push(current);
        current = [next[1] - factor * current[1], next[2] - factor * current[2], zero];
    }
    current[0] = away(current[0], least);
    if current[0] == zero {
        return false;
    }
    rows.push(current);
    for i in (0..n).rev() {
        for j in 0..right.columns {
            let mut sum = right[(i, j)];
            if i + 1 < n {
                sum -= rows[i][1] * right[(i + 1, j)];
            }
            if i + 2 < n {
                sum -= rows[i][2] * right[(i + 2, j)];
            }
            right[(i, j)] = sum / rows[i][0];
        }
    }
    true
}

/// A pivot, at least this large.
fn away<T: Scalar>(pivot: T, least: f64) -> T {
    if pivot.size() < least {
        T::real(least)
    } else {
        pivot
    }
}
