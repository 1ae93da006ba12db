//! BMP: uncompressed images of 8, 24 or 32 bits.

use super::{Picture, Samples, check_extents};
use crate::wide::zeros;
use ff_tensor::{Result, ensure, status};

/// The image. `channels` must be what the file has, or 0.
pub fn decode(bytes: &[u8], channels: usize) -> Result<Picture> {
    let word = |at: usize| {
        let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
        part.map(i32::from_le_bytes).ok_or_else(|| {
            status!(
                InvalidArgument,
                "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, got {} bytes",
                bytes.len()
            )
        })
    };
    let (start, width, height) = (word(10)?, word(18)?, word(22)?);
    let bits = (word(28)? & 0xffff) as usize;
    let flipped = height > 0;
    ensure!(
        start >= 0 && width > 0 && height != 0 && height != i32::MIN,
        InvalidArgument,
        "Invalid bmp header: offset {start}, width {width}, height {height}"
    );
    ensure!(
        matches!(bits, 8 | 24 | 32),
        InvalidArgument,
        "bmp bpp must be 8, 24 or 32, got {bits}"
    );
    let own = bits / 8;
    ensure!(
        channels == 0 || channels == own,
        InvalidArgument,
        "channels attribute {channels} does not match bits per pixel from file {own}"
    );
    let (width, height) = (width as usize, height.unsigned_abs() as usize);
    check_extents(width as u64, height as u64, own as u64)?;
    let row = (width * own).div_ceil(4) * 4;
    let pixels = bytes.get(start as usize..).unwrap_or(&[]);
    ensure!(
        pixels.len() >= row * (height - 1) + width * own,
        InvalidArgument,
        "Incomplete bmp content, requires at least {} bytes, got {}",
        start as usize + row * height,
        bytes.len()
    );
    let mut samples: Vec<u8> = zeros(width * height * own)?;
    for (y, out) in samples.chunks_exact_mut(width * own).enumerate() {
        let line = if flipped { height - 1 - y } else { y };
        let line = &pixels[line * row..][..width * own];
        for (out, pixel) in out.chunks_exact_mut(own).zip(line.chunks_exact(own)) {
            out.copy_from_slice(pixel);
            if own >= 3 {
                out.swap(0, 2);
            }
        }
    }
    Ok(Picture {
        frames: 1,
        height,
        width,
        channels: own,
        samples: Samples::Bytes(samples),
    })
}
