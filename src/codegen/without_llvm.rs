//! The crate's functions when it is built without LLVM: each answers UNIMPLEMENTED.

use crate::layout::Layout;
use crate::target::ObjectTarget;
use crate::unit::Entry;
use ff_hlo::fusion::FusionPlan;
use ff_tensor::{Result, bail};

/// UNIMPLEMENTED in this build; with LLVM, a relocatable ELF object for this machine.
pub fn compile_object(_name: &str, _plan: &FusionPlan, _layout: &Layout) -> Result<Vec<u8>> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, whether a fusion has code.
pub fn check_unit(_target: &ObjectTarget, _plan: &FusionPlan) -> Result<()> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, an object of a whole program.
pub fn compile_unit(
    _target: &ObjectTarget,
    _symbol: &str,
    _fusions: &[(String, &FusionPlan)],
    _table: &[Entry],
) -> Result<Vec<u8>> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, LLVM IR.
pub fn print_ir(_name: &str, _plan: &FusionPlan) -> Result<String> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, assembly.
pub fn print_assembly(_name: &str, _plan: &FusionPlan) -> Result<String> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, PTX text for the processor `sm_NN`.
pub fn compile_ptx(_name: &str, _plan: &FusionPlan, _processor: &str) -> Result<String> {
    bail!(Unimplemented, "this library was built without LLVM")
}

/// What objects depend on; nothing, as there are none.
pub fn target() -> String {
    String::new()
}

/// The release of LLVM in this library; none.
pub fn version() -> Option<(u32, u32, u32)> {
    None
}

/// Whether what compiles goes away when the process ends; there is nothing.
pub fn is_destroyed_at_exit() -> bool {
    false
}
