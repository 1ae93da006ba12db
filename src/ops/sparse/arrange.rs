//! Sparse tensors in order, in another shape, joined and cut along an axis.

use super::parts::{Sparse, check_parts, matrix, set_parts, take};
use crate::movement::{Writer, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseReorder",
        shape: |context| {
            check_parts(context, 0)?;
            let (places, values) = (context.input(0), context.input(1));
            context.set_output(0, places);
            context.set_output(1, values);
            Ok(())
        },
        kernels: &[Kernel::native(reorder)],
        gradient: Gradient::Fn(reorder_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SparseReshape",
        shape: reshape_shape,
        kernels: &[Kernel::native(reshape)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "SparseConcat",
        shape: concat_shape,
        kernels: &[Kernel::native(concat)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "SparseSplit",
        shape: split_shape,
        kernels: &[Kernel::native(split)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

fn reorder(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let order = sparse.sorted()?;
    let places: Vec<i64> = order
        .iter()
        .flat_map(|&number| sparse.place(number).to_vec())
        .collect();
    context.set_output(0, matrix(&places, sparse.count(), sparse.rank())?)?;
    context.set_output(1, take(&sparse.values, &order)?)
}

/// The incoming values in the order that the inputs had.
fn reorder_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places, dims) = (
        context.incoming_or_zeros(1)?,
        context.input(0)?,
        context.input(2)?,
    );
    let count = crate::math::first_extent(context, places)?;
    let (zero, one) = (context.int32(0)?, context.int32(1)?);
    let numbers = context.op(
        "Range",
        &[zero, count, one],
        Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let attrs = Attrs::new().with("T", DataType::INT32);
    let node = context.node_of("SparseReorder", &[places, numbers, dims], attrs.clone())?;
    let order = context.op("InvertPermutation", &[OutputRef { node, index: 1 }], attrs)?;
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(incoming))
        .with("Tindices", DataType::INT32)
        .with("Taxis", DataType::INT32);
    let gradient = context.op("GatherV2", &[incoming, order, zero], attrs)?;
    context.set(1, gradient);
    Ok(())
}

fn reshape_shape(context: &mut ShapeContext) -> Result<()> {
    let places = context.input_with_rank(0, 2)?;
    context.input_with_rank(1, 1)?;
    let target = context.input_with_rank(2, 1)?;
    context.set_output(0, PartialShape::new(&[places.dim(0), target.dim(0)]));
    context.set_output(1, target);
    Ok(())
}

/// The extents of the target, one of which may be to be found.
fn target_dims(input: &[i64], wanted: &[i64]) -> Result<Vec<i64>> {
    let total = Shape::new(input)?.num_elements() as i64;
    let mut dims = wanted.to_vec();
    let (mut product, mut free) = (1i64, None);
    for (axis, &extent) in wanted.iter().enumerate() {
        if extent == -1 {
            if let Some(other) = free.replace(axis) {
                ff_tensor::bail!(
                    InvalidArgument,
                    "only one output dimension may be -1, not both {other} and {axis}"
                );
            }
            continue;
        }
        ensure!(
            extent >= 0,
            InvalidArgument,
            "size {axis} must be non-negative, not {extent}"
        );
        product = product.checked_mul(extent).ok_or_else(|| {
            ff_tensor::status!(
                InvalidArgument,
                "the requested shape {wanted:?} has too many elements"
            )
        })?;
    }
    if let Some(axis) = free {
        ensure!(
            product > 0,
            InvalidArgument,
            "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero"
        );
        dims[axis] = total / product;
        ensure!(
            product * dims[axis] == total,
            InvalidArgument,
            "Input to reshape is a SparseTensor with {total} dense values, but the requested shape requires a multiple of {product}. input_shape={input:?} output_shape={dims:?}"
        );
        return Ok(dims);
    }
    ensure!(
        product == total,
        InvalidArgument,
        "Input to reshape is a tensor with {total} dense values, but the requested shape has {product}. input_shape={input:?} output_shape={dims:?}"
    );
    Ok(dims)
}

fn reshape(context: &mut KernelContext) -> Result<()> {
    let (places, input) = (context.input_i64s(0)?, context.input_i64s(1)?);
    let count = context.input(0)?.dims()[0] as usize;
    ensure!(
        context.input(0)?.dims()[1] == input.len() as i64,
        InvalidArgument,
        "Input tensor rank must match input shape length."
    );
    let dims = target_dims(&input, &context.input_i64s(2)?)?;
    let (from, to) = (row_major(&input), row_major(&dims));
    let mut moved = Vec::with_capacity(count * dims.len());
    for number in 0..count {
        let place = &places[number * input.len()..(number + 1) * input.len()];
        let flat = place.iter().zip(&from).fold(0i64, |sum, (&at, &stride)| {
            sum.wrapping_add(at.wrapping_mul(stride))
        });
        let mut rest = flat;
        for &stride in &to {
            moved.push(rest / stride.max(1));
            rest %= stride.max(1);
        }
    }
    context.set_output(0, matrix(&moved, count, dims.len())?)?;
    context.set_output(1, Tensor::vector(&dims)?)
}

/// An axis as a number from 0 on.
fn axis_of(axis: i64, rank: usize, what: &str) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        (-rank..rank).contains(&axis),
        InvalidArgument,
        "{what} range [{}, {rank}), got {axis}",
        -rank
    );
    Ok(axis.rem_euclid(rank) as usize)
}

fn concat_shape(context: &mut ShapeContext) -> Result<()> {
    let count = context.num_inputs() / 3;
    let mut rank = dim::UNKNOWN;
    let mut total = 0;
    for index in 0..count {
        let places = context.input_with_rank(index, 2)?;
        let values = context.input_with_rank(count + index, 1)?;
        let dims = context.input_with_rank(2 * count + index, 1)?;
        let own = dim::merge(places.dim(0), values.dim(0))?;
        total = if total < 0 || own < 0 {
            dim::UNKNOWN
        } else {
            dim::add(total, own)?
        };
        rank = dim::merge(rank, dim::merge(places.dim(1), dims.dim(0))?)?;
    }
    context.set_output(0, PartialShape::new(&[total, rank]));
    context.set_output(1, PartialShape::new(&[total]));
    context.set_output(2, PartialShape::new(&[rank]));
    Ok(())
}

fn concat(context: &mut KernelContext) -> Result<()> {
    let count = context.num_inputs() / 3;
    let mut parts = Vec::with_capacity(count);
    for index in 0..count {
        parts.push(Sparse::new(
            context.input(index)?,
            context.input(count + index)?.clone(),
            context.input_i64s(2 * count + index)?,
        )?);
    }
    let mut dims = parts[0].dims.clone();
    let axis = axis_of(
        context.attrs().int("concat_dim")?,
        dims.len(),
        "Concat dimension must be in",
    )?;
    let (mut offset, mut all) = (0i64, Vec::new());
    for (number, part) in parts.iter().enumerate() {
        ensure!(
            part.rank() == dims.len(),
            InvalidArgument,
            "Ranks of all input tensors must match: expected {} but got {} at position {number}",
            dims.len(),
            part.rank()
        );
        for other in (0..dims.len()).filter(|&other| other != axis) {
            ensure!(
                part.dims[other] == dims[other],
                InvalidArgument,
                "Input shapes must match: expected {} for dimension {other} but got {} at position {number}",
                dims[other],
                part.dims[other]
            );
        }
        for value in 0..part.count() {
            let mut place = part.place(value).to_vec();
            place[axis] = place[axis].wrapping_add(offset);
            all.push((place, number, value));
        }
        offset = dim::add(offset, part.dims[axis])?;
    }
    dims[axis] = offset;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut values = Writer::new(context.output_type(1), Shape::vector(all.len()))?;
    for (to, (_, part, from)) in all.iter().enumerate() {
        values.copy(to, &parts[*part].values, *from, 1)?;
    }
    let places: Vec<i64> = all.iter().flat_map(|entry| entry.0.iter().copied()).collect();
    context.set_output(0, matrix(&places, all.len(), dims.len())?)?;
    context.set_output(1, values.finish()?)?;
    context.set_output(2, Tensor::vector(&dims)?)
}

fn split_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let rank = check_parts(context, 1)?;
    let count = context.num_outputs() / 3;
    for index in 0..count {
        context.set_output(index, PartialShape::new(&[dim::UNKNOWN, rank]));
        context.set_output(count + index, PartialShape::of_rank(1));
        context.set_output(2 * count + index, PartialShape::new(&[rank]));
    }
    Ok(())
}

