//! Constant right sides are packed: that changes no bits, and is done once.

use super::{evaluate, run, tensor};
use crate::{Builder, ConvolutionConfig, ConvolutionDims, DotDims, Module, Op, WindowDimension};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Tensor};

/// Numbers of many digits.
fn numbers(dtype: DataType, dims: &[i64], seed: i64) -> Tensor {
    let count = dims.iter().product::<i64>();
    let values = (0..count).map(|i| ((i * 7919 + seed) % 1009) as f64 / 137.0 - 3.0);
    match dtype {
        DataType::DOUBLE => tensor(dims, &values.collect::<Vec<f64>>()),
        _ => tensor(dims, &values.map(|x| x as f32).collect::<Vec<f32>>()),
    }
}

/// Compares what is built of an input and a constant with what is built of two inputs.
fn check(x: &Tensor, constant: &Tensor, build: impl Fn(&mut Builder, Op, Op) -> Result<Op>) {
    let given = evaluate(&[x.clone(), constant.clone()], |b, p| build(b, p[0], p[1]));
    let known = evaluate(std::slice::from_ref(x), |b, p| {
        let constant = b.constant(constant.clone())?;
        build(b, p[0], constant)
    });
    assert!(
        given.bytes() == known.bytes(),
        "{:?} {:?}",
        x.dims(),
        constant.dims()
    );
}

#[test]
fn products_have_the_same_bits() {
    for dtype in [DataType::FLOAT, DataType::DOUBLE] {
        for (m, n, k) in [
            (1, 40, 70),
            (3, 3, 200),
            (17, 33, 300),
            (64, 2, 5),
            (5, 1, 90),
            (2, 9, 0),
        ] {
            for turned in [false, true] {
                let x = numbers(dtype, &[m, k], 3);
                let y = numbers(dtype, &if turned { [n, k] } else { [k, n] }, 5);
                check(&x, &y, |b, x, y| {
                    let dims = DotDims {
                        lhs_contracting: [1].into_iter().collect(),
                        rhs_contracting: [i64::from(turned)].into_iter().collect(),
                        ..DotDims::default()
                    };
                    b.dot_general(x, y, dims, None)
                });
            }
        }
    }
}

#[test]
fn convolutions_have_the_same_bits() {
    for dtype in [DataType::FLOAT, DataType::DOUBLE] {
        for (window, features, groups, out) in [
            (3, 4, 1, 9),
            (1, 16, 1, 1),
            (1, 5, 1, 8),
            (3, 6, 6, 6),
            (2, 4, 2, 6),
        ] {
            let x = numbers(dtype, &[2, 7, 7, features], 3);
            let filter = numbers(dtype, &[window, window, features / groups, out], 5);
            check(&x, &filter, |b, x, filter| {
                let config = ConvolutionConfig {
                    window: [WindowDimension::new(window); 2].into_iter().collect(),
                    dims: ConvolutionDims::channels_last(2),
                    feature_group_count: groups,
                    batch_group_count: 1,
                };
                b.convolution(x, filter, config, None)
            });
        }
    }
}

fn product_with(constant: &Tensor, rows: i64) -> Module {
    let mut b = Builder::new("product");
    let shape = crate::ArrayShape::new(DataType::FLOAT, &[rows, 70]);
    let x = b.parameter(0, shape, "x").unwrap();
    let constant = b.constant(constant.clone()).unwrap();
    let dims = DotDims {
        lhs_contracting: [1].into_iter().collect(),
        rhs_contracting: [0].into_iter().collect(),
        ..DotDims::default()
    };
    let root = b.dot_general(x, constant, dims, None).unwrap();
    b.finish(root).unwrap()
}

#[test]
fn programs_keep_a_constant_no_longer_than_they_live() {
    let constant = numbers(DataType::FLOAT, &[70, 40], 1);
    let modules = [product_with(&constant, 1), product_with(&constant, 8)];
    let programs = modules
        .each_ref()
        .map(|module| crate::Program::compile(module).unwrap());
    let row = numbers(DataType::FLOAT, &[1, 70], 2);
    let one = programs[0].run(ThreadPool::serial(), vec![row.clone()]).unwrap();
    assert_eq!(one[0].bytes(), run(&modules[0], vec![row])[0].bytes());
    drop((programs, modules));
    assert!(constant.is_writable());
}
