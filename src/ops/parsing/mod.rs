//! From bytes to tensors: raw numbers, serialized tensors and examples, CSV, JSON, sound.

mod csv;
mod example;
mod features;
mod json;
mod raw;
mod sequence;
mod tensor;
pub mod wav;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    csv::OPS,
    example::OPS,
    json::OPS,
    raw::OPS,
    sequence::OPS,
    tensor::OPS,
    wav::OPS,
];
