//! `FF_CodegenSelfTest`: whether the compiler in this library works.

use crate::{TF_Status, guard};

/// Compiles a small kernel for this processor, runs it and compares; compiles it for NVPTX.
///
/// `status` is OK, UNIMPLEMENTED in a library without LLVM, PERMISSION_DENIED where the system allows no compiled
/// code, or INTERNAL with what went wrong.
#[unsafe(no_mangle)]
pub extern "C" fn FF_CodegenSelfTest(status: Option<&mut TF_Status>) {
    guard(status, ff_codegen::self_test);
}
