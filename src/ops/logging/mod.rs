//! Ops for the people who read a log: assertions and printing.

mod report;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[report::OPS];
