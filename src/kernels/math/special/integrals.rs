//! Dawson's integral, the exponential integral, Fresnel's integrals and Spence's function.

use super::{MOST_TERMS, asymptotic};
use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, PI};

/// `e^-x^2` times the integral of `e^t^2` from 0 to `x`.
pub fn dawson(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() {
        return x;
    }
    let square = size * size;
    let value = if size < 7.0 {
        let (mut power, mut sum) = (size, size);
        for k in 1..MOST_TERMS {
            let k = k as f64;
            power *= square / k;
            let next = sum + power / (2.0 * k + 1.0);
            if next == sum {
                break;
            }
            sum = next;
        }
        sum * (-square).exp()
    } else {
        asymptotic(0.5 / size, |k| (2.0 * k - 1.0) / (2.0 * square))
    };
    value.copysign(x)
}

/// The principal value of the integral of `e^t / t` up to `x`: not-a-number where `x` is negative or infinite.
pub fn exponential_integral(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 || x.is_infinite() {
        return f64::NAN;
    }
    if x < f64::MIN_POSITIVE {
        return f64::NEG_INFINITY;
    }
    if x >= 40.0 {
        let root = (x / 2.0).exp();
        return asymptotic(1.0 / x, |k| k / x) * root * root;
    }
    let (mut power, mut sum) = (1.0, 0.0);
    for k in 1..MOST_TERMS {
        let k = k as f64;
        power *= x / k;
        let next = sum + power / k;
        if next == sum {
            break;
        }
        sum = next;
    }
    0.577_215_664_901_532_9 + x.ln() + sum
}

/// The integrals from 0 to `x` of `cos(pi t^2 / 2)` and of `sin(pi t^2 / 2)`.
pub fn fresnel(x: f64) -> (f64, f64) {
    let size = x.abs();
    if size.is_nan() {
        return (x, x);
    }
    let (cosine, sine) = if size > 36974.0 {
        (0.5, 0.5)
    } else if size < 1.5 {
        let turn = FRAC_PI_2 * size * size;
        let square = turn * turn;
        let c = alternating(
            size,
            |k| square / ((2.0 * k - 1.0) * (2.0 * k)),
            |k| 4.0 * k + 1.0,
        );
        let s = alternating(
            size * turn,
            |k| square / ((2.0 * k) * (2.0 * k + 1.0)),
            |k| 4.0 * k + 3.0,
        );
        (c, s)
    } else {
        fresnel_fraction(size)
    };
    (cosine.copysign(x), sine.copysign(x))
}

/// `sum (-1)^k term(k) / divisor(k)` where each term follows from the one before by a ratio.
fn alternating(first: f64, ratio: impl Fn(f64) -> f64, divisor: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first / divisor(0.0));
    for k in 1..MOST_TERMS {
        let k = k as f64;
        term *= -ratio(k);
        let next = sum + term / divisor(k);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// By the continued fraction of the complementary error function of a complex argument (Lentz' method).
fn fresnel_fraction(x: f64) -> (f64, f64) {
    let turn = PI * x * x;
    let one = Complex64::new(1.0, 0.0);
    let mut b = Complex64::new(1.0, -turn);
    let mut c = Complex64::new(1e300, 0.0);
    let mut d = one / b;
    let mut h = d;
    let mut n = -1.0;
    for _ in 2..MOST_TERMS {
        n += 2.0;
        let a = -n * (n + 1.0);
        b += 4.0;
        d = one / (d * a + b);
        c = b + Complex64::new(a, 0.0) / c;
        let step = c * d;
        h *= step;
        if (step.re - 1.0).abs() + step.im.abs() < f64::EPSILON {
            break;
        }
    }
    h *= Complex64::new(x, -x);
    let half = turn / 2.0;
    let both = Complex64::new(0.5, 0.5) * (one - Complex64::new(half.cos(), half.sin()) * h);
    (both.re, both.im)
}

/// `-integral from 1 to x of log(t) / (t - 1)`, the dilogarithm of `1 - x`; not-a-number where `x` is negative.
pub fn spence(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 || x.is_infinite() {
        return f64::NAN;
    }
    if x < f64::MIN_POSITIVE {
        return PI * PI / 6.0;
    }
    // The dilogarithm of -w, for w of at most 1/2.
    let near = |w: f64| {
        let (mut power, mut sum) = (1.0, 0.0);
        for k in 1..MOST_TERMS {
            power *= -w;
            let next = sum + power / (k * k) as f64;
            if next == sum {
                break;
            }
            sum = next;
        }
        sum
    };
    if x > 1.5 {
        let (log, inverse) = (x.ln(), 1.0 / x);
        let value = if x > 2.0 {
            // Of the inverse, which is below 1/2.
            PI * PI / 6.0 - inverse.ln() * (-inverse).ln_1p() - near(-inverse)
        } else {
            near(inverse - 1.0)
        };
        return -0.5 * log * log - value;
    }
    if x < 0.5 {
        return PI * PI / 6.0 - x.ln() * (-x).ln_1p() - near(-x);
    }
    near(x - 1.0)
}
