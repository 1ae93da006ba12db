//! Exponential, logarithm and square root of matrices.

use super::factor::lu;
use super::matrix::{Matrix, Scalar};
use super::schur::{complex, schur};
use super::triangular::{Triangle, solve_triangular};
use crate::OutOfMemory;
use num_complex::Complex64;

/// Coefficients of the approximation of order 13 by Padé (Higham, 2005).
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// `e^matrix`, by scaling and squaring.
pub fn matrix_exponential<T: Scalar>(matrix: &Matrix<T>) -> Result<Matrix<T>, OutOfMemory> {
    let n = matrix.rows;
    let norm = matrix.norm1();
    let squarings = if norm > 5.37 && norm.is_finite() {
        (norm / 5.37).log2().ceil() as i32
    } else {
        0
    };
    let mut a = matrix.copy()?;
    a.scale(T::real(0.5f64.powi(squarings)));
    let a2 = a.times(&a)?;
    let a4 = a2.times(&a2)?;
    let a6 = a4.times(&a2)?;
    let identity = Matrix::identity(n, n)?;
    let combine = |high: [usize; 3], low: [usize; 4]| {
        let mut top = Matrix::zeros(n, n)?;
        for (power, &at) in [&a6, &a4, &a2].iter().zip(&high) {
            top.add_scaled(T::real(PADE[at]), power);
        }
        let mut sum = a6.times(&top)?;
        for (power, &at) in [&a6, &a4, &a2, &identity].iter().zip(&low) {
            sum.add_scaled(T::real(PADE[at]), power);
        }
        Ok::<Matrix<T>, OutOfMemory>(sum)
    };
    let odd = a.times(&combine([13, 11, 9], [7, 5, 3, 1])?)?;
    let even = combine([12, 10, 8], [6, 4, 2, 0])?;
    let (mut top, mut bottom) = (even.copy()?, even);
    top.add_scaled(T::one(), &odd);
    bottom.add_scaled(T::real(-1.0), &odd);
    let mut result = lu(bottom).solve(&top)?;
    for _ in 0..squarings {
        result = result.times(&result)?;
    }
    Ok(result)
}

/// The principal square root of an upper triangular matrix.
fn triangular_root(t: &Matrix<Complex64>) -> Result<Matrix<Complex64>, OutOfMemory> {
    let n = t.rows;
    let mut root = Matrix::zeros(n, n)?;
    for j in 0..n {
        root[(j, j)] = t[(j, j)].sqrt();
        for i in (0..j).rev() {
            let mut sum = t[(i, j)];
            for k in i + 1..j {
                sum -= root[(i, k)] * root[(k, j)];
            }
            if sum != Complex64::default() {
                root[(i, j)] = sum / (root[(i, i)] + root[(j, j)]);
            }
        }
    }
    Ok(root)
}

/// `U matrix U^H`.
fn conjugated(u: &Matrix<Complex64>, matrix: &Matrix<Complex64>) -> Result<Matrix<Complex64>, OutOfMemory> {
    u.times(matrix)?.times(&u.adjoint()?)
}

/// The principal square root. None when Schur's form is not found.
pub fn matrix_square_root<T: Scalar>(matrix: &Matrix<T>) -> Result<Option<Matrix<Complex64>>, OutOfMemory> {
    let Some((u, t)) = schur(complex(matrix)?)? else {
        return Ok(None);
    };
    conjugated(&u, &triangular_root(&t)?).map(Some)
}

/// Nodes and weights of the rule by Gauss and Legendre over [-1, 1]; each node also with the other sign.
const LEGENDRE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_27),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// The principal logarithm: roots until the matrix is near 1, then an integral. None when Schur's form is not found.
pub fn matrix_logarithm<T: Scalar>(matrix: &Matrix<T>) -> Result<Option<Matrix<Complex64>>, OutOfMemory> {
    let Some((u, t)) = schur(complex(matrix)?)? else {
        return Ok(None);
    };
    let n = t.rows;
    let one = Complex64::new(1.0, 0.0);
    let distance = |t: &Matrix<Complex64>| {
        let mut rest = t.copy()?;
        (0..n).for_each(|i| rest[(i, i)] -= one);
        Ok::<Matrix<Complex64>, OutOfMemory>(rest)
    };
    let (mut root, mut rest, mut roots) = (t.copy()?, distance(&t)?, 0);
    while rest.norm1() > 0.25 && roots < 60 {
        root = triangular_root(&root)?;
        rest = distance(&root)?;
        roots += 1;
    }
    let mut log = Matrix::zeros(n, n)?;
    for (node, weight) in LEGENDRE
        .iter()
        .flat_map(|&(node, weight)| [(node, weight), (-node, weight)])
    {
        let mut shifted = rest.copy()?;
        shifted.scale(Complex64::new((node + 1.0) / 2.0, 0.0));
        (0..n).for_each(|i| shifted[(i, i)] += one);
        let mut part = rest.copy()?;
        solve_triangular(
            &shifted,
            Triangle {
                lower: false,
                adjoint: false,
            },
            &mut part,
        );
        log.add_scaled(Complex64::new(weight / 2.0, 0.0), &part);
    }
    log.scale(Complex64::new(2f64.powi(roots), 0.0));
    (0..n).for_each(|i| log[(i, i)] = t[(i, i)].ln());
    conjugated(&u, &log).map(Some)
}
