//! Splitting strings: `StringSplitV2` as Python's `split`, `StringSplit` at any of a set of characters.
//!
//! Both give a sparse matrix: indices of rows and places, values, and its shape.

use super::case::is_space;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StringSplitV2",
        shape,
        kernels: &[Kernel::native(split_v2)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "StringSplit",
        shape,
        kernels: &[Kernel::native(split_v1)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 1)?;
    context.input_with_rank(1, 0)?;
    context.set_output(0, PartialShape::new(&[dim::UNKNOWN, 2]));
    context.set_output(1, PartialShape::new(&[dim::UNKNOWN]));
    context.set_output(2, PartialShape::new(&[2]));
    Ok(())
}

fn split_v2(context: &mut KernelContext) -> Result<()> {
    let most = context.attrs().int("maxsplit")?;
    split(context, |text, separator| {
        if most == 0 {
            vec![text]
        } else if separator.is_empty() {
            at_spaces(text, most)
        } else {
            at_separator(text, separator, most)
        }
    })
}

fn split_v1(context: &mut KernelContext) -> Result<()> {
    let skip_empty = context.attrs().bool("skip_empty")?;
    split(context, |text, delimiters| {
        if text.is_empty() {
            return Vec::new();
        }
        if delimiters.is_empty() {
            return text.chunks(1).collect();
        }
        text.split(|byte| delimiters.contains(byte))
            .filter(|part| !skip_empty || !part.is_empty())
            .collect()
    })
}

/// Sets the outputs to the parts that `parts` makes of each string with the separator.
fn split(
    context: &mut KernelContext,
    parts: impl for<'a> Fn(&'a [u8], &[u8]) -> Vec<&'a [u8]>,
) -> Result<()> {
    let (input, separator) = (context.input(0)?, context.input(1)?);
    ensure!(
        input.rank() == 1 && separator.rank() == 0,
        InvalidArgument,
        "input must be a vector and sep a scalar, got shapes: {} and {}",
        input.shape(),
        separator.shape()
    );
    let separator = separator.strings()?[0].as_bytes();
    let rows = input.strings()?;
    let (mut indices, mut values, mut columns) = (Vec::<i64>::new(), Vec::<TString>::new(), 0);
    for (row, text) in rows.iter().enumerate() {
        let parts = parts(text.as_bytes(), separator);
        columns = columns.max(parts.len());
        for (column, part) in parts.into_iter().enumerate() {
            indices.extend([row as i64, column as i64]);
            values.push(part.into());
        }
    }
    let count = values.len();
    let shape = Tensor::vector(&[rows.len() as i64, columns as i64])?;
    let indices = Tensor::from_slice(Shape::new(&[count as i64, 2])?, &indices)?;
    context.set_output(0, indices)?;
    context.set_output(1, Tensor::from_strings(Shape::vector(count), values)?)?;
    context.set_output(2, shape)
}

fn without_leading_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_space(byte));
    &text[start.unwrap_or(text.len())..]
}

/// Words between space; after `most` words (if positive) the rest is one part, even when it is empty.
fn at_spaces(text: &[u8], most: i64) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = without_leading_space(text);
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = without_leading_space(&rest[end..]);
        if most > 0 && parts.len() as i64 == most {
            parts.push(rest);
            break;
        }
    }
    parts
}

/// Parts between separators, empty ones too; at most `most` cuts, if positive.
fn at_separator<'a>(text: &'a [u8], separator: &[u8], most: i64) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while most <= 0 || (parts.len() as i64) < most {
        let found = rest
            .windows(separator.len())
            .position(|window| window == separator);
        let Some(at) = found else { break };
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
fn lines() -> Tensor {
    crate::testing::strings(&[6], &["a b  c", "", "  ", " x,y,,z ", "a b ", "1abab2ab"])
}

crate::op_cases! {
    words: Case::op("StringSplitV2").input(lines()).input(strings(&[], &[""]))
        .gives(t(&[7, 2], &[0i64, 0, 0, 1, 0, 2, 3, 0, 4, 0, 4, 1, 5, 0]))
        .gives(strings(&[7], &["a", "b", "c", "x,y,,z", "a", "b", "1abab2ab"])).gives(vector(&[6i64, 3]));
    words_at_most_two: Case::op("StringSplitV2").attr("maxsplit", 2i64).input(lines()).input(strings(&[], &[""]))
        .gives(t(&[8, 2], &[0i64, 0, 0, 1, 0, 2, 3, 0, 4, 0, 4, 1, 4, 2, 5, 0]))
        .gives(strings(&[8], &["a", "b", "c", "x,y,,z", "a", "b", "", "1abab2ab"])).gives(vector(&[6i64, 3]));
    no_cuts: Case::op("StringSplitV2").attr("maxsplit", 0i64).input(strings(&[2], &["a,b", ""]))
        .input(strings(&[], &[","])).gives(t(&[2, 2], &[0i64, 0, 1, 0])).gives(strings(&[2], &["a,b", ""]))
        .gives(vector(&[2i64, 1]));
    separator: Case::op("StringSplitV2").input(strings(&[2], &["1abab2ab", ""])).input(strings(&[], &["ab"]))
        .gives(t(&[5, 2], &[0i64, 0, 0, 1, 0, 2, 0, 3, 1, 0])).gives(strings(&[5], &["1", "", "2", "", ""]))
        .gives(vector(&[2i64, 4]));
    separator_at_most_two: Case::op("StringSplitV2").attr("maxsplit", 2i64).input(strings(&[1], &["1abab2ab"]))
        .input(strings(&[], &["ab"])).gives(t(&[3, 2], &[0i64, 0, 0, 1, 0, 2])).gives(strings(&[3], &["1", "", "2ab"]))
        .gives(vector(&[1i64, 3]));
    nothing: Case::op("StringSplitV2").input(strings(&[0], &[])).input(strings(&[], &[""]))
        .gives(t::<i64>(&[0, 2], &[])).gives(strings(&[0], &[])).gives(vector(&[0i64, 0]));
    scalar_input: Case::op("StringSplitV2").input(strings(&[], &["a b"])).input(strings(&[], &[""]))
        .fails(Code::InvalidArgument);
    set_of_characters: Case::op("StringSplit").input(strings(&[2], &["a b  c", " x,y,,z "])).input(strings(&[], &[", "]))
        .gives(t(&[6, 2], &[0i64, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2])).gives(strings(&[6], &["a", "b", "c", "x", "y", "z"]))
        .gives(vector(&[2i64, 3]));
    empty_parts: Case::op("StringSplit").attr("skip_empty", false).input(strings(&[1], &["a b  c"]))
        .input(strings(&[], &[" "])).gives(t(&[4, 2], &[0i64, 0, 0, 1, 0, 2, 0, 3]))
        .gives(strings(&[4], &["a", "b", "", "c"])).gives(vector(&[1i64, 4]));
}
