//! Rows of a tensor joined by segment: sums, means, products, extremes.
//!
//! The plain forms want ascending numbers of segments; the unsorted ones, and the second versions, take any and drop
//! rows with negative ones.

use super::number::{Number, Ordered};
use super::segment_gradient as gradients;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};

const SORTED: Op = Op {
    shape: |context| {
        let data = context.input_with_rank_at_least(0, 1)?;
        context.input_with_rank(1, 1)?;
        if data.rank().is_some() {
            context.set_output(0, PartialShape::new(&[dim::UNKNOWN]).concat(&data.slice(1, None)));
        }
        Ok(())
    },
    kernels: &[Kernel::native(sorted)],
    ..Op::PURE
};
const UNSORTED: Op = Op {
    shape: unsorted_shape,
    kernels: &[Kernel::native(unsorted)],
    lower: Some(super::lower_count::segments),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SegmentSum",
        gradient: Gradient::Fn(gradients::of_sum),
        ..SORTED
    },
    &Op {
        name: "SegmentMean",
        gradient: Gradient::Fn(gradients::of_mean),
        ..SORTED
    },
    &Op {
        name: "SegmentProd",
        gradient: Gradient::Fn(gradients::of_product),
        ..SORTED
    },
    &Op {
        name: "SegmentMax",
        gradient: Gradient::Fn(gradients::of_extreme),
        ..SORTED
    },
    &Op {
        name: "SegmentMin",
        gradient: Gradient::Fn(gradients::of_extreme),
        ..SORTED
    },
    &Op {
        name: "UnsortedSegmentSum",
        gradient: Gradient::Fn(gradients::of_sum),
        ..UNSORTED
    },
    &Op {
        name: "UnsortedSegmentProd",
        gradient: Gradient::Fn(gradients::of_product),
        ..UNSORTED
    },
    &Op {
        name: "UnsortedSegmentMax",
        gradient: Gradient::Fn(gradients::of_extreme),
        ..UNSORTED
    },
    &Op {
        name: "UnsortedSegmentMin",
        gradient: Gradient::Fn(gradients::of_extreme),
        ..UNSORTED
    },
    &Op {
        name: "SegmentSumV2",
        ..UNSORTED
    },
    &Op {
        name: "SegmentProdV2",
        ..UNSORTED
    },
    &Op {
        name: "SegmentMaxV2",
        ..UNSORTED
    },
    &Op {
        name: "SegmentMinV2",
        ..UNSORTED
    },
];

/// How the rows of a segment are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Join {
    /// Added.
    Sum,
    /// Added, and divided by their number.
    Mean,
    /// Multiplied.
    Product,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// How the op of this name joins rows.
fn join_of(op: &str) -> Join {
    match op.trim_start_matches("Unsorted").trim_end_matches("V2") {
        "SegmentMean" => Join::Mean,
        "SegmentProd" => Join::Product,
        "SegmentMax" => Join::Max,
        "SegmentMin" => Join::Min,
        _ => Join::Sum,
    }
}

/// `rows` of a tensor, as they are joined: input 0 of a context by the segments `segments`, to output 0.
struct Rows<'a> {
    data: &'a Tensor,
    segments: &'a [i64],
    shape: Shape,
    /// Segments without rows hold what a sum or product starts with, extremes only where this says so.
    keep_extremes: bool,
}

/// Elements that can be compared have a largest and a smallest.
trait Extreme: Ordered {
    const LOWEST: Self;
    const HIGHEST: Self;
}

macro_rules! extremes {
    ($($name:ty),*) => {$(
        impl Extreme for $name {
            const LOWEST: Self = <$name>::MIN;
            const HIGHEST: Self = <$name>::MAX;
        }
    )*};
}
extremes!(
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    ff_tensor::f16,
    ff_tensor::bf16
);

/// Joins rows to the elements of `output`; rows of segments outside are left out.
fn accumulate<T: Copy>(data: &[T], segments: &[i64], output: &mut [T], width: usize, join: fn(T, T) -> T) {
    let count = output.len() / width.max(1);
    for (row, &segment) in segments.iter().enumerate() {
        if segment < 0 || segment as usize >= count {
            continue;
        }
        let target = &mut output[segment as usize * width..(segment as usize + 1) * width];
        let source = &data[row * width..(row + 1) * width];
        target.iter_mut().zip(source).for_each(|(a, &b)| *a = join(*a, b));
    }
}

/// The number of rows of each segment.
pub fn counts(segments: &[i64], count: usize) -> Result<Vec<usize>> {
    let mut counts = crate::wide::zeros(count)?;
    for &segment in segments {
        if let Some(own) = usize::try_from(segment)
            .ok()
            .and_then(|segment| counts.get_mut(segment))
        {
            *own += 1;
        }
    }
    Ok(counts)
}

