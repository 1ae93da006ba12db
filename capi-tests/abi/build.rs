//! Binds the C headers back, where the feature `bindgen` is on.

fn main() {
    println!("cargo::rerun-if-changed=../../include");
    #[cfg(feature = "bindgen")]
    bind();
}

#[cfg(feature = "bindgen")]
fn bind() {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindgen::Builder::default()
        .header_contents(
            "all.h",
            "#include \"tensorflow/c/c_api.h\"\n#include \"tensorflow/c/kernels.h\"\n#include \"tensorflow/c/ops.h\"\n",
        )
        .clang_arg("-I../../include")
        .allowlist_item("(TF|TSL)_.*")
        .layout_tests(true)
        .generate()
        .expect("the headers can be bound")
        .write_to_file(out.join("bindings.rs"))
        .expect("the bindings can be written");
}
