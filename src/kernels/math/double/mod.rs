//! Functions of double precision, and powers: branch-free, within 4 units in the last place of the mathematical value,
//! denormals included. Written over [`Arithmetic`]: the evaluator computes them, `ff-codegen` makes code of them.
//!
//! Sine, cosine and tangent are right up to [`TRIG_LARGE`]; beyond it, ask somebody else.

mod hyperbolic;
mod inverse;

pub use hyperbolic::{acosh, asinh, atanh, cosh, sinh};
pub use inverse::{acos, asin, atan, atan2};

use super::arithmetic::Arithmetic;
use super::coefficients::double::*;
use super::coefficients::{ROUND_F64, TRIG_LARGE, TWO_OVER_PI};

/// `c[0] + c[1] x + ..`, by multiply-adds from the last coefficient on.
#[inline(always)]
fn polynomial<A: Arithmetic>(a: A, coefficients: &[f64], x: A::F) -> A::F {
    let last = coefficients.len() - 1;
    let mut sum = a.number(coefficients[last]);
    for &coefficient in coefficients[..last].iter().rev() {
        sum = a.fma(sum, x, a.number(coefficient));
    }
    sum
}

/// The smaller one of `x` and a bound; `x` where it is not a number.
#[inline(always)]
fn at_most<A: Arithmetic>(a: A, x: A::F, bound: f64) -> A::F {
    let bound = a.number(bound);
    a.choose(a.less(bound, x), bound, x)
}

/// An exponential: `exp(r) - 1`, and the exponents of two powers of two whose product scales it, in the form that
/// [`power_of_two`] takes.
struct Exponential<A: Arithmetic>(A::F, A::I, A::I);

/// `x + rest` as `n ln 2 + r`, where `rest` is small beside `x`.
#[inline(always)]
fn reduce<A: Arithmetic>(a: A, x: A::F, rest: Option<A::F>) -> Exponential<A> {
    let lowest = a.number(EXP_LOWEST);
    let x = at_most(a, a.choose(a.less(x, lowest), lowest, x), EXP_HIGHEST);
    let round = a.number(ROUND_F64);
    let shifted = a.fma(x, a.number(std::f64::consts::LOG2_E), round);
    let n = a.sub(shifted, round);
    let high = a.fma(n, a.number(-LN_2), x);
    let mut r = a.fma(n, a.number(-LN_2_REST), high);
    if let Some(rest) = rest {
        r = a.add(r, rest);
    }
    let q = a.fma(a.mul(r, r), polynomial(a, &EXP, r), r);
    let half = a.bits(a.fma(n, a.number(0.5), round));
    let other = a.minus(a.bits(shifted), half);
    let bias = a.integer(1023);
    Exponential(q, a.plus(half, bias), a.plus(other, bias))
}

/// The power of two with a biased exponent, of which the low 11 bits count.
#[inline(always)]
fn power_of_two<A: Arithmetic>(a: A, exponent: A::I) -> A::F {
    a.of_bits(a.up(exponent, 52))
}

#[inline(always)]
fn scaled<A: Arithmetic>(a: A, Exponential(q, first, second): Exponential<A>) -> A::F {
    let first = power_of_two(a, first);
    a.mul(a.fma(q, first, first), power_of_two(a, second))
}

/// `e^x`.
#[inline(always)]
pub fn exp<A: Arithmetic>(a: A, x: A::F) -> A::F {
    scaled(a, reduce(a, x, None))
}

/// `e^x - 1`, accurate near zero.
#[inline(always)]
pub fn expm1<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let Exponential(q, first, second) = reduce(a, x, None);
    let first = power_of_two(a, first);
    let inverse = power_of_two(a, a.minus(a.integer(2046), second));
    let y = a.mul(a.fma(q, first, a.sub(first, inverse)), power_of_two(a, second));
    let tiny = a.less(a.abs(x), a.number(TINY));
    a.choose(tiny, x, y)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let one = a.number(1.0);
    let e = exp(a, a.neg(a.abs(x)));
    let top = a.choose(a.less(x, a.number(0.0)), e, one);
    a.div(top, a.add(one, e))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let two = a.number(2.0);
    let e = expm1(a, a.mul(two, at_most(a, a.abs(x), 20.0)));
    a.copysign(a.div(e, a.add(e, two)), x)
}

