//! Assertions, printing, summaries, what debuggers watch, time.

mod assert;
mod debug;
mod print;
mod sound;
mod summary;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[assert::OPS, debug::OPS, print::OPS, sound::OPS, summary::OPS];
