//! Fake quantization: numbers rounded as a quantized type would round them, and the gradients.

use crate::wide::{single, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

const ARGS: Op = Op {
    name: "FakeQuantWithMinMaxArgs",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(args)],
    lower: Some(|context| super::lower::args(context, levels(context.attrs())?, false)),
    gradient: Gradient::Fn(args_gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &ARGS,
    &Op {
        name: "FakeQuantWithMinMaxArgsGradient",
        shape: shapes::merged,
        kernels: &[Kernel::native(args_backward)],
        lower: Some(|context| super::lower::args(context, levels(context.attrs())?, true)),
        gradient: Gradient::Missing,
        ..ARGS
    },
    &Op {
        name: "FakeQuantWithMinMaxVars",
        shape: |context| {
            context.input_with_rank(1, 0)?;
            context.input_with_rank(2, 0)?;
            shapes::unchanged(context)
        },
        kernels: &[Kernel::native(|context| vars(context, false))],
        lower: Some(|context| super::lower::vars(context, levels(context.attrs())?, false)),
        gradient: Gradient::Fn(|context| vars_gradient(context, "FakeQuantWithMinMaxVarsGradient")),
        ..ARGS
    },
    &Op {
        name: "FakeQuantWithMinMaxVarsGradient",
        shape: |context| {
            let values = context.input(0).merge(&context.input(1))?;
            context.input_with_rank(2, 0)?;
            context.input_with_rank(3, 0)?;
            context.set_output(0, values);
            context.set_output(1, PartialShape::scalar());
            context.set_output(2, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(|context| vars_backward(context, false))],
        lower: Some(|context| super::lower::vars_backward(context, levels(context.attrs())?, false)),
        gradient: Gradient::Missing,
        ..ARGS
    },
    &Op {
        name: "FakeQuantWithMinMaxVarsPerChannel",
        shape: |context| {
            let (values, _) = per_channel(context, 0)?;
            context.set_output(0, values);
            Ok(())
        },
        kernels: &[Kernel::native(|context| vars(context, true))],
        lower: Some(|context| super::lower::vars(context, levels(context.attrs())?, true)),
        gradient: Gradient::Fn(|context| vars_gradient(context, "FakeQuantWithMinMaxVarsPerChannelGradient")),
        ..ARGS
    },
    &Op {
        name: "FakeQuantWithMinMaxVarsPerChannelGradient",
        shape: |context| {
            let (values, channels) = per_channel(context, 1)?;
            let values = values.merge(&context.input(0))?;
            context.set_output(0, values);
            context.set_output(1, PartialShape::new(&[channels]));
            context.set_output(2, PartialShape::new(&[channels]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| vars_backward(context, true))],
        lower: Some(|context| super::lower::vars_backward(context, levels(context.attrs())?, true)),
        gradient: Gradient::Missing,
        ..ARGS
    },
];

/// The values at an input, with limits per channel at the next two.
fn per_channel(context: &ShapeContext, values: usize) -> Result<(PartialShape, i64)> {
    let shape = context.input_with_rank_at_least(values, 1)?;
    let mut channels = shape.dim(-1);
    for limit in [values + 1, values + 2] {
        channels = dim::merge(channels, context.input_with_rank(limit, 1)?.dim(0))?;
    }
    match shape.rank() {
        Some(_) => Ok((shape.with_dim(-1, channels)?, channels)),
        None => Ok((shape, channels)),
    }
}

/// The least and the largest quantized number. INVALID_ARGUMENT for other than 2 to 16 bits.
fn levels(attrs: &Attrs) -> Result<(f32, f32)> {
    let bits = attrs.int("num_bits")?;
    ensure!(
        (2..=16).contains(&bits),
        InvalidArgument,
        "num_bits must be between 2 and 16, inclusive"
    );
    let least = if attrs.bool("narrow_range")? { 1.0 } else { 0.0 };
    Ok((least, ((1 << bits) - 1) as f32))
}

/// Limits moved so that zero is a quantized number, and the step between two numbers.
struct Nudged {
    min: f32,
    max: f32,
    scale: f32,
    inverse: f32,
}

impl Nudged {
    fn new(min: f32, max: f32, (least, largest): (f32, f32)) -> Nudged {
        let scale = (max - min) / (largest - least);
        let zero = (least - min / scale).clamp(least, largest).round();
        // A range of NaN gives zero, as a conversion to an integer does.
        let zero = if zero.is_nan() { 0.0 } else { zero };
        Nudged {
            min: (least - zero) * scale,
            max: (largest - zero) * scale,
            scale,
            inverse: (largest - least) / (max - min),
        }
    }

    fn zero(&self) -> f32 {
        (-self.min * self.inverse + 0.5).floor()
    }

    fn clamp(&self, x: f32) -> f32 {
        x.min(self.max).max(self.min) - self.min
    }

    /// Multiplies by the inverse of the step.
    fn round(&self, x: f32) -> f32 {
        (self.clamp(x) * self.inverse - self.zero() + 0.5).floor() * self.scale
    }

    /// Divides by the step.
    fn round_by_division(&self, x: f32) -> f32 {
        (self.clamp(x) / self.scale - self.zero() + 0.5).floor() * self.scale
    }

    fn holds(&self, x: f32) -> bool {
        x >= self.min && x <= self.max
    }
}

/// Limits from attributes. INVALID_ARGUMENT unless the first is smaller.
fn limits(attrs: &Attrs) -> Result<(f32, f32)> {
    let (min, max) = (attrs.float("min")?, attrs.float("max")?);
    ensure!(
        min < max,
        InvalidArgument,
        "min has to be smaller than max, was: {min} >= {max}"
    );
    Ok((min, max))
}

fn args(context: &mut KernelContext) -> Result<()> {
    let (min, max) = limits(context.attrs())?;
    let nudged = Nudged::new(min, max, levels(context.attrs())?);
    crate::elementwise::map_same::<f32>(context, 4.0, |x| nudged.round(x))
}

fn args_backward(context: &mut KernelContext) -> Result<()> {
    let (min, max) = limits(context.attrs())?;
    let nudged = Nudged::new(min, max, levels(context.attrs())?);
    crate::elementwise::zip_same::<f32>(context, 1.0, |gradient, x| {
        gradient * f32::from(u8::from(nudged.holds(x)))
    })
}

/// The limits of each channel at two inputs, one for all unless `each`; none where both are zero.
fn ranges(context: &KernelContext, first: usize, each: bool) -> Result<Vec<Option<Nudged>>> {
    let levels = levels(context.attrs())?;
    let range = |min: f32, max: f32| (min != 0.0 || max != 0.0).then(|| Nudged::new(min, max, levels));
    if !each {
        let (min, max) = (
            single(context.input(first)?)? as f32,
            single(context.input(first + 1)?)? as f32,
        );
        return Ok(vec![range(min, max)]);
    }
    let (mins, maxes) = (
        context.input_slice::<f32>(first)?,
        context.input_slice::<f32>(first + 1)?,
    );
    Ok(mins
        .iter()
        .zip(maxes)
        .map(|(&min, &max)| range(min, max))
        .collect())
}

fn vars(context: &mut KernelContext, each: bool) -> Result<()> {
    let ranges = ranges(context, 1, each)?;
    let mut output = context.allocate_output(0)?;
    let x = context.input_slice::<f32>(0)?;
    for (i, (out, &x)) in output.as_mut_slice::<f32>()?.iter_mut().zip(x).enumerate() {
        *out = match &ranges[i % ranges.len()] {
            None => 0.0,
            Some(range) if each => range.round(x),
            Some(range) => range.round_by_division(x),
        };
    }
    context.set_output(0, output)
}

fn vars_backward(context: &mut KernelContext, each: bool) -> Result<()> {
    let ranges = ranges(context, 2, each)?;
    let (incoming, x) = (context.input_slice::<f32>(0)?, context.input_slice::<f32>(1)?);
    ensure!(
        incoming.len() == x.len(),
        InvalidArgument,
        "gradient and input must be the same size"
    );
    let mut output = context.allocate_output(0)?;
    let channels = ranges.len();
    let (mut below, mut above): (Vec<f64>, Vec<f64>) = (zeros(channels)?, zeros(channels)?);
    for (i, out) in output.as_mut_slice::<f32>()?.iter_mut().enumerate() {
        let (gradient, x, channel) = (incoming[i], x[i], i % channels.max(1));
        *out = match &ranges[channel] {
            None => gradient,
            Some(range) => {
                if x < range.min {
                    below[channel] += f64::from(gradient);
                } else if x > range.max {
                    above[channel] += f64::from(gradient);
                }
                gradient * f32::from(u8::from(range.holds(x)))
            }
        };
    }
    context.set_output(0, output)?;
    for (index, sums) in [below, above].into_iter().enumerate() {
        let shape = context.output_shape(index + 1)?.clone();
        let sums: Vec<f32> = crate::wide::collected(sums.into_iter().map(|sum| sum as f32))?;
        context.set_output(index + 1, Tensor::from_slice(shape, &sums)?)?;
    }
    Ok(())
}

fn common(context: &GradientContext) -> Result<Attrs> {
    Ok(Attrs::new()
        .with("num_bits", context.attrs().int("num_bits")?)
        .with("narrow_range", context.attrs().bool("narrow_range")?))
}

fn args_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let attrs = common(context)?
        .with("min", context.attrs().float("min")?)
        .with("max", context.attrs().float("max")?);
    let gradient = context.op("FakeQuantWithMinMaxArgsGradient", &[incoming, x], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn vars_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let inputs = [incoming, context.input(0)?, context.input(1)?, context.input(2)?];
    let attrs = common(context)?;
    let node = context.node_of(op, &inputs, attrs)?;
    for index in 0..3 {
        context.set(index as usize, OutputRef { node, index });
    }
    Ok(())
}

#[cfg(test)]
fn some() -> Tensor {
    crate::testing::t(&[2, 4], &[-9.0f32, -1.26, -0.1, 0.0, 0.3, 0.555, 2.49, 7.0])
}

crate::op_cases! {
    args: Case::op("FakeQuantWithMinMaxArgs").input(some());
    args_narrow: Case::op("FakeQuantWithMinMaxArgs").input(some()).attr("min", -1.3f32).attr("max", 2.7f32).attr("num_bits", 4i64).attr("narrow_range", true);
    args_of_nothing: Case::op("FakeQuantWithMinMaxArgs").input(t::<f32>(&[0], &[]));
    args_turned: family(&["FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient"], &[DataType::FLOAT], |op, _| {
        let case = Case::op(op).input(some()).attr("min", 3.0f32).attr("max", 2.0f32).fails(Code::InvalidArgument);
        if op.ends_with("Gradient") { case.input(some()) } else { case }
    });
    args_backward: Case::op("FakeQuantWithMinMaxArgsGradient").inputs([counting(DataType::FLOAT, &[2, 4]), some()]).attr("min", -1.3f32).attr("max", 2.7f32);
    vars: Case::op("FakeQuantWithMinMaxVars").inputs([some(), scalar(-1.3f32), scalar(2.7f32)]);
    vars_zero: Case::op("FakeQuantWithMinMaxVars").inputs([some(), scalar(0.0f32), scalar(0.0f32)]);
    vars_of_vectors: Case::op("FakeQuantWithMinMaxVars").inputs([some(), vector(&[0.0f32, 1.0]), scalar(0.0f32)]).fails(Code::InvalidArgument);
    vars_backward: Case::op("FakeQuantWithMinMaxVarsGradient").inputs([counting(DataType::FLOAT, &[2, 4]), some(), scalar(-1.3f32), scalar(2.7f32)]);
    vars_backward_misfit: Case::op("FakeQuantWithMinMaxVarsGradient").inputs([counting(DataType::FLOAT, &[2, 3]), some(), scalar(-1.3f32), scalar(2.7f32)]).fails(Code::InvalidArgument);
    channels: Case::op("FakeQuantWithMinMaxVarsPerChannel").inputs([some(), vector(&[-1.0f32, -0.5, 0.0, -6.0]), vector(&[1.0f32, 0.7, 0.0, 6.0])]);
    channels_misfit: Case::op("FakeQuantWithMinMaxVarsPerChannel").inputs([some(), vector(&[-1.0f32, -0.5, 0.0]), vector(&[1.0f32, 0.7, 0.0])]).fails(Code::InvalidArgument);
    channels_backward: Case::op("FakeQuantWithMinMaxVarsPerChannelGradient")
        .inputs([counting(DataType::FLOAT, &[2, 4]), some(), vector(&[-1.0f32, -0.5, 0.0, -6.0]), vector(&[1.0f32, 0.7, 0.0, 6.0])]);
    channels_backward_misfit: Case::op("FakeQuantWithMinMaxVarsPerChannelGradient")
        .inputs([counting(DataType::FLOAT, &[2, 4]), some(), vector(&[-1.0f32, -0.5, 0.0]), vector(&[1.0f32, 0.7, 0.0])]).fails(Code::InvalidArgument);
}
