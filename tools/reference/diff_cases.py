"""Random graphs for diff.py: made from op cases by small changes, and written as lines for the two servers.

A Case is a chain of nodes: each takes inputs named `input0`, `input1`.. (arrays), `variable0`.. (arrays that start
variables of the kind that the node takes) or outputs of nodes before it (`node0:1`). Nothing here looks at outcomes.
"""

import copy
import dataclasses
import random

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, tensor_pb2
from tensorflow.python.framework import op_def_registry

# Ops that wait, draw random numbers, or touch files: two libraries need not agree.
LEFT_OUT = ("Abort", "RandomShuffle", "PrintV2", "Print", "Timestamp", "MatchingFiles", "ReadFile", "WriteFile", "Barrier",
            "Queue", "Stage", "Map", "Reader", "Save", "Restore", "MergeV2Checkpoints", "ShardedFilename", "Tensor", "Rng",
            "NonDeterministicInts", "AnonymousSeed", "Stateful", "DeleteSessionTensor", "GetSessionHandle", "_")

QUANTIZED = {tf.qint8, tf.quint8, tf.qint32, tf.qint16, tf.quint16}
# No denormal numbers: the reference takes them for zero.
SPECIAL = {
    "f": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, np.nan, np.inf, -np.inf, 1e-30, 3e38, -3e38, 1e308, 65504.0, 1e-8,
          88.8, -104.0, 1e15, 0.1, -7.25, 2147483648.0, 1e19],
    "i": [0, 1, -1, 2, 3, 5, 7, -2, 127, -128, 255, 32767, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)],
}
STRINGS = [b"", b"a", b"abc", b"-1", b"1e400", b"nan", b" 7 ", b"\x00\xff", "äöü€😀".encode(), b"a,b,,c", b"x" * 100, b"0"]
TYPES = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.complex64, tf.complex128, tf.int8, tf.int16, tf.int32, tf.int64,
         tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.string]


@dataclasses.dataclass
class Case:
    nodes: list  # NodeDefs; names are node0, node1, ..
    values: dict  # name of input or variable: array
    constant: bool = False  # inputs are constants, so shape functions see their values
    shaped: bool = False  # placeholders have a shape

    def copy(self):
        return Case([copy.deepcopy(node) for node in self.nodes], dict(self.values), self.constant, self.shaped)


def definition(node):
    return op_def_registry.get(node.op)


def proto_of(value):
    dtype = tf.as_dtype(value.dtype) if value.dtype != object else tf.string
    if dtype == tf.string:
        return tf.make_tensor_proto(value.tolist(), tf.string, value.shape)
    return tf.make_tensor_proto(value, dtype, value.shape)


def dtype_of(value):
    return tf.string if value.dtype == object else tf.as_dtype(value.dtype)


def read_seeds(path):
    """Cases of the dump by op; those with values that arrays cannot hold are left out."""
    seeds = {}
    for line in open(path, encoding="utf-8"):
        _, node, inputs, _, _ = line.rstrip("\n").split("\t")
        node = node_def_pb2.NodeDef.FromString(bytes.fromhex(node))
        if definition(node) is None or any(node.op.startswith(prefix) for prefix in LEFT_OUT) and not node.op.startswith("TensorScatter"):
            continue
        protos = [tensor_pb2.TensorProto.FromString(bytes.fromhex(part)) for part in inputs.split(",") if part]
        if any(tf.as_dtype(p.dtype) in (tf.variant, tf.resource) for p in protos):
            continue
        values = dict(zip(node.input, map(tf.make_ndarray, protos)))
        node.name = "node0"
        seeds.setdefault(node.op, []).append(Case([node], values))
    return seeds


def input_args(node):
    """For each input of a node, its argument's definition."""
    for arg in definition(node).input_arg:
        count = 1
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        yield from [arg] * max(0, min(count, 64))


# Changes. Each takes a case of one node and changes it; they need not keep it valid.

