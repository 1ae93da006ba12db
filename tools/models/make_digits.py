#!/usr/bin/env python3
"""Makes, with the reference, the digits classifier of examples-c/digits:  python make_digits.py DIGITS_CSV_GZ [FOLDER]

DIGITS_CSV_GZ is the file of 1,797 handwritten digits of 8x8 pixels that the PyPI package scikit-learn ships
(sklearn/datasets/data/digits.csv.gz). Writes digits_saved_model/ (3,000 weights, signature serving_default: image
[?,8,8] from 0 to 1 to probabilities [?,10] and digit [?]) and digits.txt: 32 digits that it was not trained with, a line
each: the digit, then 64 pixels from 0 to 16.
"""

import gzip
import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402

EXAMPLES = 32


def main():
    """Trains and writes."""
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2] / "examples-c/data")
    rows = np.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",", dtype="int64")
    np.random.RandomState(7).shuffle(rows)
    pixels, digits = rows[:, :64].reshape(-1, 8, 8), rows[:, 64]
    images, last = (pixels / 16).astype("float32"), len(rows) - 297
    keras.utils.set_random_seed(7)
    x = inputs = keras.Input((8, 8))
    x = layers.Reshape((8, 8, 1))(x)
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Dense(24, activation="relu")(layers.Flatten()(x))
    model = keras.Model(inputs, layers.Dense(10, "softmax")(x))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(images[:last], digits[:last], batch_size=50, epochs=15, verbose=0)
    print("accuracy on new digits:", model.evaluate(images[last:], digits[last:], verbose=0)[1], model.count_params())

    @tf.function
    def serve(image):
        probabilities = model(image, training=False)
        return {"probabilities": probabilities, "digit": tf.argmax(probabilities, axis=1, output_type=tf.int32)}

    concrete = serve.get_concrete_function(tf.TensorSpec([None, 8, 8], tf.float32, name="image"))
    shutil.rmtree(folder / "digits_saved_model", ignore_errors=True)
    module = tf.Module()  # rather than the model: its own functions and optimizer state would be most of the files
    module.weights = [variable.value for variable in model.variables]
    tf.saved_model.save(module, str(folder / "digits_saved_model"), signatures=concrete)
    with open(folder / "digits.txt", "w") as file:
        for row in rows[last:last + EXAMPLES]:
            file.write(" ".join(str(number) for number in [row[64], *row[:64]]) + "\n")


if __name__ == "__main__":
    main()
