//! Softmax and its logarithm over the last axis.

use crate::cpu::{self, Vectorized};
use crate::gemm::Half;
use crate::lanes::{self, TOGETHER};
use crate::math::Real;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch;

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

/// Elements of the rows that are worked on together, at most: they stay in the first cache.
const ELEMENTS: usize = 4096;

/// At most [`TOGETHER`] rows.
struct Rows<'a, T> {
    x: &'a [T],
    out: &'a mut [T],
    width: usize,
    logarithm: bool,
}

impl<T: RowReal> Vectorized for Rows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Rows {
            x,
            out,
            width,
            logarithm,
        } = self;
        let largest = lanes::fold_rows(x, width, T::LOWEST, |v| v, crate::reduce::maximum);
        let pairs = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((x, out), &largest) in pairs.zip(&largest) {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = (x - largest).exponential();
            }
        }
        let sums = lanes::fold_rows(out, width, T::default(), |v| v, |a, b| a + b);
        let pairs = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((x, out), (&largest, &sum)) in pairs.zip(largest.iter().zip(&sums)) {
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
}

/// Softmax of each row of `width` elements, or its logarithm.
pub fn softmax<T: RowReal>(pool: &ThreadPool, x: &[T], width: usize, out: &mut [T], logarithm: bool) {
    assert_eq!(x.len(), out.len());
    if width == 0 {
        return;
    }
    let rows = x.len() / width;
    let together = (ELEMENTS / width).clamp(1, TOGETHER);
    let out = SharedMut::new(out);
    pool.parallel_for(rows, width as f64 * COST, |range| {
        for first in range.clone().step_by(together) {
            let part = first * width..range.end.min(first + together) * width;
            // SAFETY: rows are disjoint.
            let out = unsafe { out.range(part.clone()) };
            cpu::dispatch_wide(Rows {
                x: &x[part],
                out,
                width,
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
