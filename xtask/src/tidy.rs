//! `cargo xtask tidy`: the rules of the house that neither rustc nor clippy checks.
//!
//! Each rule prints what breaks it as `path:line: message`; the command fails when anything is printed.

use crate::tools::{self, read, root};
use std::path::Path;

/// Longest a source file may be, in lines.
const MAX_LINES: usize = 800;

/// The crates, lowest first: each may depend on those above it in the list, and on nothing below.
const LAYERS: &[&str] = &[
    "proto",
    "tensor",
    "platform",
    "kernels",
    "hlo",
    "codegen",
    "aot_runtime",
    "checkpoint",
    "op",
    "ops",
    "graph",
    "jit",
    "runtime",
    "aot",
    "distributed",
    "lite",
    "cuda",
    "c_api",
    "cli",
];

/// Words that say that something is not finished.
const UNFINISHED: &[&str] = &["todo!(", "unimplemented!(", "FIXME", "XXX", "HACK"];

/// Runs the command.
pub fn run(_arguments: &[String]) -> Result<(), String> {
    let mut findings = Vec::new();
    let root = root();
    for folder in ["src", "xtask"] {
        for file in tools::files_below(&root.join(folder), &["rs"])? {
            check_source(&root, &file, &mut findings)?;
        }
    }
    check_layers(&root, &mut findings)?;
    check_dependencies(&root, &mut findings)?;
    crate::header_comments::check(&root, &mut findings)?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        Ok(())
    } else {
        Err(format!("{} findings", findings.len()))
    }
}

/// Module doc, length, unfinished work.
fn check_source(root: &Path, file: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let text = read(file)?;
    let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let test = name.ends_with("tests.rs") || name.contains("/tests/");
    if !test && !text.lines().take(12).any(|line| line.starts_with("//!")) {
        findings.push(format!("{name}:1: no module doc at the top"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        findings.push(format!("{name}:{lines}: longer than {MAX_LINES} lines"));
    }
    if name == "xtask/src/tidy.rs" {
        return Ok(());
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(*word)) {
            findings.push(format!("{name}:{}: {word}", number + 1));
        }
    }
    Ok(())
}

/// Crates depend only on layers before theirs.
fn check_layers(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let place = |layer: &str| LAYERS.iter().position(|known| *known == layer);
    for file in tools::files_below(&root.join("src"), &["toml"])? {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if !name.ends_with("/Cargo.toml") || name.matches('/').count() != 2 {
            continue;
        }
        let layer = name.trim_start_matches("src/").trim_end_matches("/Cargo.toml");
        let Some(own) = place(layer) else {
            findings.push(format!("{name}:1: {layer} is not a layer of DESIGN"));
            continue;
        };
        let mut section = String::new();
        for (number, line) in read(&file)?.lines().enumerate() {
            if line.starts_with('[') {
                section = line.trim().to_string();
            }
            let Some(rest) = line.strip_prefix("ff-").filter(|_| section == "[dependencies]") else {
                continue;
            };
            let used = rest.split(['.', ' ', '=']).next().unwrap_or("").replace('-', "_");
            if place(&used).is_none_or(|used| used >= own) {
                findings.push(format!(
                    "{name}:{}: {layer} must not depend on {used}",
                    number + 1
                ));
            }
        }
    }
    Ok(())
}

/// Each dependency of the workspace has a comment that says why; a comment may head several lines.
fn check_dependencies(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let text = read(&root.join("Cargo.toml"))?;
    let (mut inside, mut explained) = (false, false);
    for (number, line) in text.lines().enumerate() {
        match line.trim() {
            "[workspace.dependencies]" => inside = true,
            line if line.starts_with('[') => inside = false,
            "" => explained = false,
            line if line.starts_with('#') => explained = true,
            line if inside && !explained && !line.starts_with("ff-") => {
                findings.push(format!(
                    "Cargo.toml:{}: no comment says why {line} is needed",
                    number + 1
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
