//! Tests of the evaluator: helpers that build, run and compare; the opcodes by family are in the files beside this one.

mod constants;
mod contractions;
mod cumulative;
mod edges;
mod elementwise;
mod random;

use crate::{Builder, Direction, Module, Op, Opcode};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Element, Result, Shape, Tensor};

/// Runs a module and returns its results.
fn run(module: &Module, inputs: Vec<Tensor>) -> Vec<Tensor> {
    let program = super::Program::compile(module).unwrap();
    program.run(ThreadPool::serial(), inputs).unwrap()
}

fn tensor<T: Element>(dims: &[i64], values: &[T]) -> Tensor {
    Tensor::from_slice(Shape::new(dims).unwrap(), values).unwrap()
}

/// Builds with one parameter for each input, runs, and returns the one result.
fn evaluate(inputs: &[Tensor], build: impl FnOnce(&mut Builder, &[Op]) -> Result<Op>) -> Tensor {
    let mut b = Builder::new("test");
    let parameters: Vec<Op> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| {
            b.parameter(i, crate::ArrayShape::new(input.dtype(), input.dims()), "p")
                .unwrap()
        })
        .collect();
    let root = build(&mut b, &parameters).unwrap();
    let module = b.finish(root).unwrap();
    let inputs = inputs.iter().map(|input| input.deep_copy().unwrap()).collect();
    run(&module, inputs).remove(0)
}

#[test]
fn a_chain_is_one_step_and_reuses_its_input() {
    let mut b = Builder::new("chain");
    let x = b
        .parameter(0, crate::ArrayShape::new(DataType::FLOAT, &[1000]), "x")
        .unwrap();
    let y = b.unary(Opcode::Negate, x).unwrap();
    let z = b.unary(Opcode::Exponential, y).unwrap();
    let one = b.scalar_like(1.0, z).unwrap();
    let root = b.add(z, one).unwrap();
    let program = super::Program::compile(&b.finish(root).unwrap()).unwrap();
    assert_eq!(program.num_steps(), 1);
    let input = tensor(&[1000], &vec![0.5f32; 1000]);
    let address = input.data_ptr();
    let result = program.run(ThreadPool::serial(), vec![input]).unwrap().remove(0);
    assert_eq!(result.data_ptr(), address);
    let expected = 1.0 + (-0.5f32).exp();
    assert!(
        result
            .as_slice::<f32>()
            .unwrap()
            .iter()
            .all(|&v| (v - expected).abs() < 1e-6)
    );
}

#[test]
fn scans_stack_results_and_carry_values() {
    let x = tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let start = tensor(&[2], &[10.0f32, 20.0]);
    for (reverse, expected, last) in [
        (false, [11.0f32, 13.0, 16.0, 24.0, 29.0, 35.0], [16.0f32, 35.0]),
        (true, [16.0, 15.0, 13.0, 35.0, 31.0, 26.0], [16.0, 35.0]),
    ] {
        let mut b = Builder::new("scan");
        let column = crate::ArrayShape::new(DataType::FLOAT, &[2]);
        let sequence = b
            .parameter(0, crate::ArrayShape::new(DataType::FLOAT, &[2, 3]), "x")
            .unwrap();
        let init = b.parameter(1, column.clone(), "init").unwrap();
        let body = b.computation("body", |b| {
            let (slice, sum) = (
                b.parameter(0, column.clone(), "slice")?,
                b.parameter(1, column.clone(), "sum")?,
            );
            let sum = b.add(sum, slice)?;
            b.tuple(&[sum, sum])
        });
        let root = b.scan(&[sequence], &[init], 1, reverse, body.unwrap()).unwrap();
        let module = b.finish(root).unwrap();
        crate::verify(&module).unwrap();
        let results = run(&module, vec![x.deep_copy().unwrap(), start.deep_copy().unwrap()]);
        assert_eq!(results[0].as_slice::<f32>().unwrap(), expected);
        assert_eq!(results[1].as_slice::<f32>().unwrap(), last);
    }
}

#[test]
fn broadcasts_and_counters_are_read_in_place() {
    let x = tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let bias = tensor(&[3], &[10.0f32, 20.0, 30.0]);
    let result = evaluate(&[x, bias], |b, p| {
        let sum = b.add(p[0], p[1])?;
        let rows = b.iota(DataType::FLOAT, &[2, 3], 0)?;
        let sum = b.add(sum, rows)?;
        let limit = b.scalar_like(25.0, sum)?;
        let small = b.compare(Direction::Lt, sum, limit)?;
        b.select(small, sum, limit)
    });
    assert_eq!(
        result.as_slice::<f32>().unwrap(),
        [11.0, 22.0, 25.0, 15.0, 25.0, 25.0]
    );
}

