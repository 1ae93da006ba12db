//! `ExtractGlimpse` and `V2`: a window of an image, with noise where it reaches outside.

use super::{image_extents, set_sized_image};
use crate::wide::zeros;
use ff_kernels::random::{Normal, Philox, Uniform, fill};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor, bail, dim, ensure};
use std::hash::{BuildHasher, Hasher};

const GLIMPSE: Op = Op {
    name: "ExtractGlimpse",
    shape: |context| {
        let (images, offsets) = (context.input_with_rank(0, 4)?, context.input_with_rank(2, 2)?);
        let batch = dim::merge(images.dim(0), offsets.dim(0))?;
        dim::merge(offsets.dim(1), 2)?;
        set_sized_image(context, batch, 1, images.dim(3))
    },
    kernels: &[Kernel::native(extract)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &GLIMPSE,
    &Op {
        name: "ExtractGlimpseV2",
        gradient: Gradient::Missing,
        ..GLIMPSE
    },
];

/// What a glimpse holds outside of the image.
#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Uniform,
    Gaussian,
    Zero,
}

/// The first pixel of a glimpse along one axis.
fn start(offset: f32, extent: f32, size: f32, centered: bool, normalized: bool, second: bool) -> i64 {
    let pixels = if normalized { offset * extent } else { offset };
    // The second version takes offsets of the corner, unless they are normalized ones from the centre.
    let from_center = !second || (centered && normalized);
    let at = match (centered, from_center) {
        (true, true) => pixels / 2.0 + extent / 2.0,
        (true, false) => pixels + extent / 2.0,
        (false, _) => pixels,
    };
    (if from_center { at - size / 2.0 } else { at }) as i64
}

fn noise(context: &KernelContext) -> Result<Noise> {
    let attrs = context.attrs();
    let name = attrs.string("noise")?;
    ensure!(
        name == "uniform" || !attrs.bool("uniform_noise")?,
        InvalidArgument,
        "The uniform_noise should not be True when noise is not uniform"
    );
    Ok(match name {
        "uniform" => Noise::Uniform,
        "gaussian" => Noise::Gaussian,
        "zero" => Noise::Zero,
        other => bail!(
            InvalidArgument,
            "The noise should be uniform, gaussian or zero but got {other}"
        ),
    })
}

/// Fills with random numbers in the range, or of the mean and deviation, of the image.
fn fill_noise(context: &KernelContext, noise: Noise, image: &[f32], out: &mut [f32]) {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_i64(ff_platform::time::now_nanoseconds());
    let philox = Philox::from_seeds(hasher.finish(), 0);
    let (scale, offset) = match noise {
        Noise::Zero => return out.fill(0.0),
        Noise::Uniform => {
            fill(context.pool(), philox, &Uniform, out);
            let low = image.iter().copied().fold(f32::INFINITY, f32::min);
            let high = image.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            (high - low, low)
        }
        Noise::Gaussian => {
            fill(context.pool(), philox, &Normal, out);
            let mean = image.iter().sum::<f32>() / image.len() as f32;
            let square = image.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>();
            ((square / image.len() as f32).sqrt(), mean)
        }
    };
    out.iter_mut().for_each(|x| *x = *x * scale + offset);
}

fn extract(context: &mut KernelContext) -> Result<()> {
    let [batch, height, width, channels] = image_extents(context, 0)?;
    let size = context.input_i64s(1)?;
    ensure!(
        size.len() == 2 && size[0] >= 0 && size[1] >= 0,
        InvalidArgument,
        "`size` must not be negative, got {size:?}"
    );
    let attrs = context.attrs();
    let (centered, normalized) = (attrs.bool("centered")?, attrs.bool("normalized")?);
    let second = context.node().op_name().ends_with("V2");
    let (noise, shape) = (noise(context)?, context.output_shape(0)?.clone());
    let (image, offsets) = (context.input_slice::<f32>(0)?, context.input_slice::<f32>(2)?);
    let (glimpse, whole) = (
        size[0] as usize * size[1] as usize * channels,
        height * width * channels,
    );
    let mut result: Vec<f32> = zeros(shape.num_elements())?;
    for b in 0..batch {
        let out = &mut result[b * glimpse..][..glimpse];
        let image = &image[b * whole..][..whole];
        let first = |axis: usize, extent: usize| {
            let size = size[axis] as f32;
            start(
                offsets[b * 2 + axis],
                extent as f32,
                size,
                centered,
                normalized,
                second,
            )
        };
        let (top, left) = (first(0, height), first(1, width));
        let inside = |at: i64, size: i64, extent: usize| at >= 0 && at.saturating_add(size) <= extent as i64;
        if !inside(top, size[0], height) || !inside(left, size[1], width) {
            fill_noise(context, noise, image, out);
        }
        for y in 0..size[0] {
            for x in 0..size[1] {
                let (row, column) = (top.saturating_add(y), left.saturating_add(x));
                if (0..height as i64).contains(&row) && (0..width as i64).contains(&column) {
                    let from = (row as usize * width + column as usize) * channels;
                    let to = (y * size[1] + x) as usize * channels;
                    out[to..to + channels].copy_from_slice(&image[from..from + channels]);
                }
            }
        }
    }
    context.set_output(0, Tensor::from_slice(shape, &result)?)
}

crate::op_cases! {
    of_no_size: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[0, 4]), t(&[2, 2], &[0.0f32; 4])]).attr("noise", "zero").attr("uniform_noise", false).gives(t::<f32>(&[2, 0, 4, 2], &[]))
    });
    centered: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[3, 4]), t(&[2, 2], &[0.0f32, 0.1, 0.25, -0.2])]).attr("noise", "zero").attr("uniform_noise", false)
    });
    reaching_out: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[5, 4]), t(&[2, 2], &[-0.9f32, 0.8, 0.95, -1.5])]).attr("noise", "zero").attr("uniform_noise", false)
    });
    cornered: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[3, 4]), t(&[2, 2], &[0.1f32, 0.3, 0.7, 0.9])]).attr("noise", "zero").attr("uniform_noise", false).attr("centered", false)
    });
    pixels: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[3, 4]), t(&[2, 2], &[1.0f32, 3.0, 7.0, -2.5])]).attr("noise", "zero").attr("uniform_noise", false).attr("normalized", false)
    });
    corner_pixels: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[3, 4]), t(&[2, 2], &[1.0f32, 3.0, 7.0, -2.5])]).attr("noise", "zero").attr("uniform_noise", false).attr("normalized", false).attr("centered", false)
    });
    misfit: family(&["ExtractGlimpse", "ExtractGlimpseV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 9, 8, 2]), vector(&[3, 4]), t(&[1, 2], &[0.1f32, 0.3])]).fails(Code::InvalidArgument)
    });
}
