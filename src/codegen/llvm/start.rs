//! Starts LLVM at its first use.
//!
//! LLVM's archives bring a few hundred C++ constructors (command-line options, registries). In the products of
//! `cargo xtask dist` they do not run when the library is loaded: the link step collects them in a table of its own
//! (`tools/link/prelink.ld`), and they run here. In tests and programs that cargo links they ran before `main` as
//! usual, and the table does not exist.
//!
//! Nor are LLVM's statics destroyed at the end of a process there, as a thread may be compiling then: the link step has
//! LLVM call [`ff_llvm_at_exit`] instead of C's `__cxa_atexit`.

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
        #[cfg(all(feature = "foreign", not(any(target_arch = "x86_64", target_arch = "x86"))))]
        Target::initialize_x86(&config);
        #[cfg(any(target_arch = "aarch64", feature = "foreign"))]
        Target::initialize_aarch64(&config);
        Target::initialize_nvptx(&config);
    });
}

#[cfg(target_os = "linux")]
mod deferred {
    /// An entry of `.init_array`.
    pub type Constructor = unsafe extern "C" fn(i32, *const *const u8, *const *const u8);

    // The link step defines the bounds of the table; both are zero without it.
    std::arch::global_asm!(
        ".weak ff_llvm_start_begin",
        ".weak ff_llvm_start_end",
        ".hidden ff_llvm_start_begin",
        ".hidden ff_llvm_start_end",
        ".pushsection .data.rel.ro.ff_llvm_start_bounds, \"aw\"",
        ".balign 8",
        ".globl ff_llvm_start_bounds",
        ".hidden ff_llvm_start_bounds",
        "ff_llvm_start_bounds:",
        ".quad ff_llvm_start_begin",
        ".quad ff_llvm_start_end",
        ".popsection",
    );

    unsafe extern "C" {
        #[link_name = "ff_llvm_start_bounds"]
        pub static BOUNDS: [*const Option<Constructor>; 2];
    }
}

/// Takes the place of `int __cxa_atexit(void (*destroy)(void *), void *object, void *library)` in the products, and keeps
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ff_llvm_at_exit(_destroy: *const u8, _object: *const u8, _library: *const u8) -> i32 {
    0
}

/// Whether LLVM's statics go away when the process ends, whoever uses them then.
#[cfg(target_os = "linux")]
pub fn is_destroyed_at_exit() -> bool {
    // SAFETY: defined by the assembly above and never written.
    unsafe { deferred::BOUNDS[0].is_null() }
}

/// Whether LLVM's statics go away when the process ends, whoever uses them then.
#[cfg(not(target_os = "linux"))]
pub fn is_destroyed_at_exit() -> bool {
    true
}

#[cfg(target_os = "linux")]
fn run_constructors() {
    // SAFETY: defined by the assembly above and never written.
    let [start, end] = unsafe { deferred::BOUNDS };
    let mut entry = start;
    while entry < end {
        // SAFETY: the table is an array of function pointers.
        if let Some(constructor) = unsafe { *entry } {
            // SAFETY: the entries are C++ constructors of LLVM and its C++ library, in their order; each runs once,
            // before any other code of theirs. They ignore their arguments.
            unsafe { constructor(0, std::ptr::null(), std::ptr::null()) };
        }
        // SAFETY: stays within the table or one past it.
        entry = unsafe { entry.add(1) };
    }
}

#[cfg(not(target_os = "linux"))]
fn run_constructors() {}
