//! Counting values into bins: `Bincount` and its dense, sparse and ragged forms, `HistogramFixedWidth`.

use super::number::Number;
use crate::sparse::Sparse;
use crate::wide;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, Element, PartialShape, Result, Shape, Tensor, dim, ensure};

const BASE: Op = Op {
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Bincount",
        shape: |context| {
            let size = size_of(context, 1)?;
            context.set_output(0, PartialShape::new(&[size]));
            Ok(())
        },
        kernels: &[Kernel::native(plain)],
        lower: Some(super::lower_count::bins),
        ..BASE
    },
    &Op {
        name: "DenseBincount",
        shape: dense_shape,
        kernels: &[Kernel::native(dense)],
        lower: Some(super::lower_count::bins),
        ..BASE
    },
    &Op {
        name: "SparseBincount",
        shape: sparse_shape,
        kernels: &[Kernel::native(sparse)],
        ..BASE
    },
    &Op {
        name: "RaggedBincount",
        shape: |context| {
            let size = size_of(context, 2)?;
            let splits = context.input_with_rank(0, 1)?;
            let rows = if splits.dim(0) > 0 {
                splits.dim(0) - 1
            } else {
                dim::UNKNOWN
            };
            context.set_output(0, PartialShape::new(&[rows, size]));
            Ok(())
        },
        kernels: &[Kernel::native(ragged)],
        ..BASE
    },
    &Op {
        name: "HistogramFixedWidth",
        shape: |context| {
            let range = context.input_with_rank(1, 1)?;
            dim::merge(range.dim(0), 2)?;
            context.input_with_rank(2, 0)?;
            let bins = context.input_as_scalar(2)?.filter(|&bins| bins >= 0);
            context.set_output(0, PartialShape::new(&[bins.unwrap_or(dim::UNKNOWN)]));
            Ok(())
        },
        kernels: &[Kernel::native(histogram)],
        ..BASE
    },
];

/// The number of bins in the scalar at an input, if known.
fn size_of(context: &ShapeContext, index: usize) -> Result<i64> {
    context.input_with_rank(index, 0)?;
    match context.input_as_scalar(index)? {
        Some(size) if size < 0 => {
            ff_tensor::bail!(InvalidArgument, "size ({size}) must be non-negative")
        }
        size => Ok(size.unwrap_or(dim::UNKNOWN)),
    }
}

/// What is counted: values, the row of each, the number of rows, and the bins of a row.
struct Count {
    values: Vec<i64>,
    rows: Vec<usize>,
    shape: Shape,
    bins: i64,
    binary: bool,
    /// Weights are not looked at.
    unweighted: bool,
}

/// Sets output 0. `weights` is the number of that input.
fn count(context: &mut KernelContext, what: &Count, weights: usize) -> Result<()> {
    ensure!(
        what.values.iter().all(|&value| value >= 0),
        InvalidArgument,
        "Input must be non-negative"
    );
    let given = context.input(weights)?.num_elements();
    ensure!(
        what.unweighted || given == 0 || given == what.values.len(),
        InvalidArgument,
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal to 1. Received {}",
        context.input(weights)?.shape()
    );
    let output = crate::match_type!(context.output_type(0), (i32, i64, f32, f64), T => count_of::<T>(context, what, weights))?;
    context.set_output(0, output)
}

fn count_of<T: Number>(context: &KernelContext, what: &Count, weights: usize) -> Result<Tensor> {
    let mut output = Tensor::zeros(T::DTYPE, what.shape.clone())?;
    let weights = context.input_slice::<T>(weights)?;
    let sums = output.as_mut_slice::<T>()?;
    for (at, (&value, &row)) in what.values.iter().zip(&what.rows).enumerate() {
        if value >= what.bins {
            continue;
        }
        let bin = &mut sums[row * what.bins as usize + value as usize];
        *bin = match weights.get(at) {
            _ if what.binary => T::one(),
            Some(&weight) => bin.add(weight),
            None => bin.add(T::one()),
        };
    }
    Ok(output)
}

fn plain(context: &mut KernelContext) -> Result<()> {
    let values = context.input_i64s(0)?;
    let bins = context.input_i64(1)?;
    let rows = wide::zeros(values.len())?;
    let shape = Shape::new(&[bins])?;
    let binary = false;
    count(
        context,
        &Count {
            values,
            rows,
            shape,
            bins,
            binary,
            unweighted: false,
        },
        2,
    )
}

fn dense_shape(context: &mut ShapeContext) -> Result<()> {
    let size = size_of(context, 1)?;
    let input = context.input_with_rank_at_most(0, 2)?;
    let shape = match input.rank() {
        None => PartialShape::unknown(),
        Some(2) => PartialShape::new(&[input.dim(0), size]),
        Some(_) => PartialShape::new(&[size]),
    };
    context.set_output(0, shape);
    Ok(())
}

