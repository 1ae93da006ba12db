//! Sparse tensors: places, values and a shape as three tensors.

mod add;
mod arrange;
mod dense;
mod fill;
mod parts;
mod reduce;
mod slice;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    add::OPS,
    arrange::OPS,
    dense::OPS,
    fill::OPS,
    reduce::OPS,
    slice::OPS,
];
