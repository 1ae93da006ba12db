//! Tables from keys to values, as resources.

mod ops;
mod table;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[ops::OPS];
