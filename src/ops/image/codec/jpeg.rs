//! JPEG, read by `jpeg-decoder` and written by `jpeg-encoder`.

use super::{Picture, Samples, check_extents};
use crate::wide::zeros;
use ff_tensor::{Result, Status, bail, ensure, status};
use jpeg_decoder::{ColorTransform, Decoder, PixelFormat};

fn invalid(error: impl std::fmt::Debug) -> Status {
    status!(
        InvalidArgument,
        "jpeg::Uncompress failed. Invalid JPEG data or crop window. ({error:?})"
    )
}

/// Height, width and components, from the first frame header.
pub fn extents(bytes: &[u8]) -> Result<(usize, usize, usize)> {
    let mut at = 2;
    while let Some(&[mark, kind, high, low]) = bytes.get(at..at + 4) {
        if mark != 0xff {
            break;
        }
        if kind == 0xff || kind == 0x01 || (0xd0..=0xd8).contains(&kind) {
            // Fill bytes, and marks without a segment.
            at += if kind == 0xff { 1 } else { 2 };
            continue;
        }
        let is_frame = (0xc0..=0xcf).contains(&kind) && !matches!(kind, 0xc4 | 0xc8 | 0xcc);
        if is_frame && let Some(&[_, h1, h0, w1, w0, components]) = bytes.get(at + 4..at + 10) {
            let (height, width) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([w1, w0]));
            return Ok((height.into(), width.into(), components.into()));
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
    bail!(InvalidArgument, "Invalid JPEG data, size {}", bytes.len())
}

/// The image with 1 or 3 channels; 0 takes as many as the file has, at most 3.
pub fn decode(bytes: &[u8], channels: usize) -> Result<Picture> {
    let (height, width, components) = extents(bytes)?;
    let channels = match channels {
        0 if components == 1 => 1,
        0 => 3,
        given => given,
    };
    check_extents(width as u64, height as u64, components.max(channels) as u64)?;
    let mut decoder = Decoder::new(bytes);
    if channels == 1 && components == 3 {
        // The first component is the brightness.
        decoder.set_color_transform(ColorTransform::None);
    }
    let decoded = decoder.decode().map_err(invalid)?;
    let format = decoder
        .info()
        .map(|info| info.pixel_format)
        .ok_or_else(|| invalid("no frame"))?;
    let pick = |size: usize| decoded.chunks_exact(size);
    let samples: Vec<u8> = match (format, channels) {
        (PixelFormat::L8, 1) | (PixelFormat::RGB24, 3) => decoded,
        (PixelFormat::L8, _) => decoded.iter().flat_map(|&x| [x; 3]).collect(),
        (PixelFormat::L16, _) => pick(2).flat_map(|pair| vec![pair[0]; channels]).collect(),
        (PixelFormat::RGB24, _) => pick(3).map(|pixel| pixel[0]).collect(),
        (PixelFormat::CMYK32, _) => {
            let part = |x: u8, k: u8| (u16::from(x) * u16::from(k) / 255) as u8;
            let colors: Vec<u8> = pick(4)
                .flat_map(|p| [part(p[0], p[3]), part(p[1], p[3]), part(p[2], p[3])])
                .collect();
            match channels {
                1 => super::with_channels(&colors, 3, 1)?,
                _ => colors,
            }
        }
    };
    ensure!(
        samples.len() == height * width * channels,
        InvalidArgument,
        "jpeg::Uncompress failed. Invalid JPEG data or crop window."
    );
    Ok(Picture {
        frames: 1,
        height,
        width,
        channels,
        samples: Samples::Bytes(samples),
    })
}

/// An image of a fraction of the size: each pixel is the mean of `ratio` by `ratio` pixels.
pub fn reduced(picture: Picture, ratio: usize) -> Result<Picture> {
    let Samples::Bytes(samples) = &picture.samples else {
        return Ok(picture);
    };
    if ratio == 1 {
        return Ok(picture);
    }
    let (height, width) = (picture.height.div_ceil(ratio), picture.width.div_ceil(ratio));
    let channels = picture.channels;
    let mut result: Vec<u8> = zeros(height * width * channels)?;
    for (pixel, out) in result.chunks_exact_mut(channels).enumerate() {
        let (y, x) = (pixel / width * ratio, pixel % width * ratio);
        let (rows, columns) = (
            y..(y + ratio).min(picture.height),
            x..(x + ratio).min(picture.width),
        );
        let count = (rows.len() * columns.len()) as u32;
        for (c, out) in out.iter_mut().enumerate() {
            let mut sum = 0;
            for row in rows.clone() {
                for column in columns.clone() {
                    sum += u32::from(samples[(row * picture.width + column) * channels + c]);
                }
            }
            *out = ((sum + count / 2) / count) as u8;
        }
    }
    Ok(Picture {
        height,
        width,
        samples: Samples::Bytes(result),
        ..picture
    })
}

/// A part of an image. INVALID_ARGUMENT when it reaches outside.
pub fn cropped(picture: Picture, [y, x, height, width]: [i64; 4]) -> Result<Picture> {
    let inside = |start: i64, size: i64, extent: usize| {
        start >= 0 && size > 0 && start.checked_add(size).is_some_and(|end| end <= extent as i64)
    };
    ensure!(
        inside(y, height, picture.height) && inside(x, width, picture.width),
        InvalidArgument,
        "Invalid JPEG data or crop window: y={y}, x={x}, height={height}, width={width}, image {}x{}",
        picture.height,
        picture.width
    );
    let Samples::Bytes(samples) = &picture.samples else {
        return Ok(picture);
    };
    let [y, x, height, width] = [y, x, height, width].map(|at| at as usize);
    let row = width * picture.channels;
    let mut result: Vec<u8> = zeros(height * row)?;
    for (line, out) in result.chunks_exact_mut(row).enumerate() {
        let from = ((y + line) * picture.width + x) * picture.channels;
        out.copy_from_slice(&samples[from..from + row]);
    }
    Ok(Picture {
        height,
        width,
        samples: Samples::Bytes(result),
        ..picture
    })
}

/// How a file is written.
pub struct Writing {
    /// From 0 to 100.
    pub quality: u8,
    /// In several scans, coarse ones first.
    pub progressive: bool,
    /// With tables of its own.
    pub optimize: bool,
    /// Colours at half the resolution.
    pub downsample: bool,
    /// Unit (0 none, 1 per inch, 2 per centimetre) and densities.
    pub density: (u8, u16, u16),
    /// Metadata, empty for none.
    pub xmp: Vec<u8>,
}

/// A file of an image with 1 or 3 channels.
pub fn encode(
    samples: &[u8],
    (height, width, channels): (u16, u16, usize),
    how: &Writing,
) -> Result<Vec<u8>> {
    use jpeg_encoder::{ColorType, Encoder, PixelDensity, PixelDensityUnit, SamplingFactor};
    let failed = |error| status!(InvalidArgument, "JPEG encoding failed: {error:?}");
    let mut file = Vec::new();
    // The coarsest tables are those of quality 1.
    let mut encoder = Encoder::new(&mut file, how.quality.max(1));
    encoder.set_progressive(how.progressive);
    encoder.set_optimized_huffman_tables(how.optimize);
    encoder.set_sampling_factor(if how.downsample && channels == 3 {
        SamplingFactor::F_2_2
    } else {
        SamplingFactor::F_1_1
    });
    encoder.set_density(PixelDensity {
        density: (how.density.1, how.density.2),
        unit: match how.density.0 {
            1 => PixelDensityUnit::Inches,
            2 => PixelDensityUnit::Centimeters,
            _ => PixelDensityUnit::PixelAspectRatio,
        },
    });
    if !how.xmp.is_empty() {
        let mut segment = b"http://ns.adobe.com/xap/1.0/\0".to_vec();
        segment.extend_from_slice(&how.xmp);
        encoder.add_app_segment(1, segment).map_err(failed)?;
    }
    let color = if channels == 1 {
        ColorType::Luma
    } else {
        ColorType::Rgb
    };
    encoder.encode(samples, width, height, color).map_err(failed)?;
    Ok(file)
}
