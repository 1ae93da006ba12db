"""Random graphs of ops through both libraries; what differs is made small and written as a row of `op_cases!`.

    FERROFLOW_REFERENCE=.. cargo xtask diff [--seconds N] [--seed N] [--ops PATTERN] [--graphs SHARE]
        [--changes PATTERN] [--edges]

Cases come from the library's own (the dump of the unit tests), with small changes of values, shapes, types and attributes
(diff_cases.py); a share of them are chains of ops. With --edges, cases
are all edges of ops in turn (diff_edges.py). Either library runs in a child, which is started again when an
input brings it down or takes too long. Codes, shapes, types and values are compared; each kind of difference of an op is
shrunk and printed once. What is on purpose stands in diff_deliberate.txt (diff_deliberate.py says how).
"""

import argparse
import itertools
import fnmatch
import os
import random
import resource
import select
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, tensor_pb2

import diff_cases
import diff_deliberate
import diff_edges
import diff_rows
from diff_deliberate import Found

TOLERANCE = {tf.float32: 1e-5, tf.float64: 1e-11, tf.float16: 4e-3, tf.bfloat16: 3e-2, tf.complex64: 1e-5, tf.complex128: 1e-11}
SECONDS_PER_CASE = 20
INVALID_ARGUMENT = 3
# Bytes that a child may have; the reference's libraries alone take much of theirs.
MEMORY = {"ours": 4 << 30, "theirs": 12 << 30}


# The reference's server.

def proto(text):
    return tensor_pb2.TensorProto.FromString(bytes.fromhex(text))


def answer(line):
    graph_def, feeds, steps = line.rstrip("\n").split("\t")
    graph_def = graph_pb2.GraphDef.FromString(bytes.fromhex(graph_def))
    fed = dict(feed.split("=") for feed in feeds.split(",") if feed)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        fed = {name + ":0": tf.make_ndarray(proto(value)) for name, value in fed.items()}
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, operation_timeout_in_ms=5000)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        values, types = [], []
        with tf.compat.v1.Session(config=config) as session:
            for step in steps.split(";"):
                fetches, targets = ([name for name in part.split(",") if name] for part in step.split("|"))
                fetches = [name if ":" in name else name + ":0" for name in fetches]
                values += session.run([fetches, targets], fed)[0]
                types += [graph.get_tensor_by_name(name).dtype.base_dtype for name in fetches]
    return [tf.make_tensor_proto(value, dtype).SerializeToString().hex() for value, dtype in zip(values, types)]


def serve():
    for line in sys.stdin:
        try:
            text = "ok\t" + ",".join(answer(line))
        except ValueError as error:  # Errors of shape functions; and what is too large for the Python layer.
            text = f"{'skip' if 'larger than 2GB' in str(error) else 3}\t{error}"
        except tf.errors.OpError as error:
            # A type that it has no kernel for is no difference: ours may.
            missing = "No OpKernel was registered" in error.message or "has constraint on attr" in error.message
            text = f"{'skip' if missing else error.error_code}\t{error.message}"
        except Exception as error:  # What the Python layer cannot hold is not judged.
            text = f"skip\t{type(error).__name__} {error}"
        print(text.replace("\n", " "), flush=True)


# Children.

class Child:
    """A server that is started again when it ends or takes too long."""

    def __init__(self, command, memory):
        self.command, self.memory, self.process = command, memory, None

    def ask(self, line):
        """(code, tensors or message); code is 0 for success, "ended" where the process came down."""
        if self.process is None:
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))
            self.process = subprocess.Popen(self.command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, preexec_fn=limit, bufsize=1)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.end("ended")
        if not select.select([self.process.stdout], [], [], SECONDS_PER_CASE)[0]:
            return self.end("slow")
        text = self.process.stdout.readline()
        if not text:
            return self.end("ended")
        code, outcome = text.rstrip("\n").split("\t", 1)
        if code == "ok":
            return 0, [tf.make_ndarray(proto(part)) for part in outcome.split(",") if part]
        return (code if code == "skip" else int(code)), outcome

    def end(self, code):
        self.process.kill()
        self.process.wait()
        self.process = None
        return code, ""


# The judge.

