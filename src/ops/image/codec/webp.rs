//! WebP, read by the `image-webp` crate.

use super::{Picture, Samples, check_extents};
use crate::wide::zeros;
use ff_tensor::{Result, Status, status};
use image_webp::WebPDecoder;
use std::io::Cursor;

fn invalid(error: impl std::fmt::Display) -> Status {
    status!(InvalidArgument, "Invalid WebP data: {error}")
}

/// The image, or all frames of an animation; the number of channels is the file's.
pub fn decode(bytes: &[u8]) -> Result<Picture> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(invalid)?;
    decoder.set_memory_limit(1 << 30);
    let (width, height) = decoder.dimensions();
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let frames = if decoder.is_animated() {
        decoder.num_frames().max(1)
    } else {
        1
    };
    check_extents(u64::from(width), u64::from(height) * u64::from(frames), channels)?;
    let size = width as usize * height as usize * channels as usize;
    let mut samples: Vec<u8> = zeros(size * frames as usize)?;
    if decoder.is_animated() {
        for frame in samples.chunks_exact_mut(size) {
            decoder.read_frame(frame).map_err(invalid)?;
        }
    } else {
        decoder.read_image(&mut samples).map_err(invalid)?;
    }
    Ok(Picture {
        frames: frames as usize,
        height: height as usize,
        width: width as usize,
        channels: channels as usize,
        samples: Samples::Bytes(samples),
    })
}
