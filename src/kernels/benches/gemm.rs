//! GFLOP/s of matrix products, with B packed in the call and packed before.

use ff_kernels::gemm::{Batch, Epilogue, Matrix, PackedB, batch_gemm, gemm, gemm_packed};
use ff_kernels::{ThreadPool, cpu};
use std::time::Instant;

fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.3 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    for level in [cpu::Level::Avx2, cpu::Level::Avx512] {
        let _limit = cpu::limit(level);
        for threads in [1, 2] {
            println!("{:?}, {threads} thread(s)", cpu::level());
            let pool = ThreadPool::new(threads);
            for (m, n, k) in [
                (256, 256, 256),
                (1024, 1024, 1024),
                (128, 3072, 768),
                (8, 3072, 768),
                (1, 768, 768),
                (1, 1024, 256),
                (3136, 64, 576),
            ] {
                let (a, b) = (vec![0.5_f32; m * k], vec![0.25_f32; k * n]);
                let mut c = vec![0.0; m * n];
                let (va, vb) = (Matrix::new(&a, k), Matrix::new(&b, n));
                let none = Epilogue::default();
                let plain = best(|| gemm(&pool, (m, n, k), va, vb, &mut c, n, false, &none).unwrap());
                let packed = PackedB::new(&pool, k, n, vb).unwrap();
                let prepacked = best(|| gemm_packed(&pool, m, va, &packed, &mut c, n, false, &none).unwrap());
                let vt = Matrix::transposed(&b, k);
                let transposed = best(|| gemm(&pool, (m, n, k), va, vt, &mut c, n, false, &none).unwrap());
                let flops = 2.0 * (m * n * k) as f64 / 1e9;
                println!(
                    "{m:5} x {n:5} x {k:5}: plain {:6.1}  prepacked {:6.1}  B transposed {:6.1}",
                    flops / plain,
                    flops / prepacked,
                    flops / transposed
                );
            }
            let (count, m, n, k) = (96, 128, 128, 64);
            let (a, b) = (vec![0.5_f32; count * m * k], vec![0.25_f32; count * k * n]);
            let mut c = vec![0.0; count * m * n];
            let offsets: Vec<_> = (0..count).map(|i| (i * m * k, i * k * n)).collect();
            let batch = Batch {
                extents: (m, n, k),
                offsets: &offsets,
                a_steps: (k, 1),
                b_steps: (n, 1),
            };
            let time = best(|| batch_gemm(&pool, &batch, &a, &b, &mut c).unwrap());
            println!(
                "96 of 128 x 128 x 64: {:.1}",
                2.0 * (count * m * n * k) as f64 / 1e9 / time
            );
        }
    }
}
