"""Short ways to write graphs and what is run on them, node by node.

A `Case` has a graph and a list of steps. A tensor is its name, "node:0"; an op without outputs is its node's name. Types of
inputs and lists are worked out from the op's schema, so that only other attributes have to be given. Nothing is checked:
graphs that nobody should write are written as they are.
"""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2
from tensorflow.python.framework import op_def_registry

PRODUCER = 2474


def _type(value):
    """The number of an element type; a reference is 100 more."""
    if isinstance(value, int):
        return value
    return tf.as_dtype(value).as_datatype_enum


def _shape(value, proto):
    """Writes a shape: a list of extents with None for unknown ones, or None when nothing is known."""
    if value is None:
        proto.unknown_rank = True
        return
    for extent in value:
        proto.dim.add(size=-1 if extent is None else extent)


def _function(value, proto):
    """Writes a function's name, with its attributes if there are any: (name, {attribute: AttrValue})."""
    proto.name, attrs = value if isinstance(value, tuple) else (value, {})
    for key, attr in attrs.items():
        proto.attr[key].CopyFrom(attr)


def _set_attr(proto, kind, value):
    """Writes an attribute of a kind of OpDefs."""
    if kind.startswith("list("):
        proto.list.SetInParent()
        field = {"int": "i", "float": "f", "bool": "b"}.get(kind[5:-1])
        for one in value:
            if field:
                getattr(proto.list, field).append(one)
            elif kind == "list(string)":
                proto.list.s.append(one.encode() if isinstance(one, str) else one)
            elif kind == "list(type)":
                proto.list.type.append(_type(one))
            elif kind == "list(shape)":
                _shape(one, proto.list.shape.add())
            elif kind == "list(func)":
                _function(one, proto.list.func.add())
    elif kind == "string":
        proto.s = value.encode() if isinstance(value, str) else value
    elif kind == "type":
        proto.type = _type(value)
    elif kind == "shape":
        proto.shape.SetInParent()
        _shape(value, proto.shape)
    elif kind == "tensor":
        proto.tensor.CopyFrom(tf.make_tensor_proto(value))
    elif kind == "func":
        proto.func.SetInParent()
        _function(value, proto.func)
    else:
        setattr(proto, {"int": "i", "float": "f", "bool": "b"}[kind], value)


