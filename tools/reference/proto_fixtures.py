"""Writes messages as the reference encodes them, for the tests of `src/proto`.

Needs a Python that can import the reference (`tensorflow==2.21.0`).

    python tools/reference/proto_fixtures.py [--check]

Every message type gets one instance for each member of its largest oneof (at least one), with every field set: numbers
and strings that tell the fields apart, two elements in repeated fields and maps, and in message fields a message whose
scalar fields are set. The file is a sequence of (name, encoding) pairs, each part after its length (u32,
little-endian). `--check` writes nothing and fails when the committed file differs.

Beside it, `messages.in` lists the Rust types of the messages.
"""

import pathlib
import re
import struct
import sys

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as Field

import proto_from_descriptors

FOLDER = pathlib.Path(__file__).parents[2] / "src" / "proto" / "tests"
FLOATS = (Field.CPPTYPE_FLOAT, Field.CPPTYPE_DOUBLE)
# The interface to XLA's own files is not filled: only its ops' attributes carry these messages.
PACKAGES = ("tensorflow", "tensorflow.data", "tensorflow.data.experimental", "tensorflow.data.model")


def messages(scope):
    """The message types of a file or a message with those inside them, without the entries of maps."""
    types = scope.message_types_by_name if hasattr(scope, "message_types_by_name") else scope.nested_types_by_name
    for message in types.values():
        if not message.GetOptions().map_entry:
            yield message
            yield from messages(message)


def scalar(field, index):
    seed = 16 * field.number + index + 1
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return True
    if field.cpp_type == Field.CPPTYPE_ENUM:
        values = [value.number for value in field.enum_type.values if value.number]
        return values[index % len(values)] if values else 0
    if field.cpp_type in FLOATS:
        return seed + 0.5
    if field.cpp_type == Field.CPPTYPE_STRING:
        return f"{seed}\N{GREEK SMALL LETTER ALPHA}" if field.type == Field.TYPE_STRING else bytes([0, 255, seed % 256])
    unsigned = field.cpp_type in (Field.CPPTYPE_UINT32, Field.CPPTYPE_UINT64)
    return seed << 20 if unsigned else -(seed << 20)


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def set_field(message, field, nested):
    target = getattr(message, field.name)
    if is_map(field):
        key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        for index in range(2):
            if value.message_type is None:
                target[scalar(key, index)] = scalar(value, index)
            else:
                fill(target[scalar(key, index)], 0, False)
    elif field.message_type is not None:
        for part in [target.add(), target.add()] if field.is_repeated else [target]:
            part.SetInParent()
            if nested:
                fill(part, 0, False)
    elif field.is_repeated:
        target.extend(scalar(field, index) for index in range(2))
    else:
        setattr(message, field.name, scalar(field, 0))


def fill(message, variant, nested):
    """Sets every field, of each oneof the member `variant`; the fields of messages in it too if `nested`."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and not nested:
            continue
        oneof = field.containing_oneof
        if oneof is None or oneof.fields[variant % len(oneof.fields)] is field:
            set_field(message, field, nested)


def pairs():
    for file in proto_from_descriptors.files():
        if file.package not in PACKAGES:
            continue
        for descriptor in messages(file):
            for variant in range(max([1] + [len(oneof.fields) for oneof in descriptor.oneofs])):
                message = message_factory.GetMessageClass(descriptor)()
                fill(message, variant, True)
                yield descriptor, message.SerializePartialToString(deterministic=True)


def rust_type(descriptor):
    """The path of a message's type: prost puts nested types into modules in snake case."""
    outer, inner = [], descriptor
    while inner.containing_type is not None:
        inner = inner.containing_type
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", inner.name).lower()
        outer.insert(0, {"struct": "r#struct"}.get(name, name))
    name = re.sub(r"[A-Z]{2,}(?![a-z])|[A-Z]+(?=[A-Z][a-z])", lambda match: match[0].capitalize(), descriptor.name)
    packages = descriptor.file.package.split(".")[1:]
    return "::".join(["ff_proto", *packages, *outer, name])


def main():
    fixtures, types = b"", {}
    for descriptor, encoding in pairs():
        name = descriptor.full_name.encode()
        fixtures += struct.pack("<I", len(name)) + name + struct.pack("<I", len(encoding)) + encoding
        types[rust_type(descriptor)] = None
    listed = "[\n" + "".join(f"    case::<{name}>(),\n" for name in types) + "]\n"
    outputs = {FOLDER / "messages.bin": fixtures, FOLDER / "messages.in": listed.encode()}
    for path, content in outputs.items():
        if "--check" not in sys.argv:
            path.write_bytes(content)
        elif path.read_bytes() != content:
            sys.exit(f"{path}: differs from the reference's encoding")


if __name__ == "__main__":
    main()
