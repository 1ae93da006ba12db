//! Lowerings of ops that join, count or look up: running sums, segments, bins, bounds, places of extremes.

use crate::lowering::{axis_of, compare_with, gather, joiner, pad_axis, scatter, slide};
use ff_hlo::{Builder, ComputationId, Direction, Op as HloOp, Opcode};
use ff_op::LowerContext;
use ff_tensor::{Code, DataType, Result, ensure};

/// `log(e^a + e^b)`; the larger where it is infinite.
fn log_sum_exp(builder: &mut Builder, a: HloOp, b: HloOp) -> Result<HloOp> {
    let largest = builder.maximum(a, b)?;
    let distance = builder.subtract(a, b)?;
    let distance = builder.unary(Opcode::Abs, distance)?;
    let distance = builder.unary(Opcode::Negate, distance)?;
    let tail = builder.unary(Opcode::Exponential, distance)?;
    let tail = builder.unary(Opcode::LogPlusOne, tail)?;
    let sum = builder.add(largest, tail)?;
    let size = builder.unary(Opcode::Abs, largest)?;
    let is_infinite = compare_with(builder, Direction::Eq, size, f64::INFINITY)?;
    builder.select(is_infinite, largest, sum)
}

/// `Cumsum`, `Cumprod`, `CumulativeLogsumexp`; the axis is known. Each element is joined with all before it.
pub fn cumulative(context: &mut LowerContext) -> Result<()> {
    let (dims, axis) = (context.input_dims(0)?, context.constant_i64s(1)?);
    ensure!(
        context.input_dims(1)?.is_empty(),
        InvalidArgument,
        "ScanOp: axis must be a scalar"
    );
    let axis = axis_of(axis[0], dims.len())?;
    let attrs = context.attrs();
    let (exclusive, reverse) = (attrs.bool("exclusive")?, attrs.bool("reverse")?);
    let (mut value, name) = (context.input(0)?, context.node().op_name());
    let builder = &mut *context.builder;
    if !dims.contains(&0) {
        let dtype = builder.dtype(value);
        let (init, join) = match name {
            "Cumsum" => (
                builder.identity(Opcode::Add, dtype)?,
                builder.reducer(Opcode::Add, dtype)?,
            ),
            "Cumprod" => (
                builder.identity(Opcode::Multiply, dtype)?,
                builder.reducer(Opcode::Multiply, dtype)?,
            ),
            _ => (
                builder.scalar(dtype, f64::NEG_INFINITY)?,
                joiner(builder, "log_sum_exp", dtype, log_sum_exp)?,
            ),
        };
        if exclusive {
            let (low, high) = if reverse { (-1, 1) } else { (1, -1) };
            value = pad_axis(builder, value, axis, low, high, init)?;
        }
        let all = dims[axis] - 1;
        let (before, after) = if reverse { (0, all) } else { (all, 0) };
        value = slide(builder, value, axis, before, after, (init, join))?;
    }
    context.set_output(0, value);
    Ok(())
}

/// What a segment without rows holds.
fn segment_start(builder: &mut Builder, join: Opcode, dtype: DataType) -> Result<HloOp> {
    let largest = match dtype {
        DataType::FLOAT => f64::from(f32::MAX),
        DataType::DOUBLE => f64::MAX,
        DataType::HALF => 65504.0,
        DataType::BFLOAT16 => 3.389_531_389_251_535_5e38,
        _ if matches!(join, Opcode::Maximum | Opcode::Minimum) => {
            return builder.extreme_scalar(dtype, join == Opcode::Minimum);
        }
        _ => 0.0,
    };
    match join {
        Opcode::Maximum => builder.scalar(dtype, -largest),
        Opcode::Minimum => builder.scalar(dtype, largest),
        other => builder.identity(other, dtype),
    }
}

/// `UnsortedSegmentSum` and its kin, and the second versions of the sorted ones; the number of segments is known.
pub fn segments(context: &mut LowerContext) -> Result<()> {
    let (dims, index_dims) = (context.input_dims(0)?, context.input_dims(1)?);
    let count = context.constant_i64s(2)?.first().copied().unwrap_or(0);
    ensure!(
        count >= 0,
        InvalidArgument,
        "num_segments {count} must not be negative"
    );
    let (data, ids) = (context.input(0)?, context.input(1)?);
    let name = context.node().op_name();
    let join = match name.trim_start_matches("Unsorted").trim_end_matches("V2") {
        "SegmentProd" => Opcode::Multiply,
        "SegmentMax" => Opcode::Maximum,
        "SegmentMin" => Opcode::Minimum,
        _ => Opcode::Add,
    };
    let builder = &mut *context.builder;
    let ids = builder.convert(ids, DataType::INT64)?;
    if !name.ends_with("V2") {
        let fits = compare_with(builder, Direction::Lt, ids, count as f64)?;
        let message = format!("segment_ids{{index}} = {{0}} is out of range [0, {count})");
        builder.check_values(fits, &[ids], Code::InvalidArgument, &message)?;
    }
    let rows = index_dims.iter().product();
    let rest = &dims[index_dims.len()..];
    let ids = builder.reshape(ids, &[rows, 1])?;
    let data = builder.reshape(data, &[&[rows], rest].concat())?;
    let dtype = builder.dtype(data);
    let start = segment_start(builder, join, dtype)?;
    let target = builder.broadcast_scalar(start, &[&[count], rest].concat())?;
    let computation = builder.reducer(join, dtype)?;
    let output = scatter(builder, target, ids, data, computation)?;
    context.set_output(0, output);
    Ok(())
}

