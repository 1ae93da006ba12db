//! Which parts of LLVM the library holds, and where they are on this machine.
//!
//! Shared by the build script of this crate (tests and tools link against what it lists) and by `cargo xtask dist`
//! (which folds the same archives into the products). Finds the `llvm-config` of LLVM 22: that of
//! `LLVM_SYS_221_PREFIX`, or on the path.
//!
//! What it does not do: it links nothing itself.

use std::path::PathBuf;
use std::process::Command;

/// The components that the crate calls: NVPTX (the host's target is added), and what `inkwell` mentions.
pub const COMPONENTS: &[&str] = &["core", "target", "executionengine", "nvptx"];

/// The components of the processor families that objects can be made for.
#[allow(dead_code)] // not all that include this file need it
pub const PROCESSORS: &[&str] = &["x86", "aarch64"];

/// Where LLVM's archives lie and what they are called, in link order.
pub struct Libraries {
    /// The folder of the archives.
    pub folder: PathBuf,
    /// Names without `lib` and `.a`.
    pub names: Vec<String>,
}

/// Asks `llvm-config`. The error says what is missing.
pub fn find(host_component: &str) -> Result<Libraries, String> {
    find_all(&[host_component])
}

/// As [`find`], for several processor families.
pub fn find_all(processors: &[&str]) -> Result<Libraries, String> {
    let config = llvm_config()?;
    let folder = PathBuf::from(ask(&config, &["--libdir"])?);
    let mut arguments = vec!["--link-static", "--libnames"];
    arguments.extend(COMPONENTS);
    arguments.extend(processors);
    let names = ask(&config, &arguments)?
        .split_whitespace()
        .map(|file| {
            file.trim_start_matches("lib")
                .trim_end_matches(".a")
                .trim_end_matches(".lib")
                .to_string()
        })
        .collect();
    Ok(Libraries { folder, names })
}

/// LLVM's component of a processor family, by Rust's name for it.
pub fn host_component(arch: &str) -> Option<&'static str> {
    match arch {
        "x86_64" | "x86" => Some("x86"),
        "aarch64" => Some("aarch64"),
        _ => None,
    }
}

fn llvm_config() -> Result<PathBuf, String> {
    let mut candidates = Vec::new();
    if let Some(prefix) = std::env::var_os("LLVM_SYS_221_PREFIX") {
        candidates.push(PathBuf::from(prefix).join("bin/llvm-config"));
    } else {
        candidates.extend(["llvm-config-22", "llvm-config"].map(PathBuf::from));
        candidates.push(PathBuf::from("/usr/lib/llvm-22/bin/llvm-config"));
        candidates.push(PathBuf::from("/opt/homebrew/opt/llvm@22/bin/llvm-config"));
        candidates.push(PathBuf::from("/usr/local/opt/llvm@22/bin/llvm-config"));
    }
    candidates
        .into_iter()
        .find(|config| ask(config, &["--version"]).is_ok_and(|version| version.starts_with("22.")))
        .ok_or_else(|| {
            "LLVM 22 was not found: install llvm-22-dev (tools/setup.sh does), or set LLVM_SYS_221_PREFIX, or build \
             without it (--no-default-features)"
                .to_string()
        })
}

fn ask(config: &PathBuf, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(config)
        .args(arguments)
        .output()
        .map_err(|error| format!("{}: {error}", config.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
