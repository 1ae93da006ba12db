//! Runs every pass on its text files.
//!
//! A file in `tests/hlo/<pass>/` holds a module, a line `// after`, and the module that the pass makes of it. With
//! `FF_BLESS=1` the second half is written anew. Both halves are verified, and run on the same inputs with equal bits.

use ff_hlo::evaluator::Program;
use ff_hlo::passes::pipeline;
use ff_hlo::{HloShape, Module, parse, print, verify};
use ff_kernels::ThreadPool;
use ff_tensor::{Shape, Tensor};
use std::path::Path;

const MARK: &str = "// after\n";

/// Inputs of the entry: bytes that count, so small numbers in integer types and arbitrary ones in others.
fn inputs(module: &Module) -> Vec<Tensor> {
    let mut inputs = Vec::new();
    for shape in module
        .entry_computation()
        .program_shape()
        .parameters
        .iter()
        .flat_map(HloShape::leaves)
    {
        let mut tensor = Tensor::zeros(shape.dtype, Shape::new(&shape.dims).unwrap()).unwrap();
        let size = shape.dtype.size();
        for (number, element) in tensor.bytes_mut().unwrap().chunks_exact_mut(size).enumerate() {
            if shape.dtype.is_floating() && size == 4 {
                element.copy_from_slice(&(number as f32 * 0.75 - 1.0).to_ne_bytes());
            } else {
                element[0] = if shape.dtype == ff_tensor::DataType::BOOL {
                    number as u8 % 2
                } else {
                    number as u8 % 7
                };
            }
        }
        inputs.push(tensor);
    }
    inputs
}

fn results(module: &Module) -> Vec<Vec<u8>> {
    let program = Program::compile(module).unwrap();
    let results = program.run(ThreadPool::serial(), inputs(module)).unwrap();
    results.iter().map(|result| result.bytes().to_vec()).collect()
}

fn check(path: &Path, run: fn(&mut Module) -> ff_tensor::Result<ff_hlo::passes::Changed>) {
    let text = std::fs::read_to_string(path).unwrap();
    let (before, after) = text.split_once(MARK).unwrap_or((&text, ""));
    let original = parse(before).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut module = original.clone();
    let changed = run(&mut module).unwrap();
    verify(&module).unwrap_or_else(|error| panic!("{}: {error}\n{}", path.display(), print(&module)));
    assert_eq!(
        changed == ff_hlo::passes::Changed::Yes,
        print(&original) != print(&module),
        "{}",
        path.display()
    );
    if std::env::var_os("FF_BLESS").is_some() {
        std::fs::write(path, format!("{}\n{MARK}{}", before.trim_end(), print(&module))).unwrap();
    } else {
        assert_eq!(print(&module), after, "{}", path.display());
    }
    assert_eq!(results(&original), results(&module), "{}", path.display());
}

#[test]
fn passes_do_what_their_files_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hlo");
    let mut count = 0;
    for pass in pipeline::ALL.iter().chain(pipeline::LAST) {
        for entry in std::fs::read_dir(root.join(pass.name)).unwrap() {
            check(&entry.unwrap().path(), pass.run);
            count += 1;
        }
    }
    assert!(count >= 10);
}
