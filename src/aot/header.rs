//! The header of a compiled model: names, shapes and sizes; inline functions in C and a class in C++ over the runtime's.

use crate::names::{class_name, distinct};
use crate::options::Options;
use crate::source::{Source, Value};
use ff_hlo::{ArrayShape, Module};
use ff_tensor::{DataType, Result, ensure};
use std::fmt::Write;

/// A value of the model as the header says it.
struct Item<'a> {
    value: &'a Value,
    array: &'a ArrayShape,
    /// Its C name.
    name: String,
    /// `arg` or `result`.
    kind: &'static str,
    index: usize,
}

/// The text of the header.
pub(crate) fn header(source: &Source, module: &Module, options: &Options) -> Result<String> {
    let shape = module.entry_computation().program_shape();
    let parameters: Vec<&ArrayShape> = shape.parameters.iter().flat_map(|shape| shape.leaves()).collect();
    let results = shape.result.leaves();
    ensure!(
        parameters.len() == source.inputs.len() && results.len() == source.outputs.len(),
        Internal,
        "a compiled model has other values than its source"
    );
    let arguments = items(&source.inputs, &parameters, "arg");
    let results = items(&source.outputs, &results, "result");
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, &arguments, &results, options);
    Ok(out)
}

fn items<'a>(values: &'a [Value], arrays: &[&'a ArrayShape], kind: &'static str) -> Vec<Item<'a>> {
    let names = distinct(values.iter().map(|value| value.name.clone()));
    let all = values.iter().zip(arrays).zip(names).enumerate();
    all.map(|(index, ((value, array), name))| Item {
        value,
        array,
        name,
        kind,
        index,
    })
    .collect()
}

/// The C type of elements.
fn c_type(dtype: DataType) -> &'static str {
    match dtype {
        DataType::FLOAT | DataType::COMPLEX64 => "float",
        DataType::DOUBLE | DataType::COMPLEX128 => "double",
        DataType::INT8 | DataType::QINT8 => "int8_t",
        DataType::INT16 | DataType::QINT16 => "int16_t",
        DataType::UINT16 | DataType::HALF | DataType::BFLOAT16 | DataType::QUINT16 => "uint16_t",
        DataType::INT32 | DataType::QINT32 => "int32_t",
        DataType::UINT32 => "uint32_t",
        DataType::INT64 => "int64_t",
        DataType::UINT64 => "uint64_t",
        _ => "uint8_t",
    }
}

fn list(dims: &[i64]) -> String {
    let texts: Vec<String> = dims.iter().map(i64::to_string).collect();
    texts.join(", ")
}

/// A text that can stand in a C string or comment.
fn quoted(text: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' | '*' | '?' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    text.chars().map(plain).collect()
}

fn write(out: &mut String, arguments: &[Item], results: &[Item], options: &Options) -> std::fmt::Result {
    let name = &options.name;
    let upper = name.to_ascii_uppercase();
    writeln!(
        out,
        "/* The model {name}, compiled ahead of time for {} ({}).\n *",
        options.target.triple, options.target.processor
    )?;
    for item in arguments.iter().chain(results) {
        let (kind, index) = (if item.kind == "arg" { "argument" } else { "result" }, item.index);
        writeln!(
            out,
            " * {kind} {index}: {} [{}], \"{}\"",
            ff_hlo::type_name(item.array.dtype),
            list(&item.array.dims),
            quoted(&item.value.name)
        )?;
    }
    writeln!(
        out,
        " *\n * Link {name}.o and libferroflow_aot.a. The functions are described in ferroflow/aot.h. Elements lie in row-major\n \
         * order; complex ones are two numbers, half and bfloat16 are their bits. */\n#ifndef {upper}_FERROFLOW_AOT_H_\n\
         #define {upper}_FERROFLOW_AOT_H_\n\n#include <ferroflow/aot.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n/* Code and weights. */\n\
         extern const FF_AotProgram {name}_program;\n\n#ifdef __cplusplus\n}}\n#endif\n\n\
         #define {upper}_NUM_ARGS {}\n#define {upper}_NUM_RESULTS {}",
        arguments.len(),
        results.len()
    )?;
    for item in arguments.iter().chain(results) {
        constants(out, &upper, item)?;
    }
    functions(out, name, arguments, results)?;
    class(out, name, arguments, results)?;
    writeln!(out, "\n#endif  /* {upper}_FERROFLOW_AOT_H_ */")
}

fn constants(out: &mut String, upper: &str, item: &Item) -> std::fmt::Result {
    let prefix = format!("{upper}_{}_{}", item.kind, item.name).to_ascii_uppercase();
    let scalars = if item.array.dtype.is_complex() { 2 } else { 1 };
    writeln!(out, "\n/* \"{}\" */", quoted(&item.value.name))?;
    writeln!(out, "#define {prefix}_INDEX {}", item.index)?;
    writeln!(out, "#define {prefix}_TYPE {}", item.array.dtype.0)?;
    writeln!(out, "#define {prefix}_RANK {}", item.array.dims.len())?;
    // An array without elements is no C.
    let dims = if item.array.dims.is_empty() {
        String::from("1")
    } else {
        list(&item.array.dims)
    };
    writeln!(out, "#define {prefix}_SHAPE {{{dims}}}")?;
    writeln!(
        out,
        "#define {prefix}_COUNT ((size_t)UINT64_C({}))",
        item.array.num_elements() * scalars
    )?;
    writeln!(
        out,
        "#define {prefix}_BYTES ((size_t)UINT64_C({}))",
        item.array.byte_size()
    )
}

