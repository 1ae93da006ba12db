//! Starts LLVM at its first use.
//!
//! LLVM's archives bring a few hundred C++ constructors (command-line options, registries). In the products of
//! `cargo xtask dist` they do not run when the library is loaded: the link step collects them in a section of its
//! own, `ff_llvm_start`, and they run here. In tests and programs that cargo links they ran before `main` as usual,
//! and the section does not exist.

use inkwell::targets::{InitializationConfig, Target};
use std::sync::Once;

/// Makes LLVM ready; later calls return at once.
pub fn once() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        run_constructors();
        let config = InitializationConfig {
            asm_parser: false,
            asm_printer: true,
            base: true,
            disassembler: false,
            info: true,
            machine_code: true,
        };
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        Target::initialize_x86(&config);
        #[cfg(target_arch = "aarch64")]
        Target::initialize_aarch64(&config);
        Target::initialize_nvptx(&config);
    });
}

#[cfg(target_os = "linux")]
mod deferred {
    /// An entry of `.init_array`.
    pub type Constructor = unsafe extern "C" fn(i32, *const *const u8, *const *const u8);

    // The linker defines the bounds of a section whose name is a C identifier; both are zero without the section.
    std::arch::global_asm!(
        ".weak __start_ff_llvm_start",
        ".weak __stop_ff_llvm_start",
        ".hidden __start_ff_llvm_start",
        ".hidden __stop_ff_llvm_start",
        ".pushsection .data.rel.ro.ff_llvm_start_bounds, \"aw\"",
        ".balign 8",
        ".globl ff_llvm_start_bounds",
        ".hidden ff_llvm_start_bounds",
        "ff_llvm_start_bounds:",
        ".quad __start_ff_llvm_start",
        ".quad __stop_ff_llvm_start",
        ".popsection",
    );

    unsafe extern "C" {
        #[link_name = "ff_llvm_start_bounds"]
        pub static BOUNDS: [*const Option<Constructor>; 2];
    }
}

#[cfg(target_os = "linux")]
fn run_constructors() {
    // SAFETY: defined by the assembly above and never written.
    let [start, end] = unsafe { deferred::BOUNDS };
    let mut entry = start;
    while entry < end {
        // SAFETY: the section is an array of function pointers; null entries pad it.
        if let Some(constructor) = unsafe { *entry } {
            // SAFETY: the entries are C++ constructors of LLVM and its C++ library, in their order; each runs once,
            // before any other code of theirs. They ignore their arguments.
            unsafe { constructor(0, std::ptr::null(), std::ptr::null()) };
        }
        // SAFETY: stays within the section or one past it.
        entry = unsafe { entry.add(1) };
    }
}

#[cfg(not(target_os = "linux"))]
fn run_constructors() {}
