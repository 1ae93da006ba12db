"""Prints the checksums that src/tensor/small_floats.rs and small_ints.rs compare with.

For each format: FNV-1a (64 bit) over the f32 bits of all 256 byte patterns, and over the bytes that a sweep of f32 and
f64 values converts to. NaNs are checked by their sign and class, with the payload of the f32 side normalised.
"""
import ml_dtypes
import numpy as np


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def decoded(dtype):
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    values[np.isnan(values)] = np.float32("nan")
    return values.view(np.uint32).astype("<u4").tobytes()


SWEEP32 = np.arange(0, 1 << 32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
STEPS = np.arange(-4096, 4096, dtype=np.float64)
SWEEP64 = np.concatenate([STEPS * 2.0**exponent for exponent in range(-28, 8)] + [(STEPS + 2.0**-30) / 16])
INTS = np.arange(-40, 40, dtype=np.int32)

with np.errstate(all="ignore"):
    for name in (
        "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz float4_e2m1fn".split()
    ):
        dtype = getattr(ml_dtypes, name)
        from32 = SWEEP32.astype(dtype).tobytes()
        from64 = SWEEP64.astype(dtype).tobytes()
        print(f"{name}: 0x{fnv(decoded(dtype)):016x}, 0x{fnv(from32):016x}, 0x{fnv(from64):016x}")
        specials = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e9, -1e9, -0.0, 1e-30, -1e-30], np.float32)
        print("   nan -nan inf -inf 1e9 -1e9 -0 1e-30 -1e-30:", specials.astype(dtype).tobytes().hex(" "))
    for name in "int4 uint4 int2 uint2".split():
        dtype = getattr(ml_dtypes, name)
        to = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int32).astype("<i4").tobytes()
        print(f"{name}: 0x{fnv(to):016x}, 0x{fnv(INTS.astype(dtype).tobytes()):016x}")
