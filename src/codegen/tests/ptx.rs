//! PTX text of fusions of every kind, assembled for sm_80 and sm_90 by NVIDIA's `ptxas`.
//!
//! The assembler is the one that `FERROFLOW_PTXAS` names, that on the path, or that of `tools/ptxas.sh`. Without it the
//! texts are made, looked at, and the test says that they were not assembled.

#![cfg(feature = "llvm")]

use ff_codegen::compile_ptx;
use ff_hlo::fusion::FusionPlan;
use ff_hlo::passes::pipeline;
use ff_hlo::{Attributes, Builder, Direction, GatherDims, HloShape, Module, Op, Opcode, PadDimension};
use ff_tensor::{Code, DataType, Result};
use std::path::PathBuf;
use std::process::Command;

const PROCESSORS: &[&str] = &["sm_80", "sm_90"];

const FLOATS: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
];

const INTEGERS: &[DataType] = &[
    DataType::INT8,
    DataType::INT16,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT16,
    DataType::UINT32,
    DataType::UINT64,
];

/// A module of one fusion.
fn module(name: &str, make: impl FnOnce(&mut Builder) -> Result<Op>) -> (String, Module) {
    let mut b = Builder::new(name);
    let root = make(&mut b).unwrap_or_else(|error| panic!("{name}: {error}"));
    (name.to_string(), b.finish(root).unwrap())
}

fn input(b: &mut Builder, number: usize, dtype: DataType, dims: &[i64]) -> Result<Op> {
    b.parameter(number, HloShape::array(dtype, dims), "x")
}

/// Elementwise instructions, two at a time so that there is something to fuse.
fn elementwise(out: &mut Vec<(String, Module)>) {
    use Opcode::*;
    const UNARY: &[Opcode] = &[
        Abs,
        Acos,
        Acosh,
        Asin,
        Asinh,
        Atan,
        Atanh,
        Ceil,
        Cosh,
        Sinh,
        Tan,
        Cosine,
        Erf,
        Exponential,
        ExponentialMinusOne,
        Floor,
        Log,
        LogPlusOne,
        Logistic,
        Negate,
        RoundNearestAfz,
        RoundNearestEven,
        Rsqrt,
        Sign,
        Sine,
        Sqrt,
        Tanh,
    ];
    const BINARY: &[Opcode] = &[Add, Atan2, Divide, Maximum, Minimum, Multiply, Power, Subtract];
    const WHOLE_UNARY: &[Opcode] = &[Abs, CountLeadingZeros, Negate, Not, Popcnt, Sign];
    const WHOLE_BINARY: &[Opcode] = &[
        Add,
        And,
        Divide,
        Maximum,
        Minimum,
        Multiply,
        Or,
        Remainder,
        ShiftLeft,
        ShiftRightArithmetic,
        ShiftRightLogical,
        Subtract,
        Xor,
    ];
    for (types, unary, binary) in [(FLOATS, UNARY, BINARY), (INTEGERS, WHOLE_UNARY, WHOLE_BINARY)] {
        for &dtype in types {
            for (opcode, operands) in unary
                .iter()
                .map(|o| (*o, 1))
                .chain(binary.iter().map(|o| (*o, 2)))
            {
                let name = format!("{opcode}_{dtype}").replace('-', "_");
                out.push(module(&name, |b| {
                    let (x, y) = (input(b, 0, dtype, &[6, 40])?, input(b, 1, dtype, &[6, 40])?);
                    let sum = b.add(x, y)?;
                    match operands {
                        1 => b.unary(opcode, sum),
                        _ => b.binary(opcode, sum, y),
                    }
                }));
            }
        }
    }
}

