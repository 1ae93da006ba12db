//! The requests: description in, object or PTX text out.

mod emit;
mod machine;
mod start;

use crate::Elementwise;
use ff_tensor::{Result, status};
use inkwell::context::Context;
use machine::Machine;

/// A relocatable ELF object for this machine's processor that defines the kernel as a C function
/// `void name(float *output, const float *const *inputs, uint64_t elements)`.
///
/// INVALID_ARGUMENT when the description is malformed, INTERNAL when LLVM refuses it.
pub fn compile_object(kernel: &Elementwise) -> Result<Vec<u8>> {
    kernel.verify()?;
    let machine = Machine::host()?;
    let context = Context::create();
    let module = emit::host_module(&context, kernel, machine.vector_lanes()).map_err(internal)?;
    machine.compile(&module)
}

/// PTX text for a processor (`sm_70`) with the kernel as an entry
/// `name(float *output, const float *input0, .., uint64_t elements)`, one thread for each element.
///
/// INVALID_ARGUMENT when the description is malformed or the processor is unknown, INTERNAL when LLVM refuses it.
pub fn compile_ptx(kernel: &Elementwise, processor: &str) -> Result<String> {
    kernel.verify()?;
    let machine = Machine::nvptx(processor)?;
    let context = Context::create();
    let module = emit::gpu_module(&context, kernel).map_err(internal)?;
    let text = machine.compile(&module)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The release of LLVM in this library.
pub fn version() -> Option<(u32, u32, u32)> {
    start::once();
    Some(inkwell::support::get_llvm_version())
}

fn internal(error: impl std::fmt::Display) -> ff_tensor::Status {
    status!(Internal, "LLVM: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledKernel, Instruction};

    fn halve_difference() -> Elementwise {
        Elementwise {
            name: "halve_difference".into(),
            inputs: 2,
            body: vec![
                Instruction::Input(0),
                Instruction::Input(1),
                Instruction::Subtract(0, 1),
                Instruction::Constant(2.0),
                Instruction::Divide(2, 3),
            ],
        }
    }

    #[test]
    fn compiled_kernels_compute() {
        let kernel = CompiledKernel::new(&halve_difference()).unwrap();
        let mut output = [0.0; 3];
        kernel
            .run(&mut output, &[&[1.0, 2.0, 3.0], &[0.5, -2.0, f32::INFINITY]])
            .unwrap();
        assert_eq!(output, [0.25, 2.0, f32::NEG_INFINITY]);
        assert!(kernel.run(&mut output, &[&[1.0, 2.0, 3.0]]).is_err());
        assert!(kernel.run(&mut output, &[&[1.0, 2.0, 3.0], &[1.0]]).is_err());
    }

    #[test]
    fn host_code_has_explicit_vectors() {
        let context = Context::create();
        let module = emit::host_module(&context, &halve_difference(), 16).unwrap();
        assert!(module.print_to_string().to_string().contains("fsub <16 x float>"));
    }

    #[test]
    fn ptx_is_for_the_processor_asked_for() {
        let text = compile_ptx(&halve_difference(), "sm_80").unwrap();
        assert!(
            text.contains(".target sm_80") && text.contains("sub.rn.f32"),
            "{text}"
        );
        assert!(compile_ptx(&halve_difference(), "sm_1").is_err());
    }

    #[test]
    fn every_listed_nvidia_processor_compiles() {
        for processor in machine::NVIDIA_PROCESSORS {
            let text = compile_ptx(&halve_difference(), processor).unwrap();
            assert!(text.contains(&format!(".target {processor}")), "{processor}");
        }
    }

    #[test]
    fn several_threads_compile_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| crate::self_test().unwrap());
            }
        });
        assert_eq!(version().map(|release| release.0), Some(22));
    }
}
