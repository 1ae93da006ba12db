//! Ops that decode images. Each takes any format, as far as the format and the op fit; the file's first bytes decide.

use super::{Picture, Samples, bmp, gif, jpeg, png, webp};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, dim, ensure};

const IMAGE: Op = Op {
    name: "DecodePng",
    shape: |context| shape(context, 3),
    kernels: &[Kernel::native(decode)],
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &IMAGE,
    &Op {
        name: "DecodeJpeg",
        ..IMAGE
    },
    &Op {
        name: "DecodeAndCropJpeg",
        shape: |context| {
            let window = context.input_with_rank(1, 1)?;
            dim::merge(window.dim(0), 4)?;
            shape(context, 3)?;
            if let Some(window) = context.input_as_i64s(1)? {
                let channels = channels_dim(context)?;
                ensure!(
                    window[2] > 0 && window[3] > 0,
                    InvalidArgument,
                    "crop window must have a positive size, got {window:?}"
                );
                context.set_output(0, PartialShape::new(&[window[2], window[3], channels]));
            }
            Ok(())
        },
        ..IMAGE
    },
    &Op {
        name: "DecodeBmp",
        ..IMAGE
    },
    &Op {
        name: "DecodeGif",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            let unknown = dim::UNKNOWN;
            context.set_output(0, PartialShape::new(&[unknown, unknown, unknown, 3]));
            Ok(())
        },
        ..IMAGE
    },
    &Op {
        name: "DecodeWebP",
        shape: |context| shape(context, 4),
        ..IMAGE
    },
    &Op {
        name: "DecodeImage",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            if context.attrs().bool("expand_animations")? {
                return Ok(());
            }
            shape(context, 3)
        },
        ..IMAGE
    },
    &Op {
        name: "ExtractJpegShape",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            context.set_output(0, PartialShape::new(&[3]));
            Ok(())
        },
        kernels: &[Kernel::native(extents)],
        ..Op::PURE
    },
];

/// The last extent, from the attribute `channels`.
fn channels_dim(context: &ShapeContext) -> Result<i64> {
    let channels = context.attrs().int("channels")?;
    ensure!(
        channels >= 0,
        InvalidArgument,
        "channels must be non-negative, got {channels}"
    );
    Ok(if channels == 0 { dim::UNKNOWN } else { channels })
}

fn shape(context: &mut ShapeContext, rank: usize) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let mut dims = vec![dim::UNKNOWN; rank];
    dims[rank - 1] = channels_dim(context)?;
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

/// The format that the first bytes of a file say.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Jpeg,
    Png,
    Gif,
    Bmp,
    WebP,
}

fn format_of(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(b"\xff\xd8\xff") {
        Some(Format::Jpeg)
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(Format::Png)
    } else if bytes.starts_with(b"GIF8") {
        Some(Format::Gif)
    } else if bytes.starts_with(b"BM") {
        Some(Format::Bmp)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some(Format::WebP)
    } else {
        None
    }
}

/// What a node asks for.
struct Request<'a> {
    op: &'a str,
    channels: usize,
    dtype: DataType,
    /// Whether the output has an axis of frames.
    animated: bool,
}

fn request<'a>(context: &'a KernelContext) -> Result<Request<'a>> {
    let (op, attrs) = (context.node().op_name(), context.attrs());
    let channels = attrs.int("channels").unwrap_or(0);
    let allowed: &[i64] = match op {
        "DecodeJpeg" | "DecodeAndCropJpeg" => &[0, 1, 3],
        "DecodeWebP" => &[0, 3, 4],
        _ => &[0, 1, 3, 4],
    };
    ensure!(
        allowed.contains(&channels),
        InvalidArgument,
        "channels must be one of {allowed:?}, got {channels}"
    );
    Ok(Request {
        op,
        channels: channels as usize,
        dtype: context.output_type(0),
        animated: matches!(op, "DecodeGif" | "DecodeWebP")
            || (op == "DecodeImage" && attrs.bool("expand_animations")?),
    })
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "`contents` must be scalar but got shape {}",
        input.shape()
    );
    let bytes = input.strings()?[0].as_bytes();
    let request = request(context)?;
    ensure!(!bytes.is_empty(), InvalidArgument, "Input is empty.");
    let Some(format) = format_of(bytes) else {
        bail!(
            InvalidArgument,
            "Unknown image file format. One of JPEG, PNG, GIF, BMP required."
        );
    };
    let picture = match format {
        Format::Jpeg => decode_jpeg(context, &request, bytes)?,
        Format::Png => {
            refuse(
                request.op == "DecodeAndCropJpeg" || request.op == "DecodeBmp",
                "PNG",
                &request,
            )?;
            png::decode(bytes, request.dtype != DataType::UINT8)?
        }
        Format::Gif => decode_gif(&request, bytes)?,
        Format::Bmp => {
            refuse(
                !matches!(request.op, "DecodeBmp" | "DecodeImage"),
                "BMP",
                &request,
            )?;
            bmp::decode(bytes, request.channels)?
        }
        Format::WebP => {
            refuse(
                !matches!(request.op, "DecodeWebP" | "DecodeImage"),
                "WebP",
                &request,
            )?;
            webp::decode(bytes)?
        }
    };
    let picture = picture.with_channels(request.channels)?;
    let gif_axis = request.op == "DecodeGif" || request.op == "DecodeWebP";
    let frames_axis = gif_axis || (request.animated && matches!(format, Format::Gif | Format::WebP));
    let output = to_tensor(picture, request.dtype, frames_axis)?;
    context.set_output(0, output)
}

