//! Lowerings of simulated quantization, in the order of operations of the kernels.

use crate::lowering::compare_with;
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode};
use ff_op::LowerContext;
use ff_tensor::{Code, DataType, Result, ensure};

/// Limits moved so that zero is a quantized number, and the step between two numbers, each of the values' extents.
struct Nudged {
    min: HloOp,
    max: HloOp,
    scale: HloOp,
    inverse: HloOp,
    /// Where both limits are zero.
    is_empty: HloOp,
}

/// `x` where the comparison with `limit` holds, else `limit`: no number becomes the limit.
fn bound(builder: &mut Builder, direction: Direction, x: HloOp, limit: HloOp) -> Result<HloOp> {
    let holds = builder.compare(direction, x, limit)?;
    builder.select(holds, x, limit)
}

impl Nudged {
    fn new(builder: &mut Builder, min: HloOp, max: HloOp, (least, largest): (f32, f32)) -> Result<Nudged> {
        let number = |builder: &mut Builder, value: f32| builder.scalar_like(f64::from(value), min);
        let (low, high, steps) = (
            number(builder, least)?,
            number(builder, largest)?,
            number(builder, largest - least)?,
        );
        let range = builder.subtract(max, min)?;
        let scale = builder.divide(range, steps)?;
        let inverse = builder.divide(steps, range)?;
        let from = builder.divide(min, scale)?;
        let from = builder.subtract(low, from)?;
        let zero = builder.clamp(low, from, high)?;
        let zero = builder.unary(Opcode::RoundNearestAfz, zero)?;
        let nothing = builder.scalar_like(0.0, zero)?;
        let is_number = builder.compare(Direction::Eq, zero, zero)?;
        let zero = builder.select(is_number, zero, nothing)?;
        let (below, above) = (builder.subtract(low, zero)?, builder.subtract(high, zero)?);
        let no_min = compare_with(builder, Direction::Eq, min, 0.0)?;
        let no_max = compare_with(builder, Direction::Eq, max, 0.0)?;
        Ok(Nudged {
            min: builder.multiply(below, scale)?,
            max: builder.multiply(above, scale)?,
            scale,
            inverse,
            is_empty: builder.binary(Opcode::And, no_min, no_max)?,
        })
    }

    /// The quantized values, by a division or by a product with the inverse.
    fn round(&self, builder: &mut Builder, x: HloOp, divides: bool) -> Result<HloOp> {
        let half = builder.scalar_like(0.5, x)?;
        let low = builder.unary(Opcode::Negate, self.min)?;
        let zero = builder.multiply(low, self.inverse)?;
        let zero = builder.add(zero, half)?;
        let zero = builder.unary(Opcode::Floor, zero)?;
        let inside = bound(builder, Direction::Lt, x, self.max)?;
        let inside = bound(builder, Direction::Gt, inside, self.min)?;
        let distance = builder.subtract(inside, self.min)?;
        let steps = match divides {
            true => builder.divide(distance, self.scale)?,
            false => builder.multiply(distance, self.inverse)?,
        };
        let steps = builder.subtract(steps, zero)?;
        let steps = builder.add(steps, half)?;
        let steps = builder.unary(Opcode::Floor, steps)?;
        builder.multiply(steps, self.scale)
    }

    fn holds(&self, builder: &mut Builder, x: HloOp) -> Result<HloOp> {
        let from = builder.compare(Direction::Ge, x, self.min)?;
        let to = builder.compare(Direction::Le, x, self.max)?;
        builder.binary(Opcode::And, from, to)
    }
}

/// The gradient where the value is in range, else its product with zero.
fn passed(builder: &mut Builder, gradient: HloOp, holds: HloOp) -> Result<HloOp> {
    let dtype = builder.dtype(gradient);
    let holds = builder.convert(holds, dtype)?;
    builder.multiply(gradient, holds)
}

