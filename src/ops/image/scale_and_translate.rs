//! `ScaleAndTranslate` and its gradient: resampling with a choice of kernels.

use super::{NUMBERS, image_extents, set_sized_image};
use crate::wide::{f32s, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op};
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure};
use std::f32::consts::PI;

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ScaleAndTranslate",
        shape: |context| {
            let image = context.input_with_rank(0, 4)?;
            context.input_with_rank(2, 1)?;
            context.input_with_rank(3, 1)?;
            set_sized_image(context, image.dim(0), 1, image.dim(3))
        },
        kernels: &[Kernel::native(forward).for_types(NUMBERS)],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "ScaleAndTranslateGrad",
        shape: |context| {
            let image = context.input(1);
            context.set_output(0, image);
            Ok(())
        },
        kernels: &[Kernel::native(backward)],
        ..Op::PURE
    },
];

/// A sampling kernel: how far it reaches, and its value at a distance.
struct Sampler {
    radius: f32,
    value: fn(f32) -> f32,
}

fn lanczos(x: f32, radius: f32) -> f32 {
    if x > radius {
        0.0
    } else if x <= 1e-3 {
        1.0
    } else {
        radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x)
    }
}

fn keys(x: f32) -> f32 {
    if x >= 2.0 {
        0.0
    } else if x >= 1.0 {
        ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    } else {
        ((1.5 * x - 2.5) * x) * x + 1.0
    }
}

