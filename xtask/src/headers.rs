//! `cargo xtask headers`: writes the C headers under `include/` from the Rust sources, by cbindgen.
//!
//! [`HEADERS`] says which source files make up which header; [`TEXTS`] are headers of inline functions and macros, which
//! lie as they are in `src/c_api/headers/`. The types of `ffi.rs`, which say what C promises of a parameter, become the
//! plain C types that they are. `--check` writes nothing and fails when a header differs from what would be written.

#[cfg(feature = "headers")]
use crate::tools;

/// A generated header.
#[cfg(feature = "headers")]
struct Header {
    /// Below `include/`.
    path: &'static str,
    /// What it is, for its readers.
    about: &'static str,
    /// Headers of the system, then of ours, that it includes.
    includes: (&'static [&'static str], &'static [&'static str]),
    /// Files of `src/c_api`, without `.rs`, in the order of their contents.
    sources: &'static [&'static str],
    /// Types that another header declares.
    exclude: &'static [&'static str],
    /// Types that no function of the header mentions.
    include: &'static [&'static str],
    /// A file of `src/c_api/headers` to put after the includes.
    extra: Option<&'static str>,
}

#[cfg(feature = "headers")]
const HEADERS: &[Header] = &[
    Header {
        path: "xla/tsl/c/tsl_status.h",
        about: "The outcome of a call. A status belongs to who made it: one thread at a time may change it, or be in a call that \
                does; threads may read it at the same time. The functions here cannot fail.",
        includes: (&[], &[]),
        sources: &["tsl_status"],
        exclude: &[],
        include: &["TSL_Code"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/tf_status.h",
        about: "The outcome of a call, under TensorFlow's own names. A status belongs to who made it: one thread at a time may \
                change it, or be in a call that does; threads may read it at the same time. The functions here cannot fail.",
        includes: (&[], &["tensorflow/c/c_api_macros.h", "xla/tsl/c/tsl_status.h"]),
        sources: &["status"],
        exclude: &[],
        include: &["TF_Code"],
        extra: Some("tf_status.inc"),
    },
    Header {
        path: "tensorflow/c/tf_buffer.h",
        about: "Bytes with the function that frees them.",
        includes: (&["stddef.h"], &["tensorflow/c/c_api_macros.h"]),
        sources: &["buffer"],
        exclude: &[],
        include: &[],
        extra: None,
    },
    Header {
        path: "tensorflow/c/tf_datatype.h",
        about: "The types of tensor elements.",
        includes: (&["stddef.h"], &["tensorflow/c/c_api_macros.h"]),
        sources: &["datatype"],
        exclude: &[],
        include: &["TF_DataType"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/tf_attrtype.h",
        about: "The kinds of attributes.",
        includes: (&[], &[]),
        sources: &["attr_type"],
        exclude: &[],
        include: &["TF_AttrType"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/tf_tensor.h",
        about: "Tensors.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_datatype.h",
                "tensorflow/c/tf_status.h",
            ],
        ),
        sources: &["tensor"],
        exclude: &[],
        include: &["TF_AllocatorAttributes"],
        extra: Some("tf_tensor.inc"),
    },
    Header {
        path: "tensorflow/c/tf_tstring.h",
        about: "String elements through functions; the inline ones of ctstring.h do the same without calls.",
        includes: (
            &[],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_tensor.h",
                "tensorflow/core/platform/ctstring.h",
            ],
        ),
        sources: &["tstring"],
        exclude: &["TF_TString", "TF_TString_Type"],
        include: &[],
        extra: None,
    },
    Header {
        path: "tensorflow/c/c_api.h",
        about: "Graphs, operations, functions, sessions, SavedModels, libraries. Handles are pointers to what only the \
                library sees into; deleting NULL is harmless.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_attrtype.h",
                "tensorflow/c/tf_buffer.h",
                "tensorflow/c/tf_datatype.h",
                "tensorflow/c/tf_status.h",
                "tensorflow/c/tf_tensor.h",
                "tensorflow/c/tf_tstring.h",
            ],
        ),
        sources: &[
            "version",
            "tensor_proto",
            "string_view",
            "session_options",
            "graph",
            "operation_builder",
            "attr_set",
            "operation",
            "attr_get",
            "import",
            "function",
            "while_loop",
            "gradients",
            "session",
            "partial_run",
            "deprecated_session",
            "device_list",
            "library",
            "op_list",
            "api_def",
            "server",
            "graph_mutation",
            "handle_data",
        ],
        exclude: &[],
        include: &["TF_StringView", "TF_WhileParams"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/eager/c_api.h",
        about: "Ops executed one by one, without a graph. Handles are pointers to what only the library sees into; deleting \
                NULL is harmless.",
        includes: (
            &["stddef.h", "stdint.h"],
            &["tensorflow/c/c_api.h", "tensorflow/c/c_api_macros.h"],
        ),
        sources: &["eager_context", "eager_tensor", "eager_op", "eager_attr"],
        exclude: &[],
        include: &["TFE_ContextDevicePlacementPolicy"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/eager/c_api_experimental.h",
        about: "More of ops executed one by one: executors, cancellation, metrics, devices of the program, memory of handles, \
                settings of contexts.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api.h",
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/eager/c_api.h",
            ],
        ),
        sources: &[
            "eager_settings",
            "eager_cluster",
            "eager_coordination",
            "eager_executor",
            "eager_cancellation",
            "eager_op_attrs",
            "eager_memory",
            "eager_custom_device",
            "eager_counters",
            "eager_gauges",
            "eager_string_gauges",
            "eager_samplers",
        ],
        exclude: &["TFE_CustomDevice", "TFE_CustomDeviceTensorHandle"],
        include: &[],
        extra: Some("eager_custom_device.inc"),
    },
    Header {
        path: "tensorflow/c/eager/c_api_unified_experimental.h",
        about: "One way to execute ops and to trace them into functions.",
        includes: (
            &["stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/eager/c_api.h",
                "tensorflow/c/tf_datatype.h",
                "tensorflow/c/tf_status.h",
            ],
        ),
        sources: &["unified", "unified_op"],
        exclude: &[],
        include: &["TF_Shape"],
        extra: None,
    },
    Header {
        path: "tensorflow/c/ops.h",
        about: "Ops registered at run time, and their shape functions.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h", "stdlib.h"],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_datatype.h",
                "tensorflow/c/tf_status.h",
            ],
        ),
        sources: &["op_definition", "shape_inference"],
        exclude: &[],
        include: &[],
        extra: None,
    },
    Header {
        path: "tensorflow/c/kernels.h",
        about: "Kernels registered at run time.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api.h",
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/experimental/stream_executor/stream_executor.h",
                "tensorflow/c/tf_buffer.h",
                "tensorflow/c/tf_datatype.h",
                "tensorflow/c/tf_status.h",
                "tensorflow/c/tf_tensor.h",
                "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h",
            ],
        ),
        sources: &[
            "kernel_builder",
            "kernel_construction",
            "kernel_context",
            "kernel_step",
            "kernel_deferred",
            "kernel_rendezvous",
        ],
        exclude: &["TF_RendezvousThunk"],
        include: &["TF_AsyncOpKernelDoneCallback"],
        extra: Some("kernels.inc"),
    },
    Header {
        path: "tensorflow/c/env.h",
        about: "Files, time, threads and shared libraries.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_file_statistics.h",
                "tensorflow/c/tf_status.h",
            ],
        ),
        sources: &["env", "env_system"],
        exclude: &["TF_FileStatistics"],
        include: &[],
        extra: None,
    },
    Header {
        path: "tensorflow/c/c_api_experimental.h",
        about: "What bindings use beside c_api.h: settings of compilation, checkpoints without a session, lists of shapes.",
        includes: (
            &["stdbool.h", "stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api.h",
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/eager/c_api.h",
            ],
        ),
        sources: &[
            "xla_settings",
            "checkpoint_reader",
            "shape_list",
            "experimental",
            "file_system_plugin",
            "pluggable_device",
            "eager_collectives",
            "eager_shapes",
        ],
        exclude: &[],
        include: &[],
        extra: None,
    },
    Header {
        path: "tensorflow/c/experimental/grappler/grappler.h",
        about: "Graph optimizers that plug-ins add. A plug-in is a shared library that defines TF_InitGraph; \
                TF_LoadPluggableDeviceLibrary (c_api_experimental.h) loads it. The optimizer then sees each graph that a \
                session plans, unless the session's configuration says otherwise (rewrite_options: disable_meta_optimizer, \
                use_plugin_optimizers, min_graph_nodes). Structs begin with their size as who filled them in knows it.",
        includes: (
            &["stddef.h", "stdint.h"],
            &[
                "tensorflow/c/c_api.h",
                "tensorflow/c/c_api_macros.h",
                "tensorflow/c/tf_buffer.h",
                "tensorflow/c/tf_status.h",
            ],
        ),
        sources: &["grappler"],
        exclude: &["TF_GrapplerItem"],
        include: &[],
        extra: Some("grappler.inc"),
    },
];

