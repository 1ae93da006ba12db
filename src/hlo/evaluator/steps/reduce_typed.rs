//! Reductions by well-known opcodes, on the kernels' typed loops. Small floats are summed in `f32`.

use crate::opcode::Opcode;
use ff_kernels::ThreadPool;
use ff_kernels::reduce::{self, Accumulate};
use ff_kernels::scratch::OutOfMemory;
use ff_tensor::{Complex64, Complex128, DataType, bf16, f16};

/// Operand, extents, and which axes go.
pub(in crate::evaluator) struct Operand<'a> {
    pub data: *const u8,
    pub dims: &'a [usize],
    pub reduced: &'a [bool],
}

/// Reduces all elements of an operand into results, starting from the opcode's identity.
///
/// # Safety
/// The operand holds the elements of its extents and the result those of the kept ones, both of the function's type.
pub(in crate::evaluator) type ReduceFn = unsafe fn(&ThreadPool, &Operand, *mut u8) -> Result<(), OutOfMemory>;

impl Operand<'_> {
    /// Elements of operand and result.
    ///
    /// # Safety
    /// As for [`ReduceFn`].
    unsafe fn slices<'a, T>(&self, out: *mut u8) -> (&'a [T], &'a mut [T]) {
        let all: usize = self.dims.iter().product();
        let kept: usize = self
            .dims
            .iter()
            .zip(self.reduced)
            .filter(|pair| !pair.1)
            .map(|pair| pair.0)
            .product();
        // SAFETY: passed on to the caller.
        unsafe {
            (
                std::slice::from_raw_parts(self.data.cast(), all),
                std::slice::from_raw_parts_mut(out.cast(), kept),
            )
        }
    }
}

/// A reduction of one type by one of the kernels.
macro_rules! reducer {
    ($t:ty, |$pool:ident, $x:ident, $operand:ident, $out:ident| $call:expr) => {{
        unsafe fn run($pool: &ThreadPool, $operand: &Operand, out: *mut u8) -> Result<(), OutOfMemory> {
            // SAFETY: passed on to the caller.
            let ($x, $out) = unsafe { $operand.slices::<$t>(out) };
            $call
        }
        Some(run)
    }};
}

/// Sums and products.
fn accumulate<T: Accumulate>(opcode: Opcode) -> Option<ReduceFn> {
    /// # Safety
    /// As for [`ReduceFn`].
    unsafe fn sum<T: Accumulate>(pool: &ThreadPool, x: &Operand, out: *mut u8) -> Result<(), OutOfMemory> {
        // SAFETY: passed on to the caller.
        let (data, out) = unsafe { x.slices::<T>(out) };
        reduce::sum(pool, data, x.dims, x.reduced, out)
    }
    /// # Safety
    /// As for [`ReduceFn`].
    unsafe fn product<T: Accumulate>(
        pool: &ThreadPool,
        x: &Operand,
        out: *mut u8,
    ) -> Result<(), OutOfMemory> {
        // SAFETY: passed on to the caller.
        let (data, out) = unsafe { x.slices::<T>(out) };
        reduce::product(pool, data, x.dims, x.reduced, out)
    }
    match opcode {
        Opcode::Add => Some(sum::<T>),
        Opcode::Multiply => Some(product::<T>),
        _ => None,
    }
}

/// The reduction of a type by an opcode, if the kernels have it.
pub(super) fn find(opcode: Opcode, dtype: DataType) -> Option<ReduceFn> {
    /// The largest and the smallest of a type.
    macro_rules! extremes {
        ($t:ty, $low:expr, $high:expr) => {
            match opcode {
                Opcode::Maximum => {
                    reducer!($t, |pool, x, operand, out| reduce::max(
                        pool,
                        x,
                        operand.dims,
                        operand.reduced,
                        out,
                        $low
                    ))
                }
                Opcode::Minimum => {
                    reducer!($t, |pool, x, operand, out| reduce::min(
                        pool,
                        x,
                        operand.dims,
                        operand.reduced,
                        out,
                        $high
                    ))
                }
                _ => accumulate::<$t>(opcode),
            }
        };
    }
    match dtype {
        DataType::FLOAT => extremes!(f32, f32::NEG_INFINITY, f32::INFINITY),
        DataType::DOUBLE => extremes!(f64, f64::NEG_INFINITY, f64::INFINITY),
        DataType::HALF => extremes!(f16, f16::NEG_INFINITY, f16::INFINITY),
        DataType::BFLOAT16 => extremes!(bf16, bf16::NEG_INFINITY, bf16::INFINITY),
        DataType::INT8 => extremes!(i8, i8::MIN, i8::MAX),
        DataType::INT16 => extremes!(i16, i16::MIN, i16::MAX),
        DataType::INT32 => extremes!(i32, i32::MIN, i32::MAX),
        DataType::INT64 => extremes!(i64, i64::MIN, i64::MAX),
        DataType::UINT8 => extremes!(u8, u8::MIN, u8::MAX),
        DataType::UINT16 => extremes!(u16, u16::MIN, u16::MAX),
        DataType::UINT32 => extremes!(u32, u32::MIN, u32::MAX),
        DataType::UINT64 => extremes!(u64, u64::MIN, u64::MAX),
        DataType::COMPLEX64 => accumulate::<Complex64>(opcode),
        DataType::COMPLEX128 => accumulate::<Complex128>(opcode),
        DataType::BOOL => match opcode {
            Opcode::And | Opcode::Multiply | Opcode::Minimum => {
                reducer!(u8, |pool, x, operand, out| reduce::all(
                    pool,
                    x,
                    operand.dims,
                    operand.reduced,
                    out
                ))
            }
            Opcode::Or | Opcode::Add | Opcode::Maximum => {
                reducer!(u8, |pool, x, operand, out| reduce::any(
                    pool,
                    x,
                    operand.dims,
                    operand.reduced,
                    out
                ))
            }
            _ => None,
        },
        _ => None,
    }
}
