//! Times fusions that read what is padded, concatenated, sliced or gathered in place against fusions that are given it.
//!
//! `cargo bench -p ff-codegen --bench moves`: nanoseconds of the fastest of many runs, both in turns.

use ff_codegen::{Compiler, compile};
use ff_hlo::{ArrayShape, Builder, GatherDims, Module, Op, Opcode, PadDimension, Program};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};
use std::time::Instant;

type Build = fn(&mut Builder) -> Result<Op>;

const FLOAT: DataType = DataType::FLOAT;

fn input(b: &mut Builder, number: usize, dtype: DataType, dims: &[i64]) -> Result<Op> {
    b.parameter(number, ArrayShape::new(dtype, dims), "x")
}

fn padded(b: &mut Builder, dims: &[i64], config: &[(i64, i64, i64)]) -> Result<Op> {
    let (x, value) = (input(b, 0, FLOAT, dims)?, input(b, 1, FLOAT, &[])?);
    let pads = config
        .iter()
        .map(|&(low, high, interior)| PadDimension { low, high, interior });
    b.pad(x, value, pads.collect())
}

fn rows(b: &mut Builder, table: &[i64], count: i64) -> Result<Op> {
    let (x, indices) = (
        input(b, 0, FLOAT, table)?,
        input(b, 1, DataType::INT32, &[count])?,
    );
    let width = table.get(1).copied();
    let dims = GatherDims {
        offset_dims: width.iter().map(|_| 1).collect(),
        collapsed_slice_dims: [0].into_iter().collect(),
        start_index_map: [0].into_iter().collect(),
        index_vector_dim: 1,
        slice_sizes: [1].into_iter().chain(width).collect(),
        ..GatherDims::default()
    };
    b.gather(x, indices, dims)
}

fn joined(b: &mut Builder, dims: &[i64], axis: usize) -> Result<Op> {
    let parts = [
        input(b, 0, FLOAT, dims)?,
        input(b, 1, FLOAT, dims)?,
        input(b, 2, FLOAT, dims)?,
    ];
    b.concatenate(&parts, axis)
}

const CASES: &[(&str, Build)] = &[
    ("pad images 32x28x28x64", |b| {
        padded(
            b,
            &[32, 28, 28, 64],
            &[(0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0)],
        )
    }),
    ("pad rows 1000x256", |b| {
        padded(b, &[1000, 256], &[(0, 0, 0), (3, 5, 0)])
    }),
    ("pad 20x16", |b| padded(b, &[20, 16], &[(1, 1, 0), (0, 0, 0)])),
    ("spread 512x512", |b| {
        padded(b, &[512, 512], &[(0, 0, 1), (0, 0, 1)])
    }),
    ("spread outer 512x512", |b| {
        padded(b, &[512, 512], &[(0, 0, 1), (0, 0, 0)])
    }),
    ("join columns 3 of 2000x128", |b| joined(b, &[2000, 128], 1)),
    ("join columns 3 of 20000x16", |b| joined(b, &[20000, 16], 1)),
    ("join rows 3 of 2000x128", |b| joined(b, &[2000, 128], 0)),
    ("join 3 of 10", |b| joined(b, &[10], 0)),
    ("rows 8192 of 30000x128", |b| rows(b, &[30_000, 128], 8192)),
    ("rows 32 of 1000x64", |b| rows(b, &[1000, 64], 32)),
    ("elements 100000 of 1000", |b| rows(b, &[1000], 100_000)),
    ("slice 1024x512 of 4096x512", |b| {
        let x = input(b, 0, FLOAT, &[4096, 512])?;
        let starts = [
            input(b, 1, DataType::INT32, &[])?,
            input(b, 2, DataType::INT32, &[])?,
        ];
        b.dynamic_slice(x, &starts, &[1024, 512])
    }),
    ("write 1x64 into 1024x64", |b| {
        let (x, part) = (input(b, 0, FLOAT, &[1024, 64])?, input(b, 1, FLOAT, &[1, 64])?);
        let starts = [
            input(b, 2, DataType::INT32, &[])?,
            input(b, 3, DataType::INT32, &[])?,
        ];
        b.dynamic_update_slice(x, part, &starts)
    }),
];

/// Sums of columns of squares, of a type; squares are given behind a barrier.
fn columns(dtype: DataType, dims: &[i64], barrier: bool) -> Result<Module> {
    let mut b = Builder::new("columns");
    let x = input(&mut b, 0, dtype, dims)?;
    let square = b.multiply(x, x)?;
    let sum = b.add(square, x)?;
    let sum = if barrier { b.opt_barrier(sum)? } else { sum };
    let root = b.reduce_sum(sum, &[0])?;
    b.finish(root)
}

/// The larger one of twice the moved elements and zero; the move stays outside behind a barrier.
fn module(build: Build, barrier: bool) -> Result<Module> {
    let mut b = Builder::new("moves");
    let mut moved = build(&mut b)?;
    if barrier {
        moved = b.opt_barrier(moved)?;
    }
    let twice = b.add(moved, moved)?;
    let zero = b.scalar_like(0.0, twice)?;
    let root = b.binary(Opcode::Maximum, twice, zero)?;
    b.finish(root)
}

fn inputs(program: &Program) -> Result<Vec<Tensor>> {
    let mut inputs = Vec::new();
    for shape in program.shape().parameters.iter().flat_map(|shape| shape.leaves()) {
        let count = shape.num_elements();
        let dims = Shape::new(&shape.dims)?;
        inputs.push(if shape.dtype == FLOAT {
            let values: Vec<f32> = (0..count).map(|i| (i % 997) as f32 * 0.004 - 2.0).collect();
            Tensor::from_slice(dims, &values)?
        } else if shape.dtype.is_floating() {
            Tensor::zeros(shape.dtype, dims)?
        } else {
            let values: Vec<i32> = (0..count).map(|i| (i * 7919 % 997) as i32).collect();
            Tensor::from_slice(dims, &values)?
        });
    }
    Ok(inputs)
}

fn main() -> Result<()> {
    let pool = ThreadPool::new(1);
    let mut pairs = Vec::new();
    for &(name, build) in CASES {
        pairs.push((name.to_string(), [module(build, false)?, module(build, true)?]));
    }
    for dtype in [FLOAT, DataType::BFLOAT16, DataType::HALF] {
        for dims in [[512, 1024], [4000, 250], [16, 3000]] {
            let pair = [columns(dtype, &dims, false)?, columns(dtype, &dims, true)?];
            pairs.push((format!("columns of {dtype} {}x{}", dims[0], dims[1]), pair));
        }
    }
    for (name, modules) in pairs {
        let mut programs = Vec::new();
        for module in &modules {
            programs.push(compile(module, Compiler::host())?);
        }
        let inputs = inputs(&programs[0])?;
        let mut best = [f64::INFINITY; 2];
        let start = Instant::now();
        while start.elapsed().as_millis() < 700 {
            for (program, best) in programs.iter().zip(&mut best) {
                let given = inputs.clone();
                let start = Instant::now();
                std::hint::black_box(program.run(&pool, given)?);
                *best = best.min(start.elapsed().as_nanos() as f64);
            }
        }
        println!(
            "{name:28} in place {:9.0} ns, given {:9.0} ns, {:.2} times as fast",
            best[0],
            best[1],
            best[1] / best[0]
        );
    }
    Ok(())
}
