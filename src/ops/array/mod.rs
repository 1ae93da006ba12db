//! Ops that make, shape, cut and join tensors.

mod broadcast;
mod concat;
mod fill;
mod gather;
mod identity;
mod mirror_pad_grad;
mod pack;
mod pad;
mod reshape;
pub mod scatter;
mod shape;
mod slice;
mod source;
mod spatial;
mod split;
mod strided_slice;
mod transpose;
mod unique;

use ff_op::Op;
use ff_tensor::{DataType, Result, Shape, Tensor};

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[
    broadcast::OPS,
    concat::OPS,
    fill::OPS,
    gather::OPS,
    identity::OPS,
    mirror_pad_grad::OPS,
    pack::OPS,
    pad::OPS,
    reshape::OPS,
    shape::OPS,
    scatter::OPS,
    slice::OPS,
    source::OPS,
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
