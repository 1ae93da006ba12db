//! Convolutions in which every output channel sees one input channel: vectors run along the channels.

use super::{Axis, Convolution};
use crate::cpu::{self, Vectorized};
use crate::gemm::{Element, Epilogue};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use smallvec::SmallVec;

/// Channels of a block, whose sums stay in registers.
const CHANNELS: usize = 16;
/// Output pixels of a block that share the loads of the filter.
const PIXELS: usize = 4;

/// Where a window position's input and filter elements start.
type Taps = SmallVec<[(usize, usize); 25]>;

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
                epilogue,
            });
            if let Some(row) = epilogue.row {
                for (x, out) in out.chunks_exact_mut(shape.out_channels).enumerate() {
                    row(line * a2.output + x, 0, out);
                }
            }
        }
    });
}

/// One line of output pixels.
struct Line<'a, T> {
    shape: &'a Convolution,
    input: &'a [T],
    filter: &'a [T],
    line: usize,
    out: &'a mut [T],
    epilogue: &'a Epilogue<'a, T>,
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
            epilogue,
        } = self;
        let a2 = &shape.axes[2];
        if shape.group_out() != 1 {
            (0..a2.output).for_each(|x| multiplied(shape, input, filter, line, x, out));
            out.chunks_exact_mut(shape.out_channels)
                .for_each(|out| epilogue.apply_row(out));
            return;
        }
        let channels = shape.out_channels;
        let (inside, outside) = inner_pixels(a2);
        let (mut taps, mut x) = (Taps::new(), inside);
        if inside < outside {
            find_taps(shape, line, inside, &mut taps);
        }
        while x + PIXELS <= outside {
            let (shift, step) = ((x - inside) * a2.stride * channels, a2.stride * channels);
            pixels::<T, PIXELS>(
                &taps,
                &input[shift..],
                step,
                filter,
                channels,
                &mut out[x * channels..],
            );
            x += PIXELS;
        }
        for x in (0..inside).chain(x..a2.output) {
            find_taps(shape, line, x, &mut taps);
            pixels::<T, 1>(&taps, input, 0, filter, channels, &mut out[x * channels..]);
        }
        out.chunks_exact_mut(channels)
            .for_each(|out| epilogue.apply_row(out));
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

/// The window positions that have an input element under output pixel `x` of `line`.
fn find_taps(shape: &Convolution, line: usize, x: usize, taps: &mut Taps) {
    taps.clear();
    let (a2, channels) = (&shape.axes[2], shape.out_channels);
    for (row, line) in window_rows(shape, line) {
        for wx in 0..a2.window {
            if let Some(source) = a2.source(x, wx) {
                taps.push(((line + source) * channels, (row * a2.window + wx) * channels));
            }
        }
    }
}

/// `P` neighbouring pixels, whose inputs are `step` apart.
#[inline(always)]
fn pixels<T: Element, const P: usize>(
    taps: &[(usize, usize)],
    input: &[T],
    step: usize,
    filter: &[T],
    channels: usize,
    out: &mut [T],
) {
    if channels < CHANNELS {
        for p in 0..P {
            let out = &mut out[p * channels..][..channels];
            out.fill(T::default());
            for &(from, tap) in taps {
                let (from, tap) = (&input[from + p * step..], &filter[tap..]);
                for (out, (&x, &f)) in out.iter_mut().zip(from.iter().zip(tap)) {
                    *out = x.fused(f, *out);
                }
            }
        }
        return;
    }
    let mut first = 0;
    while first < channels {
        // The last block overlaps its neighbour: the same sums, computed twice.
        let at = first.min(channels - CHANNELS);
        let sums = block::<T, P>(taps, &input[at..], step, &filter[at..]);
        for (p, sums) in sums.iter().enumerate() {
            out[p * channels + at..][..CHANNELS].copy_from_slice(sums);
        }
        first += CHANNELS;
    }
}

/// The sums of one block of channels.
#[inline(always)]
fn block<T: Element, const P: usize>(
    taps: &[(usize, usize)],
    input: &[T],
    step: usize,
    filter: &[T],
) -> [[T; CHANNELS]; P] {
    let mut sums = [[T::default(); CHANNELS]; P];
    for &(from, tap) in taps {
        let Some(weights) = filter[tap..].first_chunk::<CHANNELS>() else {
            continue;
        };
        for (p, sums) in sums.iter_mut().enumerate() {
            let Some(x) = input[from + p * step..].first_chunk::<CHANNELS>() else {
                continue;
            };
            // A plain loop: closures given to the standard library are not compiled for this instruction set.
            for c in 0..CHANNELS {
                sums[c] = x[c].fused(weights[c], sums[c]);
            }
        }
    }
    sums
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
