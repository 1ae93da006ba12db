//! The usual reductions: sum, product, mean, largest, smallest, all, any.

use super::{Fold, reduce};
use crate::pool::ThreadPool;
use crate::scratch::OutOfMemory;
use half::{bf16, f16};
use num_complex::Complex;

/// An element that can be summed, multiplied and averaged, in a type that may be wider.
pub trait Accumulate: Copy + Send + Sync + 'static {
    /// Holds partial results.
    type Wide: Copy + Send + Sync;
    /// Zero.
    const ZERO: Self::Wide;
    /// One.
    const ONE: Self::Wide;
    /// The element, exactly.
    fn widen(self) -> Self::Wide;
    /// The nearest element.
    fn narrow(x: Self::Wide) -> Self;
    /// The sum; integers wrap around.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The product; integers wrap around.
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The quotient by a count; integers round towards zero.
    fn divide(x: Self::Wide, count: usize) -> Self::Wide;
}

macro_rules! floats {
    ($($ty:ty, $wide:ty, $widen:expr, $narrow:expr);* $(;)?) => {
        $(impl Accumulate for $ty {
            type Wide = $wide;
            const ZERO: $wide = 0.0;
            const ONE: $wide = 1.0;
            #[inline(always)]
            fn widen(self) -> $wide { $widen(self) }
            #[inline(always)]
            fn narrow(x: $wide) -> Self { $narrow(x) }
            #[inline(always)]
            fn add(a: $wide, b: $wide) -> $wide { a + b }
            #[inline(always)]
            fn multiply(a: $wide, b: $wide) -> $wide { a * b }
            #[inline(always)]
            fn divide(x: $wide, count: usize) -> $wide { x / count as $wide }
        })*
    };
}
floats!(
    f32, f32, std::convert::identity, std::convert::identity;
    f64, f64, std::convert::identity, std::convert::identity;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, bf16::from_f32;
);

macro_rules! integers {
    ($($ty:ty),*) => {
        $(impl Accumulate for $ty {
            type Wide = $ty;
            const ZERO: $ty = 0;
            const ONE: $ty = 1;
            #[inline(always)]
            fn widen(self) -> $ty { self }
            #[inline(always)]
            fn narrow(x: $ty) -> Self { x }
            #[inline(always)]
            fn add(a: $ty, b: $ty) -> $ty { a.wrapping_add(b) }
            #[inline(always)]
            fn multiply(a: $ty, b: $ty) -> $ty { a.wrapping_mul(b) }
            #[inline(always)]
            fn divide(x: $ty, count: usize) -> $ty {
                // A count beyond the type leaves a quotient of zero.
                <$ty>::try_from(count).map_or(0, |count| x.checked_div(count).unwrap_or(0))
            }
        })*
    };
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! complexes {
    ($($ty:ty),*) => {
        $(impl Accumulate for Complex<$ty> {
            type Wide = Complex<$ty>;
            const ZERO: Complex<$ty> = Complex::new(0.0, 0.0);
            const ONE: Complex<$ty> = Complex::new(1.0, 0.0);
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(x: Self) -> Self { x }
            #[inline(always)]
            fn add(a: Self, b: Self) -> Self { a + b }
            #[inline(always)]
            fn multiply(a: Self, b: Self) -> Self { a * b }
            #[inline(always)]
            fn divide(x: Self, count: usize) -> Self { x / count as $ty }
        })*
    };
}
complexes!(f32, f64);

/// The larger; not-a-number wins.
#[inline(always)]
#[allow(
    clippy::eq_op,
    reason = "true for what is not a number, over any ordered type"
)]
pub fn maximum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    let larger = if a > b { a } else { b };
    if a != a { a } else { larger }
}

/// The smaller; not-a-number wins.
#[inline(always)]
#[allow(
    clippy::eq_op,
    reason = "true for what is not a number, over any ordered type"
)]
pub fn minimum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    let smaller = if a < b { a } else { b };
    if a != a { a } else { smaller }
}

/// Sums the axes marked in `reduced`.
pub fn sum<T: Accumulate>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: T::ZERO,
        map: T::widen,
        combine: T::add,
        finish: T::narrow,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}

/// Sums the squares.
pub fn square_sum<T: Accumulate>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let square = |x: T| T::multiply(x.widen(), x.widen());
    reduce(
        pool,
        x,
        dims,
        reduced,
        out,
        &Fold {
            identity: T::ZERO,
            map: square,
            combine: T::add,
            finish: T::narrow,
        },
    )
}

/// Multiplies.
pub fn product<T: Accumulate>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: T::ONE,
        map: T::widen,
        combine: T::multiply,
        finish: T::narrow,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}

/// The mean: of nothing, zero by zero (integers: zero).
pub fn mean<T: Accumulate>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let count: usize = dims
        .iter()
        .zip(reduced)
        .filter(|&(_, &r)| r)
        .map(|(&d, _)| d)
        .product();
    let finish = |x: T::Wide| T::narrow(T::divide(x, count));
    reduce(
        pool,
        x,
        dims,
        reduced,
        out,
        &Fold {
            identity: T::ZERO,
            map: T::widen,
            combine: T::add,
            finish,
        },
    )
}

/// The largest; `lowest` where there is none.
pub fn max<T: PartialOrd + Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
    lowest: T,
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: lowest,
        map: |x: T| x,
        combine: maximum,
        finish: |x: T| x,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}

/// The smallest; `highest` where there is none.
pub fn min<T: PartialOrd + Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [T],
    highest: T,
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: highest,
        map: |x: T| x,
        combine: minimum,
        finish: |x: T| x,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}

/// One where every byte is not zero.
pub fn all(
    pool: &ThreadPool,
    x: &[u8],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [u8],
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: 1,
        map: |x: u8| u8::from(x != 0),
        combine: |a: u8, b: u8| a & b,
        finish: |x: u8| x,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}

/// One where any byte is not zero.
pub fn any(
    pool: &ThreadPool,
    x: &[u8],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [u8],
) -> Result<(), OutOfMemory> {
    let fold = Fold {
        identity: 0,
        map: |x: u8| u8::from(x != 0),
        combine: |a: u8, b: u8| a | b,
        finish: |x: u8| x,
    };
    reduce(pool, x, dims, reduced, out, &fold)
}
