//! A box out of a sparse tensor, and its gradient.

use super::arrange::sparse_shape;
use super::parts::{Sparse, check_parts, matrix, take};
use crate::movement::Writer;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op};
use ff_tensor::{Result, Shape, Tensor, ensure};
use rustc_hash::FxHashMap;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseSlice",
        shape: |context| {
            check_parts(context, 0)?;
            context
                .input_with_rank(3, 1)?
                .merge(&context.input_with_rank(4, 1)?)?;
            sparse_shape(context)
        },
        kernels: &[Kernel::native(slice)],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "SparseSliceGrad",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            let places = context.input_with_rank(1, 2)?;
            context.input_with_rank(2, 1)?;
            context.input_with_rank(3, 2)?;
            context.set_output(0, ff_tensor::PartialShape::new(&[places.dim(0)]));
            Ok(())
        },
        kernels: &[Kernel::native(spread)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

fn slice(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let (start, size) = (context.input_i64s(3)?, context.input_i64s(4)?);
    ensure!(
        start.len() == sparse.rank() && size.len() == sparse.rank(),
        InvalidArgument,
        "Expected start and size to be vectors of length {} but got length {}",
        sparse.rank(),
        start.len()
    );
    if let Some(bad) = size.iter().find(|&&size| size < 0) {
        ff_tensor::bail!(InvalidArgument, "Expected a non-negative size, got {bad}");
    }
    let dims: Vec<i64> = sparse
        .dims
        .iter()
        .zip(start.iter().zip(&size))
        .map(|(&extent, (&start, &size))| {
            if start < extent {
                size.min(extent.saturating_sub(start))
            } else {
                0
            }
        })
        .collect();
    let inside = |&number: &usize| {
        let place = sparse.place(number).iter().zip(start.iter().zip(&size));
        let mut place = place;
        place.all(|(&at, (&start, &size))| at >= start && at < start.saturating_add(size))
    };
    let numbers: Vec<usize> = (0..sparse.count()).filter(inside).collect();
    let moved = |&number: &usize| {
        sparse
            .place(number)
            .iter()
            .zip(&start)
            .map(|(at, start)| at - start)
    };
    let places: Vec<i64> = numbers.iter().flat_map(moved).collect();
    context.set_output(0, matrix(&places, numbers.len(), sparse.rank())?)?;
    context.set_output(1, take(&sparse.values, &numbers)?)?;
    context.set_output(2, Tensor::vector(&dims)?)
}

/// Each value of the box goes back to where it came from; the others are zero.
fn spread(context: &mut KernelContext) -> Result<()> {
    let incoming = context.input(0)?;
    let (inputs, outputs) = (context.input(1)?, context.input(3)?);
    let start = context.input_i64s(2)?;
    let rank = inputs.dims()[1] as usize;
    ensure!(
        outputs.dims()[1] as usize == rank && start.len() == rank,
        InvalidArgument,
        "The input and output should have the same ndims: got: {rank} and {}",
        outputs.dims()[1]
    );
    ensure!(
        incoming.num_elements() as i64 == outputs.dims()[0],
        InvalidArgument,
        "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): got {} and {}",
        incoming.num_elements(),
        outputs.dims()[0]
    );
    let (inputs, count) = (inputs.to_i64_vec()?, inputs.dims()[0] as usize);
    let known: FxHashMap<&[i64], usize> = (0..count)
        .rev()
        .map(|number| (&inputs[number * rank..(number + 1) * rank], number))
        .collect();
    let outputs = outputs.to_i64_vec()?;
    let mut writer = Writer::zeros(incoming.dtype(), Shape::vector(count))?;
    let mut used = 0;
    for number in 0..incoming.num_elements() {
        let place = outputs[number * rank..(number + 1) * rank].iter().zip(&start);
        let place: Vec<i64> = place.map(|(at, start)| at.wrapping_add(*start)).collect();
        if let Some(&to) = known.get(&place[..]) {
            writer.copy(to, incoming, number, 1)?;
            used += 1;
        }
    }
    ensure!(
        used == incoming.num_elements(),
        Internal,
        "Elements of backprop_val_grad aren't all propagated. Num elements:{}, used: {used}",
        incoming.num_elements()
    );
    let output = writer.finish()?;
    context.set_output(0, output)
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places) = (context.incoming_or_zeros(1)?, context.input(0)?);
    let (start, outputs) = (context.input(3)?, context.output(0));
    let attrs = crate::math::gradients::typed(context.dtype(incoming));
    let gradient = context.op("SparseSliceGrad", &[incoming, places, start, outputs], attrs)?;
    context.set(1, gradient);
    Ok(())
}

#[cfg(test)]
fn cut(start: &[i64], size: &[i64]) -> crate::testing::Case {
    use crate::testing::vector;
    super::arrange::case("SparseSlice", ff_tensor::DataType::FLOAT).inputs([vector(start), vector(size)])
}

#[cfg(test)]
use super::arrange::places;

crate::op_cases! {
    inside: cut(&[1, 1], &[1, 5]);
    all: cut(&[0, 0], &[2, 3]);
    before: cut(&[-1, 1], &[1, 5]);
    beyond: cut(&[5, 1], &[1, 5]);
    negative: cut(&[0, 1], &[-1, 5]).fails(Code::InvalidArgument);
    short: cut(&[0], &[1]).fails(Code::InvalidArgument);
    spread_out: Case::op("SparseSliceGrad").inputs([vector(&[7.0f32]), places(), vector(&[1i64, 1]), t(&[1, 2], &[0i64, 1])])
        .gives(vector(&[0.0f32, 0.0, 7.0]));
    spread_nothing: Case::op("SparseSliceGrad").inputs([vector::<i32>(&[]), places(), vector(&[1i64, 1]), t::<i64>(&[0, 2], &[])]);
    spread_elsewhere: Case::op("SparseSliceGrad").inputs([vector(&[7.0f32]), places(), vector(&[1i64, 1]), t(&[1, 2], &[9i64, 9])])
        .fails(Code::Internal);
    spread_misfit: Case::op("SparseSliceGrad").inputs([vector(&[7.0f32, 1.0]), places(), vector(&[1i64, 1]), t(&[1, 2], &[0i64, 1])])
        .fails(Code::InvalidArgument);
}
