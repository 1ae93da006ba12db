//! What each elementwise opcode does to one element: the definition that tiles, folding and tests share.
//!
//! Floating-point functions are those of the kernels (within 2 ulp for basic ones, 4 ulp for transcendental ones);
//! integers wrap around. Where the mathematics leaves a hole XLA's choice is taken: an integer divided by zero is all
//! ones, its remainder the dividend, a shift by too much gives zero (or the sign). Complex functions are computed in
//! double precision.

use ff_kernels::math::Real;
use ff_tensor::{Complex64, Complex128};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// A floating-point type that elements are computed in.
pub trait Float:
    Real
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    /// One.
    const ONE: Self;
    /// Two.
    const TWO: Self;
    /// Three.
    const THREE: Self;
    /// The value without its sign.
    fn magnitude(self) -> Self;
    /// Whether it is not a number.
    fn not_a_number(self) -> bool;
    /// Whether it is neither infinite nor NaN.
    fn finite(self) -> bool;
    /// Rounded to the nearest integer, ties away from zero.
    fn round_away(self) -> Self;
    /// -1, 0 or 1 by sign; zeros and NaN as they are.
    fn sign(self) -> Self;
    /// The next value towards another.
    fn next_towards(self, target: Self) -> Self;
    /// Rounded to a format with fewer exponent and mantissa bits.
    fn reduce_precision(self, exponent_bits: u32, mantissa_bits: u32) -> Self;

    /// `self` to the power of `exponent`; squares and cubes are products, as the passes write them.
    #[inline(always)]
    fn raised(self, exponent: Self) -> Self {
        if exponent == Self::TWO {
            self * self
        } else if exponent == Self::THREE {
            self * self * self
        } else {
            self.power(exponent)
        }
    }

    /// The larger one; NaN when either is.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if (self > other) | self.not_a_number() {
            self
        } else {
            other
        }
    }

    /// The smaller one; NaN when either is.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if (self < other) | self.not_a_number() {
            self
        } else {
            other
        }
    }

    /// The inverse of the error function.
    fn inverse_error_function(self) -> Self {
        Self::from_f64(inverse_erf(self.to_f64()))
    }

    /// The derivative of the logarithm of the gamma function.
    fn digamma(self) -> Self {
        Self::from_f64(digamma(self.to_f64()))
    }
}

/// Implements [`Float`] for a type with these bits.
macro_rules! float {
    ($float:ident, $bits:ident, $exponent_bits:literal, $mantissa_bits:literal) => {
        impl Float for $float {
            const ONE: $float = 1.0;
            const TWO: $float = 2.0;
            const THREE: $float = 3.0;

            #[inline(always)]
            fn magnitude(self) -> $float {
                self.abs()
            }

            #[inline(always)]
            fn not_a_number(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }

            #[inline(always)]
            fn round_away(self) -> $float {
                self.round()
            }

            #[inline(always)]
            fn sign(self) -> $float {
                if (self == 0.0) | self.is_nan() {
                    self
                } else {
                    (1.0 as $float).copysign(self)
                }
            }

            fn next_towards(self, target: $float) -> $float {
                if self.is_nan() || target.is_nan() {
                    return $float::NAN;
                }
                if self == target {
                    return target;
                }
                if self == 0.0 {
                    return $float::from_bits(1).copysign(target);
                }
                let away = (self > 0.0) == (target > self);
                let bits = self.to_bits();
                $float::from_bits(if away { bits + 1 } else { bits - 1 })
            }

            fn reduce_precision(self, exponent_bits: u32, mantissa_bits: u32) -> $float {
                if self.is_nan() {
                    return self;
                }
                let mut bits = self.to_bits();
                let sign = bits & (1 << ($bits::BITS - 1));
                if mantissa_bits < $mantissa_bits {
                    let drop = $mantissa_bits - mantissa_bits;
                    let odd = (bits >> drop) & 1;
                    bits = (bits + ((1 << (drop - 1)) - 1) + odd) & !((1 << drop) - 1);
                }
                if exponent_bits < $exponent_bits {
                    // Beyond the narrower range: infinite above, zero below (denormals are flushed).
                    let bias = (1 << ($exponent_bits - 1)) - 1;
                    let narrow = (1 << (exponent_bits - 1)) - 1;
                    let exponent = (bits >> $mantissa_bits) & ((1 << $exponent_bits) - 1);
                    if exponent > bias + narrow {
                        bits = sign | (((1 << $exponent_bits) - 1) << $mantissa_bits);
                    } else if exponent <= bias - narrow {
                        bits = sign;
                    }
                }
                $float::from_bits(bits)
            }
        }
    };
}

float!(f32, u32, 8, 23);
float!(f64, u64, 11, 52);

