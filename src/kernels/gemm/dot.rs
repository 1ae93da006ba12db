//! Products with few columns or few rows, where both operands run along k: sums of elementwise products.
//!
//! Packing or padding would cost more than the arithmetic. A sum is kept in a fixed number of lanes, which are
//! added in a fixed order at the end.

use super::kernel::Element;
use super::{Epilogue, Matrix};
use crate::cpu::{self, Vectorized};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// Sums that run side by side.
const LANES: usize = 32;
/// Most columns, or rows, that are worth it.
const FEW: usize = 4;

/// True if the product is better done here: the terms of both operands are contiguous and one extent is small.
pub fn applies((m, n): (usize, usize), a_step: usize, (row_step, column_step): (usize, usize)) -> bool {
    a_step == 1 && row_step == 1 && (n <= FEW || (m <= FEW && column_step != 1))
}

struct Dot<'a, T>(&'a [T], &'a [T]);

impl<T: Element> Vectorized for Dot<'_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        let mut sums = [T::default(); LANES];
        let (a, b) = (self.0.chunks_exact(LANES), self.1.chunks_exact(LANES));
        let rest = (a.remainder(), b.remainder());
        for (a, b) in a.zip(b) {
            for i in 0..LANES {
                sums[i] = a[i].fused(b[i], sums[i]);
            }
        }
        for (i, (&a, &b)) in rest.0.iter().zip(rest.1).enumerate() {
            sums[i] = a.fused(b, sums[i]);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                sums[i] = sums[i] + sums[i + half];
            }
            half /= 2;
        }
        sums[0]
    }
}

/// Multiply-add with one rounding.
pub trait FusedMultiplyAdd: Copy {
    /// `self * b + c`.
    fn fused(self, b: Self, c: Self) -> Self;
}

impl FusedMultiplyAdd for f32 {
    #[inline(always)]
    fn fused(self, b: f32, c: f32) -> f32 {
        self.mul_add(b, c)
    }
}

impl FusedMultiplyAdd for f64 {
    #[inline(always)]
    fn fused(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }
}

/// As [`super::gemm`], for operands for which [`applies`].
pub fn gemm<T: Element>(
    pool: &ThreadPool,
    (m, n, k): (usize, usize, usize),
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    c_step: usize,
    accumulate: bool,
    epilogue: &Epilogue<'_, T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(c_step >= n && c.len() >= (m - 1) * c_step + n, "C is too small");
    let c = SharedMut::new(c);
    let cost = k as f64 * 0.05 * size_of::<T>() as f64 / 4.0 + 2.0;
    // Rows of a tall C, columns of a wide one.
    let by_rows = m >= n;
    pool.parallel_for(if by_rows { m } else { n }, cost * m.min(n) as f64, |part| {
        let (rows, columns) = if by_rows { (part, 0..n) } else { (0..m, part) };
        for i in rows {
            let a = &a.data[i * a.row_step..][..k];
            let start = i * c_step + columns.start;
            // SAFETY: parts of the loop are disjoint in rows or in columns.
            let c = unsafe { c.range(start..start + columns.len()) };
            for (x, j) in c.iter_mut().zip(columns.clone()) {
                let b = &b.data[j * b.column_step..][..k];
                let sum = T::dot(a, b);
                *x = epilogue.apply(j, if accumulate { *x + sum } else { sum });
            }
            if let Some(finish) = epilogue.row {
                finish(i, columns.start, c);
            }
        }
    });
}

/// The sum of products of `a` and `b`.
pub fn dot<T: Element>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len());
    cpu::dispatch_wide(Dot(a, b))
}
