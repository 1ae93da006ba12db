//! The functions of `f64` and powers beside those of the system's library, which is within one unit in the last place,
//! literal values, and their bits at every level of the processor.
//!
//! A file of its own, and so a process of its own: a limit of the level holds for the whole process.

use ff_kernels::ThreadPool;
use ff_kernels::cpu::{self, Level};
use ff_kernels::elementwise::{binary, cost, unary};
use ff_kernels::math::Real;

/// The distance of two values in units in the last place of the second.
fn ulps(got: f64, exact: f64) -> f64 {
    if got == exact || (got.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    let magnitude = exact.abs().clamp(f64::MIN_POSITIVE, f64::MAX);
    let unit = magnitude - magnitude.next_down();
    let distance = (got - exact).abs() / unit;
    if distance.is_nan() {
        f64::INFINITY
    } else {
        distance
    }
}

const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MIN_POSITIVE,
    -5e-324,
    f64::MAX,
    f64::MIN,
    709.78,
    709.79,
    -745.13,
    -745.14,
    0.5,
    2.0,
    3.0,
    -3.0,
    1e-17,
];

/// Values over all exponents of both signs, many of medium size, and the special ones.
fn sweep() -> Vec<f64> {
    let mut values: Vec<f64> = (0..200_000_u64)
        .map(|i| f64::from_bits(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    values.extend((-200_000..200_000).map(|i| f64::from(i) * 1.003e-4));
    values.extend((-100_000..100_000).map(|i| f64::from(i) * 7.777e-3));
    values.extend((-20_000..20_000).map(|i| f64::from(i) * 5.003e-5));
    values.extend((-2_000..2_000).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_2));
    values.extend_from_slice(SPECIAL);
    values
}

fn check(name: &str, f: fn(f64) -> f64, exact: fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in sweep() {
        let error = ulps(f(x), exact(x));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    println!("{name}: {:.3} ulp at {:e}", worst.0, worst.1);
    assert!(worst.0 <= 4.0, "{name}: {} ulp at {:e}", worst.0, worst.1);
}

fn logistic(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

#[test]
fn within_four_units_in_the_last_place() {
    check("exp", Real::exponential, f64::exp);
    check("expm1", Real::exponential_minus_one, f64::exp_m1);
    check("log", Real::logarithm, f64::ln);
    check("log1p", Real::logarithm_plus_one, f64::ln_1p);
    check("tanh", Real::hyperbolic_tangent, f64::tanh);
    check("sigmoid", Real::logistic, logistic);
    check("erf", Real::error_function, libm::erf);
    check("sin", Real::sine, f64::sin);
    check("cos", Real::cosine, f64::cos);
    check("tan", Real::tangent, f64::tan);
    check("asin", Real::arc_sine, f64::asin);
    check("acos", Real::arc_cosine, f64::acos);
    check("atan", Real::arc_tangent, f64::atan);
    check("sinh", Real::hyperbolic_sine, f64::sinh);
    check("cosh", Real::hyperbolic_cosine, f64::cosh);
    check("asinh", Real::area_sine, libm::asinh);
    check("acosh", Real::area_cosine, |x| {
        if x < 1.0 { f64::NAN } else { libm::acosh(x) }
    });
    check("atanh", Real::area_tangent, libm::atanh);
}

#[test]
fn angles_of_points() {
    let sizes = [
        0.0,
        5e-324,
        1e-323,
        1e-310,
        1e-200,
        0.3,
        0.5,
        1.0,
        2.0,
        1e9,
        1e200,
        9e307,
        f64::MAX,
    ];
    let mut values: Vec<f64> = sizes.iter().flat_map(|&x| [x, -x]).collect();
    values.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    values.extend((-60..60).map(|i| f64::from(i) * 0.137));
    for &y in &values {
        for &x in &values {
            let (got, exact) = (y.arc_tangent2(x), y.atan2(x));
            assert!(ulps(got, exact) <= 3.0, "{y:e}, {x:e}: {got:e}, not {exact:e}");
            assert!(
                got.is_nan() || got.is_sign_negative() == exact.is_sign_negative(),
                "{y:e}, {x:e}"
            );
        }
    }
}

#[test]
fn powers() {
    let mut worst = (0.0, 0.0, 0.0);
    let mut test = |x: f64, y: f64| {
        let error = ulps(x.power(y), x.powf(y));
        if error > worst.0 {
            worst = (error, x, y);
        }
    };
    for &x in SPECIAL {
        for &y in SPECIAL {
            test(x, y);
            test(x, y + 0.5);
        }
    }
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    for _ in 0..400_000 {
        let (x, y) = (next() * 8.0 - 4.0, next() * 20.0 - 10.0);
        test(x.abs(), y);
        test(x, y.round());
        // Results all over the range.
        let x = (next() * 1400.0 - 700.0).exp();
        test(x, (next() * 1500.0 - 750.0) / x.ln());
        test(1.0 + (next() - 0.5) * 1e-3, (next() - 0.5) * 1e6);
    }
    println!("pow: {:.3} ulp at {:e}, {:e}", worst.0, worst.1, worst.2);
    assert!(worst.0 <= 3.0, "{worst:?}");
}

#[test]
fn powers_of_single_precision() {
    let values = SPECIAL.iter().map(|&x| x as f32);
    let values: Vec<f32> = values
        .chain((0..1500_u32).map(|i| f32::from_bits(i.wrapping_mul(0x9E37_79B9))))
        .chain((-100..100).map(|i| i as f32 * 0.25))
        .collect();
    for &x in &values {
        for &y in &values {
            let exact = f64::from(x).powf(f64::from(y)) as f32;
            let got = x.power(y);
            let near = got == exact
                || got.is_nan() && exact.is_nan()
                || got == exact.next_up()
                || got == exact.next_down();
            assert!(near, "{x:e} to the power of {y:e}: {got:e}, not {exact:e}");
            assert_eq!(
                got.is_sign_negative() && !got.is_nan(),
                exact.is_sign_negative() && !exact.is_nan()
            );
        }
    }
}

#[test]
fn special_values() {
    for zero in [0.0, -0.0_f64] {
        let keep: [fn(f64) -> f64; 11] = [
            Real::exponential_minus_one,
            Real::logarithm_plus_one,
            Real::hyperbolic_tangent,
            Real::error_function,
            Real::sine,
            Real::tangent,
            Real::arc_sine,
            Real::arc_tangent,
            Real::hyperbolic_sine,
            Real::area_sine,
            Real::area_tangent,
        ];
        for f in keep {
            assert_eq!(f(zero).to_bits(), zero.to_bits());
        }
    }
    // The cosine next to a quarter turn, to all digits.
    assert_eq!(std::f64::consts::FRAC_PI_2.cosine(), 6.123_233_995_736_766e-17);
    assert_eq!(Real::logarithm(5e-324), -744.440_071_921_381_2);
    assert!(f64::INFINITY.sine().is_nan());
    assert_eq!(1e300.sine(), 1e300_f64.sin());
}

#[test]
fn vector_lanes_have_the_bits_of_scalars() {
    let x = sweep();
    let y: Vec<f64> = x.iter().rev().copied().collect();
    let pool = ThreadPool::new(2);
    type Row = (&'static str, fn(&ThreadPool, &[f64], &mut [f64]), fn(f64) -> f64);
    macro_rules! rows {
        ($($name:ident),*) => { [$((
            stringify!($name),
            |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, |x| Real::$name(x)),
            Real::$name,
        )),*] };
    }
    let functions: [Row; 18] = rows!(
        exponential,
        exponential_minus_one,
        logarithm,
        logarithm_plus_one,
        hyperbolic_tangent,
        logistic,
        error_function,
        sine,
        cosine,
        tangent,
        arc_sine,
        arc_cosine,
        arc_tangent,
        hyperbolic_sine,
        hyperbolic_cosine,
        area_sine,
        area_cosine,
        area_tangent
    );
    for level in [Level::Avx512, Level::Avx2] {
        let _limit = cpu::limit(level);
        for (name, run, scalar) in functions {
            let mut out = vec![0.0; x.len()];
            run(&pool, &x, &mut out);
            let differs = x.iter().zip(&out).find(|&(&x, &y)| {
                let expected = scalar(x);
                y.to_bits() != expected.to_bits() && !(y.is_nan() && expected.is_nan())
            });
            assert!(differs.is_none(), "{name}, {level:?}: {differs:?}");
        }
        let mut out = vec![0.0; x.len()];
        binary(&pool, &x, &y, &mut out, cost::TRANSCENDENTAL, |x, y| x.power(y));
        for ((&x, &y), &got) in x.iter().zip(&y).zip(&out) {
            let expected = x.power(y);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(
                same,
                "{x:e} to the power of {y:e}, {level:?}: {got:e}, not {expected:e}"
            );
        }
    }
}
