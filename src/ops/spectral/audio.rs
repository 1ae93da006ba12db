//! Front ends of speech models: spectrograms of overlapping frames, and their mel-frequency cepstral coefficients.

use ff_hlo::{Builder, FftKind, GatherDims, Op as HloOp, Opcode, PadConfig, PadDimension};
use ff_op::{Gradient, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "AudioSpectrogram",
        shape: spectrogram_shape,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(lower_spectrogram),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "Mfcc",
        shape: |context| {
            let input = context.input_with_rank(0, 3)?;
            context.input_with_rank(1, 0)?;
            let count = context.attrs().int("dct_coefficient_count")?;
            context.set_output(0, PartialShape::new(&[input.dim(0), input.dim(1), count]));
            Ok(())
        },
        kernels: &[Kernel::native(mfcc)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// The length of a transform of frames of this size.
fn transform_length(window: i64) -> i64 {
    (window.max(1) as u64).next_power_of_two() as i64
}

fn spectrogram_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank(0, 2)?;
    let (window, stride) = (
        context.attrs().int("window_size")?,
        context.attrs().int("stride")?,
    );
    ensure!(
        (2..1 << 30).contains(&window) && stride >= 1,
        InvalidArgument,
        "Spectrogram initialization failed for window size {window} and stride {stride}"
    );
    let frames = match input.dim(0) {
        length if length < 0 => dim::UNKNOWN,
        length if length < window => 0,
        length => 1 + (length - window) / stride,
    };
    let bins = 1 + transform_length(window) / 2;
    context.set_output(0, PartialShape::new(&[input.dim(1), frames, bins]));
    Ok(())
}

/// A Hann window of this length, as doubles.
fn hann(builder: &mut Builder, length: i64) -> Result<HloOp> {
    let turn = std::f64::consts::TAU / length as f64;
    let value = |i| 0.5 - 0.5 * (turn * i as f64).cos();
    let values = crate::wide::collected((0..length as usize).map(value))?;
    builder.constant_vector(&values)
}

/// Frames by steps of `stride`, for each channel.
fn frames(builder: &mut Builder, channels: HloOp, count: i64, window: i64, stride: i64) -> Result<HloOp> {
    let start = |frame| (frame as i64 * stride) as i32;
    let starts = crate::wide::collected((0..count as usize).map(start))?;
    let starts = builder.constant_vector(&starts)?;
    let rows = builder.dims(channels)[0];
    let dims = GatherDims {
        offset_dims: [0i64, 2].into_iter().collect(),
        start_index_map: [1i64].into_iter().collect(),
        index_vector_dim: 1,
        slice_sizes: [rows, window].into_iter().collect(),
        ..GatherDims::default()
    };
    builder.gather(channels, starts, dims)
}

fn lower_spectrogram(context: &mut LowerContext) -> Result<()> {
    let attrs = context.attrs();
    let (window, stride) = (attrs.int("window_size")?, attrs.int("stride")?);
    let squared = attrs.bool("magnitude_squared")?;
    let (dims, input) = (context.input_dims(0)?, context.input(0)?);
    let builder = &mut *context.builder;
    let count = if dims[0] < window {
        0
    } else {
        1 + (dims[0] - window) / stride
    };
    let length = transform_length(window);
    if count == 0 || dims[1] == 0 {
        let zeros = builder.full(DataType::FLOAT, &[dims[1], count, 1 + length / 2], 0.0)?;
        context.set_output(0, zeros);
        return Ok(());
    }
    let wide = builder.convert(input, DataType::DOUBLE)?;
    let channels = builder.transpose(wide, &[1, 0])?;
    let frames = frames(builder, channels, count, window, stride)?;
    let weights = hann(builder, window)?;
    let frames = builder.binary_broadcast(Opcode::Multiply, frames, weights)?;
    let zero = builder.constant_scalar(0.0f64)?;
    let mut config = PadConfig::from_elem(PadDimension::default(), 3);
    config[2].high = length - window;
    let frames = builder.pad(frames, zero, config)?;
    let spectrum = builder.fft(frames, FftKind::Rfft, &[length])?;
    let (real, imaginary) = (
        builder.unary(Opcode::Real, spectrum)?,
        builder.unary(Opcode::Imag, spectrum)?,
    );
    let (real, imaginary) = (builder.square(real)?, builder.square(imaginary)?);
    let mut power = builder.add(real, imaginary)?;
    if !squared {
        power = builder.unary(Opcode::Sqrt, power)?;
    }
    let output = builder.convert(power, DataType::FLOAT)?;
    context.set_output(0, output);
    Ok(())
}

fn mel(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

/// Triangular filters, evenly spaced on the mel scale.
struct Filters {
    /// The bins that count, both ends included.
    bins: std::ops::RangeInclusive<usize>,
    /// For each bin: the filter that falls off there (the next one rises), or none, and its weight.
    falling: Vec<(Option<usize>, f64)>,
    count: usize,
}

impl Filters {
    /// None where the limits make no sense.
    fn new(bins: usize, rate: f64, count: i64, lower: f64, upper: f64) -> Result<Option<Filters>> {
        if count < 1 || rate <= 0.0 || bins < 2 || lower < 0.0 || upper <= lower {
            return Ok(None);
        }
        let count = count as usize;
        let (low, high) = (mel(lower), mel(upper));
        let spacing = (high - low) / (count + 1) as f64;
        let centre = |i| low + spacing * (i + 1) as f64;
        let centres = crate::wide::collected((0..count + 1).map(centre))?;
        let width = 0.5 * rate / (bins - 1) as f64;
        let (start, end) = ((1.5 + lower / width) as usize, (upper / width) as usize);
        let mut falling = crate::wide::reserved(bins)?;
        let mut filter = 0;
        for bin in 0..bins {
            if !(start..=end).contains(&bin) {
                falling.push((None, 0.0));
                continue;
            }
            let here = mel(bin as f64 * width);
            while filter < count && centres[filter] < here {
                filter += 1;
            }
            falling.push(match filter.checked_sub(1) {
                Some(left) => {
                    let weight = (centres[left + 1] - here) / (centres[left + 1] - centres[left]);
                    (Some(left), weight)
                }
                None => (None, (centres[0] - here) / (centres[0] - low)),
            });
        }
        Ok(Some(Filters {
            bins: start..=end,
            falling,
            count,
        }))
    }

    /// The energies of a frame; none where the limits lie beyond the spectrum.
    fn apply(&self, spectrum: &[f32]) -> Result<Vec<f64>> {
        let mut energies = crate::wide::zeros(self.count)?;
        if *self.bins.end() >= spectrum.len() {
            return Ok(Vec::new());
        }
        for bin in self.bins.clone() {
            let value = f64::from(spectrum[bin]).sqrt();
            let (left, weight) = self.falling[bin];
            let falls = value * weight;
            let right = match left {
                Some(left) => {
                    energies[left] += falls;
                    left + 1
                }
                None => 0,
            };
            if right < self.count {
                energies[right] += value - falls;
            }
        }
        Ok(energies)
    }
}

fn mfcc(context: &mut KernelContext) -> Result<()> {
    let (attrs, input) = (context.attrs(), context.input(0)?);
    let rate = context.input(1)?.single::<i32>()?;
    let (filters, count) = (
        attrs.int("filterbank_channel_count")?,
        attrs.int("dct_coefficient_count")?,
    );
    let bins = input.dims()[2] as usize;
    let (lower, upper) = (
        f64::from(attrs.float("lower_frequency_limit")?),
        f64::from(attrs.float("upper_frequency_limit")?),
    );
    let bank = Filters::new(bins, f64::from(rate), filters, lower, upper)?
        .filter(|_| (1..=filters).contains(&count));
    let Some(bank) = bank else {
        ff_tensor::bail!(
            InvalidArgument,
            "Mfcc initialization failed for channel count {bins}, sample rate {rate} and filterbank_channel_count {filters}"
        );
    };
    let (filters, count) = (bank.count, count as usize);
    let scale = (2.0 / filters as f64).sqrt();
    let step = std::f64::consts::PI / filters as f64;
    let mut output = context.allocate_output(0)?;
    let frames = context.input_slice::<f32>(0)?.chunks_exact(bins);
    for (frame, coefficients) in frames.zip(output.as_mut_slice::<f32>()?.chunks_exact_mut(count)) {
        let mut energies = bank.apply(frame)?;
        for energy in &mut energies {
            // A value that is no number stays what it is.
            *energy = if *energy < 1e-12 {
                1e-12f64.ln()
            } else {
                energy.ln()
            };
        }
        for (i, coefficient) in coefficients.iter_mut().enumerate() {
            let cosine = |j: usize| scale * (i as f64 * step * (j as f64 + 0.5)).cos();
            let sum: f64 = energies
                .iter()
                .enumerate()
                .map(|(j, energy)| cosine(j) * energy)
                .sum();
            *coefficient = sum as f32;
        }
    }
    context.set_output(0, output)
}

#[cfg(test)]
fn sound(count: i64, channels: i64) -> ff_tensor::Tensor {
    let values: Vec<f32> = (0..count * channels)
        .map(|i| (i as f32 * 0.9).sin() + 0.1 * i as f32)
        .collect();
    crate::testing::t(&[count, channels], &values)
}

#[cfg(test)]
fn spectrogram(input: ff_tensor::Tensor, window: i64, stride: i64) -> crate::testing::Case {
    let case = crate::testing::Case::op("AudioSpectrogram").input(input);
    case.attr("window_size", window).attr("stride", stride)
}

#[cfg(test)]
fn coefficients(dims: &[i64], rate: i32) -> crate::testing::Case {
    use crate::testing::{Case, scalar, t};
    let count = dims.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|i| 0.1 + (i % 7) as f32).collect();
    Case::op("Mfcc")
        .inputs([t(dims, &values), scalar(rate)])
        .attr("filterbank_channel_count", 5i64)
        .attr("dct_coefficient_count", 3i64)
}

crate::op_cases! {
    frames_of_sound: spectrogram(sound(16, 1), 4, 2);
    stereo: spectrogram(sound(23, 2), 7, 3);
    squares: spectrogram(sound(16, 1), 5, 1).attr("magnitude_squared", true);
    too_short: spectrogram(sound(2, 1), 3, 2);
    silence: spectrogram(t::<f32>(&[8, 0], &[]), 3, 1);
    no_stride: spectrogram(sound(8, 1), 3, 0).fails(Code::InvalidArgument);
    no_window: spectrogram(sound(8, 1), 1, 2).fails(Code::InvalidArgument);
    of_vector: spectrogram(vector(&[1.0f32]), 3, 1).fails(Code::InvalidArgument);
    cepstrum: coefficients(&[2, 3, 9], 16000);
    high: coefficients(&[1, 1, 9], 16000).attr("upper_frequency_limit", 9000f32).gives(t(&[1, 1, 3], &[0.0f32; 3]));
    no_numbers: Case::op("Mfcc").inputs([t(&[1, 1, 5], &[-1.0f32; 5]), scalar(16000)])
        .attr("filterbank_channel_count", 5i64).attr("dct_coefficient_count", 3i64);
    no_frames: coefficients(&[1, 0, 9], 16000);
    no_rate: coefficients(&[1, 1, 9], 0).fails(Code::InvalidArgument);
    one_bin: coefficients(&[1, 1, 1], 16000).fails(Code::InvalidArgument);
    below: coefficients(&[1, 1, 9], 16000).attr("lower_frequency_limit", -1f32).fails(Code::InvalidArgument);
    upside_down: coefficients(&[1, 1, 9], 16000).attr("upper_frequency_limit", 10f32).fails(Code::InvalidArgument);
    many: coefficients(&[1, 1, 9], 16000).attr("dct_coefficient_count", 50i64).fails(Code::InvalidArgument);
    of_matrix: coefficients(&[1, 9], 16000).fails(Code::InvalidArgument);
    rates: Case::op("Mfcc").inputs([t(&[1, 1, 2], &[1.0f32, 2.0]), vector(&[16000])]).fails(Code::InvalidArgument);
}
