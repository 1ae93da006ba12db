//! Logarithms.

use super::coefficients::{LN_2_HIGH, LN_2_LOW, LOG, LOG_FIRST_BITS};
use super::select;

/// `log(m 2^exponent_shift)` for a positive, finite, normal `m`, plus `correction`.
#[inline(always)]
fn log_normal(m: f32, exponent_shift: f32, correction: f32) -> f32 {
    let bits = m.to_bits().wrapping_sub(LOG_FIRST_BITS);
    let exponent = ((bits as i32) >> 23) as f32 + exponent_shift;
    let f = f32::from_bits((bits & 0x007f_ffff).wrapping_add(LOG_FIRST_BITS)) - 1.0;
    let p = LOG[7]
        .mul_add(f, LOG[6])
        .mul_add(f, LOG[5])
        .mul_add(f, LOG[4])
        .mul_add(f, LOG[3]);
    let p = p.mul_add(f, LOG[2]).mul_add(f, LOG[1]).mul_add(f, LOG[0]);
    let square = f * f;
    let low = exponent.mul_add(LN_2_LOW, square * (f * p)) + correction;
    let tail = square.mul_add(-0.5, low) + f;
    exponent.mul_add(LN_2_HIGH, tail)
}

/// Results for arguments outside of the positive finite numbers; `y` otherwise.
#[inline(always)]
fn special(x: f32, y: f32) -> f32 {
    let y = select(x == f32::INFINITY, x, y);
    let y = select(x == 0.0, f32::NEG_INFINITY, y);
    let y = select(x < 0.0, f32::NAN, y);
    select(x.is_nan(), x, y)
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let denormal = x < f32::MIN_POSITIVE;
    let scaled = select(denormal, x * 8_388_608.0, x);
    special(x, log_normal(scaled, select(denormal, -23.0, 0.0), 0.0))
}

/// `log(1 + x)`, accurate near zero.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    // What the rounding of the sum lost, relative to the sum.
    let lost = select(x < 1.0, x - (sum - 1.0), 1.0 - (sum - x));
    let y = special(sum, log_normal(sum, 0.0, lost / sum));
    let y = select(sum == f32::INFINITY, sum, y);
    let y = select(sum == 0.0, f32::NEG_INFINITY, y);
    select(x.abs() < 1e-10, x, y)
}