/// Broadcasts, transposes, counters, comparisons, conversions.
fn views(out: &mut Vec<(String, Module)>) {
    let float = DataType::FLOAT;
    out.push(module("row", |b| {
        let (x, row) = (input(b, 0, float, &[6, 40])?, input(b, 1, float, &[40])?);
        let row = b.broadcast_in_dim(row, &[6, 40], &[1])?;
        let sum = b.add(x, row)?;
        b.unary(Opcode::Tanh, sum)
    }));
    out.push(module("column", |b| {
        let (x, column) = (input(b, 0, float, &[6, 40])?, input(b, 1, float, &[6])?);
        let column = b.broadcast_in_dim(column, &[6, 40], &[0])?;
        let sum = b.add(x, column)?;
        b.unary(Opcode::Exponential, sum)
    }));
    out.push(module("turned", |b| {
        let (x, y) = (input(b, 0, float, &[6, 40])?, input(b, 1, float, &[40, 6])?);
        let y = b.transpose(y, &[1, 0])?;
        let sum = b.add(x, y)?;
        b.multiply(sum, sum)
    }));
    out.push(module("count", |b| {
        let x = input(b, 0, float, &[6, 40])?;
        let count = b.iota(float, &[6, 40], 1)?;
        let sum = b.add(x, count)?;
        b.multiply(sum, x)
    }));
    out.push(module("select", |b| {
        let (x, y) = (input(b, 0, float, &[6, 40])?, input(b, 1, float, &[6, 40])?);
        let less = b.compare(Direction::Lt, x, y)?;
        let sum = b.add(x, y)?;
        b.select(less, sum, y)
    }));
    for &from in FLOATS.iter().chain(INTEGERS) {
        for &to in FLOATS.iter().chain(INTEGERS).filter(|&&to| to != from) {
            let name = format!("convert_{from}_{to}");
            out.push(module(&name, |b| {
                let x = input(b, 0, from, &[6, 40])?;
                let sum = b.add(x, x)?;
                b.convert(sum, to)
            }));
        }
    }
}

/// Reductions of rows, alone, in chains, and with elementwise work around them.
fn reductions(out: &mut Vec<(String, Module)>) {
    for &dtype in FLOATS {
        for opcode in [Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply] {
            out.push(module(&format!("reduce_{opcode}_{dtype}"), |b| {
                let (x, y) = (input(b, 0, dtype, &[6, 40])?, input(b, 1, dtype, &[6, 40])?);
                let product = b.multiply(x, y)?;
                b.reduce_by(opcode, product, &[1])
            }));
        }
        out.push(module(&format!("softmax_{dtype}"), |b| {
            let x = input(b, 0, dtype, &[6, 40])?;
            let most = b.reduce_max(x, &[1])?;
            let most = b.broadcast_in_dim(most, &[6, 40], &[0])?;
            let shifted = b.subtract(x, most)?;
            let exp = b.unary(Opcode::Exponential, shifted)?;
            let sum = b.reduce_sum(exp, &[1])?;
            let sum = b.broadcast_in_dim(sum, &[6, 40], &[0])?;
            b.divide(exp, sum)
        }));
    }
}

/// Padding, concatenation, dynamic slices and gathers, read in place.
fn moves(out: &mut Vec<(String, Module)>) {
    for &dtype in FLOATS.iter().chain(INTEGERS) {
        let add = |b: &mut Builder, moved: Op| b.add(moved, moved);
        out.push(module(&format!("pad_{dtype}"), |b| {
            let (x, value) = (input(b, 0, dtype, &[6, 40])?, input(b, 1, dtype, &[])?);
            let pad = |low, high, interior| PadDimension { low, high, interior };
            let padded = b.pad(x, value, [pad(1, 2, 1), pad(3, -1, 0)].into_iter().collect())?;
            add(b, padded)
        }));
        out.push(module(&format!("concatenate_{dtype}"), |b| {
            let (x, y) = (input(b, 0, dtype, &[6, 40])?, input(b, 1, dtype, &[6, 24])?);
            let both = b.concatenate(&[x, y], 1)?;
            add(b, both)
        }));
        out.push(module(&format!("update_{dtype}"), |b| {
            let (x, y) = (input(b, 0, dtype, &[6, 40])?, input(b, 1, dtype, &[2, 40])?);
            let start = input(b, 2, DataType::INT32, &[])?;
            let updated = b.dynamic_update_slice(x, y, &[start, start])?;
            add(b, updated)
        }));
        out.push(module(&format!("gather_{dtype}"), |b| {
            let (x, indices) = (
                input(b, 0, dtype, &[90, 40])?,
                input(b, 1, DataType::INT64, &[70])?,
            );
            let rows = b.gather(
                x,
                indices,
                GatherDims {
                    offset_dims: [1].into_iter().collect(),
                    collapsed_slice_dims: [0].into_iter().collect(),
                    start_index_map: [0].into_iter().collect(),
                    index_vector_dim: 1,
                    slice_sizes: [1, 40].into_iter().collect(),
                    ..GatherDims::default()
                },
            )?;
            add(b, rows)
        }));
    }
}

