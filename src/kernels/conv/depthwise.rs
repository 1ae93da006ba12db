//! Convolutions in which every output channel sees one input channel: vectors run along the channels.

use super::{Axis, Convolution};
use crate::cpu::{self, Vectorized};
use crate::gemm::{Element, Epilogue};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// Channels of a block, whose sums stay in registers.
const CHANNELS: usize = 32;
/// Output pixels of a block that share the loads of the filter.
const PIXELS: usize = 4;

/// As [`super::conv`], for one input channel per group. The filter is `[taps.., 1, out]`, which has the layout of
/// `[taps.., in, multiplier]`.
pub fn depthwise<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: &Epilogue<'_, T>,
) {
    shape.check(input, output);
    assert!(shape.group_in() == 1 && filter.len() >= shape.filter_len());
    let [a0, a1, a2] = &shape.axes;
    let row = a2.output * shape.out_channels;
    if shape.output_len() == 0 {
        return;
    }
    let output = SharedMut::new(output);
    let cost = (row * shape.taps()) as f64 * 0.1;
    pool.parallel_for(shape.batch * a0.output * a1.output, cost, |lines| {
        for line in lines {
            // SAFETY: lines are disjoint.
            let out = unsafe { output.range(line * row..(line + 1) * row) };
            cpu::dispatch_wide(Line {
                shape,
                input,
                filter,
                line,
                out: &mut *out,
            });
            finish(epilogue, line * a2.output, shape.out_channels, out);
        }
    });
}

/// Bias, activation and callback for the pixels of a line.
fn finish<T: Element>(epilogue: &Epilogue<'_, T>, first_pixel: usize, channels: usize, out: &mut [T]) {
    for (pixel, x) in out.chunks_exact_mut(channels).enumerate() {
        if epilogue.bias.is_some() || epilogue.activation != crate::gemm::Activation::None {
            epilogue.apply_row(x);
        }
        if let Some(row) = epilogue.row {
            row(first_pixel + pixel, 0, x);
        }
    }
}

/// One line of output pixels.
struct Line<'a, T> {
    shape: &'a Convolution,
    input: &'a [T],
    filter: &'a [T],
    line: usize,
    out: &'a mut [T],
}

impl<T: Element> Vectorized for Line<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Line {
            shape,
            input,
            filter,
            line,
            out,
        } = self;
        let a2 = &shape.axes[2];
        let (inside, outside) = inner_pixels(a2);
        if shape.group_out() == 1 {
            let mut x = inside;
            while x + PIXELS <= outside {
                pixels::<T, PIXELS>(shape, input, filter, line, x, out);
                x += PIXELS;
            }
            (0..inside)
                .chain(x..a2.output)
                .for_each(|x| pixels::<T, 1>(shape, input, filter, line, x, out));
        } else {
            (0..a2.output).for_each(|x| multiplied(shape, input, filter, line, x, out));
        }
    }
}

/// The output pixels, as a range, whose windows lie inside of a line.
#[inline(always)]
fn inner_pixels(axis: &Axis) -> (usize, usize) {
    if axis.input_dilation != 1 {
        return (0, 0);
    }
    let complete = |x: &usize| axis.source(*x, 0).is_some() && axis.source(*x, axis.window - 1).is_some();
    let first = (0..axis.output).find(complete).unwrap_or(axis.output);
    let last = (first..axis.output).rev().find(complete).map_or(first, |x| x + 1);
    (first, last)
}

/// The first input element of each window row under `line`: `(index of the filter row, offset of the input line)`.
#[inline(always)]
fn window_rows(shape: &Convolution, line: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let [a0, a1, a2] = &shape.axes;
    let (rest, y) = (line / a1.output, line % a1.output);
    let (image, z) = (rest / a0.output, rest % a0.output);
    (0..a0.window * a1.window).filter_map(move |row| {
        let (wz, wy) = (row / a1.window, row % a1.window);
        let (z, y) = (a0.source(z, wz)?, a1.source(y, wy)?);
        Some((row, ((image * a0.input + z) * a1.input + y) * a2.input))
    })
}

/// `P` neighbouring pixels; all or none of them have an input element under a window position.
#[inline(always)]
fn pixels<T: Element, const P: usize>(
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    line: usize,
    x: usize,
    out: &mut [T],
) {
    let channels = shape.out_channels;
    let a2 = &shape.axes[2];
    let mut first = 0;
    while first < channels {
        // The last block overlaps its neighbour: the same sums, computed twice.
        let whole = channels >= CHANNELS;
        let at = if whole {
            first.min(channels - CHANNELS)
        } else {
            first
        };
        let mut sums = [[T::default(); CHANNELS]; P];
        let width = if whole { CHANNELS } else { channels };
        for (row, line) in window_rows(shape, line) {
            for wx in 0..a2.window {
                let Some(source) = a2.source(x, wx) else { continue };
                let taps = &filter[(row * a2.window + wx) * channels + at..][..width];
                for (p, sum) in sums.iter_mut().enumerate() {
                    let from = (line + source + p * a2.stride) * channels + at;
                    let from = &input[from..from + width];
                    match (from.first_chunk::<CHANNELS>(), taps.first_chunk::<CHANNELS>()) {
                        (Some(from), Some(taps)) => {
                            for c in 0..CHANNELS {
                                sum[c] = from[c].fused(taps[c], sum[c]);
                            }
                        }
                        _ => {
                            for (sum, (from, &tap)) in sum.iter_mut().zip(from.iter().zip(taps)) {
                                *sum = from.fused(tap, *sum);
                            }
                        }
                    }
                }
            }
        }
        for (p, sum) in sums.iter().enumerate() {
            out[(x + p) * channels + at..][..width].copy_from_slice(&sum[..width]);
        }
        first += width;
    }
}

/// One pixel with several output channels per input channel.
#[inline(always)]
fn multiplied<T: Element>(
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    line: usize,
    x: usize,
    out: &mut [T],
) {
    let (channels, multiplier) = (shape.out_channels, shape.group_out());
    let a2 = &shape.axes[2];
    let out = &mut out[x * channels..][..channels];
    out.fill(T::default());
    for (row, line) in window_rows(shape, line) {
        for wx in 0..a2.window {
            let Some(source) = a2.source(x, wx) else { continue };
            let from = &input[(line + source) * shape.in_channels..][..shape.in_channels];
            let taps = &filter[(row * a2.window + wx) * channels..][..channels];
            let groups = out
                .chunks_exact_mut(multiplier)
                .zip(taps.chunks_exact(multiplier));
            for (&from, (out, taps)) in from.iter().zip(groups) {
                for (out, &tap) in out.iter_mut().zip(taps) {
                    *out = from.fused(tap, *out);
                }
            }
        }
    }
}
