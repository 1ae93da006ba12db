//! Runs of a module: in the evaluator as it was given, and compiled after the passes.

use super::inputs::{Random, literal};
use ff_codegen::Compiler;
use ff_hlo::{Module, Program};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Tensor, ensure};
use std::time::Instant;

/// Bytes of code that are kept.
const CODE: usize = 64 << 20;

/// What to run.
pub struct Request {
    /// Whether results are printed.
    pub run: bool,
    /// Whether results of both ways are compared.
    pub compare: bool,
    /// Literals.
    pub inputs: Vec<String>,
    /// The seed of random arguments.
    pub seed: u64,
    /// Runs that are timed.
    pub repeat: u64,
}

impl Request {
    /// Whether the module is to be run.
    pub fn wanted(&self) -> bool {
        self.run || self.compare || self.repeat > 0
    }

    /// Runs a module as it was given and after the passes. INTERNAL where their results differ.
    pub fn perform(&self, given: &Module, prepared: &Module) -> Result<()> {
        let plain = Program::compile(given)?;
        let inputs = self.arguments(&plain)?;
        let compiler = Compiler::new(CODE, None);
        let fused = Program::compile_with(prepared, &compiler)?;
        let expected = plain.run(ThreadPool::serial(), copies(&inputs)?)?;
        let results = fused.run(ThreadPool::serial(), copies(&inputs)?)?;
        if self.run {
            for (index, input) in inputs.iter().enumerate() {
                println!("argument {index}: {} {}", input.dtype(), input.summarize(8));
            }
            for (index, result) in results.iter().enumerate() {
                println!(
                    "result {index}: {} {} {}",
                    result.dtype(),
                    result.shape(),
                    result.summarize(64)
                );
            }
        }
        if self.compare {
            compare(&expected, &results)?;
            println!(
                "equal: {} results, {} steps in the evaluator, {} steps and {} kernels compiled",
                results.len(),
                plain.num_steps(),
                fused.num_steps(),
                compiler.num_compiled()
            );
        }
        if self.repeat > 0 {
            println!("evaluator {:.1} us", best(&plain, &inputs, self.repeat)?);
            println!("compiled {:.1} us", best(&fused, &inputs, self.repeat)?);
        }
        Ok(())
    }

    fn arguments(&self, program: &Program) -> Result<Vec<Tensor>> {
        let shapes: Vec<_> = program
            .shape()
            .parameters
            .iter()
            .flat_map(|shape| shape.leaves())
            .collect();
        if self.inputs.is_empty() {
            let mut random = Random::new(self.seed);
            return shapes.into_iter().map(|shape| random.array(shape)).collect();
        }
        ensure!(
            shapes.len() == self.inputs.len(),
            InvalidArgument,
            "The module has {} parameters, {} literals were given",
            shapes.len(),
            self.inputs.len()
        );
        self.inputs.iter().map(|text| literal(text)).collect()
    }
}

/// Arguments that a program may write over.
fn copies(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let copy = |input: &Tensor| {
        let mut copy = Tensor::zeros(input.dtype(), input.shape().clone())?;
        if let Some(bytes) = copy.bytes_mut() {
            bytes.copy_from_slice(input.bytes());
        }
        Ok(copy)
    };
    inputs.iter().map(copy).collect()
}

fn best(program: &Program, inputs: &[Tensor], repeat: u64) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..repeat {
        let arguments = copies(inputs)?;
        let start = Instant::now();
        program.run(ThreadPool::serial(), arguments)?;
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

/// Bits must be equal, but for the payload of what is not a number.
fn compare(expected: &[Tensor], results: &[Tensor]) -> Result<()> {
    for (index, (expected, result)) in expected.iter().zip(results).enumerate() {
        let both_nan = |at: usize| is_nan(expected, at) && is_nan(result, at);
        let size = expected.dtype().size().max(1);
        let (a, b) = (
            expected.bytes().chunks_exact(size),
            result.bytes().chunks_exact(size),
        );
        let differs = a
            .zip(b)
            .enumerate()
            .position(|(at, (a, b))| a != b && !both_nan(at));
        ensure!(
            differs.is_none(),
            Internal,
            "result {index} differs at element {}",
            differs.unwrap_or(0)
        );
    }
    Ok(())
}

fn is_nan(tensor: &Tensor, at: usize) -> bool {
    let bytes = tensor.bytes();
    let bits = |size: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[at * size..(at + 1) * size]);
        u64::from_le_bytes(word)
    };
    match tensor.dtype() {
        DataType::FLOAT => f32::from_bits(bits(4) as u32).is_nan(),
        DataType::DOUBLE => f64::from_bits(bits(8)).is_nan(),
        DataType::HALF => ff_tensor::f16::from_bits(bits(2) as u16).is_nan(),
        DataType::BFLOAT16 => ff_tensor::bf16::from_bits(bits(2) as u16).is_nan(),
        _ => false,
    }
}
