//! Joining, cutting, measuring and changing the case of strings.

use super::{character_starts, map};
use crate::movement::{broadcast, row_major};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, bail, ensure};

const TEXT: Op = Op {
    shape: shapes::unchanged,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StringJoin",
        shape: join_shape,
        kernels: &[Kernel::native(join)],
        ..TEXT
    },
    &Op {
        name: "StringLength",
        kernels: &[Kernel::native(length)],
        ..TEXT
    },
    &Op {
        name: "StringLower",
        kernels: &[Kernel::native(|context| change_case(context, false))],
        ..TEXT
    },
    &Op {
        name: "StringUpper",
        kernels: &[Kernel::native(|context| change_case(context, true))],
        ..TEXT
    },
    &Op {
        name: "StringStrip",
        kernels: &[Kernel::native(|context| {
            let stripped = map(context.input(0)?, |text| Ok(strip(text).into()))?;
            context.set_output(0, stripped)
        })],
        ..TEXT
    },
    &Op {
        name: "Substr",
        shape: part_shape,
        kernels: &[Kernel::native(part)],
        ..TEXT
    },
    &Op {
        name: "ReduceJoin",
        shape: reduce_shape,
        kernels: &[Kernel::native(reduce)],
        ..TEXT
    },
    &Op {
        name: "StringFormat",
        shape: shapes::scalar,
        kernels: &[Kernel::native(format)],
        ..TEXT
    },
];

/// The text without white space at its ends.
pub fn strip(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    &text[start..end]
}

/// All inputs that are not scalars have one shape.
fn join_shape(context: &mut ShapeContext) -> Result<()> {
    let mut shape = PartialShape::scalar();
    let mut known = true;
    for input in context.inputs() {
        match input.rank() {
            None => known = false,
            Some(0) => {}
            Some(_) if shape.rank() == Some(0) => shape = input.clone(),
            Some(_) => shape = shape.merge(input)?,
        }
    }
    if known || shape.rank() != Some(0) {
        context.set_output(0, shape);
    }
    Ok(())
}

fn join(context: &mut KernelContext) -> Result<()> {
    let separator = context.attrs().bytes("separator")?;
    let inputs = context.input_tensors(0..context.num_inputs())?;
    let shape = inputs
        .iter()
        .map(|input| input.shape())
        .find(|shape| !shape.is_scalar());
    let shape = shape.cloned().unwrap_or_else(Shape::scalar);
    let parts: Vec<&[TString]> = inputs
        .iter()
        .map(|input| input.strings())
        .collect::<Result<_>>()?;
    let element = |index: usize| {
        let pieces: Vec<&[u8]> = parts
            .iter()
            .zip(&inputs)
            .map(|(part, input)| part[if input.rank() == 0 { 0 } else { index }].as_bytes())
            .collect();
        TString::from(&pieces.join(separator)[..])
    };
    let joined = (0..shape.num_elements()).map(element).collect();
    context.set_output(0, Tensor::from_strings(shape, joined)?)
}

/// Whether the attribute `unit` asks for characters instead of bytes.
fn in_characters(context: &KernelContext) -> Result<bool> {
    Ok(context.attrs().string("unit")? == "UTF8_CHAR")
}

fn length(context: &mut KernelContext) -> Result<()> {
    let characters = in_characters(context)?;
    let input = context.input(0)?;
    let count = |text: &TString| {
        let bytes = text.as_bytes();
        let count = if characters {
            character_starts(bytes).len() - 1
        } else {
            bytes.len()
        };
        count as i32
    };
    let counts: Vec<i32> = input.strings()?.iter().map(count).collect();
    let output = Tensor::from_slice(input.shape().clone(), &counts)?;
    context.set_output(0, output)
}

fn change_case(context: &mut KernelContext, upper: bool) -> Result<()> {
    let unicode = match context.attrs().string("encoding")? {
        "" => false,
        "utf-8" => true,
        other => bail!(
            InvalidArgument,
            "only utf-8 or '' (no encoding) is supported, received {other}"
        ),
    };
    let changed = map(context.input(0)?, |text| {
        Ok(match (unicode, upper) {
            (false, true) => text.to_ascii_uppercase()[..].into(),
            (false, false) => text.to_ascii_lowercase()[..].into(),
            (true, true) => String::from_utf8_lossy(text).to_uppercase().into(),
            (true, false) => String::from_utf8_lossy(text).to_lowercase().into(),
        })
    })?;
    context.set_output(0, changed)
}

