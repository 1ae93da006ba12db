//! `UnsortedSegmentJoin`: the strings of each segment, joined in their order.

use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "UnsortedSegmentJoin",
    shape: |context| {
        let (values, ids) = (context.input(0), context.input(1));
        context.input_with_rank(2, 0)?;
        let count = context.input_as_scalar(2)?;
        ensure!(
            count.is_none_or(|count| count >= 0),
            InvalidArgument,
            "Number of segments must be non-negative, got {count:?}"
        );
        let (Some(rank), Some(_)) = (ids.rank(), values.rank()) else {
            return Ok(());
        };
        let prefix = values.with_rank_at_least(rank)?.slice(0, Some(rank as i64));
        prefix.merge(&ids)?;
        let rest = values.slice(rank as i64, None);
        let segments = PartialShape::new(&[count.unwrap_or(dim::UNKNOWN)]);
        context.set_output(0, segments.concat(&rest));
        Ok(())
    },
    kernels: &[Kernel::native(run)],
    ..Op::PURE
}];

fn run(context: &mut KernelContext) -> Result<()> {
    let separator = context.attrs().bytes("separator")?.to_vec();
    let (values, ids) = (context.input(0)?, context.input_i64s(1)?);
    let count = context.input_i64(2)?;
    let rank = context.input(1)?.rank();
    let mut dims = vec![count];
    dims.extend_from_slice(&values.dims()[rank..]);
    let each = dims[1..].iter().product::<i64>() as usize;
    let shape = Shape::new(&dims)?;
    let mut joined: Vec<Option<Vec<u8>>> = crate::wide::filled(shape.num_elements(), None)?;
    let texts = values.strings()?;
    for (row, &id) in ids.iter().enumerate() {
        ensure!(
            (0..count).contains(&id),
            InvalidArgument,
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        );
        for i in 0..each {
            let text = texts[row * each + i].as_bytes();
            match &mut joined[id as usize * each + i] {
                Some(before) => {
                    before.extend_from_slice(&separator);
                    before.extend_from_slice(text);
                }
                empty => *empty = Some(text.to_vec()),
            }
        }
    }
    let joined: Vec<TString> = joined
        .into_iter()
        .map(|text| text.unwrap_or_default().as_slice().into())
        .collect();
    context.set_output(0, Tensor::from_strings(shape, joined)?)
}

crate::op_cases! {
    rows: family(&["UnsortedSegmentJoin"], &[DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).inputs([strings(&[4], &["a", "b", "c", "d"]), numbers(dtype, &[4], &[2.0, 0.0, 2.0, 0.0]), numbers(dtype, &[], &[4.0])]).attr("separator", ":")
    });
    columns: Case::op("UnsortedSegmentJoin").inputs([strings(&[2, 2], &["a", "b", "c", "d"]), vector(&[1, 1]), scalar(2)]);
    nothing: Case::op("UnsortedSegmentJoin").inputs([strings(&[0], &[]), vector::<i32>(&[]), scalar(2)]);
    beyond: Case::op("UnsortedSegmentJoin").inputs([strings(&[2], &["a", "b"]), vector(&[1, 2]), scalar(2)]).fails(Code::InvalidArgument);
    misfit: Case::op("UnsortedSegmentJoin").inputs([strings(&[2], &["a", "b"]), vector(&[1, 0, 1]), scalar(2)]).fails(Code::InvalidArgument);
}