/// The inverse of `erf`: a starting value (Giles 2010), then steps of Halley's method.
pub fn inverse_erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    const CENTRAL: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let magnitude = x.abs();
    let w = -((1.0 - magnitude) * (1.0 + magnitude)).ln();
    let (table, t) = if w < 5.0 {
        (&CENTRAL, w - 2.5)
    } else {
        (&TAIL, w.sqrt() - 3.0)
    };
    let mut y = magnitude * table.iter().fold(0.0, |sum, c| sum * t + c);
    for _ in 0..3 {
        // Near 1 the complement keeps the digits.
        let error = if magnitude < 0.5 {
            Real::error_function(y) - magnitude
        } else {
            (1.0 - magnitude) - Real::complementary_error_function(y)
        };
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        if slope == 0.0 || !error.is_finite() {
            break;
        }
        let step = error / slope;
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// The digamma function: recurrence up to 10, then the asymptotic series; reflection for negative values.
pub fn digamma(x: f64) -> f64 {
    if x == f64::NEG_INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        let part = x - x.floor();
        return digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * part).tan();
    }
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        5.0 / 660.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let tail = SERIES.iter().rev().fold(0.0, |tail, c| (tail + c) * inverse);
    sum + x.ln() - 0.5 / x - tail
}

/// An integer type that elements are computed in; everything wraps around.
pub trait Integer: Copy + PartialOrd + Send + Sync + 'static {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// Cut towards zero; all ones for division by zero.
    fn divide(self, other: Self) -> Self;
    /// With the sign of the dividend; the dividend for division by zero.
    fn remainder(self, other: Self) -> Self;
    /// To the power of `exponent`; zero for a fraction.
    fn power(self, exponent: Self) -> Self;
    /// Without its sign.
    fn magnitude(self) -> Self;
    /// `-self`.
    fn negate(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// The number of set bits.
    fn popcnt(self) -> Self;
    /// The number of leading zero bits.
    fn leading_zeros(self) -> Self;
    /// Bitwise and.
    fn bit_and(self, other: Self) -> Self;
    /// Bitwise or.
    fn bit_or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn bit_xor(self, other: Self) -> Self;
    /// Bitwise complement.
    fn bit_not(self) -> Self;
    /// Bits moved up; zero when all are gone.
    fn shift_left(self, by: Self) -> Self;
    /// Bits moved down, zeros after them.
    fn shift_right_logical(self, by: Self) -> Self;
    /// Bits moved down, the sign after them.
    fn shift_right_arithmetic(self, by: Self) -> Self;
}

