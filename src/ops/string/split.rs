//! Splitting strings into sparse matrices of parts.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StringSplit",
        kernels: &[Kernel::native(split_at_any)],
        ..SPLIT
    },
    &Op {
        name: "StringSplitV2",
        kernels: &[Kernel::native(split_at_text)],
        ..SPLIT
    },
];

const SPLIT: Op = Op {
    shape,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

fn shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 1)?;
    context.input_with_rank(1, 0)?;
    context.set_output(0, PartialShape::new(&[dim::UNKNOWN, 2]));
    context.set_output(1, PartialShape::of_rank(1));
    context.set_output(2, PartialShape::new(&[2]));
    Ok(())
}

/// Sets indices, values and dense shape of the parts of each string.
fn set_parts(context: &mut KernelContext, rows: Vec<Vec<Vec<u8>>>) -> Result<()> {
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let dense = Tensor::vector(&[rows.len() as i64, widest as i64])?;
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (row, parts) in rows.into_iter().enumerate() {
        for (column, part) in parts.into_iter().enumerate() {
            indices.extend([row as i64, column as i64]);
            values.push(TString::from(&part[..]));
        }
    }
    let count = values.len();
    context.set_output(0, Tensor::from_slice(Shape::new(&[count as i64, 2])?, &indices)?)?;
    context.set_output(1, Tensor::from_strings(Shape::vector(count), values)?)?;
    context.set_output(2, dense)
}

/// Splits at any byte of the delimiter; an empty one separates all bytes.
fn split_at_any(context: &mut KernelContext) -> Result<()> {
    let skip_empty = context.attrs().bool("skip_empty")?;
    let delimiters = context.input(1)?.strings()?[0].as_bytes().to_vec();
    let rows = context.input(0)?.strings()?.iter().map(|text| {
        let text = text.as_bytes();
        if delimiters.is_empty() {
            return text.iter().map(|&byte| vec![byte]).collect();
        }
        if text.is_empty() {
            // Nothing has no parts, not even an empty one.
            return Vec::new();
        }
        let parts = text.split(|byte| delimiters.contains(byte));
        let parts = parts.filter(|part| !skip_empty || !part.is_empty());
        parts.map(<[u8]>::to_vec).collect()
    });
    let rows = rows.collect();
    set_parts(context, rows)
}

/// Splits at most `limit` times (without limit if negative) at a text, or at white space if it is empty.
fn parts_of(text: &[u8], separator: &[u8], limit: i64) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = text;
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    if limit == 0 {
        return vec![text.to_vec()];
    }
    if separator.is_empty() {
        let skip = |text: &[u8]| text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
        rest = &rest[skip(rest)..];
        while !rest.is_empty() {
            let end = rest.iter().position(blank).unwrap_or(rest.len());
            parts.push(rest[..end].to_vec());
            rest = &rest[end..];
            rest = &rest[skip(rest)..];
            if parts.len() as i64 == limit {
                // What is left is a part even if nothing is.
                parts.push(rest.to_vec());
                break;
            }
        }
        return parts;
    }
    while limit < 0 || (parts.len() as i64) < limit {
        let found = rest
            .windows(separator.len())
            .position(|window| window == separator);
        let Some(at) = found else { break };
        parts.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

fn split_at_text(context: &mut KernelContext) -> Result<()> {
    let limit = context.attrs().int("maxsplit")?;
    let separator = context.input(1)?;
    ensure!(
        separator.num_elements() == 1,
        InvalidArgument,
        "sep must be a scalar, got shape: {}",
        separator.shape()
    );
    let separator = separator.strings()?[0].as_bytes().to_vec();
    let texts = context.input(0)?.strings()?.iter();
    let rows = texts
        .map(|text| parts_of(text.as_bytes(), &separator, limit))
        .collect();
    set_parts(context, rows)
}

crate::op_cases! {
    at_any: Case::op("StringSplit").inputs([strings(&[3], &["a,b c", "", ",x"]), strings(&[], &[", "])]);
    at_any_keeping_empty: Case::op("StringSplit").inputs([strings(&[2], &["a,,b", ""]), strings(&[], &[","])]).attr("skip_empty", false);
    at_every_byte: Case::op("StringSplit").inputs([strings(&[1], &["abc"]), strings(&[], &[""])]);
    at_any_of_matrix: Case::op("StringSplit").inputs([strings(&[1, 1], &["abc"]), strings(&[], &[""])]).fails(Code::InvalidArgument);
    at_text: Case::op("StringSplitV2").inputs([strings(&[3], &["a<>b<><>c", "", "<>"]), strings(&[], &["<>"])]);
    at_blanks: Case::op("StringSplitV2").inputs([strings(&[3], &["  a b\t\nc ", "", " "]), strings(&[], &[""])]);
    at_most_once: Case::op("StringSplitV2").inputs([strings(&[2], &["a b  c ", "x"]), strings(&[], &[""])]).attr("maxsplit", 1i64);
    at_text_at_most_once: Case::op("StringSplitV2").inputs([strings(&[1], &["a,b,c"]), strings(&[], &[","])]).attr("maxsplit", 1i64);
    at_texts: Case::op("StringSplitV2").inputs([strings(&[1], &["a"]), strings(&[2], &[",", ";"])]).fails(Code::InvalidArgument);
}
