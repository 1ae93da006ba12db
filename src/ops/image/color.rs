//! Colours: contrast, hue, saturation, and conversion between RGB and HSV.

use crate::wide::{f32s, f64s, from_f32s, from_f64s, single, zeros};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, Result, dim, ensure};

const PIXELS: Op = Op {
    name: "RGBToHSV",
    shape: pixels_shape,
    kernels: &[Kernel::native(|context| map_pixels(context, rgb_to_hsv))],
    lower: Some(super::lower_color::rgb_to_hsv),
    gradient: Gradient::Missing,
    ..Op::PURE
};
const CONTRAST: Op = Op {
    name: "AdjustContrastv2",
    shape: |context| {
        context.input_with_rank_at_least(0, 3)?;
        for input in 1..context.num_inputs() {
            context.input_with_rank(input, 0)?;
        }
        shapes::unchanged(context)
    },
    kernels: &[Kernel::native(|context| contrast(context, false))],
    lower: Some(super::lower_color::contrast),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &PIXELS,
    &Op {
        name: "HSVToRGB",
        kernels: &[Kernel::native(|context| map_pixels(context, hsv_to_rgb))],
        lower: Some(super::lower_color::hsv_to_rgb),
        gradient: Gradient::NotDifferentiable,
        ..PIXELS
    },
    &Op {
        name: "AdjustHue",
        shape: adjusted_shape,
        kernels: &[Kernel::native(|context| adjust(context, turn_hue))],
        lower: Some(super::lower_color::hue),
        ..PIXELS
    },
    &Op {
        name: "AdjustSaturation",
        shape: adjusted_shape,
        kernels: &[Kernel::native(|context| adjust(context, scale_saturation))],
        lower: Some(super::lower_color::saturation),
        ..PIXELS
    },
    &CONTRAST,
    &Op {
        name: "AdjustContrast",
        kernels: &[Kernel::native(|context| contrast(context, true))],
        lower: None,
        ..CONTRAST
    },
];

fn pixels_shape(context: &mut ShapeContext) -> Result<()> {
    let pixels = context.input_with_rank_at_least(0, 1)?;
    let shape = match pixels.rank() {
        Some(_) => pixels.with_dim(-1, dim::merge(pixels.dim(-1), 3)?)?,
        None => pixels,
    };
    context.set_output(0, shape);
    Ok(())
}

fn adjusted_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank_at_least(0, 3)?;
    context.input_with_rank(1, 0)?;
    shapes::unchanged(context)
}