fn joined(rows: &Rows, join: Join) -> Result<Tensor> {
    let dtype = rows.data.dtype();
    if rows.shape.num_elements() == 0 {
        return Tensor::zeros(dtype, rows.shape.clone());
    }
    if matches!(join, Join::Max | Join::Min) {
        return crate::match_real!(dtype, T => extreme::<T>(rows, join == Join::Max));
    }
    crate::match_number!(dtype, T => summed::<T>(rows, join))
}

/// Elements of a row of the output.
fn width(shape: &Shape) -> usize {
    shape.dims()[1..].iter().map(|&extent| extent as usize).product()
}

fn summed<T: Number>(rows: &Rows, join: Join) -> Result<Tensor> {
    let mut output = Tensor::zeros(T::DTYPE, rows.shape.clone())?;
    let width = width(&rows.shape);
    let values = output.as_mut_slice::<T>()?;
    let data = rows.data.as_slice::<T>()?;
    if join == Join::Product {
        values.fill(T::one());
        accumulate(data, rows.segments, values, width, T::mul);
        return Ok(output);
    }
    accumulate(data, rows.segments, values, width, T::add);
    if join == Join::Mean {
        let counts = counts(rows.segments, rows.shape.dims()[0] as usize)?;
        for (row, &count) in values.chunks_exact_mut(width.max(1)).zip(&counts) {
            let mut total = T::default();
            (0..count).for_each(|_| total = total.add(T::one()));
            if count > 1 {
                row.iter_mut().for_each(|value| *value = value.div(total));
            }
        }
    }
    Ok(output)
}

fn extreme<T: Extreme>(rows: &Rows, largest: bool) -> Result<Tensor> {
    let mut output = Tensor::allocate(T::DTYPE, rows.shape.clone())?;
    let width = width(&rows.shape);
    let values = output.as_mut_slice::<T>()?;
    values.fill(if largest { T::LOWEST } else { T::HIGHEST });
    let join = if largest {
        super::number::maximum::<T>
    } else {
        super::number::minimum::<T>
    };
    accumulate(rows.data.as_slice::<T>()?, rows.segments, values, width, join);
    if !rows.keep_extremes {
        let counts = counts(rows.segments, rows.shape.dims()[0] as usize)?;
        for (row, _) in values
            .chunks_exact_mut(width.max(1))
            .zip(&counts)
            .filter(|(_, count)| **count == 0)
        {
            row.fill(T::default());
        }
    }
    Ok(output)
}

/// Fails unless segments ascend from 0 or more. Gives their number.
pub fn check_sorted(segments: &[i64], given: Option<i64>) -> Result<i64> {
    let count = segments.last().map_or(0, |&last| last + 1);
    if let Some(&first) = segments.first() {
        ensure!(
            first >= 0 && count > 0,
            InvalidArgument,
            "Segment id {first} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
        );
        ensure!(
            segments.is_sorted(),
            InvalidArgument,
            "segment ids are not increasing"
        );
    }
    let Some(given) = given else { return Ok(count) };
    ensure!(given >= 0, InvalidArgument, "segment ids must be >= 0");
    ensure!(
        count <= given,
        InvalidArgument,
        "segment ids must be < num_segments"
    );
    Ok(given)
}

fn sorted(context: &mut KernelContext) -> Result<()> {
    let (data, segments) = (context.input(0)?, context.input_i64s(1)?);
    ensure!(
        segments.len() as i64 == data.dims()[0],
        InvalidArgument,
        "segment_ids should be the same size as dimension 0 of input."
    );
    let mut dims = data.dims().to_vec();
    dims[0] = check_sorted(&segments, None)?;
    let rows = Rows {
        data,
        segments: &segments,
        shape: Shape::new(&dims)?,
        keep_extremes: false,
    };
    let output = joined(&rows, join_of(context.node().op_name()))?;
    context.set_output(0, output)
}

fn unsorted_shape(context: &mut ShapeContext) -> Result<()> {
    let (data, segments) = (context.input(0), context.input(1));
    context.input_with_rank(2, 0)?;
    let count = context.input_as_scalar(2)?;
    if let Some(count) = count {
        ensure!(
            count >= 0,
            InvalidArgument,
            "Input num_segments == {count} must not be negative."
        );
    }
    let (Some(rank), Some(own)) = (data.rank(), segments.rank()) else {
        return Ok(());
    };
    ensure!(
        own <= rank,
        InvalidArgument,
        "data.shape = {data} does not start with segment_ids.shape = {segments}"
    );
    data.slice(0, Some(own as i64)).merge(&segments)?;
    let first = PartialShape::new(&[count.unwrap_or(dim::UNKNOWN)]);
    let rest = if own < rank {
        data.slice(own as i64, None)
    } else {
        PartialShape::scalar()
    };
    context.set_output(0, first.concat(&rest));
    Ok(())
}