/// The plans of a module's fusions.
fn plans(module: &Module) -> Vec<FusionPlan> {
    let mut module = module.clone();
    pipeline::prepare(&mut module).unwrap();
    let instructions = module
        .computations
        .iter()
        .flat_map(|computation| &computation.instructions);
    let called = instructions.filter_map(
        |instruction| match (instruction.opcode, &instruction.attributes) {
            (Opcode::Fusion, Attributes::Call(called)) => module.computation(*called).ok(),
            _ => None,
        },
    );
    called
        .filter_map(|called| FusionPlan::of(&module.computations, called).ok())
        .collect()
}

fn assembler() -> Option<PathBuf> {
    let runs = |path: &PathBuf| Command::new(path).arg("--version").output().is_ok();
    let named = std::env::var_os("FERROFLOW_PTXAS").map(PathBuf::from);
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/ptxas.sh");
    let fetched = || {
        let output = Command::new(script).arg("--where").output().ok()?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_string();
        output.status.success().then(|| PathBuf::from(path))
    };
    named
        .or_else(|| Some(PathBuf::from("ptxas")).filter(runs))
        .or_else(fetched)
        .filter(runs)
}

#[test]
fn ptx_is_assembled() {
    let mut modules = Vec::new();
    elementwise(&mut modules);
    views(&mut modules);
    reductions(&mut modules);
    moves(&mut modules);
    let folder = std::env::temp_dir().join(format!("ff_ptx_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut files, mut without) = (Vec::new(), Vec::new());
    for (name, module) in &modules {
        for (number, plan) in plans(module).iter().enumerate() {
            for processor in PROCESSORS {
                match compile_ptx(&format!("{name}_{number}"), plan, processor) {
                    Ok(text) => {
                        assert!(text.contains(&format!(".target {processor}")), "{name}");
                        assert!(text.contains(&format!(".entry {name}_{number}")), "{name}");
                        let file = folder.join(format!("{name}_{number}.{processor}.ptx"));
                        std::fs::write(&file, text).unwrap();
                        files.push((file, *processor));
                    }
                    Err(error) if error.code() == Code::Unimplemented => without.push(name.clone()),
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }
    without.dedup();
    println!("{} texts; none for {}", files.len(), without.join(", "));
    assert!(
        files.len() > 300,
        "{} texts of {} modules",
        files.len(),
        modules.len()
    );
    match assembler() {
        Some(assembler) => assemble(&assembler, &files),
        None => println!("SKIPPED: no ptxas here (tools/ptxas.sh fetches it): the texts were not assembled"),
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Assembles each file; all failures together.
fn assemble(assembler: &PathBuf, files: &[(PathBuf, &str)]) {
    let mut failures = String::new();
    for (file, processor) in files {
        let output = Command::new(assembler)
            .arg(format!("-arch={processor}"))
            .args(["-O0", "-o"])
            .arg(file.with_extension("cubin"))
            .arg(file)
            .output()
            .unwrap();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            failures += &format!(
                "{}: {}\n",
                file.display(),
                text.lines().next().unwrap_or_default()
            );
        }
    }
    println!("{} texts assembled by {}", files.len(), assembler.display());
    assert!(failures.is_empty(), "{failures}");
}