def special(rng, dtype, count):
    if dtype == tf.string:
        return np.array([rng.choice(STRINGS) for _ in range(count)] + [None], dtype=object)[:-1]
    if dtype == tf.bool:
        return np.array([rng.random() < 0.5 for _ in range(count)])
    kind = "i" if dtype.is_integer else "f"
    mild = rng.random() < 0.6
    draw = (lambda: rng.randint(-3, 6)) if kind == "i" else (lambda: rng.choice([rng.gauss(0, 1), rng.gauss(0, 30), rng.random()]))
    numbers = [draw() if mild or rng.random() < 0.5 else rng.choice(SPECIAL[kind]) for _ in range(count)]
    with np.errstate(all="ignore"):
        if kind == "i":
            low, high = dtype.min, dtype.max
            return np.array([min(max(number, low), high) for number in numbers], dtype=dtype.as_numpy_dtype).reshape(count)
        numbers = np.array(numbers, dtype=np.float64)
        if dtype.is_complex:
            numbers = numbers + 1j * np.array([draw() for _ in range(count)])
        return numbers.astype(dtype.as_numpy_dtype)


def plain(value):
    return value.dtype.names is None


def change_element(rng, case):
    name = rng.choice(list(case.values))
    value = case.values[name]
    if not plain(value) or not value.size:
        return
    value = value.copy()
    flat = value.reshape(-1)
    for _ in range(rng.choice([1, 1, 2, 4])):
        flat[rng.randrange(flat.size)] = special(rng, dtype_of(value), 1)[0]
    case.values[name] = flat.reshape(value.shape)


def change_to_huge(rng, case):
    """A number that may say how large something is to be is as large as its type allows, or much larger than memory."""
    names = [name for name, value in case.values.items() if value.dtype in (np.int32, np.int64) and 0 < value.size <= 64]
    if not names:
        return
    name = rng.choice(names)
    value = case.values[name].copy()
    flat = value.reshape(-1)
    numbers = [2**31 - 1, 2**31 - 2, 2**30, 2**26] + ([] if value.dtype == np.int32 else [2**31, 2**33, 2**40, 2**62, 2**63 - 1])
    for _ in range(rng.choice([1, 1, 2])):
        flat[rng.randrange(flat.size)] = rng.choice(numbers)
    case.values[name] = flat.reshape(value.shape)


def change_all(rng, case):
    name = rng.choice(list(case.values))
    value = case.values[name]
    if plain(value) and value.size < 4096:
        case.values[name] = special(rng, dtype_of(value), value.size).reshape(value.shape)


def resized(rng, value, shape):
    """The value in another shape: its elements over and over."""
    count = int(np.prod(shape, dtype=np.int64))
    if count > 20000:
        return value
    if not value.size:
        if not plain(value):
            return value
        return special(rng, dtype_of(value), count).reshape(shape)
    flat = value.reshape(-1)
    return flat[np.arange(count) % flat.size].reshape(shape)


def change_extent_everywhere(rng, case):
    extents = [extent for value in case.values.values() for extent in value.shape]
    if not extents:
        return
    old, new = rng.choice(extents), rng.choice([0, 1, 2, 3, 5, 8, 17])
    for name, value in case.values.items():
        case.values[name] = resized(rng, value, [new if extent == old else extent for extent in value.shape])


def change_shape(rng, case):
    name = rng.choice(list(case.values))
    shape = list(case.values[name].shape)
    choice = rng.random()
    if choice < 0.3 and len(shape) < 6:
        shape.insert(rng.randint(0, len(shape)), rng.choice([1, 1, 2, 3]))
    elif choice < 0.6 and shape:
        shape.pop(rng.randrange(len(shape)))
    elif choice < 0.65:
        shape = []
    elif choice < 0.7:
        shape = [rng.choice([0, 1, 2, 3])] * rng.randint(1, 5)
    elif shape:
        shape[rng.randrange(len(shape))] = rng.choice([0, 1, 2, 3, 4, 7])
    case.values[name] = resized(rng, case.values[name], shape)


def change_ranks(rng, case):
    """One more or one less leading extent for all inputs that have the same rank: batches."""
    ranks = sorted({value.ndim for value in case.values.values() if value.ndim})
    if not ranks:
        return
    rank = rng.choice(ranks)
    add = rng.random() < 0.6
    for name, value in case.values.items():
        if value.ndim == rank:
            shape = [rng.choice([1, 2])] + list(value.shape) if add else list(value.shape[1:])
            case.values[name] = resized(rng, value, shape)


