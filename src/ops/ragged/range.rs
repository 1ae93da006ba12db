//! `RaggedRange`: rows of evenly spaced numbers.

use super::splits_tensor;
use crate::wide::{f64s, from_f64s};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Shape, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "RaggedRange",
    shape: |context| {
        let mut rows = dim::UNKNOWN;
        let mut all_scalars = true;
        for input in 0..3 {
            let shape = context.input_with_rank_at_most(input, 1)?;
            if shape.rank() == Some(1) {
                rows = dim::merge(rows, shape.dim(0))?;
            }
            all_scalars &= shape.rank() == Some(0);
        }
        let edges = match (all_scalars, rows) {
            (true, _) => 2,
            (false, rows) => dim::add(rows, 1)?,
        };
        context.set_output(0, PartialShape::new(&[edges]));
        context.set_output(1, PartialShape::new(&[dim::UNKNOWN]));
        Ok(())
    },
    kernels: &[Kernel::native(run)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// Most numbers in all.
const MOST: f64 = (1u64 << 40) as f64;

fn run(context: &mut KernelContext) -> Result<()> {
    let inputs = [
        f64s(context.input(0)?)?.into_owned(),
        f64s(context.input(1)?)?.into_owned(),
        f64s(context.input(2)?)?.into_owned(),
    ];
    let vectors = (0..3).filter(|&i| context.input(i).is_ok_and(|input| input.rank() == 1));
    let lengths: Vec<usize> = vectors.map(|i| inputs[i].len()).collect();
    let rows = lengths.first().copied().unwrap_or(1);
    ensure!(
        lengths.iter().all(|&length| length == rows),
        InvalidArgument,
        "starts, limits, and deltas must have the same shape"
    );
    let at = |i: usize, row: usize| {
        let values = &inputs[i];
        values[if values.len() == 1 { 0 } else { row }]
    };
    let floating = context.output_type(1).is_floating();
    let (mut edges, mut values) = (vec![0], Vec::new());
    for row in 0..rows {
        let (start, limit, delta) = (at(0, row), at(1, row), at(2, row));
        ensure!(delta != 0.0, InvalidArgument, "Requires delta != 0");
        let count = ((limit - start) / delta).ceil().max(0.0);
        ensure!(
            count + (values.len() as f64) < MOST,
            InvalidArgument,
            "Requires ((limit - start) / delta) <= {MOST}"
        );
        let more = count as usize;
        values
            .try_reserve(more)
            .map_err(|_| ff_tensor::status!(ResourceExhausted, "OOM when allocating {more} numbers"))?;
        let mut value = start;
        for number in 0..more {
            if number % (1 << 16) == 0 {
                context.host().cancellation().check()?;
            }
            values.push(value);
            // Floats add up the steps, in their own precision.
            value += delta;
            if floating && context.output_type(1) == ff_tensor::DataType::FLOAT {
                value = f64::from(value as f32);
            }
        }
        edges.push(values.len() as i64);
    }
    let edges = splits_tensor(context.output_type(0), &edges)?;
    let values = from_f64s(context.output_type(1), Shape::vector(values.len()), &values)?;
    context.set_output(0, edges)?;
    context.set_output(1, values)
}

crate::op_cases! {
    rows: family(&["RaggedRange"], &[DataType::INT32, DataType::INT64, DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[0.0, 5.0, 8.0]), numbers(dtype, &[3], &[3.0, 5.0, 2.0]), numbers(dtype, &[3], &[1.0, 1.0, -2.0])])
    });
    one_start: Case::op("RaggedRange").inputs([scalar(0), vector(&[3, 0, 4]), scalar(2)]).attr("Tsplits", DataType::INT32);
    scalars: Case::op("RaggedRange").inputs([scalar(0.5f32), scalar(2.0f32), scalar(0.3f32)]);
    no_rows: Case::op("RaggedRange").inputs([vector::<i32>(&[]), vector::<i32>(&[]), vector::<i32>(&[])]);
    no_step: Case::op("RaggedRange").inputs([scalar(0), vector(&[3, 0, 4]), scalar(0)]).fails(Code::InvalidArgument);
    misfit: Case::op("RaggedRange").inputs([vector(&[0, 1]), vector(&[3, 0, 4]), scalar(1)]).fails(Code::InvalidArgument);
}
