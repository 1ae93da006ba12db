"""Writes the checkpoints, records and event files that the tests of src/checkpoint read, by the reference.

    python tools/reference/checkpoint_fixtures.py [folder]        (default: src/checkpoint/tests/data)

All values follow simple rules that the Rust tests repeat, so that both sides make the same tensors.
"""
import glob
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import ml_dtypes
import numpy as np
import tensorflow as tf

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
    os.path.dirname(__file__), "../../src/checkpoint/tests/data")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)


def path(name):
    return os.path.join(folder, name)


def save(name, tensors, slices=None):
    names = list(tensors)
    slices = slices or {}
    tf.raw_ops.SaveV2(
        prefix=path(name),
        tensor_names=[n.split("#")[0] for n in names],
        shape_and_slices=[slices.get(n, "") for n in names],
        tensors=[tensors[n] for n in names])


def pattern(dtype, shape, start=0):
    """Element i is the byte pattern (start + 37 i + 11) mod 251, byte by byte."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    data = ((start + np.arange(count) * 37 + 11) % 251).astype(np.uint8)
    if dtype == np.bool_:
        data &= 1
    return np.frombuffer(data.tobytes(), dtype).reshape(shape)


TYPES = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "uint8": np.uint8, "int16": np.int16,
    "int8": np.int8, "complex64": np.complex64, "int64": np.int64, "bool": np.bool_,
    "bfloat16": ml_dtypes.bfloat16, "uint16": np.uint16, "complex128": np.complex128, "half": np.float16,
    "uint32": np.uint32, "uint64": np.uint64, "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}

# Every plain type, strings, scalars and empty tensors, in an order that is not that of the keys.
tensors = {f"layer/{name}/value": pattern(dtype, [2, 3]) for name, dtype in reversed(TYPES.items())}
tensors["scalar"] = np.float32(1.5)
tensors["empty"] = np.zeros([0, 4], np.float32)
tensors["strings"] = tf.constant([[b"", b"one"], [b"x" * 300, b"\0\xff"]])
tensors["string"] = tf.constant(b"hello")
tensors["no_strings"] = tf.constant([], tf.string)
tensors["\0odd\xff name"] = np.int64(-1)
save("types", tensors)

# Elements of type variant: two lists of tensors.
lists = [tf.raw_ops.TensorListFromTensor(tensor=value, element_shape=tf.constant([2])) for value in
         (tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0]]))]
save("variants", {"lists": tf.stack(lists)})

# Partitioned tensors: rows in two parts, a grid of four, a full slice.
rows, grid = pattern(np.float32, [5, 3]), pattern(np.int32, [4, 6])
save("slices", {
    "rows#0": rows[:2], "rows#1": rows[2:], "whole": rows,
    "grid#00": grid[:2, :3], "grid#01": grid[:2, 3:], "grid#10": grid[2:, :3], "grid#11": grid[2:, 3:],
    "wide": pattern(np.uint8, [300, 2])[100:200], "full": rows,
}, {
    "rows#0": "5 3 0,2:-", "rows#1": "5 3 2,3:-",
    "grid#00": "4 6 0,2:0,3", "grid#01": "4 6 0,2:3,3", "grid#10": "4 6 2,2:0,3", "grid#11": "4 6 2,2:3,3",
    "wide": "300 2 100,100:-", "full": "5 3 -:-",
})

# Two shards merged into one bundle.
save("part-b", {"b/x": pattern(np.float32, [4], 3), "rows#1": rows[2:]}, {"rows#1": "5 3 2,3:-"})
save("part-a", {"a/x": pattern(np.float32, [3], 5), "rows#0": rows[:2]}, {"rows#0": "5 3 0,2:-"})
for file in glob.glob(path("part-*")):
    shutil.copy(file, file.replace("part-", "keep-"))
tf.raw_ops.MergeV2Checkpoints(
    checkpoint_prefixes=[path("part-b"), path("part-a")], destination_prefix=path("merged"), delete_old_dirs=False)

# An index of several blocks; only its checksum is kept.
save("large", {f"variable_{i:05d}/" + "n" * (i % 50): np.float32(i) for i in range(6000)})


def fnv(file):
    value = 0xCBF29CE484222325
    with open(file, "rb") as opened:
        for byte in opened.read():
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


print("large: index", os.path.getsize(path("large.index")), f"0x{fnv(path('large.index')):016x}",
      f"data 0x{fnv(path('large.data-00000-of-00001')):016x}")
for file in glob.glob(path("large*")):
    os.remove(file)

# The first format: one table file. Its blocks are compressed.
v1 = {name: value for name, value in tensors.items() if not name.startswith(("layer/uint32", "layer/uint64",
      "layer/float8", "layer/uint16", "layer/complex128", "layer/bfloat16"))}
v1["zeros"] = np.zeros([1000], np.float32)
tf.raw_ops.Save(filename=path("v1.ckpt"), tensor_names=list(v1), data=list(v1.values()))
tf.raw_ops.SaveSlices(
    filename=path("v1_slices.ckpt"), tensor_names=["rows", "rows", "whole"],
    shapes_and_slices=["5 3 0,2:-", "5 3 2,3:-", ""], data=[rows[:2], rows[2:], rows])

# Records and events.
with tf.io.TFRecordWriter(path("records.tfrecord")) as writer:
    for record in (b"", b"first", b"x" * 1000):
        writer.write(record)
for kind in ("GZIP", "ZLIB"):
    with tf.io.TFRecordWriter(path(f"records.{kind.lower()}"), kind) as writer:
        for record in (b"", b"first", b"x" * 1000):
            writer.write(record)
