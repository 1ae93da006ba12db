//! Sparse tensors: places, values and a shape as three tensors.

mod add;
mod arrange;
mod count;
mod cross;
mod csr;
mod csr_convert;
mod csr_factor;
mod csr_product;
#[cfg(test)]
mod csr_tests;
mod dense;
mod fill;
mod parts;
pub use parts::Sparse;
mod reduce;
mod serialize;
mod sets;
mod slice;
mod tensors_map;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    add::OPS,
    arrange::OPS,
    count::OPS,
    cross::OPS,
    csr_convert::OPS,
    csr_factor::OPS,
    csr_product::OPS,
    dense::OPS,
    fill::OPS,
    reduce::OPS,
    serialize::OPS,
    sets::OPS,
    slice::OPS,
    tensors_map::OPS,
];
