//! Image formats: from the bytes of a file to pixels and back.
//!
//! Errors are INVALID_ARGUMENT; no input makes a decoder panic or allocate without bound.

mod bmp;
mod decode;
mod encode;
mod gif;
mod jpeg;
mod png;
mod webp;

use crate::wide::zeros;
use ff_op::Op;
use ff_tensor::{Result, ensure};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[decode::OPS, encode::OPS];

/// A PNG file of bytes, in an image of these rows, columns and channels.
pub fn png_of(bytes: &[u8], extents: (u32, u32, usize)) -> Result<Vec<u8>> {
    png::encode(bytes, extents, false, -1)
}

/// Most pixels of an image that is decoded.
const MOST_PIXELS: u64 = 1 << 29;

/// Samples of 8 or of 16 bits.
enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// Frames of one size, row by row, channels together.
struct Picture {
    frames: usize,
    height: usize,
    width: usize,
    channels: usize,
    samples: Samples,
}

/// Checks the extents of an image that a file announces.
fn check_extents(width: u64, height: u64, channels: u64) -> Result<()> {
    let pixels = width.checked_mul(height).and_then(|n| n.checked_mul(channels));
    ensure!(
        width > 0 && height > 0 && pixels.is_some_and(|pixels| pixels < MOST_PIXELS),
        InvalidArgument,
        "image too large or empty: width {width}, height {height}, channels {channels}"
    );
    Ok(())
}

/// A sample of either depth.
trait Sample: Copy + Default {
    const OPAQUE: Self;
    fn wide(self) -> u32;
    fn narrow(value: u32) -> Self;
}

impl Sample for u8 {
    const OPAQUE: u8 = u8::MAX;
    fn wide(self) -> u32 {
        u32::from(self)
    }
    fn narrow(value: u32) -> u8 {
        value as u8
    }
}

impl Sample for u16 {
    const OPAQUE: u16 = u16::MAX;
    fn wide(self) -> u32 {
        u32::from(self)
    }
    fn narrow(value: u32) -> u16 {
        value as u16
    }
}

/// The gray of a colour, in 15-bit fixed-point steps as libpng takes them.
fn gray<T: Sample>(color: &[T]) -> T {
    let [r, g, b] = [color[0].wide(), color[1].wide(), color[2].wide()];
    if r == g && g == b {
        return color[0];
    }
    const RED: u32 = (0.299 * 32768.0 + 0.5) as u32;
    const GREEN: u32 = (0.587 * 32768.0 + 0.5) as u32;
    T::narrow((RED * r + GREEN * g + (32768 - RED - GREEN) * b) >> 15)
}

/// Samples with another number of channels: gray is repeated, alpha is opaque where there is none.
fn with_channels<T: Sample>(samples: &[T], from: usize, to: usize) -> Result<Vec<T>> {
    let mut result = zeros(samples.len() / from * to)?;
    for (out, pixel) in result.chunks_exact_mut(to).zip(samples.chunks_exact(from)) {
        match (from >= 3, to >= 3) {
            (true, true) => out[..3].copy_from_slice(&pixel[..3]),
            (true, false) => out[0] = gray(pixel),
            (false, true) => out[..3].fill(pixel[0]),
            (false, false) => out[0] = pixel[0],
        }
        if to.is_multiple_of(2) {
            out[to - 1] = if from.is_multiple_of(2) {
                pixel[from - 1]
            } else {
                T::OPAQUE
            };
        }
    }
    Ok(result)
}

impl Picture {
    /// With another number of channels; 0 keeps it.
    fn with_channels(mut self, channels: usize) -> Result<Picture> {
        if channels == 0 || channels == self.channels {
            return Ok(self);
        }
        self.samples = match &self.samples {
            Samples::Bytes(bytes) => Samples::Bytes(with_channels(bytes, self.channels, channels)?),
            Samples::Words(words) => Samples::Words(with_channels(words, self.channels, channels)?),
        };
        self.channels = channels;
        Ok(self)
    }
}
