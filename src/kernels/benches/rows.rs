//! Time per element of reductions, softmax, normalization and transposes, on one thread.

use ff_kernels::{ThreadPool, movement, norm, reduce, softmax, window};
use std::time::Instant;

fn measure(name: &str, elements: usize, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.2 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:24} {:.3} ns", best * 1e9 / elements as f64);
}

fn main() {
    let pool = ThreadPool::new(1);
    let n = 1 << 20;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.01).collect();
    let mut y = vec![0.0_f32; n];
    let rows = n / 128;
    let mut small = vec![0.0_f32; rows];
    measure("sum of rows of 128", n, || {
        reduce::sum(&pool, &x, &[rows, 128], &[false, true], &mut small).unwrap()
    });
    measure("sum of all", n, || {
        reduce::sum(&pool, &x, &[n], &[true], &mut small[..1]).unwrap()
    });
    measure("max of rows of 128", n, || {
        reduce::max(&pool, &x, &[rows, 128], &[false, true], &mut small, f32::MIN).unwrap()
    });
    measure("sum of columns, 128", n, || {
        reduce::sum(&pool, &x, &[rows, 128], &[true, false], &mut small[..128]).unwrap()
    });
    measure("softmax of 128", n, || {
        softmax::softmax(&pool, &x, 128, &mut y, false)
    });
    let (scale, offset) = (vec![1.0; 1024], vec![0.0; 1024]);
    measure("layer norm of 1024", n, || {
        norm::layer_norm(&pool, &x, &scale, &offset, 1e-5, &mut y)
    });
    let (mut mean, mut variance) = (vec![0.0; 128], vec![0.0; 128]);
    measure("moments of 128", n, || {
        norm::channel_moments(&pool, &x, &mut mean, &mut variance).unwrap()
    });
    measure("transpose 1024x1024", n, || {
        movement::transpose(&pool, &x, &[1024, 1024], &[1, 0], &mut y)
    });
    measure("transpose heads", n, || {
        movement::transpose(&pool, &x, &[128, 128, 64], &[1, 0, 2], &mut y)
    });
    measure("transpose 64x16384", n, || {
        movement::transpose(&pool, &x, &[64, 16384], &[1, 0], &mut y)
    });
    let axis = ff_kernels::conv::Axis {
        input: 112,
        output: 56,
        window: 3,
        stride: 2,
        low: 1,
        ..ff_kernels::conv::Axis::UNIT
    };
    let windows = window::Windows::new(1, &[axis, axis], 64);
    measure("max pool 3x3/2", windows.output_len(), || {
        window::max_pool(&pool, &windows, &x, &mut y, f32::MIN)
    });
}
