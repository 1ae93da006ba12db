//! `QuantizeAndDequantize` in four versions: symmetric quantization, simulated, of the whole tensor or of each slice.

use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext,
    shapes,
};
use ff_tensor::{DataType, Result, Shape, Tensor, bail, dim, ensure};

const V2: Op = Op {
    name: "QuantizeAndDequantizeV2",
    shape,
    kernels: &[Kernel::native(run)],
    lower: Some(lower),
    gradient: Gradient::Fn(straight_through),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "QuantizeAndDequantize",
        shape: shapes::unchanged,
        ..V2
    },
    &V2,
    &Op {
        name: "QuantizeAndDequantizeV3",
        ..V2
    },
    &Op {
        name: "QuantizeAndDequantizeV4",
        gradient: Gradient::Fn(gradient),
        ..V2
    },
    &Op {
        name: "QuantizeAndDequantizeV4Grad",
        shape: |context| {
            check_limits(context, 1)?;
            let values = context.input(0).merge(&context.input(1))?;
            let (min, max) = (context.input(2), context.input(3));
            context.set_output(0, values);
            context.set_output(1, min);
            context.set_output(2, max);
            Ok(())
        },
        kernels: &[Kernel::native(backward)],
        lower: None,
        gradient: Gradient::Missing,
        ..V2
    },
];

/// Checks the limits after the values: scalars, or one for each slice along the attribute `axis`.
fn check_limits(context: &ShapeContext, values: usize) -> Result<()> {
    let axis = context.attrs().int("axis")?;
    ensure!(
        axis >= -1,
        InvalidArgument,
        "axis should be at least -1, got {axis}"
    );
    let rank = usize::from(axis >= 0);
    let limits = context
        .input_with_rank(values + 1, rank)?
        .merge(&context.input_with_rank(values + 2, rank)?)?;
    if axis >= 0 {
        let shape = context.input_with_rank_at_least(values, axis as usize + 1)?;
        dim::merge(limits.dim(0), shape.dim(axis))?;
    }
    Ok(())
}

fn shape(context: &mut ShapeContext) -> Result<()> {
    check_limits(context, 0)?;
    if context.num_inputs() == 4 {
        context.input_with_rank(3, 0)?;
    }
    let values = context.input(0);
    context.set_output(0, values);
    Ok(())
}

/// A type's arithmetic: each result is rounded to it.
#[derive(Clone, Copy)]
struct Precision(bool);

impl Precision {
    fn of(dtype: DataType) -> Precision {
        Precision(dtype == DataType::FLOAT)
    }

    fn round(self, x: f64) -> f64 {
        if self.0 { f64::from(x as f32) } else { x }
    }

    fn largest(self) -> f64 {
        if self.0 { f64::from(f32::MAX) } else { f64::MAX }
    }
}

/// How numbers are rounded.
struct Rule {
    signed: bool,
    narrow: bool,
    bits: i64,
    to_even: bool,
}

/// The range that the quantized numbers cover, and the number of steps per unit, with its inverse.
struct Scale {
    min: f64,
    max: f64,
    scale: f64,
    inverse: f64,
}

impl Rule {
    /// From attributes and the number of bits, if that is an input. INVALID_ARGUMENT for more bits than the type holds.
    fn of(attrs: &Attrs, given: Option<i64>, dtype: DataType) -> Result<Rule> {
        let bits = match given {
            Some(bits) => bits,
            None => attrs.int("num_bits")?,
        };
        let most = if dtype == DataType::FLOAT { 24 } else { 53 };
        let signed = attrs.bool("signed_input")?;
        ensure!(
            bits > 0 && bits < if signed { 62 } else { 63 } && (given.is_none() || bits <= most),
            InvalidArgument,
            "num_bits is out of range: {bits} with signed_input_ {signed}"
        );
        Ok(Rule {
            signed,
            narrow: attrs.bool("narrow_range").unwrap_or(false),
            bits,
            to_even: round_to_even(attrs)?,
        })
    }

    /// The least and the largest quantized number.
    fn levels(&self) -> (f64, f64) {
        let half = (1i64 << (self.bits - 1)) as f64;
        if self.signed {
            (if self.narrow { 1.0 - half } else { -half }, half - 1.0)
        } else {
            (0.0, (2.0 * half) - 1.0)
        }
    }

