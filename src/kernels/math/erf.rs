//! The error function.

use super::coefficients::{ERF_LARGE as L, ERF_ONE, ERF_SMALL as S, ERF_SPLIT};
use super::{exp, select};

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = a * a;
    let s = S[6]
        .mul_add(t, S[5])
        .mul_add(t, S[4])
        .mul_add(t, S[3])
        .mul_add(t, S[2])
        .mul_add(t, S[1]);
    let small = s.mul_add(t, S[0]).mul_add(a, a);
    let l = L[7]
        .mul_add(a, L[6])
        .mul_add(a, L[5])
        .mul_add(a, L[4])
        .mul_add(a, L[3])
        .mul_add(a, L[2]);
    let large = 1.0 - exp(l.mul_add(a, L[1]).mul_add(a, L[0]) - a);
    let y = select(a < ERF_SPLIT, small, select(a < ERF_ONE, large, 1.0));
    select(x.is_nan(), x, y.copysign(x))
}

/// `1 - erf(x)` without cancellation.
pub fn erfc(x: f32) -> f32 {
    libm::erfc(f64::from(x)) as f32
}
