//! Ops that make, shape, cut and join tensors.

mod strided_slice;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[strided_slice::OPS];
