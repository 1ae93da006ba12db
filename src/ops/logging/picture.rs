//! Summaries of images: each as a PNG file in a serialized `Summary`.
//!
//! Numbers are scaled to bytes, so that the largest of an image is 255; where some are negative, zero is 128. Pixels with
//! numbers that are not finite get the colour of the attribute `bad_color`.

use super::summary::{give, tag};
use crate::image::png_of;
use crate::math::number::Number;
use crate::wide::Real;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_proto::summary::value::Value as Content;
use ff_proto::summary::{Image, Value};
use ff_tensor::{DataType, Element, Result, Tensor, bail, ensure, f16};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "ImageSummary",
    shape: shapes::scalar,
    kernels: &[Kernel::native(pictures).for_types(&[(
        "T",
        &[DataType::FLOAT, DataType::UINT8, DataType::HALF, DataType::DOUBLE],
    )])],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// The colour of pixels that are not finite. INVALID_ARGUMENT unless it is a vector of bytes.
fn bad_color(bad: &Tensor) -> Result<&[u8]> {
    ensure!(
        bad.dtype() == DataType::UINT8,
        InvalidArgument,
        "bad_color must be uint8, got {}",
        bad.dtype()
    );
    ensure!(
        bad.rank() == 1,
        InvalidArgument,
        "bad_color must be a vector, got shape {}",
        bad.shape()
    );
    bad.as_slice()
}

fn pictures(context: &mut KernelContext) -> Result<()> {
    let (bad, most) = (
        context.attrs().tensor("bad_color")?,
        context.attrs().int("max_images")?,
    );
    // What is wrong with the attribute is said first.
    bad_color(bad)?;
    let values = values_of(&tag(context, 0)?, context.input(1)?, most, bad)?;
    give(context, values)
}

/// Of a batch of images, `[batch, height, width, channels]`, the first few.
pub(super) fn values_of(tag: &str, images: &Tensor, most: i64, bad: &Tensor) -> Result<Vec<Value>> {
    let bad = bad_color(bad)?;
    let [batch, height, width, channels @ (1 | 3 | 4)] = *images.dims() else {
        bail!(
            InvalidArgument,
            "Tensor must be 4-D with last dim 1, 3, or 4, not {}",
            images.shape()
        );
    };
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "input tensor must have non-zero dims. Found: {}.",
        images.shape()
    );
    let (Ok(rows), Ok(columns)) = (i32::try_from(height), i32::try_from(width)) else {
        bail!(InvalidArgument, "Tensor too large for summary {}", images.shape());
    };
    ensure!(
        images.dtype() == DataType::UINT8 || channels as usize <= bad.len(),
        InvalidArgument,
        "expected depth <= bad_color.size, got depth = {channels}, bad_color.size = {}",
        bad.len()
    );
    let size = (height * width * channels) as usize;
    let mut values = Vec::new();
    for number in 0..batch.min(most).max(0) as usize {
        let bytes = match images.dtype() {
            DataType::UINT8 => images.as_slice::<u8>()?[number * size..][..size].to_vec(),
            dtype => crate::match_type!(dtype, (f32, f64, f16), T => {
                scaled(&images.as_slice::<T>()?[number * size..][..size], channels as usize, bad)
            })?,
        };
        let image = Image {
            height: rows,
            width: columns,
            colorspace: channels as i32,
            encoded_image_string: png_of(&bytes, (rows as u32, columns as u32, channels as usize))?.into(),
        };
        values.push(Value {
            tag: match most {
                1 => format!("{tag}/image"),
                _ => format!("{tag}/image/{number}"),
            },
            value: Some(Content::Image(image)),
            ..Value::default()
        });
    }
    Ok(values)
}

