//! Axes named by letters: their numbers, and values per axis, from one order of letters to another.

use crate::movement::Writer;
use ff_op::{Attrs, Gradient, Kernel, KernelContext, LowerContext, Op, PrepareContext, Prepared, shapes};
use ff_tensor::{DataType, Result, Tensor, ensure};
use std::sync::Arc;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "DataFormatDimMap",
        shape: shapes::unchanged,
        prepare: Some(formats),
        kernels: &[Kernel::native(map_axes)],
        lower: Some(lower_map_axes),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "DataFormatVecPermute",
        shape: shapes::unchanged,
        prepare: Some(formats),
        kernels: &[Kernel::native(permute)],
        lower: Some(lower_permute),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// Letters of the axes, before and after.
struct Formats {
    from: Vec<u8>,
    to: Vec<u8>,
}

fn formats(context: &PrepareContext) -> Result<Prepared> {
    Ok(Arc::new(formats_of(&context.node.attrs)?))
}

fn lower_map_axes(context: &mut LowerContext) -> Result<()> {
    let formats = formats_of(context.attrs())?;
    let table: Vec<i64> = formats
        .from
        .iter()
        .map(|&letter| place(&formats.to, letter) as i64)
        .collect();
    super::lower_movement::map_axes(context, &table)
}

fn lower_permute(context: &mut LowerContext) -> Result<()> {
    let formats = formats_of(context.attrs())?;
    let count = context.input_dims(0)?.first().map_or(0, |&count| count as usize);
    let order = order_of(&formats, count)?;
    super::lower_movement::permute_rows(context, &order)
}

/// The place that each row of the result comes from. INVALID_ARGUMENT unless there are `count` letters, perhaps without
/// those of batch and channels.
fn order_of(formats: &Formats, count: usize) -> Result<Vec<i64>> {
    let rank = formats.from.len();
    let kept = |format: &[u8]| -> Vec<u8> {
        let spatial = |letter: &&u8| count == rank || !matches!(letter, b'N' | b'C');
        format.iter().filter(spatial).copied().collect()
    };
    let (from, to) = (kept(&formats.from), kept(&formats.to));
    ensure!(
        from.len() == count,
        InvalidArgument,
        "Format must have {count} spatial dimensions"
    );
    Ok(to.iter().map(|&letter| place(&from, letter) as i64).collect())
}

fn formats_of(attrs: &Attrs) -> Result<Formats> {
    let (from, to) = (attrs.string("src_format")?, attrs.string("dst_format")?);
    for (format, name) in [(from, "Source"), (to, "Destination")] {
        ensure!(
            (4..=5).contains(&format.len()),
            InvalidArgument,
            "{name} format must be of length 4 or 5, received {format}"
        );
    }
    let sorted = |format: &str| {
        let mut letters = format.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    ensure!(
        sorted(from) == sorted(to),
        InvalidArgument,
        "Destination and source format must determine a permutation, got {from} and {to}"
    );
    Ok(Formats {
        from: from.as_bytes().to_vec(),
        to: to.as_bytes().to_vec(),
    })
}

/// The place of a letter; both formats have the same ones.
fn place(format: &[u8], letter: u8) -> usize {
    format.iter().position(|&other| other == letter).unwrap_or(0)
}

fn map_axes(context: &mut KernelContext) -> Result<()> {
    let formats: &Formats = context.prepared()?;
    let rank = formats.from.len() as i64;
    let axes = context.input_i64s(0)?;
    let mut mapped = Vec::with_capacity(axes.len());
    for axis in axes {
        ensure!(
            (-rank..rank).contains(&axis),
            InvalidArgument,
            "Dimension index {axis} is out of range [{}, {rank})",
            -rank
        );
        let letter = formats.from[axis.rem_euclid(rank) as usize];
        mapped.push(place(&formats.to, letter) as i64);
    }
    let shape = context.input(0)?.shape().clone();
    let output = match context.output_type(0) {
        DataType::INT64 => Tensor::from_slice(shape, &mapped)?,
        _ => Tensor::from_slice(shape, &mapped.iter().map(|&axis| axis as i32).collect::<Vec<_>>())?,
    };
    context.set_output(0, output)
}

/// Entries, or pairs, for all axes or for the spatial ones.
fn permute(context: &mut KernelContext) -> Result<()> {
    let formats: &Formats = context.prepared()?;
    let input = context.input(0)?;
    let rank = formats.from.len();
    ensure!(
        input.rank() == 1 || input.rank() == 2,
        InvalidArgument,
        "input must be a vector or 2D tensor, but got shape {}",
        input.shape()
    );
    let count = input.dims()[0] as usize;
    ensure!(
        count == rank || count == rank - 2,
        InvalidArgument,
        "{}D input must be of size {} or {rank}, but got shape {}",
        input.rank(),
        rank - 2,
        input.shape()
    );
    ensure!(
        input.rank() == 1 || input.dims()[1] == 2,
        InvalidArgument,
        "Second dimension of 2D input must be of size 2, but got shape {}",
        input.shape()
    );
    let order = order_of(formats, count)?;
    let width = input.num_elements() / count;
    let mut writer = Writer::new(input.dtype(), input.shape().clone())?;
    for (row, &from) in order.iter().enumerate() {
        writer.copy(row * width, input, from as usize * width, width)?;
    }
    let output = writer.finish()?;
    context.set_output(0, output)
}

crate::op_cases! {
    axes: Case::op("DataFormatDimMap").input(vector(&[-4, -3, -2, -1, 0, 1, 2, 3])).gives(vector(&[0, 2, 3, 1, 0, 2, 3, 1]));
    axes_back: Case::op("DataFormatDimMap").input(t(&[1, 2], &[1i64, 3])).attr("src_format", "NCHW").attr("dst_format", "NHWC");
    axes_of_volumes: Case::op("DataFormatDimMap").input(scalar(4)).attr("src_format", "NDHWC").attr("dst_format", "NCDHW");
    axes_of_nothing: Case::op("DataFormatDimMap").input(vector::<i32>(&[]));
    format_short: Case::op("DataFormatDimMap").input(scalar(0)).attr("src_format", "NHW").fails(Code::InvalidArgument);
    format_other: Case::op("DataFormatVecPermute").input(vector(&[1, 2, 3, 4])).attr("src_format", "NHWX").fails(Code::InvalidArgument);
    permuted: Case::op("DataFormatVecPermute").input(vector(&[7, 4, 9, 3])).gives(vector(&[7, 3, 4, 9]));
    permuted_pairs: Case::op("DataFormatVecPermute").input(t(&[4, 2], &[7i64, 4, 9, 3, 1, 2, 5, 6])).attr("src_format", "NCHW").attr("dst_format", "NHWC");
    permuted_spatial: Case::op("DataFormatVecPermute").input(vector(&[7, 4])).attr("src_format", "HWNC").attr("dst_format", "NHWC").gives(vector(&[7, 4]));
    permuted_wrong_size: Case::op("DataFormatVecPermute").input(vector(&[7, 4, 1])).fails(Code::InvalidArgument);
    permuted_scalar: Case::op("DataFormatVecPermute").input(scalar(7)).fails(Code::InvalidArgument);
}
