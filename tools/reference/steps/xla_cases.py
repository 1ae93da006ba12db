"""The ops that say an instruction of XLA: dot products, convolutions, folds by functions, sorting, gathering, random bits."""

import numpy as np
from tensorflow.compiler.xla import xla_data_pb2

DOT = xla_data_pb2.DotDimensionNumbers
COUNTED = (np.arange(24) % 7).astype(np.float32)


def _reducer(case, name, op, dtype="float"):
    return case.graph.function(name, {"a": dtype, "b": dtype}, lambda g, a, b: g.add(op, a, b))


def dot_products(case):
    graph = case.graph
    a, b = graph.placeholder("float", "a"), graph.placeholder("float", "b")
    matrices = DOT(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0]).SerializeToString()
    stacks = DOT(
        lhs_batch_dimensions=[0], rhs_batch_dimensions=[1], lhs_contracting_dimensions=[2], rhs_contracting_dimensions=[0]
    ).SerializeToString()
    for dims, shapes in (
        (matrices, ((2, 3), (3, 4))), (stacks, ((2, 3, 4), (4, 2, 1))), (matrices, ((2, 3), (4, 4))),
    ):  # fmt: skip
        x, y = (COUNTED[: np.prod(shape)].reshape(shape) for shape in shapes)
        case.run(graph.add("XlaDot", a, b, dimension_numbers=dims, precision_config=""), {a: x, b: y})
    i, j = graph.placeholder("int8", "i"), graph.placeholder("int8", "j")
    wide = graph.add("XlaDotV2", i, j, dimension_numbers=matrices, precision_config="", preferred_element_type="int32")
    case.run(wide, {i: np.full((2, 3), 100, np.int8), j: np.full((3, 2), -100, np.int8)})
    case.run(graph.add("XlaEinsum", a, b, equation="ab,bc->ca"), {a: COUNTED[:6].reshape(2, 3), b: COUNTED[:12].reshape(3, 4)})


