#!/usr/bin/env python3
"""Measures runs of whole graphs on our library and on the reference in turns, and prints the ratios.

    bench_graphs.py PROGRAM GRAPHS --ours LIBRARY [--reference LIBRARY] [--rounds N] [--seconds S] [NAME...]

PROGRAM is bench_model of benches/CMakeLists.txt, GRAPHS what tools/models/bench_graphs.py wrote, LIBRARY the path of a
libtensorflow_cc.so.2. A figure is the median of N rounds (default 3), each the median of the runs in S seconds. The
goal is to be at least as fast as the reference without its compiler, op by op (FF_JIT is not touched; set it to `off`
for that); ratios up to 1 + NOISE count as equal. Exits with 1 when a graph is slower.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

from bench import find_reference

NOISE = 0.05


def measure(program, library, graph, seconds):
    """One round: {figure: milliseconds}, or None when the library does not run the graph."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", LD_LIBRARY_PATH=str(library.parent))
    command = [program, library, graph, graph.with_suffix(".expect"), str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{library} {graph.stem}: ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[0]: float(row[1]) for row in rows if len(row) == 3 and row[0] in ("first_run", "run")}


def compare(options, libraries, graph):
    """Prints one row; returns whether the goal is reached."""
    rounds = {name: [] for name in libraries}
    for _ in range(options.rounds):
        for name, library in libraries.items():
            figures = measure(options.program.resolve(), library, graph, options.seconds)
            if figures is None:
                print(f"{graph.stem:24} not measured")
                return False
            rounds[name].append(figures)
    median = {
        (name, figure): statistics.median(one[figure] for one in rounds[name])
        for name in libraries
        for figure in ("first_run", "run")
    }
    ours, theirs = median["ours", "run"], median["reference", "run"]
    reached = ours <= theirs * (1 + NOISE)
    row = [f"{value:10.4g}" for value in (ours, theirs)] + [f"{ours / theirs:8.2f}"]
    row += [f"{median[name, 'first_run']:10.4g}" for name in libraries]
    print(f"{graph.stem:24} {' '.join(row)}  {'reached' if reached else 'MISSED'}", flush=True)
    return reached


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("graphs", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ours", type=pathlib.Path, required=True)
    parser.add_argument("--reference", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_intermixed_args()
    libraries = {"ours": options.ours.resolve(), "reference": (options.reference or find_reference()).resolve()}
    print(f"{'graph (ms)':24} {'ours':>10} {'reference':>10} {'ratio':>8} {'first':>10} {'its first':>10}")
    graphs = [graph for graph in sorted(options.graphs.glob("*.pb")) if not options.names or graph.stem in options.names]
    reached = [compare(options, libraries, graph) for graph in graphs]
    sys.exit(0 if reached and all(reached) else 1)


if __name__ == "__main__":
    main()