/// INVALID_ARGUMENT for a format that an op does not take.
fn refuse(refused: bool, format: &str, request: &Request) -> Result<()> {
    ensure!(
        !refused,
        InvalidArgument,
        "Trying to decode {format} format using a wrong op. Use `decode_{}` or `decode_image` instead. Op used: {}",
        format.to_lowercase(),
        request.op
    );
    Ok(())
}

fn decode_jpeg(context: &KernelContext, request: &Request, bytes: &[u8]) -> Result<Picture> {
    refuse(
        request.op == "DecodeBmp" || request.op == "DecodeWebP",
        "JPEG",
        request,
    )?;
    ensure!(
        request.channels != 4,
        InvalidArgument,
        "channels must be 0, 1, or 3 for JPEG, got 4"
    );
    let attrs = context.attrs();
    let ratio = attrs.int("ratio").unwrap_or(1);
    ensure!(
        matches!(ratio, 1 | 2 | 4 | 8),
        InvalidArgument,
        "ratio must be 1, 2, 4, or 8, got {ratio}"
    );
    let picture = jpeg::decode(bytes, request.channels)?;
    let picture = jpeg::reduced(picture, ratio as usize)?;
    if request.op != "DecodeAndCropJpeg" {
        return Ok(picture);
    }
    match context.input_i64s(1)?[..] {
        [y, x, height, width] => jpeg::cropped(picture, [y, x, height, width]),
        _ => bail!(InvalidArgument, "crop_window must have four elements"),
    }
}

fn decode_gif(request: &Request, bytes: &[u8]) -> Result<Picture> {
    refuse(
        matches!(request.op, "DecodeAndCropJpeg" | "DecodeBmp" | "DecodeWebP"),
        "GIF",
        request,
    )?;
    ensure!(
        matches!(request.channels, 0 | 3),
        InvalidArgument,
        "channels must be 0 or 3 for GIF, got {}",
        request.channels
    );
    if matches!(request.op, "DecodePng" | "DecodeJpeg") {
        let frames = gif::frames(bytes)?;
        ensure!(
            frames <= 1,
            InvalidArgument,
            "Got {frames} frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image"
        );
    }
    gif::decode(bytes, request.animated)
}

/// Samples as a tensor; 8 bits become 16 by a factor of 256, and both become floats from 0 to 1.
fn to_tensor(picture: Picture, dtype: DataType, frames_axis: bool) -> Result<Tensor> {
    let mut dims = vec![
        picture.height as i64,
        picture.width as i64,
        picture.channels as i64,
    ];
    if frames_axis {
        dims.insert(0, picture.frames as i64);
    }
    let shape = Shape::new(&dims)?;
    match (picture.samples, dtype) {
        (Samples::Bytes(bytes), DataType::UINT8) => Tensor::from_slice(shape, &bytes),
        (Samples::Words(words), DataType::UINT16) => Tensor::from_slice(shape, &words),
        (Samples::Bytes(bytes), DataType::UINT16) => {
            let words: Vec<u16> = bytes.into_iter().map(|x| u16::from(x) << 8).collect();
            Tensor::from_slice(shape, &words)
        }
        (Samples::Bytes(bytes), DataType::FLOAT) => {
            let floats: Vec<f32> = bytes.into_iter().map(|x| f32::from(x) * (1.0 / 255.0)).collect();
            Tensor::from_slice(shape, &floats)
        }
        (Samples::Words(words), DataType::FLOAT) => {
            let floats: Vec<f32> = words
                .into_iter()
                .map(|x| f32::from(x) * (1.0 / 65535.0))
                .collect();
            Tensor::from_slice(shape, &floats)
        }
        (_, other) => bail!(
            InvalidArgument,
            "`dtype` must be unit8, uint16, or float, got {other}"
        ),
    }
}