/// The first parts are larger by one where the extent does not go even.
fn split(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 1)?;
    sparse.check_bounds()?;
    let axis = axis_of(context.input_i64(0)?, sparse.rank(), "Input axis should be in")?;
    let (count, extent) = (context.num_outputs() / 3, sparse.dims[axis]);
    ensure!(
        (1..=extent).contains(&(count as i64)),
        InvalidArgument,
        "Input num_split should be between 1 and the splitting dimension size ({extent}), got {count}"
    );
    let (size, more) = (extent / count as i64, extent % count as i64);
    let mut start = 0;
    for part in 0..count {
        let own = size + i64::from((part as i64) < more);
        let inside = |&number: &usize| (start..start + own).contains(&sparse.place(number)[axis]);
        let numbers: Vec<usize> = (0..sparse.count()).filter(inside).collect();
        let mut places: Vec<i64> = numbers
            .iter()
            .flat_map(|&number| sparse.place(number).to_vec())
            .collect();
        for place in places.chunks_exact_mut(sparse.rank()) {
            place[axis] -= start;
        }
        let mut dims = sparse.dims.clone();
        dims[axis] = own;
        context.set_output(part, matrix(&places, numbers.len(), sparse.rank())?)?;
        context.set_output(count + part, take(&sparse.values, &numbers)?)?;
        context.set_output(2 * count + part, Tensor::vector(&dims)?)?;
        start += own;
    }
    Ok(())
}

