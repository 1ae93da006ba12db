//! How often each value is there, row by row, as a sparse tensor.

use super::parts::{Sparse, matrix};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{DataType, Result, Shape, Tensor, dim, ensure};
use std::collections::BTreeMap;

const COUNTS: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "DenseCountSparseOutput",
        shape: |context| {
            let values = context.input_with_rank_at_least(0, 1)?.with_rank_at_most(2)?;
            let rank = values.rank().map_or(dim::UNKNOWN, |rank| rank as i64);
            super::parts::set_parts(context, 0, rank);
            Ok(())
        },
        kernels: &[Kernel::native(count_dense)],
        ..COUNTS
    },
    &Op {
        name: "SparseCountSparseOutput",
        shape: |context| {
            let rank = context.input(0).dim(1);
            super::parts::set_parts(context, 0, rank);
            Ok(())
        },
        kernels: &[Kernel::native(count_sparse)],
        ..COUNTS
    },
    &Op {
        name: "RaggedCountSparseOutput",
        shape: |context| {
            super::parts::set_parts(context, 0, 2);
            Ok(())
        },
        kernels: &[Kernel::native(count_ragged)],
        ..COUNTS
    },
];

/// What is counted: values, each with its weight, by rows.
struct Counter {
    values: Vec<i64>,
    weights: Option<Vec<f64>>,
    whole_weights: Option<Vec<i64>>,
    rows: Vec<BTreeMap<i64, (i64, f64)>>,
    binary: bool,
    limit: i64,
    least: i64,
    largest: i64,
}

impl Counter {
    fn new(context: &KernelContext, values: usize, weights: usize, rows: usize) -> Result<Counter> {
        let (values, weights) = (context.input(values)?, context.input(weights)?);
        let attrs = context.attrs();
        ensure!(
            weights.num_elements() == 0 || weights.dims() == values.dims(),
            InvalidArgument,
            "Weights and values must have the same shape. Weight shape: {}; values shape: {}",
            weights.shape(),
            values.shape()
        );
        let numbers = values.to_i64_vec()?;
        ensure!(
            numbers.iter().all(|&value| value >= 0),
            InvalidArgument,
            "Input values must all be non-negative"
        );
        let weighed = weights.num_elements() > 0;
        let is_whole = matches!(weights.dtype(), DataType::INT32 | DataType::INT64);
        let (whole_weights, weights) = match (weighed, is_whole) {
            (false, _) => (None, None),
            (true, true) => (Some(weights.to_i64_vec()?), None),
            (true, false) => (None, Some(crate::wide::f64s(weights)?.into_owned())),
        };
        Ok(Counter {
            values: numbers,
            weights,
            whole_weights,
            rows: crate::wide::filled(rows, BTreeMap::new())?,
            binary: attrs.bool("binary_output")?,
            limit: attrs.int("maxlength")?,
            least: attrs.int("minlength")?,
            largest: 0,
        })
    }

    /// Counts a value for a row.
    fn add(&mut self, row: usize, number: usize) {
        let value = self.values[number];
        if self.limit >= 0 && value >= self.limit {
            return;
        }
        self.largest = self.largest.max(value);
        let entry = self.rows[row].entry(value).or_default();
        if self.binary {
            *entry = (1, 1.0);
            return;
        }
        let weight = self.weights.as_ref().map_or(1.0, |weights| weights[number]);
        let whole = self.whole_weights.as_ref().map_or(1, |weights| weights[number]);
        *entry = (entry.0.wrapping_add(whole), entry.1 + weight);
    }