    fn scale(&self, min: f64, max: f64, precision: Precision) -> Scale {
        let round = |x| precision.round(x);
        let (least, largest) = self.levels();
        let (least, largest) = (round(least), round(largest));
        let side = |level: f64, limit: f64| {
            if round(level * limit) > 0.0 {
                round(level / limit)
            } else {
                precision.largest()
            }
        };
        let (from_min, from_max) = (side(least, min), side(largest, max));
        if from_min < from_max {
            let inverse = round(min / least);
            Scale {
                min,
                max: round(largest * inverse),
                scale: from_min,
                inverse,
            }
        } else {
            let inverse = round(max / largest);
            Scale {
                min: round(least * inverse),
                max,
                scale: from_max,
                inverse,
            }
        }
    }

    fn apply(&self, x: f64, scale: &Scale, precision: Precision) -> f64 {
        let steps = precision.round(x * scale.scale);
        let steps = if self.to_even {
            steps.round_ties_even()
        } else {
            precision.round(steps + 0.5).floor()
        };
        precision.round(steps * scale.inverse)
    }
}

/// Slices along the axis: their number, and which one an element is in.
struct Slices {
    count: usize,
    inner: usize,
}

impl Slices {
    fn of(dims: &[i64], axis: i64) -> Slices {
        match usize::try_from(axis) {
            Ok(axis) => Slices {
                count: dims[axis] as usize,
                inner: dims[axis + 1..].iter().product::<i64>() as usize,
            },
            Err(_) => Slices { count: 1, inner: 1 },
        }
    }

    fn at(&self, element: usize) -> usize {
        element / self.inner % self.count
    }
}

fn round_to_even(attrs: &Attrs) -> Result<bool> {
    match attrs.string("round_mode").unwrap_or("HALF_TO_EVEN") {
        "HALF_TO_EVEN" => Ok(true),
        "HALF_UP" => Ok(false),
        other => bail!(
            InvalidArgument,
            "Round mode string must be 'HALF_TO_EVEN' or 'HALF_UP', is '{other}'"
        ),
    }
}

