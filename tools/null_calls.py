#!/usr/bin/env python3
"""Writes a C program that calls every exported function with NULL for each pointer parameter, one at a time.

    null_calls.py INCLUDE OUTPUT.c [--aot]

INCLUDE holds our headers; --aot takes the functions of libferroflow_aot.a, too, which must then be linked. The other arguments are objects that capi-tests/null_values.c makes, new for each call; for types
that nothing makes they are NULL, too. Every function is also called with all its pointers at once NULL, and with none. The
program (capi-tests/null_calls.c is its other half) runs each call in a process of its own and prints "!!" for each that
does not end well.
"""

import pathlib
import re
import sys

# What a value of a type is, and the function without which it cannot be made.
MADE = {
    "TF_Status": ("made_status()", None),
    "TSL_Status": ("made_status()", None),
    "TF_Graph": ("made_graph()", None),
    "TF_Operation": ("made_operation()", None),
    "TF_OperationDescription": ("made_description()", None),
    "TF_Tensor": ("made_tensor()", None),
    "TF_Buffer": ("made_buffer()", None),
    "TF_Session": ("made_session()", None),
    "TF_DeprecatedSession": ("made_deprecated_session()", None),
    "TF_SessionOptions": ("TF_NewSessionOptions()", None),
    "TF_ImportGraphDefOptions": ("TF_NewImportGraphDefOptions()", None),
    "TF_ImportGraphDefResults": ("made_import_results()", None),
    "TF_Function": ("made_function()", None),
    "TF_WhileParams": ("made_loop()", None),
    "TF_DeviceList": ("made_devices()", None),
    "TF_ApiDefMap": ("made_api_definitions()", None),
    "TF_Library": ("made_library()", None),
    "TF_CheckpointReader": ("made_reader()", None),
    "TF_AttrBuilder": ('TF_NewAttrBuilder("MatMul")', None),
    "TF_ShapeAndTypeList": ("TF_NewShapeAndTypeList(1)", None),
    "TF_StringStream": ('TF_GetChildren(".", made_status())', None),
    "TF_WritableFileHandle": ("made_file()", None),
    "TF_Thread": ("made_thread()", None),
    "TF_TString": ("made_string()", None),
    "TF_KernelBuilder": ("made_kernel_builder()", None),
    "TF_OpDefinitionBuilder": ("made_op_builder()", None),
    "TF_OpKernelContext": ("kernel_context", None),
    "TF_OpKernelConstruction": ("kernel_construction", None),
    "TF_ShapeInferenceContext": ("shape_context", None),
    "TF_ShapeHandle": ("TF_NewShapeHandle()", None),
    "TF_DimensionHandle": ("TF_NewDimensionHandle()", None),
    "TF_FunctionLibraryDefinition": ("made_function_library()", None),
    "TFE_Context": ("made_context()", None),
    "TFE_ContextOptions": ("TFE_NewContextOptions()", None),
    "TFE_TensorHandle": ("made_handle()", None),
    "TFE_Op": ("made_eager_op()", None),
    "TFE_TensorDebugInfo": ("made_debug_info()", None),
    "TFE_Executor": ("TFE_NewExecutor(0, 0, 0)", "TFE_NewExecutor"),
    "TFE_OpAttrs": ("TFE_OpGetAttrs(made_eager_op())", None),
    "TFE_MonitoringBuckets": ("TFE_MonitoringNewExponentialBuckets(1, 2, 3)", None),
    "TF_ExecutionContext": ("TF_NewEagerExecutionContext(TFE_NewContextOptions(), made_status())", None),
    "TF_AbstractTensor": ("TF_CreateAbstractTensorFromEagerTensor(made_handle(), made_status())", None),
    "TF_AbstractOp": ("made_abstract_op()", None),
    "TF_AbstractFunction": ("made_abstract_function()", None),
    "TF_OutputList": ("TF_NewOutputList()", None),
    "FF_AotProgram": ("made_program()", None),
    "FF_AotModel": ("made_model()", "FF_AotModelNew"),
    "TFE_CancellationManager": ("TFE_NewCancellationManager()", "TFE_NewCancellationManager"),
}
# Metrics with so many labels, and their cells.
for metric, most in [("Counter", 2), ("IntGauge", 2), ("BoolGauge", 2), ("StringGauge", 4), ("Sampler", 2)]:
    for labels in range(most + 1):
        buckets = "TFE_MonitoringNewExponentialBuckets(1, 2, 3), " if metric == "Sampler" else ""
        texts = "".join(f', "l{label}"' for label in range(labels))
        maker = f'TFE_MonitoringNew{metric}{labels}("/null", {buckets}made_status(), "d"{texts})'
        MADE[f"TFE_Monitoring{metric}{labels}"] = (maker, None)
    cell = f"TFE_MonitoringGetCell{metric}0({MADE[f'TFE_Monitoring{metric}0'][0]})"
    MADE[f"TFE_Monitoring{metric}Cell"] = (cell, None)
# Parameters that need more than their type says.
SPECIAL = {
    ("TF_DeletePRunHandle", "handle"): 'strdup("x")',
    ("TF_GetSymbolFromLibrary", "handle"): "dlopen(NULL, RTLD_NOW)",
}
# Types in the callbacks of which their objects live: the calls are made there.
INSIDE = {
    "TF_OpKernelContext": "in_kernel",
    "TF_OpKernelConstruction": "in_construction",
    "TF_ShapeInferenceContext": "in_shape_function",
}
# Not called: TF_InitPlugin and the like are the plug-in's.
NOT_OURS = {"TF_InitPlugin", "TF_InitKernel", "TF_InitGraph", "TF_InitProfiler", "SE_InitPlugin"}
# May wait for good where nothing is NULL that has to be there.
MAY_WAIT = {"TF_DequeueNamedTensor", "TFE_DequeueVariantTensor", "TFE_DequeueNamedTensorFromCtx", "TF_IncNumDeferredOps"}


