//! Compiles the `.proto` files beside this script: descriptors by protox (no `protoc`), Rust types by prost.
//!
//! `bytes` fields become `Bytes` (tensor contents are slices of the input, not copies) and maps become `BTreeMap`
//! (equal messages encode to equal bytes). The large members of `AttrValue` are boxed: a node's attributes are mostly
//! numbers, types and short strings.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const ROOTS: [&str; 2] = ["tensorflow", "xla"];
const BOXED: [&str; 3] = ["tensor", "list", "func"];

fn proto_files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            proto_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    for root in ROOTS {
        println!("cargo:rerun-if-changed={root}");
        proto_files(&here.join(root), &mut files)?;
    }
    files.sort();

    let mut compiler = protox::Compiler::new([&here])?;
    compiler
        .include_imports(true)
        .include_source_info(false)
        .open_files(&files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;

    let mut config = prost_build::Config::new();
    config
        .bytes(["."])
        .btree_map(["."])
        .enable_type_names()
        .include_file("messages.rs");
    for member in BOXED {
        config.boxed(format!(".tensorflow.AttrValue.value.{member}"));
    }
    config.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
