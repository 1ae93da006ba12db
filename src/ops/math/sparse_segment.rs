//! Rows picked by index and joined by segment, and the gradients of that.

use super::number::Number;
use super::segment::{check_sorted, counts};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Element, PartialShape, Result, Shape, Tensor, dim, ensure};

const JOINED: Op = Op {
    shape: joined_shape,
    kernels: &[Kernel::native(joined)],
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
const GRADIENT: Op = Op {
    shape: gradient_shape,
    kernels: &[Kernel::native(spread)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseSegmentSum",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentMean",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentSqrtN",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentSumWithNumSegments",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentMeanWithNumSegments",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentSqrtNWithNumSegments",
        ..JOINED
    },
    &Op {
        name: "SparseSegmentSumGrad",
        ..GRADIENT
    },
    &Op {
        name: "SparseSegmentMeanGrad",
        ..GRADIENT
    },
    &Op {
        name: "SparseSegmentSqrtNGrad",
        ..GRADIENT
    },
    &Op {
        name: "SparseSegmentSumGradV2",
        ..GRADIENT
    },
    &Op {
        name: "SparseSegmentMeanGradV2",
        ..GRADIENT
    },
    &Op {
        name: "SparseSegmentSqrtNGradV2",
        ..GRADIENT
    },
];

/// Indices and segments: vectors of one length.
fn check_pairs(context: &ShapeContext) -> Result<()> {
    let (indices, segments) = (context.input_with_rank(1, 1)?, context.input_with_rank(2, 1)?);
    indices.merge(&segments)?;
    Ok(())
}

fn joined_shape(context: &mut ShapeContext) -> Result<()> {
    let data = context.input_with_rank_at_least(0, 1)?;
    check_pairs(context)?;
    let mut count = dim::UNKNOWN;
    if context.num_inputs() > 3 {
        context.input_with_rank(3, 0)?;
        count = context.input_as_scalar(3)?.unwrap_or(dim::UNKNOWN);
        ensure!(
            count >= -1,
            InvalidArgument,
            "Cannot specify a negative value for num_segments"
        );
    }
    if data.rank().is_some() {
        context.set_output(0, PartialShape::new(&[count]).concat(&data.slice(1, None)));
    }
    Ok(())
}

/// What the sum of `count` rows is multiplied by.
fn scale(op: &str, count: usize) -> f64 {
    match count {
        0 | 1 => 1.0,
        count if op.contains("Mean") => 1.0 / count as f64,
        count if op.contains("SqrtN") => 1.0 / (count as f64).sqrt(),
        _ => 1.0,
    }
}

/// One row of `data` times `factor`, added to a row of the output.
struct Term {
    from: usize,
    to: usize,
    factor: f64,
}

/// Sums of terms: integers in their own type, floating-point numbers in double precision.
fn sum(data: &Tensor, shape: Shape, terms: &[Term]) -> Result<Tensor> {
    let width: usize = shape.dims()[1..].iter().map(|&extent| extent as usize).product();
    if data.dtype().is_floating() {
        return crate::match_float!(data.dtype(), T => {
            let source = data.as_slice::<T>()?;
            let mut sums: Vec<f64> = crate::wide::zeros(shape.num_elements())?;
            for term in terms {
                let target = &mut sums[term.to * width..(term.to + 1) * width];
                let row = &source[term.from * width..(term.from + 1) * width];
                target.iter_mut().zip(row).for_each(|(a, &b)| *a += ff_kernels::math::Real::to_f64(b) * term.factor);
            }
            let rounded: Vec<T> = crate::wide::collected(sums.iter().map(|&x| <T as ff_kernels::math::Real>::from_f64(x)))?;
            Tensor::from_slice(shape, &rounded)
        });
    }
    crate::match_integer!(data.dtype(), T => {
        let source = data.as_slice::<T>()?;
        let mut output = Tensor::zeros(<T as Element>::DTYPE, shape)?;
        let sums = output.as_mut_slice::<T>()?;
        for term in terms {
            let target = &mut sums[term.to * width..(term.to + 1) * width];
            let row = &source[term.from * width..(term.from + 1) * width];
            target.iter_mut().zip(row).for_each(|(a, &b)| *a = Number::add(*a, b));
        }
        Ok(output)
    })
}

fn joined(context: &mut KernelContext) -> Result<()> {
    let (indices, segments) = (context.input_i64s(1)?, context.input_i64s(2)?);
    let given = if context.num_inputs() > 3 {
        Some(context.input_i64(3)?)
    } else {
        None
    };
    let count = check_sorted(&segments, given)?;
    let data = context.input(0)?;
    let rows = data.dims()[0];
    if let Some(at) = indices.iter().position(|index| !(0..rows).contains(index)) {
        ff_tensor::bail!(
            InvalidArgument,
            "Bad: indices[{at}] == {} out of range [0, {rows})",
            indices[at]
        );
    }
    let counts = counts(&segments, count as usize)?;
    let name = context.node().op_name();
    let term = |(&index, &segment): (&i64, &i64)| Term {
        from: index as usize,
        to: segment as usize,
        factor: scale(name, counts[segment as usize]),
    };
    let terms: Vec<Term> = crate::wide::collected(indices.iter().zip(&segments).map(term))?;
    let mut dims = data.dims().to_vec();
    dims[0] = count;
    let output = sum(data, Shape::new(&dims)?, &terms)?;
    context.set_output(0, output)
}

fn gradient_shape(context: &mut ShapeContext) -> Result<()> {
    let incoming = context.input_with_rank_at_least(0, 1)?;
    check_pairs(context)?;
    context.input_with_rank(3, 0)?;
    let compact = context.num_outputs() > 1;
    let mut count = dim::UNKNOWN;
    if let Some(given) = context.input_as_scalar(3)? {
        ensure!(
            given >= 0,
            InvalidArgument,
            "Cannot specify a negative value for output_dim0"
        );
        if !compact {
            count = given;
        }
    }
    if incoming.rank().is_some() {
        context.set_output(0, PartialShape::new(&[count]).concat(&incoming.slice(1, None)));
    }
    if compact {
        context.set_output(1, PartialShape::of_rank(1));
    }
    Ok(())
}

/// Adds the incoming row of each segment to the rows that it was joined from; the second version keeps only those.
fn spread(context: &mut KernelContext) -> Result<()> {
    let (indices, segments) = (context.input_i64s(1)?, context.input_i64s(2)?);
    let rows = context.input_i64(3)?;
    let incoming = context.input(0)?;
    let count = incoming.dims()[0];
    for (&index, &segment) in indices.iter().zip(&segments) {
        ensure!(
            (0..rows).contains(&index),
            InvalidArgument,
            "Index {index} out of range [0, {rows})."
        );
        ensure!(
            (0..count).contains(&segment),
            InvalidArgument,
            "Segment id {segment} out of range [0, {count})."
        );
    }
    let counts = counts(&segments, count as usize)?;
    let mut unique = indices.clone();
    unique.sort_unstable();
    unique.dedup();
    let compact = context.num_outputs() > 1;
    let name = context.node().op_name();
    let term = |(&index, &segment): (&i64, &i64)| Term {
        from: segment as usize,
        to: if compact {
            unique.partition_point(|&other| other < index)
        } else {
            index as usize
        },
        factor: scale(name, counts[segment as usize]),
    };
    let terms: Vec<Term> = crate::wide::collected(indices.iter().zip(&segments).map(term))?;
    let mut dims = incoming.dims().to_vec();
    dims[0] = if compact { unique.len() as i64 } else { rows };
    let output = sum(incoming, Shape::new(&dims)?, &terms)?;
    context.set_output(0, output)?;
    if compact {
        let dtype = context.output_type(1);
        let unique = super::search::integers(dtype, Shape::vector(unique.len()), &unique)?;
        context.set_output(1, unique)?;
    }
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, data) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let (indices, segments) = (context.input(1)?, context.input(2)?);
    let rows = super::segment_gradient::first_extent(context, data)?;
    let op = format!(
        "{}Grad",
        context.node().op_name().trim_end_matches("WithNumSegments")
    );
    let attrs = super::gradients::typed(context.dtype(incoming))
        .with("Tidx", context.dtype(indices))
        .with("Tsegmentids", context.dtype(segments));
    let gradient = context.op(&op, &[incoming, indices, segments, rows], attrs)?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
const NAMES: &[&str] = &["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"];

#[cfg(test)]
const COUNTED: &[&str] = &[
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
];

#[cfg(test)]
const GRADIENTS: &[&str] = &[
    "SparseSegmentSumGrad",
    "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad",
];

#[cfg(test)]
const COMPACT: &[&str] = &[
    "SparseSegmentSumGradV2",
    "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGradV2",
];

#[cfg(test)]
fn case(
    op: &'static str,
    dtype: ff_tensor::DataType,
    indices: &[i32],
    segments: &[i32],
) -> crate::testing::Case {
    use crate::testing::{Case, numbers, vector};
    let data = numbers(dtype, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    Case::op(op).inputs([data, vector(indices), vector(segments)])
}

crate::op_cases! {
    picked: family(NAMES, FLOATS, |op, dtype| case(op, dtype, &[0, 2, 1, 0], &[0, 0, 2, 2]));
    picked_integers: family(&NAMES[..1], INTEGERS, |op, dtype| case(op, dtype, &[0, 2, 1], &[0, 0, 2]));
    picked_nothing: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype, &[], &[]));
    picked_unsorted: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 1], &[1, 0]).fails(Code::InvalidArgument));
    picked_outside: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 3], &[0, 1]).fails(Code::InvalidArgument));
    picked_negative: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 1], &[-1, 1]).fails(Code::InvalidArgument));
    picked_misfit: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 1], &[1]).fails(Code::InvalidArgument));
    counted: family(COUNTED, FLOATS, |op, dtype| case(op, dtype, &[0, 2, 1], &[0, 0, 2]).input(scalar(5)));
    counted_too_few: family(COUNTED, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 2], &[0, 2]).input(scalar(2)).fails(Code::InvalidArgument));
    gradients: family(GRADIENTS, FLOATS, |op, dtype| case(op, dtype, &[0, 2, 0], &[0, 0, 2]).input(scalar(4)));
    gradients_outside: family(GRADIENTS, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 4], &[0, 2]).input(scalar(4)).fails(Code::InvalidArgument));
    gradients_segment: family(GRADIENTS, &FLOATS[..1], |op, dtype| case(op, dtype, &[0, 3], &[0, 3]).input(scalar(4)).fails(Code::InvalidArgument));
    compact: family(COMPACT, FLOATS, |op, dtype| case(op, dtype, &[3, 7, 3], &[0, 0, 2]).input(scalar(9)));
    compact_outside: family(COMPACT, &FLOATS[..1], |op, dtype| case(op, dtype, &[3, 9], &[0, 2]).input(scalar(9)).fails(Code::InvalidArgument));
}
