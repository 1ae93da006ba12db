//! Control flow of version 1: the dataflow engine runs these; their kernels only pass values on.

mod frames;
#[cfg(test)]
mod tests;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[frames::OPS];