def values_differ(ours, theirs):
    """The kind of difference between two arrays; None where there is none."""
    if ours.shape != theirs.shape:
        return "shape"
    if ours.dtype != theirs.dtype:
        return "type"
    if ours.dtype.names:
        ours, theirs = ours[ours.dtype.names[0]], theirs[theirs.dtype.names[0]]
    dtype = diff_cases.dtype_of(ours)
    if dtype not in TOLERANCE:
        return None if np.array_equal(ours, theirs) else "value"
    wide = np.complex128 if dtype.is_complex else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return "nan"
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = finite.max() if finite.size else 0.0
    with np.errstate(all="ignore"):
        close = np.isclose(ours, theirs, TOLERANCE[dtype], TOLERANCE[dtype] * min(scale, 1e30) + 1e-37, equal_nan=True)
    return None if close.all() else "value"


def difference(ours, theirs):
    """The kind of difference between two outcomes, None where there is none, and the places of the outputs that differ."""
    if "skip" in (ours[0], theirs[0]):
        return None, []
    failed = "panic" if ours == (13, "panic") else ours[0]
    if failed != theirs[0] or failed in ("ended", "slow"):
        name = lambda code: "ok" if code == 0 else diff_rows.CODES.get(code, str(code))
        return f"{name(failed)}/{name(theirs[0])}", []
    if failed != 0:
        return None, []
    if len(ours[1]) != len(theirs[1]):
        return "count", []
    kinds = list(map(values_differ, ours[1], theirs[1]))
    return next((kind for kind in kinds if kind), None), [at for at, kind in enumerate(kinds) if kind]


class Judge:
    def __init__(self, ours):
        self.ours = Child([ours, "diff", "--serve"], MEMORY["ours"])
        self.theirs = Child([sys.executable, __file__, "--serve"], MEMORY["theirs"])

    def judge(self, case):
        """What is found of a case; without outcomes where it cannot be written."""
        try:
            line = diff_cases.line_of(case)
        except (ValueError, TypeError, OverflowError):
            return Found(case, None, None, None, [])
        theirs = self.theirs.ask(line)
        ours = self.ours.ask(line)
        kind, differ = difference(ours, theirs)
        found = Found(case, kind, ours, theirs, differ)
        if kind and ours[0] == INVALID_ARGUMENT and not case.shaped and not case.constant:
            known = case.copy()
            known.shaped = True
            found.refused_with_shapes = self.theirs.ask(diff_cases.line_of(known))[0] == INVALID_ARGUMENT
        return found

    def alone(self, found):
        """The same difference in the last node of a chain alone, with what the nodes before it give; where there is one."""
        if len(found.case.nodes) == 1:
            return found
        case = found.case.copy()
        node = case.nodes.pop()
        before = self.judge(case)
        if before.kind or not before.ours or before.ours[0] != 0:
            return found
        last, values = case.nodes[-1].name, {}
        for place, name in enumerate(list(node.input)):
            if name.startswith(last + ":"):
                index = int(name[len(last) + 1:])
                name = node.input[place] = f"output{index}"
                values[name] = before.ours[1][index]
            else:
                values[name] = found.case.values[name]
        again = self.judge(diff_cases.Case([node], values, case.constant, case.shaped))
        return again if again.kind == found.kind else found


# Making a case small.

def first(value, count, axis):
    """The first entries along an axis; of arrays without elements, however long they are."""
    return np.ascontiguousarray(value[(slice(None),) * axis + (slice(0, count),)]).reshape(
        value.shape[:axis] + (count,) + value.shape[axis + 1:])


