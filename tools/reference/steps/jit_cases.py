"""What is asked to be compiled: functions of `tf.function(jit_compile=True)`, and the scopes of the first version."""

import numpy as np
import tensorflow as tf


def _trace(case, build):
    """Makes the case's graph of what `build` adds, and gives what it returns: tensors and ops as their names."""
    with tf.Graph().as_default() as graph:
        made = build()
    case.graph.take(graph)
    return tf.nest.map_structure(lambda one: one.name, made)


def _input(dtype, shape, name):
    return tf.compat.v1.placeholder(dtype, shape, name)


def _mlp(x, labels, weights):
    hidden = tf.nn.relu(tf.matmul(x, weights[0]) + weights[1])
    logits = tf.matmul(hidden, weights[2]) + weights[3]
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _weights():
    steps = lambda *shape: (np.arange(np.prod(shape)).reshape(shape) % 7 / 10 - 0.3).astype(np.float32)
    return [tf.Variable(value) for value in (steps(6, 8), steps(8), steps(8, 4), steps(4))]


def training(case):
    def build():
        weights = _weights()

        @tf.function(jit_compile=True)
        def step(x, labels):
            with tf.GradientTape() as tape:
                loss = _mlp(x, labels, weights)
            for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                weight.assign_sub(0.5 * gradient)
            return loss

        x, labels = _input(tf.float32, [None, 6], "x"), _input(tf.int32, [None], "labels")
        return step(x, labels), [weight.initializer for weight in weights], [weight.read_value() for weight in weights]

    loss, initializers, values = _trace(case, build)
    case.do(*initializers)
    for turn in range(6):
        rows = 5 if turn < 4 else 3
        feeds = {"x:0": np.sin(np.arange(rows * 6).reshape(rows, 6) + turn), "labels:0": np.arange(rows) % 4}
        case.run(loss, feeds)
    case.run(values)


def optimizers(case):
    def build():
        weight, slot, other = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([0.0, 0.0, 0.0]), tf.Variable([0.0, 0.0, 0.0])

        @tf.function(jit_compile=True)
        def step(x):
            gradient = tf.sin(x) * weight
            raw = tf.raw_ops.ResourceApplyAdam(
                var=weight.handle, m=slot.handle, v=other.handle, beta1_power=0.9, beta2_power=0.99, lr=0.1, beta1=0.9,
                beta2=0.99, epsilon=1e-7, grad=gradient,
            )  # fmt: skip
            with tf.control_dependencies([raw]):
                return tf.exp(weight.read_value()) + gradient

        return step(_input(tf.float32, [3], "x")), [one.initializer for one in (weight, slot, other)]

    value, initializers = _trace(case, build)
    case.do(*initializers)
    for turn in range(3):
        case.run(value, {"x:0": [1.0, 2.0, turn]})


def read_after_write(case):
    def build():
        v = tf.Variable([1.0, 2.0])

        @tf.function(jit_compile=True)
        def step(x):
            before = v * 2.0
            v.assign_add(x)
            middle = v * 3.0
            v.assign(middle - x)
            return before, middle, v + 1.0

        return step(_input(tf.float32, [2], "x")), v.initializer

    values, initializer = _trace(case, build)
    case.run(values, {"x:0": [1.0, 1.0]})
    case.do(initializer)
    case.run(values, {"x:0": [1.0, 1.0]})
    case.run(values, {"x:0": [0.5, -1.0]})


def loops(case):
    def build():
        v = tf.Variable(1.0)

        @tf.function(jit_compile=True)
        def pure(x, n):
            return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y) * 2.0 + x), [0, x])[1]

        @tf.function(jit_compile=True)
        def stateful(x):
            for _ in tf.range(4):
                v.assign(v * tf.reduce_sum(x))
                x = x * 1.5
            return x + v

        x, n = _input(tf.float32, [3], "x"), _input(tf.int32, [], "n")
        return pure(x, n), stateful(x), v.initializer

    pure, stateful, initializer = _trace(case, build)
    for turns in (0, 1, 5):
        case.run(pure, {"x:0": [0.5, -1.0, 2.0], "n:0": turns})
    case.do(initializer)
    case.run(stateful, {"x:0": [0.5, 1.0, -1.0]})
    case.run(stateful, {"x:0": [0.5, 1.0, 0.25]})