/// Headers that are copied: path below `include/`, file of `src/c_api/headers`.
#[cfg(feature = "headers")]
const TEXTS: &[(&str, &str)] = &[
    ("tensorflow/c/c_api_macros.h", "c_api_macros.h"),
    ("tensorflow/c/tf_file_statistics.h", "tf_file_statistics.h"),
    (
        "tensorflow/c/experimental/stream_executor/stream_executor.h",
        "stream_executor.h",
    ),
    (
        "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h",
        "pluggable_profiler.h",
    ),
    (
        "tensorflow/c/experimental/filesystem/filesystem_interface.h",
        "filesystem_interface.h",
    ),
    (
        "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h",
        "tf_rendezvous_c_api.h",
    ),
    ("tensorflow/c/kernels_experimental.h", "kernels_experimental.h"),
    ("tsl/platform/ctstring.h", "ctstring.h"),
    ("tsl/platform/ctstring_internal.h", "ctstring_internal.h"),
    ("tensorflow/core/platform/ctstring.h", "core_ctstring.h"),
    (
        "tensorflow/core/platform/ctstring_internal.h",
        "core_ctstring_internal.h",
    ),
];

/// Runs the command.
#[cfg(feature = "headers")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    let check = arguments.iter().any(|argument| argument == "--check");
    let include = tools::root().join("include");
    for header in HEADERS {
        update(&include.join(header.path), &generate(header)?, check)?;
    }
    for (path, text) in TEXTS {
        let text = tools::read(&tools::root().join("src/c_api/headers").join(text))?;
        update(&include.join(path), &text, check)?;
    }
    Ok(())
}

