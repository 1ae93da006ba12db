//! The table of a compiled model, as it lies in its object. [`crate::VERSION`] changes with it.

use ff_codegen::FusionFunction;
use std::ffi::c_char;

/// The version of tables that this runtime reads.
pub const VERSION: u64 = 1;

/// A compiled model in the memory of the program. `FF_AotProgram` in C.
#[repr(C)]
#[derive(Debug)]
pub struct Program {
    /// [`VERSION`].
    pub version: u64,
    /// What a processor must have to run the code: a `ff_kernels::cpu::Level` on x86, 0 elsewhere.
    pub level: u64,
    /// The instructions as HLO text, in UTF-8.
    pub text: *const u8,
    /// Bytes of the text.
    pub text_size: u64,
    /// The weights, aligned to 64 bytes; null where they are in a file of their own.
    pub weights: *const u8,
    /// Bytes of the weights.
    pub weights_size: u64,
    /// [`crate::hash`] of the weights.
    pub weights_hash: u64,
    /// The code of fusions.
    pub fusions: *const Fusion,
    /// The number of fusions with code.
    pub num_fusions: u64,
    /// The name that the model was given, ended by a zero.
    pub name: *const c_char,
}

// SAFETY: tables are constant data.
unsafe impl Sync for Program {}

/// The code of a fusion.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fusion {
    /// `ff_codegen::structure_hash` of the plans that it is for.
    pub structure: u64,
    /// The code.
    pub function: FusionFunction,
}

/// The items that lie at an address; none for null.
///
/// # Safety
/// `start` is null or points at `len` items that live as long as the program.
pub(crate) unsafe fn items<T>(start: *const T, len: u64) -> &'static [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(start, len as usize) }
}
