//! Digamma, polygamma and Hurwitz' zeta function; the incomplete gamma functions and their derivatives by order.

use super::MOST_TERMS;

/// `(2k)! / B(2k)` for k from 1: Euler and Maclaurin's correction.
const MACLAURIN: [f64; 12] = [
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.892_437_580_318_379_2e9,
    7.472_424_96e10,
    -2.950_130_727_918_164e12,
    1.164_678_281_435_006_7e14,
    -4.597_978_722_407_473e15,
    1.815_210_540_194_354_7e17,
    -7.166_165_256_175_667e18,
];

/// `sum (q + k)^-x` over k from 0. Infinite at its pole; not-a-number for `x` below 1 and, unless `x` is an even
/// integer (then infinite), at non-positive integers `q`.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || q.is_nan() || x < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return if x.is_infinite() || (x == x.floor() && x % 2.0 == 0.0) {
                f64::INFINITY
            } else {
                f64::NAN
            };
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    if q.is_infinite() || (x.is_infinite() && q > 1.0) {
        return 0.0;
    }
    let mut sum = q.powf(-x);
    let mut a = q;
    let mut term = 0.0;
    let mut turns = 0;
    while turns < 9 || a <= 9.0 {
        turns += 1;
        a += 1.0;
        term = a.powf(-x);
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 2.0 || turns as usize > MOST_TERMS * 100 {
            return sum;
        }
    }
    sum += term * a / (x - 1.0);
    sum -= 0.5 * term;
    let (mut factor, mut k) = (1.0, 0.0);
    for divisor in MACLAURIN {
        factor *= x + k;
        term /= a;
        let correction = factor * term / divisor;
        sum += correction;
        if (correction / sum).abs() < f64::EPSILON / 2.0 {
            break;
        }
        k += 1.0;
        factor *= x + k;
        term /= a;
        k += 1.0;
    }
    sum
}

/// The derivative of the logarithm of the gamma function; not-a-number at its poles.
pub fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        let fraction = x - x.floor();
        return digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * fraction).tan();
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let terms = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, term| sum * z + term);
    let value = x.ln() - 0.5 / x - sum * z;
    if x.is_infinite() { x } else { value - shift }
}

/// The derivative of order `n + 1` of the logarithm of the gamma function, for whole `n`.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n != n.floor() {
        return f64::NAN;
    }
    if n == 0.0 {
        return digamma(x);
    }
    if n.is_infinite() && n > 0.0 && x.is_infinite() {
        return f64::NAN;
    }
    let factorial = libm::lgamma(n + 1.0).exp();
    let sign = if n.is_infinite() || (n + 1.0) % 2.0 == 0.0 {
        1.0
    } else {
        -1.0
    };
    if n < 0.0 {
        return f64::NAN;
    }
    sign * factorial * zeta(n + 1.0, x)
}

/// What the sums below give: the sum and its derivative by the order.
struct Sum {
    value: f64,
    derivative: f64,
}

/// `sum x^k / ((a+1) .. (a+k))`, so that the lower function is this times `x^a e^-x / Gamma(a+1)`.
fn lower_series(a: f64, x: f64) -> Sum {
    let (mut term, mut value) = (1.0, 1.0);
    let (mut slope, mut derivative) = (0.0, 0.0);
    for k in 1..MOST_TERMS {
        let order = a + k as f64;
        let ratio = x / order;
        slope = slope * ratio - term * ratio / order;
        term *= ratio;
        value += term;
        derivative += slope;
        if term <= f64::EPSILON / 4.0 * value && slope.abs() <= f64::EPSILON / 4.0 * derivative.abs() {
            break;
        }
    }
    Sum { value, derivative }
}

