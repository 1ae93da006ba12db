//! Picking slices by index, and the vector stitched from parts.

use crate::movement::{Writer, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

static GATHER_V2: Op = Op {
    name: "GatherV2",
    shape: gather_v2_shape,
    kernels: &[Kernel::native(gather_v2)],
    lower: Some(super::lower_index::gather_v2),
    gradient: Gradient::Fn(gather_v2_gradient),
    ..Op::PURE
};
static GATHER: Op = Op {
    name: "Gather",
    shape: |context| {
        let (params, indices) = (context.input_with_rank_at_least(0, 1)?, context.input(1));
        context.set_output(0, indices.concat(&params.slice(1, None)));
        Ok(())
    },
    kernels: &[Kernel::native(|context| gather(context, 0, 0))],
    lower: Some(super::lower_index::rows),
    gradient: Gradient::Fn(row_gradient),
    ..Op::PURE
};
static GATHER_ND: Op = Op {
    name: "GatherNd",
    shape: gather_nd_shape,
    kernels: &[Kernel::native(gather_nd)],
    lower: Some(super::lower_index::gather_nd),
    gradient: Gradient::Fn(gather_nd_gradient),
    ..Op::PURE
};
static DYNAMIC_STITCH: Op = Op {
    name: "DynamicStitch",
    shape: stitch_shape,
    kernels: &[Kernel::native(stitch)],
    lower: Some(super::lower_index::stitch),
    gradient: Gradient::Fn(stitch_gradient),
    ..Op::PURE
};
static PARALLEL_DYNAMIC_STITCH: Op = Op {
    name: "ParallelDynamicStitch",
    ..DYNAMIC_STITCH
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &GATHER_V2,
    &GATHER,
    &GATHER_ND,
    &DYNAMIC_STITCH,
    &PARALLEL_DYNAMIC_STITCH,
];

/// A possibly negative axis among `rank`.
pub fn place(axis: i64, rank: usize, what: &str) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "Expected {what} in the range [{}, {rank}), but got {axis}",
        -rank
    );
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

/// `params[..axis] + indices[batch..] + params[axis + 1..]`.
fn gather_v2_shape(context: &mut ShapeContext) -> Result<()> {
    let (params, indices) = (context.input_with_rank_at_least(0, 1)?, context.input(1));
    context.input_with_rank(2, 0)?;
    let batch = context.attrs().int("batch_dims").unwrap_or(0);
    let (Some(rank), Some(index_rank)) = (params.rank(), indices.rank()) else {
        return Ok(());
    };
    let batch = if batch < 0 {
        batch + index_rank as i64
    } else {
        batch
    };
    ensure!(
        (0..=index_rank as i64).contains(&batch) && (batch < rank as i64),
        InvalidArgument,
        "Expected batch_dims in the range [{}, {index_rank}], but got {batch}",
        -(index_rank as i64)
    );
    let Some(axis) = context.input_as_scalar(2)? else {
        context.set_output(0, PartialShape::of_rank(rank + index_rank - 1 - batch as usize));
        return Ok(());
    };
    let axis = place(axis, rank, "axis")? as i64;
    ensure!(
        batch <= axis,
        InvalidArgument,
        "batch_dims ({batch}) must be less than or equal to axis ({axis})"
    );
    for shared in 0..batch {
        dim::merge(params.dim(shared), indices.dim(shared))?;
    }
    let shape = params.slice(0, Some(axis)).concat(&indices.slice(batch, None));
    let rest = if axis + 1 < rank as i64 {
        params.slice(axis + 1, None)
    } else {
        PartialShape::scalar()
    };
    context.set_output(0, shape.concat(&rest));
    Ok(())
}

fn gather_v2(context: &mut KernelContext) -> Result<()> {
    let axis = place(context.input_i64(2)?, context.input(0)?.rank(), "axis")?;
    let batch = context.attrs().int("batch_dims").unwrap_or(0);
    let index_rank = context.input(1)?.rank() as i64;
    gather(
        context,
        axis,
        (if batch < 0 { batch + index_rank } else { batch }) as usize,
    )
}

