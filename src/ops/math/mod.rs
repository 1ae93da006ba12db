//! Numbers: elementwise arithmetic and functions, comparisons, reductions, matrix products.

mod arithmetic;
mod compare;
mod division;
mod gradients;
pub mod number;
mod unary;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[arithmetic::OPS, compare::OPS, division::OPS, unary::OPS];
