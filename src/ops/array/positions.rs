//! Positions from flat numbers (`UnravelIndex`), and fingerprints of rows (`Fingerprint`).

use super::shape::of_type;
use crate::movement::row_major;
use crate::string::fingerprint64;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "UnravelIndex",
        shape: |context| {
            let (indices, dims) = (context.input(0), context.input_with_rank(1, 1)?);
            let shape = match indices.rank() {
                None => PartialShape::unknown(),
                Some(0) => dims,
                Some(_) => PartialShape::new(&[dims.dim(0), indices.num_elements()]),
            };
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(unravel)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "Fingerprint",
        shape: fingerprint_shape,
        kernels: &[Kernel::native(fingerprint)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn unravel(context: &mut KernelContext) -> Result<()> {
    let (indices, dims) = (context.input_i64s(0)?, context.input_i64s(1)?);
    let rank = context.input(0)?.rank();
    ensure!(
        !indices.is_empty() && !dims.is_empty(),
        InvalidArgument,
        "received empty tensor indices or dims"
    );
    ensure!(
        rank <= 1,
        InvalidArgument,
        "The indices can only be scalar or vector, got \"{}\"",
        context.input(0)?.shape()
    );
    ensure!(
        !dims.contains(&0),
        InvalidArgument,
        "Input dims cannot contain a dim of zero, but dims contains zero"
    );
    let total = dims
        .iter()
        .try_fold(1i64, |total, &extent| total.checked_mul(extent));
    let total = total.filter(|&total| total >= 0);
    let narrow = context.input(1)?.dtype() == ff_tensor::DataType::INT32;
    let most = if narrow { i64::from(i32::MAX) } else { i64::MAX };
    ensure!(
        total.is_none_or(|total| total <= most),
        InvalidArgument,
        "Input dims product is causing integer overflow: {dims:?}"
    );
    ensure!(
        total.is_some_and(|total| indices.iter().all(|&index| index < total)),
        InvalidArgument,
        "index is out of bound as with dims"
    );
    let strides = row_major(&dims);
    let mut found = Vec::with_capacity(dims.len() * indices.len());
    for (&stride, &extent) in strides.iter().zip(&dims) {
        found.extend(indices.iter().map(|index| index / stride % extent));
    }
    let shape = match rank {
        0 => Shape::vector(dims.len()),
        _ => Shape::new(&[dims.len() as i64, indices.len() as i64])?,
    };
    context.set_output(0, of_type(context.output_type(0), shape, &found)?)
}

fn fingerprint_shape(context: &mut ShapeContext) -> Result<()> {
    let data = context.input_with_rank_at_least(0, 1)?;
    context.input_with_rank(1, 0)?;
    let width = match context.input_value(1) {
        Some(method)
            if method
                .strings()?
                .first()
                .is_some_and(|name| name.as_bytes() == b"farmhash64") =>
        {
            8
        }
        Some(_) => ff_tensor::bail!(InvalidArgument, "unsupported method"),
        None => dim::UNKNOWN,
    };
    context.set_output(0, PartialShape::new(&[data.dim(0), width]));
    Ok(())
}

/// The hash of each row's bytes; of strings, of their hashes.
fn fingerprint(context: &mut KernelContext) -> Result<()> {
    let data = context.input(0)?;
    let rows = data.dims()[0] as usize;
    let bytes: Vec<u8> = if data.dtype() == DataType::STRING {
        let hashes = data
            .strings()?
            .iter()
            .map(|string| fingerprint64(string.as_bytes()).to_le_bytes());
        hashes.flatten().collect()
    } else {
        data.bytes().to_vec()
    };
    let hashes: Vec<u8> = if data.dtype() == DataType::STRING && data.rank() == 1 {
        bytes
    } else {
        let width = bytes.len() / rows.max(1);
        let row = |row: usize| fingerprint64(&bytes[row * width..(row + 1) * width]).to_le_bytes();
        (0..rows).flat_map(row).collect()
    };
    context.set_output(0, Tensor::from_slice(Shape::new(&[rows as i64, 8])?, &hashes)?)
}

crate::op_cases! {
    positions: Case::op("UnravelIndex").inputs([vector(&[22, 41, 37]), vector(&[7, 6])]).gives(t(&[2, 3], &[3, 6, 6, 4, 5, 1]));
    position: Case::op("UnravelIndex").inputs([scalar(1621i64), vector(&[6i64, 7, 8, 9])]).gives(vector(&[3i64, 1, 4, 1]));
    position_of_nothing: Case::op("UnravelIndex").inputs([vector::<i32>(&[]), vector(&[6, 7])]).fails(Code::InvalidArgument);
    position_outside: Case::op("UnravelIndex").inputs([scalar(6), vector(&[2, 3])]).fails(Code::InvalidArgument);
    position_negative: Case::op("UnravelIndex").inputs([scalar(-7), vector(&[2, 3])]).gives(vector(&[0, -1]));
    position_in_zero: Case::op("UnravelIndex").inputs([scalar(0), vector(&[2, 0])]).fails(Code::InvalidArgument);
    position_matrix: Case::op("UnravelIndex").inputs([t(&[1, 1], &[1]), vector(&[2, 2])]).fails(Code::InvalidArgument);
    prints: Case::op("Fingerprint").inputs([t(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]), strings(&[], &["farmhash64"])]);
    prints_of_strings: Case::op("Fingerprint").inputs([strings(&[2], &["abc", ""]), strings(&[], &["farmhash64"])]);
    prints_of_string_rows: Case::op("Fingerprint").inputs([strings(&[2, 2], &["abc", "", "d", "efg"]), strings(&[], &["farmhash64"])]);
    print_of_scalar: Case::op("Fingerprint").inputs([scalar(1), strings(&[], &["farmhash64"])]).fails(Code::InvalidArgument);
    print_by_another: Case::op("Fingerprint").inputs([vector(&[1]), strings(&[], &["md5"])]).fails(Code::InvalidArgument);
}
