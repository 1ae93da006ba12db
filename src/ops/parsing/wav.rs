//! Sound files: 16-bit WAV.

use crate::wide::single;
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "DecodeWav",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            let extent = |name: &str| -> Result<i64> {
                let wanted = context.attrs().int(name)?;
                ensure!(
                    wanted >= -1 && wanted != 0,
                    InvalidArgument,
                    "{name} must be non-negative, got {wanted}"
                );
                Ok(if wanted > 0 { wanted } else { dim::UNKNOWN })
            };
            let dims = [extent("desired_samples")?, extent("desired_channels")?];
            context.set_output(0, PartialShape::new(&dims));
            context.set_output(1, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(decode)],
        ..Op::PURE
    },
    &Op {
        name: "EncodeWav",
        shape: |context| {
            context.input_with_rank(0, 2)?;
            context.input_with_rank(1, 0)?;
            context.set_output(0, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(encode)],
        ..Op::PURE
    },
];

/// What a file holds.
struct Sound<'a> {
    channels: usize,
    rate: u32,
    /// Samples of 16 bits.
    data: &'a [u8],
}

/// Reads the chunks of a file. INVALID_ARGUMENT for anything but 16-bit numbers.
fn read(bytes: &[u8]) -> Result<Sound<'_>> {
    let short = || status!(InvalidArgument, "Data too short when trying to read a WAV file");
    let part = |at: usize, len: usize| bytes.get(at..at.saturating_add(len)).ok_or_else(short);
    let number = |at: usize| -> Result<u32> {
        let part = part(at, 4)?;
        Ok(u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
    };
    let short_number = |at: usize| -> Result<u16> {
        let part = part(at, 2)?;
        Ok(u16::from_le_bytes([part[0], part[1]]))
    };
    ensure!(
        part(0, 4)? == b"RIFF" && part(8, 4)? == b"WAVE",
        InvalidArgument,
        "Header mismatch: Expected RIFF and WAVE"
    );
    ensure!(
        part(12, 4)? == b"fmt ",
        InvalidArgument,
        "Header mismatch: Expected fmt "
    );
    let format_size = number(16)? as usize;
    ensure!(
        matches!(format_size, 16 | 18),
        InvalidArgument,
        "Bad format chunk size for WAV: Expected 16 or 18, but got{format_size}"
    );
    let (kind, channels, rate, bits) = (
        short_number(20)?,
        short_number(22)?,
        number(24)?,
        short_number(34)?,
    );
    ensure!(
        kind == 1,
        InvalidArgument,
        "Bad audio format for WAV: Expected 1 (PCM), but got{kind}"
    );
    ensure!(
        bits == 16 && channels > 0,
        InvalidArgument,
        "Can only read 16-bit WAV files, but received {bits}"
    );
    let mut at = 20 + format_size;
    while at < bytes.len() {
        let (name, size) = (part(at, 4)?, number(at + 4)? as usize);
        if name == b"data" {
            return Ok(Sound {
                channels: channels.into(),
                rate,
                data: part(at + 8, size)?,
            });
        }
        at = at.saturating_add(8).saturating_add(size);
    }
    Err(short())
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (channels, samples) = (attrs.int("desired_channels")?, attrs.int("desired_samples")?);
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "contents must be scalar, got shape {}",
        input.shape()
    );
    let sound = read(input.strings()?[0].as_bytes())?;
    let present = sound.data.len() / 2 / sound.channels;
    let channels = if channels < 0 {
        sound.channels
    } else {
        channels as usize
    };
    let samples = if samples < 0 { present } else { samples as usize };
    let shape = Shape::new(&[samples as i64, channels as i64])?;
    let rate = Tensor::scalar(sound.rate as i32)?;
    let mut output = Tensor::zeros(ff_tensor::DataType::FLOAT, shape)?;
    for (i, out) in output.as_mut_slice::<f32>()?.iter_mut().enumerate() {
        // Missing channels repeat the last one; missing samples are silent.
        let (sample, channel) = (i / channels, (i % channels).min(sound.channels - 1));
        if sample < present {
            let at = (sample * sound.channels + channel) * 2;
            let value = i16::from_le_bytes([sound.data[at], sound.data[at + 1]]);
            *out = f32::from(value) / 32768.0;
        }
    }
    context.set_output(0, output)?;
    context.set_output(1, rate)
}

