//! The vectorised functions of `f32` beside those of `f64`, and their bits at every level of the processor.
//!
//! A file of its own, and so a process of its own: a limit of the level holds for the whole process.

use ff_kernels::ThreadPool;
use ff_kernels::cpu::{self, Level};
use ff_kernels::elementwise::{cost, unary};
use ff_kernels::math::*;

/// The distance of `got` from the exact value, in units in the last place of the nearest `f32`.
fn ulps(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if got.is_nan() || nearest.is_nan() {
        return if got.is_nan() == nearest.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if got == nearest {
        return 0.0;
    }
    let magnitude = nearest.abs().clamp(f32::MIN_POSITIVE, f32::MAX);
    let unit = f64::from(magnitude) - f64::from(magnitude.next_down());
    (f64::from(got) - exact).abs() / unit.max(f64::from(f32::from_bits(1)))
}

/// Values over all exponents of both signs, with the special ones.
fn sweep() -> Vec<f32> {
    let mut values: Vec<f32> = (0..u32::MAX).step_by(4099).map(f32::from_bits).collect();
    values.extend((-200_000..200_000).map(|i| i as f32 * 1.003e-4));
    values.extend([
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0,
        -1.0,
        88.7,
        -103.9,
        88.8,
    ]);
    values
}

fn check(name: &str, bound: f64, f: fn(f32) -> f32, exact: fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in sweep() {
        let error = ulps(f(x), exact(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    println!("{name}: {:.3} ulp at {:e}", worst.0, worst.1);
    assert!(worst.0 <= bound, "{name}: {} ulp at {:e}", worst.0, worst.1);
}

fn logistic(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

#[test]
fn within_four_units_in_the_last_place() {
    check("exp", 1.5, exp, f64::exp);
    check("expm1", 2.5, expm1, f64::exp_m1);
    check("log", 1.5, log, f64::ln);
    check("log1p", 2.0, log1p, f64::ln_1p);
    check("tanh", 3.5, tanh, f64::tanh);
    check("sigmoid", 3.0, sigmoid, logistic);
    check("erf", 1.5, erf, libm::erf);
    check("erfc", 1.0, erfc, libm::erfc);
    check("sin", 1.0, sin, f64::sin);
    check("cos", 1.0, cos, f64::cos);
    check("rsqrt", 1.5, rsqrt, |x| 1.0 / x.sqrt());
}

#[test]
fn vector_lanes_have_the_bits_of_scalars() {
    let x = sweep();
    let pool = ThreadPool::new(2);
    type Slices = fn(&ThreadPool, &[f32], &mut [f32]);
    type Row = (&'static str, Slices, fn(f32) -> f32);
    let functions: [Row; 8] = [
        ("exp", |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, exp), exp),
        (
            "expm1",
            |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, expm1),
            expm1,
        ),
        ("log", |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, log), log),
        (
            "log1p",
            |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, log1p),
            log1p,
        ),
        ("tanh", |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, tanh), tanh),
        (
            "sigmoid",
            |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, sigmoid),
            sigmoid,
        ),
        ("erf", |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, erf), erf),
        ("sin", |p, x, y| unary(p, x, y, cost::TRANSCENDENTAL, sin), sin),
    ];
    for level in [Level::Avx512, Level::Avx2] {
        let _limit = cpu::limit(level);
        for (name, run, scalar) in functions {
            let mut y = vec![0.0; x.len()];
            run(&pool, &x, &mut y);
            let differs = x.iter().zip(&y).find(|&(&x, &y)| {
                let expected = scalar(x);
                y.to_bits() != expected.to_bits() && !(y.is_nan() && expected.is_nan())
            });
            assert!(differs.is_none(), "{name}, {level:?}: {differs:?}");
        }
    }
}

#[test]
fn special_values() {
    assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    assert_eq!(exp(f32::INFINITY), f32::INFINITY);
    assert_eq!(log(0.0), f32::NEG_INFINITY);
    assert!(log(-1.0).is_nan());
    assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
    assert_eq!(tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert_eq!(erf(f32::INFINITY), 1.0);
    assert_eq!(sigmoid(0.0), 0.5);
    assert_eq!(expm1(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert_eq!(log1p(-1.0), f32::NEG_INFINITY);
    assert!(sin(f32::INFINITY).is_nan());
    assert_eq!(sin(-0.0).to_bits(), (-0.0_f32).to_bits());
}
