"""Writes the tables of facts that the op library holds, as the reference computes with them.

    python tools/reference/tables.py

`src/ops/random/sobol.bin`: the first direction numbers of the Sobol sequence's axes 2 to 21200, without their lowest bit,
which is always set: of an axis whose primitive polynomial has degree d, numbers of 0, 1, .. d - 1 bits, low bits first, all
one after the other in a stream of bits.
`src/ops/string/scripts.bin`: runs of code points of one script, each the first code point (24 bits, little-endian) and the
script's number (8 bits, 255 where there is none).
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

OPS = pathlib.Path(__file__).resolve().parents[2] / "src/ops"
AXES = 21200
DIGITS = 18
# How many primitive polynomials there are of each degree.
POLYNOMIALS = [0, 1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776]


def direction_numbers():
    """Of each axis the first numbers, as integers: the number of digit k has k + 1 bits."""
    numbers = np.zeros((AXES, DIGITS), dtype=np.int64)
    before = 0
    for digit in range(DIGITS):
        # The point before 2^digit is turned by the numbers of this digit and the one below.
        point = tf.raw_ops.SobolSample(dim=AXES, num_results=1, skip=2**digit - 1, dtype=tf.float64).numpy()[0]
        whole = np.round(point * 2.0**32).astype(np.int64)
        own = whole ^ before
        numbers[:, digit] = own >> (31 - digit)
        before = own
    return numbers


def sobol():
    degrees = [degree for degree, count in enumerate(POLYNOMIALS) for _ in range(count)][:AXES - 1]
    bits = []
    for degree, row in zip(degrees, direction_numbers()[1:]):
        for digit in range(degree):
            assert row[digit] & 1
            bits += [int(row[digit]) >> (1 + bit) & 1 for bit in range(digit)]
    return np.packbits(np.array(bits, dtype=np.uint8), bitorder="little").tobytes()


def scripts():
    points = np.arange(0x110001, dtype=np.int32)
    scripts = tf.raw_ops.UnicodeScript(input=points).numpy()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(scripts)) + 1])
    return b"".join(int(start).to_bytes(3, "little") + bytes([int(scripts[start]) & 255]) for start in starts)


(OPS / "random/sobol.bin").write_bytes(sobol())
(OPS / "string/scripts.bin").write_bytes(scripts())
