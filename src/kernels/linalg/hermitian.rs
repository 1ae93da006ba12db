//! Eigenvalues and eigenvectors of Hermitian matrices: reduction to a real tridiagonal matrix, then implicit QL steps.

use super::matrix::{Attempt, Matrix, Scalar};
use super::qr::{reflect_left, reflect_right, reflector};

/// Eigenvalues in ascending order, and the matrix whose columns are eigenvectors. The lower triangle is read.
/// None when the steps do not converge, as with not-a-number.
pub fn hermitian_eigen<T: Scalar>(matrix: &Matrix<T>) -> Attempt<(Vec<f64>, Matrix<T>)> {
    let n = matrix.rows;
    let mut a = matrix.copy()?;
    for i in 0..n {
        a[(i, i)] = T::real(a[(i, i)].re());
        for j in i + 1..n {
            a[(i, j)] = a[(j, i)].conj();
        }
    }
    let mut q = Matrix::identity(n, n)?;
    let mut beyond = vec![0.0; n];
    let mut sums = Vec::new();
    for k in 0..n.saturating_sub(1) {
        let mut v: Vec<T> = (k + 1..n).map(|row| a[(row, k)]).collect();
        let (tau, beta) = reflector(&mut v);
        reflect_left(&mut a, k + 1, 0, &v, tau, &mut sums);
        reflect_right(&mut a, k + 1, &v, tau);
        reflect_right(&mut q, k + 1, &v, tau);
        beyond[k] = beta;
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[(i, i)].re()).collect();
    // Rows are the vectors from here on: rotations then run over neighbours.
    let mut vectors = Matrix::zeros(n, n)?;
    for i in 0..n {
        for j in 0..n {
            vectors[(j, i)] = q[(i, j)];
        }
    }
    if !ql(&mut values, &mut beyond, &mut vectors) {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    for (to, &from) in order.iter().enumerate() {
        for i in 0..n {
            q[(i, to)] = vectors[(from, i)];
        }
    }
    Ok(Some((order.iter().map(|&i| values[i]).collect(), q)))
}

/// Steps for one eigenvalue after which the matrix is given up.
const MOST_STEPS: usize = 60;

/// Diagonalizes the tridiagonal matrix with this diagonal and these elements beside it.
fn ql<T: Scalar>(d: &mut [f64], e: &mut [f64], vectors: &mut Matrix<T>) -> bool {
    let n = d.len();
    for l in 0..n {
        let mut steps = 0;
        loop {
            let mut m = l;
            while m + 1 < n {
                let scale = d[m].abs() + d[m + 1].abs();
                if e[m].abs() <= f64::EPSILON * scale || e[m] == 0.0 {
                    break;
                }
                m += 1;
            }
            if m == l {
                break;
            }
            steps += 1;
            if steps > MOST_STEPS || !e[l].is_finite() {
                return false;
            }
            ql_step(d, e, vectors, l, m);
        }
    }
    n == 1 || d.iter().all(|value| !value.is_nan())
}

/// One implicit step on rows `l..=m`.
fn ql_step<T: Scalar>(d: &mut [f64], e: &mut [f64], vectors: &mut Matrix<T>, l: usize, m: usize) {
    let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut r = g.hypot(1.0);
    g = d[m] - d[l] + e[l] / (g + r.copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        let n = vectors.columns;
        let (first, second) = vectors.data.split_at_mut((i + 1) * n);
        let pair = first[i * n..].iter_mut().zip(&mut second[..n]);
        for (low, high) in pair {
            let (x, y) = (*low, *high);
            *high = T::real(s) * x + T::real(c) * y;
            *low = T::real(c) * x - T::real(s) * y;
        }
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}