fn run(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let dtype = context.output_type(0);
    let (given, axis) = (attrs.bool("range_given")?, attrs.int("axis").unwrap_or(-1));
    let bits = match context.num_inputs() {
        4 => Some(context.input_i64(3)?),
        _ => None,
    };
    let rule = Rule::of(attrs, bits, dtype)?;
    let precision = Precision::of(dtype);
    let x = f64s(context.input(0)?)?;
    let slices = Slices::of(context.input(0)?.dims(), axis);
    // The second version takes one range for all, whatever its attribute says.
    let second = context.node().op_name() == "QuantizeAndDequantizeV2";
    ensure!(
        !given || !second || (context.input(1)?.rank() == 0 && context.input(2)?.rank() == 0),
        InvalidArgument,
        "input_min must be a scalar."
    );
    let ranges = if given {
        let limit = |input: usize, attr: &str| match context.num_inputs() {
            1 => Ok(vec![f64::from(attrs.float(attr)?)]),
            _ => Ok::<_, ff_tensor::Status>(f64s(context.input(input)?)?.into_owned()),
        };
        let (mins, maxes) = (limit(1, "input_min")?, limit(2, "input_max")?);
        for (min, max) in mins.iter().zip(&maxes) {
            ensure!(
                min <= max,
                InvalidArgument,
                "Invalid range: input_min {min} > input_max {max}"
            );
        }
        mins.into_iter().zip(maxes).collect()
    } else {
        let mut ranges = crate::wide::filled(slices.count, (f64::INFINITY, f64::NEG_INFINITY))?;
        for (i, &x) in x.iter().enumerate() {
            let range = &mut ranges[slices.at(i)];
            *range = (range.0.min(x), range.1.max(x));
        }
        ranges
    };
    let scales: Vec<Scale> = ranges
        .iter()
        .map(|&(min, max)| rule.scale(min, max, precision))
        .collect();
    let mut result: Vec<f64> = zeros(x.len())?;
    for (i, (out, &x)) in result.iter_mut().zip(x.iter()).enumerate() {
        let scale = &scales[slices.at(i)];
        let x = if given { x.min(scale.max).max(scale.min) } else { x };
        *out = rule.apply(x, scale, precision);
    }
    let result = from_f64s(dtype, context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let bits = match context.num_inputs() {
        4 => context.constant_i64s(3)?.first().copied(),
        _ => None,
    };
    let rule = Rule::of(context.attrs(), bits, context.output_type(0))?;
    let axis = context.attrs().int("axis").unwrap_or(-1);
    let rounding = super::lower::Rounding {
        levels: rule.levels(),
        to_even: rule.to_even,
        axis: usize::try_from(axis).ok(),
    };
    super::lower::simulate(context, &rounding)
}

fn backward(context: &mut KernelContext) -> Result<()> {
    let axis = context.attrs().int("axis")?;
    let (incoming, x) = (f64s(context.input(0)?)?, f64s(context.input(1)?)?);
    let (mins, maxes) = (f64s(context.input(2)?)?, f64s(context.input(3)?)?);
    let slices = Slices::of(context.input(1)?.dims(), axis);
    let mut result: Vec<f64> = zeros(x.len())?;
    for (i, out) in result.iter_mut().enumerate() {
        let slice = slices.at(i);
        if x[i] >= mins[slice] && x[i] <= maxes[slice] {
            *out = incoming[i];
        }
    }
    let dtype = context.output_type(0);
    let result = from_f64s(dtype, context.output_shape(0)?.clone(), &result)?;
    let zeros = Tensor::zeros(dtype, Shape::new(context.input(2)?.dims())?)?;
    context.set_output(0, result)?;
    context.set_output(1, zeros.clone())?;
    context.set_output(2, zeros)
}

fn straight_through(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    context.set(0, incoming);
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let inputs = [incoming, context.input(0)?, context.input(1)?, context.input(2)?];
    let attrs = Attrs::new()
        .with("T", context.input_type(0))
        .with("axis", context.attrs().int("axis")?);
    let node = context.node_of("QuantizeAndDequantizeV4Grad", &inputs, attrs)?;
    for index in 0..3 {
        context.set(index as usize, OutputRef { node, index });
    }
    Ok(())
}

#[cfg(test)]
fn some(dtype: DataType) -> Tensor {
    crate::testing::numbers(dtype, &[2, 4], &[-9.0, -1.26, -0.1, 0.0, 0.3, 0.555, 2.49, 7.0])
}

crate::op_cases! {
    computed: family(&["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([some(dtype), numbers(dtype, &[], &[0.0]), numbers(dtype, &[], &[0.0])])
    });
    given: family(&["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([some(dtype), numbers(dtype, &[], &[-3.0]), numbers(dtype, &[], &[5.0])]).attr("range_given", true).attr("num_bits", 4i64)
            .attr("round_mode", "HALF_UP").attr("narrow_range", true)
    });
    unsigned: Case::op("QuantizeAndDequantizeV2").inputs([some(DataType::FLOAT), scalar(0.0f32), scalar(5.0f32)]).attr("range_given", true).attr("signed_input", false);
    each_slice: Case::op("QuantizeAndDequantizeV2").inputs([some(DataType::FLOAT), vector(&[-1.0f32, -2.0]), vector(&[5.0f32, 1.0])]).attr("range_given", true).attr("axis", 0i64)
        .fails(Code::InvalidArgument);
    each_slice_computed: Case::op("QuantizeAndDequantizeV3").inputs([some(DataType::FLOAT), vector(&[0.0f32; 4]), vector(&[0.0f32; 4]), scalar(6)])
        .attr("range_given", false).attr("axis", 1i64);
    third: family(&["QuantizeAndDequantizeV3"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([some(dtype), numbers(dtype, &[], &[-3.0]), numbers(dtype, &[], &[5.0]), scalar(5)])
    });
    third_bits: Case::op("QuantizeAndDequantizeV3").inputs([some(DataType::FLOAT), scalar(-3.0f32), scalar(5.0f32), scalar(0)]).fails(Code::InvalidArgument);
    first: family(&["QuantizeAndDequantize"], &FLOATS[..2], |op, dtype| Case::op(op).input(some(dtype)).attr("num_bits", 5i64));
    first_turned: Case::op("QuantizeAndDequantize").input(some(DataType::FLOAT)).attr("range_given", true).attr("input_min", 2.0f32).fails(Code::InvalidArgument);
    turned: family(&["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([some(dtype), scalar(3.0f32), scalar(-3.0f32)]).attr("range_given", true).fails(Code::InvalidArgument)
    });
    backward: family(&["QuantizeAndDequantizeV4Grad"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([counting(dtype, &[2, 4]), some(dtype), numbers(dtype, &[], &[-3.0]), numbers(dtype, &[], &[5.0])])
    });
    backward_misfit: Case::op("QuantizeAndDequantizeV4Grad").inputs([counting(DataType::FLOAT, &[2, 3]), some(DataType::FLOAT), scalar(0.0f32), scalar(1.0f32)]).fails(Code::InvalidArgument);
}
