"""Graphs of control flow and state as TensorFlow's Python front ends write them, v1 and v2, with inputs to run them on.

GRAPHS maps a name to a function that adds a graph to the default one and returns (inputs, outputs, input sets): a list of
placeholders, a list of tensors, and values for the placeholders. Running a graph twice gives the same: whatever state it
has is set in each run.
"""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def _floats(*shape, seed=1):
    return np.random.RandomState(seed).randn(*shape).astype("float32")


def _control_flow(new):
    """Chooses between functional control flow and v1's."""
    (v1.enable_control_flow_v2 if new else v1.disable_control_flow_v2)()


def counter():
    """10,000 turns."""
    n = v1.placeholder(tf.int32, [], "n")
    i, total = tf.while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + 0.5), [0, 0.0])
    return [n], [i, total], [[10000], [0], [7]]


def fibonacci():
    """Variables that change places; a value that stays."""
    n = v1.placeholder(tf.int32, [], "n")
    step = v1.placeholder(tf.int64, [], "step")
    loop = tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b * step), [0, tf.constant(0, tf.int64), step])
    return [n, step], list(loop), [[30, 1], [1, 2], [0, 3]]


def nested():
    """A loop in a loop, each with its own parallel turns."""
    n = v1.placeholder(tf.int32, [], "n")

    def outer(i, total):
        _, inner = tf.while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t + i * j), [0, total], parallel_iterations=3)
        return i + 1, inner

    loop = tf.while_loop(lambda i, _: i < n, outer, [0, 0], parallel_iterations=1)
    return [n], list(loop), [[9], [1], [0]]


def growing():
    """A variable whose shape changes from turn to turn."""
    x = v1.placeholder(tf.float32, [None, 2], "x")
    shape = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    loop = tf.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, tf.concat([y, y * 2.0], 0)), [0, x], shape)
    return [x], list(loop), [[_floats(1, 2)], [_floats(3, 2)]]


def conditional():
    """A conditional with a branch that gives constants, and one within it."""
    p = v1.placeholder(tf.bool, [], "p")
    x = v1.placeholder(tf.float32, [None], "x")
    inner = lambda: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: -x)
    y, z = tf.cond(p, lambda: (inner(), tf.size(x)), lambda: (tf.zeros_like(x) + 3.0, tf.constant(-1)))
    return [p, x], [y + 1.0, z], [[True, _floats(3)], [False, _floats(2)], [True, -np.ones(2, "float32")]]


def conditional_in_loop():
    """Collatz: a conditional in each turn."""
    n = v1.placeholder(tf.int64, [], "n")
    body = lambda x, i: (tf.cond(tf.equal(x % 2, 0), lambda: x // 2, lambda: 3 * x + 1), i + 1)
    loop = tf.while_loop(lambda x, _: x > 1, body, [n, 0])
    return [n], list(loop), [[27], [1], [8]]


def loop_in_conditional():
    """A loop that is only there when its branch is taken."""
    p = v1.placeholder(tf.bool, [], "p")
    x = v1.placeholder(tf.float32, [2], "x")
    loop = lambda: tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y * x), [0, x])[1]
    y = tf.cond(p, loop, lambda: x - 1.0)
    return [p, x], [y], [[True, _floats(2)], [False, _floats(2)]]


def loop_gradient():
    """The gradient of a loop with a conditional in it."""
    x = v1.placeholder(tf.float32, [3], "x")

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(y) * x, lambda: y + x * x)

    _, y = tf.while_loop(lambda i, _: i < 6, body, [0, x])
    return [x], [y, tf.gradients(y, x)[0]], [[_floats(3)], [_floats(3, seed=2)]]


def nested_gradient():
    """The gradient of a loop in a loop."""
    x = v1.placeholder(tf.float32, [2], "x")

    def outer(i, y):
        _, z = tf.while_loop(lambda j, _: j <= i, lambda j, z: (j + 1, z * tf.cos(x)), [0, y])
        return i + 1, z + y

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, x])
    return [x], [y, tf.gradients(y, x)[0]], [[_floats(2)], [_floats(2, seed=2)]]


def conditional_gradient():
    """The gradient of a conditional."""
    p = v1.placeholder(tf.bool, [], "p")
    x = v1.placeholder(tf.float32, [4], "x")
    y = tf.cond(p, lambda: tf.exp(x) * 2.0, lambda: tf.square(x))
    return [p, x], [y, tf.gradients(y, x)[0]], [[True, _floats(4)], [False, _floats(4)]]


