//! Ops that wait for each other: queues.

mod queue;
mod queue_ops;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[queue_ops::OPS];