/// `FakeQuantWithMinMaxArgs` and its gradient, with limits from attributes.
pub fn args(context: &mut LowerContext, levels: (f32, f32), backward: bool) -> Result<()> {
    let (min, max) = (context.attrs().float("min")?, context.attrs().float("max")?);
    ensure!(
        min < max,
        InvalidArgument,
        "min has to be smaller than max, was: {min} >= {max}"
    );
    let x = context.input(usize::from(backward))?;
    let first = context.input(0)?;
    let builder = &mut *context.builder;
    let (min, max) = (
        builder.scalar_like(f64::from(min), x)?,
        builder.scalar_like(f64::from(max), x)?,
    );
    let nudged = Nudged::new(builder, min, max, levels)?;
    let output = if backward {
        let holds = nudged.holds(builder, x)?;
        passed(builder, first, holds)?
    } else {
        nudged.round(builder, x, false)?
    };
    context.set_output(0, output);
    Ok(())
}

/// Limits at two inputs, repeated to the values' extents.
fn limits(context: &mut LowerContext, first: usize, dims: &[i64]) -> Result<(HloOp, HloOp)> {
    let (min, max) = (context.input(first)?, context.input(first + 1)?);
    Ok((
        context.builder.broadcast_to(min, dims)?,
        context.builder.broadcast_to(max, dims)?,
    ))
}

/// `FakeQuantWithMinMaxVars`, and of each channel.
pub fn vars(context: &mut LowerContext, levels: (f32, f32), each: bool) -> Result<()> {
    let dims = context.input_dims(0)?;
    let x = context.input(0)?;
    let (min, max) = limits(context, 1, &dims)?;
    let builder = &mut *context.builder;
    let nudged = Nudged::new(builder, min, max, levels)?;
    let rounded = nudged.round(builder, x, !each)?;
    let zero = builder.scalar_like(0.0, x)?;
    let output = builder.select(nudged.is_empty, zero, rounded)?;
    context.set_output(0, output);
    Ok(())
}

/// The gradients of [`vars`]: of the values, and of both limits the sum of those beyond.
pub fn vars_backward(context: &mut LowerContext, levels: (f32, f32), each: bool) -> Result<()> {
    let dims = context.input_dims(1)?;
    ensure!(
        context.input_dims(0)? == dims,
        InvalidArgument,
        "gradient and input must be the same size"
    );
    let (incoming, x) = (context.input(0)?, context.input(1)?);
    let (min, max) = limits(context, 2, &dims)?;
    let builder = &mut *context.builder;
    let nudged = Nudged::new(builder, min, max, levels)?;
    let holds = nudged.holds(builder, x)?;
    let inside = passed(builder, incoming, holds)?;
    let output = builder.select(nudged.is_empty, incoming, inside)?;
    let axes: Vec<i64> = (0..dims.len() as i64 - i64::from(each)).collect();
    let zero = builder.scalar_like(0.0, incoming)?;
    let mut sums = Vec::new();
    for (direction, limit) in [(Direction::Lt, nudged.min), (Direction::Gt, nudged.max)] {
        let is_beyond = builder.compare(direction, x, limit)?;
        let beyond = builder.select(is_beyond, incoming, zero)?;
        let beyond = builder.select(nudged.is_empty, zero, beyond)?;
        let wide = builder.convert(beyond, DataType::DOUBLE)?;
        let sum = builder.reduce_sum(wide, &axes)?;
        sums.push(builder.convert(sum, DataType::FLOAT)?);
    }
    context.set_output(0, output);
    context.set_output(1, sums[0]);
    context.set_output(2, sums[1]);
    Ok(())
}

/// How `QuantizeAndDequantize` rounds.
pub struct Rounding {
    /// Least and largest quantized number.
    pub levels: (f64, f64),
    /// Ties go to even numbers, or up.
    pub to_even: bool,
    /// The axis of the slices that have limits of their own.
    pub axis: Option<usize>,
}

