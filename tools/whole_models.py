#!/usr/bin/env python3
"""Runs whole models and trainings on our library and compares with what the reference computed.

    whole_models.py PROGRAMS --ours FOLDER --models FOLDER [--basic-pitch FOLDER] [NAME...]

PROGRAMS is the build folder of capi-tests, --models what tools/models/make_models.py wrote, --basic-pitch the SavedModel
of tools/demo. Checkpoints are exchanged both ways: train_model restores the reference's, and the reference, if it is
installed, reads ours. Exits with 1 when anything differs.

A model's outputs are equal when they are within 1e-5 of the largest magnitude of the reference's. Where rounding adds up
to more (fifty layers, logarithms of silence), both are measured against the outputs in double precision, exact.expect:
a model passes when its outputs together are no farther from those than the reference's are.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOLERANCE = "1e-5"  # of the largest magnitude
NO_FARTHER = "no farther from the exact values than the reference"
CHECKPOINT_TOLERANCE = "1e-3"  # of a tensor's largest magnitude, after 100 steps


def run(title, command, library, exact=None):
    """Runs a program on our library; prints and returns its verdict: equal, no farther, MISSING or FAILED."""
    judge = [TOLERANCE, exact] if exact and exact.exists() else []
    done, lines = execute([*command, *judge], library)
    verdict = {0: "equal", 77: "MISSING"}.get(done, f"FAILED ({done})")
    measured = [line for line in lines if "no farther from the exact values" in line]
    if verdict == "equal" and measured:
        verdict = NO_FARTHER
    print(f"{title}: {verdict}")
    if verdict == "equal":
        lines = [line for line in lines if "largest difference" in line][-1:]
    for line in (measured if verdict == NO_FARTHER else lines)[-12:]:
        print("    " + line.strip()[:300])
    return verdict


def execute(command, library):
    """Runs a program on our library; returns its exit code and what it printed."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.resolve()), TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("WARNING:", "I0000"))]
    return done.returncode, lines


def compare_checkpoints(pairs):
    """Lets the reference read our checkpoints beside its own; True when they agree or there is no reference."""
    setup = subprocess.run([ROOT / "tools/reference/setup.sh", "--where"], capture_output=True, text=True)
    if setup.returncode != 0:
        print("checkpoints not read back: " + setup.stderr.strip())
        return True
    python = pathlib.Path(setup.stdout.strip()) / "bin/python"
    script = ROOT / "tools/models/compare_checkpoints.py"
    flat = [str(path) for pair in pairs for path in pair]
    done = subprocess.run([python, script, CHECKPOINT_TOLERANCE, *flat], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    print(done.stdout.decode().strip())
    return done.returncode == 0


def main():
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ours", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--basic-pitch", metavar="FOLDER", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    run_model, train_model = options.programs / "run_model", options.programs / "train_model"
    results, pairs = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(options.models.iterdir()):
            name = folder.name
            if not folder.is_dir() or (options.names and name not in options.names):
                continue
            if (folder / "graph.pb").exists():
                prefix = pathlib.Path(scratch) / name
                results.append(run(name, [train_model, folder, prefix], options.ours))
                if results[-1] == "equal":
                    pairs.append((folder / "final", prefix))
                continue
            saved_model = options.basic_pitch if name == "basic_pitch" else folder / "saved_model"
            for model, expect in ((saved_model, "saved_model.expect"), (folder / "frozen.pb", "frozen.expect")):
                if model and (folder / expect).exists():
                    command = [run_model, model, folder / expect]
                    results.append(run(f"{name}/{expect[:-7]}", command, options.ours, folder / "exact.expect"))
        if pairs:
            results.append("equal" if compare_checkpoints(pairs) else "FAILED")
    equal, measured = results.count("equal"), results.count(NO_FARTHER)
    print(f"{equal} equal, {measured} {NO_FARTHER}, {len(results) - equal - measured} failed")
    sys.exit(0 if results and equal + measured == len(results) else 1)


if __name__ == "__main__":
    main()
