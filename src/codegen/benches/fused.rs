//! Times fused elementwise expressions and reductions: the table "Fused elementwise and reductions" of the goals.
//!
//! `cargo bench -p ff-codegen`; with `FERROFLOW_REFERENCE` set to an environment that has TensorFlow, each row is
//! followed by its times for the same expression, eager and `jit_compile`, measured between ours.

use ff_codegen::{Compiler, compile};
use ff_hlo::{ArrayShape, Builder, Direction, Module, Op, Opcode, Program, RngAlgorithm};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::time::Instant;

type Build = fn(&mut Builder, Op) -> Result<Op>;

/// A row of the table: name, extents, expression.
struct Case {
    name: &'static str,
    dims: &'static [i64],
    build: Build,
}

const CASES: &[Case] = &[
    Case {
        name: "expression",
        dims: &[10_000],
        build: expression,
    },
    Case {
        name: "expression",
        dims: &[1_000_000],
        build: expression,
    },
    Case {
        name: "expression",
        dims: &[10_000_000],
        build: expression,
    },
    Case {
        name: "softmax",
        dims: &[7_812, 128],
        build: softmax,
    },
    Case {
        name: "softmax",
        dims: &[78_125, 128],
        build: softmax,
    },
    Case {
        name: "layer_norm",
        dims: &[1_302, 768],
        build: layer_norm,
    },
    Case {
        name: "layer_norm",
        dims: &[13_020, 768],
        build: layer_norm,
    },
    Case {
        name: "gelu",
        dims: &[1_000_000],
        build: gelu,
    },
    Case {
        name: "gelu",
        dims: &[10_000_000],
        build: gelu,
    },
    Case {
        name: "dropout",
        dims: &[1_000_000],
        build: dropout,
    },
    Case {
        name: "dropout",
        dims: &[10_000_000],
        build: dropout,
    },
];

/// tanh(x * a + b) * sigmoid(x) + exp(-x * x)
fn expression(b: &mut Builder, x: Op) -> Result<Op> {
    let (scale, shift) = (b.scalar_like(1.5, x)?, b.scalar_like(0.5, x)?);
    let product = b.multiply(x, scale)?;
    let sum = b.add(product, shift)?;
    let tanh = b.unary(Opcode::Tanh, sum)?;
    let gate = b.unary(Opcode::Logistic, x)?;
    let left = b.multiply(tanh, gate)?;
    let square = b.multiply(x, x)?;
    let negative = b.unary(Opcode::Negate, square)?;
    let right = b.unary(Opcode::Exponential, negative)?;
    b.add(left, right)
}

/// softmax(x + bias + mask) over rows.
fn softmax(b: &mut Builder, x: Op) -> Result<Op> {
    let dims = b.dims(x).to_vec();
    let bias = b.parameter(1, ArrayShape::new(DataType::FLOAT, &dims[1..]), "bias")?;
    let mask = b.parameter(2, ArrayShape::new(DataType::FLOAT, &dims[1..]), "mask")?;
    let (bias, mask) = (b.broadcast_to(bias, &dims)?, b.broadcast_to(mask, &dims)?);
    let sum = b.add(x, bias)?;
    let x = b.add(sum, mask)?;
    let max = b.reduce_max(x, &[1])?;
    let max = b.broadcast_reduced(max, &dims, &[1])?;
    let shifted = b.subtract(x, max)?;
    let exp = b.unary(Opcode::Exponential, shifted)?;
    let total = b.reduce_sum(exp, &[1])?;
    let total = b.broadcast_reduced(total, &dims, &[1])?;
    b.divide(exp, total)
}

fn layer_norm(b: &mut Builder, x: Op) -> Result<Op> {
    let dims = b.dims(x).to_vec();
    let gamma = b.parameter(1, ArrayShape::new(DataType::FLOAT, &dims[1..]), "gamma")?;
    let beta = b.parameter(2, ArrayShape::new(DataType::FLOAT, &dims[1..]), "beta")?;
    let (gamma, beta) = (b.broadcast_to(gamma, &dims)?, b.broadcast_to(beta, &dims)?);
    let share = 1.0 / dims[1] as f64;
    let total = b.reduce_sum(x, &[1])?;
    let share = b.scalar_like(share, total)?;
    let mean = b.multiply(total, share)?;
    let mean = b.broadcast_reduced(mean, &dims, &[1])?;
    let centred = b.subtract(x, mean)?;
    let square = b.multiply(centred, centred)?;
    let square = b.reduce_sum(square, &[1])?;
    let variance = b.multiply(square, share)?;
    let epsilon = b.scalar_like(1e-6, variance)?;
    let variance = b.add(variance, epsilon)?;
    let scale = b.unary(Opcode::Rsqrt, variance)?;
    let scale = b.broadcast_reduced(scale, &dims, &[1])?;
    let normal = b.multiply(centred, scale)?;
    let scaled = b.multiply(normal, gamma)?;
    b.add(scaled, beta)
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

/// x / 0.9 where a uniform number is at least 0.1, else zero.
fn dropout(b: &mut Builder, x: Op) -> Result<Op> {
    let dims = b.dims(x).to_vec();
    let state = b.constant_vector(&[7u64, 5, 3])?;
    let bits = b.random_bits(RngAlgorithm::Philox, state, DataType::UINT32, &dims)?;
    let mask = b.scalar_like(8_388_607.0, bits)?;
    let mantissa = b.binary(Opcode::And, bits, mask)?;
    let mantissa = b.convert(mantissa, DataType::INT32)?;
    let number = b.convert(mantissa, DataType::FLOAT)?;
    let unit = b.scalar_like(2f64.powi(-23), number)?;
    let number = b.multiply(number, unit)?;
    let rate = b.scalar_like(0.1, number)?;
    let keep = b.compare(Direction::Ge, number, rate)?;
    let (scale, zero) = (b.scalar_like(1.0 / 0.9, x)?, b.scalar_like(0.0, x)?);
    let scaled = b.multiply(x, scale)?;
    b.select(keep, scaled, zero)
}

fn module(case: &Case) -> Result<Module> {
    let mut b = Builder::new(case.name);
    let x = b.parameter(0, ArrayShape::new(DataType::FLOAT, case.dims), "x")?;
    let root = (case.build)(&mut b, x)?;
    b.finish(root)
}

fn inputs(case: &Case) -> Result<Vec<Tensor>> {
    let make = |dims: &[i64]| -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        let values: Vec<f32> = (0..shape.num_elements())
            .map(|i| (i % 997) as f32 * 0.004 - 2.0)
            .collect();
        Tensor::from_slice(shape, &values)
    };
    let rows = case.dims.len() > 1;
    let mut inputs = vec![make(case.dims)?];
    if rows {
        inputs.push(make(&case.dims[1..])?);
        inputs.push(make(&case.dims[1..])?);
    }
    Ok(inputs)
}

