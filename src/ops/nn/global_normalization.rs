//! `BatchNormWithGlobalNormalization` and its gradient: normalization by given statistics.

use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, dim};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "BatchNormWithGlobalNormalization",
        shape: |context| {
            let channels = check(context, 4)?;
            let shape = context.input_with_rank(0, 4)?.with_dim(3, channels)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(forward)],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "BatchNormWithGlobalNormalizationGrad",
        shape: |context| {
            let channels = check(context, 3)?;
            let incoming = context.input_with_rank(4, 4)?;
            let channels = dim::merge(channels, incoming.dim(3))?;
            let shape = context.input_with_rank(0, 4)?.merge(&incoming)?;
            context.set_output(0, shape.with_dim(3, channels)?);
            for output in 1..5 {
                context.set_output(output, PartialShape::new(&[channels]));
            }
            Ok(())
        },
        kernels: &[Kernel::native(backward)],
        ..Op::PURE
    },
];

/// The number of channels, of the image and of `vectors` vectors.
fn check(context: &ShapeContext, vectors: usize) -> Result<i64> {
    let mut channels = context.input_with_rank(0, 4)?.dim(3);
    for input in 1..=vectors {
        channels = dim::merge(channels, context.input_with_rank(input, 1)?.dim(0))?;
    }
    Ok(channels)
}

/// `1 / sqrt(variance + epsilon)` of each channel.
fn inverses(context: &KernelContext) -> Result<Vec<f64>> {
    let epsilon = f64::from(context.attrs().float("variance_epsilon")?);
    let variances = f64s(context.input(2)?)?;
    Ok(variances
        .iter()
        .map(|variance| 1.0 / (variance + epsilon).sqrt())
        .collect())
}

fn forward(context: &mut KernelContext) -> Result<()> {
    let scaled = context.attrs().bool("scale_after_normalization")?;
    let inverses = inverses(context)?;
    let (x, mean) = (f64s(context.input(0)?)?, f64s(context.input(1)?)?);
    let (beta, gamma) = (f64s(context.input(3)?)?, f64s(context.input(4)?)?);
    let mut result: Vec<f64> = zeros(x.len())?;
    for (i, (out, x)) in result.iter_mut().zip(x.iter()).enumerate() {
        let c = i % mean.len();
        let scale = if scaled { gamma[c] } else { 1.0 };
        *out = (x - mean[c]) * (inverses[c] * scale) + beta[c];
    }
    let result = from_f64s(context.output_type(0), context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

fn backward(context: &mut KernelContext) -> Result<()> {
    let scaled = context.attrs().bool("scale_after_normalization")?;
    let epsilon = f64::from(context.attrs().float("variance_epsilon")?);
    let inverses = inverses(context)?;
    let (x, mean, variance) = (
        f64s(context.input(0)?)?,
        f64s(context.input(1)?)?,
        f64s(context.input(2)?)?,
    );
    let (gamma, incoming) = (f64s(context.input(3)?)?, f64s(context.input(4)?)?);
    let channels = mean.len();
    let scale = |c: usize| if scaled { gamma[c] } else { 1.0 };
    let mut dx: Vec<f64> = zeros(x.len())?;
    let (mut sums, mut products): (Vec<f64>, Vec<f64>) = (zeros(channels)?, zeros(channels)?);
    for (i, (out, gradient)) in dx.iter_mut().zip(incoming.iter()).enumerate() {
        let c = i % channels;
        *out = gradient * (inverses[c] * scale(c));
        sums[c] += gradient;
        products[c] += gradient * (x[i] - mean[c]);
    }
    let each = |f: &dyn Fn(usize) -> f64| (0..channels).map(f).collect::<Vec<f64>>();
    let dm = each(&|c| -sums[c] * inverses[c] * scale(c));
    let dv = each(&|c| products[c] * scale(c) * inverses[c] * -0.5 / (variance[c] + epsilon));
    let dg = each(&|c| if scaled { products[c] * inverses[c] } else { 0.0 });
    let shape = context.output_shape(0)?.clone();
    for (output, values) in [dx, dm, dv, sums, dg].into_iter().enumerate() {
        let shape = if output == 0 {
            shape.clone()
        } else {
            Shape::vector(channels)
        };
        let tensor = from_f64s(context.output_type(output), shape, &values)?;
        context.set_output(output, tensor)?;
    }
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let mut inputs = Vec::new();
    for input in [0, 1, 2, 4] {
        inputs.push(context.input(input)?);
    }
    inputs.push(incoming);
    let attrs = context.attrs();
    let attrs = Attrs::new()
        .with("T", attrs.dtype("T")?)
        .with("variance_epsilon", attrs.float("variance_epsilon")?)
        .with(
            "scale_after_normalization",
            attrs.bool("scale_after_normalization")?,
        );
    let node = context.node_of("BatchNormWithGlobalNormalizationGrad", &inputs, attrs)?;
    for index in 0..5 {
        context.set(
            index,
            OutputRef {
                node,
                index: index as u32,
            },
        );
    }
    Ok(())
}

#[cfg(test)]
const SOME: &[ff_tensor::DataType] = &[
    ff_tensor::DataType::FLOAT,
    ff_tensor::DataType::DOUBLE,
    ff_tensor::DataType::HALF,
];

crate::op_cases! {
    forward: family(&["BatchNormWithGlobalNormalization"], SOME, |op, dtype| {
        let row = |values: &[f64]| numbers(dtype, &[2], values);
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 2]), row(&[1.0, 2.0]), row(&[3.0, 0.5]), row(&[0.25, -1.0]), row(&[2.0, 1.5])])
            .attr("variance_epsilon", 0.01f32).attr("scale_after_normalization", true)
    });
    not_scaled: family(&["BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"], &SOME[..1], |op, dtype| {
        let row = |values: &[f64]| numbers(dtype, &[2], values);
        let last = if op.ends_with("Grad") { cycle(dtype, &[1, 2, 2, 2]) } else { row(&[2.0, 1.5]) };
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 2]), row(&[1.0, 2.0]), row(&[3.0, 0.5]), row(&[0.25, -1.0]), last])
            .attr("variance_epsilon", 0.01f32).attr("scale_after_normalization", false)
    });
    misfit: family(&["BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"], &SOME[..1], |op, dtype| {
        let row = |values: &[f64]| numbers(dtype, &[2], values);
        let last = if op.ends_with("Grad") { cycle(dtype, &[1, 2, 2, 2]) } else { row(&[2.0, 1.5]) };
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 2]), row(&[1.0, 2.0]), vector(&[3.0f32]), row(&[0.25, -1.0]), last])
            .attr("variance_epsilon", 0.01f32).attr("scale_after_normalization", false).fails(Code::InvalidArgument)
    });
    backward: family(&["BatchNormWithGlobalNormalizationGrad"], SOME, |op, dtype| {
        let row = |values: &[f64]| numbers(dtype, &[2], values);
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 2]), row(&[1.0, 2.0]), row(&[3.0, 0.5]), row(&[2.0, 1.5]), cycle(dtype, &[1, 2, 2, 2])])
            .attr("variance_epsilon", 0.01f32).attr("scale_after_normalization", true)
    });
}
