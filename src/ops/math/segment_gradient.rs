//! Gradients of joined rows.

use super::gradients::{binary, shape_of, typed, unary};
use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{DataType, Result};

/// A cast, also of truth values.
fn cast(context: &mut GradientContext, value: OutputRef, dtype: DataType) -> Result<OutputRef> {
    let attrs = Attrs::new()
        .with("SrcT", context.dtype(value))
        .with("DstT", dtype);
    context.op("Cast", &[value], attrs)
}

/// The first extent of a value, as an int32 scalar.
pub fn first_extent(context: &mut GradientContext, value: OutputRef) -> Result<OutputRef> {
    let dims = shape_of(context, value)?;
    let (begin, end, step) = (
        context.int32s(&[0])?,
        context.int32s(&[1])?,
        context.int32s(&[1])?,
    );
    let attrs = typed(DataType::INT32)
        .with("Index", DataType::INT32)
        .with("shrink_axis_mask", 1i64);
    context.op("StridedSlice", &[dims, begin, end, step], attrs)
}

/// Whether rows of any segment, also negative ones, are taken.
fn is_unsorted(context: &GradientContext) -> bool {
    context.node().op_name().starts_with("Unsorted")
}

/// The row of `rows` for each element's segment; zeros for negative segments.
fn gather(context: &mut GradientContext, rows: OutputRef) -> Result<OutputRef> {
    let (segments, zero) = (context.input(1)?, context.int32(0)?);
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(rows))
        .with("Taxis", DataType::INT32);
    if !is_unsorted(context) {
        let attrs = attrs.with("Tindices", context.dtype(segments));
        return context.op("GatherV2", &[rows, segments, zero], attrs);
    }
    // A row of zeros before all others is the one of segment -1.
    let (one, segments) = (context.int32(1)?, cast(context, segments, DataType::INT32)?);
    let count = first_extent(context, rows)?;
    let more = binary(context, "AddV2", count, one)?;
    let places = context.op(
        "Range",
        &[one, more, one],
        Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let shifted = typed(context.dtype(rows))
        .with("Tindices", DataType::INT32)
        .with("Tnumsegments", DataType::INT32);
    let rows = context.op("UnsortedSegmentSum", &[rows, places, more], shifted)?;
    let next = binary(context, "AddV2", segments, one)?;
    let next = binary(context, "Maximum", next, zero)?;
    context.op(
        "GatherV2",
        &[rows, next, zero],
        attrs.with("Tindices", DataType::INT32),
    )
}

/// Joins values by the node's own segments.
fn join(context: &mut GradientContext, kind: &str, values: OutputRef) -> Result<OutputRef> {
    let segments = context.input(1)?;
    let attrs = typed(context.dtype(values)).with("Tindices", context.dtype(segments));
    if !is_unsorted(context) {
        return context.op(&format!("Segment{kind}"), &[values, segments], attrs);
    }
    let count = context.input(2)?;
    let attrs = attrs.with("Tnumsegments", context.dtype(count));
    context.op(
        &format!("UnsortedSegment{kind}"),
        &[values, segments, count],
        attrs,
    )
}

fn select(context: &mut GradientContext, test: OutputRef, a: OutputRef, b: OutputRef) -> Result<OutputRef> {
    let dtype = context.dtype(a);
    context.op("SelectV2", &[test, a, b], typed(dtype))
}

/// Of sums: each row gets what its segment gets.
pub fn of_sum(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let gradient = gather(context, incoming)?;
    context.set(0, gradient);
    Ok(())
}

/// Of means: shared evenly.
pub fn of_mean(context: &mut GradientContext) -> Result<()> {
    let (incoming, data) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let ones = unary(context, "OnesLike", data)?;
    let counts = join(context, "Sum", ones)?;
    let shared = binary(context, "RealDiv", incoming, counts)?;
    let gradient = gather(context, shared)?;
    context.set(0, gradient);
    Ok(())
}

/// Of extremes: shared evenly by the rows that have the extreme.
pub fn of_extreme(context: &mut GradientContext) -> Result<()> {
    let (incoming, data, output) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let extremes = gather(context, output)?;
    let chosen = binary(context, "Equal", data, extremes)?;
    let dtype = context.dtype(incoming);
    let weights = cast(context, chosen, dtype)?;
    let counts = join(context, "Sum", weights)?;
    let shared = binary(context, "RealDiv", incoming, counts)?;
    let (shared, zeros) = (gather(context, shared)?, unary(context, "ZerosLike", data)?);
    let gradient = select(context, chosen, shared, zeros)?;
    context.set(0, gradient);
    Ok(())
}

/// Of products: the product of the others, also where there is a zero.
pub fn of_product(context: &mut GradientContext) -> Result<()> {
    let (incoming, data, output) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let zero = super::gradients::scalar_like(context, 0.0, data)?;
    let is_zero = binary(context, "Equal", data, zero)?;
    let zeros = cast(context, is_zero, DataType::INT32)?;
    let (zeros, one) = (join(context, "Sum", zeros)?, context.int32(1)?);
    let many = binary(context, "Greater", zeros, one)?;
    let nothing = unary(context, "ZerosLike", incoming)?;
    let incoming = select(context, many, nothing, incoming)?;
    let ones = unary(context, "OnesLike", data)?;
    let others = select(context, is_zero, ones, data)?;
    let others = join(context, "Prod", others)?;
    let (all, others) = (gather(context, output)?, gather(context, others)?);
    let divided = binary(context, "RealDiv", all, data)?;
    let derivative = select(context, is_zero, others, divided)?;
    let incoming = gather(context, incoming)?;
    let gradient = binary(context, "Mul", incoming, derivative)?;
    context.set(0, gradient);
    Ok(())
}
