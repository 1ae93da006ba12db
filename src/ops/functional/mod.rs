//! Control flow by functions: calls, conditionals, loops.

mod call;
mod conditional;
mod function_builder;
mod gradient;
mod lower;
mod while_loop;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[call::OPS, conditional::OPS, while_loop::OPS];
