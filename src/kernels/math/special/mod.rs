//! Special functions of double precision: Bessel, gamma and zeta functions, probability and other integrals.
//!
//! By power series where all terms have one sign or hardly cancel, by asymptotic series and continued fractions
//! elsewhere: within some 1e-13 of the value, relative to the larger of it and the largest term. Poles and arguments
//! outside a function's domain give what TensorFlow gives (infinite or not-a-number), never a panic or an endless loop.

mod bessel;
mod gamma;
mod integrals;
mod probability;

pub use bessel::{
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1,
    bessel_k1e, bessel_y0, bessel_y1,
};
pub use gamma::{digamma, gamma_sample_derivative, igamma, igamma_derivative, igammac, polygamma, zeta};
pub use integrals::{dawson, exponential_integral, fresnel, spence};
pub use probability::{betainc, normal_quantile};

/// Terms after which a series or a fraction is taken as it is.
const MOST_TERMS: usize = 10_000;

/// The sum of `term, term * ratio(1), term * ratio(1) * ratio(2), ..` until it does not change.
fn series(first: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first);
    for k in 1..MOST_TERMS {
        term *= ratio(k as f64);
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// As [`series`], but stops before the terms grow: the sum of an asymptotic series.
fn asymptotic(first: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first);
    for k in 1..MOST_TERMS {
        let next = term * ratio(k as f64);
        if next.abs() >= term.abs() || sum + next == sum {
            break;
        }
        term = next;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests;
