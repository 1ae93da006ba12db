//! Products of 16-bit floats: operands widened to `f32`, sums kept in `f32`, one rounding at the end.

use super::{Epilogue, Matrix, gemm};
use crate::elementwise::{cost, unary};
use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory, Plain};
use half::{bf16, f16};

/// A 16-bit float.
pub trait Half: Plain + Default {
    /// The value, exactly.
    fn widen(self) -> f32;
    /// The nearest value, ties to even.
    fn narrow(x: f32) -> Self;
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn narrow(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn narrow(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

/// As [`gemm`]; the epilogue works in `f32`, before the rounding.
pub fn gemm_half<T: Half>(
    pool: &ThreadPool,
    (m, n, k): (usize, usize, usize),
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    c_step: usize,
    accumulate: bool,
    epilogue: &Epilogue<'_, f32>,
) -> Result<(), OutOfMemory> {
    a.check(m, k);
    b.check(k, n);
    if m == 0 || n == 0 {
        return Ok(());
    }
    assert!(c_step >= n && c.len() >= (m - 1) * c_step + n, "C is too small");
    let widened = |x: Matrix<'_, T>, rows: usize, columns: usize| {
        if rows * columns == 0 {
            0
        } else {
            (rows - 1) * x.row_step + (columns - 1) * x.column_step + 1
        }
    };
    let (a_len, b_len) = (widened(a, m, k), widened(b, k, n));
    let c_len = (m - 1) * c_step + n;
    scratch::with(a_len, |a_wide: &mut [f32]| {
        scratch::with(b_len, |b_wide: &mut [f32]| {
            scratch::with(c_len, |c_wide: &mut [f32]| {
                unary(pool, &a.data[..a_len], a_wide, cost::SIMPLE, T::widen);
                unary(pool, &b.data[..b_len], b_wide, cost::SIMPLE, T::widen);
                if accumulate {
                    unary(pool, &c[..c_len], c_wide, cost::SIMPLE, T::widen);
                }
                let a = Matrix {
                    data: &*a_wide,
                    row_step: a.row_step,
                    column_step: a.column_step,
                };
                let b = Matrix {
                    data: &*b_wide,
                    row_step: b.row_step,
                    column_step: b.column_step,
                };
                gemm(pool, (m, n, k), a, b, c_wide, c_step, accumulate, epilogue)?;
                for (c, wide) in c[..c_len].chunks_mut(c_step).zip(c_wide.chunks(c_step)) {
                    unary(pool, &wide[..n], &mut c[..n], cost::SIMPLE, T::narrow);
                }
                Ok(())
            })?
        })?
    })?
}
