//! Sparse tensors: places, values and a shape as three tensors.

mod add;
mod arrange;
mod count;
mod cross;
mod dense;
mod fill;
mod parts;
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
    dense::OPS,
    fill::OPS,
    reduce::OPS,
    serialize::OPS,
    sets::OPS,
    slice::OPS,
    tensors_map::OPS,
];