def recurrent():
    """A recurrent network over sequences of different lengths, and its gradient."""
    x = v1.placeholder(tf.float32, [None, 5, 3], "x")
    lengths = v1.placeholder(tf.int32, [None], "lengths")
    weights = tf.constant(_floats(7, 4, seed=3) * 0.5)

    def body(t, state, outputs):
        new = tf.tanh(tf.matmul(tf.concat([x[:, t], state], 1), weights))
        new = tf.where(tf.expand_dims(t < lengths, 1), new, state)
        return t + 1, new, outputs.write(t, new)

    outputs = tf.TensorArray(tf.float32, 5, element_shape=[None, 4])
    zeros = tf.zeros([tf.shape(x)[0], 4])
    _, state, outputs = tf.while_loop(lambda t, *_: t < 5, body, [0, zeros, outputs])
    y = outputs.stack()
    sets = [[_floats(2, 5, 3), np.array([5, 2], "int32")], [_floats(1, 5, 3), np.array([0], "int32")]]
    return [x, lengths], [y, state, tf.gradients(tf.reduce_sum(y * y), x)[0]], sets


def array():
    """A TensorArray that is scattered, changed, gathered and concatenated."""
    x = v1.placeholder(tf.float32, [4, 2], "x")
    first = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    second = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
    loop = tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a.write(3 - i, first.read(i) * 2.0)), [0, second])
    return [x], [loop[1].gather([0, 3]), loop[1].concat(), loop[1].size()], [[_floats(4, 2)]]


def mapped():
    """map_fn, foldl and scan."""
    x = v1.placeholder(tf.float32, [None, 3], "x")
    outputs = [tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)]
    outputs.append(tf.foldl(lambda a, row: a * 0.5 + row, x))
    outputs.append(tf.scan(lambda a, row: a + row, x))
    return [x], outputs, [[_floats(4, 3)], [_floats(1, 3)]]


def switch_case():
    """One of several branches, and the default for indices beyond them."""
    i = v1.placeholder(tf.int32, [], "i")
    x = v1.placeholder(tf.float32, [], "x")
    y = tf.switch_case(i, [lambda: x, lambda: x * x, lambda: -x], default=lambda: x + 100.0)
    return [i, x], [y], [[0, 2.0], [1, 3.0], [2, 4.0], [7, 5.0], [-1, 6.0]]


def called():
    """Functions that call functions, with state passed by resource."""
    x = v1.placeholder(tf.float32, [None], "x")
    variable = v1.get_variable("called_v", initializer=2.0, use_resource=True)

    @tf.function(autograph=False)
    def inner(a):
        return a * variable.read_value()

    @tf.function(autograph=False)
    def outer(a):
        variable.assign_add(1.0)
        return inner(inner(a))

    with tf.control_dependencies([variable.assign(2.0)]):
        y = outer(tf.identity(x))
    return [x], [y], [[_floats(3)], [_floats(1)]]


def autograph():
    """Python's own control flow, traced into functions."""
    n = v1.placeholder(tf.int32, [], "n")

    @tf.function
    def primes(limit):
        count, i = 0, 2
        while i < limit:
            j, prime = 2, True
            while j * j <= i and prime:
                if i % j == 0:
                    prime = False
                j += 1
            if prime:
                count += 1
            i += 1
        return count

    return [n], [primes(n)], [[50], [2]]


def reference_variables():
    """Variables by reference in a conditional (RefSwitch) and in a loop."""
    p = v1.placeholder(tf.bool, [], "p")
    variable = v1.get_variable("ref_v", initializer=tf.ones([2]), use_resource=False)
    with tf.control_dependencies([variable.initializer]):
        changed = tf.cond(p, lambda: v1.assign_add(variable, [1.0, 2.0]), lambda: v1.assign_sub(variable, [3.0, 3.0]))
    with tf.control_dependencies([changed]):
        body = lambda i: (v1.assign_add(variable, [0.5, 0.5]) * 0.0)[0] + i + 1.0
        i = tf.while_loop(lambda i: i < 3.0, body, [0.0], parallel_iterations=1)[0]
    with tf.control_dependencies([i]):
        return [p], [variable.read_value(), tf.identity(i)], [[True], [False]]