/// The text of a header.
#[cfg(feature = "headers")]
fn generate(header: &Header) -> Result<String, String> {
    let folder = tools::root().join("src/c_api");
    let extra = match header.extra {
        Some(file) => Some(tools::read(&folder.join("headers").join(file))?),
        None => None,
    };
    let mut builder = cbindgen::Builder::new().with_config(config(header, extra));
    for source in header.sources {
        builder = builder.with_src(folder.join(format!("{source}.rs")));
    }
    let bindings = builder.generate().map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    Ok(plain_types(&String::from_utf8_lossy(&text)))
}

#[cfg(feature = "headers")]
fn config(header: &Header, extra: Option<String>) -> cbindgen::Config {
    let guard: String = header.path.to_uppercase().replace(['/', '.'], "_");
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        style: cbindgen::Style::Both,
        documentation_style: cbindgen::DocumentationStyle::Doxy,
        usize_is_size_t: true,
        no_includes: true,
        sys_includes: owned(header.includes.0),
        includes: owned(header.includes.1),
        include_guard: Some(format!("{guard}_")),
        header: Some(comment(&format!("{}{}", header.about, rules(header)))),
        after_includes: extra,
        line_length: 120,
        ..cbindgen::Config::default()
    };
    let is_exported = header.path.starts_with("tensorflow/");
    config.function.prefix = Some(
        if is_exported {
            "TF_CAPI_EXPORT extern"
        } else {
            "extern"
        }
        .to_string(),
    );
    config.export.exclude = owned(header.exclude);
    config.export.include = owned(header.include);
    config
}

/// What holds for all functions of a header. A status has rules of its own.
#[cfg(feature = "headers")]
fn rules(header: &Header) -> &'static str {
    if header.path.ends_with("_status.h") || header.path.ends_with("type.h") {
        return "";
    }
    " Any thread may call any function; which objects threads may share is said at each type, and none may be in use when it is \
     deleted. Text and arrays that are passed in belong to the caller and are read during the call only, unless a comment says \
     otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the error."
}

#[cfg(feature = "headers")]
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("/*")];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].len() + word.len() > 116 {
            lines.push(String::from(" *"));
        }
        let last = lines.len() - 1;
        lines[last].push(' ');
        lines[last].push_str(word);
    }
    lines.push(String::from(
        " *\n * Written by `cargo xtask headers` from the sources of the library. */",
    ));
    lines.join("\n")
}

