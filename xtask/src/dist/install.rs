//! The layout of a release archive: `include/`, `lib/` with its CMake and pkg-config files, `LICENSE`.

use super::aot::AotProducts;
use super::{Products, RELEASE};
use crate::tools::{self, copy, create_folder, read, root, run, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names under which programs ask for the library.
const NAMES: [&str; 3] = ["tensorflow_cc", "tensorflow", "tensorflow_framework"];
/// What a program that holds the static library links with.
const SYSTEM: &str = if cfg!(target_os = "macos") {
    "-lc++ -lz -lzstd -liconv -framework CoreFoundation -framework Security"
} else {
    "-lpthread -ldl -lrt -lm"
};

/// Puts everything under `prefix`. Only our own files there are replaced.
pub fn install(products: &Products, prefix: &Path) -> Result<(), String> {
    for old in [
        "include/tensorflow",
        "include/tsl",
        "include/xla",
        "include/ferroflow",
    ] {
        let _ = fs::remove_dir_all(prefix.join(old));
    }
    let lib = prefix.join("lib");
    create_folder(&lib)?;
    copy(
        &products.archive,
        &lib.join(products.archive.file_name().unwrap_or_default()),
    )?;
    #[cfg(unix)]
    install_static_folder(products, &lib)?;
    match std::env::consts::OS {
        "macos" => install_dylib(products, &lib)?,
        "windows" => install_dll(products, prefix)?,
        _ => install_so(products, &lib)?,
    }
    install_headers(prefix)?;
    install_package_files(prefix)?;
    copy(&root().join("LICENSE"), &prefix.join("LICENSE"))
}

/// Puts the runtime of compiled models, the command and their CMake files under `prefix`.
pub fn install_aot(products: &AotProducts, prefix: &Path) -> Result<(), String> {
    let (bin, lib) = (prefix.join("bin"), prefix.join("lib"));
    create_folder(&bin)?;
    let name = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
    copy(&products.runtime, &lib.join(name(&products.runtime)))?;
    let command = bin.join(name(&products.command));
    place(&products.command, &command)?;
    if cfg!(target_os = "linux") {
        run(Command::new("strip").arg(&command))?;
    }
    for file in ["FerroflowConfig.cmake", "FerroflowCompile.cmake"] {
        let text = read(&root().join("cmake").join(file))?;
        write(&lib.join("cmake/Ferroflow").join(file), &text)?;
    }
    Ok(())
}

/// One file; the other names are links to it, so that a process that asks for several loads one library.
fn install_so(products: &Products, lib: &Path) -> Result<(), String> {
    let file = format!("lib{}.so.{RELEASE}", NAMES[0]);
    place(&products.shared, &lib.join(&file))?;
    for name in NAMES {
        if name != NAMES[0] {
            symlink(&file, &lib.join(format!("lib{name}.so.{RELEASE}")))?;
        }
        symlink(&file, &lib.join(format!("lib{name}.so.2")))?;
        symlink(&format!("lib{name}.so.2"), &lib.join(format!("lib{name}.so")))?;
    }
    Ok(())
}

fn install_dylib(products: &Products, lib: &Path) -> Result<(), String> {
    let file = format!("lib{}.{RELEASE}.dylib", NAMES[0]);
    place(&products.shared, &lib.join(&file))?;
    for name in NAMES {
        symlink(&file, &lib.join(format!("lib{name}.2.dylib")))?;
        symlink(
            &format!("lib{name}.2.dylib"),
            &lib.join(format!("lib{name}.dylib")),
        )?;
    }
    Ok(())
}

/// Windows has no links that archives keep: programs name `tensorflow.dll` or `tensorflow_cc.dll`, so both are files.
fn install_dll(products: &Products, prefix: &Path) -> Result<(), String> {
    for name in ["tensorflow_cc", "tensorflow"] {
        copy(&products.shared, &prefix.join("lib").join(format!("{name}.dll")))?;
        if let Some(import) = &products.import {
            copy(import, &prefix.join("lib").join(format!("{name}.lib")))?;
        }
    }
    Ok(())
}

/// A folder where linkers find the archive alone, under the names of the shared library: for `pkg-config --static`.
#[cfg(unix)]
fn install_static_folder(products: &Products, lib: &Path) -> Result<(), String> {
    let folder = lib.join("static");
    create_folder(&folder)?;
    let archive = products.archive.file_name().unwrap_or_default();
    for name in ["tensorflow_cc", "tensorflow"] {
        symlink(
            &format!("../{}", archive.to_string_lossy()),
            &folder.join(format!("lib{name}.a")),
        )?;
    }
    Ok(())
}

/// Replaces a library by renaming, so that a process that has the old one loaded keeps it.
fn place(from: &Path, to: &Path) -> Result<(), String> {
    let new = to.with_extension("new");
    copy(from, &new)?;
    fs::rename(&new, to).map_err(|error| format!("{}: {error}", to.display()))
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> Result<(), String> {
    let _ = fs::remove_file(link);
    std::os::unix::fs::symlink(target, link).map_err(|error| format!("{}: {error}", link.display()))
}

#[cfg(not(unix))]
fn symlink(target: &str, link: &Path) -> Result<(), String> {
    copy(&link.with_file_name(target), link)
}

fn install_headers(prefix: &Path) -> Result<(), String> {
    let include = root().join("include");
    for file in tools::files_below(&include, &["h", "hpp", "inc"])? {
        let relative = file.strip_prefix(&include).unwrap_or(&file);
        copy(&file, &prefix.join("include").join(relative))?;
    }
    Ok(())
}

/// CMake and pkg-config files, with the release filled in.
fn install_package_files(prefix: &Path) -> Result<(), String> {
    let folder = root().join("cmake");
    let templates: [(&str, &str); 8] = [
        ("TensorFlowTargets.cmake", "lib/cmake/TensorFlow"),
        ("TensorFlowConfig.cmake", "lib/cmake/TensorFlow"),
        (
            "ConfigVersion.cmake.in",
            "lib/cmake/TensorFlow/TensorFlowConfigVersion.cmake",
        ),
        ("TensorflowCCConfig.cmake", "lib/cmake/TensorflowCC"),
        (
            "ConfigVersion.cmake.in",
            "lib/cmake/TensorflowCC/TensorflowCCConfigVersion.cmake",
        ),
        ("tensorflow.pc.in", "lib/pkgconfig/tensorflow.pc"),
        ("tensorflow_cc.pc.in", "lib/pkgconfig/tensorflow_cc.pc"),
        ("tensorflow-shared.pc.in", "lib/pkgconfig/tensorflow-shared.pc"),
    ];
    for (template, target) in templates {
        let text = read(&folder.join(template))?
            .replace("@RELEASE@", RELEASE)
            .replace("@SYSTEM@", SYSTEM);
        let target = prefix.join(target);
        let target = if template.ends_with(".in") {
            target
        } else {
            target.join(template)
        };
        write(&target, &text)?;
    }
    Ok(())
}

/// Packs the prefix as `libtensorflow-cpu-<os>-<arch>.tar.gz` beside it.
pub fn archive(prefix: &Path) -> Result<(), String> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let folder: PathBuf = prefix.parent().unwrap_or(prefix).to_path_buf();
    let file = folder.join(format!("libtensorflow-cpu-{os}-{arch}-{RELEASE}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&file).arg("-C").arg(prefix);
    if prefix.join("bin").is_dir() {
        tar.arg("bin");
    }
    run(tar.args(["include", "lib", "LICENSE"]))?;
    println!("packed {}", file.display());
    Ok(())
}
