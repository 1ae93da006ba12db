//! Opcodes that move elements by values: gather, scatter, sort, topk.

use super::{Query, array_or_tuple, axis, axis_set, check_reducer, ensure_ascending, wrong_attributes};
use crate::attributes::{Attributes, GatherDims, ScatterDims};
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{DataType, Result, ensure};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match (query.opcode, query.attributes) {
        (Opcode::Gather, Attributes::Gather(dims)) => gather(query, dims),
        (Opcode::Scatter, Attributes::Scatter { dims, computation }) => scatter(query, dims, *computation),
        (
            Opcode::Sort,
            Attributes::Sort {
                dimension,
                computation,
                ..
            },
        ) => sort(query, *dimension, *computation),
        (Opcode::TopK, Attributes::TopK { k, .. }) => top_k(query, *k),
        _ => wrong_attributes(),
    }
}

/// The extents of the indices without the axis of their components, and the number of components.
fn index_dims(indices: &ArrayShape, index_vector_dim: i64) -> Result<(Dims, i64)> {
    ensure!(
        indices.dtype.is_integer(),
        InvalidArgument,
        "Indices must be integral, got {indices}"
    );
    let rank = indices.rank();
    ensure!(
        index_vector_dim >= 0 && index_vector_dim as usize <= rank,
        InvalidArgument,
        "Index vector dimension {index_vector_dim} is out of bounds for {indices}"
    );
    let at = index_vector_dim as usize;
    let mut batch = indices.dims.clone();
    let components = if at < rank { batch.remove(at) } else { 1 };
    Ok((batch, components))
}

/// The axes (by flags) along which operand and indices run together; INVALID_ARGUMENT unless their extents agree.
fn check_batching(
    operand: &ArrayShape,
    operand_axes: &[i64],
    indices: &ArrayShape,
    indices_axes: &[i64],
    index_vector_dim: i64,
) -> Result<()> {
    ensure!(
        operand_axes.len() == indices_axes.len(),
        InvalidArgument,
        "Batching dimensions {operand_axes:?} and {indices_axes:?} differ in number"
    );
    axis_set(indices_axes, indices.rank(), "Batching dimension")?;
    for (&a, &b) in operand_axes.iter().zip(indices_axes) {
        ensure!(
            b != index_vector_dim
                && operand.dims[axis(a, operand.rank(), "Batching dimension")?] == indices.dims[b as usize],
            InvalidArgument,
            "Batching dimension {a} of {operand} does not go with dimension {b} of {indices}"
        );
    }
    Ok(())
}

fn gather(query: &Query, dims: &GatherDims) -> Result<HloShape> {
    let (operand, indices) = (query.array(0)?, query.array(1)?);
    let rank = operand.rank();
    let (batch, components) = index_dims(indices, dims.index_vector_dim)?;
    ensure!(
        dims.start_index_map.len() as i64 == components,
        InvalidArgument,
        "Gather has {components} index components but start_index_map {:?}",
        dims.start_index_map
    );
    let mapped: Dims = dims
        .start_index_map
        .iter()
        .chain(&dims.operand_batching_dims)
        .copied()
        .collect();
    axis_set(&mapped, rank, "Gather's start_index_map or batching dimension")?;
    let dropped: Dims = dims
        .collapsed_slice_dims
        .iter()
        .chain(&dims.operand_batching_dims)
        .copied()
        .collect();
    let dropped = axis_set(&dropped, rank, "Gather's collapsed or batching dimension")?;
    ensure_ascending(&dims.collapsed_slice_dims, "Gather's collapsed_slice_dims")?;
    ensure_ascending(&dims.offset_dims, "Gather's offset_dims")?;
    check_batching(
        operand,
        &dims.operand_batching_dims,
        indices,
        &dims.start_indices_batching_dims,
        dims.index_vector_dim,
    )?;
    ensure!(
        dims.slice_sizes.len() == rank,
        InvalidArgument,
        "Gather's slice sizes {:?} do not fit {operand}",
        dims.slice_sizes
    );
    for (i, (&size, &extent)) in dims.slice_sizes.iter().zip(&operand.dims).enumerate() {
        ensure!(
            0 <= size && size <= extent && (!dropped[i] || size <= 1),
            InvalidArgument,
            "Gather's slice size {size} does not fit dimension {i} of {operand}"
        );
    }
    let offsets: Dims = (0..rank)
        .filter(|&i| !dropped[i])
        .map(|i| dims.slice_sizes[i])
        .collect();
    ensure!(
        offsets.len() == dims.offset_dims.len(),
        InvalidArgument,
        "Gather has {} offset dimensions in its slices but offset_dims {:?}",
        offsets.len(),
        dims.offset_dims
    );
    let result_rank = offsets.len() + batch.len();
    let is_offset = axis_set(&dims.offset_dims, result_rank, "Gather's offset dimension")?;
    let (mut offsets, mut batch) = (offsets.into_iter(), batch.into_iter());
    let result: Dims = is_offset
        .iter()
        .filter_map(|&offset| if offset { offsets.next() } else { batch.next() })
        .collect();
    Ok(HloShape::array(operand.dtype, &result))
}

