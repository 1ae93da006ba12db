//! `Substr`: parts of strings by position and length, in bytes or characters.

use super::length::starts_character;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "Substr",
    shape,
    kernels: &[Kernel::native(substr)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let (position, length) = (context.input(1), context.input(2));
    if let (Some(a), Some(b)) = (position.dims(), length.dims()) {
        let differ = |(a, b): (&i64, &i64)| *a >= 0 && *b >= 0 && a != b;
        ensure!(
            a.len() == b.len() && !a.iter().zip(b).any(differ),
            InvalidArgument,
            "pos and len should have the same shape, got: {position} vs. {length}"
        );
    }
    ff_op::shapes::broadcast_binary(context)
}

fn substr(context: &mut KernelContext) -> Result<()> {
    let characters = context.attrs().bytes("unit")? == b"UTF8_CHAR";
    let (positions, lengths) = (context.input_i64s(1)?, context.input_i64s(2)?);
    let input = context.input(0)?;
    let position_shape = context.input(1)?.shape();
    let shape = broadcast(input.shape(), position_shape)?;
    let strings = input.strings()?;
    let (of_strings, of_positions) = (strides(input.shape(), &shape), strides(position_shape, &shape));
    let mut parts = Vec::new();
    for index in 0..shape.num_elements() {
        let string = strings[offset(index, &shape, &of_strings)].as_bytes();
        let at = offset(index, &shape, &of_positions);
        let (position, length) = (positions[at], lengths[at]);
        let part = match characters {
            true => by_characters(string, position, length),
            false => by_bytes(string, position, length),
        };
        let Some(part) = part else {
            let text = match characters {
                true => String::new(),
                false => format!(" b'{}'", String::from_utf8_lossy(string)),
            };
            bail!(
                InvalidArgument,
                "pos {position} out of range for string{text} at index {index}"
            );
        };
        parts.push(part.into());
    }
    context.set_output(0, Tensor::from_strings(shape, parts)?)
}

fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    let shape = ff_op::shapes::broadcast(&PartialShape::from(a), &PartialShape::from(b))?;
    Shape::new(shape.dims().unwrap_or(&[]))
}

/// Elements between neighbours along each axis of `shape` in a tensor that is broadcast to it.
fn strides(from: &Shape, shape: &Shape) -> Vec<usize> {
    let mut strides = vec![0; shape.rank()];
    let mut step = 1;
    for (axis, &extent) in from.dims().iter().enumerate().rev() {
        if extent != 1 {
            strides[axis + shape.rank() - from.rank()] = step;
        }
        step *= extent as usize;
    }
    strides
}

fn offset(mut index: usize, shape: &Shape, strides: &[usize]) -> usize {
    let mut offset = 0;
    for axis in (0..shape.rank()).rev() {
        offset += index % shape.dim(axis) * strides[axis];
        index /= shape.dim(axis);
    }
    offset
}

/// A negative position counts from the end; a negative length means all of the rest.
fn by_bytes(string: &[u8], position: i64, length: i64) -> Option<&[u8]> {
    let size = string.len() as i64;
    let start = if position < 0 { position + size } else { position };
    if !(0..=size).contains(&start) {
        return None;
    }
    let rest = &string[start as usize..];
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    Some(&rest[..length.min(rest.len())])
}

/// As `by_bytes`, but a negative length means nothing.
fn by_characters(string: &[u8], position: i64, length: i64) -> Option<&[u8]> {
    let mut starts: Vec<usize> = (0..string.len())
        .filter(|&at| at == 0 || starts_character(string[at]))
        .collect();
    let size = starts.len() as i64;
    starts.push(string.len());
    let start = if position < 0 { position + size } else { position };
    if !(0..=size).contains(&start) {
        return None;
    }
    let end = start.saturating_add(length.max(0)).min(size);
    Some(&string[starts[start as usize]..starts[end as usize]])
}

crate::op_cases! {
    bytes: Case::op("Substr").input(strings(&[2], &["hello", "world"])).input(vector(&[1, 2])).input(vector(&[2, 3]))
        .gives(strings(&[2], &["el", "rld"]));
    characters: Case::op("Substr").attr("unit", "UTF8_CHAR").input(strings(&[], &["héλo"])).input(vector(&[1, -2, 4]))
        .input(vector(&[2, 9, 1])).gives(strings(&[3], &["éλ", "λo", ""]));
    broadcast_both: Case::op("Substr").input(strings(&[2, 1], &["hello", "world"])).input(vector(&[1, 2]))
        .input(vector(&[2, 3])).gives(strings(&[2, 2], &["el", "llo", "or", "rld"]));
    negative_length_is_the_rest: Case::op("Substr").input(strings(&[], &["hello"])).input(scalar(1i64))
        .input(scalar(-1i64)).gives(strings(&[], &["ello"]));
    negative_length_is_nothing: Case::op("Substr").attr("unit", "UTF8_CHAR").input(strings(&[], &["hello"]))
        .input(scalar(1)).input(scalar(-1)).gives(strings(&[], &[""]));
    at_the_end: Case::op("Substr").input(strings(&[], &["hello"])).input(scalar(5)).input(scalar(1))
        .gives(strings(&[], &[""]));
    beyond: Case::op("Substr").input(strings(&[], &["hello"])).input(scalar(6)).input(scalar(1))
        .fails(Code::InvalidArgument);
    too_far_back: Case::op("Substr").attr("unit", "UTF8_CHAR").input(strings(&[], &["héλo"])).input(scalar(-5))
        .input(scalar(1)).fails(Code::InvalidArgument);
    shapes_differ: Case::op("Substr").input(strings(&[], &["hello"])).input(vector(&[1, 2])).input(vector(&[2]))
        .fails(Code::InvalidArgument);
    nothing: Case::op("Substr").input(strings(&[0], &[])).input(scalar(1)).input(scalar(1)).gives(strings(&[0], &[]));
}
