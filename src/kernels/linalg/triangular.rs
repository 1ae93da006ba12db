//! Systems with triangular matrices.

use super::matrix::{Matrix, Scalar};

/// Which triangle of a matrix is meant, and whether its conjugate transpose is.
#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    /// The lower one.
    pub lower: bool,
    /// The conjugate transpose of the triangle.
    pub adjoint: bool,
}

/// Replaces the columns of `right` by the solutions of `triangle * x = column`. Zeros on the diagonal give infinite or
/// not-a-number results.
pub fn solve_triangular<T: Scalar>(matrix: &Matrix<T>, triangle: Triangle, right: &mut Matrix<T>) {
    let (n, width) = (matrix.rows, right.columns);
    let forward = triangle.lower != triangle.adjoint;
    let element = |i: usize, j: usize| {
        if triangle.adjoint {
            matrix[(j, i)].conj()
        } else {
            matrix[(i, j)]
        }
    };
    for turn in 0..n {
        let i = if forward { turn } else { n - 1 - turn };
        let pivot = element(i, i);
        right
            .row_mut(i)
            .iter_mut()
            .for_each(|value| *value = *value / pivot);
        let rest = if forward { i + 1..n } else { 0..i };
        for row in rest {
            let factor = element(row, i);
            if factor == T::default() {
                continue;
            }
            let (first, second) = right.data.split_at_mut(row.max(i) * width);
            let (target, source) = if row > i {
                (&mut second[..width], &first[i * width..(i + 1) * width])
            } else {
                (&mut first[row * width..(row + 1) * width], &second[..width])
            };
            target
                .iter_mut()
                .zip(source.iter())
                .for_each(|(a, &b)| *a -= factor * b);
        }
    }
}
