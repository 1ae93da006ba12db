#!/usr/bin/env python3
"""Makes, with the reference, the frozen graphs whose speed tools/bench.py --graphs measures.

    python bench_graphs.py OUTPUT [NAME...]

OUTPUT/NAME.pb is a graph, OUTPUT/NAME.expect the inputs of one run and the names of its outputs (their values are left
out: whether results are right is what make_models.py is for). Names end in the number of elements or the batch. All
weights are random; batch normalizations are calibrated.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

import expect_file  # noqa: E402
import keras_models  # noqa: E402

ROW = 128


def elementwise(x):
    """The chain of the table: three transcendental functions and what combines them."""
    return tf.tanh(x * 0.7 + 0.1) * tf.sigmoid(x) + tf.exp(-x * x)


def softmax(x):
    """A row-wise softmax of attention scores with a bias and a mask."""
    random = np.random.RandomState(2)
    mask = np.where(random.rand(ROW) < 0.2, -1e4, 0.0).astype("float32")
    return tf.nn.softmax(x + random.randn(ROW).astype("float32") + mask)


def layer_norm(x):
    """Layer normalization of rows, with scale and offset."""
    random = np.random.RandomState(2)
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    scale, offset = random.rand(2, ROW).astype("float32")
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-6)


def gelu(x):
    """GELU through the error function."""
    return x * 0.5 * (1.0 + tf.math.erf(x * np.float32(0.5**0.5)))


def _expression(function, elements):
    shape = [elements // ROW, ROW] if function in (softmax, layer_norm) else [elements]
    value = np.random.RandomState(1).randn(*shape).astype("float32")
    return function, {"x": value}


def _model(make, batch):
    model, make_inputs = make()
    inputs = make_inputs(batch, np.random.RandomState(1))
    single = list(inputs) == ["x"]
    return (lambda **named: model(named["x"] if single else named, training=False)), inputs


def lstm():
    """An LSTM of 256 units over 128 steps."""
    model = keras.Sequential([keras.Input((128, 256), name="x"), layers.LSTM(256, return_sequences=True)])
    return model, lambda batch, random: {"x": random.randn(batch, 128, 256).astype("float32")}


def conv_lstm():
    """Two ConvLSTM layers of 32 filters and a 3-D convolution."""
    x = frames = keras.Input((10, 64, 64, 1), name="x")
    for _ in range(2):
        x = layers.ConvLSTM2D(32, 3, padding="same", return_sequences=True)(x)
    model = keras.Model(frames, layers.Conv3D(1, 3, padding="same", activation="sigmoid")(x))
    return model, keras_models.image_inputs((10, 64, 64, 1))


def mlp():
    """784-512-512-10 perceptron."""
    stack = [keras.Input((784,), name="x"), layers.Dense(512, "relu"), layers.Dense(512, "relu")]
    return keras.Sequential([*stack, layers.Dense(10, "softmax")]), keras_models.image_inputs((784,))


def bert():
    """BERT-base with a small vocabulary, 128 tokens."""
    return keras_models.bert_encoder(12, 768, 12, 1000, 128)


GRAPHS = {
    f"{function.__name__}_1e{power}": lambda f=function, p=power: _expression(f, 10**p)
    for function in (elementwise, softmax, layer_norm, gelu)
    for power in ((4, 6, 7) if function is elementwise else (6, 7))
} | {
    f"{name}_batch_{batch}": lambda m=make, b=batch: _model(m, b)
    for name, make, batches in (
        ("mlp", mlp, (1, 8)),
        ("lstm", lstm, (1, 8)),
        ("conv_lstm", conv_lstm, (1,)),
        ("mobilenet_v2", keras_models.mobilenet_v2, (1, 8)),
        ("resnet50", keras_models.resnet50, (1, 8)),
        ("bert_base", bert, (1, 8)),
    )
    for batch in batches
}


def write(folder, name):
    """Freezes one graph and writes it with its inputs."""
    tf.keras.utils.set_random_seed(7)
    function, inputs = GRAPHS[name]()
    specs = {key: tf.TensorSpec([None, *value.shape[1:]], value.dtype, name=key) for key, value in inputs.items()}
    concrete = tf.function(lambda **named: tf.identity(function(**named))).get_concrete_function(**specs)
    frozen = convert_variables_to_constants_v2(concrete)
    (folder / f"{name}.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    feeds = {tensor.name: inputs[tensor.name.split(":")[0]] for tensor in frozen.inputs}
    outputs = {tensor.name: np.zeros([0], "float32") for tensor in frozen.outputs}
    expect_file.write(folder / f"{name}.expect", [(feeds, outputs)])
    print(name, flush=True)


def main():
    """Makes what the command line asks for."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or GRAPHS:
        write(folder, name)


if __name__ == "__main__":
    main()
