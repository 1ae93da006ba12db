//! Ops that write slices into a tensor at the places that an index tensor names, and Bitcast.

use crate::math::number::Number;
use crate::movement::Writer;
use crate::{match_number, match_real};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ScatterNd",
        shape: scatter_shape,
        kernels: &[Kernel::native(scatter)],
        lower: Some(super::lower_index::scatter_nd),
        gradient: Gradient::Fn(scatter_gradient),
        ..Op::PURE
    },
    &Op {
        name: "ScatterNdNonAliasingAdd",
        kernels: &[
            Kernel::FROM_LOWERING.for_types(&[("T", &[DataType::BOOL])]),
            Kernel::native(tensor_scatter),
        ],
        gradient: Gradient::Fn(add_gradient),
        ..TENSOR_SCATTER
    },
    &Op {
        name: "TensorScatterUpdate",
        gradient: Gradient::Fn(update_gradient),
        ..TENSOR_SCATTER
    },
    &Op {
        name: "TensorScatterAdd",
        gradient: Gradient::Fn(add_gradient),
        ..TENSOR_SCATTER
    },
    &Op {
        name: "TensorScatterSub",
        gradient: Gradient::Fn(add_gradient),
        ..TENSOR_SCATTER
    },
    &Op {
        name: "TensorScatterMax",
        ..TENSOR_SCATTER
    },
    &Op {
        name: "TensorScatterMin",
        ..TENSOR_SCATTER
    },
    &Op {
        name: "Bitcast",
        shape: bitcast_shape,
        kernels: &[Kernel::native(bitcast)],
        lower: Some(super::lower_movement::bitcast),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

const TENSOR_SCATTER: Op = Op {
    shape: tensor_scatter_shape,
    kernels: &[Kernel::native(tensor_scatter)],
    lower: Some(super::lower_index::tensor_scatter),
    ..Op::PURE
};

/// How a slice joins the one that is there.
#[derive(Clone, Copy, PartialEq)]
pub enum Join {
    /// Takes its place.
    Update,
    /// Is added.
    Add,
    /// Is subtracted.
    Sub,
    /// Multiplies it.
    Mul,
    /// Divides it.
    Div,
    /// The larger of both.
    Max,
    /// The smaller of both.
    Min,
}

/// Writes the slices of `updates` into `target` at `indices` (`[.., depth]`), in order.
/// INVALID_ARGUMENT when an index is out of range; the slices before it have been written.
pub fn scatter_nd(target: &mut Tensor, indices: &Tensor, updates: &Tensor, join: Join) -> Result<()> {
    let depth = indices.dims().last().map_or(1, |&depth| depth as usize);
    let dims = target.dims().to_vec();
    let slice: i64 = dims[depth.min(dims.len())..].iter().product();
    let values = indices.to_i64_vec()?;
    let places = if depth == 0 {
        updates.num_elements() as i64 / slice.max(1)
    } else {
        (values.len() / depth) as i64
    };
    if slice == 0 && depth == 0 {
        return Ok(());
    }
    let mut starts = crate::wide::reserved(places as usize)?;
    for place in 0..places as usize {
        let index = &values[place * depth..(place + 1) * depth];
        let mut start = 0;
        for (&value, &extent) in index.iter().zip(&dims) {
            ensure!(
                (0..extent).contains(&value),
                InvalidArgument,
                "indices[{place}] = {index:?} does not index into shape {}",
                target.shape()
            );
            start = start * extent + value;
        }
        starts.push((start * slice) as usize);
    }
    write_slices(target, &starts, updates, slice as usize, join)
}

/// Whether a node leaves out slices at bad indices instead of failing. INVALID_ARGUMENT for an unknown policy.
pub fn ignores_bad_indices(attrs: &Attrs) -> Result<bool> {
    match attrs.string("bad_indices_policy").unwrap_or("") {
        "" | "DEFAULT" | "ERROR" => Ok(false),
        "IGNORE" => Ok(true),
        other => ff_tensor::bail!(InvalidArgument, "Unknown bad indices handling attribute: {other}"),
    }
}

/// [`scatter_nd`] without the slices at indices that are out of range.
fn scatter_known(target: &mut Tensor, indices: &Tensor, updates: &Tensor, join: Join) -> Result<()> {
    let depth = indices.dims().last().map_or(0, |&depth| depth as usize);
    let dims = target.dims()[..depth].to_vec();
    let values = indices.to_i64_vec()?;
    let inner: usize = target.dims()[depth..].iter().product::<i64>() as usize;
    let is_inside = |index: &[i64]| {
        index
            .iter()
            .zip(&dims)
            .all(|(at, extent)| (0..*extent).contains(at))
    };
    let kept: Vec<usize> = (0..values.len() / depth.max(1))
        .filter(|&place| is_inside(&values[place * depth..(place + 1) * depth]))
        .collect();
    let mut writer = Writer::new(updates.dtype(), Shape::vector(kept.len() * inner))?;
    for (to, &from) in kept.iter().enumerate() {
        writer.copy(to * inner, updates, from * inner, inner)?;
    }
    let places: Vec<i64> = kept
        .iter()
        .flat_map(|&place| values[place * depth..(place + 1) * depth].iter().copied())
        .collect();
    let places = Tensor::from_slice(Shape::new(&[kept.len() as i64, depth as i64])?, &places)?;
    scatter_nd(target, &places, &writer.finish()?, join)
}

/// [`scatter_nd`] by a node's policy on bad indices.
pub fn scatter_by_policy(
    attrs: &Attrs,
    target: &mut Tensor,
    indices: &Tensor,
    updates: &Tensor,
    join: Join,
) -> Result<()> {
    match ignores_bad_indices(attrs)? && indices.dims().last().is_some_and(|&depth| depth > 0) {
        true => scatter_known(target, indices, updates, join),
        false => scatter_nd(target, indices, updates, join),
    }
}

/// Joins slice `i` of `updates` to the elements of `target` from `starts[i]` on; both must have them.
pub fn write_slices(
    target: &mut Tensor,
    starts: &[usize],
    updates: &Tensor,
    slice: usize,
    join: Join,
) -> Result<()> {
    let shape = Shape::new(target.dims())?;
    if join == Join::Update {
        let empty = Tensor::zeros(DataType::BOOL, Shape::vector(0))?;
        let mut writer = Writer::onto(std::mem::replace(target, empty))?;
        for (i, &start) in starts.iter().enumerate() {
            writer.copy(start, updates, i * slice, slice)?;
        }
        *target = writer.finish()?.into_shape(shape)?;
        return Ok(());
    }
    target.make_writable()?;
    let pairs = |i: usize| (starts[i]..starts[i] + slice).zip(i * slice..(i + 1) * slice);
    if matches!(join, Join::Max | Join::Min) {
        return match_real!(target.dtype(), T => {
            let (source, target) = (updates.as_slice::<T>()?, target.as_mut_slice::<T>()?);
            for (to, from) in (0..starts.len()).flat_map(pairs) {
                let larger = source[from] > target[to];
                if larger == (join == Join::Max) {
                    target[to] = source[from];
                }
            }
            Ok(())
        });
    }
    match_number!(target.dtype(), T => {
        let (source, target) = (updates.as_slice::<T>()?, target.as_mut_slice::<T>()?);
        for (to, from) in (0..starts.len()).flat_map(pairs) {
            target[to] = match join {
                Join::Add => Number::add(target[to], source[from]),
                Join::Mul => Number::mul(target[to], source[from]),
                Join::Div => Number::div(target[to], source[from]),
                _ => Number::sub(target[to], source[from]),
            };
        }
        Ok(())
    })
}

/// Checks that updates have the shape of the indices without the last axis, then the rest of the target's.
fn check_updates(indices: &PartialShape, updates: &PartialShape, target: &PartialShape) -> Result<()> {
    let (Some(indices_rank), Some(target_rank)) = (indices.rank(), target.rank()) else {
        return Ok(());
    };
    ensure!(
        indices_rank > 0,
        InvalidArgument,
        "Indices shape must have rank at least one. Found: {indices}"
    );
    let depth = indices.dim(-1);
    if depth < 0 {
        return Ok(());
    }
    ensure!(
        depth <= target_rank as i64,
        InvalidArgument,
        "The last dimension of indices ({depth}) must be at most the rank of the tensor ({target_rank})"
    );
    let expected = indices.slice(0, Some(-1)).concat(&target.slice(depth, None));
    ensure!(
        expected.is_compatible_with(updates),
        InvalidArgument,
        "Dimensions [0,{}) of indices[shape={indices}] must match those of updates[shape={updates}], the rest those of the output[shape={target}]",
        indices_rank - 1
    );
    Ok(())
}

fn scatter_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(2, 1)?;
    let output = context.input_as_shape(2)?;
    if output.is_fully_known() && output.num_elements() == 0 {
        let empty = |index: usize| context.input(index).num_elements() <= 0;
        ensure!(
            empty(0) && empty(1),
            InvalidArgument,
            "Indices and updates specified for empty output"
        );
    } else {
        check_updates(&context.input(0), &context.input(1), &output)?;
    }
    context.set_output(0, output);
    Ok(())
}

