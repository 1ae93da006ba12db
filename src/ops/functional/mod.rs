//! Control flow by functions: calls, conditionals, loops.

mod call;
mod conditional;
mod for_loop;
mod function_builder;
mod gradient;
mod in_turn;
mod lower;
mod map_defun;
mod symbolic_gradient;
mod while_loop;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[
    call::OPS,
    conditional::OPS,
    for_loop::OPS,
    map_defun::OPS,
    symbolic_gradient::OPS,
    while_loop::OPS,
];
