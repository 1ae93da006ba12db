//! GFLOP/s of convolutions of ResNet50 and MobileNetV2, filters packed before.

use ff_kernels::conv::{Axis, Convolution, PackedFilter, conv_packed, depthwise};
use ff_kernels::gemm::Epilogue;
use ff_kernels::{ThreadPool, cpu};
use std::time::Instant;

fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.2 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn same(input: usize, window: usize, stride: usize) -> Axis {
    let output = input.div_ceil(stride);
    let low = (((output - 1) * stride + window).saturating_sub(input) / 2) as isize;
    Axis {
        input,
        output,
        window,
        stride,
        low,
        ..Axis::UNIT
    }
}

fn main() {
    let pool = ThreadPool::new(1);
    for level in [cpu::Level::Avx2, cpu::Level::Avx512] {
        let _limit = cpu::limit(level);
        println!("{:?}", cpu::level());
        for (size, window, stride, ci, co) in [
            (224, 7, 2, 3, 64),
            (56, 1, 1, 64, 256),
            (56, 3, 1, 64, 64),
            (28, 3, 1, 128, 128),
            (56, 1, 2, 256, 512),
            (14, 3, 1, 256, 256),
            (7, 3, 1, 512, 512),
            (112, 1, 1, 16, 96),
            (56, 1, 1, 144, 24),
        ] {
            let axis = same(size, window, stride);
            let shape = Convolution::new(1, &[axis, axis], ci, co, 1);
            let (input, filter) = (
                vec![0.5_f32; shape.input_len()],
                vec![0.25_f32; shape.filter_len()],
            );
            let mut output = vec![0.0; shape.output_len()];
            let packed = PackedFilter::new(&pool, &filter, window * window * ci, co, 1).unwrap();
            let none = Epilogue::default();
            let time = best(|| conv_packed(&pool, &shape, &input, &packed, &mut output, &none).unwrap());
            let flops = 2.0 * (shape.output_len() * window * window * ci) as f64 / 1e9;
            println!(
                "{size:4} {window}x{window}/{stride} {ci:4} -> {co:4}: {:6.1}  {:.3} ms",
                flops / time,
                time * 1e3
            );
        }
        for (size, stride, channels) in [
            (112, 1, 32),
            (112, 2, 96),
            (56, 1, 144),
            (14, 1, 384),
            (7, 1, 960),
        ] {
            let axis = same(size, 3, stride);
            let shape = Convolution::new(1, &[axis, axis], channels, channels, channels);
            let (input, filter) = (
                vec![0.5_f32; shape.input_len()],
                vec![0.25_f32; shape.filter_len()],
            );
            let mut output = vec![0.0; shape.output_len()];
            let none = Epilogue::default();
            let time = best(|| depthwise(&pool, &shape, &input, &filter, &mut output, &none));
            let flops = 2.0 * (shape.output_len() * 9) as f64 / 1e9;
            println!(
                "{size:4} depthwise/{stride} {channels:4}: {:6.1}  {:.3} ms",
                flops / time,
                time * 1e3
            );
        }
    }
}
