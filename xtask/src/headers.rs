//! `cargo xtask headers`: writes the C headers under `include/` from the Rust sources, by cbindgen.
//!
//! `src/c_api/cbindgen.toml` says how names and types are written. `--check` writes nothing and fails when a header
//! differs from what would be written.

use crate::tools;

/// Runs the command.
#[cfg(feature = "headers")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    let check = arguments.iter().any(|argument| argument == "--check");
    let crate_folder = tools::root().join("src/c_api");
    let config = cbindgen::Config::from_file(crate_folder.join("cbindgen.toml"))?;
    let bindings = cbindgen::Builder::new()
        .with_crate(&crate_folder)
        .with_config(config)
        .generate()
        .map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    update(&tools::root().join("include/tensorflow/c/c_api.h"), &text, check)
}

/// Writes a header, or compares it.
#[cfg(feature = "headers")]
fn update(path: &std::path::Path, text: &str, check: bool) -> Result<(), String> {
    if !check {
        return tools::write(path, text);
    }
    match tools::read(path) {
        Ok(found) if found == text => Ok(()),
        _ => Err(format!(
            "{} is out of date: run `cargo xtask headers`",
            path.display()
        )),
    }
}

/// Stands in where cbindgen was not built in; `main` builds it in before it gets here.
#[cfg(not(feature = "headers"))]
pub fn run(_arguments: &[String]) -> Result<(), String> {
    Err(format!(
        "{} was built without the feature `headers`",
        tools::root().join("xtask").display()
    ))
}
