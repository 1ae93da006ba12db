"""The Keras models that the library is compared on: random, seeded weights, a dynamic batch dimension.

Each function returns (model, make_inputs); `make_inputs(batch, random)` gives a dict of input name to array.
"""

import keras
import numpy as np
from keras import layers


def image_inputs(shape):
    """Makes batches of random images of this shape."""
    return lambda batch, random: {"x": random.rand(batch, *shape).astype("float32")}


def calibrated(model, image_shape, images=2):
    """Sets batch norms so that activations are of order 1; a random network otherwise fades to a constant.

    `images` are what they are measured on: many where the last layers have few places, or new images grow beyond order 1.
    """
    random = np.random.RandomState(4)
    norms = [layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)]
    for norm in norms:
        channels = norm.moving_mean.shape[0]
        if norm.scale:
            norm.gamma.assign(random.uniform(0.5, 1.5, channels))
        if norm.center:
            norm.beta.assign(random.randn(channels) * 0.3)
        norm.momentum = 0.0
    model(np.random.RandomState(5).rand(images, *image_shape).astype("float32"), training=True)
    for norm in norms:
        norm.momentum = 0.99
    return model


def mlp():
    """784-128-64-10 perceptron."""
    stack = [keras.Input((784,), name="x"), layers.Dense(128, "relu"), layers.Dense(64, "tanh")]
    return keras.Sequential(stack + [layers.Dense(10, "softmax")]), image_inputs((784,))


def small_cnn():
    """Convolutions with SAME and VALID padding, strides, max and average pooling on 28x28 images."""
    shape = (28, 28, 1)
    model = keras.Sequential([
        keras.Input(shape, name="x"),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, strides=2, padding="valid", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.AveragePooling2D(2),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, "softmax"),
    ])
    return calibrated(model, shape), image_inputs(shape)


def mobilenet_v2():
    """MobileNetV2 at 224x224 as Keras ships it."""
    shape = (224, 224, 3)
    return calibrated(keras.applications.MobileNetV2(weights=None), shape), image_inputs(shape)


def resnet50():
    """ResNet50 at 224x224 as Keras ships it."""
    shape = (224, 224, 3)
    return calibrated(keras.applications.ResNet50(weights=None), shape), image_inputs(shape)


def bert_encoder(n_layers=2, width=128, heads=4, vocabulary=500, length=32):
    """Transformer encoder in BERT's arrangement: three embeddings, post-norm blocks with GELU, a mask."""
    ids = keras.Input((length,), dtype="int32", name="input_ids")
    mask = keras.Input((length,), dtype="int32", name="input_mask")
    types = keras.Input((length,), dtype="int32", name="token_type_ids")
    position = layers.Embedding(length, width)(keras.ops.arange(length))
    x = layers.Embedding(vocabulary, width)(ids) + layers.Embedding(2, width)(types) + position
    x = layers.LayerNormalization(epsilon=1e-12)(x)
    visible = keras.ops.cast(keras.ops.expand_dims(mask, 1), "bool")
    for _ in range(n_layers):
        attention = layers.MultiHeadAttention(heads, width // heads)
        x = layers.LayerNormalization(epsilon=1e-12)(x + attention(x, x, attention_mask=visible))
        hidden = layers.Dense(4 * width, activation=keras.activations.gelu)(x)
        x = layers.LayerNormalization(epsilon=1e-12)(x + layers.Dense(width)(hidden))
    model = keras.Model({"input_ids": ids, "input_mask": mask, "token_type_ids": types}, x)

    def make_inputs(batch, random):
        visible_length = random.randint(length // 2, length + 1, (batch, 1))
        return {
            "input_ids": random.randint(0, vocabulary, (batch, length)).astype("int32"),
            "input_mask": (np.arange(length)[None, :] < visible_length).astype("int32"),
            "token_type_ids": (np.arange(length)[None, :] >= length // 2).astype("int32").repeat(batch, 0),
        }

    return model, make_inputs


MODELS = {
    "mlp": mlp,
    "small_cnn": small_cnn,
    "bert_encoder": bert_encoder,
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
}