fn part_shape(context: &mut ShapeContext) -> Result<()> {
    context.input(1).merge(&context.input(2))?;
    let output = shapes::broadcast(&context.input(0), &context.input(1))?;
    context.set_output(0, output);
    Ok(())
}

/// `len` units from `pos` on; a negative position counts from the end. INVALID_ARGUMENT for one outside.
fn part(context: &mut KernelContext) -> Result<()> {
    let characters = in_characters(context)?;
    let shape = context.output_shape(0)?.clone();
    let input = broadcast(context.input(0)?, shape.clone())?;
    let positions = broadcast(context.input(1)?, shape.clone())?.to_i64_vec()?;
    let lengths = broadcast(context.input(2)?, shape.clone())?.to_i64_vec()?;
    let mut parts = Vec::with_capacity(positions.len());
    for (index, text) in input.strings()?.iter().enumerate() {
        let text = text.as_bytes();
        let starts = if characters {
            character_starts(text)
        } else {
            (0..=text.len()).collect()
        };
        let count = starts.len() as i64 - 1;
        let position = positions[index];
        let first = if position < 0 { position + count } else { position };
        ensure!(
            (0..=count).contains(&first),
            InvalidArgument,
            "pos {position} out of range for string b'{}' at index {index}",
            String::from_utf8_lossy(text)
        );
        let last = first + lengths[index].clamp(0, count - first);
        parts.push(TString::from(
            &text[starts[first as usize]..starts[last as usize]],
        ));
    }
    context.set_output(0, Tensor::from_strings(shape, parts)?)
}

/// The axes to join, in the order given; all from the last to the first if none is.
fn joined_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(axes.len());
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            OutOfRange,
            "Invalid reduction dimension {axis} for input with {rank} dimension(s)"
        );
        ensure!(
            !places.contains(&(place as usize)),
            InvalidArgument,
            "Duplicate reduction dimension {axis}"
        );
        places.push(place as usize);
    }
    Ok(places)
}

fn reduced(dims: &[i64], axes: &[usize], keep: bool) -> Vec<i64> {
    let extents = dims.iter().enumerate();
    let kept = extents.filter_map(|(axis, &extent)| match axes.contains(&axis) {
        true if keep => Some(1),
        true => None,
        false => Some(extent),
    });
    kept.collect()
}

fn reduce_shape(context: &mut ShapeContext) -> Result<()> {
    let keep = context.attrs().bool("keep_dims")?;
    let (input, axes) = (context.input(0), context.input_as_i64s(1)?);
    if let (Some(dims), Some(axes)) = (input.dims(), axes) {
        let axes = joined_axes(&axes, dims.len())?;
        context.set_output(0, PartialShape::new(&reduced(dims, &axes, keep)));
    } else if let (Some(rank), true) = (input.rank(), keep) {
        context.set_output(0, PartialShape::of_rank(rank));
    }
    Ok(())
}

fn reduce(context: &mut KernelContext) -> Result<()> {
    let separator = context.attrs().bytes("separator")?;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let (dims, texts) = (input.dims(), input.strings()?);
    let axes = joined_axes(&context.input_i64s(1)?, dims.len())?;
    let strides = row_major(dims);
    let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
    // The axis that is named first changes fastest.
    let inner_last: Vec<usize> = axes.iter().rev().copied().collect();
    let joined = positions(dims, &strides, &inner_last);
    let starts = positions(dims, &strides, &kept);
    let element = |start: &usize| {
        let pieces: Vec<&[u8]> = joined
            .iter()
            .map(|offset| texts[start + offset].as_bytes())
            .collect();
        TString::from(&pieces.join(separator)[..])
    };
    let output = Tensor::from_strings(shape, starts.iter().map(element).collect())?;
    context.set_output(0, output)
}

/// Offsets of all positions along some axes, the last axis fastest.
fn positions(dims: &[i64], strides: &[i64], axes: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    for &axis in axes {
        let steps = |start: usize| (0..dims[axis]).map(move |i| start + (i * strides[axis]) as usize);
        offsets = offsets.into_iter().flat_map(steps).collect();
    }
    offsets
}

