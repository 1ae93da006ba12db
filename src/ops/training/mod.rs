//! Optimizer steps: ops that change variables by a gradient.

mod adam;
mod descent;
mod momentum;
mod slots;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[adam::OPS, descent::OPS, momentum::OPS];