fn encode(context: &mut KernelContext) -> Result<()> {
    let audio = context.input(0)?;
    let [_, channels] = *audio.dims() else {
        ff_tensor::bail!(
            InvalidArgument,
            "audio must be 2-dimensional, got shape {}",
            audio.shape()
        );
    };
    let rate = single(context.input(1)?)? as i64;
    let file = file_of(rate, channels, audio.as_slice()?)?;
    let output = Tensor::from_strings(Shape::scalar(), vec![file.as_slice().into()])?;
    context.set_output(0, output)
}

/// A file of 16-bit numbers, of samples from -1 to 1, those of all channels together. INVALID_ARGUMENT for a rate or number of
/// channels that a file cannot state.
pub fn file_of(rate: i64, channels: i64, samples: &[f32]) -> Result<Vec<u8>> {
    ensure!(
        (1..=i64::from(u16::MAX)).contains(&channels),
        InvalidArgument,
        "num_channels must be in the range [1, 65535], got {channels}"
    );
    ensure!(
        rate > 0 && rate <= i64::from(u32::MAX),
        InvalidArgument,
        "sample_rate must be in (0, 2^32), got {rate}"
    );
    // Beyond 32 bits it wraps around.
    let byte_rate = rate.wrapping_mul(channels * 2);
    let size = samples.len() * 2;
    ensure!(
        size <= u32::MAX as usize - 36,
        InvalidArgument,
        "a file holds at most 4 GB, got {size} bytes"
    );
    let mut file = crate::wide::reserved(44 + size)?;
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + size as u32).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes());
    file.extend_from_slice(&(channels as u16).to_le_bytes());
    file.extend_from_slice(&(rate as u32).to_le_bytes());
    file.extend_from_slice(&(byte_rate as u32).to_le_bytes());
    file.extend_from_slice(&(channels as u16).wrapping_mul(2).to_le_bytes());
    file.extend_from_slice(&16u16.to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&(size as u32).to_le_bytes());
    for &x in samples {
        let value = (x * 32768.0).round().clamp(-32768.0, 32767.0) as i16;
        file.extend_from_slice(&value.to_le_bytes());
    }
    Ok(file)
}

#[cfg(test)]
fn file() -> Tensor {
    super::raw::from_hex(
        "524946463000000057415645666d74201000000001000200803e000000fa0000040010006461746100000000",
    )
}

#[cfg(test)]
fn sound() -> Tensor {
    let bytes: Vec<u8> =
        b"RIFF\x30\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x80\x3e\0\0\0\xfa\0\0\x04\0\x10\0data\x0c\0\0\0"
            .iter()
            .copied()
            .chain([0, 0, 1, 0, 255, 255, 0, 128, 255, 127, 0, 64])
            .collect();
    Tensor::from_strings(Shape::scalar(), vec![bytes.as_slice().into()]).expect("elements of a case")
}

crate::op_cases! {
    as_it_is: Case::op("DecodeWav").input(sound());
    one_channel: Case::op("DecodeWav").input(sound()).attr("desired_channels", 1i64).attr("desired_samples", 5i64);
    more_channels: Case::op("DecodeWav").input(sound()).attr("desired_channels", 3i64).attr("desired_samples", 2i64);
    silent: Case::op("DecodeWav").input(file());
    no_sound: Case::op("DecodeWav").input(strings(&[], &["RIFF"])).fails(Code::InvalidArgument);
    written: Case::op("EncodeWav").inputs([t(&[3, 2], &[0.0f32, 0.5, -1.0, 1.0, 2.0, -0.25]), scalar(16000)]);
    fast: Case::op("EncodeWav").inputs([t::<f32>(&[0, 2], &[]), scalar(i32::MAX - 1)]);
    nothing_to_hear: Case::op("EncodeWav").inputs([t::<f32>(&[0, 1], &[]), scalar(2)]);
    no_channels: Case::op("EncodeWav").inputs([t::<f32>(&[3, 0], &[]), scalar(16000)]).fails(Code::InvalidArgument);
    no_rate: Case::op("EncodeWav").inputs([t(&[1, 1], &[0.0f32]), scalar(0)]).fails(Code::InvalidArgument);
}
