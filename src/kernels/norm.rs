//! Batch and layer normalization in `f32`.
//!
//! Batch normalization sees `x` as rows of channels. Sums over rows are made in `f32` over fixed blocks of rows
//! and in `f64` across the blocks, so they depend on the extents only.

use crate::cpu::{self, Vectorized};
use crate::lanes;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory};

/// Rows that are summed in `f32`.
const BLOCK: usize = 128;
/// Time of an element in nanoseconds.
const COST: f64 = 0.3;

/// One block's sums: `first += f(..)`, `second += g(..)` per channel.
struct BlockSums<'a, F> {
    x: &'a [f32],
    y: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    center: &'a [f32],
    f: F,
}

impl<F: Fn(f32, f32, f32) -> (f32, f32)> Vectorized for BlockSums<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let channels = self.first.len();
        self.first.fill(0.0);
        self.second.fill(0.0);
        for (x, y) in self.x.chunks_exact(channels).zip(self.y.chunks_exact(channels)) {
            for c in 0..channels {
                let (a, b) = (self.f)(x[c], y[c], self.center[c]);
                self.first[c] += a;
                self.second[c] += b;
            }
        }
    }
}

/// Per channel the sums over all rows of the two values of `f(x, y, center)`.
fn column_sums(
    pool: &ThreadPool,
    x: &[f32],
    y: &[f32],
    center: &[f32],
    f: impl Fn(f32, f32, f32) -> (f32, f32) + Sync + Copy,
) -> Result<(Vec<f64>, Vec<f64>), OutOfMemory> {
    let channels = center.len();
    let rows = x.len() / channels;
    let blocks = rows.div_ceil(BLOCK);
    scratch::with(blocks * 2 * channels, |partial: &mut [f32]| {
        let shared = SharedMut::new(partial);
        pool.parallel_blocks(rows, BLOCK, channels as f64 * COST, |block, rows| {
            // SAFETY: blocks are disjoint.
            let sums = unsafe { shared.range(block * 2 * channels..(block + 1) * 2 * channels) };
            let (first, second) = sums.split_at_mut(channels);
            let part = rows.start * channels..rows.end * channels;
            cpu::dispatch(BlockSums {
                x: &x[part.clone()],
                y: &y[part],
                first,
                second,
                center,
                f,
            });
        });
        let mut sums = (vec![0.0; channels], vec![0.0; channels]);
        for block in partial.chunks_exact(2 * channels) {
            for c in 0..channels {
                sums.0[c] += f64::from(block[c]);
                sums.1[c] += f64::from(block[channels + c]);
            }
        }
        sums
    })
}

/// Mean and biased variance of each channel of `x`, seen as rows of `mean.len()` channels.
pub fn channel_moments(
    pool: &ThreadPool,
    x: &[f32],
    mean: &mut [f32],
    variance: &mut [f32],
) -> Result<(), OutOfMemory> {
    let channels = mean.len();
    assert_eq!(variance.len(), channels);
    if channels == 0 {
        return Ok(());
    }
    let count = (x.len() / channels) as f64;
    let zeros = vec![0.0; channels];
    let (sums, _) = column_sums(pool, x, x, &zeros, |x, _, _| (x, 0.0))?;
    for (mean, sum) in mean.iter_mut().zip(sums) {
        *mean = (sum / count) as f32;
    }
    let (squares, _) = column_sums(pool, x, x, mean, |x, _, mean| ((x - mean) * (x - mean), 0.0))?;
    for (variance, sum) in variance.iter_mut().zip(squares) {
        *variance = (sum / count) as f32;
    }
    Ok(())
}

struct Affine<'a>(&'a [f32], &'a [f32], &'a [f32], &'a mut [f32]);
impl Vectorized for Affine<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let channels = self.1.len();
        for (x, out) in self
            .0
            .chunks_exact(channels)
            .zip(self.3.chunks_exact_mut(channels))
        {
            for (c, out) in out.iter_mut().enumerate() {
                *out = x[c].mul_add(self.1[c], self.2[c]);
            }
        }
    }
}

/// `out = x * scale + shift`, both per channel.
pub fn channel_affine(pool: &ThreadPool, x: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    let channels = scale.len();
    assert!(shift.len() == channels && x.len() == out.len());
    if channels == 0 {
        return;
    }
    let out = SharedMut::new(out);
    pool.parallel_for(x.len() / channels, channels as f64 * COST, |rows| {
        let part = rows.start * channels..rows.end * channels;
        // SAFETY: rows are disjoint.
        cpu::dispatch(Affine(&x[part.clone()], scale, shift, unsafe { out.range(part) }));
    });
}

