//! The crate's functions when it is built without LLVM: each answers UNIMPLEMENTED.

use crate::Elementwise;
use ff_tensor::{Result, bail};

/// UNIMPLEMENTED in this build; with LLVM, a relocatable ELF object for this machine.
pub fn compile_object(kernel: &Elementwise) -> Result<Vec<u8>> {
    kernel.verify()?;
    bail!(Unimplemented, "this library was built without LLVM")
}

/// UNIMPLEMENTED in this build; with LLVM, PTX text for the processor `sm_NN`.
pub fn compile_ptx(kernel: &Elementwise, _processor: &str) -> Result<String> {
    kernel.verify()?;
    bail!(Unimplemented, "this library was built without LLVM")
}

/// The release of LLVM in this library; none.
pub fn version() -> Option<(u32, u32, u32)> {
    None
}
