#!/usr/bin/env python3
"""Makes, with the reference, the models and expected outputs that the whole-model comparisons read.

    python make_models.py OUTPUT [--all] [NAME...]

NAMEs are those of MODELS in keras_models, application_models and sequence_models, `flow`, `train` and `basic_pitch`. By
default all but the networks of keras.applications, of which two are made; --all makes every one (2 GB, ten minutes); those whose
rounding is beyond what whole_models.py allows are known to be densenet121, mobilenet_v3_small and nasnet_mobile.

OUTPUT/NAME/ then holds for a model: saved_model/, frozen.pb (variables turned into constants), saved_model.expect
and frozen.expect (inputs and the reference's outputs for batch 1 and 8), exact.expect (the same outputs computed in
double precision); for a training: graph.pb, initial.* and final.* (checkpoints), train.expect (100 steps with the loss
of each). `--basic-pitch FOLDER` names the unpacked SavedModel of tools/demo, for which only saved_model.expect and
exact.expect are written. OUTPUT/ops.tsv counts the ops of each graph.
The .expect format is described in expect_file.py.
"""

import argparse
import collections
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.protobuf import saved_model_pb2  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

import application_models  # noqa: E402
import double_precision  # noqa: E402
import expect_file  # noqa: E402
import flow_graphs  # noqa: E402
import keras_models  # noqa: E402
import melody  # noqa: E402
import sequence_models  # noqa: E402
import train_graphs  # noqa: E402

v1 = tf.compat.v1
BATCHES = (1, 8)
SMALL_BATCHES = (1, 2)
ZOO = application_models.MODELS | sequence_models.MODELS
ONLY_WITH_ALL = set(application_models.APPLICATIONS) - {"convnext_tiny", "densenet121", "efficientnet_b0", "nasnet_mobile"}
STEPS = 100
OP_COUNTS = {}


def count_ops(name, graph_def):
    """Remembers how often each op occurs in the graph and its functions."""
    counts = collections.Counter(node.op for node in graph_def.node)
    for function in graph_def.library.function:
        counts.update(node.op for node in function.node_def)
    for function in graph_def.library.function:
        counts.pop(function.signature.name, None)
    OP_COUNTS[name] = counts


def read_saved_model(folder):
    """Returns the only MetaGraphDef in a SavedModel."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((pathlib.Path(folder) / "saved_model.pb").read_bytes())
    return saved.meta_graphs[0]


def saved_model_cases(folder, input_sets):
    """Runs serving_default as TF_LoadSessionFromSavedModel would: import, restore, then feed and fetch by name."""
    meta_graph = read_saved_model(folder)
    signature = meta_graph.signature_def["serving_default"]
    names = {key: info.name for key, info in signature.inputs.items()}
    outputs = [info.name for _, info in sorted(signature.outputs.items())]
    saver = meta_graph.saver_def
    restore = ([saver.restore_op_name], {saver.filename_tensor_name: str(folder / "variables" / "variables")})
    return session_cases(meta_graph.graph_def, names, outputs, input_sets, restore)


def session_cases(graph_def, names, outputs, input_sets, first_run=None):
    """Runs a graph on each input set; `names` maps input names to tensor names."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with v1.Session(graph=graph) as session:
        if first_run:
            session.run(*first_run)
        cases = []
        for inputs in input_sets:
            feeds = {names[key]: value for key, value in inputs.items()}
            cases.append((feeds, dict(zip(outputs, session.run(outputs, feeds)))))
        return cases


def make_saved_model(name, model, serve, folder, input_sets):
    """Writes a Keras model as a SavedModel with its expected outputs."""
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", serve)
    archive.write_out(str(folder / "saved_model"), verbose=False)
    count_ops(f"{name}/saved_model", read_saved_model(folder / "saved_model").graph_def)
    expect_file.write(folder / "saved_model.expect", saved_model_cases(folder / "saved_model", input_sets))


def make_model(name, folder):
    """Writes the SavedModel and the frozen graph of one Keras model with their expected outputs."""
    model, make_inputs = (keras_models.MODELS | ZOO)[name]()
    random = np.random.RandomState(1)
    small = name in ZOO and name not in application_models.APPLICATIONS
    input_sets = [make_inputs(batch, random) for batch in (SMALL_BATCHES if small else BATCHES)]
    single = list(input_sets[0]) == ["x"]

    specs = {
        key: tf.TensorSpec([None, *value.shape[1:]], value.dtype, name=key) for key, value in input_sets[0].items()
    }

    @tf.function
    def serve(**inputs):
        result = model(inputs["x"] if single else inputs, training=False)
        return result if isinstance(result, dict) else {"y": result}

    concrete = serve.get_concrete_function(**specs)
    if name not in ZOO:
        make_saved_model(name, model, serve, folder, input_sets)
    elif name in sequence_models.MODULES:
        tf.saved_model.save(model, str(folder / "saved_model"), signatures=concrete)
        expect_file.write(folder / "saved_model.expect", saved_model_cases(folder / "saved_model", input_sets))
        if name in sequence_models.LOOPS:
            return  # the reference does not freeze variables that are read in the body of a While

    frozen = convert_variables_to_constants_v2(concrete)
    graph_def = frozen.graph.as_graph_def()
    count_ops(f"{name}/frozen", graph_def)
    (folder / "frozen.pb").write_bytes(graph_def.SerializeToString())
    names = {tensor.name.split(":")[0]: tensor.name for tensor in frozen.inputs}
    outputs = [tensor.name for tensor in frozen.outputs]
    expect_file.write(folder / "frozen.expect", session_cases(graph_def, names, outputs, input_sets))
    try:
        exact = double_precision.outputs(graph_def, names.get, outputs, input_sets)
    except (ValueError, tf.errors.OpError) as error:  # an op without double precision: equal within rounding, then
        print(f"  not in double precision: {str(error)[:150]}", flush=True)
    else:
        expect_file.write(folder / "exact.expect", exact)