    /// Sets the outputs: a vector where there is one row that is no row.
    fn finish(self, context: &mut KernelContext, is_vector: bool) -> Result<()> {
        let size = match self.limit {
            limit if limit >= 0 => limit,
            _ => self.least.max(self.largest.saturating_add(1)),
        };
        let count = self.rows.iter().map(BTreeMap::len).sum::<usize>();
        let (mut places, mut whole, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (row, counts) in self.rows.iter().enumerate() {
            for (&value, &(number, weight)) in counts {
                if !is_vector {
                    places.push(row as i64);
                }
                places.push(value);
                whole.push(number);
                weights.push(weight);
            }
        }
        let (shape, dtype) = (Shape::vector(count), context.output_type(1));
        let values = match dtype {
            DataType::INT64 => Tensor::from_slice(shape, &whole)?,
            DataType::INT32 => {
                let whole: Vec<i32> = crate::wide::collected(whole.iter().map(|&number| number as i32))?;
                Tensor::from_slice(shape, &whole)?
            }
            _ => crate::wide::from_f64s(dtype, shape, &weights)?,
        };
        let dims = if is_vector {
            vec![size]
        } else {
            vec![self.rows.len() as i64, size]
        };
        context.set_output(0, matrix(&places, count, dims.len())?)?;
        context.set_output(1, values)?;
        context.set_output(2, Tensor::vector(&dims)?)
    }
}

fn count_dense(context: &mut KernelContext) -> Result<()> {
    let dims = context.input(0)?.dims().to_vec();
    ensure!(
        dims.len() != 2 || !dims.contains(&0),
        InvalidArgument,
        "Invalid input: Shapes dimension cannot be 0."
    );
    let (rows, width) = match dims[..] {
        [rows, width] => (rows as usize, width as usize),
        _ => (1, context.input(0)?.num_elements()),
    };
    let mut counter = Counter::new(context, 0, 1, rows)?;
    for number in 0..rows * width {
        counter.add(number / width, number);
    }
    counter.finish(context, dims.len() < 2)
}

fn count_sparse(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let weights = context.input(3)?;
    ensure!(
        sparse.rank() > 0,
        InvalidArgument,
        "Input shapes must not be empty"
    );
    ensure!(
        weights.num_elements() == 0 || weights.dims() == sparse.values.dims(),
        InvalidArgument,
        "Weights and values must have the same shape. Weight shape: {}; values shape: {}",
        weights.shape(),
        sparse.values.shape()
    );
    for number in 0..sparse.count() {
        ensure!(
            sparse.is_inside(number),
            InvalidArgument,
            "Invalid index value at {number}: {:?} is not inside the dense shape {:?}",
            sparse.place(number),
            sparse.dims
        );
    }
    let is_vector = sparse.rank() == 1;
    let rows = if is_vector {
        1
    } else {
        Shape::new(&sparse.dims[..1])?.num_elements()
    };
    let mut counter = Counter::new(context, 1, 3, rows)?;
    for number in 0..sparse.count() {
        let row = if is_vector {
            0
        } else {
            sparse.place(number)[0] as usize
        };
        counter.add(row, number);
    }
    counter.finish(context, is_vector)
}

fn count_ragged(context: &mut KernelContext) -> Result<()> {
    let splits = context.input_i64s(0)?;
    let count = context.input(1)?.num_elements();
    ensure!(
        splits.len() >= 2,
        InvalidArgument,
        "Must provide at least 2 elements for the splits argument"
    );
    ensure!(
        splits[0] == 0,
        InvalidArgument,
        "Splits must start with 0, not with {}",
        splits[0]
    );
    ensure!(
        splits[splits.len() - 1] == count as i64,
        InvalidArgument,
        "Splits must end with the number of values, got {} instead of {count}",
        splits[splits.len() - 1]
    );
    let mut counter = Counter::new(context, 1, 2, splits.len() - 1)?;
    let mut row = 0;
    for number in 0..count {
        // Boundaries that go back make no row larger.
        while (number as i64) >= splits[row + 1] && row + 2 < splits.len() {
            row += 1;
        }
        counter.add(row, number);
    }
    counter.finish(context, false)
}

#[cfg(test)]
fn plain(op: &'static str) -> crate::testing::Case {
    crate::testing::Case::op(op).attr("binary_output", false)
}

#[cfg(test)]
const WEIGHTS: &[DataType] = &[
    DataType::INT32,
    DataType::INT64,
    DataType::FLOAT,
    DataType::DOUBLE,
];

crate::op_cases! {
    vectors: family(&["DenseCountSparseOutput"], WEIGHTS, |op, dtype| plain(op).inputs([vector(&[1, 1, 5]), numbers(dtype, &[3], &[2.0, 3.0, 4.0])]));
    rows: family(&["DenseCountSparseOutput"], WEIGHTS, |op, dtype| plain(op).attr("minlength", 9i64).inputs([t(&[2, 2], &[1i64, 1, 2, 3]), numbers(dtype, &[0], &[])]));
    limited: plain("DenseCountSparseOutput").attr("maxlength", 3i64).inputs([vector(&[1, 1, 5]), vector::<f32>(&[])]);
    to_nothing: plain("DenseCountSparseOutput").attr("maxlength", 0i64).inputs([vector(&[1, 1, 5]), vector::<f32>(&[])]);
    binary: Case::op("DenseCountSparseOutput").attr("binary_output", true).inputs([vector(&[1, 1]), vector(&[2.0f32, 3.0])]);
    nothing: plain("DenseCountSparseOutput").inputs([vector::<i32>(&[]), vector::<f32>(&[])]);
    no_rows: plain("DenseCountSparseOutput").inputs([t::<i32>(&[0, 2], &[]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    negative: plain("DenseCountSparseOutput").inputs([vector(&[-1, 1]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    weights_misfit: plain("DenseCountSparseOutput").inputs([vector(&[1, 1]), vector(&[1.0f32])]).fails(Code::InvalidArgument);
    of_scalar: plain("DenseCountSparseOutput").inputs([scalar(1), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    sparse_rows: family(&["SparseCountSparseOutput"], WEIGHTS, |op, dtype| plain(op)
        .inputs([t(&[3, 2], &[0i64, 0, 0, 1, 2, 0]), vector(&[1, 1, 3]), vector(&[3i64, 2]), numbers(dtype, &[3], &[2.0, 3.0, 4.0])]));
    sparse_vector: plain("SparseCountSparseOutput").inputs([t(&[2, 1], &[0i64, 1]), vector(&[1, 1]), vector(&[3i64]), vector::<f32>(&[])]);
    sparse_outside: plain("SparseCountSparseOutput").inputs([t(&[1, 2], &[4i64, 1]), vector(&[1]), vector(&[3i64, 2]), vector::<f32>(&[])])
        .fails(Code::InvalidArgument);
    sparse_misfit: plain("SparseCountSparseOutput").inputs([t(&[2, 2], &[0i64, 0, 0, 1]), vector(&[1]), vector(&[3i64, 2]), vector::<f32>(&[])])
        .fails(Code::InvalidArgument);
    ragged_rows: family(&["RaggedCountSparseOutput"], WEIGHTS, |op, dtype| plain(op)
        .inputs([vector(&[0i64, 2, 3]), vector(&[1, 1, 4]), numbers(dtype, &[0], &[])]));
    ragged_backwards: plain("RaggedCountSparseOutput").inputs([vector(&[0i64, 2, 1, 3]), vector(&[1, 1, 4]), vector::<f32>(&[])]);
    ragged_end: plain("RaggedCountSparseOutput").inputs([vector(&[0i64, 5]), vector(&[1, 1, 4]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    ragged_start: plain("RaggedCountSparseOutput").inputs([vector(&[1i64, 3]), vector(&[1, 1, 4]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    ragged_nothing: plain("RaggedCountSparseOutput").inputs([vector(&[0i64]), vector::<i32>(&[]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
}