def plain(text):
    """A header without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)


def split(parameters):
    """The parameters of a prototype."""
    depth, parts = 0, [""]
    for character in parameters:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    parts = [" ".join(part.split()) for part in parts]
    return [part for part in parts if part not in ("", "void")]


def functions(include, with_aot):
    """Returns {name: parameters} of all functions that the headers declare, and the names of types that are functions."""
    found, callbacks = {}, set()
    for header in sorted(include.rglob("*.h")):
        if header.name == "aot.h" and not with_aot:
            continue
        if "/cc/" in str(header):
            continue
        text = plain(header.read_text())
        callbacks |= set(re.findall(r"typedef\s+[^;{}]*\(\s*\*\s*(\w+)\s*\)\s*\(", text))
        pattern = r"extern\s+[^;{}\"]*?\b((?:TF|TFE|TSL|FF)_\w+)\s*\(([^;{}]*)\)\s*;"
        for match in re.finditer(pattern, text):
            if match.group(1) not in NOT_OURS:
                found.setdefault(match.group(1), split(match.group(2)))
    return found, callbacks


def type_of(parameter):
    """The type of a parameter, without its name, `const` and `struct`; "(*)" for a function."""
    if "(*" in parameter:
        return "(*)"
    declared = re.sub(r"\b(const|struct|enum)\b", "", parameter)
    match = re.match(r"(.*?)(\w+)\s*(\[\])?$", declared)
    return match.group(1).replace(" ", "") + ("*" if match.group(3) else "")


def is_pointer(parameter, callbacks):
    kind = type_of(parameter)
    return kind.endswith("*") or kind == "(*)" or kind in callbacks


def value(function, parameter, known, callbacks):
    """A value for a parameter."""
    special = SPECIAL.get((function, re.split(r"\W", parameter)[-1]))
    if special:
        return special
    kind = type_of(parameter)
    base, stars = kind.rstrip("*"), len(kind) - len(kind.rstrip("*"))
    if kind == "(*)" or base in callbacks:
        return "(void*)do_nothing"
    if stars == 0:
        by_value = {"TF_Output": "made_output()", "TF_Input": "made_input()", "float": "1.0f", "double": "1.0"}
        if base in by_value:
            return by_value[base]
        is_number = re.fullmatch(r"(unsigned)?(int|char|long|size_t|u?int\d+_t|bool|TF_Bool)|TF_DataType|TF_Code|TSL_Code", base)
        return "1" if is_number else f"({base}){{0}}"
    maker, needs = MADE.get(base, (None, None))
    if maker and (needs is None or needs in known):
        # An array holds the object once; a parameter that is written gets room.
        return maker if stars == 1 else f"room_of({maker})" if stars == 2 else "room()"
    if base == "char":
        return '"x"' if stars == 1 and "const" in parameter else "texts()" if stars == 2 else "room()"
    if base == "TF_Output" and stars == 1:
        return "made_outputs()"
    if stars == 1 and base.startswith(("TF_", "TFE_", "FF_")) and base not in PLAIN:
        return "NULL"
    return "ones()" if stars == 1 and "const" in parameter else "arrays()" if stars == 2 and "const" in parameter else "room()"


# Structs that a program fills in or has filled in: room will do.
PLAIN = {
    "TF_DataType", "TF_Output", "TF_Input", "TF_FileStatistics", "TF_ThreadOptions", "TF_AllocatorAttributes",
    "TF_StringView", "TF_InputRange_Args", "FF_AotOptions", "TFE_CancelCallback",
}


def main():
    """Writes the program."""
    include, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with_aot = "--aot" in sys.argv[3:]
    found, callbacks = functions(include, with_aot)
    headers = sorted(str(path.relative_to(include)) for path in (include / "tensorflow/c").rglob("*.h"))
    lines = ["#define _GNU_SOURCE", "#include <dlfcn.h>", "#include <string.h>"]
    lines += [f"#include <{header}>" for header in headers + ["ferroflow/ferroflow.h", "ferroflow/aot.h"]]
    lines += ["", '#include "null_values.h"', ""]
    rows, unmade = [], set()
    for name, parameters in sorted(found.items()):
        values = [value(name, parameter, found, callbacks) for parameter in parameters]
        unmade |= {type_of(p) for p, made in zip(parameters, values) if made == "NULL"}
        pointers = [place for place, parameter in enumerate(parameters) if is_pointer(parameter, callbacks)]
        runner = next((INSIDE[type_of(p).rstrip("*")] for p in parameters if type_of(p).rstrip("*") in INSIDE), "in_place")
        choices = [(place,) for place in pointers] + ([tuple(pointers)] if len(pointers) > 1 else []) + [()]
        if not pointers:
            continue
        for nulls in choices:
            if not nulls and name in MAY_WAIT:
                continue
            arguments = ", ".join("NULL" if place in nulls else made for place, made in enumerate(values))
            label = "_".join(map(str, nulls)) or "none"
            lines.append(f"static void {name}_without_{label}(void) {{ (void){name}; {name}({arguments}); }}")
            rows.append(f'    {{"{name}", "{label}", {name}_without_{label}, {runner}}},')
    lines += ["", "const NullCall NULL_CALLS[] = {", *rows, "};", f"const int N_NULL_CALLS = {len(rows)};", ""]
    output.write_text("\n".join(lines))
    print(f"{len(rows)} calls of {len(found)} functions; not made: {', '.join(sorted(unmade)) or 'nothing'}")


if __name__ == "__main__":
    main()