def conditionals(case):
    def build():
        v = tf.Variable(1.0)

        @tf.function(jit_compile=True)
        def choose(p, x):
            return tf.cond(p, lambda: tf.exp(x) + 1.0, lambda: tf.sin(x) * x)

        @tf.function(jit_compile=True)
        def update(p, x):
            if p:
                v.assign_add(tf.reduce_sum(x))
            else:
                v.assign(v * 2.0)
            return v + x

        @tf.function(jit_compile=True)
        def switch(i, x):
            return tf.switch_case(i, [lambda: tf.exp(x), lambda: -x, lambda: tf.cos(x) + x])

        p, i, x = _input(tf.bool, [], "p"), _input(tf.int32, [], "i"), _input(tf.float32, [2], "x")
        return choose(p, x), update(p, x), switch(i, x), v.initializer

    chosen, updated, switched, initializer = _trace(case, build)
    case.do(initializer)
    for p in (True, False):
        case.run(chosen, {"p:0": p, "x:0": [1.0, -0.5]})
        case.run(updated, {"p:0": p, "x:0": [1.0, -0.5]})
    for i in (0, 1, 2, 9):
        case.run(switched, {"i:0": i, "x:0": [1.0, -0.5]})


def nested(case):
    def build():
        @tf.function(jit_compile=True)
        def inner(x):
            return tf.tanh(x) + x

        @tf.function
        def middle(x):
            return inner(x) * inner(x + 1.0)

        @tf.function(jit_compile=True)
        def outer(x):
            return middle(tf.exp(x)) - inner(x)

        x = _input(tf.float32, [None], "x")
        return outer(x), middle(x)

    values = _trace(case, build)
    case.run(values, {"x:0": [1.0, -2.0, 0.0]})
    case.run(values, {"x:0": []})


def gradients_through(case):
    def build():
        @tf.function(jit_compile=True)
        def squash(x):
            return tf.sigmoid(x) * tf.exp(-x * x)

        x = _input(tf.float32, [None], "x")
        return tf.gradients(squash(x), x)

    values = _trace(case, build)
    case.run(values, {"x:0": [1.0, -2.0, 0.0]})


def shapes_by_values(case):
    def build():
        compiled = tf.function(jit_compile=True)

        def where(x):
            return tf.where(x > 1.0)

        def masked(x):
            return tf.boolean_mask(x, x > 1.0) * 2.0

        def unique(x):
            return tf.unique(x)[0] + 1.0

        def counted(x):
            return tf.range(tf.cast(tf.reduce_sum(x), tf.int32)) * 2

        def reshaped(x, dims):
            return tf.reshape(x, dims) + 1.0

        x, dims = _input(tf.float32, [None], "x"), _input(tf.int32, [2], "dims")
        return [compiled(one)(x) for one in (where, masked, unique, counted)], compiled(reshaped)(x, dims)

    values, reshaped = _trace(case, build)
    for x in ([1.0, 2.0, 2.0, 5.0], [0.0, 1.0], []):
        for value in values:
            case.run(value, {"x:0": x})
    case.run(reshaped, {"x:0": [1.0, 2.0, 3.0, 4.0], "dims:0": [2, 2]})
    case.run(reshaped, {"x:0": [1.0, 2.0, 3.0, 4.0], "dims:0": [4, -1]})
    case.run(reshaped, {"x:0": [1.0, 2.0, 3.0, 4.0], "dims:0": [3, 2]})


def shapes_of_shapes(case):
    def build():
        @tf.function(jit_compile=True)
        def flat(x):
            shape = tf.shape(x)
            return tf.reshape(tf.exp(x), [shape[0] * shape[1], -1]) + tf.cast(shape[2], tf.float32)

        return flat(_input(tf.float32, [None, None, None], "x"))

    value = _trace(case, build)
    for dims in ((2, 3, 4), (1, 5, 2), (3, 3, 1)):
        case.run(value, {"x:0": np.arange(np.prod(dims)).reshape(dims) / 10})


def checks_are_dropped(case):
    def build():
        @tf.function(jit_compile=True)
        def checked(x):
            tf.debugging.assert_positive(x)
            tf.debugging.Assert(tf.reduce_all(x > 0.0), [x])
            return tf.debugging.check_numerics(tf.math.log(x), "logarithm")

        return checked(_input(tf.float32, [2], "x"))

    value = _trace(case, build)
    case.run(value, {"x:0": [1.0, 2.0]})
    case.run(value, {"x:0": [1.0, -2.0]})


def random_numbers(case):
    def build():
        @tf.function(jit_compile=True)
        def drawn(x):
            noise = tf.random.stateless_uniform([3], [1, 2]) + tf.random.stateless_normal([3], [3, 4])
            return tf.shape(tf.random.uniform([3, 2]) + 1.0), noise * x

        return drawn(_input(tf.float32, [3], "x"))

    shape, _ = _trace(case, build)
    case.run(shape, {"x:0": [1.0, 2.0, 3.0]})


def tensor_arrays(case):
    def build():
        @tf.function(jit_compile=True)
        def rows(x):
            array = tf.TensorArray(tf.float32, size=4)
            for i in tf.range(4):
                array = array.write(i, tf.reduce_sum(x) * tf.cast(i, tf.float32) + x)
            return array.stack()

        return rows(_input(tf.float32, [2], "x"))

    case.run(_trace(case, build), {"x:0": [1.0, 2.0]})


