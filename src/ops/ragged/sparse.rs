//! `RaggedTensorToSparse`: values with their full places.

use super::check_splits;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "RaggedTensorToSparse",
    shape: |context| {
        let rank = context.attrs().int("RAGGED_RANK")? as usize;
        for layer in 0..rank {
            context.input_with_rank(layer, 1)?;
        }
        let values = context.input_with_rank_at_least(rank, 1)?;
        let dense = values.rank().map_or(dim::UNKNOWN, |dims| (rank + dims) as i64);
        let count = values.num_elements();
        context.set_output(0, PartialShape::new(&[count, dense]));
        context.set_output(1, PartialShape::new(&[count]));
        context.set_output(2, PartialShape::new(&[dense]));
        Ok(())
    },
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

fn run(context: &mut KernelContext) -> Result<()> {
    let rank = context.attrs().int("RAGGED_RANK")? as usize;
    let splits: Vec<Vec<i64>> = (0..rank)
        .map(|layer| context.input_i64s(layer))
        .collect::<Result<_>>()?;
    ensure!(rank > 0, InvalidArgument, "Ragged rank must be at least 1");
    let values = context.input(rank)?;
    for (layer, edges) in splits.iter().enumerate() {
        ensure!(
            !edges.is_empty(),
            InvalidArgument,
            "Splits must have at least one element"
        );
        let next = match splits.get(layer + 1) {
            Some(edges) => edges.len() as i64 - 1,
            None => values.dims()[0],
        };
        check_splits(edges, next)?;
    }
    // The place of each row of the present layer.
    let mut places: Vec<Vec<i64>> = (0..splits[0].len() as i64 - 1).map(|row| vec![row]).collect();
    let mut extents = vec![places.len() as i64];
    for edges in &splits {
        let mut next = Vec::new();
        let mut longest = 0;
        for (place, pair) in places.iter().zip(edges.windows(2)) {
            longest = longest.max(pair[1] - pair[0]);
            next.extend((0..pair[1] - pair[0]).map(|i| [&place[..], &[i]].concat()));
        }
        extents.push(longest);
        places = next;
    }
    let inner = &values.dims()[1..];
    extents.extend_from_slice(inner);
    let each: i64 = inner.iter().product();
    let mut indices = Vec::new();
    for place in &places {
        for element in 0..each {
            indices.extend_from_slice(place);
            let mut rest = element;
            let start = indices.len();
            for &extent in inner.iter().rev() {
                indices.push(rest % extent);
                rest /= extent;
            }
            indices[start..].reverse();
        }
    }
    let count = values.num_elements();
    let flat = values.reshape(Shape::vector(count))?;
    let indices = Tensor::from_slice(Shape::new(&[count as i64, extents.len() as i64])?, &indices)?;
    let extents = Tensor::vector(&extents)?;
    context.set_output(0, indices)?;
    context.set_output(1, flat)?;
    context.set_output(2, extents)
}

crate::op_cases! {
    one_layer: family(&["RaggedTensorToSparse"], &[DataType::FLOAT, DataType::STRING], |op, dtype| {
        Case::op(op).inputs([vector(&[0i64, 2, 2, 5]), counting(dtype, &[5])]).attr("RAGGED_RANK", 1i64)
    });
    two_layers: Case::op("RaggedTensorToSparse").inputs([vector(&[0, 2, 3]), vector(&[0, 2, 2, 5]), counting(DataType::INT32, &[5, 2])]).attr("RAGGED_RANK", 2i64);
    nothing: Case::op("RaggedTensorToSparse").inputs([vector(&[0]), counting(DataType::INT32, &[0])]).attr("RAGGED_RANK", 1i64);
    unsorted: Case::op("RaggedTensorToSparse").inputs([vector(&[0i64, 3, 2, 5]), counting(DataType::FLOAT, &[5])]).attr("RAGGED_RANK", 1i64).fails(Code::InvalidArgument);
    too_long: Case::op("RaggedTensorToSparse").inputs([vector(&[0i64, 2, 6]), counting(DataType::FLOAT, &[5])]).attr("RAGGED_RANK", 1i64).fails(Code::InvalidArgument);
}
