#!/usr/bin/env python3
"""Runs C programs under valgrind on our library: no invalid access, nothing lost.

    check_memory.py PROGRAMS --ours FOLDER [--optimized] [NAME...]

PROGRAMS is the build folder of capi-tests. FOLDER holds a library made with `cargo xtask dist --profile dev --no-llvm`;
with --optimized it is a release, whose code decides on values that are not set yet where the answer does not matter, so
only accesses and leaks are looked at. NAMEs are programs ("session") or cases
("session/queue"); without any, all that end in reasonable time. tools/valgrind.supp says what is not counted, and why. Races are not
looked for: the locks of Rust's standard library are futexes, which valgrind's tools do not know, so everything behind them
is a race to them; `make check-threads` and `make loom` look for them.
Exits with 1 when anything is found, with 77 when valgrind is missing.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEMORY = [
    "status", "tensor", "tstring", "library", "graph_building", "operation", "attributes", "shapes", "import",
    "functions", "session", "state", "saved_model", "checkpoint", "null_arguments", "hostile_values/tensors_that_cannot_be",
    "hostile_values/tensor_protos", "hostile_values/feeds_that_do_not_fit", "hostile_values/odd_names",
    "hostile_graphs/circles", "hostile_graphs/endless_loop", "hostile_graphs/endless_while",
    "endings/every_order", "endings/graph_first", "endings/close_during_a_run",
]
OPTIMIZED = ["tensor", "tstring", "graph_building", "attributes", "functions", "session", "state", "null_arguments",
             "endings/graph_first", "endings/close_during_a_run"]


def command(arguments, log):
    """The command line of valgrind, without the program."""
    line = ["valgrind", f"--log-file={log}", "--error-exitcode=9", "--num-callers=30",
            f"--suppressions={ROOT}/tools/valgrind.supp"]
    line += ["--leak-check=full", "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"]
    return [*line, "--undef-value-errors=no"] if arguments.optimized else line


def check(name, arguments):
    """Runs a program or a case; returns what valgrind found, or None."""
    program, _, case = name.partition("/")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(arguments.ours), TF_CPP_MIN_LOG_LEVEL="3")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        line = [*command(arguments, log), arguments.programs / program, "--no-fork", f"--data={ROOT}/examples-c/data"]
        done = subprocess.run([*line, case] if case else line, cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        text = re.sub(r"==\d+== ?", "", log.read_text(errors="replace"))
        if done.returncode in (0, 1) and b"\n!! " not in done.stdout:
            return None
        return f"exit {done.returncode}\n{text[:6000]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--ours", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--optimized", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    if not shutil.which("valgrind"):
        print("valgrind is missing")
        return 77
    names = arguments.names or (OPTIMIZED if arguments.optimized else MEMORY)
    n_failed = 0
    for name in names:
        found = check(name, arguments)
        print(f"{name}: {'fine' if found is None else found}", flush=True)
        n_failed += found is not None
    print(f"{len(names) - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