/// `Bincount` and `DenseBincount`; the number of bins is known. Values beyond are left out.
pub fn bins(context: &mut LowerContext) -> Result<()> {
    let (dims, weight_dims) = (context.input_dims(0)?, context.input_dims(2)?);
    let bins = context.constant_i64s(1)?.first().copied().unwrap_or(0);
    let total: i64 = dims.iter().product();
    let weights: i64 = weight_dims.iter().product();
    ensure!(
        bins >= 0 && (weights == 0 || weights == total),
        InvalidArgument,
        "size must be non-negative, and weights must be as many as values"
    );
    let binary = context.attrs().bool("binary_output").unwrap_or(false);
    let by_rows = dims.len() == 2 && context.node().op_name() == "DenseBincount";
    let (values, given) = (context.input(0)?, context.input(2)?);
    let dtype = context.output_type(0);
    let builder = &mut *context.builder;
    let values = builder.convert(values, DataType::INT64)?;
    let fits = compare_with(builder, Direction::Ge, values, 0.0)?;
    builder.check(fits, Code::InvalidArgument, "Input must be non-negative")?;
    let mut places = builder.reshape(values, &[total, 1])?;
    let mut shape = vec![bins];
    if by_rows {
        shape.insert(0, dims[0]);
        let row = builder.iota(DataType::INT64, &dims, 0)?;
        let row = builder.reshape(row, &[total, 1])?;
        places = builder.concatenate(&[row, places], 1)?;
    }
    let updates = match weights {
        0 => builder.full(dtype, &[total], 1.0)?,
        _ if binary => builder.full(dtype, &[total], 1.0)?,
        _ => builder.reshape(given, &[total])?,
    };
    let zeros = builder.full(dtype, &shape, 0.0)?;
    let join: ComputationId = match binary {
        true => joiner(builder, "update", dtype, |_, _, new| Ok(new))?,
        false => builder.reducer(Opcode::Add, dtype)?,
    };
    let output = scatter(builder, zeros, places, updates, join)?;
    context.set_output(0, output);
    Ok(())
}

/// The number of true elements along the last axis.
fn count_last(builder: &mut Builder, flags: HloOp, dtype: DataType) -> Result<HloOp> {
    let numbers = builder.convert(flags, DataType::INT64)?;
    let last = builder.rank(flags) as i64 - 1;
    let sum = builder.reduce_sum(numbers, &[last])?;
    builder.convert(sum, dtype)
}

/// `LowerBound` and `UpperBound`: how many elements of the sorted row come before each value.
pub fn bounds(context: &mut LowerContext) -> Result<()> {
    let (sorted_dims, dims) = (context.input_dims(0)?, context.input_dims(1)?);
    let (sorted, values) = (context.input(0)?, context.input(1)?);
    let upper = context.node().op_name() == "UpperBound";
    let dtype = context.output_type(0);
    let all = [dims[0], dims[1], sorted_dims[1]];
    let builder = &mut *context.builder;
    let sorted = builder.broadcast_in_dim(sorted, &all, &[0, 2])?;
    let values = builder.broadcast_in_dim(values, &all, &[0, 1])?;
    let direction = if upper { Direction::Le } else { Direction::Lt };
    let is_before = builder.compare(direction, sorted, values)?;
    let output = count_last(builder, is_before, dtype)?;
    context.set_output(0, output);
    Ok(())
}

/// `Bucketize`: how many boundaries are not above each value.
pub fn buckets(context: &mut LowerContext) -> Result<()> {
    let boundaries: Vec<f64> = context
        .attrs()
        .floats("boundaries")?
        .iter()
        .map(|&x| f64::from(x))
        .collect();
    ensure!(
        boundaries.is_sorted(),
        InvalidArgument,
        "Expected sorted boundaries"
    );
    let mut all = context.input_dims(0)?;
    let input = context.input(0)?;
    let builder = &mut *context.builder;
    let narrow = match builder.dtype(input) {
        DataType::DOUBLE => input,
        _ => builder.convert(input, DataType::FLOAT)?,
    };
    let values = builder.convert(narrow, DataType::DOUBLE)?;
    all.push(boundaries.len() as i64);
    let axes: Vec<i64> = (0..all.len() as i64 - 1).collect();
    let values = builder.broadcast_in_dim(values, &all, &axes)?;
    let boundaries = builder.constant_vector(&boundaries)?;
    let boundaries = builder.broadcast_to(boundaries, &all)?;
    let is_below = builder.compare(Direction::Lt, values, boundaries)?;
    let is_not = builder.unary(Opcode::Not, is_below)?;
    let output = count_last(builder, is_not, DataType::INT32)?;
    context.set_output(0, output);
    Ok(())
}

