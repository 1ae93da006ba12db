//! Machine code from fusions, by LLVM. The only crate that sees LLVM.
//!
//! One path for every use: the plan of a fusion -> IR with explicit vectors -> the code generator of LLVM -> a
//! relocatable object. The just-in-time compiler loads that object into memory, an ahead-of-time compiler can write it to
//! a file, and for NVPTX the object is PTX text. [`compile`] makes a [`ff_hlo::Program`] whose fusions run as code.
//!
//! Contract
//! * Results have the bits of the evaluator's, but for the payload of what is not a number.
//! * Code depends on the structure of a fusion, not on its extents: [`Compiler`] makes one kernel for all shapes.
//! * Nothing happens before the first request: no constructor, no target, no memory.
//! * Without the cargo feature `llvm` the same functions exist; requests for code are answered UNIMPLEMENTED, and
//!   programs run in the evaluator.
//! * Compiling is safe from several threads at once.
//!
//! What it does not do: it knows nothing of TensorFlow's ops.

mod columns;
mod compiler;
mod disk;
pub(crate) mod dump;
mod kernel;
mod layout;
mod linked;
#[cfg(feature = "llvm")]
mod llvm;
mod loader;
mod self_test;
mod stages;
mod target;
mod unit;
#[cfg(not(feature = "llvm"))]
mod without_llvm;

/// Whether this library can make code. Asking starts nothing.
pub const HAS_LLVM: bool = cfg!(feature = "llvm");

pub use compiler::{Compiler, compile, has_code};
pub use layout::Layout;
pub use linked::{FusionFunction, LinkedFusions, structure_hash};
pub use loader::LoadedObject;
pub use self_test::self_test;
pub use target::ObjectTarget;
pub use unit::Entry;

#[cfg(feature = "llvm")]
pub use llvm::{
    check_unit, compile_object, compile_ptx, compile_unit, is_destroyed_at_exit, print_assembly, print_ir,
    target, version,
};
#[cfg(not(feature = "llvm"))]
pub use without_llvm::{
    check_unit, compile_object, compile_ptx, compile_unit, is_destroyed_at_exit, print_assembly, print_ir,
    target, version,
};
