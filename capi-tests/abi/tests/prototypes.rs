//! Our prototypes beside the reference's: one file includes its headers and then declares every function as ours do, so
//! that the compiler compares them, in C and in C++; and values of enumerations and layouts of structs are asserted.
//!
//! Skipped, with a line that says so, where the reference or a compiler is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Headers that C can include, in an order in which each finds what it needs.
const C_HEADERS: [&str; 12] = [
    "xla/tsl/c/tsl_status.h",
    "tensorflow/c/tf_status.h",
    "tensorflow/c/tf_buffer.h",
    "tensorflow/c/tf_datatype.h",
    "tensorflow/c/tf_attrtype.h",
    "tensorflow/c/tf_tensor.h",
    "tensorflow/c/tf_tstring.h",
    "tensorflow/c/c_api.h",
    "tensorflow/c/eager/c_api.h",
    "tensorflow/c/experimental/stream_executor/stream_executor.h",
    "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h",
    "tensorflow/c/experimental/grappler/grappler.h",
];
/// Those that are C++ in the reference.
const CPP_HEADERS: [&str; 7] = [
    "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h",
    "tensorflow/c/kernels.h",
    "tensorflow/c/ops.h",
    "tensorflow/c/env.h",
    "tensorflow/c/c_api_experimental.h",
    "tensorflow/c/eager/c_api_experimental.h",
    "tensorflow/c/eager/c_api_unified_experimental.h",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The reference's headers, if it is installed.
fn reference() -> Option<PathBuf> {
    let setup = root().join("tools/reference/setup.sh");
    let found = Command::new("bash").arg(setup).arg("--where").output();
    let environment = found
        .ok()
        .filter(|found| found.status.success())
        .map(|found| PathBuf::from(String::from_utf8_lossy(&found.stdout).trim().to_string()));
    let pythons = environment.and_then(|environment| std::fs::read_dir(environment.join("lib")).ok());
    let include = pythons.into_iter().flatten().flatten().find_map(|python| {
        let include = python.path().join("site-packages/tensorflow/include");
        include.join("tensorflow/c/c_api.h").exists().then_some(include)
    });
    if include.is_none() {
        println!("skipped: the reference is not installed; tools/reference/setup.sh installs it");
    }
    include
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        plain.push_str(&rest[..start]);
        rest = rest[start..]
            .find("*/")
            .map_or("", |end| &rest[start + end + 2..]);
    }
    plain + rest
}

/// The text as the reference writes it: without first values of members, which only C++ knows; with references, and with a
/// qualifier that means nothing.
fn as_the_reference(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(" TFE_INITIALLY(") {
        plain.push_str(&rest[..start]);
        rest = rest[start..].find(')').map_or("", |end| &rest[start + end + 1..]);
    }
    (plain + rest)
        .replace("TFE_BY_REFERENCE(TF_Buffer)", "const TF_Buffer&")
        .replace(
            "void TFE_MonitoringStringGaugeCellValue",
            "const void TFE_MonitoringStringGaugeCellValue",
        )
}

/// A header of ours in parts: what it declares, and the bodies of its enumerations and structs by name.
struct Parts {
    declarations: String,
    types: Vec<(String, String)>,
}

fn parts(header: &str) -> Parts {
    let path = root().join("include").join(header);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut parts = Parts {
        declarations: String::new(),
        types: Vec::new(),
    };
    let mut body: Option<String> = None;
    for line in as_the_reference(&without_comments(&text))
        .replace("\\\n", "")
        .lines()
    {
        if line.starts_with('#') || line.starts_with("extern \"C\" {") {
            continue;
        }
        if let Some(inside) = &mut body {
            match line.strip_prefix('}') {
                Some(name) => {
                    let name = name.trim().trim_end_matches(';').to_string();
                    parts.types.push((name, std::mem::take(inside)));
                    body = None;
                }
                None => inside.push_str(line),
            }
        } else if line.starts_with("typedef") && line.ends_with('{') {
            body = Some(String::new());
        } else if !line.starts_with('}') {
            parts.declarations.push_str(line);
            parts.declarations.push('\n');
        }
    }
    parts
}

/// Assertions that the values of an enumeration are what ours says.
fn enumerators(body: &str, assert: &str) -> String {
    let values = body.split(',').filter_map(|entry| entry.split_once('='));
    values
        .map(|(name, value)| {
            let (name, value) = (name.trim(), value.trim());
            format!("{assert}({name} == {value}, \"{name}\");\n")
        })
        .collect()
}

