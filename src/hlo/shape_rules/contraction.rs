//! Opcodes that combine elements along whole axes: dot, reduce, fft, cholesky, triangular-solve.

use super::{Query, array_or_tuple, axis_set, check_reducer, wrong_attributes};
use crate::attributes::{Attributes, DotDims, FftKind, TriangularSolveOptions};
use crate::module::ComputationId;
use crate::opcode::{Opcode, Types};
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{DataType, Result, bail, ensure};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match (query.opcode, query.attributes) {
        (Opcode::Dot, Attributes::Dot(dims)) => dot(query, dims),
        (
            Opcode::Reduce,
            Attributes::Reduce {
                dimensions,
                computation,
            },
        ) => reduce(query, dimensions, *computation),
        (Opcode::Fft, Attributes::Fft { kind, lengths }) => fft(query, *kind, lengths),
        (Opcode::Cholesky, Attributes::Cholesky { .. }) => {
            let operand = query.array(0)?;
            ensure_square(operand)?;
            Ok(operand.clone().into())
        }
        (Opcode::TriangularSolve, Attributes::TriangularSolve(options)) => triangular_solve(query, options),
        _ => wrong_attributes(),
    }
}

fn dot(query: &Query, dims: &DotDims) -> Result<HloShape> {
    let (lhs, rhs) = (query.array(0)?, query.array(1)?);
    ensure!(
        Types::NumberOrPred.accept(rhs.dtype) && (lhs.dtype == rhs.dtype || query.declared.is_some()),
        InvalidArgument,
        "Element types of {lhs} and {rhs} do not go together"
    );
    ensure!(
        dims.lhs_batch.len() == dims.rhs_batch.len()
            && dims.lhs_contracting.len() == dims.rhs_contracting.len(),
        InvalidArgument,
        "Must specify the same number of batch and contracting dimensions for both operands: {dims:?}"
    );
    let lhs_used: Dims = dims
        .lhs_batch
        .iter()
        .chain(&dims.lhs_contracting)
        .copied()
        .collect();
    let rhs_used: Dims = dims
        .rhs_batch
        .iter()
        .chain(&dims.rhs_contracting)
        .copied()
        .collect();
    let lhs_set = axis_set(&lhs_used, lhs.rank(), "Dot dimension of the left operand")?;
    let rhs_set = axis_set(&rhs_used, rhs.rank(), "Dot dimension of the right operand")?;
    for (&l, &r) in lhs_used.iter().zip(&rhs_used) {
        ensure!(
            lhs.dims[l as usize] == rhs.dims[r as usize],
            InvalidArgument,
            "Dimension {l} of {lhs} and dimension {r} of {rhs} must be equal in a dot"
        );
    }
    let batch = dims.lhs_batch.iter().map(|&axis| lhs.dims[axis as usize]);
    let free = |shape: &ArrayShape, used: &[bool]| -> Dims {
        (0..shape.rank())
            .filter(|&i| !used[i])
            .map(|i| shape.dims[i])
            .collect()
    };
    let result: Dims = batch
        .chain(free(lhs, &lhs_set))
        .chain(free(rhs, &rhs_set))
        .collect();
    let dtype = match query.declared {
        Some(declared) => declared.as_array()?.dtype,
        None => lhs.dtype,
    };
    ensure!(
        Types::NumberOrPred.accept(dtype),
        InvalidArgument,
        "A dot cannot give elements of type {dtype}"
    );
    Ok(HloShape::array(dtype, &result))
}