/// For a shape function elsewhere that has a sparse result.
pub fn sparse_shape(context: &mut ShapeContext) -> Result<()> {
    let rank = check_parts(context, 0)?;
    set_parts(context, 0, rank);
    Ok(())
}

#[cfg(test)]
pub(super) fn places() -> Tensor {
    crate::testing::t(&[3, 2], &[0i64, 1, 1, 0, 1, 2])
}

/// A sparse tensor of extents 2 and 3 with three values, as the first inputs.
#[cfg(test)]
pub(super) fn case(op: &'static str, dtype: DataType) -> crate::testing::Case {
    use crate::testing::{Case, numbers, vector};
    Case::op(op).inputs([
        places(),
        numbers(dtype, &[3], &[1.0, 2.0, 3.0]),
        vector(&[2i64, 3]),
    ])
}

/// Two sparse tensors joined; the second has these extents.
#[cfg(test)]
fn joined(axis: i64, second: [i64; 2]) -> crate::testing::Case {
    use crate::testing::{Case, t, vector};
    Case::op("SparseConcat")
        .inputs([
            places(),
            t(&[2, 2], &[0i64, 0, 1, 0]),
            vector(&[1.0f32, 2.0, 3.0]),
            vector(&[10.0f32, -2.0]),
        ])
        .inputs([vector(&[2i64, 3]), vector(&second)])
        .attr("N", 2i64)
        .attr("concat_dim", axis)
}

/// A sparse tensor of extents 2 and 3 in another shape.
#[cfg(test)]
fn reshaped(dims: &[i64]) -> crate::testing::Case {
    use crate::testing::{Case, vector};
    Case::op("SparseReshape").inputs([places(), vector(&[2i64, 3]), vector(dims)])
}

#[cfg(test)]
fn cut(axis: i64, count: i64) -> crate::testing::Case {
    use crate::testing::{Case, scalar, vector};
    Case::op("SparseSplit")
        .inputs([
            scalar(axis),
            places(),
            vector(&[1.0f32, 2.0, 3.0]),
            vector(&[2i64, 3]),
        ])
        .attr("num_split", count)
}

crate::op_cases! {
    split_of_places_outside: Case::op("SparseSplit").attr("num_split", 2i64)
        .inputs([scalar(0i64), t(&[1, 2], &[0i64, 2]), vector(&[1.0f32]), vector(&[3i64, 2])]).fails(Code::InvalidArgument);
    ordered: Case::op("SparseReorder").inputs([t(&[3, 2], &[1i64, 2, 0, 1, 1, 0]), vector(&[1.0f32, 2.0, 3.0]), vector(&[2i64, 3])])
        .gives(places()).gives(vector(&[2.0f32, 3.0, 1.0]));
    ordered_twice: Case::op("SparseReorder").inputs([t(&[3, 1], &[1i64, 0, 1]), strings(&[3], &["a", "b", "c"]), vector(&[2i64])]);
    ordered_nothing: Case::op("SparseReorder").inputs([t::<i64>(&[0, 2], &[]), vector::<f32>(&[]), vector(&[2i64, 3])]);
    ordered_misfit: Case::op("SparseReorder").inputs([places(), vector(&[1.0f32]), vector(&[2i64, 3])]).fails(Code::InvalidArgument);
    shaped: reshaped(&[3, -1]);
    shaped_flat: reshaped(&[6]).gives(t(&[3, 1], &[1i64, 3, 5])).gives(vector(&[6i64]));
    shaped_badly: reshaped(&[4, -1]).fails(Code::InvalidArgument);
    shaped_twice_free: reshaped(&[-1, -1]).fails(Code::InvalidArgument);
    shaped_larger: reshaped(&[7]).fails(Code::InvalidArgument);
    shaped_negative: reshaped(&[-2, -3]).fails(Code::InvalidArgument);
    joined_rows: joined(0, [2, 3]);
    joined_columns: joined(-1, [2, 5]);
    joined_misfit: joined(0, [2, 5]).fails(Code::InvalidArgument);
    joined_axis: joined(2, [2, 3]).fails(Code::InvalidArgument);
    cut_columns: cut(1, 2);
    cut_rows: cut(0, 2);
    cut_last: cut(-1, 3);
    cut_too_often: cut(0, 3).fails(Code::InvalidArgument);
    cut_axis: cut(2, 1).fails(Code::InvalidArgument);
}