fn dense(context: &mut KernelContext) -> Result<()> {
    let (counted, weights) = (context.input(0)?.shape(), context.input(2)?.shape());
    ensure!(
        weights.num_elements() == 0 || weights == counted,
        InvalidArgument,
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal to 1. Received {weights}"
    );
    let values = context.input_i64s(0)?;
    let bins = context.input_i64(1)?;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let width = if input.rank() == 2 {
        input.dims()[1] as usize
    } else {
        values.len()
    };
    let rows = (0..values.len()).map(|at| at / width.max(1)).collect();
    let binary = context.attrs().bool("binary_output")?;
    count(
        context,
        &Count {
            values,
            rows,
            shape,
            bins,
            binary,
            unweighted: false,
        },
        2,
    )
}

fn sparse_shape(context: &mut ShapeContext) -> Result<()> {
    let size = size_of(context, 3)?;
    let dense = context.input_with_rank(2, 1)?;
    let shape = match (dense.dim(0), context.input_as_i64s(2)?) {
        (1, _) => PartialShape::new(&[size]),
        (2, Some(dims)) => PartialShape::new(&[dims[0], size]),
        (2, None) => PartialShape::new(&[dim::UNKNOWN, size]),
        (dim::UNKNOWN, _) => PartialShape::unknown(),
        (rank, _) => ff_tensor::bail!(InvalidArgument, "Shape must be rank 1 or 2, got {rank}"),
    };
    context.set_output(0, shape);
    Ok(())
}

fn sparse(context: &mut KernelContext) -> Result<()> {
    let counted = Sparse::read(context, 0)?;
    counted.check_bounds()?;
    let values = counted.values.to_i64_vec()?;
    let bins = context.input_i64(3)?;
    let shape = context.output_shape(0)?.clone();
    let mut rows: Vec<usize> = wide::zeros(values.len())?;
    if counted.rank() == 2 {
        for (number, row) in rows.iter_mut().enumerate() {
            *row = counted.place(number)[0] as usize;
        }
    }
    let binary = context.attrs().bool("binary_output")?;
    count(
        context,
        &Count {
            values,
            rows,
            shape,
            bins,
            binary,
            unweighted: binary,
        },
        4,
    )
}

fn ragged(context: &mut KernelContext) -> Result<()> {
    let (splits, values) = (context.input_i64s(0)?, context.input_i64s(1)?);
    let bins = context.input_i64(2)?;
    ensure!(
        splits.first() == Some(&0),
        InvalidArgument,
        "Splits must start with 0, not with {}",
        splits.first().copied().unwrap_or(-1)
    );
    ensure!(
        splits.last() == Some(&(values.len() as i64)) && splits.is_sorted(),
        InvalidArgument,
        "Splits must end with the number of values, got {} instead of {}",
        splits.last().copied().unwrap_or(-1),
        values.len()
    );
    let shape = context.output_shape(0)?.clone();
    let mut rows = wide::reserved(values.len())?;
    for (row, pair) in splits.windows(2).enumerate() {
        rows.resize(rows.len() + (pair[1] - pair[0]) as usize, row);
    }
    let binary = context.attrs().bool("binary_output")?;
    count(
        context,
        &Count {
            values,
            rows,
            shape,
            bins,
            binary,
            unweighted: binary,
        },
        3,
    )
}

fn histogram(context: &mut KernelContext) -> Result<()> {
    let bins = context.input_i64(2)?;
    ensure!(
        bins > 0,
        InvalidArgument,
        "nbins should be a positive number, but got '{bins}'"
    );
    let counts = crate::match_type!(context.input(0)?.dtype(), (i32, i64, f32, f64), T => counted::<T>(context, bins))?;
    let output = match context.output_type(0) {
        DataType::INT64 => Tensor::vector(&counts)?,
        _ => Tensor::vector(&wide::collected(counts.iter().map(|&count| count as i32))?)?,
    };
    context.set_output(0, output)
}

/// A number that histograms count.
trait Measured: Element + PartialOrd + Number {
    fn double(self) -> f64;
}

macro_rules! measured {
    ($($name:ty: |$x:ident| $double:expr),* $(,)?) => {
        $(impl Measured for $name {
            fn double(self) -> f64 { let $x = self; $double }
        })*
    };
}
measured!(f32: |x| f64::from(x), f64: |x| x, i32: |x| f64::from(x), i64: |x| x as f64);

fn counted<T: Measured>(context: &KernelContext, bins: i64) -> Result<Vec<i64>> {
    let (values, range) = (context.input_slice::<T>(0)?, context.input_slice::<T>(1)?);
    let (low, high) = (range[0], range[1]);
    ensure!(
        low < high,
        InvalidArgument,
        "value_range should satisfy value_range[0] < value_range[1], but got '[{}, {}]'",
        low.double(),
        high.double()
    );
    let mut counts: Vec<i64> = wide::zeros(Shape::new(&[bins])?.num_elements())?;
    let step = high.sub(low).double() / counts.len() as f64;
    for &value in values {
        let above = if value > low { value.sub(low).double() } else { 0.0 };
        let bin = (above / step) as i32;
        let last = counts.len() - 1;
        counts[(bin.max(0) as usize).min(last)] += 1;
    }
    Ok(counts)
}

#[cfg(test)]
const COUNTED: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::INT32,
    DataType::INT64,
];

