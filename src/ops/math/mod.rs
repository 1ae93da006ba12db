//! Numbers: elementwise arithmetic and functions, comparisons, reductions, matrix products.

mod arithmetic;
mod cast;
mod compare;
mod division;
mod einsum;
pub mod gradients;
mod matmul;
mod matmul_kernel;
pub mod number;
mod reduction;
mod select;
mod unary;
mod unary_gradient;

pub use matmul_kernel::out_of_memory;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    arithmetic::OPS,
    cast::OPS,
    compare::OPS,
    division::OPS,
    einsum::OPS,
    matmul::OPS,
    reduction::OPS,
    select::OPS,
    unary::OPS,
    unary_gradient::OPS,
];
