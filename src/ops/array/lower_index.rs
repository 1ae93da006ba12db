//! Lowerings of ops that pick slices by index, or write them.

use crate::lowering::{axis_of, checked_indices, gather, joiner, scatter};
use ff_hlo::{Builder, Direction, GatherDims, Op as HloOp, Opcode};
use ff_op::LowerContext;
use ff_tensor::{Code, DataType, Result, bail, ensure};

/// `Gather`.
pub fn rows(context: &mut LowerContext) -> Result<()> {
    along(context, 0, 0)
}

/// `GatherV2`; the axis is known.
pub fn gather_v2(context: &mut LowerContext) -> Result<()> {
    let (rank, index_rank) = (context.input_dims(0)?.len(), context.input_dims(1)?.len());
    let axis = context.constant_i64s(2)?;
    ensure!(axis.len() == 1, InvalidArgument, "axis must be a scalar");
    let batch = context.attrs().int("batch_dims").unwrap_or(0);
    let batch = if batch < 0 {
        batch + index_rank as i64
    } else {
        batch
    };
    along(context, axis_of(axis[0], rank)?, batch as usize)
}

fn along(context: &mut LowerContext, axis: usize, batch: usize) -> Result<()> {
    let dims = context.input_dims(0)?;
    let (operand, indices) = (context.input(0)?, context.input(1)?);
    // Indices that nothing is taken from are not looked at.
    let indices = if (0..dims.len()).any(|other| other != axis && dims[other] == 0) {
        context.builder.convert(indices, DataType::INT64)?
    } else {
        checked_indices(context.builder, indices, dims[axis])?
    };
    let output = gather(context.builder, operand, indices, axis, batch)?;
    context.set_output(0, output);
    Ok(())
}

/// Places as `int64`, after a check that each component of the last axis is below its limit.
fn checked_places(builder: &mut Builder, places: HloOp, limits: &[i64]) -> Result<HloOp> {
    let places = builder.convert(places, DataType::INT64)?;
    let dims = builder.dims(places).to_vec();
    if dims.contains(&0) {
        return Ok(places);
    }
    let limits = builder.constant_vector(limits)?;
    let limits = builder.broadcast_to(limits, &dims)?;
    let zero = builder.scalar_like(0.0, places)?;
    let from = builder.compare(Direction::Ge, places, zero)?;
    let to = builder.compare(Direction::Lt, places, limits)?;
    let fits = builder.binary(Opcode::And, from, to)?;
    let message = "indices{index} = {0} does not index into the shape";
    builder.check_values(fits, &[places], Code::InvalidArgument, message)?;
    Ok(places)
}

/// UNIMPLEMENTED where bad indices are not errors.
fn check_policy(context: &LowerContext) -> Result<()> {
    match context.attrs().string("bad_indices_policy").unwrap_or("") {
        "" | "DEFAULT" | "ERROR" => Ok(()),
        other => bail!(Unimplemented, "bad_indices_policy {other} is not lowered"),
    }
}

/// `GatherNd`.
pub fn gather_nd(context: &mut LowerContext) -> Result<()> {
    check_policy(context)?;
    let (dims, index_dims) = (context.input_dims(0)?, context.input_dims(1)?);
    let (operand, indices) = (context.input(0)?, context.input(1)?);
    let (places, depth) = (index_dims.len() - 1, index_dims[index_dims.len() - 1] as usize);
    ensure!(
        !dims.contains(&0) || index_dims[..places].contains(&0),
        InvalidArgument,
        "Requested more than 0 entries, but params is empty.  Params shape: {dims:?}"
    );
    let builder = &mut *context.builder;
    let indices = checked_places(builder, indices, &dims[..depth])?;
    let result: Vec<i64> = [&index_dims[..places], &dims[depth..]].concat();
    let inner = places as i64..result.len() as i64;
    let output = if result.contains(&0) || dims.contains(&0) {
        builder.full(builder.dtype(operand), &result, 0.0)?
    } else if depth == 0 {
        let axes: Vec<i64> = inner.collect();
        builder.broadcast_in_dim(operand, &result, &axes)?
    } else {
        let config = GatherDims {
            offset_dims: inner.collect(),
            collapsed_slice_dims: (0..depth as i64).collect(),
            start_index_map: (0..depth as i64).collect(),
            index_vector_dim: places as i64,
            slice_sizes: (0..dims.len())
                .map(|at| if at < depth { 1 } else { dims[at] })
                .collect(),
            ..GatherDims::default()
        };
        builder.gather(operand, indices, config)?
    };
    context.set_output(0, output);
    Ok(())
}

/// Joins updates into a target by the computation of this name.
fn write(context: &mut LowerContext, target: HloOp, inputs: (HloOp, HloOp), name: &str) -> Result<()> {
    let (indices, updates) = inputs;
    let builder = &mut *context.builder;
    let (dims, dtype) = (builder.dims(target).to_vec(), builder.dtype(target));
    let depth = builder.dims(indices).last().map_or(0, |&depth| depth as usize);
    let indices = checked_places(builder, indices, &dims[..depth])?;
    let join = joiner(builder, name, dtype, |b, old, new| {
        let direction = match name {
            "add" => return b.add(old, new),
            "subtract" => return b.subtract(old, new),
            "larger" => Direction::Gt,
            "smaller" => Direction::Lt,
            _ => return Ok(new),
        };
        let wins = b.compare(direction, new, old)?;
        b.select(wins, new, old)
    })?;
    let output = scatter(builder, target, indices, updates, join)?;
    context.set_output(0, output);
    Ok(())
}

