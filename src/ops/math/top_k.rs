//! The largest elements of rows, the n-th element of rows, and whether a class is among the likeliest.

use super::gradients::{binary, shape_of, typed};
use super::order::ranks;
use super::search::integers;
use crate::movement::Writer;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext,
};
use ff_tensor::{Bool, DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

const TOP_K: Op = Op {
    name: "TopKV2",
    shape: top_k_shape,
    kernels: &[Kernel::native(top_k)],
    lower: Some(lower_top_k),
    gradient: Gradient::Fn(top_k_gradient),
    ..Op::PURE
};
const IN_TOP_K: Op = Op {
    name: "InTopKV2",
    shape: in_top_k_shape,
    kernels: &[Kernel::native(in_top_k)],
    lower: Some(super::lower_count::in_top_k),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &TOP_K,
    &Op {
        name: "TopK",
        lower: None,
        ..TOP_K
    },
    &Op {
        name: "ApproxTopK",
        shape: approximate_shape,
        kernels: &[Kernel::native(approximate)],
        lower: Some(lower_approximate),
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "NthElement",
        shape: nth_shape,
        kernels: &[Kernel::native(nth)],
        gradient: Gradient::Fn(nth_gradient),
        ..Op::PURE
    },
    &Op {
        name: "InTopK",
        ..IN_TOP_K
    },
    &IN_TOP_K,
];

/// `k`: an attribute in the first versions, an input in the second.
fn k_of(context: &KernelContext, input: usize) -> Result<i64> {
    if context.num_inputs() <= input {
        return narrow_k(context.attrs());
    }
    match context.input(input)?.dtype() {
        DataType::INT16 => Ok(i64::from(context.input(input)?.single::<i16>()?)),
        _ => context.input_i64(input),
    }
}

/// The attribute, which has 32 bits in the reference.
fn narrow_k(attrs: &ff_op::Attrs) -> Result<i64> {
    let k = attrs.int("k")?;
    ensure!(
        i32::try_from(k).is_ok(),
        InvalidArgument,
        "Attr k has value {k} out of range for an int32"
    );
    Ok(k)
}

fn known_k(context: &ShapeContext, input: usize) -> Result<Option<i64>> {
    if context.num_inputs() <= input {
        return narrow_k(context.attrs()).map(Some);
    }
    context.input_with_rank(input, 0)?;
    match context.input_value(input) {
        Some(value) if value.dtype() == DataType::INT16 => Ok(Some(i64::from(value.single::<i16>()?))),
        Some(value) => Ok(value.to_i64_vec()?.first().copied()),
        None => Ok(None),
    }
}

fn top_k_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 1)?;
    let k = known_k(context, 1)?;
    if let Some(k) = k {
        ensure!(k >= 0, InvalidArgument, "Need k >= 0, got {k}");
        let last = input.dim(-1);
        ensure!(
            last < 0 || last >= k,
            InvalidArgument,
            "input must have last dimension >= k = {k} but is {last}"
        );
    }
    if input.rank().is_some() {
        let output = input.with_dim(-1, k.unwrap_or(dim::UNKNOWN))?;
        context.set_output(0, output.clone());
        context.set_output(1, output);
    }
    Ok(())
}

/// The places of the `k` first elements of a row in descending order; of equal ones the first comes first.
fn places(row: &[u64], k: usize, order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..row.len() as u32);
    let key = |&place: &u32| (std::cmp::Reverse(row[place as usize]), place);
    if k > 0 && k < row.len() {
        order.select_nth_unstable_by_key(k - 1, key);
    }
    order.truncate(k);
    order.sort_unstable_by_key(key);
}

fn top_k(context: &mut KernelContext) -> Result<()> {
    let k = k_of(context, 1)? as usize;
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let width = input.dims()[input.rank() - 1] as usize;
    let ranked = ranks(input)?;
    let mut values = Writer::new(input.dtype(), shape.clone())?;
    let (mut order, mut found) = (Vec::new(), crate::wide::reserved(shape.num_elements())?);
    for (number, row) in ranked.chunks(width.max(1)).enumerate() {
        places(row, k, &mut order);
        for (place, &from) in order.iter().enumerate() {
            values.copy(number * k + place, input, number * width + from as usize, 1)?;
        }
        found.extend(order.iter().map(|&place| i64::from(place)));
    }
    let indices = integers(context.output_type(1), shape, &found)?;
    context.set_output(0, values.finish()?)?;
    context.set_output(1, indices)
}

