//! Ops that encode images.

use super::jpeg::Writing;
use super::{jpeg, png};
use ff_op::{Attrs, Kernel, KernelContext, Op};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, bail, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "EncodePng",
        shape: |context| {
            let image = context.input_with_rank_at_least(0, 3)?;
            let batch = match image.rank() {
                Some(_) => image.slice(0, Some(-3)),
                None => PartialShape::unknown(),
            };
            context.set_output(0, batch);
            Ok(())
        },
        kernels: &[Kernel::native(encode_png)],
        ..Op::PURE
    },
    &Op {
        name: "EncodeJpeg",
        shape: |context| {
            context.input_with_rank(0, 3)?;
            context.set_output(0, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let how = writing(context.attrs())?;
            encode_jpeg(context, how)
        })],
        ..Op::PURE
    },
    &Op {
        name: "EncodeJpegVariableQuality",
        shape: |context| {
            context.input_with_rank(0, 3)?;
            context.input_with_rank(1, 0)?;
            context.set_output(0, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let quality = check_quality(context.input_i64(1)?)?;
            encode_jpeg(
                context,
                Writing {
                    quality,
                    ..defaults()
                },
            )
        })],
        ..Op::PURE
    },
];

fn encode_png(context: &mut KernelContext) -> Result<()> {
    let image = context.input(0)?;
    let dims = image.dims();
    let [ref batch @ .., height, width, channels] = *dims else {
        bail!(
            InvalidArgument,
            "image must be at least 3-dimensional, got {}",
            image.shape()
        );
    };
    let compression = context.attrs().int("compression")?;
    ensure!(
        (-1..=9).contains(&compression),
        InvalidArgument,
        "compression should be in [-1,9], got {compression}"
    );
    ensure!(
        (1..=4).contains(&channels),
        InvalidArgument,
        "image must have 1, 2, 3, or 4 channels, got {channels}"
    );
    let most = i64::from(i32::MAX);
    ensure!(
        height <= most && width <= most,
        InvalidArgument,
        "image must be smaller, got {}",
        image.shape()
    );
    if batch.contains(&0) {
        let output = Tensor::from_strings(Shape::new(batch)?, Vec::new())?;
        return context.set_output(0, output);
    }
    ensure!(
        height > 0 && width > 0,
        Internal,
        "PNG encoding failed: the image is empty, {}",
        image.shape()
    );
    let deep = image.dtype() == DataType::UINT16;
    let size = (height * width * channels) as usize * image.dtype().size();
    let mut files: Vec<TString> = Vec::new();
    for pixels in image.bytes().chunks_exact(size) {
        let extents = (height as u32, width as u32, channels as usize);
        let file = if deep {
            let swapped: Vec<u8> = pixels
                .chunks_exact(2)
                .flat_map(|pair| [pair[1], pair[0]])
                .collect();
            png::encode(&swapped, extents, true, compression)?
        } else {
            png::encode(pixels, extents, false, compression)?
        };
        files.push(file.as_slice().into());
    }
    let output = Tensor::from_strings(Shape::new(batch)?, files)?;
    context.set_output(0, output)
}

fn defaults() -> Writing {
    Writing {
        quality: 95,
        progressive: false,
        optimize: false,
        downsample: true,
        density: (1, 300, 300),
        xmp: Vec::new(),
    }
}

fn check_quality(quality: i64) -> Result<u8> {
    ensure!(
        (0..=100).contains(&quality),
        InvalidArgument,
        "quality must be in [0,100], got {quality}"
    );
    Ok(quality as u8)
}

fn writing(attrs: &Attrs) -> Result<Writing> {
    let unit = match attrs.string("density_unit")? {
        "in" => 1,
        "cm" => 2,
        other => bail!(InvalidArgument, "density_unit must be 'in' or 'cm', got {other}"),
    };
    Ok(Writing {
        quality: check_quality(attrs.int("quality")?)?,
        progressive: attrs.bool("progressive")?,
        optimize: attrs.bool("optimize_size")?,
        downsample: attrs.bool("chroma_downsampling")?,
        density: (
            unit,
            attrs.int("x_density")? as u16,
            attrs.int("y_density")? as u16,
        ),
        xmp: attrs.bytes("xmp_metadata")?.to_vec(),
    })
}

