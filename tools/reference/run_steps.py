"""Compares what whole graphs do, step by step, with the reference: state, control flow, waiting, errors.

    python tools/reference/run_steps.py LIBRARY [--reference LIBRARY] [-v] [CASE...]

LIBRARY is our libtensorflow_cc.so.2; Python is the reference's. The cases are functions in steps/*_cases.py that write a
graph and a list of steps (see steps/graph.py); both libraries play them through the C API (steps/player.py), each case in a
process of its own. CASEs are parts of names, "queues" or "queues::closed"; -v prints what came of all. Cases that differ on
purpose are in steps/deliberate.txt, known faults, to be mended, in steps/gaps.txt. Exits with 1 when any other differs.
"""

import argparse
import importlib
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "steps"))

import numpy as np
import tensorflow as tf
from graph import Case

CODES = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
]  # fmt: skip
# Numbers of processes, addresses, names of types in the code.
VARYING = [
    (re.compile(r"\b_\d+_"), "_#_"), (re.compile(r"0x[0-9a-f]+"), "0x#"), (re.compile(r" \(hash code \d+\)"), ""),
    (re.compile(r"/(<unknown>|Variable|N10tensorflow\w+E) does not exist"), " does not exist"),
    (re.compile(r"\nHint: If you want to see a list of allocated tensors(.|\n)*"), ""),
]  # fmt: skip
TOLERANCE = 1e-5


def written(wanted):
    """All cases whose name has one of the parts in it, as the player takes them."""
    cases = []
    for path in sorted((HERE / "steps").glob("*_cases.py")):
        module = importlib.import_module(path.stem)
        family = path.stem.removesuffix("_cases")
        for build in module.CASES:
            case = Case(f"{family}::{build.__name__}")
            if wanted and not any(part in case.name for part in wanted):
                continue
            build(case)
            cases.append(
                {
                    "name": case.name, "graph": case.graph.proto.SerializeToString(), "config": case.config,
                    "files": case.files, "steps": case.steps,
                }  # fmt: skip
            )
    return cases


def played(library, cases, folder):
    """What came of the cases on a library."""
    given, found = folder / "cases", folder / "outcomes"
    given.write_bytes(pickle.dumps(cases))
    done = subprocess.run(
        [sys.executable, HERE / "steps/player.py", library, given, found],
        cwd=folder, stderr=subprocess.PIPE, text=True, env=dict(os.environ, TF_CPP_MAX_VLOG_LEVEL="0"),
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{library}: the player ended with {done.returncode}: {done.stderr[-2000:]}")
    return pickle.loads(found.read_bytes())


def shown(outcome):
    """An outcome in words."""
    what, code, message, values = outcome
    for pattern, word in VARYING:
        message = pattern.sub(word, message)
    lines = [f"{what}: {CODES[code]}" + (f" {message}" if message else "")]
    for dtype, shape, elements in values:
        text = "handle" if elements is None else np.array2string(np.asarray(elements), threshold=40) if len(shape) else str(elements)
        lines.append(f"    type {dtype} {list(shape)}: {text}")
    return "\n".join(lines)


def equal_values(a, b):
    """Whether two tensors are equal."""
    if a[:2] != b[:2] or (a[2] is None) != (b[2] is None):
        return False
    if a[2] is None or isinstance(a[2], list):
        return a[2] == b[2]
    if a[2].dtype.kind in "fc":
        return np.allclose(a[2], b[2], rtol=TOLERANCE, atol=1e-6, equal_nan=True)
    return np.array_equal(a[2], b[2])


def difference(ours, theirs):
    """None, "other text" or "differs"."""
    if len(ours) != len(theirs):
        return "differs"
    worst = None
    for a, b in zip(ours, theirs):
        if a[:2] != b[:2] or len(a[3]) != len(b[3]) or not all(map(equal_values, a[3], b[3])):
            return "differs"
        if shown(a[:3] + ([],)) != shown(b[:3] + ([],)):
            worst = "other text"
    return worst


def listed_in(file):
    """{case: reason} of a list."""
    lines = (HERE / "steps" / file).read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def main():
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--reference", type=pathlib.Path)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    reference = options.reference or pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"
    listed = {"on purpose": listed_in("deliberate.txt"), "known fault": listed_in("gaps.txt")}
    cases = written(options.cases)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        theirs = played(reference.resolve(), cases, folder)
        ours = played(options.library.resolve(), cases, folder)
    counts = {}
    for case in cases:
        name = case["name"]
        kind = difference(ours[name], theirs[name])
        places = [place for place, names in listed.items() if name in names]
        word = places[0] if kind and places else kind or "equal"
        counts[word] = counts.get(word, 0) + 1
        if not kind and places:
            print(f"{name}: listed as {places[0]}, but equal")
        if options.v or word in ("differs", "other text"):
            print(f"== {name}: {word}")
            for index in range(max(len(ours[name]), len(theirs[name]))):
                pair = [shown(all[name][index]) if index < len(all[name]) else "nothing" for all in (theirs, ours)]
                print(pair[0] if pair[0] == pair[1] else f"reference  {pair[0]}\nours       {pair[1]}")
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    sys.exit(1 if counts.keys() & {"differs", "other text"} else 0)


if __name__ == "__main__":
    main()