fn lower_top_k(context: &mut LowerContext) -> Result<()> {
    let k = context.constant(1)?;
    let k = match k.dtype() {
        DataType::INT16 => i64::from(k.single::<i16>()?),
        _ => k.to_i64_vec()?.first().copied().unwrap_or(0),
    };
    let input = context.input(0)?;
    let both = context.builder.top_k(input, k, true)?;
    let values = context.builder.get_tuple_element(both, 0)?;
    let indices = context.builder.get_tuple_element(both, 1)?;
    let indices = context.builder.convert(indices, context.output_type(1))?;
    context.set_output(0, values);
    context.set_output(1, indices);
    Ok(())
}

fn reshape(context: &mut GradientContext, value: OutputRef, dims: OutputRef) -> Result<OutputRef> {
    let attrs = typed(context.dtype(value)).with("Tshape", DataType::INT32);
    context.op("Reshape", &[value, dims], attrs)
}

fn reduce(
    context: &mut GradientContext,
    op: &str,
    value: OutputRef,
    axes: OutputRef,
    keep: bool,
) -> Result<OutputRef> {
    let attrs = typed(context.dtype(value))
        .with("Tidx", DataType::INT32)
        .with("keep_dims", keep);
    context.op(op, &[value, axes], attrs)
}

/// The last extent of a shape vector, as a vector of one.
fn last(context: &mut GradientContext, dims: OutputRef) -> Result<OutputRef> {
    let (begin, end, step) = (
        context.int32s(&[-1])?,
        context.int32s(&[0])?,
        context.int32s(&[1])?,
    );
    let attrs = typed(DataType::INT32)
        .with("Index", DataType::INT32)
        .with("end_mask", 1i64);
    context.op("StridedSlice", &[dims, begin, end, step], attrs)
}

/// The incoming gradient at the places that were found, zero elsewhere.
fn top_k_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input, found) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(1),
    );
    let cast = Attrs::new()
        .with("SrcT", context.dtype(found))
        .with("DstT", DataType::INT32);
    let found = context.op("Cast", &[found], cast)?;
    let (dims, found_dims) = (shape_of(context, input)?, shape_of(context, found)?);
    let (width, k) = (last(context, dims)?, last(context, found_dims)?);
    let free = context.int32s(&[-1])?;
    let zero = context.int32(0)?;
    let attrs = typed(DataType::INT32)
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let rows_and_k = context.op("ConcatV2", &[free, k, zero], attrs)?;
    let rows = reshape(context, found, rows_and_k)?;
    // Where each row starts: 0, width, 2 width, .. as a column.
    let axes = context.int32s(&[0])?;
    let total = reduce(context, "Prod", dims, axes, false)?;
    let scalar = context.int32s(&[])?;
    let step = reshape(context, width, scalar)?;
    let attrs = Attrs::new().with("Tidx", DataType::INT32);
    let starts = context.op("Range", &[zero, total, step], attrs)?;
    let column = context.int32s(&[-1, 1])?;
    let starts = reshape(context, starts, column)?;
    let places = binary(context, "AddV2", rows, starts)?;
    let places = reshape(context, places, column)?;
    let updates = reshape(context, incoming, free)?;
    let one = context.int32s(&[1])?;
    let size = reshape(context, total, one)?;
    let attrs = typed(context.dtype(incoming)).with("Tindices", DataType::INT32);
    let flat = context.op("ScatterNd", &[places, updates, size], attrs)?;
    let gradient = reshape(context, flat, dims)?;
    context.set(0, gradient);
    Ok(())
}

/// The axis that is searched and how many of its elements are kept.
fn approximate_attrs(attrs: &Attrs, rank: usize) -> Result<(usize, i64)> {
    let (axis, k) = (attrs.int("reduction_dimension")?, attrs.int("k")?);
    let place = if axis < 0 { axis + rank as i64 } else { axis };
    ensure!(
        (0..rank as i64).contains(&place),
        InvalidArgument,
        "The input must have rank > reduction_dimension, got rank {rank} and {axis}"
    );
    Ok((place as usize, k))
}

fn approximate_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let Some(rank) = input.rank() else { return Ok(()) };
    let (axis, k) = approximate_attrs(context.attrs(), rank)?;
    let extent = input.dim(axis as i64);
    ensure!(
        k >= 0 && (extent < 0 || extent >= k),
        InvalidArgument,
        "input must have reduction dimension >= k = {k} but is {extent}"
    );
    let output = input.with_dim(axis as i64, k)?;
    context.set_output(0, output.clone());
    context.set_output(1, output);
    Ok(())
}

