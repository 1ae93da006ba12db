//! Opcodes that move elements by fixed rules: broadcast, reshape, transpose, slice, concatenate, pad.

use super::{Query, axis, axis_set, wrong_attributes};
use crate::attributes::{Attributes, PadDimension};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{Result, ensure, status};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    let operand = query.array(0)?;
    match (query.opcode, query.attributes) {
        (Opcode::Broadcast, Attributes::Dimensions(dimensions)) => broadcast(query, dimensions),
        (Opcode::Reshape, Attributes::None) => {
            let declared = query.declared()?.as_array()?;
            ensure!(
                declared.dtype == operand.dtype && declared.num_elements() == operand.num_elements(),
                InvalidArgument,
                "Reshape operation has mismatched element counts: from={operand} to={declared}"
            );
            Ok(declared.clone().into())
        }
        (Opcode::Transpose, Attributes::Dimensions(permutation)) => {
            ensure!(
                permutation.len() == operand.rank(),
                InvalidArgument,
                "Transpose dimensions {permutation:?} are not a permutation for {operand}"
            );
            axis_set(permutation, operand.rank(), "Transpose dimension")?;
            let dims: Dims = permutation
                .iter()
                .map(|&axis| operand.dims[axis as usize])
                .collect();
            Ok(HloShape::array(operand.dtype, &dims))
        }
        (Opcode::Reverse, Attributes::Dimensions(dimensions)) => {
            axis_set(dimensions, operand.rank(), "Reverse dimension")?;
            Ok(operand.clone().into())
        }
        (Opcode::Slice, Attributes::Slice { start, limit, stride }) => slice(operand, start, limit, stride),
        (Opcode::DynamicSlice, Attributes::SliceSizes(sizes)) => dynamic_slice(query, sizes),
        (Opcode::DynamicUpdateSlice, Attributes::None) => dynamic_update_slice(query),
        (Opcode::Concatenate, Attributes::Dimension(dimension)) => concatenate(query, *dimension),
        (Opcode::Pad, Attributes::Pad(config)) => pad(query, config),
        _ => wrong_attributes(),
    }
}

fn broadcast(query: &Query, dimensions: &[i64]) -> Result<HloShape> {
    let operand = query.array(0)?;
    let declared = query.declared()?.as_array()?;
    ensure!(
        declared.dtype == operand.dtype && dimensions.len() == operand.rank(),
        InvalidArgument,
        "Broadcast dimensions {dimensions:?} do not take {operand} to {declared}"
    );
    axis_set(dimensions, declared.rank(), "Broadcast dimension")?;
    for (&extent, &to) in operand.dims.iter().zip(dimensions) {
        let target = declared.dims[to as usize];
        ensure!(
            extent == target || extent == 1,
            InvalidArgument,
            "Input dimension should be either 1 or equal to the output dimension it is broadcasting into; \
             the operand is {operand}, the result {declared}, the broadcast dimensions {dimensions:?}"
        );
    }
    Ok(declared.clone().into())
}

fn slice(operand: &ArrayShape, start: &[i64], limit: &[i64], stride: &[i64]) -> Result<HloShape> {
    let rank = operand.rank();
    ensure!(
        start.len() == rank && limit.len() == rank && stride.len() == rank,
        InvalidArgument,
        "Slice needs start, limit and stride for each dimension of {operand}"
    );
    let mut dims = Dims::new();
    for i in 0..rank {
        let (start, limit, stride, extent) = (start[i], limit[i], stride[i], operand.dims[i]);
        ensure!(stride >= 1, InvalidArgument, "Stride ({stride}) must be positive");
        ensure!(
            0 <= start && start <= limit && limit <= extent,
            InvalidArgument,
            "Slice {start}..{limit} is out of bounds for dimension {i} of {operand}"
        );
        dims.push(if limit == start {
            0
        } else {
            (limit - start - 1) / stride + 1
        });
    }
    Ok(HloShape::array(operand.dtype, &dims))
}

