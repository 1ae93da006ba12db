//! Assertions, printing, summaries, time.

mod assert;
mod print;
mod summary;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[assert::OPS, print::OPS, summary::OPS];