def converted(rng, value, dtype):
    if not plain(value):
        return value
    if dtype == tf.string:
        return np.array([str(x).encode() for x in value.reshape(-1)] + [None], dtype=object)[:-1].reshape(value.shape)
    if value.dtype == object:
        return special(rng, dtype, value.size).reshape(value.shape)
    with np.errstate(all="ignore"):
        wide = value.astype(np.complex128) if np.iscomplexobj(value) else value.astype(np.float64)
        if not dtype.is_complex:
            wide = wide.real
        if dtype.is_integer:
            wide = np.nan_to_num(wide, nan=0.0, posinf=100, neginf=-100)
            wide = np.clip(wide, max(dtype.min, -(2**53)), min(dtype.max, 2**53))
        return wide.astype(dtype.as_numpy_dtype)


def change_type(rng, case):
    node = case.nodes[0]
    types = [attr for attr in definition(node).attr if attr.type == "type"]
    if not types:
        return
    attr = rng.choice(types)
    allowed = [tf.as_dtype(t) for t in attr.allowed_values.list.type] or TYPES
    allowed = [t for t in allowed if t in TYPES]
    if not allowed:
        return
    dtype = rng.choice(allowed)
    node.attr[attr.name].type = dtype.as_datatype_enum
    for name, arg in zip(list(node.input), input_args(node)):
        if arg.type_attr == attr.name and name in case.values:
            case.values[name] = converted(rng, case.values[name], dtype)


def change_attr(rng, case):
    node = case.nodes[0]
    numbers = {arg.number_attr for arg in definition(node).input_arg}
    attrs = [a for a in definition(node).attr if a.type in ("int", "bool", "float", "string", "list(int)", "shape")
             and a.name not in numbers and a.name not in ("shared_name", "container", "message")]
    if not attrs:
        return
    attr = rng.choice(attrs)
    value = node.attr[attr.name]
    if attr.type == "bool":
        value.b = not value.b
    elif attr.type == "int":
        value.i = rng.choice([0, 1, 2, 3, 4, 5, -1, -2, 7, value.i + 1, value.i - 1, 2**31 - 1, 2**31, 2**62])
    elif attr.type == "float":
        value.f = rng.choice([0.0, 1.0, -1.0, 0.5, 1e-3, 1e38, float("nan"), float("inf"), -0.1])
    elif attr.type == "string":
        allowed = list(attr.allowed_values.list.s)
        value.s = rng.choice(allowed + [b"", b"x"] if allowed else STRINGS)
    elif attr.type == "shape":
        value.shape.CopyFrom(tf.TensorShape([rng.choice([0, 1, 2, 3, None]) for _ in range(rng.randint(0, 3))]).as_proto())
    else:
        numbers = list(value.list.i)
        choice = rng.random()
        if choice < 0.2 and numbers:
            numbers.pop()
        elif choice < 0.4:
            numbers.append(rng.choice([0, 1, 2]))
        elif numbers:
            numbers[rng.randrange(len(numbers))] = rng.choice([0, 1, 2, 3, -1, 4, 2**31 - 1, 2**40])
        value.list.ClearField("i")
        value.list.i.extend(numbers)


CHANGES = [change_element, change_element, change_all, change_extent_everywhere, change_extent_everywhere, change_shape,
           change_ranks, change_type, change_attr, change_to_huge]


def changed(rng, seed, changes=CHANGES):
    case = seed.copy()
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        change = rng.choice(changes)
        if case.values or change in (change_type, change_attr):
            change(rng, case)
    case.constant = rng.random() < 0.25
    case.shaped = rng.random() < 0.3
    return case


