//! Inverses of the trigonometric functions.

use super::super::coefficients::double::{ASIN, ATAN, HALF_PI};
use super::{Arithmetic, polynomial};

const QUARTER_PI: f64 = std::f64::consts::FRAC_PI_4;
const QUARTER_PI_REST: f64 = HALF_PI[1] / 2.0;
/// The tangents of an eighth and of three eighths of pi.
const EIGHTH: f64 = std::f64::consts::SQRT_2 - 1.0;
const THREE_EIGHTHS: f64 = std::f64::consts::SQRT_2 + 1.0;

/// The inverse tangent of `top / bottom`, which is at most [`EIGHTH`], plus so many eighths of a turn.
#[inline(always)]
fn turned<A: Arithmetic>(a: A, y: A::F, eighths: A::F) -> A::F {
    let rest = a.fma(eighths, a.number(QUARTER_PI_REST), y);
    a.fma(eighths, a.number(QUARTER_PI), rest)
}

/// The inverse tangent of a number of at most [`EIGHTH`].
#[inline(always)]
fn small<A: Arithmetic>(a: A, y: A::F) -> A::F {
    let z = a.mul(y, y);
    a.fma(a.mul(y, z), polynomial(a, &ATAN, z), y)
}

/// The inverse tangent.
#[inline(always)]
pub fn atan<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (size, one) = (a.abs(x), a.number(1.0));
    let large = a.less(a.number(THREE_EIGHTHS), size);
    let medium = a.less(a.number(EIGHTH), size);
    let either = |large_value, medium_value, small_value| {
        a.choose(large, large_value, a.choose(medium, medium_value, small_value))
    };
    let top = either(a.number(-1.0), a.sub(size, one), size);
    let bottom = either(size, a.add(size, one), one);
    let eighths = either(a.number(2.0), one, a.number(0.0));
    a.copysign(turned(a, small(a, a.div(top, bottom)), eighths), x)
}

/// The angle of the point (`x`, `y`).
#[inline(always)]
pub fn atan2<A: Arithmetic>(a: A, y: A::F, x: A::F) -> A::F {
    let (zero, one) = (a.number(0.0), a.number(1.0));
    let (height, width) = (a.abs(y), a.abs(x));
    let steep = a.less(width, height);
    let high = a.choose(steep, height, width);
    let low = a.choose(steep, width, height);
    // Sums of large numbers stay finite, and products of small ones exact.
    let scale = a.choose(a.less(a.number(1e300), high), a.number(0.5_f64.powi(4)), one);
    let scale = a.choose(a.less(high, a.number(1e-290)), a.number(2.0_f64.powi(60)), scale);
    let (low, high) = (a.mul(low, scale), a.mul(high, scale));
    let some = a.less(zero, high);
    let same = a.both(a.equal(low, high), some);
    let (low, high) = (a.choose(same, one, low), a.choose(same, one, high));
    let medium = a.less(a.mul(high, a.number(EIGHTH)), low);
    let top = a.choose(medium, a.sub(low, high), low);
    let bottom = a.choose(medium, a.add(low, high), high);
    let bottom = a.choose(a.equal(high, zero), one, bottom);
    let angle = small(a, a.div(top, bottom));
    let eighths = a.choose(medium, one, zero);
    // Mirrored at the diagonal, then at the vertical axis.
    let mirrored = |mirror, (angle, eighths), all: f64| {
        let other = a.sub(a.number(all), eighths);
        (
            a.choose(mirror, a.neg(angle), angle),
            a.choose(mirror, other, eighths),
        )
    };
    let left = a.less(a.copysign(one, x), zero);
    let (angle, eighths) = mirrored(left, mirrored(steep, (angle, eighths), 2.0), 4.0);
    a.copysign(turned(a, angle, eighths), y)
}

/// For a magnitude of at most one: whether it is above 1/2, and `s` and `t` such that the inverse sine is `s + t`, or
/// for those above, a quarter turn less `2 (s + t)`.
#[inline(always)]
fn halves<A: Arithmetic>(a: A, size: A::F) -> (A::B, A::F, A::F) {
    let half = a.number(0.5);
    let above = a.less(half, size);
    let z = a.choose(above, a.mul(a.sub(a.number(1.0), size), half), a.mul(size, size));
    let s = a.choose(above, a.sqrt(z), size);
    (above, s, a.mul(a.mul(s, z), polynomial(a, &ASIN, z)))
}

/// The inverse sine; not-a-number beyond one.
#[inline(always)]
pub fn asin<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (above, s, t) = halves(a, a.abs(x));
    let twice = a.add(a.add(s, s), a.sub(a.add(t, t), a.number(HALF_PI[1])));
    let y = a.choose(above, a.sub(a.number(HALF_PI[0]), twice), a.add(s, t));
    a.copysign(y, x)
}

/// The inverse cosine; not-a-number beyond one.
#[inline(always)]
pub fn acos<A: Arithmetic>(a: A, x: A::F) -> A::F {
    let (above, s, t) = halves(a, a.abs(x));
    let negative = a.less(x, a.number(0.0));
    let twice = a.mul(a.number(2.0), a.add(s, t));
    let rest = a.sub(twice, a.number(2.0 * HALF_PI[1]));
    let mirrored = a.sub(a.number(2.0 * HALF_PI[0]), rest);
    let large = a.choose(negative, mirrored, twice);
    let signed = a.copysign(t, x);
    let near = a.sub(x, a.sub(a.number(HALF_PI[1]), signed));
    a.choose(above, large, a.sub(a.number(HALF_PI[0]), near))
}