fn functions(out: &mut String, name: &str, arguments: &[Item], results: &[Item]) -> std::fmt::Result {
    writeln!(
        out,
        "\n/* A model; options may be NULL. FF_AotModelCode tells whether it can run. */\n\
         static inline FF_AotModel* {name}_new(const FF_AotOptions* options) {{\n  \
         return FF_AotModelNew(&{name}_program, options);\n}}\n\n\
         static inline void {name}_delete(FF_AotModel* model) {{ FF_AotModelDelete(model); }}\n\n\
         /* 0, or the code of an error. */\n\
         static inline int {name}_run(FF_AotModel* model) {{ return FF_AotModelRun(model); }}\n\n\
         static inline const char* {name}_message(const FF_AotModel* model) {{\n  return FF_AotModelMessage(model);\n}}"
    )?;
    for (kind, items) in [("arg", arguments), ("result", results)] {
        writeln!(
            out,
            "\n/* The name that the model gives this value, NULL for none. */\n\
             static inline const char* {name}_{kind}_name(size_t index) {{"
        )?;
        for item in items {
            let text = quoted(&item.value.name);
            writeln!(out, "  if (index == {}) return \"{text}\";", item.index)?;
        }
        writeln!(out, "  (void)index;\n  return NULL;\n}}")?;
    }
    for item in arguments {
        let (c, value, index) = (c_type(item.array.dtype), &item.name, item.index);
        writeln!(
            out,
            "\nstatic inline {c}* {name}_arg_{value}(FF_AotModel* model) {{\n  \
             return ({c}*)FF_AotModelArgument(model, {index});\n}}\n\n\
             static inline int {name}_set_arg_{value}(FF_AotModel* model, const {c}* data) {{\n  \
             return FF_AotModelSetArgument(model, {index}, data);\n}}"
        )?;
    }
    for item in results {
        let (c, value, index) = (c_type(item.array.dtype), &item.name, item.index);
        writeln!(
            out,
            "\nstatic inline const {c}* {name}_result_{value}(const FF_AotModel* model) {{\n  \
             return (const {c}*)FF_AotModelResult(model, {index});\n}}"
        )?;
    }
    Ok(())
}

fn class(out: &mut String, name: &str, arguments: &[Item], results: &[Item]) -> std::fmt::Result {
    let class = class_name(name);
    writeln!(
        out,
        "\n#ifdef __cplusplus\n\n/* Owns a model. ok() and message() tell how the last call went. */\nclass {class} {{\n public:\n  \
         explicit {class}(int threads = 1, const char* weights_file = nullptr) {{\n    \
         FF_AotOptions options = {{sizeof(FF_AotOptions), threads, weights_file}};\n    \
         model_ = {name}_new(&options);\n  }}\n  ~{class}() {{ FF_AotModelDelete(model_); }}\n  \
         {class}(const {class}&) = delete;\n  {class}& operator=(const {class}&) = delete;\n  \
         {class}({class}&& other) noexcept : model_(other.model_) {{ other.model_ = nullptr; }}\n  \
         {class}& operator=({class}&& other) noexcept {{\n    FF_AotModel* mine = model_;\n    model_ = other.model_;\n    \
         other.model_ = mine;\n    return *this;\n  }}\n\n  bool ok() const {{ return FF_AotModelCode(model_) == 0; }}\n  \
         const char* message() const {{ return FF_AotModelMessage(model_); }}\n  \
         bool run() {{ return FF_AotModelRun(model_) == 0; }}\n  FF_AotModel* model() {{ return model_; }}"
    )?;
    for item in arguments {
        let (c, value) = (c_type(item.array.dtype), &item.name);
        writeln!(
            out,
            "\n  {c}* arg_{value}() {{ return {name}_arg_{value}(model_); }}\n  \
             bool set_arg_{value}(const {c}* data) {{ return {name}_set_arg_{value}(model_, data) != 0; }}\n  \
             static constexpr size_t arg_{value}_count() {{ return UINT64_C({}); }}",
            item.array.num_elements() * if item.array.dtype.is_complex() { 2 } else { 1 }
        )?;
    }
    for item in results {
        let (c, value) = (c_type(item.array.dtype), &item.name);
        writeln!(
            out,
            "\n  const {c}* result_{value}() const {{ return {name}_result_{value}(model_); }}\n  \
             static constexpr size_t result_{value}_count() {{ return UINT64_C({}); }}",
            item.array.num_elements() * if item.array.dtype.is_complex() { 2 } else { 1 }
        )?;
    }
    writeln!(
        out,
        "\n private:\n  FF_AotModel* model_ = nullptr;\n}};\n\n#endif  /* __cplusplus */"
    )
}