/// `m 2^k` for a positive number: `k`, and `m` between the square roots of 1/2 and 2.
#[inline(always)]
fn split<A: Arithmetic>(a: A, x: A::F) -> (A::F, A::F) {
    let denormal = a.less(x, a.number(f64::MIN_POSITIVE));
    let x = a.choose(denormal, a.mul(x, a.number(18_014_398_509_481_984.0)), x);
    let shift = a.choose(denormal, a.number(54.0), a.number(0.0));
    let first = a.integer(LOG_FIRST_BITS);
    // The exponent plus 1024, which has a sign bit of zero, in the low bits of 2^52.
    let bits = a.plus(a.minus(a.bits(x), first), a.integer(1024 << 52));
    let exponent = a.of_bits(a.plus(a.down(bits, 52), a.integer(0x433 << 52)));
    let exponent = a.sub(a.sub(exponent, a.number(4_503_599_627_371_520.0)), shift);
    let mantissa = a.plus(a.mask(bits, a.integer((1 << 52) - 1)), first);
    (exponent, a.of_bits(mantissa))
}

/// The logarithm of a positive finite number, plus a small one.
#[inline(always)]
fn log_finite<A: Arithmetic>(a: A, x: A::F, more: A::F) -> A::F {
    let (k, m) = split(a, x);
    let f = a.sub(m, a.number(1.0));
    let s = a.div(f, a.add(a.number(2.0), f));
    let z = a.mul(s, s);
    let tail = a.mul(s, a.sub(f, a.mul(z, polynomial(a, &LOG, z))));
    let low = a.fma(k, a.number(LN_2_REST), more);
    a.fma(k, a.number(LN_2), a.sub(f, a.sub(tail, low)))
}

/// What logarithms are outside of the positive finite numbers; `y` otherwise.
#[inline(always)]
fn log_special<A: Arithmetic>(a: A, x: A::F, y: A::F) -> A::F {
    let (zero, infinity) = (a.number(0.0), a.number(f64::INFINITY));
    let y = a.choose(a.less(x, infinity), y, x);
    let y = a.choose(a.equal(x, zero), a.number(f64::NEG_INFINITY), y);
    a.choose(a.less(x, zero), a.number(f64::NAN), y)
}

/// The natural logarithm.
#[inline(always)]
pub fn log<A: Arithmetic>(a: A, x: A::F) -> A::F {
    log_special(a, x, log_finite(a, x, a.number(0.0)))
}

/// `log(1 + x)`, accurate near zero.
#[inline(always)]
pub fn log1p<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let one = a.number(1.0);
    let sum = a.add(one, x);
    // What the rounding of the sum lost.
    let small = a.sub(x, a.sub(sum, one));
    let large = a.sub(one, a.sub(sum, x));
    let lost = a.choose(a.less(x, one), small, large);
    let y = log_special(a, sum, log_finite(a, sum, a.div(lost, sum)));
    let tiny = a.less(a.abs(x), a.number(TINY));
    a.choose(tiny, x, y)
}

/// The error function.
#[inline(always)]
pub fn erf<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let size = at_most(a, a.abs(x), ERF_ONE);
    let small = a.fma(polynomial(a, &ERF_SMALL, a.mul(size, size)), size, size);
    let exponent = a.sub(polynomial(a, &ERF_LARGE, size), size);
    let one = a.number(1.0);
    let large = a.sub(one, exp(a, exponent));
    a.copysign(a.choose(a.less(size, one), small, large), x)
}

/// Sine and cosine of what `x` is beyond the nearest number of quarter turns; the number is in the low bits.
#[inline(always)]
fn beyond_quarters<A: Arithmetic>(a: A, x: A::F) -> (A::F, A::F, A::I) {
    let round = a.number(ROUND_F64);
    let shifted = a.fma(x, a.number(TWO_OVER_PI), round);
    let n = a.sub(shifted, round);
    let mut r = x;
    for part in HALF_PI {
        r = a.fma(n, a.number(-part), r);
    }
    let t = a.mul(r, r);
    let one = a.number(1.0);
    // In this form the sine of a negative zero is one.
    let sine = a.mul(r, a.fma(t, polynomial(a, &SIN, t), one));
    let cosine = a.fma(polynomial(a, &COS, t), t, a.number(-0.5));
    (sine, a.fma(cosine, t, one), a.bits(shifted))
}

/// Sine of `x` plus so many quarter turns, where [`is_trig_large`] says that it is not too large.
#[inline(always)]
pub fn quarter_turned<A: Arithmetic>(a: A, x: A::F, quarter: i64) -> A::F {
    let (sine, cosine, quarters) = beyond_quarters(a, x);
    let turn = a.plus(quarters, a.integer(quarter));
    let even = a.is_zero(a.mask(turn, a.integer(1)));
    let sign = a.up(a.mask(turn, a.integer(2)), 62);
    a.of_bits(a.flip(a.bits(a.choose(even, sine, cosine)), sign))
}