fn encode_jpeg(context: &mut KernelContext, how: Writing) -> Result<()> {
    let image = context.input(0)?;
    let [height, width, channels] = *image.dims() else {
        bail!(
            InvalidArgument,
            "image must be 3-dimensional, got shape {}",
            image.shape()
        );
    };
    let wanted = match context.attrs().string("format").unwrap_or("") {
        "" => channels,
        "grayscale" => 1,
        "rgb" => 3,
        other => bail!(
            InvalidArgument,
            "format must be '', grayscale or rgb, got {other}"
        ),
    };
    ensure!(
        channels == wanted && matches!(channels, 1 | 3),
        InvalidArgument,
        "image must have 1 or 3 channels, {wanted} for this format, got {}",
        image.shape()
    );
    let most = i64::from(u16::MAX);
    ensure!(
        (1..=most).contains(&height) && (1..=most).contains(&width),
        InvalidArgument,
        "JPEG encoding failed: size {height} x {width}"
    );
    let extents = (height as u16, width as u16, channels as usize);
    let file = jpeg::encode(image.as_slice()?, extents, &how)?;
    let output = Tensor::from_strings(Shape::scalar(), vec![file.as_slice().into()])?;
    context.set_output(0, output)
}

crate::op_cases! {
    no_channels: family(&["EncodePng", "EncodeJpeg"], &[DataType::UINT8], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 2, 5])).fails(Code::InvalidArgument)
    });
    no_images: Case::op("EncodePng").input(cycle(DataType::UINT8, &[0, 2, 2, 1])).gives(strings(&[0], &[]));
    no_pixels: Case::op("EncodePng").input(cycle(DataType::UINT8, &[0, 2, 3])).fails(Code::Internal);
    quality: Case::op("EncodeJpegVariableQuality").inputs([cycle(DataType::UINT8, &[2, 2, 3]), scalar(101)]).fails(Code::InvalidArgument);
    no_batch: Case::op("EncodePng").input(cycle(DataType::UINT8, &[0, 2, 2, 3])).gives(strings(&[0], &[]));
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, scalar, t};
    use ff_op::Attrs;
    use ff_tensor::{DataType, Tensor};

    fn image<T: ff_tensor::Element>(dims: &[i64], of: impl Fn(i64) -> T) -> Tensor {
        let values: Vec<T> = (0..dims.iter().product()).map(of).collect();
        t(dims, &values)
    }

    #[test]
    fn png_loses_nothing() {
        let runner = OpRunner::new();
        for channels in 1..=4 {
            let pixels = image(&[5, 7, channels], |i| (i * 37 % 256) as u8);
            let file = runner
                .run("EncodePng", std::slice::from_ref(&pixels), Attrs::new())
                .unwrap();
            let back = runner.run("DecodeImage", &file, Attrs::new()).unwrap();
            assert!(back[0].bitwise_eq(&pixels), "{channels} channels");
        }
        let deep = image(&[5, 7, 3], |i| (i * 3701 % 65536) as u16);
        let file = runner
            .run("EncodePng", std::slice::from_ref(&deep), Attrs::new())
            .unwrap();
        let attrs = Attrs::new().with("dtype", DataType::UINT16);
        assert!(runner.run("DecodePng", &file, attrs).unwrap()[0].bitwise_eq(&deep));
    }

    #[test]
    fn jpeg_loses_little() {
        let runner = OpRunner::new();
        let pixels = image(&[32, 48, 3], |i| (i / 3 % 48 * 4 + i % 3 * 20) as u8);
        for attrs in [
            Attrs::new(),
            Attrs::new().with("progressive", true),
            Attrs::new()
                .with("optimize_size", true)
                .with("chroma_downsampling", false),
        ] {
            let file = runner
                .run("EncodeJpeg", std::slice::from_ref(&pixels), attrs.clone())
                .unwrap();
            let back = runner.run("DecodeJpeg", &file, Attrs::new()).unwrap();
            let pairs = back[0].as_slice::<u8>().unwrap().iter();
            let furthest = pairs
                .zip(pixels.as_slice::<u8>().unwrap())
                .map(|(a, b)| a.abs_diff(*b))
                .max();
            assert!(furthest.unwrap() < 16, "{furthest:?} with {attrs:?}");
        }
        let inputs = [pixels, scalar(40)];
        let small = runner
            .run("EncodeJpegVariableQuality", &inputs, Attrs::new())
            .unwrap();
        assert!(small[0].strings().unwrap()[0].len() < 3000);
    }
}
