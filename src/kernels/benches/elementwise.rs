//! Time per element of the vectorised functions, in cache, on one thread.

use ff_kernels::elementwise::{cost, map};
use ff_kernels::math;
use std::time::Instant;

fn measure(name: &str, mut run: impl FnMut(&[f32], &mut [f32])) {
    let x: Vec<f32> = (0..4096).map(|i| i as f32 * 0.003 - 5.0).collect();
    let mut y = vec![0.0; x.len()];
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..20 {
            run(&x, &mut y);
            std::hint::black_box(&mut y);
        }
        best = best.min(start.elapsed().as_secs_f64() / 20.0 / x.len() as f64);
    }
    println!("{name:10} {:.3} ns", best * 1e9);
}

fn main() {
    println!("{:?}", ff_kernels::cpu::level());
    measure("add", |x, y| map(x, y, cost::SIMPLE, |v| v + 1.0));
    measure("exp", |x, y| map(x, y, cost::TRANSCENDENTAL, math::exp));
    measure("expm1", |x, y| map(x, y, cost::TRANSCENDENTAL, math::expm1));
    measure("log", |x, y| map(x, y, cost::TRANSCENDENTAL, math::log));
    measure("log1p", |x, y| map(x, y, cost::TRANSCENDENTAL, math::log1p));
    measure("tanh", |x, y| map(x, y, cost::TRANSCENDENTAL, math::tanh));
    measure("sigmoid", |x, y| map(x, y, cost::TRANSCENDENTAL, math::sigmoid));
    measure("erf", |x, y| map(x, y, cost::TRANSCENDENTAL, math::erf));
    measure("sin", |x, y| map(x, y, cost::TRANSCENDENTAL, math::sin));
    measure("pow", |x, y| map(x, y, cost::LIBRARY, |v| v.abs().powf(1.7)));
}