/// Batch normalization with known statistics: `(x - mean) * scale / sqrt(variance + epsilon) + offset`.
pub fn batch_norm(
    pool: &ThreadPool,
    x: &[f32],
    (scale, offset): (&[f32], &[f32]),
    (mean, variance): (&[f32], &[f32]),
    epsilon: f32,
    out: &mut [f32],
) {
    let factor: Vec<f32> = scale
        .iter()
        .zip(variance)
        .map(|(&s, &v)| s / (v + epsilon).sqrt())
        .collect();
    let shift: Vec<f32> = offset
        .iter()
        .zip(mean)
        .zip(&factor)
        .map(|((&o, &m), &f)| (-m).mul_add(f, o))
        .collect();
    channel_affine(pool, x, &factor, &shift, out);
}

/// The gradients of [`batch_norm`] with the statistics of `x` itself (biased variance).
///
/// Returns the gradients for scale and offset; writes the one for `x`.
pub fn batch_norm_gradient(
    pool: &ThreadPool,
    incoming: &[f32],
    x: &[f32],
    scale: &[f32],
    (mean, variance): (&[f32], &[f32]),
    epsilon: f32,
    x_gradient: &mut [f32],
) -> Result<(Vec<f32>, Vec<f32>), OutOfMemory> {
    let channels = scale.len();
    assert!(incoming.len() == x.len() && x.len() == x_gradient.len());
    if channels == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    let count = (x.len() / channels) as f64;
    let (sums, products) = column_sums(pool, incoming, x, mean, |dy, x, mean| (dy, dy * (x - mean)))?;
    let deviation: Vec<f64> = variance
        .iter()
        .map(|&v| (f64::from(v) + f64::from(epsilon)).sqrt())
        .collect();
    // dx = a dy + b x + c per channel.
    let (mut a, mut b, mut c) = (vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]);
    for i in 0..channels {
        let factor = f64::from(scale[i]) / deviation[i];
        let slope = -factor * products[i] / (count * deviation[i] * deviation[i]);
        a[i] = factor as f32;
        b[i] = slope as f32;
        c[i] = (-factor * sums[i] / count - slope * f64::from(mean[i])) as f32;
    }
    let out = SharedMut::new(x_gradient);
    pool.parallel_for(x.len() / channels, channels as f64 * COST, |rows| {
        let part = rows.start * channels..rows.end * channels;
        // SAFETY: rows are disjoint.
        let out = unsafe { out.range(part.clone()) };
        cpu::dispatch(Gradient {
            incoming: &incoming[part.clone()],
            x: &x[part],
            a: &a,
            b: &b,
            c: &c,
            out,
        });
    });
    let scale_gradient = products
        .iter()
        .zip(&deviation)
        .map(|(&p, &d)| (p / d) as f32)
        .collect();
    Ok((scale_gradient, sums.iter().map(|&s| s as f32).collect()))
}

struct Gradient<'a> {
    incoming: &'a [f32],
    x: &'a [f32],
    a: &'a [f32],
    b: &'a [f32],
    c: &'a [f32],
    out: &'a mut [f32],
}

impl Vectorized for Gradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let channels = self.a.len();
        let rows = self
            .incoming
            .chunks_exact(channels)
            .zip(self.x.chunks_exact(channels));
        for ((dy, x), out) in rows.zip(self.out.chunks_exact_mut(channels)) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = dy[i].mul_add(self.a[i], x[i].mul_add(self.b[i], self.c[i]));
            }
        }
    }
}

/// Layer normalization of each row of `scale.len()` elements: `(x - mean) / sqrt(variance + epsilon) * scale +
/// offset` with the row's own mean and biased variance.
pub fn layer_norm(
    pool: &ThreadPool,
    x: &[f32],
    scale: &[f32],
    offset: &[f32],
    epsilon: f32,
    out: &mut [f32],
) {
    let width = scale.len();
    assert!(offset.len() == width && x.len() == out.len());
    if width == 0 {
        return;
    }
    let out = SharedMut::new(out);
    pool.parallel_for(x.len() / width, width as f64 * COST, |rows| {
        for row in rows {
            let part = row * width..(row + 1) * width;
            // SAFETY: rows are disjoint.
            let out = unsafe { out.range(part.clone()) };
            cpu::dispatch_wide(LayerRow {
                x: &x[part],
                scale,
                offset,
                epsilon,
                out,
            });
        }
    });
}