/// Assertions that the members of the reference's struct lie where those of ours do.
fn members(name: &str, body: &str, assert: &str) -> String {
    let mut text = format!(
        "struct Our{name} {{ {body} }};\n{assert}(sizeof(struct Our{name}) == sizeof({name}), \"{name}\");\n"
    );
    for member in body.split(';').map(str::trim).filter(|member| !member.is_empty()) {
        // The name is the last word, or stands in the brackets of a pointer to a function.
        let declared = match member.split_once("(*") {
            Some((_, rest)) => rest.split(')').next().unwrap_or(rest),
            None => member,
        };
        let member = declared.rsplit([' ', '*']).next().unwrap_or(declared);
        text.push_str(&format!(
            "{assert}(offsetof(struct Our{name}, {member}) == offsetof({name}, {member}), \"{name}.{member}\");\n"
        ));
    }
    text
}

/// Runs a compiler over a source; none, with a line that says so, when there is no such compiler.
fn compile(compiler: &str, arguments: &[&str], include: &Path, file: &str, source: &str) -> Option<Output> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
    std::fs::write(&path, source).expect("the source can be written");
    let outcome = Command::new(compiler)
        .args(arguments)
        .args(["-fsyntax-only", "-Werror", "-I"])
        .arg(include)
        .arg(&path)
        .output();
    if outcome.is_err() {
        println!("skipped: there is no {compiler}");
    }
    outcome.ok()
}

/// The reference's headers, then our declarations of the same functions, and assertions on types.
fn comparison(headers: &[&str], is_cpp: bool) -> String {
    let assert = if is_cpp { "static_assert" } else { "_Static_assert" };
    let mut source = String::from("#include <stddef.h>\n");
    for header in headers {
        source.push_str(&format!("#include \"{header}\"\n"));
    }
    if is_cpp {
        source.push_str("extern \"C\" {\n");
    }
    let mut count = 0;
    for header in headers {
        let parts = parts(header);
        count += parts.declarations.matches('(').count();
        source.push_str(&format!("#line 1 \"{header}\"\n{}", parts.declarations));
        for (name, body) in &parts.types {
            source.push_str(&match body.contains(';') {
                true => members(name, body, assert),
                false => enumerators(body, assert),
            });
        }
    }
    if is_cpp {
        source.push_str("}\n");
    }
    assert!(count > 200, "only {count} functions were found");
    source
}

fn compare(compiler: &str, standard: &str, file: &str, headers: &[&str], source: &str) {
    let Some(include) = reference() else { return };
    if let Some(outcome) = compile(compiler, &[standard], &include, file, source) {
        let errors = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "{headers:?}: {errors}");
    }
}

#[test]
fn c_prototypes_are_those_of_the_reference() {
    let source = comparison(&C_HEADERS, false);
    compare("cc", "-std=c11", "prototypes.c", &C_HEADERS, &source);
}

#[test]
fn cpp_prototypes_are_those_of_the_reference() {
    let headers = [&C_HEADERS[..], &CPP_HEADERS[..]].concat();
    let source = comparison(&headers, true);
    compare("c++", "-std=c++17", "prototypes.cc", &headers, &source);
}

/// The comparison must be able to fail: another prototype and another value do not compile.
#[test]
fn differences_are_found() {
    let Some(include) = reference() else { return };
    let sound = comparison(&C_HEADERS, false);
    for (from, to) in [
        ("TF_FLOAT == 1", "TF_FLOAT == 2"),
        ("int ninputs", "long ninputs"),
    ] {
        let wrong = sound.replacen(from, to, 1);
        assert_ne!(wrong, sound, "{from} is not in the comparison");
        if let Some(outcome) = compile("cc", &["-std=c11"], &include, "wrong.c", &wrong) {
            assert!(!outcome.status.success(), "{to} was accepted");
        }
    }
}

/// All headers that C can include: not those of the C++ layer.
fn c_headers(include: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![include.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there").flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(include)
                .expect("it is below")
                .to_string_lossy()
                .into_owned();
            let is_cpp = name.starts_with("tensorflow/cc") || name.starts_with("tensorflow/core/");
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".h") && (!is_cpp || name.contains("ctstring") || name.contains("/c/")) {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn each_header_compiles_alone() {
    let include = root().join("include");
    let headers = c_headers(&include);
    assert!(headers.len() > 20, "{headers:?}");
    for header in &headers {
        let source = format!("#include \"{header}\"\n");
        for (compiler, standard, extension) in [("cc", "-std=c99", "c"), ("c++", "-std=c++17", "cc")] {
            let file = format!("{}.{extension}", header.replace(['/', '.'], "_"));
            let arguments = [standard, "-pedantic", "-Wall", "-Wextra"];
            let Some(outcome) = compile(compiler, &arguments, &include, &file, &source) else {
                continue;
            };
            let errors = String::from_utf8_lossy(&outcome.stderr);
            assert!(outcome.status.success(), "{header}: {errors}");
        }
    }
}