/// The template with each placeholder replaced by a summary of a tensor.
fn format(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (template, placeholder) = (attrs.string("template")?, attrs.string("placeholder")?);
    let summarize = attrs.int("summarize")?;
    let mut pieces = template.split(placeholder);
    let mut text = pieces.next().unwrap_or("").to_string();
    let count = template.matches(placeholder).count();
    ensure!(
        count == context.num_inputs(),
        InvalidArgument,
        "num placeholders in template and num inputs must match: {count} vs. {}",
        context.num_inputs()
    );
    for (index, piece) in pieces.enumerate() {
        text.push_str(&context.input(index)?.summarize_ends(summarize));
        text.push_str(piece);
    }
    context.set_output(0, Tensor::from_strings(Shape::scalar(), vec![text.into()])?)
}

crate::op_cases! {
    joined: Case::op("StringJoin").inputs([strings(&[2], &["a", "b"]), strings(&[], &["x"])]).attr("separator", "-")
        .gives(strings(&[2], &["a-x", "b-x"]));
    joined_alone: Case::op("StringJoin").input(strings(&[], &["a"])).attr("separator", "-").gives(strings(&[], &["a"]));
    joined_misfits: Case::op("StringJoin").inputs([strings(&[2], &["a", "b"]), strings(&[1], &["x"])])
        .fails(Code::InvalidArgument);
    bytes: Case::op("StringLength").input(strings(&[2], &["aé", ""])).gives(vector(&[3, 0]));
    characters: Case::op("StringLength").input(strings(&[2], &["aé€", ""])).attr("unit", "UTF8_CHAR").gives(vector(&[3, 0]));
    lower: Case::op("StringLower").input(strings(&[1], &["AÉ"])).gives(strings(&[1], &["aÉ"]));
    lower_unicode: Case::op("StringLower").input(strings(&[1], &["AÉ"])).attr("encoding", "utf-8").gives(strings(&[1], &["aé"]));
    lower_in_latin: Case::op("StringLower").input(strings(&[1], &["A"])).attr("encoding", "latin1").fails(Code::InvalidArgument);
    upper: Case::op("StringUpper").input(strings(&[0], &[]));
    upper_unicode: Case::op("StringUpper").input(strings(&[1], &["aé"])).attr("encoding", "utf-8");
    stripped: Case::op("StringStrip").input(strings(&[3], &[" a b\n", "", "\t"])).gives(strings(&[3], &["a b", "", ""]));
    cut: Case::op("Substr").inputs([strings(&[2], &["hello", "w"]), scalar(0), scalar(3)]).gives(strings(&[2], &["hel", "w"]));
    cut_from_end: Case::op("Substr").inputs([strings(&[2], &["hello", "wo"]), vector(&[-3, 1]), vector(&[2, 9])]);
    cut_characters: Case::op("Substr").inputs([strings(&[], &["aé€b"]), scalar(1i64), scalar(2i64)]).attr("unit", "UTF8_CHAR");
    cut_outside: Case::op("Substr").inputs([strings(&[1], &["hello"]), scalar(6), scalar(1)]).fails(Code::InvalidArgument);
    reduced_rows: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[1])]).attr("separator", "+")
        .gives(strings(&[2], &["a+b", "c+d"]));
    reduced_in_order: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[0, 1])])
        .gives(strings(&[], &["acbd"]));
    reduced_turned: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[1, 0])]).attr("keep_dims", true)
        .gives(strings(&[1, 1], &["abcd"]));
    reduced_outside: Case::op("ReduceJoin").inputs([strings(&[1], &["a"]), vector(&[1])]).fails(Code::OutOfRange);
    formatted: Case::op("StringFormat").inputs([vector(&[1, 2]), scalar(0.5f32)]).attr("template", "a {} b {}").attr("placeholder", "{}")
        .gives(strings(&[], &["a [1 2] b 0.5"]));
    formatted_short: Case::op("StringFormat").input(scalar(1)).attr("template", "none").attr("placeholder", "{}")
        .fails(Code::InvalidArgument);
}
