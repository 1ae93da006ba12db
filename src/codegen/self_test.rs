//! A check that the code generator of this very library works, for installers and packagers.

use crate::{Compiler, compile, compile_ptx, version};
use ff_hlo::fusion::FusionPlan;
use ff_hlo::{Attributes, Builder, HloShape, Module, Opcode, Program, passes};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor, ensure, status};

/// Compiles `tanh(a * b + c)` for this processor, runs it on arrays of awkward lengths, compares with the evaluator, and
/// compiles it for NVPTX. UNIMPLEMENTED without LLVM; INTERNAL if a result is wrong.
pub fn self_test() -> Result<()> {
    ensure!(
        version().is_some(),
        Unimplemented,
        "this library was built without LLVM"
    );
    let compiler = Compiler::new(1 << 20, None);
    for length in [1usize, 15, 16, 17, 1000] {
        let module = example(length as i64)?;
        let array = |scale: f32| -> Result<Tensor> {
            let values: Vec<f32> = (0..length).map(|i| (i as f32 - 7.0) * scale).collect();
            Tensor::from_slice(Shape::new(&[length as i64])?, &values)
        };
        let inputs = || -> Result<Vec<Tensor>> { Ok(vec![array(0.5)?, array(0.125)?, array(-0.3)?]) };
        let pool = ThreadPool::serial();
        let computed = compile(&module, &compiler)?.run(pool, inputs()?)?;
        let expected = Program::compile(&module)?.run(pool, inputs()?)?;
        ensure!(
            computed[0].bytes() == expected[0].bytes(),
            Internal,
            "compiled code computed other bits than the evaluator for {length} elements"
        );
    }
    let ptx = compile_ptx("example", &plan(&example(100)?)?, "sm_70")?;
    ensure!(
        ptx.contains(".visible .entry example"),
        Internal,
        "the PTX text has no entry"
    );
    Ok(())
}

fn example(length: i64) -> Result<Module> {
    let mut b = Builder::new("example");
    let shape = || HloShape::array(DataType::FLOAT, &[length]);
    let x = b.parameter(0, shape(), "a")?;
    let y = b.parameter(1, shape(), "b")?;
    let z = b.parameter(2, shape(), "c")?;
    let product = b.multiply(x, y)?;
    let sum = b.add(product, z)?;
    let root = b.unary(Opcode::Tanh, sum)?;
    b.finish(root)
}

/// The plan of the only fusion of a module.
pub(crate) fn plan(module: &Module) -> Result<FusionPlan> {
    let mut module = module.clone();
    passes::pipeline::prepare(&mut module)?;
    let mut instructions = module.entry_computation().instructions.iter();
    let called = instructions.find_map(
        |instruction| match (instruction.opcode, &instruction.attributes) {
            (Opcode::Fusion, Attributes::Call(called)) => Some(*called),
            _ => None,
        },
    );
    let called = called.ok_or_else(|| status!(Internal, "a module has no fusion"))?;
    FusionPlan::of(&module.computations, module.computation(called)?)
}

/// The plan of the fusion that the check compiles.
#[cfg(all(test, feature = "llvm"))]
pub(crate) fn example_plan() -> FusionPlan {
    example(100).and_then(|module| plan(&module)).unwrap()
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "llvm")]
    #[test]
    fn passes() {
        super::self_test().unwrap();
    }

    #[cfg(not(feature = "llvm"))]
    #[test]
    fn says_that_llvm_is_missing() {
        let error = super::self_test().unwrap_err();
        assert_eq!(error.code(), ff_tensor::Code::Unimplemented);
    }
}
