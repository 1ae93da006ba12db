//! Quantized numbers: simulated quantization, conversion to and from quantized types, arithmetic on them.

mod arithmetic;
mod concat;
mod convert;
mod fake;
mod image;
mod lower;
mod normalization;
mod product;
mod range;
mod requantize;
mod simulate;
mod uniform;
mod uniform_convolution;
mod uniform_product;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    arithmetic::OPS,
    concat::OPS,
    convert::OPS,
    fake::OPS,
    image::OPS,
    normalization::OPS,
    product::OPS,
    requantize::OPS,
    simulate::OPS,
    uniform::OPS,
    uniform_convolution::OPS,
    uniform_product::OPS,
];
