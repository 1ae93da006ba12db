//! PNG, read and written by the `png` crate.

use super::{Picture, Samples, check_extents};
use crate::wide::zeros;
use ff_tensor::{Result, Status, status};
use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Limits, Transformations};
use std::io::Cursor;

fn invalid(error: impl std::fmt::Display) -> Status {
    status!(InvalidArgument, "Invalid PNG data: {error}")
}

/// The image, with palettes as colours; `deep` asks for 16 bits, else the low bits of deep samples are dropped.
pub fn decode(bytes: &[u8], deep: bool) -> Result<Picture> {
    let limits = Limits { bytes: 1 << 31 };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(invalid)?;
    let (width, height) = (reader.info().width, reader.info().height);
    let (color, depth) = reader.output_color_type();
    let channels = color.samples();
    check_extents(u64::from(width), u64::from(height), channels as u64)?;
    let size = reader.output_buffer_size().ok_or_else(|| invalid("too large"))?;
    let mut data: Vec<u8> = zeros(size)?;
    reader.next_frame(&mut data).map_err(invalid)?;
    let samples = match (depth == BitDepth::Sixteen, deep) {
        (false, false) => Samples::Bytes(data),
        (true, false) => Samples::Bytes(data.chunks_exact(2).map(|pair| pair[0]).collect()),
        (false, true) => Samples::Words(data.iter().map(|&x| u16::from(x) * 257).collect()),
        (true, true) => Samples::Words(
            data.chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect(),
        ),
    };
    Ok(Picture {
        frames: 1,
        height: height as usize,
        width: width as usize,
        channels,
        samples,
    })
}

/// A file of samples in big-endian order.
pub fn encode(
    samples: &[u8],
    (height, width, channels): (u32, u32, usize),
    deep: bool,
    compression: i64,
) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(if deep { BitDepth::Sixteen } else { BitDepth::Eight });
    encoder.set_compression(match compression {
        0 => Compression::NoCompression,
        1..=3 => Compression::Fast,
        7..=9 => Compression::High,
        _ => Compression::Balanced,
    });
    let mut writer = encoder.write_header().map_err(invalid)?;
    writer.write_image_data(samples).map_err(invalid)?;
    writer.finish().map_err(invalid)?;
    Ok(file)
}
