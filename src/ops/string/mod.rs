//! Strings: joining, cutting, matching, hashing, encoding, and to and from numbers.

mod as_string;
mod base64;
mod case;
mod city;
mod format;
mod hash;
pub(crate) mod hash_functions;
mod join;
mod length;
mod ngrams;
mod patterns;
mod re2;
mod reduce_join;
mod script;
mod segment_join;
mod split;
mod substr;
mod to_number;
mod unicode;

pub use city::fingerprint128;
pub use hash_functions::{fingerprint64, hash64};

use ff_op::{Gradient, KernelContext, Op};
use ff_tensor::{Result, TString, Tensor};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    as_string::OPS,
    base64::OPS,
    case::OPS,
    format::OPS,
    hash::OPS,
    join::OPS,
    length::OPS,
    ngrams::OPS,
    patterns::OPS,
    reduce_join::OPS,
    script::OPS,
    segment_join::OPS,
    split::OPS,
    substr::OPS,
    to_number::OPS,
    unicode::OPS,
];

/// Base of ops that make one element of each element of their first input.
const ELEMENTWISE: Op = Op {
    shape: ff_op::shapes::unchanged,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Sets the output to what `f` makes of each string of the first input.
fn map_strings(context: &mut KernelContext, f: impl Fn(&[u8]) -> Result<TString>) -> Result<()> {
    let input = context.input(0)?;
    let strings = input.strings()?.iter();
    let made = crate::wide::try_collected(strings.map(|string| f(string.as_bytes())))?;
    let output = Tensor::from_strings(input.shape().clone(), made)?;
    context.set_output(0, output)
}
