//! Reductions over sliding windows, `[batch, spatial.., channels]`: pooling and its gradients.
//!
//! Up to three spatial axes ([`Axis`]); elements outside of the input take no part. Loops run along the channels;
//! a layout with the channels first is `batch * channels` images of one channel.

use crate::conv::Axis;
use crate::cpu::{self, Vectorized};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use std::ops::Range;

/// The extents of a window reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Images.
    pub batch: usize,
    /// Spatial axes, preceded by [`Axis::UNIT`] where fewer than three.
    pub axes: [Axis; 3],
    /// Channels.
    pub channels: usize,
}

impl Windows {
    /// Windows over the given axes, at most three.
    pub fn new(batch: usize, axes: &[Axis], channels: usize) -> Windows {
        assert!(axes.len() <= 3, "more than three spatial axes");
        let mut all = [Axis::UNIT; 3];
        all[3 - axes.len()..].copy_from_slice(axes);
        Windows {
            batch,
            axes: all,
            channels,
        }
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.axes.iter().map(|a| a.input).product::<usize>() * self.channels
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.batch * self.axes.iter().map(|a| a.output).product::<usize>() * self.channels
    }

    fn input_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    fn output_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Calls `visit` with the input pixel, within its image, under each window position of an output pixel, in order.
    #[inline(always)]
    fn visit(&self, pixel: usize, mut visit: impl FnMut(usize)) {
        let [a0, a1, a2] = &self.axes;
        let (rest, x) = (pixel / a2.output, pixel % a2.output);
        let (z, y) = (rest / a1.output, rest % a1.output);
        for wz in 0..a0.window {
            let Some(z) = a0.source(z, wz) else { continue };
            for wy in 0..a1.window {
                let Some(y) = a1.source(y, wy) else { continue };
                for wx in 0..a2.window {
                    let Some(x) = a2.source(x, wx) else { continue };
                    visit((z * a1.input + y) * a2.input + x);
                }
            }
        }
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.window).product()
    }
}

struct Reduce<'a, T, A, O, M, C, F> {
    windows: &'a Windows,
    x: &'a [T],
    out: &'a mut [O],
    pixels: Range<usize>,
    identity: A,
    map: M,
    combine: C,
    finish: F,
}

/// Channels whose accumulators stay in registers or the first cache.
const CHANNELS: usize = 64;

impl<T, A, O, M, C, F> Vectorized for Reduce<'_, T, A, O, M, C, F>
where
    T: Copy,
    A: Copy,
    M: Fn(T) -> A,
    C: Fn(A, A) -> A,
    F: Fn(A, usize) -> O,
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Reduce {
            windows,
            x,
            out,
            pixels,
            identity,
            map,
            combine,
            finish,
        } = self;
        let channels = windows.channels;
        for (pixel, out) in pixels.zip(out.chunks_exact_mut(channels)) {
            let image = pixel / windows.output_pixels() * windows.input_pixels();
            for first in (0..channels).step_by(CHANNELS) {
                let mut sums = [identity; CHANNELS];
                let width = CHANNELS.min(channels - first);
                let mut count = 0;
                windows.visit(pixel % windows.output_pixels(), |source| {
                    let x = &x[(image + source) * channels + first..][..width];
                    for (sum, &v) in sums.iter_mut().zip(x) {
                        *sum = combine(*sum, map(v));
                    }
                    count += 1;
                });
                for (out, &sum) in out[first..first + width].iter_mut().zip(&sums) {
                    *out = finish(sum, count);
                }
            }
        }
    }
}

