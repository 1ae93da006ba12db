//! Bessel functions of orders 0 and 1: J and Y of the first and second kind, I and K modified.

use super::{MOST_TERMS, asymptotic, series};
use std::f64::consts::PI;

const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;
/// From here on the asymptotic series of I is exact to the last bits.
const LARGE: f64 = 30.0;

/// J of order 0; not-a-number at infinity.
pub fn bessel_j0(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j0(x) }
}

/// J of order 1; not-a-number at infinity.
pub fn bessel_j1(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j1(x) }
}

/// Y of order 0: minus infinity where `x` is not positive.
pub fn bessel_y0(x: f64) -> f64 {
    second_kind(x, libm::y0)
}

/// Y of order 1: minus infinity where `x` is not positive.
pub fn bessel_y1(x: f64) -> f64 {
    second_kind(x, libm::y1)
}

/// Numbers too small to be normal count as zero here, as on processors that are set so.
fn second_kind(x: f64, f: fn(f64) -> f64) -> f64 {
    if x < f64::MIN_POSITIVE {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        f64::NAN
    } else {
        f(x)
    }
}

/// `(x/2)^order sum (x^2/4)^k / (k! (k + order)!)`, for `x` that is not large.
fn i_series(x: f64, order: f64) -> f64 {
    let quarter = x * x / 4.0;
    let first = if order == 0.0 { 1.0 } else { x / 2.0 };
    series(first, |k| quarter / (k * (k + order)))
}

/// `sqrt(2 pi x) e^-x I(x)` for large `x`.
fn i_asymptotic(x: f64, order: f64) -> f64 {
    let square = 4.0 * order * order;
    asymptotic(1.0, |k| -(square - (2.0 * k - 1.0).powi(2)) / (8.0 * k * x))
}

fn i_scaled(x: f64, order: f64) -> f64 {
    let size = x.abs();
    if size.is_infinite() {
        return 0.0;
    }
    if size < LARGE {
        i_series(size, order) * (-size).exp()
    } else {
        i_asymptotic(size, order) / (2.0 * PI * size).sqrt()
    }
}

fn i_plain(x: f64, order: f64) -> f64 {
    let size = x.abs();
    if size.is_infinite() {
        return f64::NAN;
    }
    if size < LARGE {
        return i_series(size, order);
    }
    // In two steps, so that it overflows no sooner than its value.
    let root = (size / 2.0).exp();
    i_asymptotic(size, order) / (2.0 * PI * size).sqrt() * root * root
}

/// Modified, first kind, order 0; not-a-number at infinity.
pub fn bessel_i0(x: f64) -> f64 {
    i_plain(x, 0.0)
}

/// `e^-|x| I0(x)`.
pub fn bessel_i0e(x: f64) -> f64 {
    i_scaled(x, 0.0)
}

/// Modified, first kind, order 1; not-a-number at infinity.
pub fn bessel_i1(x: f64) -> f64 {
    i_plain(x, 1.0).copysign(x)
}

/// `e^-|x| I1(x)`.
pub fn bessel_i1e(x: f64) -> f64 {
    i_scaled(x, 1.0).copysign(x)
}

/// `e^x K0(x)` and `e^x K1(x)` for `x` of at least 2: Temme's continued fraction.
fn k_fraction(x: f64) -> (f64, f64) {
    let mut b = 2.0 * (1.0 + x);
    let mut d = 1.0 / b;
    let (mut h, mut step) = (d, d);
    let (mut q1, mut q2) = (0.0, 1.0);
    let first = 0.25;
    let (mut q, mut c, mut a) = (first, first, -first);
    let mut s = 1.0 + q * step;
    for i in 2..MOST_TERMS {
        let i = i as f64;
        a -= 2.0 * (i - 1.0);
        c = -a * c / i;
        let next = (q1 - b * q2) / a;
        (q1, q2) = (q2, next);
        q += c * next;
        b += 2.0;
        d = 1.0 / (b + a * d);
        step *= b * d - 1.0;
        h += step;
        let change = q * step;
        s += change;
        if (change / s).abs() < f64::EPSILON / 4.0 {
            break;
        }
    }
    h *= first;
    let k0 = (PI / (2.0 * x)).sqrt() / s;
    (k0, k0 * (x + 0.5 - h) / x)
}

/// `K0(x)` for small `x`.
fn k0_series(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut harmonic, mut sum) = (1.0, 0.0, 0.0);
    for k in 1..100 {
        let k = f64::from(k);
        term *= quarter / (k * k);
        harmonic += 1.0 / k;
        sum += term * harmonic;
    }
    -((x / 2.0).ln() + EULER_GAMMA) * i_series(x, 0.0) + sum
}

/// `K1(x)` for small `x`.
fn k1_series(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut digammas, mut sum) = (1.0, 1.0 - 2.0 * EULER_GAMMA, 0.0);
    for k in 1..100 {
        sum += term * digammas;
        let k = f64::from(k);
        term *= quarter / (k * (k + 1.0));
        digammas += 1.0 / k + 1.0 / (k + 1.0);
    }
    (x / 2.0).ln() * i_series(x, 1.0) + 1.0 / x - x / 4.0 * sum
}

/// K of either order, with the factor `e^x` or without; infinite where `x` is not positive.
fn k(x: f64, order: usize, scaled: bool) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < f64::MIN_POSITIVE {
        return f64::INFINITY;
    }
    if x.is_infinite() {
        return 0.0;
    }
    if x <= 2.0 {
        let value = if order == 0 { k0_series(x) } else { k1_series(x) };
        return if scaled { value * x.exp() } else { value };
    }
    let (k0, k1) = k_fraction(x);
    let value = if order == 0 { k0 } else { k1 };
    if scaled { value } else { value * (-x).exp() }
}

/// Modified, second kind, order 0.
pub fn bessel_k0(x: f64) -> f64 {
    k(x, 0, false)
}

/// `e^x K0(x)`.
pub fn bessel_k0e(x: f64) -> f64 {
    k(x, 0, true)
}

/// Modified, second kind, order 1.
pub fn bessel_k1(x: f64) -> f64 {
    k(x, 1, false)
}

/// `e^x K1(x)`.
pub fn bessel_k1e(x: f64) -> f64 {
    k(x, 1, true)
}