fn map_pixels(context: &mut KernelContext, convert: fn([f64; 3]) -> [f64; 3]) -> Result<()> {
    let pixels = f64s(context.input(0)?)?;
    let mut result = zeros(pixels.len())?;
    for (out, pixel) in result.chunks_exact_mut(3).zip(pixels.chunks_exact(3)) {
        out.copy_from_slice(&convert([pixel[0], pixel[1], pixel[2]]));
    }
    let result = from_f64s(context.output_type(0), context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

fn rgb_to_hsv([r, g, b]: [f64; 3]) -> [f64; 3] {
    // What cannot be compared with the next channel gives way to it.
    let larger = |a: f64, b: f64| if a > b { a } else { b };
    let smaller = |a: f64, b: f64| if a < b { a } else { b };
    let value = larger(larger(r, g), b);
    let range = value - smaller(smaller(r, g), b);
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    let unit = 1.0 / (6.0 * range);
    let hue = if range.is_nan() || range <= 0.0 {
        0.0
    } else if r == value {
        unit * (g - b)
    } else if g == value {
        unit * (b - r) + 2.0 / 6.0
    } else {
        unit * (r - g) + 4.0 / 6.0
    };
    [if hue < 0.0 { hue + 1.0 } else { hue }, saturation, value]
}

fn hsv_to_rgb([hue, saturation, value]: [f64; 3]) -> [f64; 3] {
    let sector = hue * 6.0;
    let shares = [
        (sector - 3.0).abs() - 1.0,
        2.0 - (sector - 2.0).abs(),
        2.0 - (sector - 4.0).abs(),
    ];
    shares.map(|share| (1.0 - saturation + saturation * share.clamp(0.0, 1.0)) * value)
}

/// Maps pixels of three channels with the number at input 1. INVALID_ARGUMENT for other numbers of channels.
fn adjust(context: &mut KernelContext, change: fn([f32; 3], f32) -> [f32; 3]) -> Result<()> {
    let channels = context.input(0)?.dims().last().copied().unwrap_or(0);
    ensure!(
        channels == 3,
        InvalidArgument,
        "input must have 3 channels but instead has {channels} channels."
    );
    let by = single(context.input(1)?)? as f32;
    let pixels = f32s(context.input(0)?)?;
    let mut result = zeros(pixels.len())?;
    for (out, pixel) in result.chunks_exact_mut(3).zip(pixels.chunks_exact(3)) {
        out.copy_from_slice(&change([pixel[0], pixel[1], pixel[2]], by));
    }
    let result = from_f32s(context.output_type(0), context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

/// Turns the hue of a pixel by a part of the circle; largest and smallest channel values stay.
fn turn_hue([r, g, b]: [f32; 3], delta: f32) -> [f32; 3] {
    // The sector of the hue and the middle value.
    let (sector, largest, middle, smallest) = if r < g {
        if b < r {
            (1, g, r, b)
        } else if b > g {
            (3, b, g, r)
        } else {
            (2, g, b, r)
        }
    } else if b < g {
        (0, r, g, b)
    } else if b > r {
        (4, b, r, g)
    } else {
        (5, r, b, g)
    };
    let mut hue = 0.0;
    if largest != smallest {
        let ratio = (middle - smallest) / (largest - smallest);
        hue = sector as f32 + if sector % 2 == 0 { ratio } else { 1.0 - ratio };
    }
    hue += delta * 6.0;
    // The remainder gives what repeated steps give, also for large turns.
    if !(0.0..6.0).contains(&hue) {
        hue = hue.rem_euclid(6.0);
    }
    // What is no number lies in no sector.
    let sector = if hue.is_nan() { -1 } else { hue as i32 };
    let ratio = hue - sector as f32;
    let ratio = if sector % 2 == 0 { ratio } else { 1.0 - ratio };
    let middle = smallest + ratio * (largest - smallest);
    match sector {
        0 => [largest, middle, smallest],
        1 => [middle, largest, smallest],
        2 => [smallest, largest, middle],
        3 => [smallest, middle, largest],
        4 => [middle, smallest, largest],
        _ => [largest, smallest, middle],
    }
}

fn scale_saturation([r, g, b]: [f32; 3], scale: f32) -> [f32; 3] {
    // What cannot be compared with the channel before it gives way to it.
    let larger = |a: f32, b: f32| if a < b { b } else { a };
    let smaller = |a: f32, b: f32| if b < a { b } else { a };
    let value = larger(r, larger(g, b));
    let range = value - smaller(r, smaller(g, b));
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    let unit = 1.0 / (6.0 * range);
    let mut hue = if range <= 0.0 {
        0.0
    } else if r == value {
        unit * (g - b)
    } else if g == value {
        unit * (b - r) + 2.0 / 6.0
    } else {
        unit * (r - g) + 4.0 / 6.0
    };
    if hue < 0.0 {
        hue += 1.0;
    }
    // The maximum of zero and what is no number is zero.
    let scaled = saturation * scale;
    let saturation = if scaled > 0.0 { scaled.min(1.0) } else { 0.0 };
    let chroma = saturation * value;
    let rest = value - chroma;
    let sector = hue * 6.0;
    let mut within = sector % 2.0;
    if within <= 0.0 {
        within += 2.0;
    }
    let middle = chroma * (1.0 - (within - 1.0).abs());
    let sector = if sector.is_nan() { -1 } else { sector as i32 };
    let [r, g, b] = match sector {
        0 => [chroma, middle, 0.0],
        1 => [middle, chroma, 0.0],
        2 => [0.0, chroma, middle],
        3 => [0.0, middle, chroma],
        4 => [middle, 0.0, chroma],
        5 => [chroma, 0.0, middle],
        _ => [0.0, 0.0, 0.0],
    };
    [r + rest, g + rest, b + rest]
}

/// `(x - mean) * factor + mean` with the mean of each channel of each image; `bounded` by inputs 2 and 3.
fn contrast(context: &mut KernelContext, bounded: bool) -> Result<()> {
    let image = context.input(0)?;
    let dims = image.dims().to_vec();
    let [.., height, width, channels] = dims[..] else {
        ff_tensor::bail!(
            InvalidArgument,
            "input must be at least 3-D, got shape {}",
            image.shape()
        );
    };
    let factor = single(context.input(1)?)? as f32;
    let bounds = if bounded {
        Some((
            single(context.input(2)?)? as f32,
            single(context.input(3)?)? as f32,
        ))
    } else {
        None
    };
    let (size, channels) = ((height * width * channels) as usize, channels as usize);
    let pixels = f32s(image)?;
    let mut result = zeros(pixels.len())?;
    let mut means: Vec<f64> = zeros(channels)?;
    for (out, image) in result
        .chunks_exact_mut(size.max(1))
        .zip(pixels.chunks_exact(size.max(1)))
    {
        means.fill(0.0);
        for pixel in image.chunks_exact(channels) {
            for (mean, &x) in means.iter_mut().zip(pixel) {
                *mean += f64::from(x);
            }
        }
        means.iter_mut().for_each(|mean| *mean /= (height * width) as f64);
        for (out, pixel) in out.chunks_exact_mut(channels).zip(image.chunks_exact(channels)) {
            for ((out, &x), &mean) in out.iter_mut().zip(pixel).zip(&means) {
                let mean = mean as f32;
                let changed = (x - mean) * factor + mean;
                *out = bounds.map_or(changed, |(low, high)| changed.max(low).min(high));
            }
        }
    }
    let dtype: DataType = context.output_type(0);
    let result = from_f32s(dtype, context.output_shape(0)?.clone(), &result)?;
    context.set_output(0, result)
}

#[cfg(test)]
fn colors(dtype: DataType) -> ff_tensor::Tensor {
    let values = [
        0.1, 0.5, 0.9, 0.9, 0.5, 0.1, 0.5, 0.1, 0.9, 0.5, 0.9, 0.1, 0.1, 0.9, 0.5, 0.9, 0.1, 0.5, 0.3, 0.3,
        0.3, 0.0, 0.0, 0.0,
    ];
    crate::testing::numbers(dtype, &[2, 4, 3], &values)
}

/// Pixels with channels that are infinite or no numbers.
#[cfg(test)]
const BROKEN: [f64; 21] = {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    [
        nan, 1.0, 2.0, 1.0, nan, 2.0, 1.0, 2.0, nan, inf, 1.0, 2.0, 1.0, inf, 2.0, nan, nan, nan, -inf, 0.0,
        1.0,
    ]
};

crate::op_cases! {
    conversions: family(&["RGBToHSV", "HSVToRGB"], FLOATS, |op, dtype| Case::op(op).input(colors(dtype)));
    broken_pixels: Case::op("RGBToHSV").input(t(&[7, 3], &BROKEN));
    hue_of_broken_pixels: Case::op("AdjustHue").inputs([t(&[1, 7, 3], &BROKEN.map(|x| x as f32)), scalar(0.3f32)]);
    saturation_of_broken_pixels: Case::op("AdjustSaturation").inputs([t(&[1, 7, 3], &BROKEN.map(|x| x as f32)), scalar(0.5f32)]);
    hue_by_no_number: Case::op("AdjustHue").inputs([t(&[1, 1, 3], &[0.1f32, 0.5, 0.3]), scalar(f32::NAN)]).gives(t(&[1, 1, 3], &[0.5f32, 0.1, f32::NAN]));
    saturation_by_no_number: Case::op("AdjustSaturation").inputs([t(&[1, 1, 3], &[0.1f32, 0.5, 0.3]), scalar(f32::NAN)]).gives(t(&[1, 1, 3], &[0.5f32; 3]));
    no_pixels: family(&["RGBToHSV", "HSVToRGB"], &FLOATS[..1], |op, dtype| Case::op(op).input(cycle(dtype, &[0, 3])));
    two_channels: family(&["RGBToHSV", "HSVToRGB"], &FLOATS[..1], |op, dtype| Case::op(op).input(cycle(dtype, &[4, 2])).fails(Code::InvalidArgument));
    hue: Case::op("AdjustHue").inputs([colors(DataType::FLOAT), scalar(0.3f32)]);
    hue_back: Case::op("AdjustHue").inputs([colors(DataType::FLOAT), scalar(-0.8f32)]);
    hue_of_two: Case::op("AdjustHue").inputs([cycle(DataType::FLOAT, &[2, 2, 2]), scalar(-0.8f32)]).fails(Code::InvalidArgument);
    hue_of_rows: Case::op("AdjustHue").inputs([cycle(DataType::FLOAT, &[2, 3]), scalar(-0.8f32)]).fails(Code::InvalidArgument);
    saturation: Case::op("AdjustSaturation").inputs([colors(DataType::FLOAT), scalar(0.3f32)]);
    saturation_more: Case::op("AdjustSaturation").inputs([colors(DataType::FLOAT), scalar(2.5f32)]);
    saturation_by_vector: Case::op("AdjustSaturation").inputs([colors(DataType::FLOAT), vector(&[2.5f32])]).fails(Code::InvalidArgument);
    contrast: Case::op("AdjustContrastv2").inputs([cycle(DataType::FLOAT, &[2, 3, 3, 2]), scalar(1.5f32)]);
    contrast_of_nothing: Case::op("AdjustContrastv2").inputs([cycle(DataType::FLOAT, &[0, 3, 3, 2]), scalar(1.5f32)]);
    contrast_of_rows: Case::op("AdjustContrastv2").inputs([cycle(DataType::FLOAT, &[3, 2]), scalar(1.5f32)]).fails(Code::InvalidArgument);
    first_contrast: family(&["AdjustContrast"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT8, DataType::INT16, DataType::INT32, DataType::UINT8], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 3, 2]), scalar(1.5f32), scalar(1.0f32), scalar(4.0f32)])
    });
    first_contrast_of_rows: Case::op("AdjustContrast").inputs([cycle(DataType::FLOAT, &[3, 2]), scalar(1.5f32), scalar(0.0f32), scalar(4.0f32)]).fails(Code::InvalidArgument);
}
