#!/usr/bin/env python3
"""Runs the programs of capi-tests on two libraries and compares what they print, case by case.

    capi_diff.py PROGRAMS --ours FOLDER [--reference FOLDER] [NAME...]

PROGRAMS is the build folder of capi-tests; each FOLDER holds libtensorflow_cc.so.2 and libtensorflow_framework.so.2. The
reference defaults to the environment that tools/reference/setup.sh made. NAMEs restrict the run to programs ("session") or
cases ("session/queue"). capi-tests/differences.txt lists the intended differences. Exits with 1 when anything else differs;
with 77 when the reference is missing. What the reference printed is kept in PROGRAMS/reference-output and used again
while the program's file does not change.
"""

import argparse
import difflib
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = [
    "status", "tensor", "tstring", "cluster", "collectives", "eager", "eager_calls", "eager_custom_devices",
    "eager_executors", "eager_handles", "eager_monitoring", "unified", "library", "graph_building", "operation", "attributes", "shapes", "import",
    "functions", "gradients", "while_loops", "graph_changes", "session", "old_session", "errors", "state",
    "saved_model", "checkpoint", "custom_ops", "kernel_nodes", "loop_kernels", "plugins", "reports", "env", "experimental", "sharing", "sharing_eager",
    "eager_reports", "stress", "threads",
]
TEXT = "  text: "
SHOWN_LINES = 12
REFERENCE_TRIES = 4


def reference_folder():
    """Returns the folder with the reference's libraries, or None."""
    setup = subprocess.run([ROOT / "tools/reference/setup.sh", "--where"], capture_output=True, text=True)
    if setup.returncode != 0:
        print(setup.stderr.strip())
        return None
    found = list(pathlib.Path(setup.stdout.strip()).glob("lib/python3*/site-packages/tensorflow"))
    return found[0] if found else None


def read_differences():
    """Returns {program/case: reason} of the intended differences."""
    lines = (ROOT / "capi-tests/differences.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def read_gaps():
    """Returns {case or model: (how far it may differ, what differs)} of the known faults, each to be mended."""
    lines = (ROOT / "capi-tests/gaps.txt").read_text().splitlines()
    rows = [line.split(": ", 2) for line in lines if line and not line.startswith("#")]
    return {name: (limit, reason) for name, limit, reason in rows}


def run(program, library, cases):
    """Runs a program in an empty folder on the libraries in that folder; returns what it printed."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library), TF_CPP_MIN_LOG_LEVEL="3")
    command = [program, f"--data={ROOT}/examples-c/data", *cases]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = done.stdout.decode("utf-8", "backslashreplace")
    return output if done.returncode == 0 else output + f"!! the program ended with {done.returncode}\n"


def run_reference(program, library, cases):
    """As `run`, but keeps the output of whole programs."""
    if cases:
        return run(program, library, cases)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    kept = program.parent / "reference-output" / f"{program.name}-{digest}.txt"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(run(program, library, cases))
    return kept.read_text()


def split_cases(output):
    """Returns {case: lines}."""
    cases, lines = {}, []
    for line in output.splitlines():
        if line.startswith("== "):
            lines = cases[line[3:]] = []
        else:
            lines.append(line)
    return cases


def expected_lines(program, library, case, lines):
    """Runs a case in which the reference was killed again, for it has races of its own: one that lost the process once is no
    answer to compare with. Returns the first answer, or `lines` when it dies every time, which must then be listed."""
    for _ in range(REFERENCE_TRIES):
        if not has_crashed(lines):
            break
        print(f"the reference was killed in {program.name}/{case}; it runs again")
        lines = split_cases(run(program, library, [case])).get(case, lines)
    return lines


def has_crashed(lines):
    return any(line.startswith("!!") for line in lines)


def judge(ours, expected, reason):
    """Returns the verdict on one case; `reason` is why it may differ, if it is listed."""
    crashed = has_crashed(ours)
    if reason is not None:
        if reason.startswith("at times") and not crashed and not has_crashed(expected):
            return "same" if ours == expected else "DIFFERENT"
        return "CRASH" if crashed else ("no longer different" if ours == expected else "listed")
    if ours == expected:
        return "same"
    if crashed:
        return "CRASH"
    without_text = [[line for line in lines if not line.startswith(TEXT)] for lines in (ours, expected)]
    return "other text" if without_text[0] == without_text[1] else "DIFFERENT"


def judge_gap(name, verdict, limit, reason):
    """A known gap passes while it differs no further than it is allowed to: in wording, or in its outcome. Never by a crash."""
    if verdict == "same":
        print(f"no longer a gap: {name}")
        return verdict
    if verdict == "other text" or (verdict == "DIFFERENT" and limit == "outcome"):
        print(f"known gap: {name}: {reason}")
        return "known gap"
    return verdict


def show(name, verdict, ours, expected):
    """Prints a case that is not the same."""
    print(f"{verdict}: {name}")
    lines = list(difflib.unified_diff(expected, ours, "reference", "ours", lineterm="", n=1))[2:]
    for line in lines[:SHOWN_LINES]:
        print("    " + line[:300])
    if len(lines) > SHOWN_LINES:
        print(f"    ... {len(lines) - SHOWN_LINES} more lines")


def main():
    """Compares what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ours", type=pathlib.Path, required=True)
    parser.add_argument("--reference", type=pathlib.Path, default=None)
    options = parser.parse_intermixed_args()
    reference = options.reference or reference_folder()
    if reference is None:
        sys.exit(77)
    differences, gaps = read_differences(), read_gaps()
    counts = {}
    for program in PROGRAMS:
        named = [name for name in options.names if name.split("/")[0] == program]
        if options.names and not named:
            continue
        cases = [name.split("/")[1] for name in named if "/" in name]
        path = (options.programs / program).resolve()
        expected = split_cases(run_reference(path, reference.resolve(), cases))
        ours = split_cases(run(path, options.ours.resolve(), cases))
        for case, lines in expected.items():
            name = f"{program}/{case}"
            if name not in differences and name not in gaps:
                lines = expected_lines(path, reference.resolve(), case, lines)
            verdict = judge(ours.get(case, ["!! not run"]), lines, differences.get(name))
            if name in gaps:
                verdict = judge_gap(name, verdict, *gaps[name])
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == "listed":
                print(f"listed: {name}: {differences[name]}")
            elif verdict not in ("same", "known gap"):
                show(name, verdict, ours.get(case, ["!! not run"]), lines)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    sys.exit(0 if set(counts) <= {"same", "listed", "known gap"} else 1)


if __name__ == "__main__":
    main()