fn scatter(query: &Query, dims: &ScatterDims, computation: ComputationId) -> Result<HloShape> {
    let arrays = query.arrays()?;
    ensure!(
        arrays.len() % 2 == 1,
        InvalidArgument,
        "Scatter takes as many updates as operands, and indices between them; got {} arrays",
        arrays.len()
    );
    let count = arrays.len() / 2;
    let (operands, indices, updates) = (&arrays[..count], arrays[count], &arrays[count + 1..]);
    let types: Vec<DataType> = operands.iter().map(|operand| operand.dtype).collect();
    check_reducer(query.called(computation)?, &types)?;
    for (operand, update) in operands.iter().zip(updates) {
        ensure!(
            operand.dtype == update.dtype
                && operand.dims == operands[0].dims
                && update.dims == updates[0].dims,
            InvalidArgument,
            "Scatter's operand {operand} and update {update} do not go together, or with the first ones"
        );
    }
    check_scatter_dims(operands[0], indices, updates[0], dims)?;
    Ok(array_or_tuple(
        operands.iter().map(|&operand| operand.clone()).collect(),
    ))
}

fn check_scatter_dims(
    operand: &ArrayShape,
    indices: &ArrayShape,
    update: &ArrayShape,
    dims: &ScatterDims,
) -> Result<()> {
    let rank = operand.rank();
    let (batch, components) = index_dims(indices, dims.index_vector_dim)?;
    ensure!(
        dims.scatter_dims_to_operand_dims.len() as i64 == components,
        InvalidArgument,
        "Scatter has {components} index components but scatter_dims_to_operand_dims {:?}",
        dims.scatter_dims_to_operand_dims
    );
    let mapped: Dims = dims
        .scatter_dims_to_operand_dims
        .iter()
        .chain(&dims.input_batching_dims)
        .copied()
        .collect();
    axis_set(&mapped, rank, "Scatter's mapped or batching dimension")?;
    let inserted: Dims = dims
        .inserted_window_dims
        .iter()
        .chain(&dims.input_batching_dims)
        .copied()
        .collect();
    let inserted = axis_set(&inserted, rank, "Scatter's inserted or batching dimension")?;
    ensure_ascending(&dims.inserted_window_dims, "Scatter's inserted_window_dims")?;
    ensure_ascending(&dims.update_window_dims, "Scatter's update_window_dims")?;
    check_batching(
        operand,
        &dims.input_batching_dims,
        indices,
        &dims.scatter_indices_batching_dims,
        dims.index_vector_dim,
    )?;
    let window: Dims = (0..rank)
        .filter(|&i| !inserted[i])
        .map(|i| operand.dims[i])
        .collect();
    let is_window = axis_set(
        &dims.update_window_dims,
        update.rank(),
        "Scatter's window dimension",
    )?;
    ensure!(
        window.len() == dims.update_window_dims.len() && window.len() + batch.len() == update.rank(),
        InvalidArgument,
        "Scatter's update {update} does not have the rank that {operand}, {indices} and {dims:?} ask for"
    );
    let (mut window, mut batch) = (window.into_iter(), batch.into_iter());
    for (i, &in_window) in is_window.iter().enumerate() {
        let extent = update.dims[i];
        let fits = if in_window {
            window.next().is_some_and(|bound| extent <= bound)
        } else {
            batch.next() == Some(extent)
        };
        ensure!(
            fits,
            InvalidArgument,
            "Dimension {i} of scatter's update {update} does not fit {operand} and {indices}"
        );
    }
    Ok(())
}

fn sort(query: &Query, dimension: i64, computation: ComputationId) -> Result<HloShape> {
    let arrays = query.arrays()?;
    axis(dimension, arrays[0].rank(), "Sort dimension")?;
    for array in &arrays {
        ensure!(
            array.dims == arrays[0].dims,
            InvalidArgument,
            "Sorted arrays must have the same dimensions, got {} and {array}",
            arrays[0]
        );
    }
    let comparator = query.called(computation)?.program_shape();
    let parameters: Vec<HloShape> = arrays
        .iter()
        .flat_map(|array| [ArrayShape::scalar(array.dtype), ArrayShape::scalar(array.dtype)])
        .map(HloShape::Array)
        .collect();
    ensure!(
        comparator.parameters == parameters
            && comparator.result == HloShape::Array(ArrayShape::scalar(DataType::BOOL)),
        InvalidArgument,
        "Comparator has parameters {:?} and gives {}, expected {parameters:?} to pred[]",
        comparator.parameters,
        comparator.result
    );
    Ok(array_or_tuple(
        arrays.iter().map(|&array| array.clone()).collect(),
    ))
}

fn top_k(query: &Query, k: i64) -> Result<HloShape> {
    let operand = query.array(0)?;
    ensure!(
        operand.dims.last().is_some_and(|&last| 0 <= k && k <= last),
        InvalidArgument,
        "{operand} does not have {k} elements in its last dimension"
    );
    let mut values = operand.clone();
    let last = values.rank() - 1;
    values.dims[last] = k;
    let indices = values.with_dtype(DataType::INT32);
    Ok(array_or_tuple(vec![values, indices]))
}