fn extents(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "contents must be scalar, got shape {}",
        input.shape()
    );
    let (height, width, channels) = jpeg::extents(input.strings()?[0].as_bytes())?;
    let values = [height as f64, width as f64, channels as f64];
    let output = crate::wide::from_f64s(context.output_type(0), Shape::vector(3), &values)?;
    context.set_output(0, output)
}

#[cfg(test)]
fn bmp_file() -> Tensor {
    let mut file = b"BM".to_vec();
    file.extend([0u8; 8]);
    file.extend(54i32.to_le_bytes());
    file.extend(40i32.to_le_bytes());
    file.extend(2i32.to_le_bytes());
    file.extend(2i32.to_le_bytes());
    file.extend([1, 0, 24, 0]);
    file.extend([0u8; 24]);
    file.extend([1u8, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0]);
    string(&file)
}

#[cfg(test)]
fn string(bytes: &[u8]) -> Tensor {
    Tensor::from_strings(Shape::scalar(), vec![bytes.into()]).expect("elements of a case")
}

/// A file that the encoding ops make of some pixels.
#[cfg(test)]
fn made(op: &str, dims: &[i64]) -> Tensor {
    let runner = crate::testing::OpRunner::new();
    let count = dims.iter().product::<i64>();
    let pixels: Vec<u8> = (0..count).map(|i| (i * 5 % 250) as u8).collect();
    let image = crate::testing::t(dims, &pixels);
    let mut outputs = runner
        .run(op, &[image], ff_op::Attrs::new())
        .expect("an image is encoded");
    outputs.remove(0)
}

crate::op_cases! {
    bitmap: family(&["DecodeBmp", "DecodeImage"], &[DataType::UINT8], |op, _| {
        let case = Case::op(op).input(bmp_file());
        case.gives(t(&[2, 2, 3], &[9u8, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4]))
    });
    bitmap_cut: Case::op("DecodeBmp").input(string(&bmp_file().strings().expect("a string")[0].as_bytes()[..40])).fails(Code::InvalidArgument);
    portable: family(&["DecodePng", "DecodeImage"], &[DataType::UINT8, DataType::UINT16], |op, dtype| {
        Case::op(op).input(made("EncodePng", &[4, 5, 3])).attr("dtype", dtype)
    });
    portable_channels: family(&["DecodePng"], &[DataType::UINT8], |op, _| Case::op(op).input(made("EncodePng", &[4, 5, 3])).attr("channels", 1i64));
    portable_more_channels: Case::op("DecodePng").input(made("EncodePng", &[4, 5, 1])).attr("channels", 4i64);
    portable_alpha: Case::op("DecodePng").input(made("EncodePng", &[4, 5, 4])).attr("channels", 3i64);
    portable_as_floats: Case::op("DecodeImage").input(made("EncodePng", &[4, 5, 2])).attr("dtype", DataType::FLOAT);
    portable_as_frames: Case::op("DecodeGif").input(made("EncodePng", &[4, 5, 3]));
    portable_cut: Case::op("DecodePng").input(string(&made("EncodePng", &[4, 5, 3]).strings().expect("a string")[0].as_bytes()[..30])).fails(Code::InvalidArgument);
    photo: family(&["DecodeJpeg", "DecodeImage"], &[DataType::UINT8], |op, _| Case::op(op).input(made("EncodeJpeg", &[16, 16, 1])));
    photo_gray: Case::op("DecodeJpeg").input(made("EncodeJpeg", &[16, 24, 1])).attr("channels", 3i64);
    photo_part: Case::op("DecodeAndCropJpeg").inputs([made("EncodeJpeg", &[16, 24, 1]), vector(&[3, 5, 7, 9])]);
    photo_outside: Case::op("DecodeAndCropJpeg").inputs([made("EncodeJpeg", &[16, 24, 1]), vector(&[13, 5, 7, 9])]).fails(Code::InvalidArgument);
    photo_extents: family(&["ExtractJpegShape"], &[DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).input(made("EncodeJpeg", &[16, 24, 3])).attr("output_type", dtype)
    });
    photo_no_extents: Case::op("ExtractJpegShape").input(string(b"\xff\xd8\xff")).fails(Code::InvalidArgument);
    unknown: family(&["DecodeJpeg", "DecodeImage", "DecodeGif"], &[DataType::UINT8], |op, _| {
        Case::op(op).input(string(b"something else")).fails(Code::InvalidArgument)
    });
    unknown_web: Case::op("DecodeWebP").input(string(b"something else")).fails(Code::InvalidArgument);
    wrong_op: Case::op("DecodePng").input(bmp_file()).fails(Code::InvalidArgument);
    two_channels: Case::op("DecodePng").input(made("EncodePng", &[4, 5, 3])).attr("channels", 2i64).fails(Code::InvalidArgument);
}
