//! Times the evaluator: the overhead of tiny programs, and the throughput of fused ones.
//!
//! `cargo bench -p ff-hlo`

use ff_hlo::evaluator::Program;
use ff_hlo::{ArrayShape, Builder, DotDims, Module, Op, Opcode};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::time::Instant;

/// A module of one f32 parameter.
fn module(dims: &[i64], build: impl FnOnce(&mut Builder, Op) -> Result<Op>) -> Result<Module> {
    let mut b = Builder::new("bench");
    let x = b.parameter(0, ArrayShape::new(DataType::FLOAT, dims), "x")?;
    let root = build(&mut b, x)?;
    b.finish(root)
}

/// Nanoseconds of a run, the least of several rounds.
fn time(program: &Program, pool: &ThreadPool, dims: &[i64]) -> Result<f64> {
    let shape = Shape::new(dims)?;
    let values: Vec<f32> = (0..shape.num_elements())
        .map(|i| (i % 100) as f32 * 0.01)
        .collect();
    let input = Tensor::from_slice(shape, &values)?;
    let turns = (20_000_000 / (values.len() + 1000)).max(3);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..turns {
            std::hint::black_box(program.run(pool, vec![input.clone()])?);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / turns as f64);
    }
    Ok(best)
}

fn chain(b: &mut Builder, x: Op) -> Result<Op> {
    let one = b.scalar_like(1.0, x)?;
    let y = b.add(x, one)?;
    let z = b.multiply(y, x)?;
    b.subtract(z, one)
}

fn gelu(b: &mut Builder, x: Op) -> Result<Op> {
    let half = b.scalar_like(0.5, x)?;
    let scale = b.scalar_like(std::f64::consts::FRAC_1_SQRT_2, x)?;
    let scaled = b.multiply(x, scale)?;
    let erf = b.unary(Opcode::Erf, scaled)?;
    let one = b.scalar_like(1.0, x)?;
    let sum = b.add(erf, one)?;
    let product = b.multiply(x, sum)?;
    b.multiply(product, half)
}

fn softmax(b: &mut Builder, x: Op) -> Result<Op> {
    let dims = b.dims(x).to_vec();
    let last = [dims.len() as i64 - 1];
    let max = b.reduce_max(x, &last)?;
    let max = b.broadcast_reduced(max, &dims, &last)?;
    let shifted = b.subtract(x, max)?;
    let exp = b.unary(Opcode::Exponential, shifted)?;
    let sum = b.reduce_sum(exp, &last)?;
    let sum = b.broadcast_reduced(sum, &dims, &last)?;
    b.divide(exp, sum)
}

fn normalize(b: &mut Builder, x: Op) -> Result<Op> {
    let dims = b.dims(x).to_vec();
    let last = [dims.len() as i64 - 1];
    let count = b.scalar(DataType::FLOAT, dims[dims.len() - 1] as f64)?;
    let mean = |b: &mut Builder, x: Op| -> Result<Op> {
        let sum = b.reduce_sum(x, &last)?;
        let mean = b.binary_broadcast(Opcode::Divide, sum, count)?;
        b.broadcast_reduced(mean, &dims, &last)
    };
    let center = mean(b, x)?;
    let shifted = b.subtract(x, center)?;
    let square = b.square(shifted)?;
    let variance = mean(b, square)?;
    let scale = b.unary(Opcode::Rsqrt, variance)?;
    b.multiply(shifted, scale)
}

fn main() -> Result<()> {
    let pool = ThreadPool::new(1);
    type Build = fn(&mut Builder, Op) -> Result<Op>;
    let product: Build = |b, x| b.dot_general(x, x, DotDims::matmul(false, true), None);
    let rows: &[(&str, &[i64], Build)] = &[
        ("scalar, 3 instructions", &[], chain),
        ("4 elements, 3 instructions", &[4], chain),
        ("1 K elements, 3 instructions", &[1024], chain),
        ("1 M elements, 3 instructions", &[1 << 20], chain),
        ("1 M elements, gelu", &[1 << 20], gelu),
        ("softmax 128 x 1000", &[128, 1000], softmax),
        ("softmax 1 x 10", &[1, 10], softmax),
        ("layer norm 256 x 768", &[256, 768], normalize),
        ("dot 2 x 2", &[2, 2], product),
        ("dot 256 x 256", &[256, 256], product),
    ];
    for (name, dims, build) in rows {
        let program = Program::compile(&module(dims, build)?)?;
        let ns = time(&program, &pool, dims)?;
        let elements: i64 = dims.iter().product();
        println!(
            "{name:32} {ns:12.0} ns, {:8.3} ns per element",
            ns / elements as f64
        );
    }
    let start = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(Program::compile(&module(&[4], softmax)?)?);
    }
    println!(
        "{:32} {:12.0} ns",
        "build and compile a softmax",
        start.elapsed().as_nanos() as f64 / 1000.0
    );
    Ok(())
}