fn reduce(query: &Query, dimensions: &[i64], computation: ComputationId) -> Result<HloShape> {
    let arrays = query.arrays()?;
    ensure!(
        arrays.len().is_multiple_of(2),
        InvalidArgument,
        "Reduce takes as many initial values as arrays, got {} operands",
        arrays.len()
    );
    let (inputs, inits) = arrays.split_at(arrays.len() / 2);
    for (input, init) in inputs.iter().zip(inits) {
        ensure!(
            input.dims == inputs[0].dims,
            InvalidArgument,
            "All reduced arrays must have the same dimensions, got {} and {input}",
            inputs[0]
        );
        ensure!(
            init.is_scalar() && init.dtype == input.dtype,
            InvalidArgument,
            "Initial value {init} does not fit reduced array {input}"
        );
    }
    let types: Vec<DataType> = inputs.iter().map(|input| input.dtype).collect();
    check_reducer(query.called(computation)?, &types)?;
    let gone = axis_set(dimensions, inputs[0].rank(), "Reduced dimension")?;
    let dims: Dims = (0..inputs[0].rank())
        .filter(|&i| !gone[i])
        .map(|i| inputs[0].dims[i])
        .collect();
    Ok(array_or_tuple(
        types.iter().map(|&dtype| ArrayShape::new(dtype, &dims)).collect(),
    ))
}

fn fft(query: &Query, kind: FftKind, lengths: &[i64]) -> Result<HloShape> {
    let operand = query.array(0)?;
    let transformed = lengths.len();
    ensure!(
        (1..=3).contains(&transformed) && operand.rank() >= transformed,
        InvalidArgument,
        "FFT of {transformed} dimensions does not fit {operand}"
    );
    let real_input = kind == FftKind::Rfft;
    ensure!(
        operand.dtype.is_complex() != real_input,
        InvalidArgument,
        "FFT of kind {kind:?} cannot take {operand}"
    );
    let batch = operand.rank() - transformed;
    for (i, &length) in lengths.iter().enumerate() {
        let last = i + 1 == transformed;
        let expected = if kind == FftKind::Irfft && last {
            length / 2 + 1
        } else {
            length
        };
        ensure!(
            operand.dims[batch + i] == expected || (length == 0 && operand.dims[batch + i] == 0),
            InvalidArgument,
            "FFT length {length} does not fit dimension {} of {operand}",
            batch + i
        );
    }
    let mut shape = operand.clone();
    let last = shape.rank() - 1;
    let length = lengths[transformed - 1];
    match (kind, operand.dtype) {
        (FftKind::Fft | FftKind::Ifft, _) => {}
        (FftKind::Rfft, DataType::FLOAT) => shape.dtype = DataType::COMPLEX64,
        (FftKind::Rfft, DataType::DOUBLE) => shape.dtype = DataType::COMPLEX128,
        (FftKind::Irfft, DataType::COMPLEX64) => shape.dtype = DataType::FLOAT,
        (FftKind::Irfft, DataType::COMPLEX128) => shape.dtype = DataType::DOUBLE,
        _ => bail!(InvalidArgument, "FFT of kind {kind:?} cannot take {operand}"),
    }
    match kind {
        FftKind::Rfft => shape.dims[last] = if length == 0 { 0 } else { length / 2 + 1 },
        FftKind::Irfft => shape.dims[last] = length,
        _ => {}
    }
    Ok(shape.into())
}

/// INVALID_ARGUMENT unless the last two extents are equal.
fn ensure_square(operand: &ArrayShape) -> Result<()> {
    let square = matches!(&operand.dims[..], [.., rows, columns] if rows == columns);
    ensure!(square, InvalidArgument, "Expected square matrices, got {operand}");
    Ok(())
}

fn triangular_solve(query: &Query, options: &TriangularSolveOptions) -> Result<HloShape> {
    let (a, b) = (query.array(0)?, query.array(1)?);
    ensure_square(a)?;
    ensure!(
        a.dtype == b.dtype && a.rank() == b.rank(),
        InvalidArgument,
        "Triangular solve needs operands of one type and rank, got {a} and {b}"
    );
    let batch = a.rank() - 2;
    let side = if options.left_side {
        b.dims[batch]
    } else {
        b.dims[batch + 1]
    };
    ensure!(
        a.dims[..batch] == b.dims[..batch] && side == a.dims[batch],
        InvalidArgument,
        "Triangular solve: {a} does not fit {b}"
    );
    Ok(b.clone().into())
}
