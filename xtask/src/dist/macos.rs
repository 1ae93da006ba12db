//! Linking on macOS, by Apple's `ld` through `cc`.
//!
//! There are no version nodes: a Mach-O program names the library it expects a function in, so the three names are
//! one file and its links. The static library is one object with the C functions as its only global names.

use super::{Inputs, Products, RELEASE, compiler};
use crate::tools::{self, run};
use std::path::Path;
use std::process::Command;

/// Makes both products.
pub fn link(inputs: &Inputs) -> Result<Products, String> {
    let list = inputs.folder.join("symbols.txt");
    let text: String = inputs
        .symbols
        .iter()
        .map(|symbol| format!("_{symbol}\n"))
        .collect();
    tools::write(&list, &text)?;
    let object = inputs.folder.join("tensorflow_cc.o");
    run(common(inputs, &list).args(["-r", "-nostdlib", "-o"]).arg(&object))?;
    let archive = inputs.folder.join("libtensorflow_cc.a");
    let _ = std::fs::remove_file(&archive);
    run(Command::new("libtool")
        .args(["-static", "-o"])
        .arg(&archive)
        .arg(&object))?;
    let shared = inputs.folder.join(format!("libtensorflow_cc.{RELEASE}.dylib"));
    let mut cc = common(inputs, &list);
    cc.args([
        "-dynamiclib",
        "-Wl,-install_name,@rpath/libtensorflow_cc.2.dylib",
        "-Wl,-dead_strip",
        "-Wl,-x",
    ]);
    cc.arg(format!("-Wl,-current_version,{RELEASE}"))
        .arg("-Wl,-compatibility_version,2.0.0");
    cc.args([
        "-framework",
        "CoreFoundation",
        "-framework",
        "Security",
        "-liconv",
    ]);
    if !inputs.archives.is_empty() {
        cc.args([
            "-lc++",
            "-lz",
            "-lzstd",
            "-L/opt/homebrew/lib",
            "-L/usr/local/lib",
        ]);
    }
    run(cc.arg("-o").arg(&shared))?;
    Ok(Products {
        shared,
        archive,
        import: None,
    })
}

/// The inputs, with every C function as a root and the only names exported.
fn common(inputs: &Inputs, list: &Path) -> Command {
    let mut cc = compiler("cc");
    cc.arg(&inputs.rust).args(&inputs.archives);
    for symbol in &inputs.symbols {
        cc.arg(format!("-Wl,-u,_{symbol}"));
    }
    cc.arg(format!("-Wl,-exported_symbols_list,{}", list.display()));
    cc
}