def smaller(case):
    """Cases that are a little simpler."""
    for index in range(1, len(case.nodes)):
        less = case.copy()
        less.nodes = less.nodes[:index]
        yield less
    for name, value in case.values.items():
        for axis in range(value.ndim):
            for extent in {0, 1, value.shape[axis] // 2, value.shape[axis] - 1}:
                if 0 <= extent < value.shape[axis]:
                    less = case.copy()
                    less.values[name] = first(value, extent, axis)
                    yield less
    extents = {extent for value in case.values.values() for extent in value.shape if extent > 1}
    for extent in sorted(extents, reverse=True):
        for to in {1, extent // 2, extent - 1}:
            less = case.copy()
            for name, value in case.values.items():
                for axis in range(value.ndim):
                    if value.shape[axis] == extent:
                        value = first(value, to, axis)
                less.values[name] = value
            yield less
    for name, value in case.values.items():
        if value.dtype == object or not value.size or not diff_cases.plain(value):
            continue
        for number in (0, 1, 2):
            if not (value == number).all():
                less = case.copy()
                less.values[name] = np.full_like(value, number)
                yield less
        for at in range(min(value.size, 12)):
            if value.reshape(-1)[at] != 1:
                less = case.copy()
                flat = value.copy().reshape(-1)
                flat[at] = 1
                less.values[name] = flat.reshape(value.shape)
                yield less
    for node in case.nodes:
        for attr in diff_cases.definition(node).attr:
            simple = attr.type in ("int", "bool", "float", "string") and attr.HasField("default_value")
            if simple and node.attr[attr.name] != attr.default_value:
                less = case.copy()
                less.nodes[case.nodes.index(node)].attr[attr.name].CopyFrom(attr.default_value)
                yield less
    if case.constant or case.shaped:
        less = case.copy()
        less.constant = less.shaped = False
        yield less


def shrunk(judge, found, is_deliberate, seconds=10):
    """The same kind of difference in a smaller case. Starting the reference again is slow, so what ends its process is
    left as it is."""
    again, end = True, time.time() + seconds
    while again and "ended" not in found.kind and "slow" not in found.kind:
        again = False
        for less in smaller(found.case):
            if time.time() > end:
                break
            smaller_one = judge.judge(less)
            if smaller_one.kind == found.kind and not is_deliberate(smaller_one):
                found, again = smaller_one, True
                break
    return found


# The run.

def short(outcome):
    code, rest = outcome
    return str(rest)[:300] if code == 0 else f"{code} {str(rest)[:200]}"


def next_case(rng, judge, seeds, names, share, changes):
    case = diff_cases.changed(rng, rng.choice(seeds[rng.choice(names)]), changes)
    while rng.random() < share and len(case.nodes) < 4:
        found = judge.judge(case)
        if found.kind or found.ours is None or found.ours[0] != 0 or not found.ours[1]:
            break
        longer = None
        for _ in range(8):
            longer = longer or diff_cases.chained(rng, case, found.ours[1], rng.choice(seeds[rng.choice(names)]))
        if longer is None:
            break
        case = longer
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("ours")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--ops", default="*")
    parser.add_argument("--graphs", type=float, default=0.2)
    parser.add_argument("--changes", default="*")
    parser.add_argument("--edges", action="store_true")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    rng, entries = random.Random(seed), diff_deliberate.read()
    is_deliberate = lambda found: any(entry.fits(found) for entry in entries)
    seeds = diff_cases.read_seeds(options.dump)
    names = sorted(name for name in seeds if any(fnmatch.fnmatch(name, part) for part in options.ops.split(",")))
    changes = [change for change in diff_cases.CHANGES if fnmatch.fnmatch(change.__name__, "change_" + options.changes)]
    judge, seen, deliberate, end = Judge(options.ours), {}, set(), time.time() + options.seconds
    print(f"seed {seed}: {len(names)} ops", flush=True)
    count = agreed = 0
    ends = {}
    random_cases = (next_case(rng, judge, seeds, names, options.graphs, changes) for _ in itertools.count())
    for case in diff_edges.all_edges(rng, seeds, names) if options.edges else random_cases:
        if time.time() > end:
            break
        if ends.get(case.nodes[-1].op, 0) > 2:
            continue
        found = judge.judge(case)
        count += 1
        if found.theirs and found.theirs[0] in ("ended", "slow"):
            ends[case.nodes[-1].op] = ends.get(case.nodes[-1].op, 0) + 1
        agreed += bool(found.ours and found.theirs and found.ours[0] == found.theirs[0] == 0)
        if not found.kind:
            continue
        found = judge.alone(found)
        key = (found.case.nodes[-1].op, found.kind)
        if is_deliberate(found):
            deliberate.add(key)
            continue
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            continue
        found = shrunk(judge, found, is_deliberate)
        print(f"\n{key[0]} {key[1]}: ours {short(found.ours)} | the reference {short(found.theirs)}")
        print("    " + diff_rows.row(found.case, found.theirs), flush=True)
    print(f"{count} cases, {agreed} of them without an error, {len(seen)} kinds of difference, {len(deliberate)} on purpose")


if __name__ == "__main__":
    serve() if sys.argv[1:2] == ["--serve"] else main()
