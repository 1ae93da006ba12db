//! Local response normalization: each channel divided by what its neighbours hold.

use crate::wide::{f64s, from_f64s, zeros};
use ff_hlo::{Builder, Op as HloOp, Opcode};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op};
use ff_tensor::{DataType, Result, ensure};

const TYPES: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT, DataType::HALF, DataType::BFLOAT16])];

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "LRN",
        shape: |context| {
            let input = context.input_with_rank(0, 4)?;
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(forward).for_types(TYPES)],
        lower: Some(lower_forward),
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "LRNGrad",
        shape: |context| {
            let mut shape = context.input_with_rank(0, 4)?;
            for input in 1..3 {
                shape = shape.merge(&context.input_with_rank(input, 4)?)?;
            }
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(backward).for_types(TYPES)],
        lower: Some(lower_backward),
        ..Op::PURE
    },
];

/// The attributes: radius, bias, alpha, beta.
struct Rule {
    radius: usize,
    bias: f64,
    alpha: f64,
    beta: f64,
}

impl Rule {
    fn of(attrs: &Attrs) -> Result<Rule> {
        let radius = attrs.int("depth_radius")?;
        ensure!(
            (0..=i64::from(i32::MAX)).contains(&radius),
            InvalidArgument,
            "depth_radius = {radius} larger than int max"
        );
        Ok(Rule {
            radius: radius as usize,
            bias: f64::from(attrs.float("bias")?),
            alpha: f64::from(attrs.float("alpha")?),
            beta: f64::from(attrs.float("beta")?),
        })
    }

    /// The channels that take part for channel `c`.
    fn neighbours(&self, c: usize, channels: usize) -> std::ops::Range<usize> {
        c.saturating_sub(self.radius)..c.saturating_add(self.radius + 1).min(channels)
    }

    /// What channel `c` is divided by, before the power.
    fn norm(&self, pixel: &[f64], c: usize) -> f64 {
        let squares: f64 = pixel[self.neighbours(c, pixel.len())].iter().map(|x| x * x).sum();
        self.bias + self.alpha * squares
    }
}

fn channels(context: &KernelContext) -> Result<usize> {
    Ok(context.input(0)?.dims().last().map_or(1, |&extent| extent.max(1)) as usize)
}

