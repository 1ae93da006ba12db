//! Ops that make, shape, cut and join tensors.

mod broadcast;
mod concat;
mod data_format;
mod diagonal;
mod fill;
#[cfg(test)]
mod float_cases;
pub mod gather;
pub mod identity;
mod inplace;
mod lower_index;
mod lower_movement;
mod matrix_diagonal;
mod mirror_pad_grad;
mod pack;
pub mod pad;
mod partition;
mod positions;
mod reshape;
mod roll;
pub mod scatter;
mod shape;
mod slice;
mod source;
mod sparse_to_dense;
mod spatial;
mod split;
mod strided_slice;
mod transpose;
mod unique;

pub use gather::position_text;

use ff_op::Op;
use ff_tensor::{DataType, Result, Shape, Tensor};

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[
    broadcast::OPS,
    concat::OPS,
    data_format::OPS,
    diagonal::OPS,
    fill::OPS,
    gather::OPS,
    identity::OPS,
    inplace::OPS,
    matrix_diagonal::OPS,
    mirror_pad_grad::OPS,
    pack::OPS,
    pad::OPS,
    partition::OPS,
    positions::OPS,
    reshape::OPS,
    roll::OPS,
    scatter::OPS,
    shape::OPS,
    slice::OPS,
    source::OPS,
    sparse_to_dense::OPS,
    spatial::OPS,
    split::OPS,
    strided_slice::OPS,
    transpose::OPS,
    unique::OPS,
];

/// Extents as a vector of int32 or int64. INVALID_ARGUMENT where one does not fit.
pub fn shape_value(dtype: DataType, dims: &[i64]) -> Result<Tensor> {
    shape::of_type(dtype, Shape::vector(dims.len()), dims)
}
