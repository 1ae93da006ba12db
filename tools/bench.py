#!/usr/bin/env python3
"""Measures our library and the reference in turns and prints the ratios with the goals.

    bench.py BENCH --ours LIBRARY [--reference LIBRARY] [--rounds N]

BENCH is the program that benches/CMakeLists.txt builds; LIBRARY the path of a libtensorflow_cc.so.2. Each figure is the
median of N rounds (default 5); in each round both libraries run one after the other. Exits with 1 when a goal is missed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# figure: (what it is, greatest ratio to the reference or None, greatest value in its unit or None). A figure is reached by
# either; both are shown. The values are the same parts of what the
# reference took on the machine of the first measurements: 80 ms, 400 ns, 6.8 us.
GOALS = {
    "size": ("size of the library", None, 60.0),
    "dlopen": ("dlopen", None, None),
    "start": ("dlopen + first session + first run", 1 / 20, None),
    "start_memory": ("memory after it", None, 30.0),
    "import_10000": ("import of a 10,000-node GraphDef", 1 / 5, 16.0),
    "first_run_10000": ("first run of a 10,000-op chain", 1 / 20, None),
    "run_add": ("TF_SessionRun of Placeholder -> AddV2", 1 / 10, None),
    "chain_op": ("one AddV2 in a chain", 1 / 5, 80.0),
    "build_op": ("TF_NewOperation .. TF_FinishOperation", 1 / 3, 2.27),
    "tensor": ("TF_AllocateTensor + TF_DeleteTensor", 1 / 3, 48.0),
    "eager_add": ("TFE_NewOp .. TFE_Execute of AddV2, scalars", 1 / 10, 500.0),
    "eager_shape": ("the same for a new shape", None, 2000.0),
    "eager_call": ("the same for a function of one AddV2", 1 / 5, None),
    "v1_while_turn": ("one turn of a v1 loop that counts", 1 / 10, 0.37),
    "while_turn": ("one turn of a functional loop", 1 / 15, 0.37),
    "queue_pair": ("enqueue and dequeue", 1 / 5, None),
    "transfer_pair": ("from one device to another", 1 / 5, None),
    "session": ("a session with its first run, 100 ops", None, None),
    "session_memory": ("memory of a session on a shared graph", None, 100.0),
}


def find_reference():
    """Returns the path of the reference's library; exits with 77 when it is not installed."""
    setup = subprocess.run([ROOT / "tools/reference/setup.sh", "--where"], capture_output=True, text=True)
    found = list(pathlib.Path(setup.stdout.strip()).glob("lib/python3*/site-packages/tensorflow/libtensorflow_cc.so.2"))
    if setup.returncode != 0 or not found:
        print(setup.stderr.strip())
        sys.exit(77)
    return found[0]


def measure(program, library, mode, figures):
    """Runs the program once and appends what it prints to `figures`; returns whether it succeeded."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", LD_LIBRARY_PATH=str(library.parent))
    done = subprocess.run([program, library, mode], env=environment, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, value, unit = line.split()
        figures.setdefault(name, (unit, []))[1].append(float(value))
    if done.returncode != 0:
        print(f"{library} {mode}: ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return done.returncode == 0


def verdict(ours, theirs, goal_ratio, goal_value):
    """Returns (ratio, the goal in words, whether it is reached; None when there is no goal)."""
    ratio = ours / theirs if theirs else float("inf")
    by_ratio = goal_ratio is not None and ratio <= goal_ratio
    by_value = goal_value is not None and ours <= goal_value
    goals = [f"1/{1 / goal_ratio:.0f}"] if goal_ratio is not None else []
    goals += [f"{goal_value:g}"] if goal_value is not None else []
    if goals:
        return ratio, " or ".join(goals), by_ratio or by_value
    return ratio, "", None


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("--ours", type=pathlib.Path, required=True)
    parser.add_argument("--reference", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    libraries = {"ours": options.ours.resolve(), "reference": (options.reference or find_reference()).resolve()}
    figures = {name: {} for name in libraries}
    for name, library in libraries.items():
        figures[name]["size"] = ("MB", [library.stat().st_size / 1e6])
    complete = True
    for _ in range(options.rounds):
        for mode in ("start", "steady", "executor"):
            for name, library in libraries.items():
                complete &= measure(options.bench.resolve(), library, mode, figures[name])

    branches = statistics.median(figures["ours"].get("branches", ("", [0]))[1])
    print(f"two independent products of matrices, one thread or two: {branches:.2f} times as fast (goal 1.7 on idle cores)")
    print(f"{'figure':42} {'ours':>12} {'reference':>12} {'ratio':>9} {'goal':>11}")
    missed = not complete
    for name, (title, goal_ratio, goal_value) in GOALS.items():
        if name not in figures["ours"] or name not in figures["reference"]:
            print(f"{title:42} not measured")
            missed = True
            continue
        unit = figures["ours"][name][0]
        ours, theirs = (statistics.median(figures[library][name][1]) for library in ("ours", "reference"))
        ratio, goal, reached = verdict(ours, theirs, goal_ratio, goal_value)
        word = {True: "reached", False: "MISSED", None: ""}[reached]
        shown = f"1/{1 / ratio:.1f}" if 0 < ratio < 1 else f"{ratio:.2f}"
        print(f"{title:42} {ours:9.5g} {unit:2} {theirs:9.5g} {unit:2} {shown:>9} {goal:>11} {word}")
        missed |= reached is False
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