/// Milliseconds of a run, the median of several.
fn time(program: &Program, pool: &ThreadPool, inputs: &[Tensor]) -> Result<f64> {
    let turns = 11;
    let mut times = Vec::new();
    for _ in 0..turns {
        let start = Instant::now();
        std::hint::black_box(program.run(pool, inputs.to_vec())?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[turns / 2])
}

/// The reference's milliseconds, eager and compiled, for a row.
fn reference(child: &mut Option<Reference>, case: &Case) -> String {
    match child {
        Some(child) => child.time(case).unwrap_or_else(|| "-\t-".into()),
        None => "-\t-".into(),
    }
}

/// A Python process that times the reference when asked.
struct Reference {
    input: std::process::ChildStdin,
    output: std::io::BufReader<std::process::ChildStdout>,
}

const SCRIPT: &str = r#"
import sys, time, numpy as np, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(2)
def expression(x): return tf.tanh(x * 1.5 + 0.5) * tf.sigmoid(x) + tf.exp(-x * x)
def softmax(x, a, b): return tf.nn.softmax(x + a + b)
def layer_norm(x, a, b):
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, b, a, 1e-6)
def gelu(x): return tf.nn.gelu(x)
def dropout(x): return tf.nn.experimental.stateless_dropout(x, 0.1, [7, 5], rng_alg='philox')
known = {}
for line in sys.stdin:
    name, *dims = line.split()
    dims = [int(d) for d in dims]
    f = globals()[name]
    make = lambda d: tf.constant((np.arange(np.prod(d)) % 997 * 0.004 - 2).astype(np.float32).reshape(d))
    args = [make(dims)] + ([make(dims[1:])] * 2 if len(dims) > 1 else [])
    out = []
    for jit in (False, True):
        g = known.setdefault((name, jit, tuple(dims)), tf.function(f, jit_compile=jit))
        g(*args)
        times = []
        for _ in range(11):
            start = time.perf_counter()
            g(*args)
            times.append((time.perf_counter() - start) * 1e3)
        out.append("%.3f" % sorted(times)[5])
    print("\t".join(out), flush=True)
"#;

impl Reference {
    fn start() -> Option<Reference> {
        let root = std::env::var_os("FERROFLOW_REFERENCE")?;
        let mut child = std::process::Command::new(std::path::Path::new(&root).join("bin/python"))
            .args(["-c", SCRIPT])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .ok()?;
        Some(Reference {
            input: child.stdin.take()?,
            output: std::io::BufReader::new(child.stdout.take()?),
        })
    }

    fn time(&mut self, case: &Case) -> Option<String> {
        use std::io::{BufRead, Write};
        let dims: Vec<String> = case.dims.iter().map(i64::to_string).collect();
        writeln!(self.input, "{} {}", case.name, dims.join(" ")).ok()?;
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        Some(line.trim().to_string())
    }
}

/// Milliseconds that this thread has run: other processes do not count.
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}

fn main() -> Result<()> {
    // The code generator starts once in a process: not part of a kernel's time.
    ff_codegen::self_test()?;
    let pool = ThreadPool::new(2);
    let mut peer = Reference::start();
    println!("row\tcompile ms\tevaluator ms\tours ms\tTF ms\tTF-XLA ms");
    for case in CASES {
        let compiler = Compiler::new(1 << 20, None);
        let module = module(case)?;
        let start = processor_time();
        let program = compile(&module, &compiler)?;
        let compile_time = processor_time() - start;
        let evaluator = Program::compile(&module)?;
        let inputs = inputs(case)?;
        let evaluated = time(&evaluator, &pool, &inputs)?;
        let first = time(&program, &pool, &inputs)?;
        let peer = reference(&mut peer, case);
        let ours = first.min(time(&program, &pool, &inputs)?);
        println!(
            "{} {:?}\t{compile_time:.1}\t{evaluated:.3}\t{ours:.3}\t{peer}",
            case.name, case.dims
        );
    }
    Ok(())
}
