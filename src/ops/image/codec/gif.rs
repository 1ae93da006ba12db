//! GIF, read by the `gif` crate: each frame is drawn over the one before.

use super::{Picture, Samples, check_extents};
use crate::wide::zeros;
use ff_tensor::{Result, Status, ensure, status};
use gif::{ColorOutput, DecodeOptions, MemoryLimit};

fn invalid(error: impl std::fmt::Display) -> Status {
    status!(InvalidArgument, "Invalid GIF data (size unknown), {error}")
}

/// All frames in colours, or only the first.
pub fn decode(bytes: &[u8], all: bool) -> Result<Picture> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Unlimited);
    let mut decoder = options.read_info(bytes).map_err(invalid)?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    check_extents(width as u64, height as u64, 3)?;
    let global: Vec<u8> = decoder.global_palette().unwrap_or(&[]).to_vec();
    let size = width * height * 3;
    let mut samples: Vec<u8> = Vec::new();
    let mut frames = 0;
    loop {
        let frame = match decoder.read_next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            // What was read before the damage counts.
            Err(_) if frames > 0 => break,
            Err(error) => return Err(invalid(error)),
        };
        check_extents(width as u64, height as u64 * (frames as u64 + 1), 3)?;
        let start = samples.len();
        let blank: Vec<u8> = zeros(size)?;
        samples.extend_from_slice(&blank);
        if frames > 0 {
            samples.copy_within(start - size..start, start);
        }
        let palette = frame.palette.as_deref().unwrap_or(&global);
        let (left, top) = (usize::from(frame.left), usize::from(frame.top));
        for (at, &index) in frame.buffer.iter().enumerate() {
            let frame_width = usize::from(frame.width).max(1);
            let (y, x) = (top + at / frame_width, left + at % frame_width);
            if y >= height || x >= width || frame.transparent == Some(index) {
                continue;
            }
            if let Some(color) = palette.get(usize::from(index) * 3..usize::from(index) * 3 + 3) {
                samples[start + (y * width + x) * 3..][..3].copy_from_slice(color);
            }
        }
        frames += 1;
        if !all {
            break;
        }
    }
    ensure!(
        frames > 0,
        InvalidArgument,
        "Invalid GIF data: gif file does not contain any image"
    );
    Ok(Picture {
        frames,
        height,
        width,
        channels: 3,
        samples: Samples::Bytes(samples),
    })
}

/// The number of frames.
pub fn frames(bytes: &[u8]) -> Result<usize> {
    let mut options = DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(bytes).map_err(invalid)?;
    let mut count = 0;
    while let Ok(Some(_)) = decoder.next_frame_info() {
        count += 1;
    }
    Ok(count)
}
