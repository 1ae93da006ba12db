"""Writes the `.proto` files of `src/proto` from the descriptors of the reference.

Needs a Python that can import the reference (`tensorflow==2.21.0`). The output states the interface only: packages,
messages, fields with their numbers, types, labels and packing, oneofs, enums and reserved names. It is deterministic,
so a second run changes nothing.

    python tools/reference/proto_from_descriptors.py [--check] [output folder, default src/proto]

`--check` writes nothing and fails when a committed file differs.
"""

import importlib
import pathlib
import sys

from google.protobuf import descriptor_pb2

FRAMEWORK = """
allocation_description api_def attr_value cost_graph cpp_shape_inference dataset dataset_metadata dataset_options
device_attributes full_type function graph graph_debug_info graph_transfer_info kernel_def log_memory model node_def
op_def optimized_function_graph reader_base resource_handle step_stats summary tensor tensor_description tensor_shape
tensor_slice types variable versions
""".split()
PROTOBUF = """
cluster composite_tensor_variant config control_flow core_platform_payloads data_service debug device_filters
device_properties error_codes fingerprint meta_graph named_tensor queue_runner remote_tensor_handle rewriter_config
rpc_options saved_model saved_object_graph saver service_config snapshot status struct tensor_bundle tensorflow_server
trackable_object_graph transport_options verifier_config
""".split()
OTHERS = """
core.example.example core.example.example_parser_configuration core.example.feature core.util.event
core.util.memmapped_file_system core.util.saved_tensor_slice core.util.quantization.uniform_quant_ops_attr
compiler.xla.xla_data compiler.xla.tsl.protobuf.distributed_runtime_payloads
compiler.xla.tsl.protobuf.bfc_memory_map python.training.checkpoint_state
""".split()

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    Field.TYPE_DOUBLE: "double", Field.TYPE_FLOAT: "float", Field.TYPE_INT64: "int64", Field.TYPE_UINT64: "uint64",
    Field.TYPE_INT32: "int32", Field.TYPE_FIXED64: "fixed64", Field.TYPE_FIXED32: "fixed32", Field.TYPE_BOOL: "bool",
    Field.TYPE_STRING: "string", Field.TYPE_BYTES: "bytes", Field.TYPE_UINT32: "uint32",
    Field.TYPE_SFIXED32: "sfixed32", Field.TYPE_SFIXED64: "sfixed64", Field.TYPE_SINT32: "sint32",
    Field.TYPE_SINT64: "sint64",
}  # fmt: skip
ENUM_MAX = 0x7FFFFFFF
FIELD_MAX = 0x20000000


def files():
    """All files, dependencies included, by name; what the protobuf runtime itself owns is left out."""
    modules = [f"core.framework.{name}" for name in FRAMEWORK] + [f"core.protobuf.{name}" for name in PROTOBUF] + OTHERS
    pending = [importlib.import_module(f"tensorflow.{module}_pb2").DESCRIPTOR for module in modules]
    found = {}
    while pending:
        file = pending.pop()
        if file.name in found or file.name.startswith("google/protobuf/"):
            continue
        found[file.name] = file
        pending.extend(file.dependencies)
    return [found[name] for name in sorted(found)]


def type_name(field):
    return field.type_name if field.type in (Field.TYPE_MESSAGE, Field.TYPE_ENUM) else SCALARS[field.type]


def options(field, proto2):
    stated = []
    if proto2 and field.HasField("default_value"):
        value = field.default_value
        stated.append(f'default = "{value}"' if field.type == Field.TYPE_STRING else f"default = {value}")
    if field.options.HasField("packed"):
        stated.append(f"packed = {str(field.options.packed).lower()}")
    return f" [{', '.join(stated)}]" if stated else ""


def field_line(field, maps, proto2, in_oneof):
    entry = maps.get(field.type_name.rsplit(".", 1)[-1]) if field.type == Field.TYPE_MESSAGE else None
    if entry is not None:
        key, value = (type_name(part) for part in entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number};"
    label = ""
    if field.label == Field.LABEL_REPEATED:
        label = "repeated "
    elif field.label == Field.LABEL_REQUIRED:
        label = "required "
    elif (proto2 and not in_oneof) or field.proto3_optional:
        label = "optional "
    return f"{label}{type_name(field)} {field.name} = {field.number}{options(field, proto2)};"


def reserved_lines(item, last, largest):
    for reserved in item.reserved_range:
        end = last(reserved)
        text = f"{reserved.start} to max" if end >= largest else f"{reserved.start} to {end}"
        yield f"reserved {reserved.start if end == reserved.start else text};"
    if item.reserved_name:
        yield "reserved " + ", ".join(f'"{name}"' for name in item.reserved_name) + ";"


def enum_lines(enum):
    yield f"enum {enum.name} {{"
    if enum.options.allow_alias:
        yield "  option allow_alias = true;"
    for line in reserved_lines(enum, lambda reserved: reserved.end, ENUM_MAX):
        yield "  " + line
    for value in enum.value:
        yield f"  {value.name} = {value.number};"
    yield "}"


def message_lines(message, proto2):
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    yield f"message {message.name} {{"
    inner = list(reserved_lines(message, lambda reserved: reserved.end - 1, FIELD_MAX - 1))
    for extension in message.extension_range:
        inner.append(f"extensions {extension.start} to {'max' if extension.end >= FIELD_MAX else extension.end - 1};")
    for enum in message.enum_type:
        inner.extend(enum_lines(enum))
    for nested in message.nested_type:
        if nested.name not in maps:
            inner.extend(message_lines(nested, proto2))
    opened = set()
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            if field.oneof_index in opened:
                continue
            opened.add(field.oneof_index)
            members = [
                other for other in message.field
                if other.HasField("oneof_index") and other.oneof_index == field.oneof_index
            ]  # fmt: skip
            inner.append(f"oneof {message.oneof_decl[field.oneof_index].name} {{")
            inner.extend("  " + field_line(member, maps, proto2, True) for member in members)
            inner.append("}")
        else:
            inner.append(field_line(field, maps, proto2, False))
    yield from ("  " + line for line in inner)
    yield "}"


def text_of(file):
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    proto2 = proto.syntax in ("", "proto2")
    assert proto.syntax in ("", "proto2", "proto3"), proto.name
    blocks = [[f'syntax = "{"proto2" if proto2 else "proto3"}";']]
    if proto.package:
        blocks.append([f"package {proto.package};"])
    public = set(proto.public_dependency)
    imports = [
        f'import {"public " if index in public else ""}"{name}";' for index, name in enumerate(proto.dependency)
    ]  # fmt: skip
    if imports:
        blocks.append(imports)
    blocks.extend(list(enum_lines(enum)) for enum in proto.enum_type)
    blocks.extend(list(message_lines(message, proto2)) for message in proto.message_type)
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    check = "--check" in sys.argv
    folder = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2] / "src" / "proto")
    different = []
    for file in files():
        path, text = folder / file.name, text_of(file)
        if check:
            if not path.exists() or path.read_text() != text:
                different.append(file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if different:
        sys.exit("differ from the reference: " + ", ".join(different))


if __name__ == "__main__":
    main()
