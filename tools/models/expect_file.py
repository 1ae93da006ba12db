"""Reading and writing of .expect files: inputs and expected outputs that a C program reads without numpy.

Little-endian, no padding:

    8 bytes  magic "FFEXPECT"
    u32      format version (1)
    u32      number of cases
    for each case
        u32  number of inputs, u32 number of outputs
        inputs, then outputs, each
            u32   length of the tensor's name, then its bytes ("x:0")
            u32   TF_DataType
            u32   rank, then i64 for each dimension
            u64   number of data bytes, then the elements, row-major

A case is one run of the graph: a batch of a model, or a step of a training. No string tensors.
"""

import struct

import numpy as np

MAGIC = b"FFEXPECT"
VERSION = 1
TF_DATA_TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10}
NUMPY_TYPES = {number: name for name, number in TF_DATA_TYPES.items()}


def write(path, cases):
    """Writes `cases`, a list of (inputs, outputs), each a dict of tensor name to numpy array."""
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<II", VERSION, len(cases)))
        for inputs, outputs in cases:
            file.write(struct.pack("<II", len(inputs), len(outputs)))
            for name, array in list(inputs.items()) + list(outputs.items()):
                _write_tensor(file, name, np.asarray(array))


def _write_tensor(file, name, array):
    encoded = name.encode()
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    file.write(struct.pack("<I", len(encoded)) + encoded)
    file.write(struct.pack("<II", TF_DATA_TYPES[array.dtype.name], array.ndim))
    file.write(struct.pack(f"<{array.ndim}q", *array.shape))
    file.write(struct.pack("<Q", len(data)) + data)


def read(path):
    """Reads what `write` wrote."""
    with open(path, "rb") as file:
        if file.read(8) != MAGIC:
            raise ValueError(f"{path} is not an .expect file")
        version, count = struct.unpack("<II", file.read(8))
        if version != VERSION:
            raise ValueError(f"{path} has format version {version}, not {VERSION}")
        return [_read_case(file) for _ in range(count)]


def _read_case(file):
    n_inputs, n_outputs = struct.unpack("<II", file.read(8))
    inputs = dict(_read_tensor(file) for _ in range(n_inputs))
    return inputs, dict(_read_tensor(file) for _ in range(n_outputs))


def _read_tensor(file):
    (length,) = struct.unpack("<I", file.read(4))
    name = file.read(length).decode()
    dtype, rank = struct.unpack("<II", file.read(8))
    shape = struct.unpack(f"<{rank}q", file.read(8 * rank))
    (size,) = struct.unpack("<Q", file.read(8))
    return name, np.frombuffer(file.read(size), NUMPY_TYPES[dtype]).reshape(shape)
