//! Convolutions, windows, sorting, transforms and factorizations against definitions and literal values.

use super::{evaluate, tensor};
use crate::{
    ArrayShape, ConvolutionConfig, ConvolutionDims, Direction, FftKind, Opcode, RngAlgorithm, TransposeKind,
    TriangularSolveOptions, WindowDimension,
};
use ff_tensor::{Complex64, DataType};

fn window(size: i64, stride: i64, low: i64, high: i64) -> WindowDimension {
    WindowDimension {
        stride,
        padding_low: low,
        padding_high: high,
        ..WindowDimension::new(size)
    }
}

#[test]
fn convolution_of_one_axis_by_hand() {
    let x = tensor(&[1, 4, 1], &[1.0f32, 2.0, 3.0, 4.0]);
    let filter = tensor(&[3, 1, 1], &[1.0f32, 10.0, 100.0]);
    let run = |window: WindowDimension, dims: ConvolutionDims| {
        evaluate(&[x.clone(), filter.clone()], |b, p| {
            let config = ConvolutionConfig {
                window: [window].into_iter().collect(),
                dims,
                feature_group_count: 1,
                batch_group_count: 1,
            };
            b.convolution(p[0], p[1], config, None)
        })
    };
    let plain = run(window(3, 1, 1, 1), ConvolutionDims::channels_last(1));
    assert_eq!(plain.as_slice::<f32>().unwrap(), [210.0, 321.0, 432.0, 43.0]);
    let reversed = WindowDimension {
        window_reversal: true,
        ..window(3, 1, 1, 1)
    };
    let turned = run(reversed, ConvolutionDims::channels_last(1));
    assert_eq!(turned.as_slice::<f32>().unwrap(), [12.0, 123.0, 234.0, 340.0]);
    let spread = WindowDimension {
        base_dilation: 2,
        ..window(3, 1, 0, 0)
    };
    let dilated = run(spread, ConvolutionDims::channels_last(1));
    assert_eq!(
        dilated.as_slice::<f32>().unwrap(),
        [201.0, 20.0, 302.0, 30.0, 403.0]
    );
    let swapped = ConvolutionDims {
        output_batch: 2,
        output_feature: 0,
        ..ConvolutionDims::channels_last(1)
    };
    assert_eq!(
        run(window(3, 2, 1, 1), swapped).as_slice::<f32>().unwrap(),
        [210.0, 432.0]
    );
}

#[test]
fn batch_groups_are_feature_groups_of_the_batch() {
    // Two images, two output features: feature g sees image g only.
    let x = tensor(&[2, 2, 1], &[1.0f32, 2.0, 3.0, 4.0]);
    let filter = tensor(&[2, 1, 2], &[1.0f32, 10.0, 1.0, 10.0]);
    let result = evaluate(&[x, filter], |b, p| {
        let config = ConvolutionConfig {
            window: [window(2, 1, 0, 0)].into_iter().collect(),
            dims: ConvolutionDims::channels_last(1),
            feature_group_count: 1,
            batch_group_count: 2,
        };
        b.convolution(p[0], p[1], config, None)
    });
    assert_eq!(result.dims(), [1, 1, 2]);
    assert_eq!(result.as_slice::<f32>().unwrap(), [3.0, 70.0]);
}