fn scatter(context: &mut KernelContext) -> Result<()> {
    let shape = Shape::new(&context.input_i64s(2)?)?;
    let (indices, updates) = (context.input(0)?.clone(), context.take_input(1)?);
    let mut output = Tensor::zeros(updates.dtype(), shape)?;
    let join = if updates.dtype().is_plain() && updates.dtype() != DataType::BOOL {
        Join::Add
    } else {
        Join::Update
    };
    scatter_by_policy(context.attrs(), &mut output, &indices, &updates, join)?;
    context.set_output(0, output)
}

fn scatter_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, indices) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let gathered = context.op("GatherNd", &[gradient, indices], Attrs::new())?;
    context.set(1, gathered);
    Ok(())
}

fn tensor_scatter_shape(context: &mut ShapeContext) -> Result<()> {
    check_updates(&context.input(1), &context.input(2), &context.input(0))?;
    shapes::unchanged(context)
}

fn tensor_scatter(context: &mut KernelContext) -> Result<()> {
    let join = match context.node().op_name() {
        "TensorScatterUpdate" => Join::Update,
        "TensorScatterAdd" | "ScatterNdNonAliasingAdd" => Join::Add,
        "TensorScatterSub" => Join::Sub,
        "TensorScatterMax" => Join::Max,
        _ => Join::Min,
    };
    let mut target = context.take_input(0)?;
    scatter_by_policy(
        context.attrs(),
        &mut target,
        context.input(1)?,
        context.input(2)?,
        join,
    )?;
    context.set_output(0, target)
}

