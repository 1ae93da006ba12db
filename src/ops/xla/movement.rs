//! Moving elements: slices at places, padding, gathering; and ops that mean something on several devices only.

use super::{message, of_rank, set_results};
use ff_hlo::{Dims, GatherDims, Op as HloOp, PadConfig, PadDimension};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_proto::messages::xla::GatherDimensionNumbers;
use ff_tensor::{PartialShape, Result, dim, ensure, status};

const MOVED: Op = Op {
    name: "XlaSharding",
    shape: ff_op::shapes::unchanged,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(crate::lowering::identity),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &MOVED,
    // There is one shard: the whole.
    &Op {
        name: "XlaSpmdFullToShardShape",
        ..MOVED
    },
    &Op {
        name: "XlaSpmdShardToFullShape",
        shape: |context| {
            let full = context.attrs().shape("full_shape")?.clone();
            context.set_output(0, full);
            Ok(())
        },
        ..MOVED
    },
    // A bound matters where shapes are compiled for; here they are what they are.
    &Op {
        name: "XlaSetBound",
        ..MOVED
    },
    &Op {
        name: "XlaRemoveDynamicDimensionSize",
        ..MOVED
    },
    &Op {
        name: "XlaSetDynamicDimensionSize",
        shape: |context| {
            if let Some(rank) = context.input(0).rank() {
                context.set_output(0, of_rank(rank));
            }
            Ok(())
        },
        lower: Some(set_dimension),
        ..MOVED
    },
    &Op {
        name: "XlaOptimizationBarrier",
        shape: |context| {
            for index in 0..context.num_outputs() {
                context.set_output(index, context.input(index));
            }
            Ok(())
        },
        lower: Some(barrier),
        ..MOVED
    },
    &Op {
        name: "XlaBroadcastHelper",
        shape: ff_op::shapes::unknown,
        lower: Some(broadcast_helper),
        ..MOVED
    },
    &Op {
        name: "XlaDynamicSlice",
        shape: |context| {
            let sizes = context.input_as_shape(2)?;
            context.set_output(0, sizes);
            Ok(())
        },
        lower: Some(dynamic_slice),
        ..MOVED
    },
    &Op {
        name: "XlaDynamicUpdateSlice",
        lower: Some(dynamic_update_slice),
        ..MOVED
    },
    &Op {
        name: "XlaPad",
        shape: pad_shape,
        lower: Some(pad),
        ..MOVED
    },
    &Op {
        name: "XlaGather",
        shape: gather_shape,
        lower: Some(gather),
        ..MOVED
    },
];

fn barrier(context: &mut LowerContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        let input = context.input(index)?;
        let output = context.builder.opt_barrier(input)?;
        context.set_output(index, output);
    }
    Ok(())
}

/// The first elements along an axis.
fn set_dimension(context: &mut LowerContext) -> Result<()> {
    let (axis, size) = (
        context.constant(1)?.single::<i32>()?,
        context.constant(2)?.single::<i32>()?,
    );
    let (input, dims) = (context.input(0)?, context.input_dims(0)?);
    let axis = usize::try_from(axis).ok().filter(|&axis| axis < dims.len());
    let axis = axis.ok_or_else(|| status!(InvalidArgument, "dim_index is out of range for {dims:?}"))?;
    let size = i64::from(size);
    ensure!(
        (0..=dims[axis]).contains(&size),
        InvalidArgument,
        "The size {size} is not within [0, {}]",
        dims[axis]
    );
    let cut = context.builder.slice_in_dim(input, 0, size, 1, axis)?;
    context.set_output(0, cut);
    Ok(())
}

/// The operand of the lower rank, its axes put where the other's `broadcast_dims` are; nothing to do for equal ranks and scalars.
fn broadcast_helper(context: &mut LowerContext) -> Result<()> {
    let dims = context.constant_i64s(2)?;
    let operands = [context.input(0)?, context.input(1)?];
    let ranks = operands.map(|operand| context.builder.rank(operand));
    for (index, &operand) in operands.iter().enumerate() {
        context.set_output(index, operand);
    }
    if ranks[0] == ranks[1] || ranks.contains(&0) {
        return Ok(());
    }
    let lower = usize::from(ranks[1] < ranks[0]);
    let (rank, own) = (ranks[1 - lower], context.input_dims(lower)?);
    ensure!(
        dims.len() == own.len(),
        InvalidArgument,
        "broadcast_dims must have size equal to the smaller argument rank: {} vs. {}",
        dims.len(),
        own.len()
    );
    let mut result = vec![1; rank];
    for (place, (&axis, &extent)) in dims.iter().zip(&own).enumerate() {
        ensure!(
            (0..rank as i64).contains(&axis) && !dims[..place].contains(&axis),
            InvalidArgument,
            "Invalid broadcast dimension {axis} for rank {rank}"
        );
        result[axis as usize] = extent;
    }
    let moved = context
        .builder
        .broadcast_in_dim(operands[lower], &result, &dims)?;
    context.set_output(lower, moved);
    Ok(())
}