fn unsorted(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let data = context.input(0)?;
    let segments = match context.input(1)?.dtype() {
        ff_tensor::DataType::INT16 => {
            let short = context.input_slice::<i16>(1)?.iter();
            short.map(|&segment| i64::from(segment)).collect()
        }
        _ => context.input_i64s(1)?,
    };
    let count = shape.dims()[0];
    let name = context.node().op_name();
    if !name.ends_with("V2")
        && let Some(at) = segments.iter().position(|&segment| segment >= count)
    {
        ff_tensor::bail!(
            InvalidArgument,
            "segment_ids{} = {} is out of range [0, {count})",
            crate::array::position_text(at, context.input(1)?.dims()),
            segments[at]
        );
    }
    let rows = Rows {
        data,
        segments: &segments,
        shape,
        keep_extremes: true,
    };
    let output = joined(&rows, join_of(name))?;
    context.set_output(0, output)
}

/// A case with a vector of segments.
#[cfg(test)]
fn by<T: ff_tensor::Element>(op: &'static str, data: Tensor, segments: &[T]) -> crate::testing::Case {
    crate::testing::Case::op(op).inputs([data, crate::testing::vector(segments)])
}

#[cfg(test)]
const NAMES: &[&str] = &[
    "SegmentSum",
    "SegmentMean",
    "SegmentProd",
    "SegmentMax",
    "SegmentMin",
];

#[cfg(test)]
const UNSORTED_NAMES: &[&str] = &[
    "UnsortedSegmentSum",
    "UnsortedSegmentProd",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
];

crate::op_cases! {
    ascending: family(NAMES, &[FLOATS, INTEGERS].concat(), |op, dtype| {
        by(op, numbers(dtype, &[4, 2], &[1.0, 2.0, 5.0, 4.0, 3.0, 6.0, 7.0, 0.0]), &[0, 0, 2, 2])
    });
    ascending_complex: family(&NAMES[..3], &FRACTIONS[4..], |op, dtype| by(op, cycle(dtype, &[3, 2]), &[0i64, 1, 1]));
    ascending_nothing: family(NAMES, &FLOATS[..1], |op, dtype| by::<i32>(op, numbers(dtype, &[0, 2], &[]), &[]));
    ascending_not: family(NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[3, 2]), &[1, 0, 2]).fails(Code::InvalidArgument));
    ascending_negative: family(NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[3, 2]), &[-1, 0, 2]).fails(Code::InvalidArgument));
    ascending_misfit: family(NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[3, 2]), &[1, 2]).fails(Code::InvalidArgument));
    ascending_matrix: Case::op("SegmentSum").inputs([t(&[1, 1], &[1.0f32]), t(&[1, 1], &[0])]).fails(Code::InvalidArgument);
    any_order: family(UNSORTED_NAMES, &[FLOATS, INTEGERS].concat(), |op, dtype| {
        by(op, numbers(dtype, &[4, 2], &[1.0, 2.0, 5.0, 4.0, 3.0, 6.0, 7.0, 0.0]), &[3, 0, -1, 3]).input(scalar(5))
    });
    any_order_prefix: family(UNSORTED_NAMES, &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 2, 3]), t(&[2, 2], &[1i64, 0, 1, 1]), scalar(2i64)])
    });
    any_order_scalar: family(UNSORTED_NAMES, &FLOATS[..1], |op, dtype| Case::op(op).inputs([cycle(dtype, &[2]), scalar(1), scalar(3)]));
    any_order_complex: family(&UNSORTED_NAMES[..2], &FRACTIONS[4..], |op, dtype| by(op, cycle(dtype, &[3]), &[2i64, 0, 2]).input(scalar(3)));
    any_order_nothing: family(UNSORTED_NAMES, &FLOATS[..1], |op, dtype| by::<i32>(op, numbers(dtype, &[0, 2], &[]), &[]).input(scalar(2)));
    any_order_outside: family(UNSORTED_NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[2]), &[0, 3]).input(scalar(3)).fails(Code::InvalidArgument));
    any_order_count: family(UNSORTED_NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[2]), &[0, 3]).input(scalar(-3)).fails(Code::InvalidArgument));
    any_order_misfit: family(UNSORTED_NAMES, &FLOATS[..1], |op, dtype| by(op, cycle(dtype, &[2]), &[0, 1, 2]).input(scalar(3)).fails(Code::InvalidArgument));
    second_version: Case::op("SegmentSumV2").inputs([vector(&[1.0f32, 2.0, 4.0]), vector(&[0, 1, 5]), scalar(3)]).gives(vector(&[1.0f32, 2.0, 0.0]));
    second_version_others: family(&["SegmentProdV2", "SegmentMinV2"], &FLOATS[..2], |op, dtype| {
        by(op, cycle(dtype, &[3]), &[0, 0, 1]).input(scalar(2))
    });
    many_segments_of_nothing: Case::op("SegmentMaxV2").inputs([t::<f32>(&[1, 0], &[]), vector(&[0]), scalar(1i64 << 50)])
        .gives(t::<f32>(&[1 << 50, 0], &[]));
    second_version_extremes: Case::op("SegmentMaxV2").inputs([vector(&[1, 2, 4]), vector(&[0, 0, 1]), scalar(2)]).gives(vector(&[2, 4]));
}
