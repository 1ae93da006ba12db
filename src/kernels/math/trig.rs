//! Sine and cosine, evaluated in `f64`: the reduction stays exact up to arguments of 1e9.

use super::coefficients::{COS, HALF_PI_HIGH, HALF_PI_LOW, ROUND_F64, SIN, TRIG_LARGE, TWO_OVER_PI};

/// Sine of `x` plus `quarter` quarter turns, for `|x| <= TRIG_LARGE`.
#[inline(always)]
fn quarter_turned(x: f32, quarter: u64) -> f32 {
    let x = f64::from(x);
    let shifted = x.mul_add(TWO_OVER_PI, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = n.mul_add(-HALF_PI_LOW, n.mul_add(-HALF_PI_HIGH, x));
    let t = r * r;
    let s = SIN[4]
        .mul_add(t, SIN[3])
        .mul_add(t, SIN[2])
        .mul_add(t, SIN[1])
        .mul_add(t, SIN[0]);
    // In this form the sine of a negative zero is one.
    let sine = r * t.mul_add(s, 1.0);
    let c = COS[5]
        .mul_add(t, COS[4])
        .mul_add(t, COS[3])
        .mul_add(t, COS[2])
        .mul_add(t, COS[1]);
    let cosine = c.mul_add(t, COS[0]).mul_add(t, 1.0);
    let turn = shifted.to_bits().wrapping_add(quarter);
    let y = if turn & 1 == 0 { sine } else { cosine };
    f64::from_bits(y.to_bits() ^ ((turn & 2) << 62)) as f32
}

/// The sine of `x` radians.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    if x.abs() > TRIG_LARGE || x.is_nan() {
        libm::sin(f64::from(x)) as f32
    } else {
        quarter_turned(x, 0)
    }
}

/// The cosine of `x` radians.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    if x.abs() > TRIG_LARGE || x.is_nan() {
        libm::cos(f64::from(x)) as f32
    } else {
        quarter_turned(x, 1)
    }
}
