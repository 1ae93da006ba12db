//! The regularized incomplete beta function, and the quantiles of the normal distribution.

use super::MOST_TERMS;

/// The regularized incomplete beta function. Not-a-number unless `a` and `b` are positive and `x` is in [0, 1].
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    let positive = |shape: f64| shape > 0.0 && shape.is_finite();
    if !positive(a) || !positive(b) || !(0.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let factor = (a * x.ln() + b * (-x).ln_1p() - log_beta).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        factor * beta_fraction(a, b, x) / a
    } else {
        1.0 - factor * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function (Lentz' method).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..MOST_TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h
}

/// The number below which a standard normal sample lies with probability `p`.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p < f64::MIN_POSITIVE {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -lower_quantile(1.0 - p);
    }
    lower_quantile(p)
}

/// A rational first guess (Abramowitz and Stegun 26.2.23), then Halley's iteration; `p` is at most 1/2.
fn lower_quantile(p: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    let t = (-2.0 * p.ln()).sqrt();
    let top = 2.515517 + t * (0.802853 + t * 0.010328);
    let bottom = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut x = top / bottom - t;
    for _ in 0..4 {
        let scaled = x * std::f64::consts::FRAC_1_SQRT_2;
        // Near the middle by the distance to it, which is exact.
        let error = if p > 0.25 {
            0.5 * libm::erf(scaled) + (0.5 - p)
        } else {
            0.5 * libm::erfc(-scaled) - p
        };
        let step = error * (2.0 * std::f64::consts::PI).sqrt() * (x * x / 2.0).exp();
        x -= step / (1.0 + x * step / 2.0);
    }
    x
}