/// Puts the C types in place of those of `ffi.rs`.
#[cfg(feature = "headers")]
fn plain_types(text: &str) -> String {
    let mut text = text.to_string();
    for (name, plain) in [
        ("Text", "const char *"),
        ("Blob", "const void *"),
        ("Names", "const char **"),
    ] {
        text = replace_word(&text, name, plain);
    }
    // From the inside out: the argument of an array may be an enumeration, a handle or text.
    while let Some((start, wrapper)) = innermost(&text) {
        let open = start + wrapper.len();
        let close = text[open..].find('>').map_or(text.len() - 1, |at| open + at);
        let inner = text[open + 1..close].trim().to_string();
        let is_pointer = inner.ends_with('*');
        let plain = match wrapper {
            "Enum" => inner,
            "Handle" | "Out" | "Room" => format!("{inner} *"),
            // An array's elements are constant: the pointers, where elements are pointers.
            _ if is_pointer => format!("{inner} const *"),
            _ => format!("const {inner} *"),
        };
        text.replace_range(start..=close, &plain);
    }
    // Aliases of the enumerations, and the old spelling of a type.
    text = text.replace(
        "  TF_COMPLEX64 = 8,\n",
        "  TF_COMPLEX64 = 8,\n  /**\n   * The old name of `TF_COMPLEX64`.\n   */\n  TF_COMPLEX = 8,\n",
    );
    text = text.replace("void *TF_GetStream(", "SP_Stream TF_GetStream(");
    text = without_underscores(&text);
    text = text.replace("const TF_Buffer *tasks", "TFE_BY_REFERENCE(TF_Buffer) tasks");
    text = text
        .replace("void *private_;", "void *priv;")
        .replace("void *private;", "void *priv;");
    without_spaces(&text)
}

/// Takes the underscore off the names of parameters that a function does not use.
#[cfg(feature = "headers")]
fn without_underscores(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['*', ' ']) {
        let (before, after) = rest.split_at(at + 1);
        result.push_str(before);
        let is_name = after.strip_prefix('_').is_some_and(|name| {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && end.is_some_and(|end| name[end..].starts_with([',', ')']))
        });
        rest = if is_name { &after[1..] } else { after };
    }
    result + rest
}

/// Takes out the space after the star of a pointer and the word `struct` before a name, except in comments.
#[cfg(feature = "headers")]
fn without_spaces(text: &str) -> String {
    let tidy = |line: &str| match line.trim_start() {
        comment if comment.starts_with(['*', '/']) => line.to_string(),
        declared if declared.starts_with("typedef") => line.replace("* ", "*"),
        // The name alone will do, for types of C and C++ alike.
        _ => line
            .replace("* ", "*")
            .replace("struct TF_", "TF_")
            .replace("struct TFE_", "TFE_")
            .replace("struct TSL_", "TSL_"),
    };
    text.split_inclusive('\n').map(tidy).collect()
}

/// The first wrapper whose argument has no wrapper in it.
#[cfg(feature = "headers")]
fn innermost(text: &str) -> Option<(usize, &'static str)> {
    const WRAPPERS: [&str; 5] = ["Enum", "Handle", "Out", "Room", "Array"];
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    for (open, _) in text.match_indices('<') {
        let inner = &text[open + 1..];
        let close = inner.find('>')?;
        if inner[..close].contains('<') {
            continue;
        }
        for wrapper in WRAPPERS {
            let Some(start) = open.checked_sub(wrapper.len()) else {
                continue;
            };
            let before = start.checked_sub(1).map_or(b' ', |at| text.as_bytes()[at]);
            if &text[start..open] == wrapper && !is_name(before) {
                return Some((start, wrapper));
            }
        }
    }
    None
}

/// Replaces a whole word that stands where a type does: not in comments, which do not have it before a name.
#[cfg(feature = "headers")]
fn replace_word(text: &str, word: &str, plain: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['*', '/']) {
            result.push_str(line);
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find(word) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (before, after) = (&rest[..at], &rest[at + word.len()..]);
            result.push_str(before);
            let is_whole = !before.ends_with(is_name) && !after.starts_with(is_name);
            result.push_str(if is_whole { plain } else { word });
            rest = after;
        }
        result.push_str(rest);
    }
    result
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
    Err("xtask was built without the feature `headers`".to_string())
}
