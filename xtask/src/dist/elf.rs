//! Linking on ELF systems, by GNU binutils.
//!
//! 1. Everything becomes one relocatable object: code that no C function reaches is dropped, and every name but
//!    the C functions becomes local. So neither product clashes with another Rust library, LLVM or C++ library.
//!    LLVM and its C++ library register no destructors for the end of the process: a thread may be compiling then.
//! 2. That object is the static library.
//! 3. The same object becomes the shared library. Each function gets both version nodes that existing programs ask
//!    for; lookups without a version find the default one.

use super::{Inputs, Products, RELEASE, compiler};
use crate::tools::{self, root, run};
use std::path::Path;
use std::process::Command;

/// The node that programs linked against `libtensorflow_cc.so.2` ask for, the default here.
const DEFAULT_NODE: &str = "tensorflow";
/// The node that programs linked against a release of `libtensorflow.so.2` ask for.
const OTHER_NODE: &str = "VERS_1.0";

/// What LLVM calls in the place of `__cxa_atexit` (`ff_codegen`).
const AT_EXIT: &str = "ff_llvm_at_exit";

/// Makes both products.
pub fn link(inputs: &Inputs) -> Result<Products, String> {
    let object = inputs.folder.join("tensorflow_cc.o");
    prelink(inputs, &object)?;
    let archive = inputs.folder.join("libtensorflow_cc.a");
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("rcs").arg(&archive).arg(&object))?;
    let shared = inputs.folder.join(format!("libtensorflow_cc.so.{RELEASE}"));
    link_shared(inputs, &object, &shared)?;
    check_exports(inputs, &shared)?;
    Ok(Products {
        shared,
        archive,
        import: None,
    })
}

fn prelink(inputs: &Inputs, object: &Path) -> Result<(), String> {
    let whole = inputs.folder.join("whole.o");
    let mut ld = Command::new("ld.bfd");
    ld.args(["-r", "--gc-sections", "--force-group-allocation", "-T"]);
    ld.arg(root().join("tools/link/prelink.ld"));
    for symbol in &inputs.symbols {
        ld.args(["-u", symbol]);
    }
    if !inputs.archives.is_empty() {
        ld.args(["-u", AT_EXIT]);
        ld.arg(format!("--defsym=__cxa_atexit={AT_EXIT}"));
    }
    ld.arg("-o")
        .arg(&whole)
        .arg("--start-group")
        .arg(&inputs.rust)
        .args(&inputs.archives)
        .arg("--end-group");
    run(&mut ld)?;
    let list = inputs.folder.join("symbols.txt");
    tools::write(&list, &lines(&inputs.symbols, |symbol| symbol.to_string()))?;
    let mut objcopy = Command::new("objcopy");
    objcopy
        .arg(format!("--keep-global-symbols={}", list.display()))
        .arg("--strip-unneeded");
    run(objcopy.arg(&whole).arg(object))?;
    let _ = std::fs::remove_file(&whole);
    check_destructors(object)
}

/// Nothing registers destructors with the C library.
fn check_destructors(object: &Path) -> Result<(), String> {
    let listing = tools::output(Command::new("nm").arg("--undefined-only").arg(object))?;
    match listing
        .lines()
        .any(|line| line.trim_end().ends_with(" __cxa_atexit"))
    {
        true => Err(format!("{} calls __cxa_atexit", object.display())),
        false => Ok(()),
    }
}

fn link_shared(inputs: &Inputs, object: &Path, shared: &Path) -> Result<(), String> {
    let aliases = inputs.folder.join("aliases.ld");
    tools::write(
        &aliases,
        &lines(&inputs.symbols, |name| {
            format!("\"{name}@{OTHER_NODE}\" = {name};")
        }),
    )?;
    let versions = inputs.folder.join("versions.map");
    let exported = lines(&inputs.symbols, |symbol| format!("    {symbol};"));
    let text =
        format!("{OTHER_NODE} {{ }};\n{DEFAULT_NODE} {{\n  global:\n{exported}  local:\n    *;\n}};\n");
    tools::write(&versions, &text)?;
    let mut cc = compiler("cc");
    cc.args(["-shared", "-fuse-ld=bfd", "-static-libgcc", "-Wl,-O1", "-s", "-o"])
        .arg(shared);
    cc.arg(object).arg(&aliases);
    cc.arg(format!("-Wl,--version-script={}", versions.display()));
    cc.args([
        "-Wl,-soname,libtensorflow_cc.so.2",
        "-Wl,-z,nodelete",
        "-Wl,-Bsymbolic",
        "-Wl,-z,defs",
    ]);
    cc.args([
        "-Wl,-z,relro",
        "-Wl,-z,now",
        "-Wl,-z,noexecstack",
        "-Wl,--as-needed",
    ]);
    cc.args(["-lm", "-ldl", "-lpthread", "-lrt"]);
    run(&mut cc)
}

/// The shared library defines each C function in both nodes and nothing else.
fn check_exports(inputs: &Inputs, shared: &Path) -> Result<(), String> {
    let listing = tools::output(Command::new("nm").args(["-D", "--defined-only"]).arg(shared))?;
    let mut found: Vec<&str> = Vec::new();
    for line in listing.lines() {
        let mut words = line.split_whitespace().skip(1);
        match (words.next(), words.next()) {
            // The nodes themselves.
            (Some("A"), Some(_)) => {}
            (Some(_), Some(name)) => found.push(name),
            _ => {}
        }
    }
    let both = |symbol: &String| {
        [
            format!("{symbol}@@{DEFAULT_NODE}"),
            format!("{symbol}@{OTHER_NODE}"),
        ]
    };
    let mut expected: Vec<String> = inputs.symbols.iter().flat_map(both).collect();
    expected.sort();
    found.sort_unstable();
    if found.iter().eq(expected.iter()) {
        return Ok(());
    }
    let stray = found
        .iter()
        .find(|name| !expected.iter().any(|symbol| symbol == *name));
    let lost = expected.iter().find(|symbol| !found.contains(&symbol.as_str()));
    Err(format!(
        "exported names differ from the C functions: extra {stray:?}, missing {lost:?}"
    ))
}

fn lines(symbols: &[String], line: impl Fn(&str) -> String) -> String {
    symbols.iter().map(|symbol| line(symbol) + "\n").collect()
}