fn mitchell(x: f32) -> f32 {
    if x >= 2.0 {
        0.0
    } else if x >= 1.0 {
        (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
    } else {
        (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0
    }
}

fn gaussian(x: f32) -> f32 {
    if x >= 1.5 {
        0.0
    } else {
        (-x * x / (2.0 * 0.5 * 0.5)).exp()
    }
}

fn cube(x: f32) -> f32 {
    match x.partial_cmp(&0.5) {
        Some(std::cmp::Ordering::Less) => 1.0,
        Some(std::cmp::Ordering::Equal) => 0.5,
        _ => 0.0,
    }
}

impl Sampler {
    fn of(attrs: &Attrs) -> Result<Sampler> {
        let (radius, value): (f32, fn(f32) -> f32) = match attrs.string("kernel_type")? {
            "lanczos1" => (1.0, |x| lanczos(x, 1.0)),
            "lanczos3" => (3.0, |x| lanczos(x, 3.0)),
            "lanczos5" => (5.0, |x| lanczos(x, 5.0)),
            "gaussian" => (1.5, gaussian),
            "box" => (1.0, cube),
            "triangle" => (1.0, |x| if x < 1.0 { 1.0 - x } else { 0.0 }),
            "keyscubic" => (2.0, keys),
            "mitchellcubic" => (2.0, mitchell),
            other => bail!(InvalidArgument, "Unrecognized kernel type: {other}"),
        };
        Ok(Sampler { radius, value })
    }
}

/// For each output pixel of an axis the first input pixel and the weights from there on: as many for all, zeros at the
/// end, unless the input ends before.
type Spans = Vec<(usize, Vec<f32>)>;

fn spans(
    sampler: &Sampler,
    input: usize,
    output: usize,
    (scale, translation): (f32, f32),
    antialias: bool,
) -> Result<Spans> {
    let inverse = 1.0 / scale;
    let offset = -inverse * translation;
    let width = if antialias { inverse.max(1.0) } else { 1.0 };
    let most = (2 * (sampler.radius * width).ceil() as usize + 1).min(input);
    let span = |x: usize| {
        let at = (x as f32 + 0.5) * inverse + offset;
        // Also where `at` is no number.
        if !(at >= 0.0 && at <= input as f32) {
            return (0, vec![0.0; most]);
        }
        let last = input as i64 - 1;
        let reach = sampler.radius * width;
        let start = ((at - reach - 0.5).ceil() as i64).clamp(0, last);
        let end = ((at + reach - 0.5).floor() as i64).clamp(0, last) + 1;
        let mut weights: Vec<f32> = (start..end)
            .map(|pixel| (sampler.value)(((pixel as f32 + 0.5 - at) * (1.0 / width)).abs()))
            .collect();
        let sum: f32 = weights.iter().sum();
        let has_sum = sum.abs() >= 1000.0 * f32::MIN_POSITIVE;
        let factor = 1.0 / sum;
        for weight in &mut weights {
            *weight = if has_sum { *weight * factor } else { 0.0 };
        }
        weights.resize(most.min(input - start as usize), 0.0);
        (start as usize, weights)
    };
    crate::wide::collected((0..output).map(span))
}

/// The spans of height and width, from scales and translations at inputs `first` and `first + 1`.
fn both_spans(
    context: &KernelContext,
    first: usize,
    input: [usize; 2],
    output: [usize; 2],
) -> Result<[Spans; 2]> {
    let (scale, translation) = (f32s(context.input(first)?)?, f32s(context.input(first + 1)?)?);
    ensure!(
        scale.len() == 2 && translation.len() == 2,
        InvalidArgument,
        "scale and translation must have two elements"
    );
    ensure!(
        scale.iter().all(|&scale| scale > 0.0),
        InvalidArgument,
        "Scale must be greater than zero."
    );
    let (sampler, antialias) = (Sampler::of(context.attrs())?, context.attrs().bool("antialias")?);
    let axis = |i: usize| {
        spans(
            &sampler,
            input[i],
            output[i],
            (scale[i], translation[i]),
            antialias,
        )
    };
    Ok([axis(0)?, axis(1)?])
}

/// `out[o, i] += weight * x[s, i]` for each weight of each span, over rows of `row` elements; or the transpose.
fn gather(spans: &Spans, row: usize, x: &[f32], out: &mut [f32], transpose: bool) {
    for (o, (start, weights)) in spans.iter().enumerate() {
        for (i, &weight) in weights.iter().enumerate() {
            if transpose && weight == 0.0 {
                continue;
            }
            let source = start + i;
            let (from, to) = if transpose { (o, source) } else { (source, o) };
            let from = &x[from * row..][..row];
            for (to, &from) in out[to * row..][..row].iter_mut().zip(from) {
                *to += weight * from;
            }
        }
    }
}

/// Resamples images along rows, then along columns; `[input, output]` are extents of what is read and made.
fn resample(
    images: &[f32],
    batch: usize,
    channels: usize,
    [from, to]: [[usize; 2]; 2],
    spans: &[Spans; 2],
    transpose: bool,
) -> Result<Vec<f32>> {
    let mut result = zeros(batch * to[0] * to[1] * channels)?;
    let mut between: Vec<f32> = zeros(to[0] * from[1] * channels)?;
    for b in 0..batch {
        between.fill(0.0);
        let size = from[0] * from[1] * channels;
        let image = &images[b * size..][..size];
        gather(&spans[0], from[1] * channels, image, &mut between, transpose);
        for y in 0..to[0] {
            let line = &between[y * from[1] * channels..][..from[1] * channels];
            let out = &mut result[(b * to[0] + y) * to[1] * channels..][..to[1] * channels];
            gather(&spans[1], channels, line, out, transpose);
        }
    }
    Ok(result)
}

fn forward(context: &mut KernelContext) -> Result<()> {
    let [batch, height, width, channels] = image_extents(context, 0)?;
    let size = context.input_i64s(1)?;
    ensure!(
        size.len() == 2 && size[0] > 0 && size[1] > 0,
        InvalidArgument,
        "output_height and output_width must be positive"
    );
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "input image must be of non-zero size"
    );
    let (from, to) = ([height, width], [size[0] as usize, size[1] as usize]);
    let spans = both_spans(context, 2, from, to)?;
    let images = f32s(context.input(0)?)?;
    let result = resample(&images, batch, channels, [from, to], &spans, false)?;
    let result = Tensor::from_slice(context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

fn backward(context: &mut KernelContext) -> Result<()> {
    let [batch, out_height, out_width, channels] = image_extents(context, 0)?;
    let [image_batch, height, width, depth] = image_extents(context, 1)?;
    ensure!(
        image_batch == batch && depth == channels,
        InvalidArgument,
        "gradients and image must have the same batch and channels"
    );
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "original image must be of non-zero size"
    );
    let (image, made) = ([height, width], [out_height, out_width]);
    let spans = both_spans(context, 2, image, made)?;
    let incoming = f32s(context.input(0)?)?;
    let result = resample(&incoming, batch, channels, [made, image], &spans, true)?;
    let shape = Shape::new(context.input(1)?.dims())?;
    context.set_output(0, Tensor::from_slice(shape, &result)?)
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    // The gradient's kernel knows single precision only; of the image it takes the shape.
    let dtype = context.input_type(0);
    let cast = |from, to| Attrs::new().with("SrcT", from).with("DstT", to);
    let image = context.input(0)?;
    let image = context.op("Cast", &[image], cast(dtype, DataType::FLOAT))?;
    let inputs = [incoming, image, context.input(2)?, context.input(3)?];
    let attrs = Attrs::new()
        .with("T", DataType::FLOAT)
        .with("kernel_type", context.attrs().string("kernel_type")?)
        .with("antialias", context.attrs().bool("antialias")?);
    let gradient = context.op("ScaleAndTranslateGrad", &inputs, attrs)?;
    let gradient = context.op("Cast", &[gradient], cast(DataType::FLOAT, dtype))?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
const KERNELS: &[&str] = &[
    "lanczos1",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "box",
    "triangle",
    "keyscubic",
    "mitchellcubic",
];

crate::op_cases! {
    infinite: Case::op("ScaleAndTranslate").attr("kernel_type", "box")
        .inputs([t(&[1, 1, 2, 1], &[1.0f32, f32::INFINITY]), vector(&[2, 2]), vector(&[0.7f32, 1.6]), vector(&[0.5f32, -1.0])]);
    too_large: Case::op("ScaleAndTranslate")
        .inputs([cycle(DataType::FLOAT, &[1, 6, 5, 2]), vector(&[i32::MAX, i32::MAX]), vector(&[1.0f32, 1.0]), vector(&[0.0f32, 0.0])])
        .fails(Code::ResourceExhausted);
    every_type: family(&["ScaleAndTranslate"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 6, 5, 2]), vector(&[4, 7]), vector(&[0.7f32, 1.3]), vector(&[0.5f32, -1.0])])
    });
    lanczos3: Case::op("ScaleAndTranslate").attr("kernel_type", KERNELS[1])
        .inputs([cycle(DataType::FLOAT, &[1, 9, 8, 1]), vector(&[4, 12]), vector(&[0.4f32, 1.5]), vector(&[0.0f32, 0.5])]);
    no_antialias: Case::op("ScaleAndTranslate").attr("antialias", false).attr("kernel_type", "triangle")
        .inputs([cycle(DataType::FLOAT, &[1, 9, 8, 1]), vector(&[4, 12]), vector(&[0.4f32, 1.5]), vector(&[0.0f32, 0.5])]);
    no_scale: Case::op("ScaleAndTranslate").fails(Code::InvalidArgument)
        .inputs([cycle(DataType::FLOAT, &[1, 9, 8, 1]), vector(&[4, 12]), vector(&[0.0f32, 1.5]), vector(&[0.0f32, 0.5])]);
    empty_size: Case::op("ScaleAndTranslate").fails(Code::InvalidArgument)
        .inputs([cycle(DataType::FLOAT, &[1, 9, 8, 1]), vector(&[0, 12]), vector(&[1.0f32, 1.5]), vector(&[0.0f32, 0.5])]);
    backward: Case::op("ScaleAndTranslateGrad")
        .inputs([cycle(DataType::FLOAT, &[2, 4, 7, 2]), cycle(DataType::FLOAT, &[2, 6, 5, 2]), vector(&[0.7f32, 1.3]), vector(&[0.5f32, -1.0])]);
    backward_misfit: Case::op("ScaleAndTranslateGrad").fails(Code::InvalidArgument)
        .inputs([cycle(DataType::FLOAT, &[2, 4, 7, 2]), cycle(DataType::FLOAT, &[2, 6, 5, 2]), vector(&[0.0f32, 1.3]), vector(&[0.5f32, -1.0])]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cycle, vector};
    use ff_tensor::DataType;

    #[test]
    fn every_kernel() {
        for kernel in KERNELS {
            Case::op("ScaleAndTranslate")
                .attr("kernel_type", *kernel)
                .inputs([
                    cycle(DataType::FLOAT, &[1, 6, 5, 2]),
                    vector(&[4, 9]),
                    vector(&[0.7f32, 1.6]),
                    vector(&[0.5f32, -1.0]),
                ])
                .run(&format!("scale_and_translate::{kernel}"));
        }
    }
}