/// `ScatterNd`; the shape is known.
pub fn scatter_nd(context: &mut LowerContext) -> Result<()> {
    check_policy(context)?;
    let dims = context.constant_i64s(2)?;
    let (indices, updates) = (context.input(0)?, context.input(1)?);
    let dtype = context.output_type(0);
    let zeros = context.builder.full(dtype, &dims, 0.0)?;
    let name = if dtype == DataType::BOOL { "update" } else { "add" };
    write(context, zeros, (indices, updates), name)
}

/// `TensorScatterUpdate`, `Add`, `Sub`, `Max`, `Min`.
pub fn tensor_scatter(context: &mut LowerContext) -> Result<()> {
    check_policy(context)?;
    let name = match context.node().op_name() {
        "TensorScatterAdd" | "ScatterNdNonAliasingAdd" => "add",
        "TensorScatterSub" => "subtract",
        "TensorScatterMax" => "larger",
        "TensorScatterMin" => "smaller",
        _ => "update",
    };
    let (target, indices, updates) = (context.input(0)?, context.input(1)?, context.input(2)?);
    write(context, target, (indices, updates), name)
}

/// `DynamicStitch`; the indices are known.
pub fn stitch(context: &mut LowerContext) -> Result<()> {
    let count = context.num_inputs() / 2;
    let index_rank = context.input_dims(0)?.len();
    let rest = context.input_dims(count)?[index_rank..].to_vec();
    let all = (0..count)
        .map(|part| context.constant_i64s(part))
        .collect::<Result<Vec<_>>>()?;
    let rows = super::gather::rows_of_indices(all.iter().flatten())?;
    let mut parts = Vec::new();
    for (part, indices) in all.iter().enumerate() {
        let data = context.input(count + part)?;
        let dims = [&[indices.len() as i64], &rest[..]].concat();
        parts.push(context.builder.reshape(data, &dims)?);
    }
    let builder = &mut *context.builder;
    let rows_given = builder.concatenate(&parts, 0)?;
    let dtype = builder.dtype(rows_given);
    let zeros = builder.full(dtype, &[&[rows], &rest[..]].concat(), 0.0)?;
    let places = builder.constant_vector(&all.concat())?;
    let places = builder.reshape(places, &[all.iter().map(Vec::len).sum::<usize>() as i64, 1])?;
    let join = joiner(builder, "update", dtype, |_, _, new| Ok(new))?;
    let output = scatter(builder, zeros, places, rows_given, join)?;
    context.set_output(0, output);
    Ok(())
}

/// `InvertPermutation`: a place that is named twice leaves another one empty.
pub fn invert(context: &mut LowerContext) -> Result<()> {
    let count = context.input_dims(0)?[0];
    let (order, dtype) = (context.input(0)?, context.output_type(0));
    let builder = &mut *context.builder;
    let places = checked_indices(builder, order, count)?;
    let places = builder.reshape(places, &[count, 1])?;
    let (numbers, none) = (
        builder.iota(dtype, &[count], 0)?,
        builder.full(dtype, &[count], -1.0)?,
    );
    let join = joiner(builder, "update", dtype, |_, _, new| Ok(new))?;
    let output = scatter(builder, none, places, numbers, join)?;
    let zero = builder.scalar_like(0.0, output)?;
    let is_named = builder.compare(Direction::Ge, output, zero)?;
    builder.check(
        is_named,
        Code::InvalidArgument,
        "{index} is duplicated in the input.",
    )?;
    context.set_output(0, output);
    Ok(())
}

/// `SparseToDense`; the shape is known.
pub fn to_dense(context: &mut LowerContext) -> Result<()> {
    let dims = context.constant_i64s(1)?;
    let index_dims = context.input_dims(0)?;
    let (indices, values, default) = (context.input(0)?, context.input(2)?, context.input(3)?);
    let count = index_dims.first().copied().unwrap_or(1);
    let depth = index_dims.get(1).copied().unwrap_or(1);
    let value_dims = context.input_dims(2)?;
    ensure!(
        depth == dims.len() as i64 && (value_dims.is_empty() || value_dims[0] == count),
        InvalidArgument,
        "output_shape or sparse_values do not fit the indices"
    );
    let in_order = context.attrs().bool("validate_indices")?;
    let builder = &mut *context.builder;
    let places = builder.reshape(indices, &[count, depth])?;
    let places = checked_places(builder, places, &dims)?;
    if in_order && count > 1 && depth > 0 {
        check_order(builder, places, &dims)?;
    }
    let values = builder.broadcast_to(values, &[count])?;
    let target = builder.broadcast_scalar(default, &dims)?;
    let dtype = builder.dtype(target);
    let join = joiner(builder, "update", dtype, |_, _, new| Ok(new))?;
    let output = scatter(builder, target, places, values, join)?;
    context.set_output(0, output);
    Ok(())
}

/// Checks that places ascend in row-major order.
fn check_order(builder: &mut Builder, places: HloOp, dims: &[i64]) -> Result<()> {
    let strides = crate::movement::row_major(dims);
    let strides = builder.constant_vector(&strides)?;
    let products = builder.multiply(places, strides)?;
    let numbers = builder.reduce_sum(products, &[1])?;
    let count = builder.dims(numbers)[0];
    let before = builder.slice_in_dim(numbers, 0, count - 1, 1, 0)?;
    let after = builder.slice_in_dim(numbers, 1, count, 1, 0)?;
    let ascends = builder.compare(Direction::Lt, before, after)?;
    builder.check(
        ascends,
        Code::InvalidArgument,
        "indices{index} is out of order or repeated",
    )?;
    Ok(())
}
