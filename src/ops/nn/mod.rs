//! Neural network ops: activations, convolutions, pooling, normalization, losses.

mod activation;
mod batch_norm;
mod bias;
mod conv;
mod conv_gradient;
mod conv_kernel;
pub mod geometry;
mod loss;
mod pool;
mod softmax;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    activation::OPS,
    batch_norm::OPS,
    bias::OPS,
    conv::OPS,
    conv_gradient::OPS,
    loss::OPS,
    pool::OPS,
    softmax::OPS,
];
