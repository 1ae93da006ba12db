//! Numbers: elementwise arithmetic and functions, comparisons, reductions, matrix products.

mod arithmetic;
mod bincount;
mod bits;
mod cast;
mod clustering;
mod compare;
pub mod complex;
mod cross;
mod cumulative;
mod division;
pub mod einsum;
pub mod gradients;
mod log_products;
mod lower_count;
mod matmul;
mod matmul_kernel;
pub mod number;
mod order;
mod reduction;
mod search;
mod segment;
mod segment_gradient;
mod select;
mod sparse_segment;
mod special;
mod top_k;
mod unary;
mod unary_gradient;

pub use matmul_kernel::out_of_memory;
pub use segment_gradient::first_extent;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    arithmetic::OPS,
    bincount::OPS,
    bits::OPS,
    cast::OPS,
    clustering::OPS,
    compare::OPS,
    complex::OPS,
    cross::OPS,
    cumulative::OPS,
    division::OPS,
    einsum::OPS,
    log_products::OPS,
    matmul::OPS,
    reduction::OPS,
    search::OPS,
    segment::OPS,
    select::OPS,
    sparse_segment::OPS,
    special::OPS,
    top_k::OPS,
    unary::OPS,
    unary_gradient::OPS,
];
