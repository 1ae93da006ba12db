//! Assertions, printing, time.

mod assert;
mod print;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[assert::OPS, print::OPS];
