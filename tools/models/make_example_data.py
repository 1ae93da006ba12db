#!/usr/bin/env python3
"""Makes, with the reference, the small committed files in examples-c/data:  python make_example_data.py [FOLDER]

patterns_saved_model/, patterns.pb (frozen) and patterns_labels.txt: a MobileNet-style network of 17,000 weights that
tells what is on a 32x32 RGB image: stripes across, stripes down, checkers, a disc, or noise. train_adam.pb: the training
graph of train_graphs.py with Adam steps.
"""

import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

import train_graphs  # noqa: E402

SIDE = 32
LABELS = ["stripes across", "stripes down", "checkers", "disc", "noise"]


def make_images(count, seed):
    """Returns (images in 0..1, index into LABELS): two random colours mixed by a pattern, and noise."""
    random = np.random.RandomState(seed)
    row, column = np.mgrid[0:SIDE, 0:SIDE]
    images, kinds = np.empty((count, SIDE, SIDE, 3), "float32"), random.randint(0, len(LABELS), count)
    for image, kind in zip(images, kinds):
        width, phase = random.randint(2, 6), random.randint(0, 8)
        center, radius = random.randint(10, 22, 2), random.randint(5, 11)
        mask = [
            (row + phase) // width % 2,
            (column + phase) // width % 2,
            ((row + phase) // width + (column + phase) // width) % 2,
            (row - center[0]) ** 2 + (column - center[1]) ** 2 < radius**2,
            random.rand(SIDE, SIDE),
        ][kind].astype("float32")
        colours = random.rand(2, 3)
        colours[1] = 1 - colours[0] if np.abs(colours[0] - colours[1]).sum() < 0.7 else colours[1]
        image[:] = colours[0] * mask[..., None] + colours[1] * (1 - mask[..., None])
    images += random.randn(*images.shape).astype("float32") * 0.05
    return np.clip(images, 0, 1), kinds


def inverted_residual(x, expansion, filters, stride):
    """MobileNetV2's block: 1x1 expansion, depthwise 3x3, linear 1x1 projection, shortcut where shapes agree."""
    y = x
    for layer in (layers.Conv2D(expansion, 1, use_bias=False),
                  layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)):
        y = layers.ReLU(6.0)(layers.BatchNormalization(momentum=0.9)(layer(y)))
    y = layers.BatchNormalization(momentum=0.9)(layers.Conv2D(filters, 1, use_bias=False)(y))
    return layers.Add()([x, y]) if stride == 1 and x.shape[-1] == filters else y


def make_patterns(folder):
    """Trains and writes the pattern classifier."""
    x = inputs = keras.Input((SIDE, SIDE, 3), name="image")
    x = layers.Conv2D(8, 3, 2, padding="same", use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization(momentum=0.9)(x))
    for expansion, filters, stride in ((24, 12, 2), (48, 24, 1), (96, 24, 1)):
        x = inverted_residual(x, expansion, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(len(LABELS), "softmax")(x))
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(*make_images(3000, 1), batch_size=50, epochs=12, verbose=0)
    print("accuracy on new images:", model.evaluate(*make_images(500, 2), verbose=0)[1], model.count_params(), "weights")

    @tf.function
    def serve(image):
        return {"probabilities": tf.identity(model(image, training=False), name="probabilities")}

    concrete = serve.get_concrete_function(tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="image"))
    shutil.rmtree(folder / "patterns_saved_model", ignore_errors=True)
    module = tf.Module()  # rather than the model: its own functions and optimizer state would be most of the files
    module.weights = [variable.value for variable in model.variables]
    tf.saved_model.save(module, str(folder / "patterns_saved_model"), signatures=concrete)
    frozen = convert_variables_to_constants_v2(concrete)
    print("frozen:", [t.name for t in frozen.inputs], [t.name for t in frozen.outputs])
    (folder / "patterns.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    (folder / "patterns_labels.txt").write_text("".join(label + "\n" for label in LABELS))


def main():
    """Writes everything into the folder of the command line, or examples-c/data."""
    default = pathlib.Path(__file__).resolve().parents[2] / "examples-c" / "data"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    tf.keras.utils.set_random_seed(3)
    make_patterns(folder)
    graph, _ = train_graphs.build("adam", use_resource=True)
    (folder / "train_adam.pb").write_bytes(graph.as_graph_def().SerializeToString())


if __name__ == "__main__":
    main()
