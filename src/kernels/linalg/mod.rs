//! Factorizations and functions of dense matrices, in double precision, real or complex.
//!
//! Unblocked algorithms on row-major [`Matrix`] values; the caller converts other precisions. Conventions where a
//! factorization is not unique: `R` of [`qr`] has a real diagonal with the signs of Householder's method, eigenvalues
//! of Hermitian matrices ascend, singular values descend; signs and phases of eigenvectors and singular vectors are
//! whatever comes out. Nothing panics on not-a-number: results are not-a-number then.

mod eigen;
mod factor;
mod functions;
mod hermitian;
mod least_squares;
mod matrix;
mod qr;
mod schur;
mod svd;
mod triangular;
mod tridiagonal;

pub use eigen::eigen;
pub use factor::{Lu, cholesky, cholesky_gradient, lu};
pub use functions::{matrix_exponential, matrix_logarithm, matrix_square_root};
pub use hermitian::hermitian_eigen;
pub use least_squares::{least_squares, least_squares_regularized};
pub use matrix::{Attempt, Matrix, Scalar};
pub use qr::{qr, reflect_left, reflect_right, reflector};
pub use schur::schur;
pub use svd::{Svd, svd};
pub use triangular::{Triangle, solve_triangular};
pub use tridiagonal::{tridiagonal_multiply, tridiagonal_solve};

#[cfg(test)]
mod tests;
