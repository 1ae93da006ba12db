//! Ops on strings: joining, splitting, patterns, conversions to and from numbers.

mod convert;
mod pattern;
mod split;
mod text;

use ff_op::Op;
use ff_tensor::{Result, TString, Tensor};

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[convert::OPS, pattern::OPS, split::OPS, text::OPS];

/// A tensor of the same shape with each string replaced.
fn map(input: &Tensor, mut f: impl FnMut(&[u8]) -> Result<TString>) -> Result<Tensor> {
    let strings = input.strings()?.iter().map(|text| f(text.as_bytes()));
    Tensor::from_strings(input.shape().clone(), strings.collect::<Result<_>>()?)
}

/// Where the characters of a string start, its end included: a byte that continues a UTF-8 character starts none.
fn character_starts(text: &[u8]) -> Vec<usize> {
    let starts = (0..text.len()).filter(|&i| text[i] & 0xc0 != 0x80);
    starts.chain([text.len()]).collect()
}