/// Reduces each window: `finish(combine(.. identity, map(x) ..), number of elements)`.
pub fn reduce_window<T, A, O, M, C, F>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    out: &mut [O],
    identity: A,
    map: M,
    combine: C,
    finish: F,
) where
    T: Copy + Send + Sync,
    A: Copy + Send + Sync,
    O: Send,
    M: Fn(T) -> A + Sync + Copy,
    C: Fn(A, A) -> A + Sync + Copy,
    F: Fn(A, usize) -> O + Sync + Copy,
{
    assert!(x.len() >= windows.input_len() && out.len() >= windows.output_len());
    let (channels, total) = (windows.channels, windows.batch * windows.output_pixels());
    if channels == 0 {
        return;
    }
    let out = SharedMut::new(out);
    let cost = windows.taps() as f64 * (3.0 + channels as f64 * 0.2);
    pool.parallel_for(total, cost, |pixels| {
        // SAFETY: pixels are disjoint.
        let out = unsafe { out.range(pixels.start * channels..pixels.end * channels) };
        cpu::dispatch(Reduce {
            windows,
            x,
            out,
            pixels,
            identity,
            map,
            combine,
            finish,
        });
    });
}

/// The largest of each window; `lowest` where there is none. Not-a-number wins.
pub fn max_pool<T: PartialOrd + Copy + Send + Sync>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    out: &mut [T],
    lowest: T,
) {
    reduce_window(
        pool,
        windows,
        x,
        out,
        lowest,
        |x: T| x,
        crate::reduce::maximum,
        |x: T, _| x,
    );
}

/// What is greater than `init` and all elements of the window before it: not-a-number never is.
pub fn greatest_of_window<T: PartialOrd + Copy + Send + Sync>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    out: &mut [T],
    init: T,
) {
    let greater = |a: T, b: T| if b > a { b } else { a };
    reduce_window(pool, windows, x, out, init, |x: T| x, greater, |x: T, _| x);
}

/// The mean of each window's elements inside of the input.
pub fn average_pool<T: crate::reduce::Accumulate>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    out: &mut [T],
) {
    let finish = |sum: T::Wide, count: usize| T::narrow(T::divide(sum, count));
    reduce_window(pool, windows, x, out, T::ZERO, T::widen, T::add, finish);
}

/// For each output element the input pixel, within its image, of the first largest element of the window; -1 where
/// the window is empty.
pub fn max_pool_positions<T: PartialOrd + Copy + Send + Sync>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    positions: &mut [i64],
) {
    assert!(x.len() >= windows.input_len() && positions.len() >= windows.output_len());
    let channels = windows.channels;
    let positions = SharedMut::new(positions);
    let cost = (windows.taps() * channels) as f64;
    pool.parallel_for(windows.batch * windows.output_pixels(), cost, |pixels| {
        for pixel in pixels {
            let image = pixel / windows.output_pixels() * windows.input_pixels();
            // SAFETY: pixels are disjoint.
            let out = unsafe { positions.range(pixel * channels..(pixel + 1) * channels) };
            out.fill(-1);
            windows.visit(pixel % windows.output_pixels(), |source| {
                for (c, best) in out.iter_mut().enumerate() {
                    let value = x[(image + source) * channels + c];
                    if *best < 0 || value > x[(image + *best as usize) * channels + c] {
                        *best = source as i64;
                    }
                }
            });
        }
    });
}

/// Adds each output element's gradient to the input's where the window's first largest element is.
pub fn max_pool_gradient<T: crate::reduce::Accumulate<Wide = T> + PartialOrd>(
    pool: &ThreadPool,
    windows: &Windows,
    x: &[T],
    incoming: &[T],
    result: &mut [T],
) {
    let channels = windows.channels;
    spread(
        pool,
        windows,
        result,
        T::ZERO,
        |image, pixel, source_image, result| {
            let mut best = [usize::MAX; CHANNELS];
            for first in (0..channels).step_by(CHANNELS) {
                let width = CHANNELS.min(channels - first);
                best[..width].fill(usize::MAX);
                windows.visit(pixel, |source| {
                    for (c, best) in best[..width].iter_mut().enumerate() {
                        let at = |pixel: usize| x[(source_image + pixel) * channels + first + c];
                        if *best == usize::MAX || at(source) > at(*best) {
                            *best = source;
                        }
                    }
                });
                for (c, &best) in best[..width].iter().enumerate() {
                    if best != usize::MAX {
                        let from = incoming[(image * windows.output_pixels() + pixel) * channels + first + c];
                        let to = &mut result[best * channels + first + c];
                        *to = T::add(*to, from);
                    }
                }
            }
        },
    );
}

