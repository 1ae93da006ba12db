//! Neural network ops: activations, convolutions, pooling, normalization, losses.

mod activation;
mod batch_norm;
mod bias;
mod conv;
mod conv_gradient;
mod conv_kernel;
mod ctc_decode;
mod ctc_loss;
mod dilation;
mod edit_distance;
mod fractional_pool;
mod fused;
pub mod geometry;
mod global_normalization;
mod isotonic;
mod loss;
mod max_places;
pub mod pool;
mod recurrent;
mod response_normalization;
mod softmax;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    activation::OPS,
    batch_norm::OPS,
    bias::OPS,
    conv::OPS,
    conv_gradient::OPS,
    ctc_decode::OPS,
    ctc_loss::OPS,
    dilation::OPS,
    edit_distance::OPS,
    fractional_pool::OPS,
    fused::OPS,
    global_normalization::OPS,
    isotonic::OPS,
    loss::OPS,
    max_places::OPS,
    pool::OPS,
    recurrent::OPS,
    response_normalization::OPS,
    softmax::OPS,
];