def convolutions(case):
    graph = case.graph
    numbers = xla_data_pb2.ConvolutionDimensionNumbers(
        input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2], kernel_spatial_dimensions=[0, 1],
        kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, output_batch_dimension=0,
        output_feature_dimension=3, output_spatial_dimensions=[1, 2],
    ).SerializeToString()  # fmt: skip
    x, k = graph.placeholder("float", "x"), graph.placeholder("float", "k")
    strides, padding, lhs, rhs, groups = (graph.placeholder("int32", name) for name in ("strides", "padding", "lhs", "rhs", "groups"))
    attrs = {"dimension_numbers": numbers, "precision_config": ""}
    first = graph.add("XlaConv", x, k, strides, padding, lhs, rhs, groups, **attrs)
    second = graph.add("XlaConvV2", x, k, strides, padding, lhs, rhs, groups, preferred_element_type="float", **attrs)
    image = np.tile(COUNTED, 4)[:72].reshape(1, 6, 6, 2)
    for window in (([1, 1], [[0, 0], [1, 1]], [1, 1], [1, 1], 1), ([2, 1], [[1, 0], [-1, 2]], [2, 1], [1, 2], 1), ([1, 1], [[0, 0], [0, 0]], [1, 1], [1, 1], 2)):
        kernel = COUNTED[:24].reshape(2, 3, 2 // window[4], -1)
        feeds = dict(zip((strides, padding, lhs, rhs, groups), window)) | {x: image, k: kernel}
        case.run(first, feeds)
        case.run(second, feeds)


def folds(case):
    graph = case.graph
    _reducer(case, "added", "AddV2")
    _reducer(case, "largest", "Maximum")
    both = {"a": "float", "b": "float", "c": "float", "d": "float"}
    graph.function("added_and_largest", both, lambda g, a, b, c, d: [g.add("AddV2", a, c), g.add("Maximum", b, d)])
    x, init = graph.placeholder("float", "x"), graph.placeholder("float", "init")
    value = COUNTED.reshape(2, 3, 4)
    for reducer in ("added", "largest"):
        for axes in ([0], [0, 2], [], [2, 1, 0]):
            case.run(graph.add("XlaReduce", x, init, dimensions_to_reduce=axes, reducer=reducer), {x: value, init: 1.0})
    case.run(graph.add("XlaReduce", x, init, dimensions_to_reduce=[0], reducer="added"), {x: np.zeros((0, 2)), init: 1.0})
    for op in ("XlaVariadicReduce", "XlaVariadicReduceV2"):
        y = graph.add(op, [x, x], [init, init], dimensions_to_reduce=[1], reducer="added_and_largest")
        case.run(y, {x: value, init: 0.5})


def refused(case):
    graph = case.graph
    _reducer(case, "added", "AddV2")
    _reducer(case, "less", "Less")
    x, y, init = (graph.placeholder("float", name) for name in ("x", "y", "init"))
    beyond = DOT(lhs_contracting_dimensions=[5], rhs_contracting_dimensions=[0]).SerializeToString()
    value = COUNTED.reshape(2, 3, 4)
    case.run(graph.add("XlaReduce", x, init, dimensions_to_reduce=[0], reducer="less"), {x: value, init: 1.0})
    case.run(graph.add("XlaReduce", x, init, dimensions_to_reduce=[3], reducer="added"), {x: value, init: 1.0})
    case.run(graph.add("XlaDot", x, y, dimension_numbers=beyond, precision_config=""), {x: [[1.0]], y: [[1.0]]})
    case.run(graph.add("XlaDot", x, y, dimension_numbers=b"\xff", precision_config=""), {x: [[1.0]], y: [[1.0]]})


def windows(case):
    graph = case.graph
    _reducer(case, "added", "AddV2")
    _reducer(case, "at_least", "GreaterEqual")
    x, source, init = (graph.placeholder("float", name) for name in ("x", "source", "init"))
    sizes, strides, base, dilations, padding = (
        graph.placeholder("int32", name) for name in ("sizes", "strides", "base", "dilations", "padding")
    )
    y = graph.add("XlaReduceWindow", x, init, sizes, strides, base, dilations, padding, computation="added")
    for window in (([2, 2], [1, 1], [1, 1], [1, 1], [[0, 0], [0, 0]]), ([2, 3], [2, 1], [2, 1], [1, 2], [[1, 0], [2, 1]])):
        case.run(y, dict(zip((sizes, strides, base, dilations, padding), window)) | {x: COUNTED.reshape(4, 6), init: 0.0})
    z = graph.add("XlaSelectAndScatter", x, sizes, strides, padding, source, init, select="at_least", scatter="added")
    feeds = {x: COUNTED.reshape(4, 6), sizes: [2, 2], strides: [2, 2], padding: [[0, 0], [0, 0]], init: 0.5}
    case.run(z, feeds | {source: COUNTED[:6].reshape(2, 3)})


def sorting(case):
    graph = case.graph
    _reducer(case, "greater", "Greater")
    by_second = {"a": "float", "b": "float", "c": "int32", "d": "int32"}
    graph.function("by_second", by_second, lambda g, a, b, c, d: g.add("Less", c, d))
    x, i, axis = graph.placeholder("float", "x"), graph.placeholder("int32", "i"), graph.placeholder("int32", "axis")
    value = COUNTED.reshape(3, 8)
    case.run(graph.add("XlaSort", x), {x: value})
    case.run(graph.add("XlaSort", x), {x: [3.0, float("nan"), -1.0, float("inf"), float("-inf")]})
    case.run(graph.add("XlaSort", x), {x: 1.0})
    y = graph.add("XlaKeyValueSort", x, i)
    case.run(y, {x: value, i: np.arange(24).reshape(3, 8)})
    z = graph.add("XlaVariadicSort", [x], axis, comparator="greater", is_stable=True)
    for dimension in (0, 1, -1, 2):
        case.run(z, {x: value, axis: dimension})
    w = graph.add("XlaVariadicSort", [x, i], axis, comparator="by_second", is_stable=True)
    case.run(w, {x: value, i: np.arange(24).reshape(3, 8) * 5 % 7, axis: 1})


def movement(case):
    graph = case.graph
    x, y, zero = (graph.placeholder("float", name) for name in ("x", "y", "zero"))
    start, size, low, high, inner = (graph.placeholder("int32", name) for name in ("start", "size", "low", "high", "inner"))
    value = COUNTED[:12].reshape(3, 4)
    for at, extents in (([0, 0], [2, 2]), ([2, 3], [2, 2]), ([-5, 1], [1, 4]), ([0], [2, 2]), ([0, 0], [4, 1])):
        case.run(graph.add("XlaDynamicSlice", x, start, size), {x: value, start: at, size: extents})
    for at in ([0, 0], [2, 3], [-1, 1]):
        case.run(graph.add("XlaDynamicUpdateSlice", x, y, start), {x: value, y: [[9.0, 9.0]], start: at})
    pad = graph.add("XlaPad", x, zero, low, high, inner)
    for config in (([1, 0], [0, 2], [0, 1]), ([-1, 0], [0, -2], [2, 0]), ([0], [0], [0]), ([0, 0], [0, 0], [-1, 0]), ([-2, 0], [-2, 0], [0, 0])):
        case.run(pad, dict(zip((low, high, inner), config)) | {x: value, zero: -1.0})
    helper = graph.add("XlaBroadcastHelper", x, y, size)
    for operand, dims in (([1.0, 2.0, 3.0], [0]), ([1.0, 2.0, 3.0], [1]), (2.0, []), ([1.0, 2.0, 3.0], []), ([1.0, 2.0, 3.0], [2])):
        case.run(helper, {x: operand, y: value, size: dims})
    barrier = graph.add("XlaOptimizationBarrier", [x, start])
    case.run(barrier, {x: value, start: [1, 2]})
    case.run(graph.add("XlaSharding", x), {x: value})
    case.run(graph.add("XlaReducePrecision", x, exponent_bits=5, mantissa_bits=2), {x: [1.3, 70000.0, -1e-9, float("nan")]})


def places(case):
    graph = case.graph
    _reducer(case, "added", "AddV2")
    _reducer(case, "largest", "Maximum")
    gathered = xla_data_pb2.GatherDimensionNumbers(offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1)
    corner = xla_data_pb2.GatherDimensionNumbers(offset_dims=[0, 2], start_index_map=[1, 0], index_vector_dim=0)
    scattered = xla_data_pb2.ScatterDimensionNumbers(
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1
    )
    x, updates = graph.placeholder("float", "x"), graph.placeholder("float", "updates")
    at, sizes = graph.placeholder("int32", "at"), graph.placeholder("int32", "sizes")
    value = COUNTED[:12].reshape(3, 4)
    for numbers, indices, extents in (
        (gathered, [[2], [0], [7], [-3]], [1, 4]), (corner, [[3, 1], [0, 1]], [2, 2]), (gathered, [[2]], [2, 4]),
        (gathered, [[2]], [1]), (gathered, np.zeros((0, 1)), [1, 4]),
    ):  # fmt: skip
        y = graph.add("XlaGather", x, at, sizes, dimension_numbers=numbers.SerializeToString(), indices_are_sorted=False)
        case.run(y, {x: value, at: indices, sizes: extents})
    for function in ("added", "largest"):
        y = graph.add(
            "XlaScatter", x, at, updates, update_computation=function, dimension_numbers=scattered.SerializeToString(),
            indices_are_sorted=False,
        )  # fmt: skip
        for indices in ([[2], [0]], [[1], [1]], [[9], [0]]):
            case.run(y, {x: value, at: indices, updates: COUNTED[:8].reshape(2, 4)})


def choices(case):
    graph = case.graph
    graph.function("minus", {"a": "float"}, lambda g, a: g.add("Neg", a))
    graph.function("squared", {"a": "float"}, lambda g, a: g.add("Square", a))
    p, x = graph.placeholder("bool", "p"), graph.placeholder()
    chosen = graph.add("XlaIf", p, [x], Tout=["float"], then_branch="minus", else_branch="squared")
    for value in (True, False):
        case.run(chosen, {p: value, x: 3.0})


def loops(case):
    graph = case.graph
    state = {"i": "int32", "a": "float"}
    graph.function("below", state, lambda g, i, a: g.add("Less", i, g.const(4)))
    graph.function("next", state, lambda g, i, a: [g.add("AddV2", i, g.const(1)), g.add("Mul", a, g.const(2.0))])
    i, x = graph.placeholder("int32", "i"), graph.placeholder()
    case.run(graph.add("XlaWhile", [i, x], cond="below", body="next"), {i: 1, x: [1.0, 1.5]})


def launches(case):
    graph = case.graph
    graph.function("minus", {"a": "float"}, lambda g, a: g.add("Neg", a))
    graph.function("squared", {"a": "float"}, lambda g, a: g.add("Square", a))
    x = graph.placeholder()
    case.run(graph.add("XlaLaunch", [], [x], [], Tresults=["float"], function="squared"), {x: [3.0, 4.0]})
    case.run(graph.add("XlaLaunchV2", [x], Tresults=["float"], constants=[], resources=[], function="minus"), {x: [3.0, 4.0]})


def _random(case, dtype, states, shapes):
    graph = case.graph
    algorithm, state, shape = graph.placeholder("int32", "algorithm"), graph.placeholder("uint64", "state"), graph.placeholder("int32", "shape")
    y = graph.add("XlaRngBitGenerator", algorithm, state, shape, dtype=dtype)
    for number, words in states:
        for dims in shapes:
            case.run(y, {algorithm: number, state: np.array(words, np.uint64), shape: dims})


PHILOX = [(1, [1, 2]), (1, [1, 2, 3]), (3, [1, 2]), (1, [2**40 + 5, 2**64 - 1])]
THREEFRY = [(2, [1, 2]), (2, [2**40 + 5, 2**33 + 2])]


def random_philox(case):
    _random(case, "uint32", PHILOX, ([2, 3], [5], [], [0], [4, 4]))


def random_threefry(case):
    _random(case, "uint32", THREEFRY, ([2, 3], [5], [], [0], [4, 4], [3, 5], [3, 3], [1], [1, 2, 3]))


def random_long_words(case):
    _random(case, "uint64", PHILOX[:2] + THREEFRY, ([2, 3], [5], [], [3, 5]))


def random_bytes(case):
    _random(case, "uint8", PHILOX[1:2] + THREEFRY[:1], ([2, 3], [7]))


CASES = [dot_products, convolutions, folds, refused, windows, sorting, movement, places, choices, loops, launches, random_philox, random_threefry, random_long_words, random_bytes]
