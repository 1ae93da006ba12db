//! A check that the code generator of this very library works, for installers and packagers.

use crate::{CompiledKernel, Elementwise, Instruction, compile_ptx};
use ff_tensor::{Result, ensure};

/// Compiles `a * b + c` for this processor, runs it on arrays of awkward lengths, compares with plain Rust, and
/// compiles it for NVPTX. UNIMPLEMENTED without LLVM; INTERNAL if a result is wrong.
pub fn self_test() -> Result<()> {
    let kernel = Elementwise {
        name: "multiply_add".into(),
        inputs: 3,
        body: vec![
            Instruction::Input(0),
            Instruction::Input(1),
            Instruction::Multiply(0, 1),
            Instruction::Input(2),
            Instruction::Add(2, 3),
        ],
    };
    let compiled = CompiledKernel::new(&kernel)?;
    for length in [0usize, 1, 15, 16, 17, 1000] {
        let array = |scale: f32| -> Vec<f32> { (0..length).map(|i| (i as f32 - 7.0) * scale).collect() };
        let (a, b, c) = (array(0.5), array(1.25), array(-3.0));
        let mut output = vec![f32::NAN; length];
        compiled.run(&mut output, &[&a, &b, &c])?;
        for i in 0..length {
            let expected = a[i] * b[i] + c[i];
            ensure!(
                output[i] == expected,
                Internal,
                "compiled kernel computed {} for element {i} of {length}, not {expected}",
                output[i]
            );
        }
    }
    let ptx = compile_ptx(&kernel, "sm_70")?;
    ensure!(
        ptx.contains(".visible .entry multiply_add"),
        Internal,
        "the PTX text has no entry multiply_add"
    );
    Ok(())
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