/// The search along any axis, of the largest or the smallest; it is exact.
fn approximate(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    let (axis, k) = approximate_attrs(context.attrs(), input.rank())?;
    let largest = context.attrs().bool("is_max_k")?;
    let (extent, k) = (input.dims()[axis] as usize, k as usize);
    let inner: usize = input.dims()[axis + 1..]
        .iter()
        .map(|&extent| extent as usize)
        .product();
    let mut ranked = ranks(input)?;
    if !largest {
        ranked.iter_mut().for_each(|rank| *rank = !*rank);
    }
    let mut values = Writer::new(input.dtype(), shape.clone())?;
    let mut found: Vec<i32> = crate::wide::zeros(shape.num_elements())?;
    let (mut order, mut row) = (Vec::new(), Vec::new());
    for number in 0..ranked.len() / extent.max(1) {
        let (block, column) = (number / inner, number % inner);
        row.clear();
        row.extend((0..extent).map(|i| ranked[(block * extent + i) * inner + column]));
        places(&row, k, &mut order);
        for (place, &from) in order.iter().enumerate() {
            let to = (block * k + place) * inner + column;
            values.copy(to, input, (block * extent + from as usize) * inner + column, 1)?;
            found[to] = from as i32;
        }
    }
    context.set_output(0, values.finish()?)?;
    context.set_output(1, Tensor::from_slice(shape, &found)?)
}

/// The exact answer.
fn lower_approximate(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let (axis, k) = approximate_attrs(context.attrs(), dims.len())?;
    let largest = context.attrs().bool("is_max_k")?;
    let input = context.input(0)?;
    let last = dims.len() as i64 - 1;
    // Changing places twice changes nothing.
    let order: Vec<i64> = (0..=last)
        .map(|at| match at {
            at if at == axis as i64 => last,
            at if at == last => axis as i64,
            at => at,
        })
        .collect();
    let builder = &mut *context.builder;
    let turned = builder.transpose(input, &order)?;
    let found = builder.top_k(turned, k, largest)?;
    let (values, places) = (
        builder.get_tuple_element(found, 0)?,
        builder.get_tuple_element(found, 1)?,
    );
    let (values, places) = (
        builder.transpose(values, &order)?,
        builder.transpose(places, &order)?,
    );
    context.set_output(0, values);
    context.set_output(1, places);
    Ok(())
}

fn nth_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 1)?;
    context.input_with_rank(1, 0)?;
    if let Some(n) = context.input_as_scalar(1)? {
        ensure!(n >= 0, InvalidArgument, "n must be non-negative, got {n}");
        let last = input.dim(-1);
        ensure!(
            last < 0 || last > n,
            InvalidArgument,
            "Input must have last dimension > n = {n} but is {last}"
        );
    }
    context.set_output(0, input.slice(0, Some(-1)));
    Ok(())
}

fn nth(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let (input, n) = (context.input(0)?, context.input_i64(1)? as usize);
    let width = input.dims()[input.rank() - 1] as usize;
    let n = if context.attrs().bool("reverse")? {
        width - 1 - n
    } else {
        n
    };
    let ranked = ranks(input)?;
    let mut writer = Writer::new(input.dtype(), shape)?;
    let mut order: Vec<u32> = Vec::new();
    for (number, row) in ranked.chunks(width.max(1)).enumerate() {
        order.clear();
        order.extend(0..width as u32);
        let (_, &mut place, _) = order.select_nth_unstable_by_key(n, |&place| row[place as usize]);
        writer.copy(number, input, number * width + place as usize, 1)?;
    }
    context.set_output(0, writer.finish()?)
}

/// Shared evenly by all elements that equal the one that was found.
fn nth_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input, y) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let last = context.int32(-1)?;
    let expand = |context: &mut GradientContext, value: OutputRef| {
        let attrs = typed(context.dtype(value)).with("Tdim", DataType::INT32);
        context.op("ExpandDims", &[value, last], attrs)
    };
    let (y, incoming) = (expand(context, y)?, expand(context, incoming)?);
    let equal = binary(context, "Equal", y, input)?;
    let dtype = context.dtype(incoming);
    let attrs = Attrs::new().with("SrcT", DataType::BOOL).with("DstT", dtype);
    let chosen = context.op("Cast", &[equal], attrs)?;
    let count = reduce(context, "Sum", chosen, last, true)?;
    let share = binary(context, "RealDiv", chosen, count)?;
    let gradient = binary(context, "Mul", share, incoming)?;
    context.set(0, gradient);
    Ok(())
}

fn in_top_k_shape(context: &mut ShapeContext) -> Result<()> {
    let (predictions, targets) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 1)?);
    if context.num_inputs() > 2 {
        context.input_with_rank(2, 0)?;
    }
    let rows = dim::merge(predictions.dim(0), targets.dim(0))?;
    context.set_output(0, PartialShape::new(&[rows]));
    Ok(())
}

