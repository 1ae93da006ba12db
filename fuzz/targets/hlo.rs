//! Target `hlo`: HLO text, parsed, printed, optimized and run; optimized and plain modules must agree bit for bit.

use super::{Form, Target};
use ff_hlo::passes::pipeline;
use ff_hlo::{HloShape, Module, Program, parse, print, verify};
use ff_kernels::ThreadPool;
use ff_tensor::{Code, Shape, Tensor};

/// HLO text.
pub static HLO: Target = Target {
    name: "hlo",
    about: "HLO text: parse, print, verify, passes, evaluate, compare",
    form: Form::Bytes,
    from: &["hlo"],
    make: super::texts::make,
    run,
};

/// Most elements of all values of a module that is run.
const MOST_ELEMENTS: usize = 1 << 18;

fn run(bytes: &[u8]) {
    let Ok(module) = parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    assert!(verify(&module).is_ok(), "what is parsed is verified");
    let again = parse(&print(&module)).expect("what is printed can be parsed");
    assert_eq!(print(&again), print(&module), "it prints the same");
    let mut optimized = module.clone();
    pipeline::run(&mut optimized).expect("the passes run on verified modules");
    verify(&optimized).expect("the passes make verified modules");
    if num_elements(&module).is_none_or(|count| count > MOST_ELEMENTS) || has_loop(&module) {
        return;
    }
    let (plain, fast) = (results(&module), results(&optimized));
    match (plain, fast) {
        (Ok(plain), Ok(fast)) => assert!(plain == fast, "passes change the result"),
        (Err(one), Err(other)) => assert_eq!(one, other, "passes change the error"),
        // Passes may drop a check or an instruction that nothing reads.
        (Err(Code::Unimplemented | Code::ResourceExhausted), _) => {}
        (plain, fast) => assert!(plain.is_err() && fast.is_ok(), "passes make an error"),
    }
}

/// Elements of all arrays of a module; none when they cannot be counted.
fn num_elements(module: &Module) -> Option<usize> {
    let mut sum = 0usize;
    for computation in &module.computations {
        for instruction in &computation.instructions {
            for leaf in instruction.shape.leaves() {
                let count = leaf.dims.iter().try_fold(1usize, |count, &extent| {
                    count.checked_mul(usize::try_from(extent).ok()?)
                })?;
                sum = sum.checked_add(count)?;
            }
        }
    }
    Some(sum)
}

/// Whether a module may run for ever.
fn has_loop(module: &Module) -> bool {
    let instructions = module.computations.iter().flat_map(|it| &it.instructions);
    instructions
        .into_iter()
        .any(|it| it.opcode == ff_hlo::Opcode::While)
}

fn results(module: &Module) -> Result<Vec<Vec<u8>>, Code> {
    let mut inputs = Vec::new();
    let shape = module.entry_computation().program_shape();
    for leaf in shape.parameters.iter().flat_map(HloShape::leaves) {
        let tensor = Shape::new(&leaf.dims).and_then(|shape| Tensor::zeros(leaf.dtype, shape));
        let mut tensor = tensor.map_err(|error| error.code())?;
        let size = leaf.dtype.size().max(1);
        if let Some(bytes) = tensor.bytes_mut() {
            for (number, element) in bytes.chunks_exact_mut(size).enumerate() {
                element[0] = number as u8 % 2;
                element[size - 1] |= if leaf.dtype.is_floating() { 0x3c } else { 0 };
            }
        }
        inputs.push(tensor);
    }
    let program = Program::compile(module).map_err(|error| error.code())?;
    let results = program
        .run(ThreadPool::serial(), inputs)
        .map_err(|error| error.code())?;
    Ok(results.iter().map(|result| result.bytes().to_vec()).collect())
}