/// INVALID_ARGUMENT unless the operands from `first` on are one integer scalar for each axis of `operand`.
fn check_start_indices(query: &Query, operand: &ArrayShape, first: usize) -> Result<()> {
    let indices = &query.operands[first..];
    ensure!(
        indices.len() == operand.rank(),
        InvalidArgument,
        "{} start indices do not fit rank {} of {operand}",
        indices.len(),
        operand.rank()
    );
    for index in indices {
        let index = index.as_array()?;
        ensure!(
            index.is_scalar() && index.dtype.is_integer(),
            InvalidArgument,
            "Start indices must be integral scalars, got {index}"
        );
    }
    Ok(())
}

fn dynamic_slice(query: &Query, sizes: &[i64]) -> Result<HloShape> {
    let operand = query.array(0)?;
    check_start_indices(query, operand, 1)?;
    ensure!(
        sizes.len() == operand.rank()
            && sizes
                .iter()
                .zip(&operand.dims)
                .all(|(&size, &extent)| 0 <= size && size <= extent),
        InvalidArgument,
        "Slice sizes {sizes:?} do not fit {operand}"
    );
    Ok(HloShape::array(operand.dtype, sizes))
}

fn dynamic_update_slice(query: &Query) -> Result<HloShape> {
    let (operand, update) = (query.array(0)?, query.array(1)?);
    check_start_indices(query, operand, 2)?;
    ensure!(
        operand.dtype == update.dtype
            && operand.rank() == update.rank()
            && update
                .dims
                .iter()
                .zip(&operand.dims)
                .all(|(size, extent)| size <= extent),
        InvalidArgument,
        "Update {update} does not fit into {operand}"
    );
    Ok(operand.clone().into())
}

fn concatenate(query: &Query, dimension: i64) -> Result<HloShape> {
    let arrays = query.arrays()?;
    let first = arrays[0];
    let dimension = axis(dimension, first.rank(), "Concatenate dimension")?;
    let mut total: i64 = 0;
    for array in &arrays {
        let fits = array.dtype == first.dtype
            && array.rank() == first.rank()
            && (0..first.rank()).all(|i| i == dimension || array.dims[i] == first.dims[i]);
        ensure!(
            fits,
            InvalidArgument,
            "Cannot concatenate arrays that differ in dimensions other than the one being concatenated ({dimension}): {first} and {array}"
        );
        total = total
            .checked_add(array.dims[dimension])
            .ok_or_else(|| status!(InvalidArgument, "Concatenated dimension {dimension} overflows"))?;
    }
    let mut shape = first.clone();
    shape.dims[dimension] = total;
    Ok(shape.into())
}

/// The extent after padding; negative when more is cut than there is. INVALID_ARGUMENT on overflow.
pub(super) fn padded_extent(extent: i64, pad: &PadDimension) -> Result<i64> {
    let interior = (extent - 1).max(0).checked_mul(pad.interior);
    interior
        .and_then(|interior| interior.checked_add(extent))
        .and_then(|sum| sum.checked_add(pad.low))
        .and_then(|sum| sum.checked_add(pad.high))
        .ok_or_else(|| status!(InvalidArgument, "Padded dimension of size {extent} overflows"))
}

fn pad(query: &Query, config: &[PadDimension]) -> Result<HloShape> {
    let (operand, value) = (query.array(0)?, query.array(1)?);
    ensure!(
        value.is_scalar() && value.dtype == operand.dtype,
        InvalidArgument,
        "The padding value {value} is not a scalar of the type of {operand}"
    );
    ensure!(
        config.len() == operand.rank(),
        InvalidArgument,
        "The padding configuration has {} dimensions for {operand}",
        config.len()
    );
    let mut dims = Dims::new();
    for (i, (pad, &extent)) in config.iter().zip(&operand.dims).enumerate() {
        ensure!(
            pad.interior >= 0,
            InvalidArgument,
            "Interior padding cannot be negative: {}",
            pad.interior
        );
        let padded = padded_extent(extent, pad)?;
        ensure!(
            padded >= 0,
            InvalidArgument,
            "Padding results in negative size for dimension {i} of {operand}"
        );
        dims.push(padded);
    }
    Ok(HloShape::array(operand.dtype, &dims))
}
