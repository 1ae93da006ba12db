//! Matrices: factorizations, systems of equations, eigenvalues, functions. Batches of matrices lie in the last two axes.

mod decompose;
mod decompose_gradient;
mod decompose_outright;
mod factor;
mod functions;
mod gradients;
mod lower;
mod matrices;
mod shapes;
mod solve;
mod tridiagonal;

pub use matrices::Field;
pub(crate) use matrices::match_field;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    decompose::OPS,
    decompose_outright::OPS,
    factor::OPS,
    functions::OPS,
    solve::OPS,
    tridiagonal::OPS,
];
