"""Compares the outcomes of op cases with the reference's.

    FF_CASES_DUMP=cases.tsv cargo nextest run -p ff-ops
    python tools/reference/run_cases.py cases.tsv [substring of case names]

Each line of the dump is a case: name, node, inputs, and either `ok` and outputs or an error's code and message. The
node runs in the reference on placeholders; where its shape function needs values, on constants. Prints the cases that
differ and a count; those that differ on purpose stand in deliberate.txt, with the reason. Inputs named `variable0`.. are
variables of the kind that the op takes; their values afterwards are compared before the op's outputs. Random ops without
a seed and ops on other resources cannot be compared so.
"""

import fnmatch
import os
import pathlib
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, summary_pb2, tensor_pb2
from tensorflow.python.framework import op_def_registry

TOLERANCE = {tf.float32: 1e-5, tf.float64: 1e-12, tf.float16: 2e-3, tf.bfloat16: 1e-2, tf.complex64: 1e-5, tf.complex128: 1e-12}


def tensors(text):
    return [tensor_pb2.TensorProto.FromString(bytes.fromhex(part)) for part in text.split(",") if part]


def graph_of(node, inputs, constant):
    graph = graph_pb2.GraphDef()
    # An op that was taken out of later graphs runs in one that is old enough.
    removed = op_def_registry.get(node.op).deprecation.version
    graph.versions.producer = removed - 1 if removed else 2474
    for name, value in zip(node.input, inputs):
        if name.startswith("variable"):
            add_variable(graph, node, name, value)
            continue
        added = graph.node.add(name=name, op="Const" if constant else "Placeholder")
        added.attr["dtype"].type = value.dtype
        if constant:
            added.attr["value"].tensor.CopyFrom(value)
    graph.node.add().CopyFrom(node)
    return graph


def add_variable(graph, node, name, value):
    """Adds a variable of the kind that the node takes, the node NAME_set that sets it, and NAME_get that reads it."""
    arguments = op_def_registry.get(node.op).input_arg
    # The last argument may be a list.
    argument = arguments[min(int(name[len("variable"):]), len(arguments) - 1)]
    resource = argument.type == tf.resource.as_datatype_enum
    ops = ("VarHandleOp", "AssignVariableOp", "ReadVariableOp") if resource else ("VariableV2", "Assign", "Identity")
    variable = graph.node.add(name=name, op=ops[0])
    start = graph.node.add(name=name + "_start", op="Const")
    setter = graph.node.add(name=name + "_set", op=ops[1], input=[name, start.name])
    getter = graph.node.add(name=name + "_get", op=ops[2], input=[name])
    start.attr["value"].tensor.CopyFrom(value)
    variable.attr["shared_name"].s = name.encode()
    variable.attr["shape"].shape.CopyFrom(value.tensor_shape)
    for added in (variable, start) + ((setter, getter) if resource else ()):
        added.attr["dtype"].type = value.dtype
    for added in () if resource else (setter, getter):
        added.attr["T"].type = value.dtype


def run(node, inputs, constant):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_of(node, inputs, constant), name="")
        outputs = graph.get_operation_by_name(node.name).outputs
        feeds = {}
        if not constant:
            feeds = {f"{name}:0": tf.make_ndarray(value) for name, value in zip(node.input, inputs)
                     if not name.startswith("variable")}
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(config=config) as session:
            variables = [name for name in node.input if name.startswith("variable")]
            session.run([graph.get_operation_by_name(name + "_set") for name in variables])
            is_ref = [output.dtype._is_ref_dtype for output in outputs]
            fetches = [output for output, ref in zip(outputs, is_ref) if not (ref and variables)]
            values = session.run(fetches or graph.get_operation_by_name(node.name), feeds)
            afterwards = session.run([name + "_get:0" for name in variables])
        return afterwards + ([] if values is None else list(values))


def reference(node, inputs):
    try:
        return "ok", run(node, inputs, constant=False)
    except ValueError:
        pass
    except tf.errors.OpError as error:
        return str(error.error_code), error.message
    try:
        return "ok", run(node, inputs, constant=True)
    except ValueError as error:
        return "3", str(error)
    except tf.errors.OpError as error:
        return str(error.error_code), error.message


