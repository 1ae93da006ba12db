//! Tests of convolutions and their gradients against plain loops in f64.

use super::*;
use crate::gemm::Activation;

fn random(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// An axis with the output extent that the padding gives.
fn axis(
    input: usize,
    window: usize,
    stride: usize,
    low: isize,
    high: isize,
    dilations: (usize, usize),
) -> Axis {
    let reach = (window - 1) * dilations.1 + 1;
    let padded = ((input - 1) * dilations.0 + 1) as isize + low + high;
    let output = (padded - reach as isize) as usize / stride + 1;
    Axis {
        input,
        output,
        window,
        stride,
        low,
        input_dilation: dilations.0,
        window_dilation: dilations.1,
    }
}

fn close(got: &[f32], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len());
    for (i, (&g, &e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(g) - e).abs() <= 2e-5 * (1.0 + e.abs()),
            "{what}, element {i}: {g} for {e}"
        );
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

fn shapes() -> Vec<Convolution> {
    let plain = |i, w| axis(i, w, 1, 0, 0, (1, 1));
    vec![
        Convolution::new(2, &[plain(9, 3), plain(11, 3)], 5, 7, 1),
        Convolution::new(1, &[plain(8, 1), plain(8, 1)], 16, 70, 1),
        Convolution::new(
            2,
            &[axis(9, 3, 2, 1, 1, (1, 1)), axis(10, 3, 2, 0, 1, (1, 1))],
            40,
            64,
            1,
        ),
        Convolution::new(
            2,
            &[axis(14, 7, 2, 3, 3, (1, 1)), axis(13, 7, 2, 3, 3, (1, 1))],
            3,
            20,
            1,
        ),
        Convolution::new(
            1,
            &[axis(9, 3, 1, 2, 2, (1, 2)), axis(9, 3, 1, 2, 2, (1, 3))],
            33,
            17,
            1,
        ),
        Convolution::new(
            1,
            &[axis(5, 3, 1, 2, 1, (2, 1)), axis(6, 3, 1, 1, 2, (3, 1))],
            6,
            9,
            1,
        ),
        Convolution::new(
            1,
            &[axis(7, 3, 1, -1, 0, (1, 1)), axis(7, 2, 1, 0, -2, (1, 1))],
            4,
            4,
            1,
        ),
        Convolution::new(
            3,
            &[axis(6, 1, 2, 0, 0, (1, 1)), axis(6, 1, 2, 0, 0, (1, 1))],
            8,
            8,
            1,
        ),
        Convolution::new(
            2,
            &[axis(8, 3, 1, 1, 1, (1, 1)), axis(8, 3, 1, 1, 1, (1, 1))],
            12,
            18,
            3,
        ),
        Convolution::new(
            2,
            &[axis(8, 3, 1, 1, 1, (1, 1)), axis(9, 3, 1, 1, 1, (1, 1))],
            40,
            40,
            40,
        ),
        Convolution::new(
            1,
            &[axis(8, 3, 2, 0, 1, (1, 1)), axis(9, 5, 2, 2, 2, (1, 1))],
            6,
            6,
            6,
        ),
        Convolution::new(
            1,
            &[axis(8, 3, 1, 1, 1, (1, 2)), axis(9, 3, 1, 1, 1, (1, 1))],
            5,
            15,
            5,
        ),
        Convolution::new(2, &[axis(30, 4, 3, 1, 2, (1, 1))], 6, 5, 1),
        Convolution::new(
            1,
            &[
                plain(4, 2),
                axis(5, 3, 1, 1, 1, (1, 1)),
                axis(6, 3, 2, 1, 1, (1, 1)),
            ],
            4,
            6,
            2,
        ),
    ]
}

#[test]
fn equal_to_the_definition() {
    for shape in shapes() {
        let (input, filter) = (random(shape.input_len(), 1), random(shape.filter_len(), 2));
        let bias = random(shape.out_channels, 3);
        let mut expected = vec![0.0; shape.output_len()];
        conv_any(
            ThreadPool::serial(),
            &shape,
            &wide(&input),
            &wide(&filter),
            &mut expected,
        );
        let activated: Vec<f64> = (0..expected.len())
            .map(|i| (expected[i] + f64::from(bias[i % shape.out_channels])).max(0.0))
            .collect();
        let epilogue = Epilogue {
            bias: Some(&bias),
            activation: Activation::Relu,
            row: None,
        };
        let mut results = Vec::new();
        for threads in [1, 2] {
            let pool = ThreadPool::new(threads);
            let mut output = vec![f32::NAN; shape.output_len()];
            conv(&pool, &shape, &input, &filter, &mut output, &Epilogue::default()).unwrap();
            close(&output, &expected, &format!("{shape:?}"));
            let mut finished = vec![f32::NAN; shape.output_len()];
            conv(&pool, &shape, &input, &filter, &mut finished, &epilogue).unwrap();
            close(&finished, &activated, &format!("finished {shape:?}"));
            let rows = shape.filter_len() / shape.out_channels;
            let packed = PackedFilter::new(&pool, &filter, rows, shape.out_channels, shape.groups).unwrap();
            let mut by_packed = vec![f32::NAN; shape.output_len()];
            conv_packed(&pool, &shape, &input, &packed, &mut by_packed, &epilogue).unwrap();
            close(&by_packed, &activated, &format!("packed {shape:?}"));
            results.push((output, finished, by_packed));
        }
        assert_eq!(results[0], results[1], "bits depend on the threads: {shape:?}");
    }
}

#[test]
fn gradients_are_adjoint() {
    // <conv(x, f), y> = <x, backward_input(f, y)> = <f, backward_filter(x, y)>, for every x, f, y.
    let dot =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
    for shape in shapes() {
        let pool = ThreadPool::new(2);
        let (x, f) = (random(shape.input_len(), 4), random(shape.filter_len(), 5));
        let y = random(shape.output_len(), 6);
        let mut output = vec![0.0; y.len()];
        conv(&pool, &shape, &x, &f, &mut output, &Epilogue::default()).unwrap();
        let expected = dot(&output, &y);
        let mut input_gradient = vec![0.0; x.len()];
        conv_backward_input(&pool, &shape, &f, &y, &mut input_gradient).unwrap();
        let by_input = dot(&x, &input_gradient);
        let mut filter_gradient = vec![0.0; f.len()];
        conv_backward_filter(&pool, &shape, &x, &y, &mut filter_gradient).unwrap();
        let by_filter = dot(&f, &filter_gradient);
        let bound = 1e-4 * (1.0 + expected.abs());
        assert!(
            (by_input - expected).abs() < bound,
            "input of {shape:?}: {by_input} for {expected}"
        );
        assert!(
            (by_filter - expected).abs() < bound,
            "filter of {shape:?}: {by_filter} for {expected}"
        );
    }
}

#[test]
fn integers_and_halves() {
    let shape = Convolution::new(
        1,
        &[axis(5, 3, 1, 1, 1, (1, 1)), axis(4, 2, 1, 0, 0, (1, 1))],
        3,
        2,
        1,
    );
    let input: Vec<i32> = (0..shape.input_len() as i32).map(|i| i % 5 - 2).collect();
    let filter: Vec<i32> = (0..shape.filter_len() as i32).map(|i| i % 3 - 1).collect();
    let mut output = vec![0; shape.output_len()];
    conv_any(ThreadPool::serial(), &shape, &input, &filter, &mut output);
    let half = |x: &[i32]| {
        x.iter()
            .map(|&v| half::f16::from_f32(v as f32))
            .collect::<Vec<_>>()
    };
    let mut halves = vec![half::f16::ZERO; output.len()];
    let none = Epilogue::default();
    conv_half(
        ThreadPool::serial(),
        &shape,
        &half(&input),
        &half(&filter),
        &mut halves,
        &none,
    )
    .unwrap();
    assert_eq!(half(&output), halves);
}
