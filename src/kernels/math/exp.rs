//! The exponential and what is made of it.

use super::coefficients::{EXP, EXP_HIGHEST, EXP_LOWEST, LN_2_HIGH, LN_2_LOW, LOG2_E, ROUND};
use super::select;

/// `x` as `n ln 2 + r`: returns `exp(r) - 1` and the two powers of two whose product is `2^n`.
#[inline(always)]
fn reduce(x: f32) -> (f32, f32, f32) {
    let x = select(x < EXP_LOWEST, EXP_LOWEST, x);
    let x = select(x > EXP_HIGHEST, EXP_HIGHEST, x);
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let p = EXP[5]
        .mul_add(r, EXP[4])
        .mul_add(r, EXP[3])
        .mul_add(r, EXP[2])
        .mul_add(r, EXP[1]);
    let p = p.mul_add(r, EXP[0]);
    let q = (r * r).mul_add(p, r);
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    (q, power_of_two(half), power_of_two(n.wrapping_sub(half)))
}

/// `2^n` for `-126 <= n <= 127`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (q, first, second) = reduce(x);
    let y = q.mul_add(first, first) * second;
    select(x.is_nan(), x, y)
}

/// `e^x - 1`, accurate near zero.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (q, first, second) = reduce(x);
    // 1 / second is a power of two: exact.
    let y = q.mul_add(first, first - 1.0 / second) * second;
    let tiny = x.abs() < 1e-10;
    select(x.is_nan() | tiny, x, y)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let y = select(x < 0.0, e, 1.0) / (1.0 + e);
    select(x.is_nan(), x, y)
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let bounded = select(magnitude > 10.0, 10.0, magnitude);
    let e = expm1(2.0 * bounded);
    let y = (e / (e + 2.0)).copysign(x);
    select(x.is_nan(), x, y)
}