struct LayerRow<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    offset: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Vectorized for LayerRow<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let count = self.x.len() as f32;
        let add = |a: f32, b: f32| a + b;
        let mean = lanes::fold(self.x, 0.0, |v| v, add) / count;
        let variance = lanes::fold(self.x, 0.0, |v| (v - mean) * (v - mean), add) / count;
        let factor = 1.0 / (variance + self.epsilon).sqrt();
        for (i, out) in self.out.iter_mut().enumerate() {
            *out = ((self.x[i] - mean) * factor).mul_add(self.scale[i], self.offset[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(len: usize) -> Vec<f32> {
        (0..len)
            .map(|i| ((i * 7919) % 1013) as f32 * 0.01 - 3.0)
            .collect()
    }

    #[test]
    fn moments_and_normalization() {
        let (rows, channels) = (1000, 37);
        let x = data(rows * channels);
        let column = |c: usize| (0..rows).map(move |r| r * channels + c);
        let (mut mean, mut variance) = (vec![0.0; channels], vec![0.0; channels]);
        channel_moments(&ThreadPool::new(2), &x, &mut mean, &mut variance).unwrap();
        let mut out = vec![0.0; x.len()];
        let (scale, offset) = (vec![2.0; channels], vec![0.5; channels]);
        batch_norm(
            &ThreadPool::new(2),
            &x,
            (&scale, &offset),
            (&mean, &variance),
            1e-3,
            &mut out,
        );
        for c in 0..channels {
            let m = column(c).map(|i| f64::from(x[i])).sum::<f64>() / rows as f64;
            let v = column(c).map(|i| (f64::from(x[i]) - m).powi(2)).sum::<f64>() / rows as f64;
            assert!((f64::from(mean[c]) - m).abs() < 1e-5 && (f64::from(variance[c]) - v).abs() < 1e-4);
            for i in column(c) {
                let expected = (f64::from(x[i]) - m) / (v + 1e-3).sqrt() * 2.0 + 0.5;
                assert!((f64::from(out[i]) - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn gradients_by_differences() {
        let (rows, channels, epsilon) = (7, 3, 0.1);
        let (x, dy) = (
            data(rows * channels),
            data(2 * rows * channels)[rows * channels..].to_vec(),
        );
        let scale = [1.5, -0.5, 2.0];
        // In f64, the weighted sum of the outputs as a function of x.
        let loss = |x: &[f64]| -> f64 {
            let mut total = 0.0;
            for c in 0..channels {
                let column: Vec<f64> = (0..rows).map(|r| x[r * channels + c]).collect();
                let m = column.iter().sum::<f64>() / rows as f64;
                let v = column.iter().map(|x| (x - m).powi(2)).sum::<f64>() / rows as f64;
                for (r, x) in column.iter().enumerate() {
                    let y = (x - m) / (v + epsilon).sqrt() * f64::from(scale[c]);
                    total += y * f64::from(dy[r * channels + c]);
                }
            }
            total
        };
        let (mut mean, mut variance) = ([0.0; 3], [0.0; 3]);
        let pool = ThreadPool::serial();
        channel_moments(pool, &x, &mut mean, &mut variance).unwrap();
        let mut dx = vec![0.0; x.len()];
        let statistics = (&mean[..], &variance[..]);
        let (_, offset) =
            batch_norm_gradient(pool, &dy, &x, &scale, statistics, epsilon as f32, &mut dx).unwrap();
        let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        for i in 0..x.len() {
            let (mut up, mut down) = (wide.clone(), wide.clone());
            up[i] += 1e-5;
            down[i] -= 1e-5;
            let expected = (loss(&up) - loss(&down)) / 2e-5;
            assert!(
                (f64::from(dx[i]) - expected).abs() < 1e-4,
                "{} for {expected}",
                dx[i]
            );
        }
        let sum: f32 = (0..rows).map(|r| dy[r * channels]).sum();
        assert!((offset[0] - sum).abs() < 1e-5);
    }

    #[test]
    fn layers() {
        let width = 70;
        let x = data(3 * width);
        let mut out = vec![0.0; x.len()];
        let (scale, offset) = (data(width), vec![0.25; width]);
        layer_norm(ThreadPool::serial(), &x, &scale, &offset, 1e-6, &mut out);
        for (row, x) in x.chunks(width).enumerate() {
            let m = x.iter().map(|&v| f64::from(v)).sum::<f64>() / width as f64;
            let v = x.iter().map(|&v| (f64::from(v) - m).powi(2)).sum::<f64>() / width as f64;
            for i in 0..width {
                let expected = (f64::from(x[i]) - m) / (v + 1e-6).sqrt() * f64::from(scale[i]) + 0.25;
                assert!((f64::from(out[row * width + i]) - expected).abs() < 1e-5);
            }
        }
    }
}