/// False where the target is no class or a prediction is not finite.
fn in_top_k(context: &mut KernelContext) -> Result<()> {
    let k = k_of(context, 2)?;
    let predictions = context.input(0)?;
    let (rows, classes) = (predictions.dims()[0] as usize, predictions.dims()[1] as usize);
    let (predictions, targets) = (predictions.as_slice::<f32>()?, context.input_i64s(1)?);
    let is_in = |(row, &target): (usize, &i64)| {
        let row = &predictions[row * classes..(row + 1) * classes];
        let Some(&wanted) = usize::try_from(target).ok().and_then(|target| row.get(target)) else {
            return false;
        };
        let better = row.iter().filter(|&&other| other > wanted).count() as i64;
        row.iter().all(|value| value.is_finite()) && better < k
    };
    let found: Vec<Bool> = targets
        .iter()
        .enumerate()
        .map(|row| Bool::from(is_in(row)))
        .collect();
    context.set_output(0, Tensor::from_slice(Shape::vector(rows), &found)?)
}

crate::op_cases! {
    largest: family(&["TopKV2"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 5], &[1.0, 5.0, 3.0, 5.0, 2.0, 9.0, 0.0, 9.0, 4.0, 4.0]), scalar(3)])
    });
    largest_of_first_version: Case::op("TopK").input(vector(&[3.0f32, 1.0, 7.0, 2.0])).attr("k", 2i64).gives(vector(&[7.0f32, 3.0])).gives(vector(&[2, 0]));
    largest_all: Case::op("TopKV2").inputs([vector(&[-1.0f64, f64::INFINITY, -0.0, f64::NEG_INFINITY]), scalar(4i64)]).attr("index_type", DataType::INT64);
    largest_none: Case::op("TopKV2").inputs([t(&[2, 1], &[1, 2]), scalar(0)]).gives(t::<i32>(&[2, 0], &[])).gives(t::<i32>(&[2, 0], &[]));
    largest_short: Case::op("TopKV2").inputs([vector(&[1i64, 2, 3]), scalar(2i16)]).attr("index_type", DataType::INT16);
    too_many: Case::op("TopKV2").inputs([vector(&[1, 2]), scalar(3)]).fails(Code::InvalidArgument);
    negative_count: Case::op("TopKV2").inputs([vector(&[1, 2]), scalar(-1)]).fails(Code::InvalidArgument);
    of_scalar: Case::op("TopKV2").inputs([scalar(1), scalar(0)]).fails(Code::InvalidArgument);
    approximately: Case::op("ApproxTopK").input(t(&[2, 4], &[4.0f32, 1.0, 3.0, 2.0, 5.0, 8.0, 7.0, 6.0])).attr("k", 2i64);
    approximately_smallest: Case::op("ApproxTopK").input(t(&[4, 2], &[4.0f32, 1.0, 3.0, 2.0, 5.0, 8.0, 7.0, 6.0])).attr("k", 3i64)
        .attr("is_max_k", false).attr("reduction_dimension", 0i64);
    approximately_too_many: Case::op("ApproxTopK").input(vector(&[4.0f32, 1.0])).attr("k", 3i64).fails(Code::InvalidArgument);
    nth_smallest: family(&["NthElement"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 4], &[1.0, 5.0, 3.0, 5.0, 9.0, 0.0, 9.0, 4.0]), scalar(2)])
    });
    nth_largest: Case::op("NthElement").inputs([vector(&[3.0f32, 1.0, 2.0]), scalar(0)]).attr("reverse", true).gives(scalar(3.0f32));
    nth_beyond: Case::op("NthElement").inputs([vector(&[3.0f32, 1.0, 2.0]), scalar(3)]).fails(Code::InvalidArgument);
    nth_of_nothing: Case::op("NthElement").inputs([t::<i32>(&[0, 2], &[]), scalar(1)]).gives(vector::<i32>(&[]));
    among_first: Case::op("InTopK").inputs([t(&[3, 3], &[0.1f32, 0.3, 0.2, 0.1, 0.2, 0.3, f32::NAN, 1.0, 2.0]), vector(&[1, 0, 2])]).attr("k", 2i64);
    among_first_equal: Case::op("InTopKV2").inputs([t(&[3, 3], &[1.0f32, 1.0, 1.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), vector(&[2i64, -1, 5]), scalar(1i64)]);
    among_first_of_nothing: Case::op("InTopKV2").inputs([t::<f32>(&[0, 3], &[]), vector::<i32>(&[]), scalar(1)]).gives(bools(&[0], &[]));
    among_first_misfit: Case::op("InTopKV2").inputs([t(&[1, 3], &[1.0f32, 1.0, 1.0]), vector(&[2, 1]), scalar(1)]).fails(Code::InvalidArgument);
}