#[test]
fn views_compose() {
    let x = tensor(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let result = evaluate(&[x], |b, p| {
        let t = b.transpose(p[0], &[1, 0])?;
        let r = b.reverse(t, &[0])?;
        b.slice(r, &[0, 1], &[2, 2], &[1, 1])
    });
    assert_eq!(result.dims(), [2, 1]);
    assert_eq!(result.as_slice::<i32>().unwrap(), [6, 5]);
}

#[test]
fn matrix_products_of_any_axes() {
    let a = tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = tensor(&[3, 2], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let product = evaluate(&[a.clone(), b.clone()], |b, p| {
        b.dot_general(p[0], p[1], crate::DotDims::matmul(false, false), None)
    });
    assert_eq!(product.as_slice::<f32>().unwrap(), [4.0, 5.0, 10.0, 11.0]);
    let both = evaluate(&[a, b], |b, p| {
        b.dot_general(p[0], p[1], crate::DotDims::matmul(true, true), None)
    });
    assert_eq!(both.dims(), [3, 3]);
    assert_eq!(both.as_slice::<f32>().unwrap()[..4], [1.0, 4.0, 5.0, 2.0]);
    let batched = evaluate(
        &[
            tensor(&[2, 2, 1], &[1i32, 2, 3, 4]),
            tensor(&[2, 1, 2], &[1i32, 2, 3, 4]),
        ],
        |b, p| b.dot_general(p[0], p[1], crate::DotDims::batch_matmul(1, false, false), None),
    );
    assert_eq!(batched.as_slice::<i32>().unwrap(), [1, 2, 2, 4, 9, 12, 12, 16]);
}

#[test]
fn reductions_over_any_axes() {
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let x = tensor(&[2, 3, 4], &values);
    let sum = |axes: &[i64]| evaluate(std::slice::from_ref(&x), |b, p| b.reduce_sum(p[0], axes));
    assert_eq!(sum(&[0, 1, 2]).as_slice::<f32>().unwrap(), [276.0]);
    assert_eq!(
        sum(&[2]).as_slice::<f32>().unwrap(),
        [6.0, 22.0, 38.0, 54.0, 70.0, 86.0]
    );
    assert_eq!(sum(&[0]).as_slice::<f32>().unwrap()[..3], [12.0, 14.0, 16.0]);
    assert_eq!(sum(&[0, 2]).as_slice::<f32>().unwrap(), [60.0, 92.0, 124.0]);
    assert_eq!(sum(&[1]).as_slice::<f32>().unwrap()[..2], [12.0, 15.0]);
    let large: Vec<f32> = vec![0.1; 1_000_000];
    let total = evaluate(&[tensor(&[1_000_000], &large)], |b, p| b.reduce_sum(p[0], &[0]));
    assert!((total.as_slice::<f32>().unwrap()[0] - 100_000.0).abs() < 1.0);
    let half = evaluate(&[tensor(&[2], &[ff_tensor::f16::ONE; 2])], |b, p| {
        b.reduce_sum(p[0], &[0])
    });
    assert_eq!(half.as_slice::<ff_tensor::f16>().unwrap()[0].to_f32(), 2.0);
}

#[test]
fn a_reduction_of_pairs_finds_the_largest() {
    let x = tensor(&[2, 3], &[1.0f32, 5.0, 2.0, 9.0, 8.0, 9.5]);
    let result = evaluate(&[x], |b, p| {
        let index = b.iota(DataType::INT32, &[2, 3], 1)?;
        let (low, zero) = (
            b.extreme_scalar(DataType::FLOAT, false)?,
            b.scalar(DataType::INT32, 0.0)?,
        );
        let reducer = b.computation("largest", |b| {
            let f = crate::ArrayShape::scalar(DataType::FLOAT);
            let i = crate::ArrayShape::scalar(DataType::INT32);
            let (a, ai) = (b.parameter(0, f.clone(), "a")?, b.parameter(1, i.clone(), "ai")?);
            let (c, ci) = (b.parameter(2, f, "c")?, b.parameter(3, i, "ci")?);
            let larger = b.compare(Direction::Ge, a, c)?;
            let (value, index) = (b.select(larger, a, c)?, b.select(larger, ai, ci)?);
            b.tuple(&[value, index])
        })?;
        let both = b.reduce(&[p[0], index], &[low, zero], reducer, &[1])?;
        b.get_tuple_element(both, 1)
    });
    assert_eq!(result.as_slice::<i32>().unwrap(), [1, 2]);
}

#[test]
fn blocks_move() {
    let x = tensor(&[2, 2], &[1i32, 2, 3, 4]);
    let joined = evaluate(&[x.clone(), x.clone()], |b, p| b.concatenate(&[p[0], p[1]], 1));
    assert_eq!(joined.as_slice::<i32>().unwrap(), [1, 2, 1, 2, 3, 4, 3, 4]);
    let padded = evaluate(std::slice::from_ref(&x), |b, p| {
        let zero = b.scalar(DataType::INT32, 0.0)?;
        let config = [
            crate::PadDimension {
                low: 1,
                high: -1,
                interior: 0,
            },
            crate::PadDimension {
                low: 0,
                high: 1,
                interior: 1,
            },
        ];
        b.pad(p[0], zero, config.into_iter().collect())
    });
    assert_eq!(padded.dims(), [2, 4]);
    assert_eq!(padded.as_slice::<i32>().unwrap(), [0, 0, 0, 0, 1, 0, 2, 0]);
    let inside = evaluate(&[x.clone(), tensor(&[], &[5i32])], |b, p| {
        b.dynamic_slice(p[0], &[p[1], p[1]], &[1, 2])
    });
    assert_eq!(inside.as_slice::<i32>().unwrap(), [3, 4]);
    let updated = evaluate(&[x, tensor(&[1, 1], &[9i32]), tensor(&[], &[1i32])], |b, p| {
        b.dynamic_update_slice(p[0], p[1], &[p[2], p[2]])
    });
    assert_eq!(updated.as_slice::<i32>().unwrap(), [1, 2, 3, 9]);
}

#[test]
fn gather_takes_rows_and_scatter_adds_them() {
    let table = tensor(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let rows = tensor(&[4], &[2i64, 0, 2, 7]);
    let taken = evaluate(&[table.clone(), rows.clone()], |b, p| {
        let dims = crate::GatherDims {
            offset_dims: [1].into_iter().collect(),
            collapsed_slice_dims: [0].into_iter().collect(),
            start_index_map: [0].into_iter().collect(),
            index_vector_dim: 1,
            slice_sizes: [1, 2].into_iter().collect(),
            ..Default::default()
        };
        b.gather(p[0], p[1], dims)
    });
    assert_eq!(
        taken.as_slice::<f32>().unwrap(),
        [5.0, 6.0, 1.0, 2.0, 5.0, 6.0, 5.0, 6.0]
    );
    let updates = tensor(&[4, 2], &[1.0f32; 8]);
    let summed = evaluate(&[table, rows, updates], |b, p| {
        let add = b.reducer(Opcode::Add, DataType::FLOAT)?;
        let dims = crate::ScatterDims {
            update_window_dims: [1].into_iter().collect(),
            inserted_window_dims: [0].into_iter().collect(),
            scatter_dims_to_operand_dims: [0].into_iter().collect(),
            index_vector_dim: 1,
            ..Default::default()
        };
        b.scatter(&[p[0]], p[1], &[p[2]], dims, add)
    });
    assert_eq!(summed.as_slice::<f32>().unwrap(), [2.0, 3.0, 3.0, 4.0, 7.0, 8.0]);
}

#[test]
fn loops_branches_and_checks() {
    let counted = evaluate(&[tensor(&[], &[0i32])], |b, p| {
        let scalar = crate::ArrayShape::scalar(DataType::INT32);
        let condition = b.computation("condition", |b| {
            let i = b.parameter(0, scalar.clone(), "i")?;
            let ten = b.scalar(DataType::INT32, 10.0)?;
            b.compare(Direction::Lt, i, ten)
        })?;
        let body = b.computation("body", |b| {
            let i = b.parameter(0, scalar.clone(), "i")?;
            let three = b.scalar(DataType::INT32, 3.0)?;
            b.add(i, three)
        })?;
        b.while_loop(condition, body, p[0])
    });
    assert_eq!(counted.as_slice::<i32>().unwrap(), [12]);

    let mut b = Builder::new("checked");
    let x = b
        .parameter(0, crate::ArrayShape::new(DataType::INT32, &[3]), "x")
        .unwrap();
    let zero = b.scalar_like(0.0, x).unwrap();
    let fine = b.compare(Direction::Ne, x, zero).unwrap();
    b.check_values(fine, &[x], ff_tensor::Code::InvalidArgument, "bad{index} = {0}")
        .unwrap();
    let program = super::Program::compile(&b.finish(x).unwrap()).unwrap();
    assert!(
        program
            .run(ThreadPool::serial(), vec![tensor(&[3], &[1i32, 2, 3])])
            .is_ok()
    );
    let error = program
        .run(ThreadPool::serial(), vec![tensor(&[3], &[1i32, 0, 3])])
        .unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ff_tensor::Code::InvalidArgument, "bad[1] = 0")
    );
}