/// Numbers as bytes: `x * scale + offset`, computed in their own type.
fn scaled<T: Number + Real + Element>(x: &[T], channels: usize, bad: &[u8]) -> Result<Vec<u8>> {
    let is_finite = |pixel: &[T]| pixel.iter().all(|x| x.to_f64().is_finite());
    let (mut least, mut largest) = (f32::INFINITY, f32::NEG_INFINITY);
    for pixel in x.chunks_exact(channels).filter(|pixel| is_finite(pixel)) {
        for number in pixel {
            let number = number.to_f64() as f32;
            (least, largest) = (least.min(number), largest.max(number));
        }
    }
    let (reach, most, offset) = if least < 0.0 {
        (least.abs().max(largest.abs()), 127.0, 128.0)
    } else {
        (largest, 255.0, 0.0)
    };
    // Smaller numbers are noise.
    let scale: f32 = if reach < 1e-6 { 0.0 } else { most / reach };
    let (scale, offset) = (T::from_f64(f64::from(scale)), T::from_f64(offset));
    let mut bytes = crate::wide::reserved(x.len())?;
    for pixel in x.chunks_exact(channels) {
        if is_finite(pixel) {
            bytes.extend(pixel.iter().map(|x| x.mul(scale).add(offset).to_f64() as u8));
        } else {
            bytes.extend_from_slice(&bad[..channels]);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers to bytes, as the reference's files have them.
    #[test]
    fn numbers_become_bytes() {
        let bad = [1, 2, 3, 4];
        let row = [100.3, 33.3, 7.77, -5.5];
        assert_eq!(
            scaled(&row.map(|x| x as f32), 1, &bad).unwrap(),
            [255, 170, 137, 121]
        );
        assert_eq!(scaled(&row, 1, &bad).unwrap(), [254, 170, 137, 121]);
        assert_eq!(
            scaled(&row.map(f16::from_f64)[..3], 1, &bad).unwrap(),
            [255, 84, 19]
        );
        assert_eq!(
            scaled(&[-1.0f32, 0.0, 1.0, 2.0], 1, &bad).unwrap(),
            [64, 128, 191, 255]
        );
        assert_eq!(scaled(&[1e300, 1.0], 1, &bad).unwrap(), [0, 0]);
        assert_eq!(scaled(&[1e-7, 3e-8f32], 1, &bad).unwrap(), [0, 0]);
        let holes = [0.0, 1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(
            scaled(&holes, 3, &bad).unwrap(),
            [0, 31, 63, 1, 2, 3, 191, 223, 255]
        );
    }
}

crate::op_cases! {
    every_type: family(&["ImageSummary"], &[DataType::FLOAT, DataType::DOUBLE, DataType::HALF, DataType::UINT8], |op, dtype| {
        Case::op(op).inputs([strings(&[], &["t"]), counting(dtype, &[2, 1, 2, 3])])
    });
    one: Case::op("ImageSummary").inputs([strings(&[], &["t"]), t(&[2, 1, 2, 1], &[0.0f32, f32::INFINITY, -1.0, 3.0])]).attr("max_images", 1i64);
    few: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[5, 1, 1, 4])]);
    colored: Case::op("ImageSummary").inputs([strings(&[], &["t"]), t(&[1, 2, 1, 1], &[f32::NAN, 2.0])]).attr("bad_color", vector(&[7u8]));
    none: Case::op("ImageSummary").inputs([strings(&[], &["t"]), t::<f32>(&[0, 2, 2, 1], &[])]);
    empty: Case::op("ImageSummary").inputs([strings(&[], &["t"]), t::<f32>(&[1, 0, 2, 1], &[])]).fails(Code::InvalidArgument);
    pairs: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[1, 2, 2, 2])]).fails(Code::InvalidArgument);
    flat: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[2, 2, 1])]).fails(Code::InvalidArgument);
    two_tags: Case::op("ImageSummary").inputs([strings(&[1], &["t"]), counting(DataType::FLOAT, &[1, 2, 2, 1])]).fails(Code::InvalidArgument);
    short_color: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[1, 2, 2, 3])]).attr("bad_color", vector(&[1u8, 2])).fails(Code::InvalidArgument);
    color_of_bytes: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::UINT8, &[1, 2, 2, 3])]).attr("bad_color", vector(&[1u8, 2]));
    color_of_numbers: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[1, 2, 2, 1])]).attr("bad_color", vector(&[1, 2])).fails(Code::InvalidArgument);
    color_alone: Case::op("ImageSummary").inputs([strings(&[], &["t"]), counting(DataType::FLOAT, &[1, 2, 2, 1])]).attr("bad_color", scalar(1u8)).fails(Code::InvalidArgument);
}
