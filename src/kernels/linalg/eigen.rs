//! Eigenvalues and eigenvectors of any square matrix.

use super::matrix::{Attempt, Matrix, Scalar};
use super::schur::{complex, schur};
use num_complex::Complex64;

/// Eigenvalues, and the matrix whose columns are eigenvectors of length 1. None when the steps do not converge.
pub fn eigen<T: Scalar>(matrix: &Matrix<T>) -> Attempt<(Vec<Complex64>, Matrix<Complex64>)> {
    let Some((u, t)) = schur(complex(matrix)?)? else {
        return Ok(None);
    };
    let n = t.rows;
    let smallest = f64::EPSILON * t.norm1().max(f64::MIN_POSITIVE);
    let mut upper = Matrix::zeros(n, n)?;
    for k in 0..n {
        upper[(k, k)] = Complex64::new(1.0, 0.0);
        for i in (0..k).rev() {
            let mut sum = -t[(i, k)];
            for j in i + 1..k {
                sum -= t[(i, j)] * upper[(j, k)];
            }
            let mut difference = t[(i, i)] - t[(k, k)];
            if difference.norm() < smallest {
                difference = Complex64::new(smallest, 0.0);
            }
            upper[(i, k)] = sum / difference;
        }
    }
    let mut vectors = u.times(&upper)?;
    for k in 0..n {
        let length = (0..n).map(|i| vectors[(i, k)].norm_sqr()).sum::<f64>().sqrt();
        (0..n).for_each(|i| vectors[(i, k)] /= length);
    }
    Ok(Some(((0..n).map(|i| t[(i, i)]).collect(), vectors)))
}
