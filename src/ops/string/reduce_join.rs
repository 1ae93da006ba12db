//! `ReduceJoin`: the strings along some axes of a tensor, joined.

use crate::movement::row_major;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, TString, Tensor, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "ReduceJoin",
    shape: reduce_shape,
    kernels: &[Kernel::native(reduce)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// The axes to join, in the order given.
fn joined_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(axes.len());
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            OutOfRange,
            "Invalid reduction dimension {axis} for input with {rank} dimension(s)"
        );
        ensure!(
            !places.contains(&(place as usize)),
            InvalidArgument,
            "Duplicate reduction dimension {axis}"
        );
        places.push(place as usize);
    }
    Ok(places)
}

fn reduced(dims: &[i64], axes: &[usize], keep: bool) -> Vec<i64> {
    let extents = dims.iter().enumerate();
    let kept = extents.filter_map(|(axis, &extent)| match axes.contains(&axis) {
        true if keep => Some(1),
        true => None,
        false => Some(extent),
    });
    kept.collect()
}

fn reduce_shape(context: &mut ShapeContext) -> Result<()> {
    let keep = context.attrs().bool("keep_dims")?;
    context.input_with_rank_at_most(1, 1)?;
    let (input, axes) = (context.input(0), context.input_as_i64s(1)?);
    if let (Some(dims), Some(axes)) = (input.dims(), axes) {
        let axes = joined_axes(&axes, dims.len())?;
        context.set_output(0, PartialShape::new(&reduced(dims, &axes, keep)));
    } else if let (Some(rank), true) = (input.rank(), keep) {
        context.set_output(0, PartialShape::of_rank(rank));
    }
    Ok(())
}

fn reduce(context: &mut KernelContext) -> Result<()> {
    let separator = context.attrs().bytes("separator")?;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let (dims, texts) = (input.dims(), input.strings()?);
    let axes = joined_axes(&context.input_i64s(1)?, dims.len())?;
    let strides = row_major(dims);
    let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
    // The axis that is named first changes fastest.
    let inner_last: Vec<usize> = axes.iter().rev().copied().collect();
    let starts = positions(dims, &strides, &kept)?;
    // Nothing is joined where no position is left, however many there are along the other axes.
    let joined = match starts.is_empty() {
        true => Vec::new(),
        false => positions(dims, &strides, &inner_last)?,
    };
    let element = |start: &usize| {
        let pieces: Vec<&[u8]> = joined
            .iter()
            .map(|offset| texts[start + offset].as_bytes())
            .collect();
        TString::from(&pieces.join(separator)[..])
    };
    let mut strings = with_room(starts.len())?;
    strings.extend(starts.iter().map(element));
    let output = Tensor::from_strings(shape, strings)?;
    context.set_output(0, output)
}

/// Offsets of all positions along some axes, the last axis fastest.
fn positions(dims: &[i64], strides: &[i64], axes: &[usize]) -> Result<Vec<usize>> {
    if axes.iter().any(|&axis| dims[axis] == 0) {
        return Ok(Vec::new());
    }
    let mut offsets = vec![0];
    for &axis in axes {
        let steps = |start: usize| (0..dims[axis]).map(move |i| start + (i * strides[axis]) as usize);
        let mut finer = with_room(offsets.len().saturating_mul(dims[axis] as usize))?;
        finer.extend(offsets.into_iter().flat_map(steps));
        offsets = finer;
    }
    Ok(offsets)
}

/// An empty list with room. RESOURCE_EXHAUSTED when memory is out.
fn with_room<T>(count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when joining {count} strings"))?;
    Ok(list)
}

crate::op_cases! {
    a_matrix_of_axes: Case::op("ReduceJoin").inputs([strings(&[1, 1], &["a"]), t(&[1, 1], &[0])]).fails(Code::InvalidArgument);
    reduced_rows: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[1])]).attr("separator", "+")
        .gives(strings(&[2], &["a+b", "c+d"]));
    reduced_in_order: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[0, 1])])
        .gives(strings(&[], &["acbd"]));
    reduced_turned: Case::op("ReduceJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[1, 0])]).attr("keep_dims", true)
        .gives(strings(&[1, 1], &["abcd"]));
    reduced_outside: Case::op("ReduceJoin").inputs([strings(&[1], &["a"]), vector(&[1])]).fails(Code::OutOfRange);
}