/// Spreads each output element's gradient evenly over its window's elements.
pub fn average_pool_gradient<T: crate::reduce::Accumulate<Wide = T>>(
    pool: &ThreadPool,
    windows: &Windows,
    incoming: &[T],
    result: &mut [T],
) {
    let channels = windows.channels;
    spread(pool, windows, result, T::ZERO, |image, pixel, _, result| {
        let mut count = 0;
        windows.visit(pixel, |_| count += 1);
        let from = &incoming[(image * windows.output_pixels() + pixel) * channels..][..channels];
        windows.visit(pixel, |source| {
            for (to, &from) in result[source * channels..][..channels].iter_mut().zip(from) {
                *to = T::add(*to, T::divide(from, count));
            }
        });
    });
}

/// Zeroes the result and calls `body(image, output pixel, first input pixel of the image, image's result)` in order
/// of the pixels; images in parallel.
fn spread<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    windows: &Windows,
    result: &mut [T],
    zero: T,
    body: impl Fn(usize, usize, usize, &mut [T]) + Sync,
) {
    assert!(result.len() >= windows.input_len());
    let image_len = windows.input_pixels() * windows.channels;
    let result = SharedMut::new(result);
    let cost = (windows.output_pixels() * windows.taps() * windows.channels) as f64;
    pool.parallel_for(windows.batch, cost, |images| {
        for image in images {
            // SAFETY: images are disjoint.
            let result = unsafe { result.range(image * image_len..(image + 1) * image_len) };
            result.fill(zero);
            for pixel in 0..windows.output_pixels() {
                body(image, pixel, image * windows.input_pixels(), result);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(input: usize, output: usize, window: usize, stride: usize, low: isize) -> Axis {
        Axis {
            input,
            output,
            window,
            stride,
            low,
            ..Axis::UNIT
        }
    }

    #[test]
    fn pools_with_padding() {
        let pool = ThreadPool::new(2);
        let windows = Windows::new(1, &[axis(3, 2, 2, 2, 0), axis(3, 2, 2, 2, 0)], 1);
        let x = [1.0, 5.0, 2.0, 3.0, 4.0, 9.0, 7.0, 8.0, 6.0];
        let mut out = [0.0; 4];
        max_pool(&pool, &windows, &x, &mut out, f64::NEG_INFINITY);
        assert_eq!(out, [5.0, 9.0, 8.0, 6.0]);
        average_pool(&pool, &windows, &x, &mut out);
        assert_eq!(out, [3.25, 5.5, 7.5, 6.0]);
        let mut positions = [0; 4];
        max_pool_positions(&pool, &windows, &x, &mut positions);
        assert_eq!(positions, [1, 5, 7, 8]);
        let mut gradient = [9.0; 9];
        max_pool_gradient(&pool, &windows, &x, &[1.0, 2.0, 3.0, 4.0], &mut gradient);
        assert_eq!(gradient, [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 3.0, 4.0]);
        average_pool_gradient(&pool, &windows, &[4.0, 2.0, 6.0, 5.0], &mut gradient);
        assert_eq!(gradient, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 5.0]);
    }

    #[test]
    fn channels_are_independent() {
        let windows = Windows::new(2, &[axis(5, 5, 3, 1, 1)], 70);
        let x: Vec<f32> = (0..windows.input_len()).map(|i| ((i * 31) % 97) as f32).collect();
        let mut out = vec![0.0; windows.output_len()];
        max_pool(&ThreadPool::new(2), &windows, &x, &mut out, f32::NEG_INFINITY);
        for image in 0..2 {
            for o in 0..5_usize {
                for c in 0..70 {
                    let inputs = o.saturating_sub(1)..5.min(o + 2);
                    let best = inputs
                        .map(|i| x[(image * 5 + i) * 70 + c])
                        .fold(f32::NEG_INFINITY, f32::max);
                    assert_eq!(out[(image * 5 + o) * 70 + c], best);
                }
            }
        }
    }
}