def texts_are_refused(case):
    def build():
        compiled = tf.function(jit_compile=True)
        text, x, p = _input(tf.string, [], "text"), _input(tf.float32, [], "x"), _input(tf.bool, [], "p")

        def lower(text):
            return tf.strings.lower(text)

        def unread(text, x):
            return x + 1.0

        def printed(x):
            return tf.strings.to_number(tf.strings.as_string(x))

        def within(p, x):
            return tf.cond(p, lambda: tf.strings.to_number(tf.strings.as_string(x)), lambda: x)

        return compiled(lower)(text), compiled(unread)(text, x), compiled(printed)(x), compiled(within)(p, x)

    lowered, unread, printed, within = _trace(case, build)
    case.run(lowered, {"text:0": b"Abc"})
    case.run(unread, {"text:0": b"Abc", "x:0": 1.0})
    case.run(printed, {"x:0": 1.0})
    for p in (True, False):
        case.run(within, {"p:0": p, "x:0": 1.0})


def a_refused_call_that_nobody_takes(case):
    def build():
        @tf.function(jit_compile=True)
        def printed(x):
            return tf.strings.to_number(tf.strings.as_string(x))

        @tf.function
        def outer(p, x):
            return tf.cond(p, lambda: printed(x), lambda: x)

        return outer(_input(tf.bool, [], "p"), _input(tf.float32, [], "x"))

    value = _trace(case, build)
    case.run(value, {"p:0": False, "x:0": 1.0})
    case.run(value, {"p:0": True, "x:0": 1.0})


def constant_texts(case):
    def build():
        @tf.function(jit_compile=True)
        def length(x):
            return x + tf.cast(tf.strings.length(tf.constant(["abc"])), tf.float32)

        return length(_input(tf.float32, [1], "x"))

    case.run(_trace(case, build), {"x:0": [1.0]})


def by_attribute(case):
    """Which attribute counts where, and what is refused because of it."""
    graph = case.graph
    for wanted in (None, True, False):
        name = graph.function(f"said_{wanted}", {"a": "float"}, lambda g, a: g.add("StringToNumber", g.add("AsString", a), out_type="float"))
        if wanted is not None:
            graph.proto.library.function[-1].attr["_XlaMustCompile"].b = wanted
        x = graph.placeholder("float", f"x_{wanted}")
        for call in ("PartitionedCall", "StatefulPartitionedCall", name):
            for asked in (None, True, False):
                if call == name:
                    node = graph.proto.node.add(name=f"{call}_{asked}", op=name)
                    node.input.append(x[:-2])
                    y = f"{node.name}:0"
                    graph._types[y] = (1, y)
                else:
                    y = graph.add(call, [x], Tout=["float"], f=name)
                if asked is not None:
                    graph.proto.node[-1].attr["_XlaMustCompile"].b = asked
                case.run(y, {x: 1.5})


def scopes(case):
    def build():
        x = _input(tf.float32, [None, 3], "x")
        with tf.xla.experimental.jit_scope():
            a = tf.exp(x) * 2.0
            with tf.xla.experimental.jit_scope(compile_ops=False):
                b = tf.sin(a)
            c = tf.matmul(b, tf.transpose(a)) + 1.0
        with tf.xla.experimental.jit_scope(separate_compiled_gradients=True):
            d = tf.reduce_sum(tf.tanh(c), axis=1)
        with tf.xla.experimental.jit_scope():
            e = tf.strings.to_number(tf.strings.as_string(d)) + 1.0
        return a, c, d, e, tf.gradients(d, x)[0]

    values = _trace(case, build)
    for rows in (2, 4):
        feeds = {"x:0": np.cos(np.arange(rows * 3)).reshape(rows, 3)}
        case.run(values, feeds)
        for value in values:
            case.run(value, feeds)


def scopes_around_control_flow(case):
    def build():
        tf.compat.v1.disable_control_flow_v2()
        x, p = _input(tf.float32, [3], "x"), _input(tf.bool, [], "p")
        with tf.xla.experimental.jit_scope():
            chosen = tf.compat.v1.cond(p, lambda: tf.exp(x) + 1.0, lambda: tf.sin(x) * x)
            turned = tf.compat.v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y) + x), [0, x])[1]
        tf.compat.v1.enable_control_flow_v2()
        return chosen, turned

    values = _trace(case, build)
    for p in (True, False):
        case.run(values, {"x:0": [1.0, 2.0, 3.0], "p:0": p})


CASES = [
    training, optimizers, read_after_write, loops, conditionals, nested, gradients_through, shapes_by_values, shapes_of_shapes,
    checks_are_dropped, random_numbers, tensor_arrays, texts_are_refused, a_refused_call_that_nobody_takes, constant_texts,
    by_attribute, scopes, scopes_around_control_flow,
]  # fmt: skip