fn gather(context: &mut KernelContext, axis: usize, batch: usize) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let params = context.input(0)?;
    let indices = match context.input(1)?.dtype() {
        DataType::INT16 => context
            .input_slice::<i16>(1)?
            .iter()
            .map(|&index| i64::from(index))
            .collect(),
        _ => context.input_i64s(1)?,
    };
    let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
    let batches = product(&params.dims()[..batch]);
    let outer = product(&params.dims()[batch..axis]);
    let (extent, inner) = (params.dims()[axis], product(&params.dims()[axis + 1..]));
    let per_batch = indices.len() / batches.max(1);
    // Indices that nothing is taken from are not looked at.
    let bad = indices
        .iter()
        .position(|index| !(0..extent).contains(index))
        .filter(|_| shape.num_elements() > 0);
    if let Some(position) = bad {
        ff_tensor::bail!(
            InvalidArgument,
            "indices{} = {} is not in [0, {extent})",
            position_text(position, context.input(1)?.dims()),
            indices[position]
        );
    }
    let mut writer = Writer::new(params.dtype(), shape)?;
    let mut to = 0;
    for block in 0..batches {
        for row in 0..outer {
            let base = (block * outer + row) * extent as usize * inner;
            for &index in &indices[block * per_batch..(block + 1) * per_batch] {
                if inner > 0 {
                    writer.copy(to, params, base + index as usize * inner, inner)?;
                }
                to += inner;
            }
        }
    }
    context.set_output(0, writer.finish()?)
}

/// `[1,0]` for a place in a tensor of these extents; nothing for a scalar.
pub fn position_text(position: usize, dims: &[i64]) -> String {
    let mut rest = position as i64;
    let mut all = Vec::new();
    for stride in row_major(dims) {
        all.push((rest / stride.max(1)).to_string());
        rest %= stride.max(1);
    }
    if all.is_empty() {
        return String::new();
    }
    format!("[{}]", all.join(","))
}

/// Whether a value is a constant zero.
fn is_zero(context: &GradientContext, value: OutputRef) -> bool {
    let node = context.host.node(value.node);
    let constant = node.attrs.tensor("value").ok();
    let zero = constant.and_then(|value| value.to_i64_vec().ok());
    node.op_name() == "Const" && zero.is_some_and(|values| values == [0])
}

/// Along axis 0 by rows; else every element is added to the place that it came from, found by gathering the places.
fn gather_v2_gradient(context: &mut GradientContext) -> Result<()> {
    let axis = context.input(2)?;
    if context.attrs().int("batch_dims")? == 0 && is_zero(context, axis) {
        return row_gradient(context);
    }
    let incoming = context.incoming_or_zeros(0)?;
    let (params, indices) = (context.input(0)?, context.input(1)?);
    let wide = || Attrs::new().with("out_type", DataType::INT64);
    let shape = context.op("Shape", &[params], wide())?;
    let size = context.op("Size", &[params], wide())?;
    let (zero, one) = (
        context.constant(Tensor::scalar(0i64)?)?,
        context.constant(Tensor::scalar(1i64)?)?,
    );
    let places = context.op("Range", &[zero, size, one], Attrs::new())?;
    let places = context.op("Reshape", &[places, shape], Attrs::new())?;
    let batch = Attrs::new().with("batch_dims", context.attrs().int("batch_dims")?);
    let from = context.op("GatherV2", &[places, indices, axis], batch)?;
    let flat = context.int32s(&[-1])?;
    let from = context.op("Reshape", &[from, flat], Attrs::new())?;
    let values = context.op("Reshape", &[incoming, flat], Attrs::new())?;
    let sum = context.op("UnsortedSegmentSum", &[values, from, size], Attrs::new())?;
    let gradient = context.op("Reshape", &[sum, shape], Attrs::new())?;
    context.set(0, gradient);
    Ok(())
}

