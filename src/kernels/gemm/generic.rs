//! Products of elements without microkernels: integers and complex numbers, in a simple blocked loop.

use super::Matrix;
use crate::cpu::{self, Vectorized};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use num_complex::Complex;

/// Arithmetic of a matrix product; integers wrap around.
pub trait Scalar: Copy + Send + Sync + Default + 'static {
    /// `self + a * b`.
    fn multiply_add(self, a: Self, b: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {
        $(impl Scalar for $ty {
            #[inline(always)]
            fn multiply_add(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
        })*
    };
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! numbers {
    ($($ty:ty),*) => {
        $(impl Scalar for $ty {
            #[inline(always)]
            fn multiply_add(self, a: Self, b: Self) -> Self {
                self + a * b
            }
        })*
    };
}
numbers!(f32, f64, Complex<f32>, Complex<f64>);

/// Terms of k whose rows of B stay in cache.
const K_BLOCK: usize = 64;
/// Columns of B that stay in cache.
const N_BLOCK: usize = 256;

/// `c = a b`, or `c += a b` where `accumulate`; extents and views as for [`super::gemm`].
pub fn gemm_any<T: Scalar>(
    pool: &ThreadPool,
    (m, n, k): (usize, usize, usize),
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    c_step: usize,
    accumulate: bool,
) {
    a.check(m, k);
    b.check(k, n);
    if m == 0 || n == 0 {
        return;
    }
    assert!(c_step >= n && c.len() >= (m - 1) * c_step + n, "C is too small");
    let c = SharedMut::new(c);
    let cost = (n * k) as f64 * 0.3 * size_of::<T>() as f64 / 4.0;
    pool.parallel_for(m, cost, |rows| {
        for i in rows.clone() {
            // SAFETY: rows are disjoint.
            let c = unsafe { c.range(i * c_step..i * c_step + n) };
            if !accumulate {
                c.fill(T::default());
            }
        }
        for first_column in (0..n).step_by(N_BLOCK) {
            let columns = first_column..n.min(first_column + N_BLOCK);
            for first in (0..k).step_by(K_BLOCK) {
                let terms = first..k.min(first + K_BLOCK);
                for i in rows.clone() {
                    let start = i * c_step;
                    // SAFETY: rows are disjoint.
                    let c = unsafe { c.range(start + columns.start..start + columns.end) };
                    for p in terms.clone() {
                        let a = a.data[i * a.row_step + p * a.column_step];
                        let b = b.rows_from(p).columns_from(columns.start);
                        cpu::dispatch(Axpy {
                            c,
                            a,
                            b: b.data,
                            step: b.column_step,
                        });
                    }
                }
            }
        }
    });
}

/// `c[j] += a * b[j * step]`.
struct Axpy<'a, T> {
    c: &'a mut [T],
    a: T,
    b: &'a [T],
    step: usize,
}

impl<T: Scalar> Vectorized for Axpy<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if self.step == 1 {
            for (c, &b) in self.c.iter_mut().zip(self.b) {
                *c = c.multiply_add(self.a, b);
            }
        } else {
            for (c, &b) in self.c.iter_mut().zip(self.b.iter().step_by(self.step.max(1))) {
                *c = c.multiply_add(self.a, b);
            }
        }
    }
}