def queued():
    """What is put into queues comes out: in order, by priority, padded."""
    x = v1.placeholder(tf.float32, [3, 2], "x")
    priorities = v1.placeholder(tf.int64, [3], "priorities")
    fifo = v1.FIFOQueue(10, [tf.float32], [[2]])
    priority = v1.PriorityQueue(10, [tf.float32], [[2]])
    padded = v1.PaddingFIFOQueue(10, [tf.float32], [[None]])
    with tf.control_dependencies([fifo.enqueue_many(x), priority.enqueue_many([priorities, x])]):
        outputs = [fifo.dequeue_many(3), priority.dequeue_many(3)[1]]
    with tf.control_dependencies([padded.enqueue(x[0]), padded.enqueue(x[0, :1])]):
        outputs.append(tf.reduce_sum(padded.dequeue_many(2)))
    return [x, priorities], outputs, [[_floats(3, 2), np.array([3, 1, 2])]]


def queue_in_loop():
    """A loop whose turns wait for each other through a queue."""
    n = v1.placeholder(tf.int32, [], "n")
    queue = v1.FIFOQueue(1, [tf.int32], [[]])

    def body(i, total):
        with tf.control_dependencies([queue.enqueue(i * i)]):
            return i + 1, total + queue.dequeue()

    return [n], list(tf.while_loop(lambda i, _: i < n, body, [0, 0], parallel_iterations=1)), [[20], [0]]


def looked_up():
    """Tables of numbers, initialised in the run."""
    x = v1.placeholder(tf.int64, [None], "x")
    keys, values = tf.constant([1, 2, 30], tf.int64), tf.constant([10, 20, -3], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    dense = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.5)
    with tf.control_dependencies([v1.tables_initializer(), dense.insert(keys, [0.1, 0.2, 0.3])]):
        return [x], [table.lookup(x), dense.lookup(x), table.size()], [[np.array([2, 30, 5])], [np.array([], "int64")]]


def list_gradient():
    """The gradient of a functional loop that writes a TensorList."""
    x = v1.placeholder(tf.float32, [4, 3], "x")
    y = tf.scan(lambda a, row: tf.tanh(a + row), x)
    return [x], [y, tf.gradients(y, x)[0]], [[_floats(4, 3)]]


BOTH = [
    counter, fibonacci, nested, growing, conditional, conditional_in_loop, loop_in_conditional, loop_gradient,
    nested_gradient, conditional_gradient, recurrent, array, mapped, switch_case, queue_in_loop, list_gradient,
]  # fmt: skip
ONE = [called, autograph, reference_variables, queued, looked_up]


def _with(build, new):
    def made():
        _control_flow(new)
        return build()

    return made


GRAPHS = {f"flow_v1_{build.__name__}": _with(build, False) for build in [*BOTH, *ONE]}
GRAPHS |= {f"flow_v2_{build.__name__}": _with(build, True) for build in BOTH}


def make(name, folder, expect_file):
    """Writes frozen.pb, which is the graph as it is, and frozen.expect; returns the GraphDef."""
    graph = tf.Graph()
    with graph.as_default():
        inputs, outputs, input_sets = GRAPHS[name]()
        names = [tensor.name for tensor in outputs]
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        cases = []
        with v1.Session(graph=graph, config=config) as session:
            for values in input_sets:
                arrays = [np.asarray(value, tensor.dtype.as_numpy_dtype) for tensor, value in zip(inputs, values)]
                feeds = {tensor.name: array for tensor, array in zip(inputs, arrays)}
                cases.append((feeds, dict(zip(names, session.run(names, feeds)))))
    graph_def = graph.as_graph_def()
    (folder / "frozen.pb").write_bytes(graph_def.SerializeToString())
    expect_file.write(folder / "frozen.expect", cases)
    return graph_def


def make_estimator(folder, expect_file):
    """Writes a SavedModel as estimators export them: variables by reference, a vocabulary file, an init op."""
    graph = tf.Graph()
    _control_flow(False)
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("10\n20\n30\n")
    with graph.as_default():
        x = v1.placeholder(tf.int64, [None], "x")
        asset = str(vocabulary)
        initializer = tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=2)
        ids = table.lookup(tf.strings.as_string(x))
        embedding = v1.get_variable("embedding", initializer=_floats(5, 4), use_resource=False)
        rows = tf.nn.embedding_lookup(embedding, ids)
        _, scores = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.nn.relu(y) - 0.1), [0, rows])
        with v1.Session(graph=graph) as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            v1.saved_model.simple_save(
                session, str(folder / "saved_model"), {"x": x}, {"scores": scores, "ids": ids},
                legacy_init_op=v1.tables_initializer(),
            )  # fmt: skip
            cases = []
            for values in ([10, 30, 7], [20]):
                feeds = {x.name: np.array(values, "int64")}
                names = [scores.name, ids.name]
                cases.append((feeds, dict(zip(names, session.run(names, feeds)))))
    expect_file.write(folder / "saved_model.expect", cases)
    return graph.as_graph_def()
