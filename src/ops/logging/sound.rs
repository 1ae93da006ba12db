//! Summaries of sounds: each as a WAV file in a serialized `Summary`.

use super::summary::{give, tag};
use crate::parsing::wav::file_of;
use crate::wide::single;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_proto::summary::value::Value as Content;
use ff_proto::summary::{Audio, Value};
use ff_tensor::{Result, Tensor, ensure};

const SUMMARY: Op = Op {
    name: "AudioSummaryV2",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let rate = context.input(2)?;
        ensure!(
            rate.num_elements() == 1,
            InvalidArgument,
            "sample_rate must be rank-0 or contain a single value"
        );
        let rate = single(rate)? as f32;
        sounds(context, rate)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SUMMARY,
    &Op {
        name: "AudioSummary",
        kernels: &[Kernel::native(|context| {
            let rate = context.attrs().float("sample_rate")?;
            sounds(context, rate)
        })],
        ..SUMMARY
    },
];

fn sounds(context: &mut KernelContext, rate: f32) -> Result<()> {
    let most = context.attrs().int("max_outputs")?;
    let values = values_of(&tag(context, 0)?, context.input(1)?, most, rate)?;
    give(context, values)
}

/// Of a batch of sounds, `[batch, frames]` or `[batch, frames, channels]`, the first few.
pub(super) fn values_of(tag: &str, sounds: &Tensor, most: i64, rate: f32) -> Result<Vec<Value>> {
    let (batch, frames, channels) = match *sounds.dims() {
        [batch, frames] => (batch, frames, 1),
        [batch, frames, channels] => (batch, frames, channels),
        _ => ff_tensor::bail!(
            InvalidArgument,
            "Tensor must be 3-D or 2-D, got: {}",
            sounds.shape()
        ),
    };
    ensure!(rate > 0.0, InvalidArgument, "sample_rate must be > 0");
    let size = (frames * channels) as usize;
    let samples = sounds.as_slice::<f32>()?;
    let mut values = Vec::new();
    for number in 0..batch.min(most).max(0) as usize {
        ensure!(size > 0 || channels > 0, InvalidArgument, "audio is null");
        // A rate below a half is one.
        let whole = rate.round_ties_even().max(1.0) as i64;
        let audio = Audio {
            sample_rate: rate,
            num_channels: channels,
            length_frames: frames,
            encoded_audio_string: file_of(whole, channels, &samples[number * size..][..size])?.into(),
            content_type: "audio/wav".to_string(),
        };
        values.push(Value {
            tag: match most {
                1 => format!("{tag}/audio"),
                _ => format!("{tag}/audio/{number}"),
            },
            value: Some(Content::Audio(audio)),
            ..Value::default()
        });
    }
    Ok(values)
}

#[cfg(test)]
fn two_sounds() -> ff_tensor::Tensor {
    crate::testing::t(&[2, 4, 1], &[0.0f32, 0.5, -0.5, 1.5, 0.1, 0.2, 0.3, -2.0])
}

crate::op_cases! {
    several: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), two_sounds(), scalar(16000.5f32)]);
    one: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), t(&[2, 2], &[0.0f32, f32::INFINITY, 0.0, f32::NAN]), scalar(16000.7f32)]).attr("max_outputs", 1i64);
    none: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), t::<f32>(&[0, 4, 1], &[]), scalar(16000.0f32)]);
    silent: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), t::<f32>(&[1, 0, 2], &[]), vector(&[0.3f32])]);
    old: Case::op("AudioSummary").inputs([strings(&[], &["t"]), two_sounds()]).attr("sample_rate", 8000.0f32);
    no_channels: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), t::<f32>(&[1, 2, 0], &[]), scalar(1.0f32)]).fails(Code::InvalidArgument);
    still: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), two_sounds(), scalar(0.0f32)]).fails(Code::InvalidArgument);
    too_fast: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), two_sounds(), scalar(1e10f32)]).fails(Code::InvalidArgument);
    two_rates: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), two_sounds(), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    two_tags: Case::op("AudioSummaryV2").inputs([strings(&[1], &["t"]), two_sounds(), scalar(1.0f32)]).fails(Code::InvalidArgument);
    flat: Case::op("AudioSummaryV2").inputs([strings(&[], &["t"]), vector(&[1.0f32]), scalar(1.0f32)]).fails(Code::InvalidArgument);
}