/// The tangent, where [`is_trig_large`] says that it is not too large.
#[inline(always)]
pub fn tan<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (sine, cosine, quarters) = beyond_quarters(a, x);
    let even = a.is_zero(a.mask(quarters, a.integer(1)));
    let top = a.choose(even, sine, a.neg(cosine));
    a.div(top, a.choose(even, cosine, sine))
}

/// Where an argument is beyond what [`quarter_turned`] and [`tan`] reduce, or not a number.
#[inline(always)]
pub fn is_trig_large<A: Arithmetic>(a: A, x: A::F) -> A::B {
    a.not(a.less(a.abs(x), a.number(f64::from(TRIG_LARGE))))
}

/// The logarithm of a positive finite number as the sum of two, right to 65 bits.
#[inline(always)]
fn log_pair<A: Arithmetic>(a: A, x: A::F) -> (A::F, A::F) {
    let (k, m) = split(a, x);
    let one = a.number(1.0);
    let f = a.sub(m, one);
    let u = a.add(m, one);
    let u_rest = a.sub(m, a.sub(u, one));
    let inverse = a.div(one, u);
    // s + s_rest = f / (2 + f), of which the logarithm is twice the inverse hyperbolic tangent.
    let s = a.mul(f, inverse);
    let left = a.fma(a.neg(s), u_rest, a.fma(a.neg(s), u, f));
    let s_rest = a.mul(left, inverse);
    let z = a.mul(s, s);
    let z_rest = a.fma(a.add(s, s), s_rest, a.fma(s, s, a.neg(z)));
    // The series after its first term: z (1/3 + z (1/5 + ..)).
    let q = a.mul(z, polynomial(a, &POWER_LOG, z));
    let p = a.add(a.number(THIRD), q);
    let p_rest = a.add(a.sub(q, a.sub(p, a.number(THIRD))), a.number(THIRD_REST));
    let t = a.mul(z, p);
    let t_rest = a.fma(z, p_rest, a.fma(z_rest, p, a.fma(z, p, a.neg(t))));
    let r = a.mul(s, t);
    let r_rest = a.fma(s, t_rest, a.fma(s_rest, t, a.fma(s, t, a.neg(r))));
    let half = a.add(s, r);
    let half_rest = a.add(a.sub(r, a.sub(half, s)), a.add(s_rest, r_rest));
    let twice = a.add(half, half);
    let shift = a.mul(k, a.number(LN_2));
    let shift_rest = a.fma(k, a.number(LN_2_REST), a.fma(k, a.number(LN_2), a.neg(shift)));
    let sum = a.add(shift, twice);
    let rest = a.add(shift_rest, a.add(half_rest, half_rest));
    (sum, a.add(a.sub(twice, a.sub(sum, shift)), rest))
}

/// `x` to the power of `y`, as C defines it.
#[inline(always)]
pub fn pow<A: Arithmetic>(a: A, x: A::F, y: A::F) -> A::F {
    let (high, low) = log_pair(a, a.abs(x));
    let high = log_special(a, a.abs(x), high);
    let exponent = a.mul(y, high);
    let rest = a.fma(y, low, a.fma(y, high, a.neg(exponent)));
    let small = a.less(a.abs(exponent), a.number(800.0));
    let rest = a.choose(small, rest, a.number(0.0));
    let size = scaled(a, reduce(a, exponent, Some(rest)));
    power_special(a, x, y, size)
}

/// `x` to the power of `y` where both and the result are of single precision: some 45 bits are right.
#[inline(always)]
pub fn pow_single<A: Arithmetic>(a: A, x: A::F, y: A::F) -> A::F {
    let size = exp(a, a.mul(y, log(a, a.abs(x))));
    power_special(a, x, y, size)
}

/// The power, given that of the magnitude of `x` where that is neither one nor met by an exponent of zero.
#[inline(always)]
fn power_special<A: Arithmetic>(a: A, x: A::F, y: A::F, size: A::F) -> A::F {
    let (zero, one) = (a.number(0.0), a.number(1.0));
    let size = a.choose(a.equal(a.abs(x), one), one, size);
    let whole = a.equal(a.floor(y), y);
    let half = a.mul(y, a.number(0.5));
    let odd = a.both(whole, a.not(a.equal(a.floor(half), half)));
    let z = a.choose(odd, a.copysign(size, x), size);
    let negative = a.both(a.less(x, zero), a.less(a.number(f64::NEG_INFINITY), x));
    let z = a.choose(a.both(negative, a.not(whole)), a.number(f64::NAN), z);
    let z = a.choose(a.equal(x, x), z, x);
    let z = a.choose(a.equal(y, zero), one, z);
    a.choose(a.equal(x, one), one, z)
}
