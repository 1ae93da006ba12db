//! Random programs: what is compiled has the bits of what the evaluator computes, but for the payload of NaN.
//!
//! `FF_RANDOM_PROGRAMS=100000 cargo test -p ff-codegen --test random --release` runs more of them; `FF_RANDOM_SEED` says
//! where they start.

#![cfg(feature = "llvm")]

mod moves;
mod program;

use ff_codegen::{Compiler, compile, has_code};
use ff_hlo::fusion::FusionPlan;
use ff_hlo::passes::pipeline;
use ff_hlo::{Attributes, Module, Opcode, Program, print};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Shape, Tensor};
use program::program;

/// A small generator of its own (xorshift): tests are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }
}

fn input(random: &mut Random, dtype: DataType, dims: &[i64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, Shape::new(dims).unwrap()).unwrap();
    let size = dtype.size();
    for element in tensor.bytes_mut().unwrap().chunks_exact_mut(size) {
        let small = random.next(4001) as f64 / 500.0 - 4.0;
        match dtype {
            DataType::FLOAT if random.next(16) == 0 => {
                let odd = random.pick(&[0.0, -0.0, f32::INFINITY, f32::NAN, 1e-40, 3e38, 1e10, -1e10]);
                element.copy_from_slice(&odd.to_ne_bytes());
            }
            DataType::FLOAT => element.copy_from_slice(&(small as f32).to_ne_bytes()),
            DataType::DOUBLE if random.next(16) == 0 => {
                let odd = random.pick(&[
                    0.0,
                    -0.0,
                    f64::INFINITY,
                    f64::NAN,
                    1e-310,
                    1e308,
                    1e10,
                    -1e10,
                    700.0,
                    -0.1,
                ]);
                element.copy_from_slice(&odd.to_ne_bytes());
            }
            DataType::DOUBLE => element.copy_from_slice(&small.to_ne_bytes()),
            DataType::BFLOAT16 => {
                element.copy_from_slice(&((small as f32).to_bits() >> 16).to_ne_bytes()[..2])
            }
            DataType::HALF => {
                let bits = 0x3000 + random.next(0x1400) as u16 + ((random.next(2) as u16) << 15);
                element.copy_from_slice(&bits.to_ne_bytes());
            }
            DataType::BOOL => element[0] = random.next(2) as u8,
            // The largest and the lowest of a type, and minus one.
            _ if random.next(8) == 0 => {
                let (last, others) = random.pick(&[(0xff, 0xff), (0x80, 0), (0x7f, 0xff)]);
                element.fill(others);
                element[size - 1] = last;
            }
            _ if random.next(4) == 0 => element.iter_mut().for_each(|byte| *byte = random.next(256) as u8),
            _ => element[0] = random.next(20) as u8,
        }
    }
    tensor
}

/// The bits of a tensor with one pattern for all that is not a number.
fn bits(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.bytes().to_vec();
    let size = tensor.dtype().size();
    for element in bytes.chunks_exact_mut(size) {
        let nan = match tensor.dtype() {
            DataType::FLOAT => f32::from_ne_bytes(element.try_into().unwrap()).is_nan(),
            DataType::DOUBLE => f64::from_ne_bytes(element.try_into().unwrap()).is_nan(),
            DataType::HALF => u16::from_ne_bytes(element.try_into().unwrap()) & 0x7fff > 0x7c00,
            DataType::BFLOAT16 => u16::from_ne_bytes(element.try_into().unwrap()) & 0x7fff > 0x7f80,
            _ => false,
        };
        if nan {
            element.fill(0xff);
        }
    }
    bytes
}

/// How many fusions with code read elements at computed places, and how many draw random bits.
fn count_reads(module: &Module) -> [usize; 2] {
    let mut module = module.clone();
    pipeline::prepare(&mut module).unwrap();
    let instructions = module
        .computations
        .iter()
        .flat_map(|computation| &computation.instructions);
    let fusions = instructions.filter_map(|instruction| match instruction.attributes {
        Attributes::Call(called) if instruction.opcode == Opcode::Fusion => Some(called),
        _ => None,
    });
    let plans = fusions
        .filter_map(|called| FusionPlan::of(&module.computations, module.computation(called).unwrap()).ok())
        .filter(has_code);
    plans.fold([0, 0], |[reads, draws], plan| {
        [
            reads + usize::from(!plan.reads.is_empty()),
            draws + usize::from(plan.draws()),
        ]
    })
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

#[test]
fn compiled_programs_have_the_evaluators_bits() {
    let (count, seed) = (number("FF_RANDOM_PROGRAMS", 1500), number("FF_RANDOM_SEED", 1));
    let compiler = Compiler::new(16 << 20, None);
    let pool = ThreadPool::new(2);
    let mut counts = [0, 0];
    for round in 0..count {
        let mut random = Random((seed + round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next(2);
        let Ok((module, shapes)) = program(&mut random) else {
            continue;
        };
        if round < 500 {
            let [reads, draws] = count_reads(&module);
            counts = [counts[0] + reads, counts[1] + draws];
        }
        let inputs: Vec<Tensor> = shapes
            .iter()
            .map(|(dtype, dims)| input(&mut random, *dtype, dims))
            .collect();
        let owned = || {
            inputs
                .iter()
                .map(|input| input.deep_copy().unwrap())
                .collect::<Vec<_>>()
        };
        let Ok(evaluated) = Program::compile(&module) else {
            continue;
        };
        let expected = evaluated.run(&pool, owned()).unwrap();
        let program = compile(&module, &compiler).unwrap();
        let computed = program.run(&pool, owned()).unwrap();
        for (index, (a, b)) in computed.iter().zip(&expected).enumerate() {
            assert!(
                bits(a) == bits(b),
                "program {round}, result {index}\n{}\n{a:?}\n{b:?}",
                print(&module)
            );
        }
    }
    assert!(
        count < 500 || counts[0] > 50 && counts[1] > 20,
        "{counts:?} fusions with reads and random bits"
    );
    assert!(count < 1000 || compiler.num_compiled() > 100);
}