/// The continued fraction that the upper function is `x^a e^-x / Gamma(a)` times.
fn upper_fraction(a: f64, x: f64) -> Sum {
    const BIG: f64 = 4_503_599_627_370_496.0;
    let (mut c, mut y, mut z) = (0.0, 1.0 - a, x + 2.0 - a);
    let (mut p2, mut q2, mut p1, mut q1) = (1.0, x, x + 1.0, z * x);
    let (mut dp2, mut dq2, mut dp1, mut dq1) = (0.0, 0.0, 0.0, -x);
    let mut value = p1 / q1;
    let mut derivative = (dp1 - value * dq1) / q1;
    for _ in 0..MOST_TERMS {
        c += 1.0;
        y += 1.0;
        z += 2.0;
        let yc = y * c;
        let (p, q) = (p1 * z - p2 * yc, q1 * z - q2 * yc);
        let dp = dp1 * z - p1 - dp2 * yc + p2 * c;
        let dq = dq1 * z - q1 - dq2 * yc + q2 * c;
        let mut done = false;
        if q != 0.0 {
            let (before, slope_before) = (value, derivative);
            value = p / q;
            derivative = (dp - value * dq) / q;
            done = (value - before).abs() <= f64::EPSILON * value.abs()
                && (derivative - slope_before).abs() <= f64::EPSILON * derivative.abs();
        }
        (p2, p1, q2, q1) = (p1, p, q1, q);
        (dp2, dp1, dq2, dq1) = (dp1, dp, dq1, dq);
        if p.abs() > BIG {
            for number in [
                &mut p2, &mut p1, &mut q2, &mut q1, &mut dp2, &mut dp1, &mut dq2, &mut dq1,
            ] {
                *number /= BIG;
            }
        }
        if done {
            break;
        }
    }
    Sum { value, derivative }
}

/// `x^a e^-x / Gamma(order)`.
fn factor(a: f64, x: f64, order: f64) -> f64 {
    (a * x.ln() - x - libm::lgamma(order)).exp()
}

/// What does not depend on series: outside the domain, and where an argument is infinite.
fn outside(a: f64, x: f64, at_infinite_order: f64, at_infinity: f64) -> Option<f64> {
    if x.is_nan() || a.is_nan() || x < 0.0 || a <= 0.0 {
        return Some(f64::NAN);
    }
    if a.is_infinite() {
        return Some(at_infinite_order);
    }
    x.is_infinite().then_some(at_infinity)
}

/// The lower incomplete gamma function, over the gamma function.
pub fn igamma(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(value) = outside(a, x, 0.0, 1.0) {
        return value;
    }
    if x > 1.0 && x > a {
        return 1.0 - factor(a, x, a) * upper_fraction(a, x).value;
    }
    factor(a, x, a + 1.0) * lower_series(a, x).value
}

/// The upper incomplete gamma function, over the gamma function.
pub fn igammac(a: f64, x: f64) -> f64 {
    if let Some(value) = outside(a, x, if x.is_infinite() { 0.0 } else { 1.0 }, 0.0) {
        return value;
    }
    if x == 0.0 {
        return 1.0;
    }
    if x < 1.0 || x < a {
        return 1.0 - factor(a, x, a + 1.0) * lower_series(a, x).value;
    }
    factor(a, x, a) * upper_fraction(a, x).value
}

/// The derivative of [`igamma`] by `a`.
pub fn igamma_derivative(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(value) = outside(a, x, 0.0, -0.0) {
        return value;
    }
    if x > 1.0 && x > a {
        let sum = upper_fraction(a, x);
        return -factor(a, x, a) * (sum.derivative + sum.value * (x.ln() - digamma(a)));
    }
    let sum = lower_series(a, x);
    factor(a, x, a + 1.0) * (sum.derivative + sum.value * (x.ln() - digamma(a + 1.0)))
}

/// How a sample `x` of the gamma distribution with shape `a` changes with `a`.
pub fn gamma_sample_derivative(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(value) = outside(a, x, 0.0, -0.0) {
        return value;
    }
    if x > 1.0 && x > a {
        let sum = upper_fraction(a, x);
        return (sum.derivative + sum.value * (x.ln() - digamma(a))) * x;
    }
    let sum = lower_series(a, x);
    -(sum.derivative + sum.value * (x.ln() - digamma(a + 1.0))) * x / a
}