crate::op_cases! {
    sparse_binary_with_one_weight: Case::op("SparseBincount").attr("binary_output", true)
        .inputs([t(&[2, 1], &[0i64, 2]), vector(&[1, 2]), vector(&[3i64]), scalar(5), scalar(2.0f32)]).gives(vector(&[0.0f32, 1.0, 1.0, 0.0, 0.0]));
    ragged_binary_with_one_weight: Case::op("RaggedBincount").attr("binary_output", true)
        .inputs([vector(&[0i64, 1, 2]), vector(&[1, 2]), scalar(3), scalar(2.0f32)]).gives(t(&[2, 3], &[0.0f32, 1.0, 0.0, 0.0, 0.0, 1.0]));
    weights_of_another_shape: Case::op("DenseBincount").inputs([t(&[1, 1], &[1]), scalar(3), t(&[1, 1, 1], &[1.0f32])]).fails(Code::InvalidArgument);
    no_range_for_many_bins: Case::op("HistogramFixedWidth").inputs([vector::<f32>(&[]), vector(&[0.0f32, 0.0]), scalar(i32::MAX)]).fails(Code::InvalidArgument);
    sparse_beyond_its_extent: Case::op("SparseBincount").inputs([t(&[1, 1], &[3i64]), vector(&[1]), vector(&[3i64]), scalar(5), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    ragged_without_rows: Case::op("RaggedBincount").inputs([vector::<i64>(&[]), vector(&[1]), scalar(3), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    counts: Case::op("Bincount").inputs([vector(&[1, 1, 0, 7, 3]), scalar(4), vector::<i32>(&[])]).gives(vector(&[1, 2, 0, 1]));
    weighted: family(&["Bincount"], COUNTED, |op, dtype| {
        Case::op(op).inputs([vector(&[1, 1, 0, 7]), scalar(4), numbers(dtype, &[4], &[1.0, 2.0, 3.0, 4.0])])
    });
    counts_of_nothing: Case::op("Bincount").inputs([vector::<i32>(&[]), scalar(2), vector::<f32>(&[])]).gives(vector(&[0.0f32, 0.0]));
    counts_negative: Case::op("Bincount").inputs([vector(&[-1]), scalar(2), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    counts_negative_size: Case::op("Bincount").inputs([vector(&[1]), scalar(-2), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    weights_misfit: Case::op("Bincount").inputs([vector(&[1]), scalar(2), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    dense: family(&["DenseBincount"], COUNTED, |op, dtype| {
        Case::op(op).inputs([t(&[2, 3], &[1, 1, 0, 2, 9, 2]), scalar(3), numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])])
    });
    dense_vector: Case::op("DenseBincount").inputs([vector(&[1i64, 1, 0]), scalar(3i64), vector::<i64>(&[])]).attr("binary_output", true).gives(vector(&[1i64, 1, 0]));
    dense_of_rank_3: Case::op("DenseBincount").inputs([t(&[1, 1, 1], &[1]), scalar(3), vector::<i64>(&[])]).fails(Code::InvalidArgument);
    sparse_rows: Case::op("SparseBincount").inputs([t(&[3, 2], &[0i64, 0, 1, 1, 1, 2]), vector(&[1, 2, 2]), vector(&[3i64, 4]), scalar(3), vector(&[1.5f32, 2.0, 4.0])]);
    sparse_vector: Case::op("SparseBincount").inputs([t(&[3, 1], &[0i64, 1, 5]), vector(&[1, 2, 2]), vector(&[6i64]), scalar(3), vector::<f32>(&[])]);
    sparse_outside: Case::op("SparseBincount").inputs([t(&[1, 2], &[3i64, 0]), vector(&[1]), vector(&[3i64, 4]), scalar(3), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    ragged_rows: Case::op("RaggedBincount").inputs([vector(&[0i64, 2, 2, 3]), vector(&[1, 0, 1]), scalar(2), vector::<i32>(&[])]);
    ragged_splits: Case::op("RaggedBincount").inputs([vector(&[0i64, 2]), vector(&[1, 0, 1]), scalar(2), vector::<i32>(&[])]).fails(Code::InvalidArgument);
    ragged_start: Case::op("RaggedBincount").inputs([vector(&[1i64, 3]), vector(&[1, 0, 1]), scalar(2), vector::<i32>(&[])]).fails(Code::InvalidArgument);
    widths: family(&["HistogramFixedWidth"], COUNTED, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6], &[0.0, 1.5, 2.0, 5.0, 15.0, 3.0]), numbers(dtype, &[2], &[0.0, 5.0]), scalar(5)])
    });
    widths_in_64_bits: Case::op("HistogramFixedWidth").inputs([t::<f32>(&[0, 2], &[]), vector(&[-1.0f32, 1.0]), scalar(2)]).attr("dtype", DataType::INT64);
    widths_backwards: Case::op("HistogramFixedWidth").inputs([vector(&[1.0f32]), vector(&[1.0f32, 1.0]), scalar(2)]).fails(Code::InvalidArgument);
    widths_none: Case::op("HistogramFixedWidth").inputs([vector(&[1.0f32]), vector(&[1.0f32, 2.0]), scalar(0)]).fails(Code::InvalidArgument);
}
