//! Householder's reflections and the factorization by them.

use super::matrix::{Matrix, Scalar};
use crate::OutOfMemory;

/// Finds `v` (with first element 1) and `tau` such that `(I - tau v v^H) x` is a real number `beta` followed by zeros.
/// `x` becomes `v`; gives `tau` and `beta`.
pub fn reflector<T: Scalar>(x: &mut [T]) -> (T, f64) {
    let first = x[0];
    let tail: f64 = x[1..].iter().map(|value| value.square_size()).sum();
    x[0] = T::one();
    if tail <= f64::MIN_POSITIVE && first.im() * first.im() <= f64::MIN_POSITIVE {
        x[1..].fill(T::default());
        return (T::default(), first.re());
    }
    let length = (first.square_size() + tail).sqrt();
    let beta = if first.re() >= 0.0 { -length } else { length };
    let scale = first - T::real(beta);
    x[1..].iter_mut().for_each(|value| *value = *value / scale);
    let tau = (T::real(beta) - first) / T::real(beta);
    (tau.conj(), beta)
}

/// Replaces rows from `start` on of a matrix, at columns from `column` on, by `(I - tau v v^H)` times them.
pub fn reflect_left<T: Scalar>(
    matrix: &mut Matrix<T>,
    start: usize,
    column: usize,
    v: &[T],
    tau: T,
    sums: &mut Vec<T>,
) {
    if tau == T::default() {
        return;
    }
    sums.clear();
    sums.resize(matrix.columns - column, T::default());
    for (i, &factor) in v.iter().enumerate() {
        let row = &matrix.row(start + i)[column..];
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, &value)| *sum += factor.conj() * value);
    }
    for (i, &factor) in v.iter().enumerate() {
        let row = &mut matrix.row_mut(start + i)[column..];
        row.iter_mut()
            .zip(sums.iter())
            .for_each(|(value, &sum)| *value -= tau * factor * sum);
    }
}

/// Replaces columns from `start` on of a matrix by them times `(I - conj(tau) v v^H)`.
pub fn reflect_right<T: Scalar>(matrix: &mut Matrix<T>, start: usize, v: &[T], tau: T) {
    if tau == T::default() {
        return;
    }
    for i in 0..matrix.rows {
        let row = &mut matrix.row_mut(i)[start..start + v.len()];
        let mut sum = T::default();
        row.iter()
            .zip(v)
            .for_each(|(&value, &factor)| sum += value * factor);
        let sum = sum * tau.conj();
        row.iter_mut()
            .zip(v)
            .for_each(|(value, &factor)| *value -= sum * factor.conj());
    }
}

/// The factors `Q`, with `columns` orthonormal columns, and `R`, with as many rows.
pub fn qr<T: Scalar>(mut matrix: Matrix<T>, columns: usize) -> Result<(Matrix<T>, Matrix<T>), OutOfMemory> {
    let (rows, width) = (matrix.rows, matrix.columns);
    let count = rows.min(width);
    let (mut vectors, mut sums) = (Vec::with_capacity(count), Vec::new());
    for k in 0..count {
        let mut v: Vec<T> = (k..rows).map(|row| matrix[(row, k)]).collect();
        let (tau, beta) = reflector(&mut v);
        reflect_left(&mut matrix, k, k, &v, tau, &mut sums);
        matrix[(k, k)] = T::real(beta);
        (k + 1..rows).for_each(|row| matrix[(row, k)] = T::default());
        vectors.push((v, tau));
    }
    let mut q = Matrix::identity(rows, columns)?;
    for (k, (v, tau)) in vectors.iter().enumerate().rev() {
        reflect_left(&mut q, k, 0, v, tau.conj(), &mut sums);
    }
    let mut r = Matrix::zeros(columns, width)?;
    for row in 0..columns.min(rows) {
        r.row_mut(row).copy_from_slice(matrix.row(row));
    }
    Ok((q, r))
}
