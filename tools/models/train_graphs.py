"""Training GraphDefs: a small convolutional classifier with Adam or momentum steps, as the v1 optimizers write them.

Feeds x:0 [n,8,8,1] float and y:0 [n] int32; fetch loss:0; targets `init`, `train`, `save/control_dependency`
and `save/restore_all` with the file prefix fed to save/Const:0.
"""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

OPTIMIZERS = {
    "adam": lambda: v1.train.AdamOptimizer(3e-3),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: v1.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
}
# (folder name, optimizer, resource variables)
GRAPHS = [
    ("train_adam", "adam", True),
    ("train_adam_reference", "adam", False),
    ("train_momentum", "momentum", True),
    ("train_momentum_reference", "momentum", False),
    ("train_nesterov", "nesterov", True),
]


def build(optimizer, use_resource):
    """Returns (graph, saver) of one training graph."""

    def variable(name, shape):
        initializer = v1.glorot_uniform_initializer(seed=5) if len(shape) > 1 else v1.zeros_initializer()
        return v1.get_variable(name, shape, initializer=initializer, use_resource=use_resource)

    def convolution(x, name, n_in, n_out):
        y = tf.nn.conv2d(x, variable(name + "/w", [3, 3, n_in, n_out]), 1, "SAME")
        return tf.nn.relu(tf.nn.bias_add(y, variable(name + "/b", [n_out])))

    def dense(x, name, n_in, n_out):
        return tf.nn.bias_add(tf.matmul(x, variable(name + "/w", [n_in, n_out])), variable(name + "/b", [n_out]))

    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 8, 8, 1], "x")
        y = v1.placeholder(tf.int32, [None], "y")
        hidden = tf.nn.max_pool2d(convolution(x, "conv1", 1, 8), 2, 2, "VALID")
        hidden = tf.reshape(convolution(hidden, "conv2", 8, 8), [-1, 4 * 4 * 8])
        hidden = tf.nn.relu(dense(hidden, "hidden", 4 * 4 * 8, 32))
        logits = tf.identity(dense(hidden, "logits", 32, 4), "scores")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses)
        tf.identity(loss, "loss")
        OPTIMIZERS[optimizer]().minimize(loss, name="train")
        v1.global_variables_initializer()
        return graph, v1.train.Saver()


def batches(n_steps, batch=32):
    """Images of four kinds of stripes with noise, and their kinds: something that can be learned."""
    random = np.random.RandomState(0)
    row, column = np.mgrid[0:8, 0:8]
    patterns = np.stack([row % 2, column % 2, (row + column) % 2, (row // 2 + column // 2) % 2]).astype("float32")
    for _ in range(n_steps):
        kinds = random.randint(0, 4, batch).astype("int32")
        images = patterns[kinds] + random.randn(batch, 8, 8).astype("float32") * 0.7
        yield images[..., None].astype("float32"), kinds