class Graph:
    """A GraphDef that grows; also the body of a function."""

    def __init__(self):
        self.proto = graph_pb2.GraphDef()
        self.proto.versions.producer = PRODUCER
        self._types = {}
        self._names = {}

    def _name(self, op, name):
        base = name or op
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return base if not count else f"{base}_{count}"

    def type_of(self, tensor):
        """Element type of a tensor, without the mark of references."""
        return self._types.get(tensor, (tf.float32.as_datatype_enum, None))[0] % 100

    def add(self, op, *inputs, name=None, control=(), device="", **attrs):
        """Adds a node; returns its output, a list of several, or its name when it has none. Lists of inputs are lists."""
        schema = op_def_registry.get(op)
        node = self.proto.node.add(name=self._name(op, name), op=op, device=device)
        kinds = {attr.name: attr.type for attr in schema.attr}
        for argument, value in zip(schema.input_arg, inputs):
            values = value if isinstance(value, list) else [value]
            node.input.extend(one[:-2] if one.endswith(":0") else one for one in values)
            if argument.number_attr:
                attrs.setdefault(argument.number_attr, len(values))
            if argument.type_list_attr:
                attrs.setdefault(argument.type_list_attr, [self.type_of(one) for one in values])
            elif argument.type_attr and values:
                attrs.setdefault(argument.type_attr, self.type_of(values[0]))
        node.input.extend("^" + one.split(":")[0] for one in control)
        for key, value in attrs.items():
            if value is not None:
                _set_attr(node.attr[key], kinds.get(key, "string"), value)
        return self._outputs(node, schema)

    def _outputs(self, node, schema):
        defaults = {attr.name: attr.default_value for attr in schema.attr if attr.HasField("default_value")}
        attr = lambda name: node.attr[name] if name in node.attr else defaults.get(name)
        outputs = []
        for argument in schema.output_arg:
            if argument.type_list_attr:
                types = list(attr(argument.type_list_attr).list.type)
            else:
                one = attr(argument.type_attr).type if argument.type_attr else argument.type
                types = [one] * (attr(argument.number_attr).i if argument.number_attr else 1)
            for index, dtype in enumerate(types):
                tensor = f"{node.name}:{len(outputs)}"
                self._types[tensor] = (dtype, f"{node.name}:{argument.name}:{index}")
                outputs.append(tensor)
        return outputs[0] if len(outputs) == 1 else outputs or node.name

    def const(self, value, dtype=None, name=None, **more):
        """A constant."""
        value = np.asarray(value) if dtype is None else tf.as_dtype(dtype).as_numpy_dtype(value) if np.isscalar(value) else value
        if dtype is None and isinstance(value, np.ndarray):
            value = value.astype({"float64": "float32", "int64": "int32"}.get(value.dtype.name, value.dtype))
        proto = tf.make_tensor_proto(value, dtype=dtype)
        tensor = self.add("Const", name=name, dtype=proto.dtype, **more)
        self.proto.node[-1].attr["value"].tensor.CopyFrom(proto)
        return tensor

    def placeholder(self, dtype="float", name="x", **more):
        """A placeholder."""
        return self.add("Placeholder", name=name, dtype=dtype, **more)

    def take(self, graph):
        """Takes over what a tf.Graph holds."""
        self.proto.CopyFrom(graph.as_graph_def())
        for op in graph.get_operations():
            for tensor in op.outputs:
                self._types[tensor.name] = (tensor.dtype.as_datatype_enum, tensor.name)

    def function(self, name, arguments, body, results=(), stateful=False):
        """Defines a function. `arguments` maps names to types, `body` gets a Graph and their tensors and returns its
        results; with `results`, it returns tensors with those names."""
        inner = Graph()
        for argument, dtype in arguments.items():
            inner._types[argument] = (_type(dtype), argument)
        given = body(inner, *arguments)
        given = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
        definition = function_pb2.FunctionDef()
        definition.signature.name = name
        definition.signature.is_stateful = stateful
        for argument, dtype in arguments.items():
            definition.signature.input_arg.add(name=argument, type=_type(dtype))
        for index, tensor in enumerate(given):
            result = results[index] if results else f"r{index}"
            definition.signature.output_arg.add(name=result, type=inner.type_of(tensor))
            definition.ret[result] = inner._types[tensor][1]
        for node in inner.proto.node:
            copy = definition.node_def.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(inner._reference(one) for one in node.input)
        for other in inner.proto.library.function:
            self.proto.library.function.add().CopyFrom(other)
        self.proto.library.function.add().CopyFrom(definition)
        return name

    def _reference(self, tensor):
        if tensor.startswith("^") or tensor in self._types and ":" not in tensor:
            return tensor
        return self._types[tensor if ":" in tensor else tensor + ":0"][1]


class Case:
    """A graph and what is done with it."""

    def __init__(self, name):
        self.name = name
        self.graph = Graph()
        self.steps = []
        self.files = {}
        self.config = b""

    def _run(self, do, fetches, feeds, targets, **more):
        fetches = [fetches] if isinstance(fetches, str) else list(fetches)
        targets = [targets] if isinstance(targets, str) else list(targets)
        feeds = {tensor: np.asarray(value, tf.as_dtype(self.graph.type_of(tensor)).as_numpy_dtype)
                 for tensor, value in (feeds or {}).items()}  # fmt: skip
        self.steps.append({"do": do, "fetches": fetches, "feeds": feeds, "targets": targets, **more})

    def run(self, fetches=(), feeds=None, targets=(), **more):
        """One step: `fetches` are tensors, `targets` nodes; `timeout` in ms, `session` a number."""
        self._run("run", fetches, feeds, targets, **more)

    def do(self, *targets, **more):
        """One step that fetches nothing."""
        self._run("run", (), None, targets, **more)

    def start(self, key, fetches=(), feeds=None, targets=(), **more):
        """Starts a step in a thread, and goes on a moment later."""
        self._run("start", fetches, feeds, targets, key=key, **more)

    def state(self, key):
        """Records whether the step still waits."""
        self.steps.append({"do": "state", "key": key})

    def finish(self, key):
        """Waits for the step."""
        self.steps.append({"do": "finish", "key": key})

    def other(self, do, **more):
        """close (a session), session (one more), reset (containers)."""
        self.steps.append({"do": do, **more})