/// Sums the incoming slices into zeros of the shape of the parameters, along axis 0.
fn row_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (params, indices) = (context.input(0)?, context.input(1)?);
    let dims = crate::math::gradients::shape_of(context, params)?;
    let flat = context.int32s(&[-1])?;
    let attrs = Attrs::new()
        .with("T", context.dtype(indices))
        .with("Tshape", DataType::INT32);
    let flat_indices = context.op("Reshape", &[indices, flat], attrs)?;
    let size = context.op("Size", &[indices], Attrs::new().with("T", context.dtype(indices)))?;
    let zero = context.int32(0)?;
    let size = context.op(
        "ExpandDims",
        &[size, zero],
        Attrs::new()
            .with("T", DataType::INT32)
            .with("Tdim", DataType::INT32),
    )?;
    let (one, end, step) = (
        context.int32s(&[1])?,
        context.int32s(&[0])?,
        context.int32s(&[1])?,
    );
    let attrs = Attrs::new()
        .with("T", DataType::INT32)
        .with("Index", DataType::INT32)
        .with("end_mask", 1i64);
    let rest = context.op("StridedSlice", &[dims, one, end, step], attrs)?;
    let attrs = Attrs::new()
        .with("T", DataType::INT32)
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let rows = context.op("ConcatV2", &[size, rest, zero], attrs)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(incoming))
        .with("Tshape", DataType::INT32);
    let values = context.op("Reshape", &[incoming, rows], attrs)?;
    let (start, one_row, stride) = (
        context.int32s(&[0])?,
        context.int32s(&[1])?,
        context.int32s(&[1])?,
    );
    let attrs = Attrs::new()
        .with("T", DataType::INT32)
        .with("Index", DataType::INT32)
        .with("shrink_axis_mask", 1i64);
    let segments = context.op("StridedSlice", &[dims, start, one_row, stride], attrs)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(values))
        .with("Tindices", context.dtype(indices))
        .with("Tnumsegments", DataType::INT32);
    let gradient = context.op("UnsortedSegmentSum", &[values, flat_indices, segments], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// `indices[..-1] + params[depth..]`.
fn gather_nd_shape(context: &mut ShapeContext) -> Result<()> {
    let (params, indices) = (context.input(0), context.input_with_rank_at_least(1, 1)?);
    let depth = indices.dim(-1);
    let Some(rank) = params.rank().filter(|_| depth >= 0) else {
        return Ok(());
    };
    ensure!(
        depth <= rank as i64,
        InvalidArgument,
        "indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}"
    );
    let rest = if depth < rank as i64 {
        params.slice(depth, None)
    } else {
        PartialShape::scalar()
    };
    context.set_output(0, indices.slice(0, Some(-1)).concat(&rest));
    Ok(())
}

fn gather_nd(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let ignores = super::scatter::ignores_bad_indices(context.attrs())?;
    let slices = gather_slices(context.input(0)?, context.input(1)?, shape, ignores)?;
    context.set_output(0, slices)
}

/// The slices of `params` at the places that `indices` name, as a tensor of this shape. Places outside are errors, or
/// give zeros.
pub fn gather_slices(params: &Tensor, index_tensor: &Tensor, shape: Shape, ignores: bool) -> Result<Tensor> {
    let indices = index_tensor.to_i64_vec()?;
    let depth = index_tensor.dims().last().copied().unwrap_or(0) as usize;
    let strides = row_major(params.dims());
    let inner: usize = params.dims()[depth..]
        .iter()
        .map(|&extent| extent as usize)
        .product();
    let count = if depth == 0 {
        index_tensor.dims()[..index_tensor.rank() - 1]
            .iter()
            .product::<i64>() as usize
    } else {
        indices.len() / depth
    };
    ensure!(
        count == 0 || params.num_elements() > 0,
        InvalidArgument,
        "Requested more than 0 entries, but params is empty.  Params shape: {}",
        params.shape()
    );
    let mut writer = Writer::zeros(params.dtype(), shape)?;
    for number in 0..count {
        let index = &indices[number * depth..(number + 1) * depth];
        let inside = index
            .iter()
            .zip(params.dims())
            .all(|(index, &extent)| (0..extent).contains(index));
        if ignores && !inside {
            continue;
        }
        ensure!(
            inside,
            InvalidArgument,
            "indices[{number}] = [{}] does not index into param shape {}",
            index.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
            params.shape()
        );
        let from: i64 = index
            .iter()
            .zip(&strides)
            .map(|(index, stride)| index * stride)
            .sum();
        if inner > 0 {
            writer.copy(number * inner, params, from as usize, inner)?;
        }
    }
    writer.finish()
}

/// The incoming slices added into zeros of the shape of the parameters.
fn gather_nd_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, params, indices) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let index_type = context.dtype(indices);
    let attrs = Attrs::new()
        .with("T", context.dtype(params))
        .with("out_type", index_type);
    let dims = context.op("Shape", &[params], attrs)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(incoming))
        .with("Tindices", index_type);
    let gradient = context.op("ScatterNd", &[indices, incoming, dims], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// Each part gets the rows that it wrote.
fn stitch_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let count = context.num_inputs() / 2;
    for part in 0..count {
        let (indices, zero) = (context.input(part)?, context.int32(0)?);
        let attrs = Attrs::new()
            .with("Tparams", context.dtype(incoming))
            .with("Tindices", DataType::INT32)
            .with("Taxis", DataType::INT32);
        let rows = context.op("GatherV2", &[incoming, indices, zero], attrs)?;
        context.set(count + part, rows);
    }
    Ok(())
}