/// Each of the numbers in a vector as a scalar. INVALID_ARGUMENT when there are not `count`.
fn scalars(context: &mut LowerContext, input: usize, count: usize) -> Result<Vec<HloOp>> {
    let (indices, dims) = (context.input(input)?, context.input_dims(input)?);
    ensure!(
        dims == [count as i64],
        InvalidArgument,
        "The indices of {} must be a vector of {count}, got the shape {dims:?}",
        context.node().describe()
    );
    let mut all = Vec::with_capacity(count);
    for place in 0..count as i64 {
        let one = context.builder.slice(indices, &[place], &[place + 1], &[1])?;
        all.push(context.builder.reshape(one, &[])?);
    }
    Ok(all)
}

fn dynamic_slice(context: &mut LowerContext) -> Result<()> {
    let sizes = context.constant_i64s(2)?;
    let operand = context.input(0)?;
    let start = scalars(context, 1, context.builder.rank(operand))?;
    let slice = context.builder.dynamic_slice(operand, &start, &sizes)?;
    context.set_output(0, slice);
    Ok(())
}

fn dynamic_update_slice(context: &mut LowerContext) -> Result<()> {
    let (operand, update) = (context.input(0)?, context.input(1)?);
    let start = scalars(context, 2, context.builder.rank(operand))?;
    let result = context.builder.dynamic_update_slice(operand, update, &start)?;
    context.set_output(0, result);
    Ok(())
}

/// An extent after padding; unknown stays unknown. INVALID_ARGUMENT when it would be negative or too large.
fn padded(extent: i64, padding: PadDimension) -> Result<i64> {
    ensure!(
        padding.interior >= 0,
        InvalidArgument,
        "padding_interior must not be negative, got {}",
        padding.interior
    );
    if extent == dim::UNKNOWN {
        return Ok(extent);
    }
    let between = (extent - 1).max(0).checked_mul(padding.interior);
    let all = between.and_then(|between| {
        between
            .checked_add(extent)?
            .checked_add(padding.low)?
            .checked_add(padding.high)
    });
    let all = all.filter(|&all| all >= 0);
    all.ok_or_else(|| {
        status!(
            InvalidArgument,
            "Padding {padding:?} of the extent {extent} leaves no valid extent"
        )
    })
}

fn pad_config(low: &[i64], high: &[i64], interior: &[i64], rank: usize) -> Result<PadConfig> {
    for (name, values) in [("low", low), ("high", high), ("interior", interior)] {
        ensure!(
            values.len() == rank,
            InvalidArgument,
            "The size of padding_{name} must be equal to the input rank ({} vs. {rank})",
            values.len()
        );
    }
    Ok((0..rank)
        .map(|axis| PadDimension {
            low: low[axis],
            high: high[axis],
            interior: interior[axis],
        })
        .collect())
}

fn pad_shape(context: &mut ShapeContext) -> Result<()> {
    let Some(dims) = context.input(0).dims().map(<[i64]>::to_vec) else {
        return Ok(());
    };
    context.input_with_rank(1, 0)?;
    let (low, high) = (context.input_as_i64s(2)?, context.input_as_i64s(3)?);
    let (Some(low), Some(high), Some(interior)) = (low, high, context.input_as_i64s(4)?) else {
        context.set_output(0, of_rank(dims.len()));
        return Ok(());
    };
    let config = pad_config(&low, &high, &interior, dims.len())?;
    let extents = dims
        .iter()
        .zip(config)
        .map(|(&extent, padding)| padded(extent, padding));
    context.set_output(0, PartialShape::new(&extents.collect::<Result<Vec<i64>>>()?));
    Ok(())
}

fn pad(context: &mut LowerContext) -> Result<()> {
    let (low, high, interior) = (
        context.constant_i64s(2)?,
        context.constant_i64s(3)?,
        context.constant_i64s(4)?,
    );
    let (operand, value) = (context.input(0)?, context.input(1)?);
    let config = pad_config(&low, &high, &interior, context.builder.rank(operand))?;
    let result = context.builder.pad(operand, value, config)?;
    context.set_output(0, result);
    Ok(())
}

