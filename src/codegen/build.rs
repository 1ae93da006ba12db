//! Tells cargo to link LLVM's archives into tests and programs, without copying them into the Rust library.

#[path = "libraries.rs"]
mod libraries;

fn main() {
    println!("cargo::rerun-if-changed=libraries.rs");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    if std::env::var_os("CARGO_FEATURE_LLVM").is_none() {
        return;
    }
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let foreign = std::env::var_os("CARGO_FEATURE_FOREIGN").is_some();
    let found = libraries::host_component(&arch)
        .ok_or_else(|| format!("no LLVM target is set up for {arch}: build with --no-default-features"))
        .and_then(|host| match foreign {
            true => libraries::find_all(libraries::PROCESSORS),
            false => libraries::find(host),
        });
    match found {
        Ok(found) => link(&found),
        Err(message) => println!("cargo::error={message}"),
    }
}

fn link(found: &libraries::Libraries) {
    println!("cargo::rustc-link-search=native={}", found.folder.display());
    for name in &found.names {
        println!("cargo::rustc-link-lib=static:-bundle={name}");
    }
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let system: &[&str] = match os.as_str() {
        "windows" => &["ntdll", "ole32", "uuid", "advapi32"],
        "macos" => &["c++", "z", "zstd"],
        _ => &["stdc++", "zstd", "z"],
    };
    for name in system {
        println!("cargo::rustc-link-lib=dylib={name}");
    }
}