/// A computation of (value, place) pairs that keeps the better value, and of equal ones the first.
fn better(builder: &mut Builder, dtype: DataType, largest: bool) -> Result<ComputationId> {
    use ff_hlo::ArrayShape;
    let direction = if largest { Direction::Gt } else { Direction::Lt };
    builder.computation("better", |b| {
        let old = b.parameter(0, ArrayShape::scalar(dtype), "")?;
        let old_place = b.parameter(1, ArrayShape::scalar(DataType::INT64), "")?;
        let new = b.parameter(2, ArrayShape::scalar(dtype), "")?;
        let new_place = b.parameter(3, ArrayShape::scalar(DataType::INT64), "")?;
        let beats = b.compare(direction, new, old)?;
        let equal = b.compare(Direction::Eq, new, old)?;
        let earlier = b.compare(Direction::Lt, new_place, old_place)?;
        let earlier = b.binary(Opcode::And, equal, earlier)?;
        let wins = b.binary(Opcode::Or, beats, earlier)?;
        let (value, place) = (b.select(wins, new, old)?, b.select(wins, new_place, old_place)?);
        b.tuple(&[value, place])
    })
}

/// `ArgMax` and `ArgMin`; the axis is known. A first element that is no number beats all.
pub fn arg_extreme(context: &mut LowerContext) -> Result<()> {
    let (dims, axis) = (context.input_dims(0)?, context.constant_i64s(1)?);
    ensure!(axis.len() == 1, InvalidArgument, "dim must be a scalar");
    let axis = axis_of(axis[0], dims.len())?;
    ensure!(dims[axis] > 0, InvalidArgument, "Reduction axis {axis} is empty");
    let largest = context.node().op_name() == "ArgMax";
    let (mut input, dtype) = (context.input(0)?, context.output_type(0));
    let builder = &mut *context.builder;
    if builder.dtype(input) == DataType::BOOL {
        input = builder.convert(input, DataType::UINT8)?;
    }
    let computation = better(builder, builder.dtype(input), largest)?;
    let places = crate::lowering::positions(builder, &dims, axis)?;
    let worst = builder.extreme_scalar(builder.dtype(input), !largest)?;
    let nowhere = builder.constant_scalar(dims[axis])?;
    let found = builder.reduce(&[input, places], &[worst, nowhere], computation, &[axis as i64])?;
    let place = builder.get_tuple_element(found, 1)?;
    let first = builder.slice_in_dim(input, 0, 1, 1, axis)?;
    let extents = builder.dims(place).to_vec();
    let first = builder.reshape(first, &extents)?;
    let is_number = builder.compare(Direction::Eq, first, first)?;
    let zero = builder.scalar_like(0.0, place)?;
    let place = builder.select(is_number, place, zero)?;
    let output = builder.convert(place, dtype)?;
    context.set_output(0, output);
    Ok(())
}

/// `InTopK` in both versions: a row that has a value that is not finite holds nothing.
pub fn in_top_k(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let (rows, targets) = (context.input(0)?, context.input(1)?);
    let k = match context.num_inputs() {
        3 => context.input(2)?,
        _ => {
            let k = context.attrs().int("k")?;
            context.builder.constant_scalar(k)?
        }
    };
    let builder = &mut *context.builder;
    if dims.contains(&0) {
        let none = builder.full(DataType::BOOL, &dims[..1], 0.0)?;
        context.set_output(0, none);
        return Ok(());
    }
    let targets = builder.convert(targets, DataType::INT64)?;
    let is_class = crate::lowering::is_within(builder, targets, dims[1])?;
    let (zero, last) = (
        builder.scalar_like(0.0, targets)?,
        builder.scalar_like(dims[1] as f64 - 1.0, targets)?,
    );
    let within = builder.clamp(zero, targets, last)?;
    let wanted = gather(builder, rows, within, 1, 1)?;
    let wanted = builder.broadcast_in_dim(wanted, &dims, &[0])?;
    let is_better = builder.compare(Direction::Gt, rows, wanted)?;
    let count = count_last(builder, is_better, DataType::INT64)?;
    let k = builder.convert(k, DataType::INT64)?;
    let k = builder.broadcast_scalar(k, &dims[..1])?;
    let is_among = builder.compare(Direction::Lt, count, k)?;
    let finite = builder.unary(Opcode::IsFinite, rows)?;
    let finite = builder.reduce_by(Opcode::And, finite, &[1])?;
    let found = builder.binary(Opcode::And, is_among, finite)?;
    let output = builder.binary(Opcode::And, found, is_class)?;
    context.set_output(0, output);
    Ok(())
}