/// Implements [`Integer`] for a type, given its unsigned and signed counterparts.
macro_rules! integer {
    ($($int:ident $unsigned:ident $signed:ident),*) => { $(
        #[allow(unused_comparisons, reason = "the same text serves unsigned types")]
        impl Integer for $int {
            #[inline(always)]
            fn plus(self, other: $int) -> $int { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: $int) -> $int { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: $int) -> $int { self.wrapping_mul(other) }
            #[inline(always)]
            fn divide(self, other: $int) -> $int {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn remainder(self, other: $int) -> $int {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            fn power(self, exponent: $int) -> $int {
                let one: $int = 1;
                if exponent < 0 {
                    return if self == 1 { 1 } else if self == !0 && self < 0 {
                        if exponent & 1 == 0 { 1 } else { self }
                    } else { 0 };
                }
                let (mut result, mut base, mut rest) = (one, self, exponent);
                while rest > 0 {
                    if rest & 1 == 1 { result = result.wrapping_mul(base); }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                result
            }
            #[inline(always)]
            fn magnitude(self) -> $int { if self < 0 { (0 as $int).wrapping_sub(self) } else { self } }
            #[inline(always)]
            fn negate(self) -> $int { (0 as $int).wrapping_sub(self) }
            #[inline(always)]
            fn sign(self) -> $int { if self < 0 { !0 } else { (self != 0) as $int } }
            #[inline(always)]
            fn popcnt(self) -> $int { self.count_ones() as $int }
            #[inline(always)]
            fn leading_zeros(self) -> $int { $int::leading_zeros(self) as $int }
            #[inline(always)]
            fn bit_and(self, other: $int) -> $int { self & other }
            #[inline(always)]
            fn bit_or(self, other: $int) -> $int { self | other }
            #[inline(always)]
            fn bit_xor(self, other: $int) -> $int { self ^ other }
            #[inline(always)]
            fn bit_not(self) -> $int { !self }
            #[inline(always)]
            fn shift_left(self, by: $int) -> $int {
                let by = by as $unsigned;
                if by >= $int::BITS as $unsigned { 0 } else { self.wrapping_shl(by as u32) }
            }
            #[inline(always)]
            fn shift_right_logical(self, by: $int) -> $int {
                let by = by as $unsigned;
                if by >= $int::BITS as $unsigned { 0 } else { ((self as $unsigned) >> by as u32) as $int }
            }
            #[inline(always)]
            fn shift_right_arithmetic(self, by: $int) -> $int {
                let by = (by as $unsigned).min($int::BITS as $unsigned - 1);
                ((self as $signed) >> by as u32) as $int
            }
        }
    )* };
}

integer!(
    i8 u8 i8, i16 u16 i16, i32 u32 i32, i64 u64 i64,
    u8 u8 i8, u16 u16 i16, u32 u32 i32, u64 u64 i64
);

/// A complex type that elements are computed in.
pub trait ComplexNumber:
    Copy
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// The type of the parts.
    type Part: Float;
    /// The value in double precision.
    fn wide(self) -> Complex128;
    /// The nearest value.
    fn narrow(value: Complex128) -> Self;
    /// The real part.
    fn real(self) -> Self::Part;
    /// The imaginary part.
    fn imag(self) -> Self::Part;
    /// The number with these parts.
    fn from_parts(real: Self::Part, imag: Self::Part) -> Self;
}

/// Implements [`ComplexNumber`] by conversion.
macro_rules! complex {
    ($complex:ident, $part:ident) => {
        impl ComplexNumber for $complex {
            type Part = $part;
            fn wide(self) -> Complex128 {
                Complex128::new(f64::from(self.re), f64::from(self.im))
            }
            fn narrow(value: Complex128) -> $complex {
                $complex::new(value.re as $part, value.im as $part)
            }
            #[inline(always)]
            fn real(self) -> $part {
                self.re
            }
            #[inline(always)]
            fn imag(self) -> $part {
                self.im
            }
            #[inline(always)]
            fn from_parts(re: $part, im: $part) -> $complex {
                $complex::new(re, im)
            }
        }
    };
}

complex!(Complex64, f32);
complex!(Complex128, f64);

/// `exp(z) - 1`, accurate near zero.
pub fn complex_expm1(z: Complex128) -> Complex128 {
    let half = (z.im / 2.0).sin();
    let real = z.re.exp_m1() * z.im.cos() - 2.0 * half * half;
    Complex128::new(real, z.re.exp() * z.im.sin())
}

/// `log(1 + z)`, accurate near zero.
pub fn complex_log1p(z: Complex128) -> Complex128 {
    let real = if z.re.abs() < 0.5 && z.im.abs() < 0.5 {
        0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p()
    } else {
        (1.0 + z.re).hypot(z.im).ln()
    };
    Complex128::new(real, z.im.atan2(1.0 + z.re))
}

/// `1 / z`, with the limits of C's division: zero of what is infinite, infinite of zero.
pub fn complex_reciprocal(z: Complex128) -> Complex128 {
    if z.re == 0.0 && z.im == 0.0 {
        return Complex128::new(f64::INFINITY.copysign(z.re), f64::NAN);
    }
    if z.re.is_infinite() || z.im.is_infinite() {
        return Complex128::new(0.0_f64.copysign(z.re), 0.0_f64.copysign(-z.im));
    }
    complex_divide(Complex128::new(1.0, 0.0), z)
}

/// `a / b`, without overflow where `b` is large.
pub fn complex_divide(a: Complex128, b: Complex128) -> Complex128 {
    let scale = b.re.abs().max(b.im.abs());
    let scaled = b / scale;
    a * scaled.conj() / scaled.norm_sqr() / scale
}

/// `z / |z|`; zero for zero.
pub fn complex_sign(z: Complex128) -> Complex128 {
    let norm = z.re.hypot(z.im);
    if norm == 0.0 {
        Complex128::new(0.0, 0.0)
    } else {
        Complex128::new(z.re / norm, z.im / norm)
    }
}

/// The hyperbolic sine, with the limits that C's function has.
pub fn complex_sinh(z: Complex128) -> Complex128 {
    if z.im == 0.0 {
        return Complex128::new(z.re.sinh(), z.im);
    }
    if !z.im.is_finite() && (z.re.is_infinite() || z.re == 0.0) {
        return Complex128::new(z.re, f64::NAN);
    }
    z.sinh()
}

/// The hyperbolic cosine, with the limits that C's function has.
pub fn complex_cosh(z: Complex128) -> Complex128 {
    if z.im == 0.0 {
        let sign = if z.re.is_nan() { 1.0 } else { z.re.signum() };
        return Complex128::new(z.re.cosh(), z.im * sign);
    }
    if !z.im.is_finite() && z.re.is_infinite() {
        return Complex128::new(f64::INFINITY, f64::NAN);
    }
    z.cosh()
}

/// The hyperbolic tangent, without overflow.
pub fn complex_tanh(z: Complex128) -> Complex128 {
    if z.im == 0.0 || (z.re.is_infinite() && !z.im.is_finite()) {
        let im = if z.im.is_finite() { z.im } else { 0.0 };
        return Complex128::new(z.re.tanh(), im);
    }
    if z.re.abs() > 20.0 {
        let e = (-2.0 * z.re.abs()).exp();
        return Complex128::new(1.0_f64.copysign(z.re), 4.0 * (z.im.sin() * z.im.cos()) * e);
    }
    let denominator = (2.0 * z.re).cosh() + (2.0 * z.im).cos();
    Complex128::new(
        (2.0 * z.re).sinh() / denominator,
        (2.0 * z.im).sin() / denominator,
    )
}

/// `base` to the power of `exponent`; one for exponent zero, zero for base zero.
pub fn complex_power(base: Complex128, exponent: Complex128) -> Complex128 {
    if exponent.re == 0.0 && exponent.im == 0.0 {
        return Complex128::new(1.0, 0.0);
    }
    if base.re == 0.0 && base.im == 0.0 {
        return Complex128::new(0.0, 0.0);
    }
    base.powc(exponent)
}
