"""Writes a shrunk case of diff.py as a row of `op_cases!`, or as a list of nodes where it is a graph."""

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

from diff_cases import definition, dtype_of

RUST = {tf.float32: "f32", tf.float64: "f64", tf.int8: "i8", tf.int16: "i16", tf.int32: "i32", tf.int64: "i64", tf.uint8: "u8",
        tf.uint16: "u16", tf.uint32: "u32", tf.uint64: "u64"}
CODES = {1: "Cancelled", 2: "Unknown", 3: "InvalidArgument", 4: "DeadlineExceeded", 5: "NotFound", 6: "AlreadyExists",
         8: "ResourceExhausted", 9: "FailedPrecondition", 10: "Aborted", 11: "OutOfRange", 12: "Unimplemented", 13: "Internal"}


def number(value, rust):
    if rust[0] != "f":
        return str(int(value))
    value = float(value)
    if value != value:
        return f"{rust}::NAN"
    if value in (np.inf, -np.inf):
        return f"{rust}::INFINITY" if value > 0 else f"{rust}::NEG_INFINITY"
    text = repr(value)
    return text if "." in text or "e" in text else text + ".0"


def tensor(value):
    dtype, dims = dtype_of(value), ", ".join(map(str, value.shape))
    flat = value.reshape(-1)
    if dtype == tf.string:
        texts = ", ".join('"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in x) + '"' for x in flat)
        return f"strings(&[{dims}], &[{texts}])"
    if dtype == tf.bool:
        return f"bools(&[{dims}], &[{', '.join(str(bool(x)).lower() for x in flat)}])"
    if dtype in RUST:
        rust = RUST[dtype]
        values = ", ".join(number(x, rust) for x in flat)
        if flat.size:
            return f"t::<{rust}>(&[{dims}], &[{values}])" if value.ndim else f"scalar::<{rust}>({values})"
        return f"t::<{rust}>(&[{dims}], &[])"
    real = np.real(flat) if np.iscomplexobj(flat) else flat.astype(np.float64)
    values = ", ".join(number(x, "f64") for x in real)
    return f"numbers(DataType::{dtype.name.upper()}, &[{dims}], &[{values}])"


def attribute(value):
    kind = value.WhichOneof("value")
    if kind == "type":
        return f"DataType::{tf.as_dtype(value.type).name.upper()}"
    if kind == "i":
        return f"{value.i}i64"
    if kind == "f":
        return number(value.f, "f32") + ("f32" if np.isfinite(value.f) else "")
    if kind == "b":
        return str(value.b).lower()
    if kind == "s":
        return repr(value.s)[1:].replace("'", '"')
    if kind == "list" and value.list.i:
        return f"vec![{', '.join(f'{i}i64' for i in value.list.i)}]"
    return "/* " + text_format.MessageToString(value, as_one_line=True) + " */"


def row(case, expected):
    """Source text. `expected` is the reference's outcome: (code, tensors)."""
    if len(case.nodes) > 1:
        parts = [text_format.MessageToString(node, as_one_line=True) for node in case.nodes]
        parts += [f"{name} = {tensor(value)}" for name, value in case.values.items()]
        return "graph\n    " + "\n    ".join(parts)
    node = case.nodes[0]
    implied = {arg.type_attr for arg in definition(node).input_arg} | {arg.number_attr for arg in definition(node).input_arg}
    implied |= {arg.type_list_attr for arg in definition(node).input_arg}
    defaults = {attr.name: attr.default_value for attr in definition(node).attr if attr.HasField("default_value")}
    text = f'Case::op("{node.op}")'
    for name, value in sorted(node.attr.items()):
        if name not in implied and not name.startswith("_") and defaults.get(name) != value:
            text += f'.attr("{name}", {attribute(value)})'
    for name in node.input:
        text += f".{'variable' if name.startswith('variable') else 'input'}({tensor(case.values[name])})"
    code, values = expected
    if code == 0:
        text += "".join(f".gives({tensor(value)})" for value in values) if sum(v.size for v in values) < 40 else ""
    elif code in CODES:
        text += f".fails(Code::{CODES[code]})"
    view = "constants" if case.constant else "shapes known" if case.shaped else "shapes unknown"
    return f"{text}  // {view}"
