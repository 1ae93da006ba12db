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
/// INVALID_ARGUMENT when the description is malformed, INTERNAL when LLVM refuses it or its processor.
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
