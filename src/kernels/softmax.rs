//! Softmax and its logarithm over the last axis.

use crate::cpu::{self, Vectorized};
use crate::gemm::Half;
use crate::math::Real;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch;

/// Elements that are summed side by side.
const LANES: usize = 32;
/// Time of an element in nanoseconds.
const COST: f64 = 1.0;

/// A type that rows are computed in.
pub trait RowReal:
    Real
    + std::ops::Sub<Output = Self>
    + std::ops::Add<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// One.
    const ONE: Self;
    /// Below every number.
    const LOWEST: Self;
}
impl RowReal for f32 {
    const ONE: f32 = 1.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
}
impl RowReal for f64 {
    const ONE: f64 = 1.0;
    const LOWEST: f64 = f64::NEG_INFINITY;
}

struct Row<'a, T> {
    x: &'a [T],
    out: &'a mut [T],
    logarithm: bool,
}

/// Folds in lanes, then the lanes in a tree.
#[inline(always)]
fn fold<T: Copy>(x: &[T], identity: T, combine: impl Fn(T, T) -> T) -> T {
    let mut lanes = [identity; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, v);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane = combine(*lane, v);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

impl<T: RowReal> Vectorized for Row<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Row { x, out, logarithm } = self;
        let largest = fold(x, T::LOWEST, crate::reduce::maximum);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = (x - largest).exponential();
        }
        let sum = fold(out, T::default(), |a, b| a + b);
        if logarithm {
            let shift = sum.logarithm();
            for (out, &x) in out.iter_mut().zip(x) {
                *out = (x - largest) - shift;
            }
        } else {
            let scale = T::ONE / sum;
            out.iter_mut().for_each(|out| *out = *out * scale);
        }
    }
}

/// Softmax of each row of `width` elements, or its logarithm.
pub fn softmax<T: RowReal>(pool: &ThreadPool, x: &[T], width: usize, out: &mut [T], logarithm: bool) {
    assert_eq!(x.len(), out.len());
    if width == 0 {
        return;
    }
    let rows = x.len() / width;
    let out = SharedMut::new(out);
    pool.parallel_for(rows, width as f64 * COST, |range| {
        for row in range {
            let part = row * width..(row + 1) * width;
            // SAFETY: rows are disjoint.
            let out = unsafe { out.range(part.clone()) };
            cpu::dispatch_wide(Row {
                x: &x[part],
                out,
                logarithm,
            });
        }
    });
}

/// [`softmax`] of 16-bit floats, computed in `f32`.
pub fn softmax_half<T: Half>(
    pool: &ThreadPool,
    x: &[T],
    width: usize,
    out: &mut [T],
    logarithm: bool,
) -> Result<(), scratch::OutOfMemory> {
    assert_eq!(x.len(), out.len());
    scratch::with(x.len(), |wide_x: &mut [f32]| {
        scratch::with(x.len(), |wide_out: &mut [f32]| {
            crate::elementwise::unary(pool, x, wide_x, 0.25, T::widen);
            softmax(pool, wide_x, width, wide_out, logarithm);
            crate::elementwise::unary(pool, wide_out, out, 0.25, T::narrow);
        })
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_to_the_definition() {
        for width in [1, 3, 31, 32, 33, 128, 1000] {
            let x: Vec<f32> = (0..width * 5)
                .map(|i| ((i * 37) % 101) as f32 * 0.3 - 10.0)
                .collect();
            let (mut out, mut log) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            let pool = ThreadPool::new(2);
            softmax(&pool, &x, width, &mut out, false);
            softmax(&pool, &x, width, &mut log, true);
            for (row, x) in x.chunks(width).enumerate() {
                let sum: f64 = x.iter().map(|&v| f64::from(v).exp()).sum();
                for (i, &v) in x.iter().enumerate() {
                    let expected = f64::from(v).exp() / sum;
                    let (got, got_log) = (f64::from(out[row * width + i]), f64::from(log[row * width + i]));
                    assert!((got - expected).abs() <= 1e-6 * expected.max(1e-3));
                    assert!((got_log - expected.ln()).abs() <= 2e-6 * (1.0 + expected.ln().abs()));
                }
            }
        }
    }

    #[test]
    fn large_values_and_halves() {
        let mut out = [0.0; 3];
        softmax(
            ThreadPool::serial(),
            &[1000.0_f32, 1000.0, -1000.0],
            3,
            &mut out,
            false,
        );
        assert_eq!(out, [0.5, 0.5, 0.0]);
        let mut out = [0.0; 2];
        softmax(ThreadPool::serial(), &[0.0_f64, 2.0_f64.ln()], 2, &mut out, false);
        assert!((out[1] - 2.0 / 3.0).abs() < 1e-15);
        let x = [half::bf16::ZERO; 4];
        let mut out = x;
        softmax_half(ThreadPool::serial(), &x, 4, &mut out, false).unwrap();
        assert_eq!(out, [half::bf16::from_f32(0.25); 4]);
    }
}