#[test]
fn pooling_and_its_gradient() {
    let x = tensor(&[1, 4, 2], &[1.0f32, 8.0, 5.0, 2.0, 3.0, 7.0, 5.0, 6.0]);
    let windows = [
        WindowDimension::new(1),
        window(2, 2, 0, 0),
        WindowDimension::new(1),
    ];
    let pooled = evaluate(std::slice::from_ref(&x), |b, p| {
        let (init, max) = (
            b.identity(Opcode::Maximum, DataType::FLOAT)?,
            b.reducer(Opcode::Maximum, DataType::FLOAT)?,
        );
        b.reduce_window(&[p[0]], &[init], max, windows.into_iter().collect())
    });
    assert_eq!(pooled.as_slice::<f32>().unwrap(), [5.0, 8.0, 5.0, 7.0]);
    let last = evaluate(&[tensor(&[4], &[1i32, 2, 3, 4])], |b, p| {
        let (init, add) = (
            b.identity(Opcode::Add, DataType::INT32)?,
            b.reducer(Opcode::Add, DataType::INT32)?,
        );
        b.reduce_window(&[p[0]], &[init], add, [window(3, 1, 2, 0)].into_iter().collect())
    });
    assert_eq!(last.as_slice::<i32>().unwrap(), [1, 3, 6, 9]);
    let source = tensor(&[1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let spread = evaluate(&[x, source], |b, p| {
        let scalar = ArrayShape::scalar(DataType::FLOAT);
        let select = b.computation("at_least", |b| {
            let (a, c) = (
                b.parameter(0, scalar.clone(), "a")?,
                b.parameter(1, scalar.clone(), "c")?,
            );
            b.compare(Direction::Ge, a, c)
        })?;
        let add = b.reducer(Opcode::Add, DataType::FLOAT)?;
        let zero = b.scalar(DataType::FLOAT, 0.0)?;
        b.select_and_scatter(p[0], p[1], zero, select, add, windows.into_iter().collect())
    });
    assert_eq!(
        spread.as_slice::<f32>().unwrap(),
        [0.0, 2.0, 1.0, 0.0, 0.0, 4.0, 3.0, 0.0]
    );
}

#[test]
fn sorting_by_any_comparator() {
    let keys = tensor(&[5], &[3.0f32, f32::NAN, -1.0, 3.0, 0.0]);
    let values = tensor(&[5], &[0i32, 1, 2, 3, 4]);
    let sorted = |direction: Direction| {
        evaluate(&[keys.clone(), values.clone()], |b, p| {
            let comparator = b.computation("before", |b| {
                let f = ArrayShape::scalar(DataType::FLOAT);
                let (a, c) = (b.parameter(0, f.clone(), "a")?, b.parameter(1, f, "c")?);
                let i = ArrayShape::scalar(DataType::INT32);
                b.parameter(2, i.clone(), "d")?;
                b.parameter(3, i, "e")?;
                b.compare(direction, a, c)
            })?;
            let both = b.sort(&[p[0], p[1]], 0, comparator, true)?;
            b.get_tuple_element(both, 1)
        })
    };
    assert_eq!(sorted(Direction::Lt).as_slice::<i32>().unwrap(), [2, 4, 0, 3, 1]);
    assert_eq!(sorted(Direction::Gt).as_slice::<i32>().unwrap(), [0, 3, 4, 2, 1]);
    let by_remainder = evaluate(&[tensor(&[6], &[5i32, 3, 4, 1, 0, 2])], |b, p| {
        let comparator = b.computation("by_remainder", |b| {
            let i = ArrayShape::scalar(DataType::INT32);
            let (a, c) = (b.parameter(0, i.clone(), "a")?, b.parameter(1, i, "c")?);
            let three = b.scalar(DataType::INT32, 3.0)?;
            let (a, c) = (
                b.binary(Opcode::Remainder, a, three)?,
                b.binary(Opcode::Remainder, c, three)?,
            );
            b.compare(Direction::Lt, a, c)
        })?;
        b.sort(&[p[0]], 0, comparator, true)
    });
    assert_eq!(by_remainder.as_slice::<i32>().unwrap(), [3, 0, 4, 1, 5, 2]);
    let top = evaluate(&[tensor(&[2, 3], &[1i32, 3, 2, 7, 7, 1])], |b, p| {
        let both = b.top_k(p[0], 2, true)?;
        b.get_tuple_element(both, 1)
    });
    assert_eq!(top.as_slice::<i32>().unwrap(), [1, 2, 0, 1]);
}

#[test]
fn transforms_of_any_length() {
    let x = [1.0f32, 2.0, 0.0, -1.0, 3.0];
    let spectrum = evaluate(&[tensor(&[5], &x)], |b, p| b.fft(p[0], FftKind::Rfft, &[5]));
    let spectrum = spectrum.as_slice::<Complex64>().unwrap();
    for (k, value) in spectrum.iter().enumerate() {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, &x) in x.iter().enumerate() {
            let turn = -std::f64::consts::TAU * (k * n) as f64 / 5.0;
            re += f64::from(x) * turn.cos();
            im += f64::from(x) * turn.sin();
        }
        assert!((f64::from(value.re) - re).abs() < 1e-5 && (f64::from(value.im) - im).abs() < 1e-5);
    }
    for lengths in [&[2i64, 3, 4][..], &[3, 5], &[8], &[24]] {
        let values: Vec<f32> = (0..lengths.iter().product::<i64>())
            .map(|i| (i * i % 7) as f32)
            .collect();
        let back = evaluate(&[tensor(lengths, &values)], |b, p| {
            let spectrum = b.fft(p[0], FftKind::Rfft, lengths)?;
            b.fft(spectrum, FftKind::Irfft, lengths)
        });
        for (a, b) in back.as_slice::<f32>().unwrap().iter().zip(&values) {
            assert!((a - b).abs() < 1e-4, "{lengths:?}: {a} is not {b}");
        }
    }
}

#[test]
fn factors_and_triangular_systems() {
    let a = tensor(&[2, 2], &[4.0f32, 2.0, 2.0, 5.0]);
    let factor = |lower| evaluate(std::slice::from_ref(&a), |b, p| b.cholesky(p[0], lower));
    assert_eq!(factor(true).as_slice::<f32>().unwrap(), [2.0, 0.0, 1.0, 2.0]);
    assert_eq!(factor(false).as_slice::<f32>().unwrap(), [2.0, 1.0, 0.0, 2.0]);
    let triangle = tensor(&[2, 2], &[2.0f64, 9.0, 1.0, 4.0]);
    let right = tensor(&[2, 2], &[2.0f64, 4.0, 9.0, 10.0]);
    let solve = |left_side, lower, transpose| {
        let result = evaluate(&[triangle.clone(), right.clone()], |b, p| {
            let options = TriangularSolveOptions {
                left_side,
                lower,
                unit_diagonal: false,
                transpose,
            };
            b.triangular_solve(p[0], p[1], options)
        });
        result.as_slice::<f64>().unwrap().to_vec()
    };
    assert_eq!(solve(true, true, TransposeKind::None), [1.0, 2.0, 2.0, 2.0]);
    assert_eq!(
        solve(true, true, TransposeKind::Transpose),
        [-0.125, 0.75, 2.25, 2.5]
    );
    assert_eq!(solve(false, true, TransposeKind::None), [0.5, 1.0, 3.25, 2.5]);
    assert_eq!(
        solve(false, false, TransposeKind::None),
        [1.0, -1.25, 4.5, -7.625]
    );
}

#[test]
fn random_bits_are_those_of_the_paper() {
    let bits = |algorithm, state: &[u64]| {
        let result = evaluate(&[tensor(&[state.len() as i64], state)], |b, p| {
            let both = b.rng_bit_generator(algorithm, p[0], DataType::UINT32, &[4])?;
            b.get_tuple_element(both, 1)
        });
        result.as_slice::<u32>().unwrap().to_vec()
    };
    let philox = bits(RngAlgorithm::Philox, &[0, 0, 0]);
    assert_eq!(philox, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        bits(RngAlgorithm::ThreeFry, &[0, 0])[..2],
        [0x6b20_0159, 0x99ba_4efe]
    );
}