def make_training(optimizer, use_resource, name, folder):
    """Writes one training graph, its first and last checkpoint and the losses between them."""
    graph, saver = train_graphs.build(optimizer, use_resource)
    graph_def = graph.as_graph_def()
    count_ops(name, graph_def)
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString())
    cases = []
    with v1.Session(graph=graph) as session:
        session.run("init")
        saver.save(session, str(folder / "initial"), write_meta_graph=False)
        for images, kinds in train_graphs.batches(STEPS):
            feeds = {"x:0": images, "y:0": kinds}
            loss, _ = session.run(["loss:0", "train"], feeds)
            cases.append((feeds, {"loss:0": loss}))
        saver.save(session, str(folder / "final"), write_meta_graph=False)
    expect_file.write(folder / "train.expect", cases)
    print(f"  losses {cases[0][1]['loss:0']:.4f} .. {cases[-1][1]['loss:0']:.4f}", flush=True)


def make_basic_pitch(model_folder, folder):
    """Writes expected outputs of the downloaded basic-pitch model: seeded noise with a tone in it, the demo's tune."""
    random = np.random.RandomState(1)
    input_sets = []
    for batch in (1, 3):
        time_axis = np.arange(43844) / 22050.0
        audio = random.randn(batch, 43844) * 0.02 + 0.3 * np.sin(2 * np.pi * 261.63 * time_axis)
        input_sets.append({"input_2": audio[..., None].astype("float32")})
    input_sets.append({"input_2": melody.windows()})
    meta_graph = read_saved_model(model_folder)
    count_ops("basic_pitch/saved_model", meta_graph.graph_def)
    expect_file.write(folder / "saved_model.expect", saved_model_cases(model_folder, input_sets))
    signature = meta_graph.signature_def["serving_default"]
    outputs = [info.name for _, info in sorted(signature.outputs.items())]
    frozen = double_precision.freeze(model_folder, meta_graph)
    exact = double_precision.outputs(frozen, lambda key: signature.inputs[key].name, outputs, input_sets)
    expect_file.write(folder / "exact.expect", exact)


def write_op_counts(path):
    """Adds the counts of this run to ops.tsv: graph, op, number of nodes."""
    old = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    rows = [row for row in old if row[0] not in OP_COUNTS]
    rows += [[name, op, str(count)] for name, counts in OP_COUNTS.items() for op, count in counts.items()]
    path.write_text("".join("\t".join(row) + "\n" for row in sorted(rows)))


def main():
    """Makes what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--basic-pitch", metavar="FOLDER", type=pathlib.Path)
    options = parser.parse_args()
    jobs = [(name, lambda folder, name=name: make_model(name, folder)) for name in [*keras_models.MODELS, *ZOO]]
    for name, optimizer, use_resource in train_graphs.GRAPHS:
        jobs.append((name, lambda folder, a=optimizer, b=use_resource, c=name: make_training(a, b, c, folder)))
    for name in flow_graphs.GRAPHS:
        jobs.append((name, lambda folder, name=name: count_ops(name, flow_graphs.make(name, folder, expect_file))))
    jobs.append(("flow_estimator", lambda folder: count_ops("flow_estimator", flow_graphs.make_estimator(folder, expect_file))))
    if options.basic_pitch:
        jobs.append(("basic_pitch", lambda folder: make_basic_pitch(options.basic_pitch, folder)))
    for name, job in jobs:
        group = next((group for group in ("train", "flow") if name.startswith(group + "_")), name)
        if options.names and name not in options.names and group not in options.names:
            continue
        if not options.names and not options.all and name in ONLY_WITH_ALL:
            continue
        start = time.time()
        tf.keras.utils.set_random_seed(7)
        folder = options.output / name
        folder.mkdir(parents=True, exist_ok=True)
        job(folder)
        print(f"{name}: {time.time() - start:.1f} s", flush=True)
    write_op_counts(options.output / "ops.tsv")


if __name__ == "__main__":
    main()