fn update_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, indices) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let updates = context.op("GatherNd", &[gradient, indices], Attrs::new())?;
    let zeros = context.op("ZerosLike", &[updates], Attrs::new())?;
    let kept = context.op("TensorScatterUpdate", &[gradient, indices, zeros], Attrs::new())?;
    context.set(0, kept);
    context.set(2, updates);
    Ok(())
}

fn add_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, indices) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let mut updates = context.op("GatherNd", &[gradient, indices], Attrs::new())?;
    if context.node().op_name() == "TensorScatterSub" {
        updates = context.op("Neg", &[updates], Attrs::new())?;
    }
    context.set(0, gradient);
    context.set(2, updates);
    Ok(())
}

/// The same bytes as elements of another size: one axis is added or taken away.
fn bitcast_dims(dims: &[i64], from: usize, to: usize) -> Result<Vec<i64>> {
    let mut dims = dims.to_vec();
    if from > to {
        dims.push((from / to) as i64);
    } else if from < to {
        let last = dims.pop().unwrap_or(-2);
        ensure!(
            last == dim::UNKNOWN || last == (to / from) as i64,
            InvalidArgument,
            "Cannot bitcast due to shape. {last} is not {}",
            to / from
        );
    }
    Ok(dims)
}

fn bitcast_sizes(context: &ShapeContext) -> Result<(usize, usize)> {
    let (from, to) = (
        context.attrs().dtype("T")?.size(),
        context.attrs().dtype("type")?.size(),
    );
    ensure!(
        from > 0 && to > 0 && (from % to == 0 || to % from == 0),
        InvalidArgument,
        "Cannot bitcast from element size {from} to element size {to}"
    );
    Ok((from, to))
}

fn bitcast_shape(context: &mut ShapeContext) -> Result<()> {
    let (from, to) = bitcast_sizes(context)?;
    if let Some(dims) = context.input(0).dims() {
        let output = PartialShape::new(&bitcast_dims(dims, from, to)?);
        context.set_output(0, output);
    }
    Ok(())
}

