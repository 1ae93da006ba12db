//! The caches of kernels: one kernel for all shapes, bounded memory, files that are shared and may be damaged.

#![cfg(feature = "llvm")]

use ff_codegen::{Compiler, compile};
use ff_hlo::{Builder, HloShape, Module, Opcode, Program};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Shape, Tensor};

/// tanh(x + bias) and the softmax of its rows, on `rows` rows of `length`.
fn softmax(rows: i64, length: i64) -> Module {
    let mut b = Builder::new("softmax");
    let dims = [rows, length];
    let x = b
        .parameter(0, HloShape::array(DataType::FLOAT, &dims), "x")
        .unwrap();
    let bias = b
        .parameter(1, HloShape::array(DataType::FLOAT, &dims[1..]), "bias")
        .unwrap();
    let bias = b.broadcast_to(bias, &dims).unwrap();
    let sum = b.add(x, bias).unwrap();
    let x = b.unary(Opcode::Tanh, sum).unwrap();
    let exp = b.unary(Opcode::Exponential, x).unwrap();
    let total = b.reduce_sum(exp, &[1]).unwrap();
    let total = b.broadcast_reduced(total, &dims, &[1]).unwrap();
    let root = b.divide(exp, total).unwrap();
    b.finish(root).unwrap()
}

fn chain(opcode: Opcode) -> Module {
    let mut b = Builder::new("chain");
    let x = b
        .parameter(0, HloShape::array(DataType::FLOAT, &[100]), "x")
        .unwrap();
    let y = b.unary(opcode, x).unwrap();
    let root = b.multiply(x, y).unwrap();
    b.finish(root).unwrap()
}

fn check(module: &Module, compiler: &Compiler, dims: &[i64]) {
    let make = |dims: &[i64]| {
        let shape = Shape::new(dims).unwrap();
        let values: Vec<f32> = (0..shape.num_elements())
            .map(|i| (i % 17) as f32 * 0.1 - 0.8)
            .collect();
        Tensor::from_slice(shape, &values).unwrap()
    };
    let inputs = || {
        let all = [make(dims), make(&dims[dims.len() - 1..])];
        all[..module.entry_computation().parameters.len()].to_vec()
    };
    let pool = ThreadPool::serial();
    let computed = compile(module, compiler).unwrap().run(pool, inputs()).unwrap();
    let expected = Program::compile(module).unwrap().run(pool, inputs()).unwrap();
    assert_eq!(computed[0].bytes(), expected[0].bytes());
}

#[test]
fn two_hundred_shapes_share_a_kernel() {
    let compiler = Compiler::new(1 << 20, None);
    for step in 0..200 {
        check(
            &softmax(2 + step % 7, 3 + step),
            &compiler,
            &[2 + step % 7, 3 + step],
        );
    }
    assert_eq!(compiler.num_compiled(), 1);
}

#[test]
fn the_least_used_kernels_leave() {
    let compiler = Compiler::new(1, None);
    for opcode in [Opcode::Tanh, Opcode::Exponential, Opcode::Log] {
        check(&chain(opcode), &compiler, &[100]);
    }
    let one = compiler.cached_bytes();
    assert!(one > 0 && one < 64 << 10, "{one}");
    check(&chain(Opcode::Tanh), &compiler, &[100]);
    assert_eq!(compiler.num_compiled(), 4);
}

#[test]
fn files_serve_other_compilers_and_damage_is_ignored() {
    let folder = std::env::temp_dir().join(format!("ff_kernels_{}", std::process::id()));
    let fresh = || Compiler::new(1 << 20, Some(folder.clone()));
    let (first, second, third) = (fresh(), fresh(), fresh());
    check(&chain(Opcode::Tanh), &first, &[100]);
    check(&chain(Opcode::Tanh), &second, &[100]);
    assert_eq!((first.num_compiled(), second.num_compiled()), (1, 0));
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
    }
    check(&chain(Opcode::Tanh), &third, &[100]);
    assert_eq!(third.num_compiled(), 1);
    let last = fresh();
    check(&chain(Opcode::Tanh), &last, &[100]);
    assert_eq!(last.num_compiled(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}
