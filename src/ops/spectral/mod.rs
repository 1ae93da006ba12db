//! Discrete Fourier transforms over the last one to three axes.

mod gradient;
mod transform;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[transform::OPS];
