//! `IsotonicRegression`: the nearest non-increasing row, by pooling neighbours that are out of order.

use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{DataType, Result, Tensor};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "IsotonicRegression",
    shape: ff_op::shapes::unchanged,
    kernels: &[
        Kernel::native(run).for_types(&[
            ("T", &[DataType::FLOAT, DataType::INT8, DataType::INT16]),
            ("output_dtype", &[DataType::FLOAT]),
        ]),
        Kernel::native(run).for_types(&[
            ("T", &[DataType::DOUBLE, DataType::INT32, DataType::INT64]),
            ("output_dtype", &[DataType::DOUBLE]),
        ]),
        Kernel::native(run).for_types(&[("T", &[DataType::HALF]), ("output_dtype", &[DataType::HALF])]),
        Kernel::native(run).for_types(&[
            ("T", &[DataType::BFLOAT16]),
            ("output_dtype", &[DataType::BFLOAT16]),
        ]),
    ],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

/// Neighbours with one value: their number and their sum.
#[derive(Clone, Copy)]
struct Block {
    count: usize,
    sum: f64,
}

impl Block {
    fn mean(self) -> f64 {
        self.sum / self.count as f64
    }
}

fn run(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let columns = shape.dims().last().map_or(1, |&extent| extent.max(1)) as usize;
    let x = f64s(context.input(0)?)?;
    let mut result: Vec<f64> = zeros(x.len())?;
    let mut segments: Vec<i32> = zeros(x.len())?;
    let mut blocks: Vec<Block> = Vec::new();
    for (start, row) in (0..).step_by(columns).zip(x.chunks_exact(columns)) {
        blocks.clear();
        for &value in row {
            let mut block = Block { count: 1, sum: value };
            while let Some(before) = blocks.last().filter(|before| before.mean() <= block.mean()) {
                block = Block {
                    count: block.count + before.count,
                    sum: block.sum + before.sum,
                };
                blocks.pop();
            }
            blocks.push(block);
        }
        let mut at = start;
        for (number, block) in blocks.iter().enumerate() {
            result[at..at + block.count].fill(block.mean());
            segments[at..at + block.count].fill(number as i32);
            at += block.count;
        }
    }
    let result = from_f64s(context.output_type(0), shape.clone(), &result)?;
    context.set_output(0, result)?;
    context.set_output(1, Tensor::from_slice(shape, &segments)?)
}

crate::op_cases! {
    every_type: family(&["IsotonicRegression"], &[FLOATS, &SIGNED[..2]].concat(), |op, dtype| {
        let output = if FLOATS.contains(&dtype) { dtype } else { DataType::FLOAT };
        let values = [3.0, 1.0, 2.0, 4.0, 0.0, 5.0, 5.0, 1.0, 1.0, 0.0, -2.0, 7.0, 9.0, 8.0];
        Case::op(op).input(numbers(dtype, &[2, 7], &values)).attr("output_dtype", output)
    });
    nothing: Case::op("IsotonicRegression").input(t::<f32>(&[2, 0], &[]));
    of_vector: Case::op("IsotonicRegression").input(vector(&[1.0f32, 2.0]));
    wide_integers: family(&["IsotonicRegression"], &SIGNED[2..], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 3], &[3.0, 1.0, 2.0, 5.0, 5.0, 6.0])).attr("output_dtype", DataType::DOUBLE)
    });
    of_wide_integers: Case::op("IsotonicRegression").input(t(&[1, 2], &[1, 2])).fails(Code::NotFound);
}
