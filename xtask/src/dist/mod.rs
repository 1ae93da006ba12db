//! `cargo xtask dist`: builds the library in the release profile, links the shared and the static product, and
//! installs them in the layout of a release archive.
//!
//! Contract: the prefix is relocatable, holds nothing of the build folder, and replaces what an earlier run put
//! there. The shared library exports the C functions and nothing else; that is checked, and so is its size.

mod aot;
mod elf;
mod install;
mod macos;
mod windows;

use crate::tools::{self, cargo, root, run as run_program};
use std::fs;
use std::path::{Path, PathBuf};

/// The release of TensorFlow whose names and interface the products have.
pub const RELEASE: &str = "2.21.0";

/// Largest sizes of the stripped shared library, in bytes, with and without LLVM.
const LIMITS: (u64, u64) = (60_000_000, 25_000_000);

/// What the command line asked for.
pub struct Options {
    prefix: PathBuf,
    llvm: bool,
    profile: String,
    archive: bool,
    /// Whether the command `ferroflow` and the runtime of compiled models are made, too.
    aot: bool,
}

/// The products in the build folder.
pub struct Products {
    /// The shared library.
    pub shared: PathBuf,
    /// The static library.
    pub archive: PathBuf,
    /// Windows only: what programs link against instead of the shared library.
    pub import: Option<PathBuf>,
}

/// What the link step starts from.
pub struct Inputs {
    /// The library as rustc made it.
    pub rust: PathBuf,
    /// Archives of LLVM and what it needs, in link order; empty without LLVM.
    pub archives: Vec<PathBuf>,
    /// The names to export.
    pub symbols: Vec<String>,
    /// Where the products go.
    pub folder: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    let inputs = build(&options)?;
    let products = match std::env::consts::OS {
        "macos" => macos::link(&inputs)?,
        "windows" => windows::link(&inputs)?,
        _ => elf::link(&inputs)?,
    };
    if options.profile == "release" {
        check_size(&products.shared, options.llvm)?;
    }
    install::install(&products, &options.prefix)?;
    if options.aot {
        install::install_aot(&aot::build(&options)?, &options.prefix)?;
    }
    println!("installed in {}", options.prefix.display());
    for product in [&products.shared, &products.archive] {
        println!("{:>8.1} MB  {}", megabytes(product)?, file_name(product));
    }
    if options.archive {
        install::archive(&options.prefix)?;
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        prefix: root().join("dist"),
        llvm: true,
        profile: "release".into(),
        archive: false,
        aot: true,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .cloned()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--prefix" => {
                let given = PathBuf::from(value()?);
                options.prefix = std::path::absolute(&given).unwrap_or(given);
            }
            "--profile" => options.profile = value()?,
            "--no-llvm" => options.llvm = false,
            "--no-aot" => options.aot = false,
            "--archive" => options.archive = true,
            _ => return Err(format!("unknown option {argument}")),
        }
    }
    Ok(options)
}

/// Where cargo puts what it builds in a profile.
fn target_folder(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(if profile == "dev" { "debug" } else { profile })
}

/// Builds the static library of Rust code and collects the link step's inputs.
fn build(options: &Options) -> Result<Inputs, String> {
    let mut command = cargo();
    command.args([
        "rustc",
        "--package",
        "ff-c-api",
        "--lib",
        "--crate-type",
        "staticlib",
    ]);
    command.args(["--profile", &options.profile]);
    if let Some(jobs) = std::env::var_os("FF_JOBS") {
        command.arg("--jobs").arg(jobs);
    }
    if !options.llvm {
        command.arg("--no-default-features");
    }
    run_program(&mut command)?;
    let folder = target_folder(&options.profile);
    let name = if cfg!(windows) {
        "ff_c_api.lib"
    } else {
        "libff_c_api.a"
    };
    let rust = folder.join(name);
    let symbols = symbols_of(&rust)?;
    if symbols.is_empty() {
        return Err(format!("{} defines no C function", rust.display()));
    }
    let archives = if options.llvm {
        llvm_archives()?
    } else {
        Vec::new()
    };
    let folder = folder.join(if options.llvm { "dist" } else { "dist-no-llvm" });
    tools::create_folder(&folder)?;
    Ok(Inputs {
        rust,
        archives,
        symbols,
        folder,
    })
}

#[path = "../../../src/codegen/libraries.rs"]
mod libraries;

/// LLVM's archives, and the static C++ and compression libraries where the platform has them.
fn llvm_archives() -> Result<Vec<PathBuf>, String> {
    let component = libraries::host_component(std::env::consts::ARCH)
        .ok_or("no LLVM target is set up for this processor")?;
    let found = libraries::find(component)?;
    let file = |name: &String| {
        found.folder.join(if cfg!(windows) {
            format!("{name}.lib")
        } else {
            format!("lib{name}.a")
        })
    };
    let mut archives: Vec<PathBuf> = found.names.iter().map(file).collect();
    if cfg!(target_os = "linux") {
        for name in ["libstdc++.a", "libzstd.a", "libz.a"] {
            let path = tools::output(compiler("c++").arg(format!("-print-file-name={name}")))?;
            let path = PathBuf::from(path.trim());
            if !path.is_absolute() {
                return Err(format!("{name} was not found; tools/setup.sh installs it"));
            }
            archives.push(path);
        }
    }
    Ok(archives)
}

/// A compiler driver: `cc` or `c++`, or what CC and CXX say.
fn compiler(name: &str) -> std::process::Command {
    let variable = if name == "cc" { "CC" } else { "CXX" };
    std::process::Command::new(std::env::var_os(variable).unwrap_or_else(|| name.into()))
}

/// The C functions that the library defines: every global name with one of our prefixes, sorted.
fn symbols_of(library: &Path) -> Result<Vec<String>, String> {
    let nm = if cfg!(windows) { "llvm-nm" } else { "nm" };
    let mut command = std::process::Command::new(nm);
    command
        .args(["-g", "-P"])
        .arg(library)
        .stderr(std::process::Stdio::null());
    let listing = command
        .output()
        .map_err(|error| format!("cannot run {nm}: {error}"))?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let mut symbols: Vec<String> = listing
        .lines()
        .filter_map(defined_symbol)
        .map(String::from)
        .collect();
    symbols.sort();
    symbols.dedup();
    Ok(symbols)
}

/// The name in a line of `nm -P` if it is defined there and ours to export.
fn defined_symbol(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (name, kind) = (words.next()?, words.next()?);
    let name = if cfg!(target_os = "macos") {
        name.strip_prefix('_')?
    } else {
        name
    };
    let ours = ["TF_", "TFE_", "TSL_", "FF_"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    (ours && matches!(kind, "T" | "D" | "B" | "R" | "S")).then_some(name)
}

fn check_size(library: &Path, llvm: bool) -> Result<(), String> {
    let size = fs::metadata(library)
        .map_err(|error| format!("{}: {error}", library.display()))?
        .len();
    let limit = if llvm { LIMITS.0 } else { LIMITS.1 };
    if size > limit {
        return Err(format!(
            "{} has {size} bytes, more than {limit}",
            library.display()
        ));
    }
    Ok(())
}

fn megabytes(path: &Path) -> Result<f64, String> {
    let size = fs::metadata(path)
        .map_err(|error| format!("{}: {error}", path.display()))?
        .len();
    Ok(size as f64 / 1e6)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
