//! What ahead-of-time compilation needs: the runtime `libferroflow_aot.a`, and the command `ferroflow`.
//!
//! The runtime becomes one object, as the library does: names that are not its C functions are local, code that they do
//! not reach is dropped, and so are unwind tables, as it never unwinds. Its code and data are at most [`LIMIT`] bytes.

use super::{Options, symbols_of, target_folder};
use crate::tools::{self, cargo, root, run as run_program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that the runtime may add to a program, in bytes.
const LIMIT: u64 = 2_000_000;

/// The runtime and the command in the build folder.
pub struct AotProducts {
    /// The archive of the runtime.
    pub runtime: PathBuf,
    /// The command.
    pub command: PathBuf,
}

/// Builds both.
pub fn build(options: &Options) -> Result<AotProducts, String> {
    Ok(AotProducts {
        runtime: runtime(options)?,
        command: command(options)?,
    })
}

fn with_jobs(command: &mut Command) {
    if let Some(jobs) = std::env::var_os("FF_JOBS") {
        command.arg("--jobs").arg(jobs);
    }
}

fn runtime(options: &Options) -> Result<PathBuf, String> {
    let profile = if options.profile == "release" {
        "aot"
    } else {
        &options.profile
    };
    let mut command = cargo();
    command.args([
        "rustc",
        "--package",
        "ff-aot-runtime",
        "--lib",
        "--crate-type",
        "staticlib",
    ]);
    command.args(["--profile", profile]);
    with_jobs(&mut command);
    if profile == "aot" {
        command.env("RUSTFLAGS", "-Cforce-unwind-tables=no");
    }
    run_program(&mut command)?;
    let folder = target_folder(profile);
    let name = if cfg!(windows) {
        "ff_aot_runtime.lib"
    } else {
        "libff_aot_runtime.a"
    };
    let rust = folder.join(name);
    let product = folder.join(if cfg!(windows) {
        "ferroflow_aot.lib"
    } else {
        "libferroflow_aot.a"
    });
    if !cfg!(target_os = "linux") {
        tools::copy(&rust, &product)?;
        return Ok(product);
    }
    let object = folder.join("ferroflow_aot.o");
    prelink(&rust, &folder, &object, profile == "aot")?;
    let _ = std::fs::remove_file(&product);
    run_program(Command::new("ar").arg("rcs").arg(&product).arg(&object))?;
    if profile == "aot" {
        check_size(&object)?;
    }
    Ok(product)
}

/// One object with no global names but the C functions.
fn prelink(rust: &Path, folder: &Path, object: &Path, drop_unwinding: bool) -> Result<(), String> {
    let symbols = symbols_of(rust)?;
    let whole = folder.join("ferroflow_aot_whole.o");
    let mut ld = Command::new("ld.bfd");
    ld.args(["-r", "--gc-sections", "--force-group-allocation", "-T"]);
    let script = if drop_unwinding {
        "tools/link/prelink_aot.ld"
    } else {
        "tools/link/prelink.ld"
    };
    ld.arg(root().join(script));
    for symbol in &symbols {
        ld.args(["-u", symbol]);
    }
    run_program(ld.arg("-o").arg(&whole).arg(rust))?;
    let list = folder.join("ferroflow_aot_symbols.txt");
    tools::write(&list, &(symbols.join("\n") + "\n"))?;
    let mut objcopy = Command::new("objcopy");
    objcopy
        .arg(format!("--keep-global-symbols={}", list.display()))
        .arg("--strip-unneeded");
    run_program(objcopy.arg(&whole).arg(object))?;
    let _ = std::fs::remove_file(&whole);
    Ok(())
}

/// What the runtime adds to a program is small.
fn check_size(object: &Path) -> Result<(), String> {
    let listing = tools::output(Command::new("size").arg(object))?;
    let numbers: Vec<u64> = listing
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [text, data, ..] = numbers[..] else {
        return Err(format!("cannot read the size of {}", object.display()));
    };
    println!(
        "{:>8.1} MB  code and data of libferroflow_aot.a",
        (text + data) as f64 / 1e6
    );
    if text + data > LIMIT {
        return Err(format!(
            "the runtime has {} bytes, more than {LIMIT}",
            text + data
        ));
    }
    Ok(())
}

fn command(options: &Options) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--package", "ff-cli", "--profile", &options.profile]);
    with_jobs(&mut command);
    if !options.llvm {
        command.arg("--no-default-features");
    }
    run_program(&mut command)?;
    let name = if cfg!(windows) {
        "ferroflow.exe"
    } else {
        "ferroflow"
    };
    Ok(target_folder(&options.profile).join(name))
}
