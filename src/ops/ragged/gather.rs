//! `RaggedGather`: rows of a ragged tensor by number.

use super::{splits_tensor, take_rows};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, dim, ensure};
use std::ops::Range;

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "RaggedGather",
    shape: |context| {
        let rank = context.attrs().int("PARAMS_RAGGED_RANK")? as usize;
        let splits = context.attrs().int("OUTPUT_RAGGED_RANK")? as usize;
        for layer in 0..rank {
            context.input_with_rank(layer, 1)?;
        }
        let indices = context.input(rank + 1);
        if let Some(indices) = indices.rank() {
            ensure!(
                indices + rank == splits + 1,
                InvalidArgument,
                "indices.ndims + params.ragged_rank - 1 must be OUTPUT_RAGGED_RANK, got {indices} + {rank} - 1 and {splits}"
            );
        }
        let values = context.input_with_rank_at_least(rank, 1)?;
        for layer in 0..splits {
            context.set_output(layer, PartialShape::new(&[dim::UNKNOWN]));
        }
        let values = match values.rank() {
            Some(_) => values.with_dim(0, dim::UNKNOWN)?,
            None => values,
        };
        context.set_output(splits, values);
        Ok(())
    },
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

fn run(context: &mut KernelContext) -> Result<()> {
    let rank = context.attrs().int("PARAMS_RAGGED_RANK")? as usize;
    let splits: Vec<Vec<i64>> = (0..rank)
        .map(|layer| context.input_i64s(layer))
        .collect::<Result<_>>()?;
    let values = context.input(rank)?;
    let indices = context.input_i64s(rank + 1)?;
    let index_dims = context.input(rank + 1)?.dims().to_vec();
    ensure!(
        splits.iter().all(|edges| !edges.is_empty()),
        InvalidArgument,
        "Splits must have at least one element"
    );
    for (layer, edges) in splits.iter().enumerate() {
        let next = match splits.get(layer + 1) {
            Some(edges) => edges.len() as i64 - 1,
            None => values.dims().first().copied().unwrap_or(0),
        };
        ensure!(
            edges.last().is_some_and(|&last| last <= next),
            InvalidArgument,
            "Ragged splits must not point past values"
        );
    }
    let rows = splits[0].len() as i64 - 1;
    if let Some(bad) = indices.iter().find(|&&index| !(0..rows).contains(&index)) {
        ff_tensor::bail!(InvalidArgument, "indices[..] = {bad} is not in [0, {rows})");
    }
    // The index's own layers are regular.
    let mut layers: Vec<Vec<i64>> = Vec::new();
    for axis in 1..index_dims.len() {
        let count: i64 = index_dims[..axis].iter().product();
        layers.push(crate::wide::collected(
            (0..count as usize + 1).map(|i| i as i64 * index_dims[axis]),
        )?);
    }
    let mut ranges: Vec<Range<i64>> = indices.iter().map(|&index| index..index + 1).collect();
    for (layer, edges) in splits.iter().enumerate() {
        let next = match splits.get(layer + 1) {
            Some(edges) => edges.len() as i64 - 1,
            None => values.dims()[0],
        };
        let mut made = vec![0];
        for range in &ranges {
            for row in range.clone() {
                let (start, end) = (edges[row as usize], edges[row as usize + 1]);
                ensure!(
                    0 <= start && start <= end && end <= next,
                    InvalidArgument,
                    "Ragged splits must be sorted and point within the next layer: {start}, {end}"
                );
                made.push(made[made.len() - 1] + end - start);
            }
        }
        for range in &mut ranges {
            *range = edges[range.start as usize]..edges[range.end as usize];
        }
        layers.push(made);
    }
    let taken = take_rows(values, &ranges)?;
    let count = layers.len();
    for (layer, edges) in layers.iter().enumerate() {
        let edges = splits_tensor(context.output_type(layer), edges)?;
        context.set_output(layer, edges)?;
    }
    context.set_output(count, taken)
}

crate::op_cases! {
    splits_beyond_the_values: Case::op("RaggedGather").inputs([vector(&[2i64]), vector::<f32>(&[]), vector::<i32>(&[])]).attr("PARAMS_RAGGED_RANK", 1i64).attr("OUTPUT_RAGGED_RANK", 1i64)
        .fails(Code::InvalidArgument);
    rows: family(&["RaggedGather"], &[DataType::FLOAT, DataType::INT32, DataType::STRING, DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([vector(&[0i64, 2, 2, 5]), counting(dtype, &[5]), vector(&[2, 0, 1, 2])]).attr("PARAMS_RAGGED_RANK", 1i64).attr("OUTPUT_RAGGED_RANK", 1i64)
    });
    layers: Case::op("RaggedGather").inputs([vector(&[0, 2, 3]), vector(&[0, 2, 2, 5]), counting(DataType::FLOAT, &[5, 2]), t(&[1, 2], &[1i64, 0])])
        .attr("PARAMS_RAGGED_RANK", 2i64).attr("OUTPUT_RAGGED_RANK", 3i64);
    no_rows: Case::op("RaggedGather").inputs([vector(&[0i64, 2, 2, 5]), counting(DataType::FLOAT, &[5]), vector::<i32>(&[])]).attr("PARAMS_RAGGED_RANK", 1i64).attr("OUTPUT_RAGGED_RANK", 1i64);
    outside: Case::op("RaggedGather").inputs([vector(&[0i64, 2, 2, 5]), counting(DataType::FLOAT, &[5]), vector(&[3])]).attr("PARAMS_RAGGED_RANK", 1i64).attr("OUTPUT_RAGGED_RANK", 1i64)
        .fails(Code::InvalidArgument);
    bad_splits: Case::op("RaggedGather").inputs([vector(&[0i64, 7]), counting(DataType::FLOAT, &[5]), vector(&[0])]).attr("PARAMS_RAGGED_RANK", 1i64).attr("OUTPUT_RAGGED_RANK", 1i64)
        .fails(Code::InvalidArgument);
}
