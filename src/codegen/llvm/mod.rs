//! The requests: plan in, object or PTX text out.

mod double;
mod elementwise;
mod functions;
mod fusion;
mod ir;
mod lanes;
mod machine;
mod math;
mod random;
mod reads;
mod reduction;
mod start;
mod unit;

use crate::layout::Layout;
use ff_hlo::fusion::FusionPlan;
use ff_tensor::{Result, status};
use inkwell::context::Context;
use machine::Machine;

pub use start::is_destroyed_at_exit;
pub use unit::{check_unit, compile_unit};

/// A relocatable ELF object for this machine's processor that defines the fusion as a C function
/// `void name(const uint64_t *words, int64_t first_row, int64_t end_row, int64_t first, int64_t end, void *rows)`.
///
/// UNIMPLEMENTED when there is no code for a part of it, INTERNAL when LLVM refuses it.
pub fn compile_object(name: &str, plan: &FusionPlan, layout: &Layout) -> Result<Vec<u8>> {
    let machine = Machine::host()?;
    let context = Context::create();
    let code = fusion::host(&context, name, plan, layout, machine.vector_lanes(widest(plan)))?;
    machine.compile(code.module())
}

/// The LLVM IR of a fusion for this machine.
pub fn print_ir(name: &str, plan: &FusionPlan) -> Result<String> {
    let machine = Machine::host()?;
    let context = Context::create();
    let layout = Layout::of_plan(plan);
    let code = fusion::host(&context, name, plan, &layout, machine.vector_lanes(widest(plan)))?;
    Ok(code.module().print_to_string().to_string())
}

/// The assembly of a fusion for this machine.
pub fn print_assembly(name: &str, plan: &FusionPlan) -> Result<String> {
    let machine = Machine::host()?.into_assembly();
    let context = Context::create();
    let layout = Layout::of_plan(plan);
    let code = fusion::host(&context, name, plan, &layout, machine.vector_lanes(widest(plan)))?;
    let text = machine.compile(code.module())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// PTX text for a processor (`sm_70`) with the fusion as an entry `name(const uint64_t *words, uint64_t threads)`: a
/// thread for each element, or for each row where rows are reduced.
///
/// INVALID_ARGUMENT when the processor is unknown, UNIMPLEMENTED when there is no code for a part of the fusion,
/// INTERNAL when LLVM refuses it.
pub fn compile_ptx(name: &str, plan: &FusionPlan, processor: &str) -> Result<String> {
    let machine = Machine::nvptx(processor)?;
    let context = Context::create();
    let layout = Layout::of_plan(plan);
    let code = fusion::gpu(&context, name, plan, &layout)?;
    let text = machine.compile(code.module())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What objects for this machine depend on: its processor and the release of LLVM.
pub fn target() -> String {
    format!("{:?} {}", version(), Machine::describe())
}

/// The release of LLVM in this library.
pub fn version() -> Option<(u32, u32, u32)> {
    start::once();
    Some(inkwell::support::get_llvm_version())
}

/// Bytes of the widest element that is computed.
fn widest(plan: &FusionPlan) -> u32 {
    let of = |node: &ff_hlo::fusion::Node| node.dtype.size().max(node.operand_dtype.size());
    plan.nodes.iter().map(of).max().unwrap_or(4) as u32
}

fn internal(error: impl std::fmt::Display) -> ff_tensor::Status {
    status!(Internal, "LLVM: {error}")
}

#[cfg(test)]
mod tests;
