"""Writes `src/op/schema/ops.bin`: the schemas of all ops of the reference's C library, without their descriptions.

Needs a Python that can import the reference (`tensorflow==2.21.0`). The list comes from a process of its own that loads
nothing but the C library: Python's modules register a hundred ops more, nearly all for their own tests.

    python tools/reference/op_schemas.py [--check]

The file is little-endian: the count of ops (u32), for each op the offset of its record in the rest (u32), then the
records, sorted by name. A record is the op's field in an encoded OpList (key, length, OpDef), so the rest of the file
is an OpList. `--check` writes nothing; it decodes the committed file and compares it with what the C function
`TF_GetAllOpList` of the reference returns.
"""

import pathlib
import struct
import subprocess
import sys

import tensorflow
from tensorflow.core.framework import op_def_pb2

FILE = pathlib.Path(__file__).parents[2] / "src" / "op" / "schema" / "ops.bin"
PROSE = ("summary", "description")


PRINT_OP_LIST = """
import ctypes, sys
class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("deallocator", ctypes.c_void_p)]
library = ctypes.CDLL(sys.argv[1])
library.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)
buffer = library.TF_GetAllOpList().contents
sys.stdout.buffer.write(ctypes.string_at(buffer.data, buffer.length))
"""


def without_prose(message):
    for field, value in message.ListFields():
        if field.name in PROSE:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                without_prose(part)
    return message


def reference_ops():
    folder = pathlib.Path(tensorflow.__file__).parent
    command = [sys.executable, "-c", PRINT_OP_LIST, str(folder / "libtensorflow_cc.so.2")]
    ops = op_def_pb2.OpList.FromString(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return sorted((without_prose(op) for op in ops.op), key=lambda op: op.name.encode())


def encode(ops):
    records = [op_def_pb2.OpList(op=[op]).SerializeToString(deterministic=True) for op in ops]
    offsets, end = [], 0
    for record in records:
        offsets.append(end)
        end += len(record)
    return struct.pack(f"<I{len(ops)}I", len(ops), *offsets) + b"".join(records)


def check(ops, data):
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count}I", data, 4)
    rest = data[4 * (count + 1) :]
    if list(op_def_pb2.OpList.FromString(rest).op) != ops:
        sys.exit(f"{FILE}: the schemas differ from the reference's")
    for op, start, end in zip(ops, offsets, (*offsets[1:], len(rest))):
        if op_def_pb2.OpList.FromString(rest[start:end]).op[0].name != op.name:
            sys.exit(f"{FILE}: wrong offset of {op.name}")
    print(f"{count} schemas equal the reference's")


def main():
    ops = reference_ops()
    if "--check" in sys.argv:
        check(ops, FILE.read_bytes())
    else:
        FILE.write_bytes(encode(ops))


if __name__ == "__main__":
    main()