/// Axes of the indices, but for the one that holds the components, with those of a slice put in at `offset_dims`.
fn gather_shape(context: &mut ShapeContext) -> Result<()> {
    let numbers: GatherDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let (indices, sizes) = (context.input(1), context.input_as_i64s(2)?);
    let (Some(index_dims), Some(sizes)) = (indices.dims(), sizes) else {
        return Ok(());
    };
    let dropped = |axis: &i64| {
        numbers.collapsed_slice_dims.contains(axis) || numbers.operand_batching_dims.contains(axis)
    };
    let axes = (0..sizes.len() as i64).filter(|axis| !dropped(axis));
    let mut slice = axes.map(|axis| sizes[axis as usize]);
    let places = (0..index_dims.len() as i64).filter(|&axis| axis != numbers.index_vector_dim);
    let mut batch = places.map(|axis| index_dims[axis as usize]);
    let rank = batch.clone().count() + numbers.offset_dims.len();
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank as i64 {
        let extent = match numbers.offset_dims.contains(&axis) {
            true => slice.next(),
            false => batch.next(),
        };
        dims.push(
            extent
                .ok_or_else(|| status!(InvalidArgument, "Invalid offset_dims {:?}", numbers.offset_dims))?,
        );
    }
    ensure!(
        slice.next().is_none(),
        InvalidArgument,
        "Invalid offset_dims {:?} for slices of {sizes:?}",
        numbers.offset_dims
    );
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn gather(context: &mut LowerContext) -> Result<()> {
    let numbers: GatherDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let config = GatherDims {
        offset_dims: Dims::from_vec(numbers.offset_dims),
        collapsed_slice_dims: Dims::from_vec(numbers.collapsed_slice_dims),
        start_index_map: Dims::from_vec(numbers.start_index_map),
        index_vector_dim: numbers.index_vector_dim,
        operand_batching_dims: Dims::from_vec(numbers.operand_batching_dims),
        start_indices_batching_dims: Dims::from_vec(numbers.start_indices_batching_dims),
        slice_sizes: Dims::from_vec(context.constant_i64s(2)?),
        indices_are_sorted: context.attrs().bool("indices_are_sorted")?,
    };
    let (operand, indices) = (context.input(0)?, context.input(1)?);
    let result = context.builder.gather(operand, indices, config)?;
    set_results(context, result)
}

#[cfg(test)]
fn rows() -> ff_op::AttrValue {
    use ff_proto::Message;
    let numbers = GatherDimensionNumbers {
        offset_dims: vec![1],
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    ff_op::AttrValue::String(numbers.encode_to_vec().into())
}

crate::op_cases! {
    kept: family(&["XlaSharding", "XlaSetBound", "XlaRemoveDynamicDimensionSize"], &[DataType::INT32], |op, _| {
        let case = Case::op(op).input(vector(&[3, 4])).gives(vector(&[3, 4]));
        if op == "XlaSharding" { case } else { case.input(scalar(0)) }
    });
    shards: Case::op("XlaSpmdFullToShardShape").input(vector(&[3, 4])).attr("manual_sharding", "").gives(vector(&[3, 4]));
    whole: Case::op("XlaSpmdShardToFullShape").input(vector(&[3, 4])).attr("manual_sharding", "")
        .attr("full_shape", PartialShape::new(&[2])).gives(vector(&[3, 4]));
    cut: Case::op("XlaSetDynamicDimensionSize").inputs([vector(&[3, 4]), scalar(0), scalar(1)]).gives(vector(&[3]));
    cut_beyond: Case::op("XlaSetDynamicDimensionSize").inputs([vector(&[3, 4]), scalar(0), scalar(3)]).fails(Code::InvalidArgument);
    behind: Case::op("XlaOptimizationBarrier").inputs([vector(&[3, 4]), scalar(1.5f32)]).gives(vector(&[3, 4])).gives(scalar(1.5f32));
    helped: Case::op("XlaBroadcastHelper").inputs([vector(&[3, 4]), t(&[2, 1], &[1, 2]), vector(&[0])])
        .gives(t(&[2, 1], &[3, 4])).gives(t(&[2, 1], &[1, 2]));
    helped_nowhere: Case::op("XlaBroadcastHelper").inputs([vector(&[3, 4]), t(&[2, 1], &[1, 2]), vector(&[2])]).fails(Code::InvalidArgument);
    slice_moved_inside: Case::op("XlaDynamicSlice").inputs([vector(&[1, 2, 3]), vector(&[5]), vector(&[2])]).gives(vector(&[2, 3]));
    slice_too_large: Case::op("XlaDynamicSlice").inputs([vector(&[1, 2, 3]), vector(&[0]), vector(&[4])]).fails(Code::InvalidArgument);
    updated: Case::op("XlaDynamicUpdateSlice").inputs([vector(&[1, 2, 3]), vector(&[9]), vector(&[1])]).gives(vector(&[1, 9, 3]));
    padded_between: Case::op("XlaPad").inputs([vector(&[1, 2]), scalar(0), vector(&[1]), vector(&[-1]), vector(&[1])]).gives(vector(&[0, 1, 0]));
    padded_too_little: Case::op("XlaPad").inputs([vector(&[1, 2]), scalar(0), vector(&[-2]), vector(&[-1]), vector(&[0])])
        .fails(Code::InvalidArgument);
    padded_too_much: Case::op("XlaPad").inputs([vector(&[1, 2]), scalar(0), vector(&[i64::MAX]), vector(&[1i64]), vector(&[0i64])])
        .fails(Code::InvalidArgument);
    rows_gathered: Case::op("XlaGather").inputs([t(&[2, 2], &[1, 2, 3, 4]), t(&[2, 1], &[1, 9]), vector(&[1, 2])])
        .attr("dimension_numbers", rows()).attr("indices_are_sorted", false).gives(t(&[2, 2], &[3, 4, 3, 4]));
    slices_misfit: Case::op("XlaGather").inputs([t(&[2, 2], &[1, 2, 3, 4]), t(&[2, 1], &[1, 9]), vector(&[1])])
        .attr("dimension_numbers", rows()).attr("indices_are_sorted", false).fails(Code::InvalidArgument);
}