def differs(ours, theirs):
    """Says how two lists of outputs differ; nothing where they agree."""
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs, the reference has {len(theirs)}"
    for index, (proto, right) in enumerate(zip(ours, theirs)):
        # Arrays of byte strings would drop zeros at the end.
        right = np.asarray(right, dtype=object if isinstance(right, bytes) else None)
        left = tf.make_ndarray(proto)
        # Quantized numbers come as records of one field.
        left, right = (x[x.dtype.names[0]] if x.dtype.names else x for x in (left, right))
        dtype = tf.as_dtype(proto.dtype)
        if left.shape != right.shape:
            return f"output {index} has shape {left.shape}, the reference's {right.shape}"
        if dtype == tf.string:
            equal = all(a == b for a, b in zip(left.flatten(), right.flatten()))
        elif dtype in TOLERANCE:
            wide = np.complex128 if dtype.is_complex else np.float64
            close = TOLERANCE[dtype]
            equal = np.allclose(left.astype(wide), right.astype(wide), close, close, equal_nan=True)
        else:
            equal = np.array_equal(left, right)
        if not equal:
            return f"output {index}: {left.flatten()[:8]}, the reference's {right.flatten()[:8]}"
    return None


def with_pixels(text):
    """A summary with its images' pixels in place of their files: of one image there are many."""
    summary = summary_pb2.Summary.FromString(text)
    for value in summary.value:
        value.image.encoded_image_string = tf.io.decode_png(value.image.encoded_image_string).numpy().tobytes()
    return summary.SerializeToString(deterministic=True)


def read_deliberate():
    """The listed patterns of case names."""
    lines = (pathlib.Path(__file__).parent / "deliberate.txt").read_text().splitlines()
    return [line.split(": ", 1)[0] for line in lines if line and not line.startswith("#")]


def problem_of(line):
    """How one line of the dump differs from the reference; nothing where they agree."""
    _, node, inputs, code, outcome = line.rstrip("\n").split("\t")
    node = node_def_pb2.NodeDef.FromString(bytes.fromhex(node))
    right_code, right = reference(node, tensors(inputs))
    if code != right_code:
        return f"({node.op}): {code} {outcome[:200] if code != 'ok' else ''}, the reference {right_code} {str(right)[:300]}"
    if code != "ok":
        return None
    outcome = tensors(outcome)
    if node.op == "ImageSummary":
        right = [with_pixels(text) for text in right]
        outcome = [tf.make_tensor_proto(with_pixels(proto.string_val[0])) for proto in outcome]
    problem = differs(outcome, right)
    return problem and f"({node.op}): {problem}"


def judge():
    """The child: answers each line of its input with one line, empty where there is no difference."""
    for line in sys.stdin:
        print((problem_of(line) or "").replace("\n", " "), flush=True)


def judged(lines):
    """Lines with what the child says of them. Where the reference brings its process down, another child goes on."""
    child = None
    for line in lines:
        if child is None:
            command = [sys.executable, __file__, "--judge"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            child = subprocess.Popen(command, text=True, **pipes)
        child.stdin.write(line)
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            yield line, f"the reference ended by signal {-child.wait()}"
            child = None
        else:
            yield line, answer.strip()


def main():
    count, bad, listed = 0, 0, 0
    patterns = read_deliberate()
    unused = set(patterns)
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    lines = [line for line in open(sys.argv[1], encoding="utf-8") if wanted in line.split("\t", 1)[0]]
    for line, problem in judged(lines):
        count += 1
        if not problem:
            continue
        name = line.split("\t", 1)[0]
        found = [pattern for pattern in patterns if fnmatch.fnmatch(name, "*::" + pattern)]
        unused.difference_update(found)
        if found:
            listed += 1
            continue
        bad += 1
        print(f"{name} {problem}")
    if not wanted:
        for pattern in sorted(unused):
            print(f"no longer differs: {pattern}")
    print(f"{count} cases, {bad} differ, {listed} on purpose (deliberate.txt)")
    sys.exit(bad > 0)


if sys.argv[1] == "--judge":
    judge()
else:
    main()
