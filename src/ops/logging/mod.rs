//! Assertions, printing, summaries, what debuggers watch, time.

mod assert;
mod debug;
mod picture;
mod print;
mod sound;
mod summary;
mod writer;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    assert::OPS,
    debug::OPS,
    picture::OPS,
    print::OPS,
    sound::OPS,
    summary::OPS,
    writer::OPS,
];
