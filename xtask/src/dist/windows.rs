//! Linking on Windows, by Microsoft's `link` and `lib` from a developer command prompt.
//!
//! A module definition file lists the C functions; nothing else leaves the DLL. The static library merges the
//! archives: COFF has no counterpart of a relocatable link.

use super::{Inputs, Products};
use crate::tools::{self, run};
use std::process::Command;

/// What the Rust standard library and LLVM need of the system.
const SYSTEM: &[&str] = &[
    "kernel32.lib",
    "ntdll.lib",
    "userenv.lib",
    "ws2_32.lib",
    "dbghelp.lib",
    "bcrypt.lib",
    "advapi32.lib",
    "ole32.lib",
    "uuid.lib",
    "shell32.lib",
    "legacy_stdio_definitions.lib",
];

/// Makes both products.
pub fn link(inputs: &Inputs) -> Result<Products, String> {
    let definitions = inputs.folder.join("tensorflow_cc.def");
    let exports: String = inputs
        .symbols
        .iter()
        .map(|symbol| format!("    {symbol}\n"))
        .collect();
    tools::write(
        &definitions,
        &format!("LIBRARY tensorflow_cc\nEXPORTS\n{exports}"),
    )?;
    let shared = inputs.folder.join("tensorflow_cc.dll");
    let import = inputs.folder.join("tensorflow_cc.lib");
    let mut link = Command::new("link.exe");
    link.args(["/NOLOGO", "/DLL", "/OPT:REF", "/OPT:ICF"]);
    link.arg(format!("/DEF:{}", definitions.display()));
    link.arg(format!("/OUT:{}", shared.display()));
    link.arg(format!("/IMPLIB:{}", import.display()));
    link.arg(&inputs.rust)
        .args(&inputs.archives)
        .args(SYSTEM)
        .arg("msvcrt.lib");
    run(&mut link)?;
    let archive = inputs.folder.join("tensorflow_cc_static.lib");
    let mut lib = Command::new("lib.exe");
    lib.arg("/NOLOGO").arg(format!("/OUT:{}", archive.display()));
    run(lib.arg(&inputs.rust).args(&inputs.archives))?;
    Ok(Products {
        shared,
        archive,
        import: Some(import),
    })
}
