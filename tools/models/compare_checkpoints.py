#!/usr/bin/env python3
"""Reads pairs of checkpoints with the reference and compares them:  compare_checkpoints.py TOLERANCE A B [A B...]

Both of a pair must hold the same tensors; the largest difference of each may be TOLERANCE times its largest magnitude.
Exits with 1 on a difference.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def compare(first, second, tolerance):
    """Prints one line; returns whether the two agree."""
    a, b = tf.train.load_checkpoint(first), tf.train.load_checkpoint(second)
    names = sorted(a.get_variable_to_shape_map())
    if names != sorted(b.get_variable_to_shape_map()):
        print(f"{first} and {second} hold different tensors")
        return False
    worst, where = 0.0, ""
    for name in names:
        x, y = a.get_tensor(name), b.get_tensor(name)
        if x.shape != y.shape or x.dtype != y.dtype:
            print(f"{name} has another shape or type in {second}")
            return False
        magnitude = np.abs(x).max(initial=0) or 1
        difference = np.abs(x - y).max(initial=0) / magnitude
        if difference > worst:
            worst, where = difference, name
    ok = worst <= tolerance
    print(f"{first}: {len(names)} tensors, largest difference {worst:.2g} {where}: {'equal' if ok else 'FAILED'}")
    return ok


def main():
    """Compares every pair of the command line."""
    tolerance, prefixes = float(sys.argv[1]), sys.argv[2:]
    results = [compare(a, b, tolerance) for a, b in zip(prefixes[::2], prefixes[1::2])]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
