//! Pieces that many lowerings share: positions, checks of indices, slices by index, joins at places, padding.
//!
//! Extents of a lowering are concrete; what depends on values is a `check` or a select.

use ff_hlo::{
    ArrayShape, Builder, ComputationId, Direction, GatherDims, Op as HloOp, Opcode, PadConfig, PadDimension,
    ScatterDims, Window, WindowDimension,
};
use ff_op::{LowerContext, RunOneHost, run_one};
use ff_tensor::{Code, DataType, Result, Tensor, status};
use std::sync::Arc;

/// Lowers an op whose inputs are all known: its kernel runs now, and its outputs are constants.
pub fn by_value(context: &mut LowerContext) -> Result<()> {
    let inputs: Vec<Tensor> = (0..context.num_inputs())
        .map(|index| context.constant(index))
        .collect::<Result<_>>()?;
    let node = Arc::new(context.node().clone());
    for (index, output) in run_one(&node, inputs, &RunOneHost::new())?
        .into_iter()
        .enumerate()
    {
        let constant = context.builder.constant(output)?;
        context.set_output(index, constant);
    }
    Ok(())
}

/// The first input as the first output.
pub fn identity(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    context.set_output(0, input);
    Ok(())
}

/// The positions along an axis as `int64`.
pub fn positions(builder: &mut Builder, dims: &[i64], axis: usize) -> Result<HloOp> {
    builder.iota(DataType::INT64, dims, axis)
}

/// An array compared with one number.
pub fn compare_with(builder: &mut Builder, direction: Direction, x: HloOp, number: f64) -> Result<HloOp> {
    let limit = builder.scalar_like(number, x)?;
    builder.compare(direction, x, limit)
}

/// Whether `0 <= x < limit`.
pub fn is_within(builder: &mut Builder, x: HloOp, limit: i64) -> Result<HloOp> {
    let from = compare_with(builder, Direction::Ge, x, 0.0)?;
    let to = compare_with(builder, Direction::Lt, x, limit as f64)?;
    builder.binary(Opcode::And, from, to)
}

/// Integers as `int64`, after a check that they are at least 0 and below `limit`: INVALID_ARGUMENT otherwise.
pub fn checked_indices(builder: &mut Builder, indices: HloOp, limit: i64) -> Result<HloOp> {
    let indices = builder.convert(indices, DataType::INT64)?;
    let fits = is_within(builder, indices, limit)?;
    let message = format!("indices{{index}} = {{0}} is not in [0, {limit})");
    builder.check_values(fits, &[indices], Code::InvalidArgument, &message)?;
    Ok(indices)
}

/// Slices of extent 1 along `axis` at `indices`, which are in range; the first `batch` axes of both run along.
/// The axis gives way to the other axes of the indices.
pub fn gather(
    builder: &mut Builder,
    operand: HloOp,
    indices: HloOp,
    axis: usize,
    batch: usize,
) -> Result<HloOp> {
    let (dims, index_dims) = (builder.dims(operand).to_vec(), builder.dims(indices).to_vec());
    let result: Vec<i64> = [&dims[..axis], &index_dims[batch..], &dims[axis + 1..]].concat();
    if result.contains(&0) || dims.contains(&0) {
        return builder.full(builder.dtype(operand), &result, 0.0);
    }
    let is_batch = |at: usize| at < batch;
    let slice = |at: usize| if is_batch(at) || at == axis { 1 } else { dims[at] };
    let inner = axis + index_dims.len() - batch;
    let batch_axes: Vec<i64> = (0..batch as i64).collect();
    let config = GatherDims {
        offset_dims: (batch as i64..axis as i64)
            .chain(inner as i64..result.len() as i64)
            .collect(),
        collapsed_slice_dims: [axis as i64].into_iter().collect(),
        start_index_map: [axis as i64].into_iter().collect(),
        index_vector_dim: index_dims.len() as i64,
        operand_batching_dims: batch_axes.iter().copied().collect(),
        start_indices_batching_dims: batch_axes.iter().copied().collect(),
        slice_sizes: (0..dims.len()).map(slice).collect(),
        indices_are_sorted: false,
    };
    builder.gather(operand, indices, config)
}

/// Slices along an axis at known places.
pub fn take(builder: &mut Builder, operand: HloOp, places: &[i64], axis: usize) -> Result<HloOp> {
    let places = builder.constant_vector(places)?;
    gather(builder, operand, places, axis, 0)
}

/// A computation of what is there and what comes: `(old, new) -> value`.
pub fn joiner(
    builder: &mut Builder,
    name: &str,
    dtype: DataType,
    join: impl FnOnce(&mut Builder, HloOp, HloOp) -> Result<HloOp>,
) -> Result<ComputationId> {
    builder.computation(format!("{name}_{}", ff_hlo::type_name(dtype)), |b| {
        let old = b.parameter(0, ArrayShape::scalar(dtype), "old")?;
        let new = b.parameter(1, ArrayShape::scalar(dtype), "new")?;
        join(b, old, new)
    })
}

/// `target` with slices of `updates` joined in at `indices`, whose last axis (of `depth`) names the first axes of the
/// target. Slices that stick out are left out.
pub fn scatter(
    builder: &mut Builder,
    target: HloOp,
    indices: HloOp,
    updates: HloOp,
    join: ComputationId,
) -> Result<HloOp> {
    let index_dims = builder.dims(indices).to_vec();
    let update_rank = builder.rank(updates);
    if builder.dims(updates).contains(&0) || builder.dims(target).contains(&0) {
        return Ok(target);
    }
    let places = index_dims.len() - 1;
    let depth = index_dims[places];
    let config = ScatterDims {
        update_window_dims: (places as i64..update_rank as i64).collect(),
        inserted_window_dims: (0..depth).collect(),
        scatter_dims_to_operand_dims: (0..depth).collect(),
        index_vector_dim: places as i64,
        ..ScatterDims::default()
    };
    builder.scatter(&[target], indices, &[updates], config, join)
}

/// Elements of `value` before and after an axis; negative numbers cut.
pub fn pad_axis(
    builder: &mut Builder,
    x: HloOp,
    axis: usize,
    low: i64,
    high: i64,
    value: HloOp,
) -> Result<HloOp> {
    let mut config = PadConfig::from_elem(PadDimension::default(), builder.rank(x));
    config[axis].low = low;
    config[axis].high = high;
    builder.pad(x, value, config)
}

/// The combination of `before + 1 + after` neighbours along an axis, for each element.
pub fn slide(
    builder: &mut Builder,
    x: HloOp,
    axis: usize,
    before: i64,
    after: i64,
    (init, join): (HloOp, ComputationId),
) -> Result<HloOp> {
    let mut window = Window::from_elem(WindowDimension::new(1), builder.rank(x));
    window[axis].size = before + 1 + after;
    window[axis].padding_low = before;
    window[axis].padding_high = after;
    builder.reduce_window(&[x], &[init], join, window)
}

/// A possibly negative axis among `rank`. INVALID_ARGUMENT outside.
pub fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    let placed = if axis < 0 { axis + rank as i64 } else { axis };
    let placed = usize::try_from(placed).ok().filter(|&placed| placed < rank);
    placed.ok_or_else(|| status!(InvalidArgument, "axis {axis} is out of range for rank {rank}"))
}