/// Limits from inputs, from attributes, or those of the values.
fn range(context: &mut LowerContext, x: HloOp, rounding: &Rounding) -> Result<(HloOp, HloOp)> {
    let given = context.attrs().bool("range_given")?;
    let dims = context.builder.dims(x).to_vec();
    let dtype = context.builder.dtype(x);
    let kept: Vec<i64> = rounding.axis.iter().map(|&axis| axis as i64).collect();
    let (min, max) = match (given, context.num_inputs()) {
        (false, _) => {
            let axes: Vec<i64> = (0..dims.len() as i64)
                .filter(|axis| !kept.contains(axis))
                .collect();
            (
                context.builder.reduce_min(x, &axes)?,
                context.builder.reduce_max(x, &axes)?,
            )
        }
        (true, 1) => {
            let limits = ["input_min", "input_max"].map(|name| context.attrs().float(name));
            let [min, max] = limits;
            (
                context.builder.scalar(dtype, f64::from(min?))?,
                context.builder.scalar(dtype, f64::from(max?))?,
            )
        }
        _ => {
            let (min, max) = (context.input(1)?, context.input(2)?);
            (
                context.builder.convert(min, dtype)?,
                context.builder.convert(max, dtype)?,
            )
        }
    };
    let builder = &mut *context.builder;
    if given {
        let is_range = builder.compare(Direction::Le, min, max)?;
        let message = "Invalid range: input_min {0} > input_max {1}";
        builder.check_values(is_range, &[min, max], Code::InvalidArgument, message)?;
    }
    let axes = if builder.rank(min) == 0 { Vec::new() } else { kept };
    Ok((
        builder.broadcast_in_dim(min, &dims, &axes)?,
        builder.broadcast_in_dim(max, &dims, &axes)?,
    ))
}

/// Steps per unit that a limit allows.
fn side(builder: &mut Builder, level: HloOp, limit: HloOp, largest: f64) -> Result<HloOp> {
    let product = builder.multiply(level, limit)?;
    let is_positive = compare_with(builder, Direction::Gt, product, 0.0)?;
    let (steps, all) = (
        builder.divide(level, limit)?,
        builder.scalar_like(largest, limit)?,
    );
    builder.select(is_positive, steps, all)
}

/// `QuantizeAndDequantize` in all versions.
pub fn simulate(context: &mut LowerContext, rounding: &Rounding) -> Result<()> {
    let (input, dtype) = (context.input(0)?, context.output_type(0));
    let work = if dtype == DataType::FLOAT {
        dtype
    } else {
        DataType::DOUBLE
    };
    let top = if dtype == DataType::FLOAT {
        f64::from(f32::MAX)
    } else {
        f64::MAX
    };
    let given = context.attrs().bool("range_given")?;
    let mut x = context.builder.convert(input, work)?;
    let (min, max) = range(context, x, rounding)?;
    let builder = &mut *context.builder;
    let low = builder.scalar_like(rounding.levels.0, x)?;
    let high = builder.scalar_like(rounding.levels.1, x)?;
    let (from_min, from_max) = (side(builder, low, min, top)?, side(builder, high, max, top)?);
    let by_min = builder.compare(Direction::Lt, from_min, from_max)?;
    let (of_min, of_max) = (builder.divide(min, low)?, builder.divide(max, high)?);
    let inverse = builder.select(by_min, of_min, of_max)?;
    let scale = builder.select(by_min, from_min, from_max)?;
    if given {
        let (other_max, other_min) = (builder.multiply(high, inverse)?, builder.multiply(low, inverse)?);
        let max = builder.select(by_min, other_max, max)?;
        let min = builder.select(by_min, min, other_min)?;
        x = bound(builder, Direction::Lt, x, max)?;
        x = bound(builder, Direction::Gt, x, min)?;
    }
    let steps = builder.multiply(x, scale)?;
    let steps = if rounding.to_even {
        builder.unary(Opcode::RoundNearestEven, steps)?
    } else {
        let half = builder.scalar_like(0.5, steps)?;
        let shifted = builder.add(steps, half)?;
        builder.unary(Opcode::Floor, shifted)?
    };
    let result = builder.multiply(steps, inverse)?;
    let output = builder.convert(result, dtype)?;
    context.set_output(0, output);
    Ok(())
}