/// The first axis is one more than the largest index.
fn stitch_shape(context: &mut ShapeContext) -> Result<()> {
    let count = context.num_inputs() / 2;
    let mut largest = Some(-1i64);
    let mut rest = PartialShape::unknown();
    for index in 0..count {
        let (indices, data) = (context.input(index), context.input(count + index));
        if let (Some(rank), Some(data_rank)) = (indices.rank(), data.rank()) {
            ensure!(
                rank <= data_rank,
                InvalidArgument,
                "Shape must be at least rank {rank} but is rank {data_rank}"
            );
            let tail = if rank < data_rank {
                data.slice(rank as i64, None)
            } else {
                PartialShape::scalar()
            };
            rest = rest.merge(&tail)?;
        }
        largest = match (largest, context.input_as_i64s(index)?) {
            (Some(largest), Some(values)) => Some(values.into_iter().fold(largest, i64::max)),
            _ => None,
        };
    }
    let first = largest.map_or(dim::UNKNOWN, |largest| largest + 1);
    context.set_output(0, PartialShape::new(&[first]).concat(&rest));
    Ok(())
}

/// How many rows indices ask for. INVALID_ARGUMENT where an index is negative or the count beyond 32 bits.
pub(super) fn rows_of_indices<'a>(indices: impl Iterator<Item = &'a i64> + Clone) -> Result<i64> {
    ensure!(
        indices.clone().all(|index| *index >= 0),
        InvalidArgument,
        "indices must not be negative"
    );
    let rows = indices.fold(0, |rows, &index| rows.max(index + 1));
    ensure!(
        rows <= i64::from(i32::MAX),
        InvalidArgument,
        "indices ask for {rows} rows; there can be 2147483647"
    );
    Ok(rows)
}

fn stitch(context: &mut KernelContext) -> Result<()> {
    let count = context.num_inputs() / 2;
    let all: Vec<Vec<i64>> = (0..count)
        .map(|index| context.input_i64s(index))
        .collect::<Result<_>>()?;
    let rows = rows_of_indices(all.iter().flatten())?;
    let rest = context.input(count)?.dims()[context.input(0)?.rank()..].to_vec();
    let inner: usize = rest.iter().map(|&extent| extent as usize).product();
    let shape = Shape::new(&[&[rows], &rest[..]].concat())?;
    let mut writer = Writer::zeros(context.output_type(0), shape)?;
    for (part, indices) in all.iter().enumerate() {
        let data = context.input(count + part)?;
        ensure!(
            data.num_elements() == indices.len() * inner,
            InvalidArgument,
            "data[{part}].shape must start with indices[{part}].shape"
        );
        for (row, &index) in indices.iter().enumerate().filter(|_| inner > 0) {
            writer.copy(index as usize * inner, data, row * inner, inner)?;
        }
    }
    context.set_output(0, writer.finish()?)
}

crate::op_cases! {
    outside_of_empty_slices: family(&["GatherV2"], &[DataType::FLOAT, DataType::INT32], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 0], &[]), vector(&[9]), scalar(0)]).gives(numbers(dtype, &[1, 0], &[]))
    });
    outside_of_no_slices: Case::op("GatherV2").inputs([t::<f32>(&[0, 3], &[]), vector(&[9]), scalar(1)]).gives(t::<f32>(&[0, 1], &[]));
    places_ignored: Case::op("GatherNd").inputs([vector(&[3.0f32, 4.0]), t(&[2, 1], &[5, 0])]).attr("bad_indices_policy", "IGNORE")
        .gives(vector(&[0.0f32, 3.0])).without_gradient();
    stitched: family(&["DynamicStitch", "ParallelDynamicStitch"], &[DataType::FLOAT, DataType::STRING, DataType::INT8], |op, dtype| {
        Case::op(op).inputs([vector(&[1, 3]), t(&[2, 1], &[0, 2]), counting(dtype, &[2, 2]), counting(dtype, &[2, 1, 2])]).attr("N", 2i64)
    });
    stitched_negative: Case::op("ParallelDynamicStitch").inputs([vector(&[-1]), vector(&[1.0f32])]).attr("N", 1i64).fails(Code::InvalidArgument);
    slices_of_nothing: Case::op("GatherNd").inputs([t::<f32>(&[0], &[]), t::<i32>(&[1 << 40, 0], &[])])
        .fails(Code::InvalidArgument);
    stitched_too_far: family(&["DynamicStitch", "ParallelDynamicStitch"], &[DataType::INT8], |op, dtype| {
        let parts = [vector(&[1, 3]), vector(&[i32::MAX]), counting(dtype, &[2]), counting(dtype, &[1])];
        Case::op(op).inputs(parts).attr("N", 2i64).fails(Code::InvalidArgument)
    });
    stitched_too_large: Case::op("DynamicStitch").inputs([vector(&[i32::MAX - 1]), t::<f64>(&[1, 1 << 13], &[0.0; 1 << 13])]).attr("N", 1i64)
        .fails(Code::ResourceExhausted);
    stitched_nothing: Case::op("ParallelDynamicStitch").inputs([vector::<i32>(&[]), t::<f32>(&[0, 2], &[])]).attr("N", 1i64);
}
