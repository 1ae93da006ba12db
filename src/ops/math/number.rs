//! Arithmetic over every number type with the semantics of the reference's CPU kernels: integers wrap around,
//! short floats compute in `f32`, complex numbers as such.

use ff_tensor::{Complex64, Complex128, Element, bf16, f16};

/// A number with the four operations.
pub trait Number: Element + Default {
    /// 1.
    fn one() -> Self;
    /// `a + b`.
    fn add(self, b: Self) -> Self;
    /// `a - b`.
    fn sub(self, b: Self) -> Self;
    /// `a * b`.
    fn mul(self, b: Self) -> Self;
    /// `a / b`; integers round towards zero, and give 0 where `b` is 0 (callers have refused that).
    fn div(self, b: Self) -> Self;
    /// The complex conjugate; itself for real numbers.
    fn conjugate(self) -> Self {
        self
    }
}

/// A number with an order.
pub trait Ordered: Number + PartialOrd {
    /// Whether it is not a number.
    fn is_nan(self) -> bool {
        false
    }
    /// `a / b` rounded down; see [`Number::div`] for a zero divisor.
    fn floor_div(self, b: Self) -> Self;
    /// The remainder with the sign of `b`.
    fn floor_mod(self, b: Self) -> Self;
    /// The remainder with the sign of `a`.
    fn truncate_mod(self, b: Self) -> Self;
}

macro_rules! integers {
    ($($name:ty),*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn one() -> Self { 1 }
            #[inline(always)]
            fn add(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline(always)]
            fn div(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_div(b) } }
        }
        impl Ordered for $name {
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned types the remainder is never negative
            fn floor_div(self, b: Self) -> Self {
                if b == 0 { return 0; }
                let (quotient, rest) = (self.wrapping_div(b), self.wrapping_rem(b));
                if rest != 0 && ((rest < 0) != (b < 0)) { quotient - 1 } else { quotient }
            }
            #[inline(always)]
            #[allow(unused_comparisons)] // as above
            fn floor_mod(self, b: Self) -> Self {
                if b == 0 { return 0; }
                let rest = self.wrapping_rem(b);
                if rest != 0 && ((rest < 0) != (b < 0)) { rest + b } else { rest }
            }
            #[inline(always)]
            fn truncate_mod(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_rem(b) } }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($name:ty),*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn one() -> Self { 1.0 }
            #[inline(always)]
            fn add(self, b: Self) -> Self { self + b }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { self * b }
            #[inline(always)]
            fn div(self, b: Self) -> Self { self / b }
        }
        impl Ordered for $name {
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
            #[inline(always)]
            fn floor_div(self, b: Self) -> Self { (self / b).floor() }
            #[inline(always)]
            fn floor_mod(self, b: Self) -> Self {
                let rest = self % b;
                if rest != 0.0 && ((rest < 0.0) != (b < 0.0)) { rest + b } else { rest }
            }
            #[inline(always)]
            fn truncate_mod(self, b: Self) -> Self { self % b }
        }
    )*};
}

floats!(f32, f64);

macro_rules! short_floats {
    ($($name:ty),*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn one() -> Self { Self::ONE }
            #[inline(always)]
            fn add(self, b: Self) -> Self { Self::from_f32(self.to_f32() + b.to_f32()) }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { Self::from_f32(self.to_f32() - b.to_f32()) }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { Self::from_f32(self.to_f32() * b.to_f32()) }
            #[inline(always)]
            fn div(self, b: Self) -> Self { Self::from_f32(self.to_f32() / b.to_f32()) }
        }
        impl Ordered for $name {
            #[inline(always)]
            fn is_nan(self) -> bool { self.to_f32().is_nan() }
            #[inline(always)]
            fn floor_div(self, b: Self) -> Self { Self::from_f32(self.div(b).to_f32().floor()) }
            #[inline(always)]
            fn floor_mod(self, b: Self) -> Self { Self::from_f32(self.to_f32().floor_mod(b.to_f32())) }
            #[inline(always)]
            fn truncate_mod(self, b: Self) -> Self { Self::from_f32(self.to_f32() % b.to_f32()) }
        }
    )*};
}

short_floats!(f16, bf16);

macro_rules! complex {
    ($($name:ty),*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn add(self, b: Self) -> Self { self + b }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { self * b }
            #[inline(always)]
            fn div(self, b: Self) -> Self { self / b }
            #[inline(always)]
            fn one() -> Self { Self::new(1.0, 0.0) }
            #[inline(always)]
            fn conjugate(self) -> Self { self.conj() }
        }
    )*};
}

complex!(Complex64, Complex128);

/// The larger; NaN if either is.
#[inline(always)]
pub fn maximum<T: Ordered>(a: T, b: T) -> T {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller; NaN if either is.
#[inline(always)]
pub fn minimum<T: Ordered>(a: T, b: T) -> T {
    if a < b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_of_quotients() {
        assert_eq!((-7i32).floor_div(2), -4);
        assert_eq!((-7i32).floor_mod(2), 1);
        assert_eq!((-7i32).truncate_mod(2), -1);
        assert_eq!(7i32.floor_mod(-2), -1);
        assert_eq!((-7.5f32).floor_mod(2.0), 0.5);
        assert_eq!(i32::MIN.div(-1), i32::MIN);
        assert_eq!(200u8.add(100), 44);
        assert!(maximum(f32::NAN, 1.0).is_nan() && maximum(1.0, f32::NAN).is_nan());
    }
}
