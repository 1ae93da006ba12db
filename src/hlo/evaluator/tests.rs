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