def chained(rng, first, outputs, seed):
    """The nodes of `first` and then the seed's, one input of which is an output of the last node; None where none fits.

    `outputs` are the last node's values. The seed's other inputs of the same shape take that output's shape.
    """
    case, added = first.copy(), seed.copy()
    node = added.nodes[0]
    pairs = [(index, name) for index, value in enumerate(outputs) for name in node.input
             if name in added.values and value.dtype == added.values[name].dtype and name.startswith("input")]
    if not pairs or any(name.startswith("variable") for name in list(node.input) + list(case.values)):
        return None
    index, replaced = rng.choice(pairs)
    old, new = added.values[replaced].shape, outputs[index].shape
    last, number = case.nodes[-1].name, len(case.nodes)
    node.name = f"node{number}"
    for place, name in enumerate(list(node.input)):
        if name == replaced:
            node.input[place] = f"{last}:{index}"
            continue
        value = added.values[name]
        fresh = f"{name}_{number}"
        case.values[fresh] = resized(rng, value, new) if value.shape == old else value
        node.input[place] = fresh
    case.nodes.append(node)
    return case


# Lines for the servers.

def add_variable(graph, node, name, value):
    """Adds a variable of the kind that the node takes, the node NAME_set that sets it, and NAME_get that reads it."""
    arguments = definition(node).input_arg
    # The last argument may be a list.
    argument = arguments[min(int(name[len("variable"):]), len(arguments) - 1)]
    resource = argument.type == tf.resource.as_datatype_enum
    ops = ("VarHandleOp", "AssignVariableOp", "ReadVariableOp") if resource else ("VariableV2", "Assign", "Identity")
    variable = graph.node.add(name=name, op=ops[0])
    start = graph.node.add(name=name + "_start", op="Const")
    setter = graph.node.add(name=name + "_set", op=ops[1], input=[name, start.name])
    getter = graph.node.add(name=name + "_get", op=ops[2], input=[name])
    proto = proto_of(value)
    start.attr["value"].tensor.CopyFrom(proto)
    variable.attr["shared_name"].s = name.encode()
    variable.attr["shape"].shape.CopyFrom(proto.tensor_shape)
    for added in (variable, start) + ((setter, getter) if resource else ()):
        added.attr["dtype"].type = proto.dtype
    for added in () if resource else (setter, getter):
        added.attr["T"].type = proto.dtype


def output_types(node):
    """The types of a node's outputs; a reference counts as what it refers to."""
    types = []
    for arg in definition(node).output_arg:
        if arg.type_list_attr:
            types += list(node.attr[arg.type_list_attr].list.type)
            continue
        dtype = arg.type or node.attr[arg.type_attr].type
        count = node.attr[arg.number_attr].i if arg.number_attr else 1
        types += [None if arg.is_ref else dtype] * max(0, min(count, 64))
    return types


def line_of(case):
    """What a server reads; the fetches are the variables, then all outputs of the last node that are plain tensors."""
    graph = graph_pb2.GraphDef()
    removed = max(definition(node).deprecation.version for node in case.nodes)
    graph.versions.producer = removed - 1 if removed else 2474
    feeds, variables = [], []
    used = {name for node in case.nodes for name in node.input}
    for name, value in case.values.items():
        if name not in used:
            continue
        if name.startswith("variable"):
            add_variable(graph, case.nodes[0], name, value)
            variables.append(name)
            continue
        proto = proto_of(value)
        added = graph.node.add(name=name, op="Const" if case.constant else "Placeholder")
        added.attr["dtype"].type = proto.dtype
        if case.constant:
            added.attr["value"].tensor.CopyFrom(proto)
        else:
            if case.shaped:
                added.attr["shape"].shape.CopyFrom(proto.tensor_shape)
            feeds.append(f"{name}={proto.SerializeToString().hex()}")
    for node in case.nodes:
        graph.node.add().CopyFrom(node)
    last = case.nodes[-1]
    hidden = (None, tf.variant.as_datatype_enum, tf.resource.as_datatype_enum)
    fetches = [f"{last.name}:{index}" for index, dtype in enumerate(output_types(last)) if dtype not in hidden]
    steps = ["|" + ",".join(name + "_set" for name in variables)] if variables else []
    steps.append(",".join(fetches) + "|" + last.name)
    if variables:
        steps.append(",".join(name + "_get" for name in variables) + "|")
    return "\t".join([graph.SerializeToString().hex(), ",".join(feeds), ";".join(steps)])
