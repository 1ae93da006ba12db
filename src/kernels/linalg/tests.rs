//! Factors multiply back to the matrix; functions agree with each other.

use super::*;
use num_complex::Complex64;

fn filled<T: Scalar>(rows: usize, columns: usize, make: impl Fn(f64, f64) -> T) -> Matrix<T> {
    let mut matrix = Matrix::zeros(rows, columns).unwrap();
    for (at, value) in matrix.data.iter_mut().enumerate() {
        let x = ((at * at * 7 + at * 3 + 5) % 23) as f64 / 11.5 - 1.0;
        let y = ((at * at * 5 + at * 11 + 2) % 19) as f64 / 9.5 - 1.0;
        *value = make(x, y);
    }
    matrix
}

fn real(rows: usize, columns: usize) -> Matrix<f64> {
    filled(rows, columns, |x, _| x)
}

fn complex(rows: usize, columns: usize) -> Matrix<Complex64> {
    filled(rows, columns, Complex64::new)
}

fn near<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) {
    assert_eq!((a.rows, a.columns), (b.rows, b.columns));
    let worst = a
        .data
        .iter()
        .zip(&b.data)
        .map(|(&x, &y)| (x - y).size())
        .fold(0.0, f64::max);
    assert!(worst < 1e-10, "differs by {worst}");
}

fn diagonal<T: Scalar>(values: &[f64]) -> Matrix<T> {
    let mut matrix = Matrix::zeros(values.len(), values.len()).unwrap();
    values
        .iter()
        .enumerate()
        .for_each(|(i, &value)| matrix[(i, i)] = T::real(value));
    matrix
}

fn check<T: Scalar>(tall: Matrix<T>, square: Matrix<T>) {
    let n = square.rows;
    let identity = Matrix::<T>::identity(n, n).unwrap();
    for columns in [tall.columns, tall.rows] {
        let (q, r) = qr(tall.copy().unwrap(), columns).unwrap();
        near(&q.times(&r).unwrap(), &tall);
        near(
            &q.adjoint().unwrap().times(&q).unwrap(),
            &Matrix::identity(columns, columns).unwrap(),
        );
    }
    for matrix in [tall.copy().unwrap(), tall.adjoint().unwrap()] {
        let parts = svd(&matrix, false).unwrap();
        let back = parts
            .u
            .times(&diagonal(&parts.values))
            .unwrap()
            .times(&parts.v.adjoint().unwrap())
            .unwrap();
        near(&back, &matrix);
        let parts = svd(&matrix, true).unwrap();
        near(
            &parts.u.adjoint().unwrap().times(&parts.u).unwrap(),
            &Matrix::identity(matrix.rows, matrix.rows).unwrap(),
        );
    }
    let mut positive = square.times(&square.adjoint().unwrap()).unwrap();
    positive.add_scaled(T::one(), &identity);
    let factor = cholesky(&positive).unwrap().unwrap();
    near(&factor.times(&factor.adjoint().unwrap()).unwrap(), &positive);
    let (values, vectors) = hermitian_eigen(&positive).unwrap().unwrap();
    assert!(values.is_sorted());
    near(
        &vectors.times(&diagonal(&values)).unwrap(),
        &positive.times(&vectors).unwrap(),
    );
    let inverse = lu(square.copy().unwrap()).solve(&identity).unwrap();
    near(&square.times(&inverse).unwrap(), &identity);
    let root = matrix_square_root(&positive).unwrap().unwrap();
    near(&root.times(&root).unwrap(), &schur::complex(&positive).unwrap());
    let log = matrix_logarithm(&positive).unwrap().unwrap();
    near(
        &matrix_exponential(&log).unwrap(),
        &schur::complex(&positive).unwrap(),
    );
    let (values, vectors) = eigen(&square).unwrap().unwrap();
    let mut scaled = vectors.copy().unwrap();
    for i in 0..n {
        scaled
            .row_mut(i)
            .iter_mut()
            .zip(&values)
            .for_each(|(entry, &value)| *entry *= value);
    }
    near(
        &schur::complex(&square).unwrap().times(&vectors).unwrap(),
        &scaled,
    );
}

#[test]
fn real_factors() {
    check(real(7, 4), real(6, 6));
    check(real(1, 1), real(1, 1));
}

#[test]
fn complex_factors() {
    check(complex(6, 5), complex(7, 7));
}

#[test]
fn matrices_that_lack_rank() {
    let mut singular = Matrix::zeros(3, 3).unwrap();
    singular
        .data
        .copy_from_slice(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 1.0, 1.0]);
    assert!(cholesky(&singular).unwrap().is_none());
    assert!(!lu(singular.copy().unwrap()).is_invertible());
    let parts = svd(&singular, true).unwrap();
    assert!(parts.values[2] < 1e-14);
    near(
        &parts.u.adjoint().unwrap().times(&parts.u).unwrap(),
        &Matrix::identity(3, 3).unwrap(),
    );
    let right = real(3, 2);
    let x = least_squares(&singular, &right).unwrap();
    let rest = |x: &Matrix<f64>| {
        let mut rest = singular.times(x).unwrap();
        rest.add_scaled(-1.0, &right);
        singular.adjoint().unwrap().times(&rest).unwrap()
    };
    near(&rest(&x), &Matrix::zeros(3, 2).unwrap());
}

#[test]
fn tridiagonal_systems() {
    let (above, main, below) = ([2.0, 1.0, 3.0, 9.0], [0.0, 4.0, -1.0, 2.0], [9.0, 1.0, 5.0, 1.0]);
    let right = real(4, 3);
    let product = tridiagonal_multiply((&above, &main, &below), &right).unwrap();
    let mut solved = product.copy().unwrap();
    assert!(tridiagonal_solve((&above, &main, &below), &mut solved, true, 0.0));
    near(&solved, &right);
    assert!(!tridiagonal_solve(
        (&above, &main, &below),
        &mut product.copy().unwrap(),
        false,
        0.0
    ));
}

#[test]
fn not_a_number_ends() {
    let broken = filled(4, 4, |_, _| f64::NAN);
    assert!(hermitian_eigen(&broken).unwrap().is_none());
    assert!(eigen(&broken).unwrap().is_none());
    assert!(cholesky(&broken).unwrap().is_none());
    svd(&broken, true).unwrap();
}
