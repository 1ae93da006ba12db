//! Hyperbolic functions and their inverses.

use super::super::coefficients::double::LN_2;
use super::{Arithmetic, exp, expm1, log1p};

/// Above this a hyperbolic sine is half of an exponential.
const HALF_EXP: f64 = 40.0;
/// Above this 1 is nothing beside a number.
const NO_ONE: f64 = 18_014_398_509_481_984.0;

/// Half of an exponential that may be too large for a number.
#[inline(always)]
fn half_exp<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let half = a.number(0.5);
    let root = exp(a, a.mul(x, half));
    a.mul(a.mul(half, root), root)
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let size = a.abs(x);
    let t = expm1(a, size);
    let sum = a.add(t, a.div(t, a.add(t, a.number(1.0))));
    let large = a.less(a.number(HALF_EXP), size);
    let y = a.choose(large, half_exp(a, size), a.mul(a.number(0.5), sum));
    a.copysign(y, x)
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (size, half) = (a.abs(x), a.number(0.5));
    let e = exp(a, size);
    let large = a.less(a.number(HALF_EXP), size);
    a.choose(large, half_exp(a, size), a.fma(half, e, a.div(half, e)))
}

/// The logarithm of `1 + x`, plus `ln 2` where `large`.
#[inline(always)]
fn log1p_plus<A: Arithmetic>(a: A, x: A::F, large: A::B) -> A::F {
    let more = a.choose(large, a.number(LN_2), a.number(0.0));
    a.add(log1p(a, x), more)
}

/// The inverse of [`sinh`].
#[inline(always)]
pub fn asinh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (size, one) = (a.abs(x), a.number(1.0));
    let large = a.less(a.number(NO_ONE), size);
    let square = a.mul(size, size);
    let root = a.sqrt(a.add(square, one));
    let less_one = a.add(size, a.div(square, a.add(one, root)));
    let y = log1p_plus(a, a.choose(large, size, less_one), large);
    a.copysign(y, x)
}

/// The inverse of [`cosh`]; not-a-number below one.
#[inline(always)]
pub fn acosh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let one = a.number(1.0);
    let large = a.less(a.number(NO_ONE), x);
    let t = a.sub(x, one);
    let root = a.sqrt(a.fma(t, t, a.add(t, t)));
    let y = log1p_plus(a, a.choose(large, x, a.add(t, root)), large);
    a.choose(a.less(x, one), a.number(f64::NAN), y)
}

/// The inverse of the hyperbolic tangent; not-a-number beyond one.
#[inline(always)]
pub fn atanh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (size, one) = (a.abs(x), a.number(1.0));
    let y = log1p(a, a.div(a.add(size, size), a.sub(one, size)));
    let y = a.choose(a.less(one, size), a.number(f64::NAN), y);
    a.copysign(a.mul(a.number(0.5), y), x)
}
