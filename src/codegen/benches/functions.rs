//! Times functions in code beside scalar calls of the system's library.
//!
//! `cargo bench -p ff-codegen --bench functions`: nanoseconds of an element, of the fastest of many runs, both in turns.

use ff_codegen::{Compiler, compile};
use ff_hlo::{ArrayShape, Builder, Opcode, Program};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::time::Instant;

const COUNT: usize = 20_000;

type Function = fn(f64) -> f64;

const CASES: &[(Opcode, Function)] = &[
    (Opcode::Exponential, f64::exp),
    (Opcode::ExponentialMinusOne, f64::exp_m1),
    (Opcode::Log, f64::ln),
    (Opcode::LogPlusOne, f64::ln_1p),
    (Opcode::Logistic, |x| 1.0 / (1.0 + (-x).exp())),
    (Opcode::Tanh, f64::tanh),
    (Opcode::Sine, f64::sin),
    (Opcode::Cosine, f64::cos),
    (Opcode::Tan, f64::tan),
    (Opcode::Atan, f64::atan),
    (Opcode::Asin, f64::asin),
    (Opcode::Sinh, f64::sinh),
    (Opcode::Asinh, f64::asinh),
    (Opcode::Power, |x| x.powf(x)),
    (Opcode::Atan2, |x| x.atan2(x)),
];

/// `f(x) x`, or `f(x, x) x`.
fn program(opcode: Opcode, dtype: DataType) -> Result<Program> {
    let mut b = Builder::new("function");
    let x = b.parameter(0, ArrayShape::new(dtype, &[COUNT as i64]), "x")?;
    let y = match opcode {
        Opcode::Power | Opcode::Atan2 => b.binary(opcode, x, x)?,
        _ => b.unary(opcode, x)?,
    };
    let root = b.multiply(y, x)?;
    compile(&b.finish(root)?, Compiler::host())
}

fn main() -> Result<()> {
    let pool = ThreadPool::new(1);
    let values: Vec<f64> = (0..COUNT).map(|i| (i % 997) as f64 * 9e-4 + 0.05).collect();
    let short: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let shape = || Shape::new(&[COUNT as i64]);
    for &(opcode, function) in CASES {
        let programs = [
            (
                program(opcode, DataType::DOUBLE)?,
                Tensor::from_slice(shape()?, &values)?,
            ),
            (
                program(opcode, DataType::FLOAT)?,
                Tensor::from_slice(shape()?, &short)?,
            ),
        ];
        let mut best = [f64::INFINITY; 3];
        for _ in 0..100 {
            for (at, (program, x)) in programs.iter().enumerate() {
                let start = Instant::now();
                std::hint::black_box(program.run(&pool, vec![x.clone()])?);
                best[at] = best[at].min(start.elapsed().as_nanos() as f64);
            }
            let start = Instant::now();
            for &x in &values {
                std::hint::black_box(function(std::hint::black_box(x)));
            }
            best[2] = best[2].min(start.elapsed().as_nanos() as f64);
        }
        let [double, single, library] = best.map(|time| time / COUNT as f64);
        println!("{opcode:26} f64 {double:5.2} ns, f32 {single:5.2} ns, library (f64) {library:5.2} ns");
    }
    Ok(())
}
