"""A graph in double precision: what the single-precision outputs of both libraries are measured against.

Rounding differs between two correct libraries, and deep or ill-conditioned models amplify it, so a difference between
them does not say who is at fault. The same graph with every float turned into a double, run by the reference without
its rewrites, is exact by comparison: it says how far each of them is off.

Only inference graphs without functions and variables: `freeze` makes them of a SavedModel.
"""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.grappler import tf_optimizer

v1 = tf.compat.v1
FLOAT, DOUBLE = types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE
# Ops whose result is single whatever they are given; their rounding stays.
FLOAT_RESULT = ("ResizeBilinear", "ResizeBicubic")


def freeze(folder, meta_graph):
    """The graph of a SavedModel's serving_default, with constants for variables and bodies for calls."""
    signature, saver = meta_graph.signature_def["serving_default"], meta_graph.saver_def
    outputs = [info.name for info in signature.outputs.values()]
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(meta_graph.graph_def, name="")
    with v1.Session(graph=graph) as session:
        session.run([saver.restore_op_name], {saver.filename_tensor_name: str(folder / "variables" / "variables")})
        kept = [name.split(":")[0] for name in outputs]
        frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), kept)
    for function in frozen.library.function:
        function.attr.pop("_noinline", None)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(frozen, name="")
    inlined = v1.train.export_meta_graph(graph_def=frozen, graph=graph)
    inlined.collection_def["train_op"].node_list.value.extend(outputs)
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    config.graph_options.rewrite_options.optimizers.append("function")
    return tf_optimizer.OptimizeGraph(config, inlined)


def converted(graph_def):
    """The graph with double for float everywhere."""
    result = v1.GraphDef()
    result.versions.CopyFrom(graph_def.versions)
    for node in graph_def.node:
        if node.op.startswith("FusedBatchNorm"):
            _add_batch_norm(result, node)
            continue
        added = result.node.add()
        added.CopyFrom(node)
        if node.op in FLOAT_RESULT:
            added.name = node.name + "/float"
            cast = result.node.add(name=node.name, op="Cast", input=[added.name])
            cast.attr["SrcT"].type, cast.attr["DstT"].type = FLOAT, DOUBLE
        for value in added.attr.values():
            if value.type == FLOAT:
                value.type = DOUBLE
            if value.tensor.dtype == FLOAT:
                value.tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(value.tensor).astype("float64")))
            if FLOAT in value.list.type:
                value.list.type[:] = [DOUBLE if dtype == FLOAT else dtype for dtype in value.list.type]
    return result


def _add_batch_norm(graph_def, node):
    """The first output of a batch normalization, which has no kernel for doubles, in simpler ops."""
    if node.attr["is_training"].b or node.attr["data_format"].s not in (b"", b"NHWC"):
        raise ValueError(f"{node.name}: only inference with channels last can be made double")

    def add(name, op, *inputs):
        added = graph_def.node.add(name=name, op=op, input=inputs)
        added.attr["T"].type = DOUBLE
        return name

    x, scale, offset, mean, variance = [name for name in node.input if not name.startswith("^")]
    part = node.name + "/exact/"
    epsilon = graph_def.node.add(name=part + "epsilon", op="Const")
    epsilon.attr["dtype"].type = DOUBLE
    epsilon.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float64(np.float32(node.attr["epsilon"].f))))
    sum = add(part + "sum", "AddV2", variance, epsilon.name)
    factor = add(part + "factor", "Mul", add(part + "rsqrt", "Rsqrt", sum), scale)
    scaled = add(part + "scaled", "Mul", add(part + "centred", "Sub", x, mean), factor)
    add(node.name, "AddV2", scaled, offset)


def outputs(graph_def, input_name, output_names, input_sets):
    """Runs a float graph in double precision; `input_name` maps a key of an input set to a tensor's name."""
    with tf.Graph().as_default():
        tf.import_graph_def(converted(graph_def), name="")
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        cases = []
        with v1.Session(config=config) as session:
            for inputs in input_sets:
                feeds = {input_name(key): _widened(value) for key, value in inputs.items()}
                cases.append(({}, dict(zip(output_names, session.run(output_names, feeds)))))
        return cases


def _widened(array):
    return array.astype("float64") if array.dtype == np.float32 else array