fn forward(context: &mut KernelContext) -> Result<()> {
    let (rule, channels) = (Rule::of(context.attrs())?, channels(context)?);
    let x = f64s(context.input(0)?)?;
    let mut result = zeros(x.len())?;
    for (out, pixel) in result.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
        for (c, out) in out.iter_mut().enumerate() {
            *out = pixel[c] * rule.norm(pixel, c).powf(-rule.beta);
        }
    }
    let result = from_f64s(context.output_type(0), context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

fn backward(context: &mut KernelContext) -> Result<()> {
    let (rule, channels) = (Rule::of(context.attrs())?, channels(context)?);
    let (incoming, x, y) = (
        f64s(context.input(0)?)?,
        f64s(context.input(1)?)?,
        f64s(context.input(2)?)?,
    );
    let mut result: Vec<f64> = zeros(x.len())?;
    for (start, out) in (0..).step_by(channels).zip(result.chunks_exact_mut(channels)) {
        let pixel = &x[start..start + channels];
        for c in 0..channels {
            let norm = rule.norm(pixel, c);
            let gradient = incoming[start + c];
            for k in rule.neighbours(c, channels) {
                let mut slope = -2.0 * rule.alpha * rule.beta * pixel[k] * y[start + c] / norm;
                if k == c {
                    slope += norm.powf(-rule.beta);
                }
                out[k] += slope * gradient;
            }
        }
    }
    let result = from_f64s(context.output_type(0), context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

/// The sum over the neighbours of each channel.
fn neighbours(builder: &mut Builder, x: HloOp, radius: usize) -> Result<HloOp> {
    let channels = builder.dims(x)[3];
    if builder.dims(x).contains(&0) {
        return Ok(x);
    }
    let radius = (radius as i64).min(channels - 1);
    let dtype = builder.dtype(x);
    let sum = (
        builder.identity(Opcode::Add, dtype)?,
        builder.reducer(Opcode::Add, dtype)?,
    );
    crate::lowering::slide(builder, x, 3, radius, radius, sum)
}

/// What each element is divided by, before the power, and its power.
fn norms(builder: &mut Builder, x: HloOp, rule: &Rule) -> Result<(HloOp, HloOp)> {
    let squares = builder.square(x)?;
    let sum = neighbours(builder, squares, rule.radius)?;
    let (alpha, bias) = (
        builder.scalar_like(rule.alpha, x)?,
        builder.scalar_like(rule.bias, x)?,
    );
    let scaled = builder.multiply(alpha, sum)?;
    let norm = builder.add(bias, scaled)?;
    let beta = builder.scalar_like(-rule.beta, x)?;
    Ok((norm, builder.binary(Opcode::Power, norm, beta)?))
}

fn lower_forward(context: &mut LowerContext) -> Result<()> {
    let (rule, input, dtype) = (
        Rule::of(context.attrs())?,
        context.input(0)?,
        context.output_type(0),
    );
    let builder = &mut *context.builder;
    let x = builder.convert(input, DataType::DOUBLE)?;
    let (_, power) = norms(builder, x, &rule)?;
    let result = builder.multiply(x, power)?;
    let output = builder.convert(result, dtype)?;
    context.set_output(0, output);
    Ok(())
}

fn lower_backward(context: &mut LowerContext) -> Result<()> {
    let (rule, dtype) = (Rule::of(context.attrs())?, context.output_type(0));
    let inputs = [context.input(0)?, context.input(1)?, context.input(2)?];
    let builder = &mut *context.builder;
    let [incoming, x, y] = inputs.map(|input| builder.convert(input, DataType::DOUBLE));
    let (incoming, x, y) = (incoming?, x?, y?);
    let (norm, power) = norms(builder, x, &rule)?;
    let product = builder.multiply(incoming, y)?;
    let shares = builder.divide(product, norm)?;
    let sum = neighbours(builder, shares, rule.radius)?;
    let factor = builder.scalar_like(-2.0 * rule.alpha * rule.beta, x)?;
    let slope = builder.multiply(factor, x)?;
    let slope = builder.multiply(slope, sum)?;
    let own = builder.multiply(incoming, power)?;
    let result = builder.add(own, slope)?;
    let output = builder.convert(result, dtype)?;
    context.set_output(0, output);
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let inputs = [
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    ];
    let attrs = context.attrs();
    let attrs = Attrs::new()
        .with("T", attrs.dtype("T")?)
        .with("depth_radius", attrs.int("depth_radius")?)
        .with("bias", attrs.float("bias")?)
        .with("alpha", attrs.float("alpha")?)
        .with("beta", attrs.float("beta")?);
    let gradient = context.op("LRNGrad", &inputs, attrs)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    ordinary: family(&["LRN"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 2, 2, 7])).attr("depth_radius", 2i64).attr("alpha", 0.25f32).attr("beta", 0.75f32)
    });
    of_nothing: Case::op("LRN").input(cycle(DataType::FLOAT, &[0, 2, 2, 7]));
    of_rows: Case::op("LRN").input(cycle(DataType::FLOAT, &[2, 7])).fails(Code::InvalidArgument);
    backward: family(&["LRNGrad"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 7]), cycle(dtype, &[1, 2, 2, 7]), cycle(dtype, &[1, 2, 2, 7])])
            .attr("depth_radius", 2i64).attr("alpha", 0.25f32).attr("beta", 0.75f32)
    });
    backward_misfit: Case::op("LRNGrad").inputs([cycle(DataType::FLOAT, &[1, 2, 2, 7]), cycle(DataType::FLOAT, &[1, 2, 2, 6]), cycle(DataType::FLOAT, &[1, 2, 2, 7])])
        .fails(Code::InvalidArgument);
}
