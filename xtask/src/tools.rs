//! What the commands share: the root of the repository, running programs, walking folders.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs xtask again, built with a feature.
pub fn rebuild_with(feature: &str, arguments: &[String]) -> Result<(), String> {
    let mut again = cargo();
    again
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--features",
            feature,
            "--",
        ])
        .args(arguments);
    run(&mut again)
}

/// Runs a program with our standard streams; an error names it.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| could_not(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("failed ({status}): {}", shortened(command)))
}

/// Runs a program and returns what it prints.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| could_not(command, &error))?;
    if !output.status.success() {
        return Err(format!(
            "failed: {}\n{}",
            shortened(command),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn could_not(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", command.get_program().to_string_lossy())
}

/// A command line for people: long ones are cut.
fn shortened(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
        if text.len() > 400 {
            text.push_str(" ..");
            break;
        }
    }
    text
}

/// Reads a text file; an error names it.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file and the folders above it; an error names it.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes a folder and those above it.
pub fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file, making the folders above it.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        create_folder(folder)?;
    }
    fs::copy(from, to).map_err(|error| format!("{} -> {}: {error}", from.display(), to.display()))?;
    Ok(())
}

/// All files below a folder with one of these extensions (any when empty), sorted.
pub fn files_below(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if extensions.is_empty()
                || path
                    .extension()
                    .and_then(OsStr::to_str)
                    .is_some_and(|found| extensions.contains(&found))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
