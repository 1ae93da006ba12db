//! Schur's form of a complex matrix: Hessenberg's form, then QR steps with shifts.

use super::matrix::{Attempt, Matrix, Scalar};
use super::qr::{reflect_left, reflect_right, reflector};
use crate::OutOfMemory;
use num_complex::Complex64;

/// Steps for each row after which the matrix is given up.
const MOST_STEPS: usize = 40;

/// A unitary `U` and an upper triangular `T` with `matrix = U T U^H`. None when the steps do not converge.
pub fn schur(mut t: Matrix<Complex64>) -> Attempt<(Matrix<Complex64>, Matrix<Complex64>)> {
    let n = t.rows;
    let mut u = Matrix::identity(n, n)?;
    let mut sums = Vec::new();
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<Complex64> = (k + 1..n).map(|row| t[(row, k)]).collect();
        let (tau, beta) = reflector(&mut v);
        reflect_left(&mut t, k + 1, k, &v, tau, &mut sums);
        reflect_right(&mut t, k + 1, &v, tau);
        reflect_right(&mut u, k + 1, &v, tau);
        t[(k + 1, k)] = Complex64::new(beta, 0.0);
        (k + 2..n).for_each(|row| t[(row, k)] = Complex64::default());
    }
    if t.data.iter().any(|value| !value.is_finite()) {
        return Ok(None);
    }
    let (mut end, mut steps, mut total) = (n.saturating_sub(1), 0usize, 0);
    while end > 0 {
        if is_small(&mut t, end - 1) {
            end -= 1;
            steps = 0;
            continue;
        }
        steps += 1;
        total += 1;
        if total > MOST_STEPS * n {
            return Ok(None);
        }
        let mut start = end - 1;
        while start > 0 && !is_small(&mut t, start - 1) {
            start -= 1;
        }
        let shift = shift(&t, end, steps);
        step(&mut t, &mut u, start, end, shift);
    }
    for i in 0..n {
        t.row_mut(i)[..i].fill(Complex64::default());
    }
    Ok(Some((u, t)))
}

/// Whether the element below the diagonal at `i` does not count; it is made zero then.
fn is_small(t: &mut Matrix<Complex64>, i: usize) -> bool {
    let sum = |value: Complex64| value.re.abs() + value.im.abs();
    let scale = sum(t[(i, i)]) + sum(t[(i + 1, i + 1)]);
    if sum(t[(i + 1, i)]) <= f64::EPSILON * scale.max(f64::MIN_POSITIVE) {
        t[(i + 1, i)] = Complex64::default();
        return true;
    }
    false
}

/// The eigenvalue of the last two rows that is nearest to the last element; now and then something else.
fn shift(t: &Matrix<Complex64>, end: usize, steps: usize) -> Complex64 {
    if steps.is_multiple_of(10) {
        let beyond = if end > 1 {
            t[(end - 1, end - 2)].re.abs()
        } else {
            0.0
        };
        return Complex64::new(t[(end, end - 1)].re.abs() + beyond, 0.0);
    }
    let (a, d) = (t[(end - 1, end - 1)], t[(end, end)]);
    let product = t[(end - 1, end)] * t[(end, end - 1)];
    let half = (a - d) * 0.5;
    let root = (half * half + product).sqrt();
    let (plus, minus) = (half + root, half - root);
    let far = if plus.norm_sqr() >= minus.norm_sqr() {
        plus
    } else {
        minus
    };
    if far == Complex64::default() {
        d
    } else {
        d - product / far
    }
}

/// A rotation that makes the second of two numbers zero: `(c, s)` with `-conj(s) p + c q = 0`.
fn rotation(p: Complex64, q: Complex64) -> (f64, Complex64) {
    let length = p.norm().hypot(q.norm());
    if q == Complex64::default() || length == 0.0 {
        return (1.0, Complex64::default());
    }
    if p == Complex64::default() {
        return (0.0, q.conj() / q.norm());
    }
    (p.norm() / length, p / p.norm() * q.conj() / length)
}

/// One step on rows `start..=end`.
fn step(t: &mut Matrix<Complex64>, u: &mut Matrix<Complex64>, start: usize, end: usize, shift: Complex64) {
    let n = t.rows;
    for i in start..end {
        let (p, q) = if i == start {
            (t[(i, i)] - shift, t[(i + 1, i)])
        } else {
            (t[(i, i - 1)], t[(i + 1, i - 1)])
        };
        let (c, s) = rotation(p, q);
        for column in i.saturating_sub(1)..n {
            let (x, y) = (t[(i, column)], t[(i + 1, column)]);
            t[(i, column)] = x * c + s * y;
            t[(i + 1, column)] = y * c - s.conj() * x;
        }
        if i > start {
            t[(i + 1, i - 1)] = Complex64::default();
        }
        let last = (i + 2).min(end);
        rotate_columns(t, last + 1, i, c, s);
        rotate_columns(u, n, i, c, s);
    }
}

/// Turns columns `i` and `i + 1` of the first rows by the inverse of a rotation.
fn rotate_columns(matrix: &mut Matrix<Complex64>, rows: usize, i: usize, c: f64, s: Complex64) {
    for row in 0..rows {
        let (x, y) = (matrix[(row, i)], matrix[(row, i + 1)]);
        matrix[(row, i)] = x * c + s.conj() * y;
        matrix[(row, i + 1)] = y * c - s * x;
    }
}

/// A real or complex matrix as a complex one.
pub fn complex<T: Scalar>(matrix: &Matrix<T>) -> Result<Matrix<Complex64>, OutOfMemory> {
    let mut result = Matrix::zeros(matrix.rows, matrix.columns)?;
    for (to, from) in result.data.iter_mut().zip(&matrix.data) {
        *to = Complex64::new(from.re(), from.im());
    }
    Ok(result)
}