fn bitcast(context: &mut KernelContext) -> Result<()> {
    let dtype = context.output_type(0);
    let input = context.take_input(0)?;
    if dtype.size() == input.dtype().size() {
        return context.set_output(0, input.reinterpret(dtype)?);
    }
    let dims = bitcast_dims(input.dims(), input.dtype().size(), dtype.size())?;
    let mut output = context.allocate(dtype, Shape::new(&dims)?)?;
    if let Some(bytes) = output.bytes_mut() {
        bytes.copy_from_slice(input.bytes());
    }
    context.set_output(0, output)
}

crate::op_cases! {
    scattered: Case::op("ScatterNd").inputs([t(&[3, 1], &[1, 3, 1]), vector(&[5.0f32, 6.0, 7.0]), vector(&[5])])
        .gives(vector(&[0.0f32, 12.0, 0.0, 6.0, 0.0]));
    scattered_rows: Case::op("ScatterNd").inputs([t(&[2, 1], &[0, 2]), counting(DataType::INT64, &[2, 2]), vector(&[3, 2])]);
    scattered_nowhere: Case::op("ScatterNd").inputs([t::<i32>(&[0, 1], &[]), t::<f32>(&[0], &[]), vector(&[2])])
        .gives(vector(&[0.0f32, 0.0]));
    scattered_ignoring: Case::op("ScatterNd").inputs([t(&[2, 1], &[5, 0]), vector(&[3.0f32, 4.0]), vector(&[2])])
        .attr("bad_indices_policy", "IGNORE").gives(vector(&[4.0f32, 0.0])).without_gradient();
    added_ignoring: Case::op("TensorScatterAdd").inputs([vector(&[1.0f32, 2.0]), t(&[2, 1], &[5, 0]), vector(&[3.0f32, 4.0])])
        .attr("bad_indices_policy", "IGNORE").gives(vector(&[5.0f32, 2.0])).without_gradient();
    added_by_unknown_policy: Case::op("TensorScatterAdd").inputs([vector(&[1.0f32]), t(&[1, 1], &[0]), vector(&[3.0f32])])
        .attr("bad_indices_policy", "x").fails(Code::InvalidArgument);
    scattered_outside: Case::op("ScatterNd").inputs([t(&[1, 1], &[5]), vector(&[5.0f32]), vector(&[5])])
        .fails(Code::InvalidArgument);
    scattered_misfit: Case::op("ScatterNd").inputs([t(&[1, 1], &[0]), vector(&[5.0f32, 6.0]), vector(&[5])])
        .fails(Code::InvalidArgument);
    updated: Case::op("TensorScatterUpdate").inputs([counting(DataType::STRING, &[3]), t(&[1, 1], &[1]), strings(&[1], &["x"])]);
    updated_outside: Case::op("TensorScatterUpdate").inputs([vector(&[1, 2]), t(&[1, 1], &[-1]), vector(&[7])])
        .fails(Code::InvalidArgument);
    added: Case::op("TensorScatterAdd").inputs([vector(&[1, 2, 3]), t(&[2, 1], &[1, 1]), vector(&[7, 10])])
        .gives(vector(&[1, 19, 3]));
    added_outside: Case::op("TensorScatterAdd").inputs([vector(&[1, 2]), t(&[1, 1], &[2]), vector(&[7])])
        .fails(Code::InvalidArgument);
    subtracted: Case::op("TensorScatterSub").inputs([counting(DataType::DOUBLE, &[2, 2]), t(&[1, 2], &[1, 0]), vector(&[7.0f64])]);
    larger: Case::op("TensorScatterMax").inputs([vector(&[1, 2, 3]), t(&[2, 1], &[0, 2]), vector(&[7, 0])])
        .gives(vector(&[7, 2, 3]));
    smaller: Case::op("TensorScatterMin").inputs([vector(&[1, 2, 3]), t(&[2, 1], &[0, 2]), vector(&[7, 0])])
        .gives(vector(&[1, 2, 0]));
    bits: Case::op("Bitcast").input(scalar(1.0f32)).attr("type", DataType::INT32).gives(scalar(0x3f80_0000));
    bits_apart: Case::op("Bitcast").input(vector(&[1i64])).attr("type", DataType::UINT16);
    bits_together: Case::op("Bitcast").input(counting(DataType::UINT8, &[3, 4])).attr("type", DataType::INT32);
    bits_left_over: Case::op("Bitcast").input(counting(DataType::UINT8, &[3])).attr("type", DataType::INT32)
        .fails(Code::InvalidArgument);
}
