"""Functions: conditionals, cases, loops, calls, maps, gradients; what does not fit."""

from tensorflow.core.framework import attr_value_pb2


def _unary(case, name, op, dtype="float", **attrs):
    return case.graph.function(name, {"a": dtype}, lambda g, a: g.add(op, a, **attrs))


def conditionals(case):
    graph = case.graph
    _unary(case, "minus", "Neg")
    _unary(case, "squared", "Square")
    x = graph.placeholder()
    for op in ("If", "StatelessIf"):
        for dtype, values in (
            ("bool", (True, False)), ("int32", (0, 3, -1)), ("float", (0.0, 0.5, float("nan"))),
            ("string", (b"", b"no")),
        ):  # fmt: skip
            p = graph.placeholder(dtype, f"{op}_{dtype}")
            y = graph.add(op, p, [x], Tout=["float"], then_branch="minus", else_branch="squared")
            for value in values:
                case.run(y, {p: value, x: 3.0})
            case.run(y, {p: [value], x: 3.0})
            case.run(y, {p: [], x: 3.0})


def conditional_misfits(case):
    graph = case.graph
    _unary(case, "minus", "Neg")
    case.graph.function("two", {"a": "float"}, lambda g, a: [g.add("Neg", a), g.add("Square", a)])
    case.graph.function("whole", {"a": "int32"}, lambda g, a: g.add("Neg", a))
    case.graph.function("as_int", {"a": "float"}, lambda g, a: g.add("Cast", a, DstT="int32"))
    p, x = graph.placeholder("bool", "p"), graph.placeholder()
    for other in ("two", "whole", "as_int", "nowhere"):
        y = graph.add("If", p, [x], Tout=["float"], then_branch="minus", else_branch=other)
        case.run(y, {p: True, x: 1.0})
        case.run(y, {p: False, x: 1.0})


def a_function_that_is_not_there(case):
    graph = case.graph
    x = graph.placeholder()
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["float"], f="nowhere"), {x: 1.0})
    case.run(graph.add("PartitionedCall", [x], Tout=["float"], f="nowhere"), {x: 1.0})
    case.run(graph.add("While", [x], cond="nowhere", body="nowhere"), {x: 1.0})
    case.run(graph.add("Case", graph.const(0), [x], Tout=["float"], branches=["nowhere"]), {x: 1.0})
    case.run(graph.add("SymbolicGradient", [x, x], Tout=["float"], f="nowhere"), {x: 1.0})


def cases(case):
    graph = case.graph
    _unary(case, "minus", "Neg")
    _unary(case, "squared", "Square")
    x, i = graph.placeholder(), graph.placeholder("int32", "i")
    for op in ("Case", "StatelessCase"):
        y = graph.add(op, i, [x], Tout=["float"], branches=["minus", "squared", "minus"])
        for index in (0, 1, 2, 3, -1, 100):
            case.run(y, {i: index, x: 3.0})
        case.run(y, {i: [0], x: 3.0})


def whiles(case):
    graph = case.graph
    arguments = {"i": "int32", "x": "float"}
    below = graph.function("below", arguments, lambda g, i, x: g.add("Less", i, g.const(4)))
    graph.function("next", arguments, lambda g, i, x: [g.add("AddV2", i, g.const(1)), g.add("Mul", x, x)])
    graph.function("one", arguments, lambda g, i, x: g.add("Sub", g.const(3), i))
    graph.function("text", arguments, lambda g, i, x: g.add("AsString", g.add("Less", i, g.const(2))))
    graph.function("vector", arguments, lambda g, i, x: g.const([1, 2]))
    graph.function("empty", arguments, lambda g, i, x: g.const([], "int32"))
    graph.function("grows", arguments, lambda g, i, x: [g.add("AddV2", i, g.const(1)), g.add("ConcatV2", [x, x], g.const(0))])
    graph.function("turned", arguments, lambda g, i, x: [x, i])
    i, x = graph.placeholder("int32", "i"), graph.placeholder()
    for op in ("While", "StatelessWhile"):
        for cond in ("below", "one"):
            y = graph.add(op, [i, x], cond=cond, body="next")
            case.run(y, {i: 1, x: 1.5})
            case.run(y, {i: 4, x: 1.5})
        case.run(graph.add(op, [i, x], cond="vector", body="next"), {i: 1, x: 1.5})
        case.run(graph.add(op, [i, x], cond="empty", body="next"), {i: 1, x: 1.5})
        case.run(graph.add(op, [i, x], cond="below", body="grows"), {i: 2, x: [1.5]})
        case.run(graph.add(op, [i, x], cond="below", body="turned"), {i: 2, x: 1.5})
        case.run(graph.add(op, [i, x], cond="next", body="next"), {i: 2, x: 1.5})
        case.run(graph.add(op, [i, x], cond="below", body="below"), {i: 2, x: 1.5})


def fors(case):
    graph = case.graph
    arguments = {"i": "int32", "a": "float", "b": "float"}
    graph.function("turn", arguments, lambda g, i, a, b: [g.add("AddV2", a, g.add("Cast", i, DstT="float")), g.add("Mul", b, a)])
    first, last, by = (graph.placeholder("int32", name) for name in ("first", "last", "by"))
    y = graph.add("For", first, last, by, [graph.const(1.0), graph.const(2.0)], body="turn")
    for values in ((0, 4, 1), (5, 0, -2), (3, 3, 1), (0, 5, -1), (5, 0, 1), (0, 3, 0)):
        case.run(y, dict(zip((first, last, by), values)))


def calls(case):
    graph = case.graph
    _unary(case, "minus", "Neg")
    graph.function("inner", {"a": "float"}, lambda g, a: g.add("PartitionedCall", [a], Tout=["float"], f="minus"))
    graph.function("fails", {"a": "float"}, lambda g, a: g.add("CheckNumerics", a, message="bad", name="check"))
    graph.function("outer", {"a": "float"}, lambda g, a: g.add("StatefulPartitionedCall", [a], Tout=["float"], f="fails", name="within"))
    x = graph.placeholder()
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["float"], f="inner"), {x: 2.0})
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["float"], f="outer"), {x: float("nan")})
    case.run(graph.add("PartitionedCall", [x], Tout=["float"], f="fails"), {x: float("nan")})
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["int32"], f="minus"), {x: 2.0})
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["float", "float"], f="minus"), {x: 2.0})
    case.run(graph.add("StatefulPartitionedCall", [x, x], Tout=["float"], f="minus"), {x: 2.0})
    case.run(graph.add("StatefulPartitionedCall", [graph.const(1)], Tout=["float"], f="minus"))


def remote_calls(case):
    graph = case.graph
    _unary(case, "minus", "Neg")
    x, target = graph.placeholder(), graph.placeholder("string", "target")
    y = graph.add("RemoteCall", target, [x], Tout=["float"], f="minus")
    for name in (
        b"/job:localhost/replica:0/task:0/device:CPU:0", b"/cpu:0", b"/device:CPU:0", b"", b"/job:other/task:0", b"/gpu:0", b"nonsense",
        b"/job:localhost/replica:0/task:0/device:CPU:1",
    ):  # fmt: skip
        case.run(y, {target: name, x: 2.0})
    case.run(y, {target: [b"/cpu:0"], x: 2.0})


def remote_calls_of_two_devices(case):
    graph = case.graph
    case.config = b"\x0a\x07\x0a\x03CPU\x10\x02"
    _unary(case, "minus", "Neg")
    x, target = graph.placeholder(), graph.placeholder("string", "target")
    y = graph.add("RemoteCall", target, [x], Tout=["float"], f="minus")
    case.run(y, {target: b"/job:localhost/replica:0/task:0/device:CPU:1", x: 2.0})
    across = graph.add("AddV2", graph.add("Neg", x, device="/cpu:1"), graph.add("Square", x, device="/cpu:0"), device="/cpu:1")
    case.run(across, {x: 3.0})
    graph.function("both", {"a": "float"}, lambda g, a: g.add("AddV2", g.add("Neg", a, device="/cpu:1"), g.add("Square", a, device="/cpu:0")))
    case.run(graph.add("StatefulPartitionedCall", [x], Tout=["float"], f="both"), {x: 3.0})
    case.run(graph.add("PartitionedCall", [x], Tout=["float"], f="both", device="/cpu:1"), {x: 3.0})


def _placed(case, device, op="Neg"):
    case.config = b"\x0a\x07\x0a\x03CPU\x10\x02"
    case.run(case.graph.add(op, case.graph.const(1.0), device=device, name="placed"))


def placed_on_number_two(case):
    _placed(case, "/cpu:2")


def placed_on_gpu(case):
    _placed(case, "/gpu:0")


def placed_on_another_job(case):
    _placed(case, "/job:other")


def placed_on_nonsense(case):
    _placed(case, "bad name")


def placed_partially(case):
    _placed(case, "/job:localhost/device:CPU:1")


def placed_on_another_task(case):
    _placed(case, "/task:7/cpu:1")


def together(case):
    graph = case.graph
    case.config = b"\x0a\x07\x0a\x03CPU\x10\x02"
    v = graph.add("VarHandleOp", name="v", shape=[], dtype="float", shared_name="v", device="/cpu:1")
    set = graph.add("AssignVariableOp", v, graph.const(3.0))
    case.do(set)
    case.run(graph.add("ReadVariableOp", v, dtype="float"))
    graph.add("ReadVariableOp", v, dtype="float", device="/cpu:0", name="apart")
    case.run("apart:0")


def together_by_class(case):
    graph = case.graph
    case.config = b"\x0a\x07\x0a\x03CPU\x10\x02"
    a = graph.add("Neg", graph.const(1.0), device="/cpu:0", name="a")
    graph.add("Neg", a, device="/cpu:1", name="b")
    graph.proto.node[-1].attr["_class"].list.s.append(b"loc:@a")
    case.run("b:0")


def together_with_nobody(case):
    graph = case.graph
    graph.add("Neg", graph.const(1.0), name="b")
    graph.proto.node[-1].attr["_class"].list.s.append(b"loc:@nowhere")
    case.run("b:0")


def reference_across_devices(case):
    graph = case.graph
    case.config = b"\x0a\x07\x0a\x03CPU\x10\x02"
    v = graph.add("VariableV2", name="v", shape=[], dtype="float", device="/cpu:1")
    case.do(graph.add("Assign", v, graph.const(3.0)))
    case.run(graph.add("Identity", v, device="/cpu:0"))
    case.run(graph.add("AssignAdd", v, graph.const(1.0), device="/cpu:0", name="far"))


def gradients(case):
    graph = case.graph
    graph.function("product", {"a": "float", "b": "float"}, lambda g, a, b: g.add("Mul", g.add("Square", a), b))
    graph.function("whole", {"a": "int32"}, lambda g, a: g.add("Neg", a))
    graph.function("half", {"a": "float"}, lambda g, a: [g.add("Neg", a), g.const(1.0)])
    x, y, dy = graph.placeholder(), graph.placeholder(name="y"), graph.placeholder(name="dy")
    case.run(graph.add("SymbolicGradient", [x, y, dy], Tout=["float", "float"], f="product"), {x: 3.0, y: 2.0, dy: 10.0})
    case.run(graph.add("SymbolicGradient", [x, y], Tout=["float", "float"], f="product"), {x: 3.0, y: 2.0})
    case.run(graph.add("SymbolicGradient", [x, y, dy], Tout=["float"], f="product"), {x: 3.0, y: 2.0, dy: 10.0})
    case.run(graph.add("SymbolicGradient", [x, y, dy], Tout=["float"], f="half"), {x: 3.0, y: 2.0, dy: 10.0})
    case.run(graph.add("SymbolicGradient", [x, x], Tout=["float"], f="Square"), {x: 3.0})
    i = graph.placeholder("int32", "i")
    case.run(graph.add("SymbolicGradient", [i, i], Tout=["int32"], f="whole"), {i: 3})


def maps(case):
    graph = case.graph
    graph.function("sums", {"a": "float", "b": "float"}, lambda g, a, b: [g.add("AddV2", a, b), g.add("Neg", a)])
    graph.function("uneven", {"a": "int32"}, lambda g, a: g.add("Range", g.const(0), a, g.const(1)))
    graph.function("fails", {"a": "float"}, lambda g, a: g.add("CheckNumerics", a, message="bad", name="check"))
    x, y = graph.placeholder(), graph.placeholder(name="y")
    floats = {"output_types": ["float", "float"], "f": "sums"}
    both = graph.add("MapDefun", [x, y], [], output_shapes=[None, None], **floats)
    case.run(both, {x: [1.0, 2.0, 3.0], y: [10.0, 20.0, 30.0]})
    case.run(both, {x: [[1.0, 2.0]], y: [[10.0, 20.0]]})
    case.run(both, {x: [1.0, 2.0, 3.0], y: [10.0, 20.0]})
    case.run(both, {x: 1.0, y: 2.0})
    case.run(both, {x: [], y: []})
    captured = graph.add("MapDefun", [x], [y], output_shapes=[[], []], max_intra_op_parallelism=2, **floats)
    case.run(captured, {x: [1.0, 2.0, 3.0], y: 10.0})
    case.run(captured, {x: [[1.0, 2.0, 3.0]], y: 10.0})
    i = graph.placeholder("int32", "i")
    ranges = graph.add("MapDefun", [i], [], output_shapes=[None], output_types=["int32"], f="uneven")
    case.run(ranges, {i: [2, 2]})
    case.run(ranges, {i: [2, 3]})
    failing = graph.add("MapDefun", [x], [], output_shapes=[[]], output_types=["float"], f="fails")
    case.run(failing, {x: [1.0, float("nan")]})
    case.run(graph.add("MapDefun", [x], [], output_shapes=[None], output_types=["float"], f="nowhere"), {x: [1.0]})


def recursion(case):
    graph = case.graph
    graph.function("one", {"n": "int32"}, lambda g, n: g.const(1))

    def more(g, n):
        rest = g.add("PartitionedCall", [g.add("Sub", n, g.const(1))], Tout=["int32"], f="factorial")
        return g.add("Mul", n, rest)

    graph.function("more", {"n": "int32"}, more)
    graph.function("factorial", {"n": "int32"}, lambda g, n: g.add(
        "If", g.add("Less", n, g.const(2)), [n], Tout=["int32"], then_branch="one", else_branch="more"))
    n = graph.placeholder("int32", "n")
    y = graph.add("PartitionedCall", [n], Tout=["int32"], f="factorial")
    for value in (0, 5, 10):
        case.run(y, {n: value})


def state_in_functions(case):
    graph = case.graph
    graph.function("up", {"v": "resource"}, lambda g, v: g.add(
        "ReadVariableOp", v, dtype="float", control=[g.add("AssignAddVariableOp", v, g.const(1.0))]), stateful=True)
    v = graph.add("VarHandleOp", name="v", shape=[], dtype="float", shared_name="v")
    y = graph.add("StatefulPartitionedCall", [v], Tout=["float"], f="up")
    case.run(y)
    case.do(graph.add("AssignVariableOp", v, graph.const(3.0)))
    case.run(y)
    case.run(y)
    case.run(graph.add("If", graph.const(True), [v], Tout=["float"], then_branch="up", else_branch="up"))


def waits_in_functions(case):
    graph = case.graph
    take = lambda g, q: g.add("QueueDequeueV2", q, component_types=["float"], name="take")
    graph.function("take", {"q": "resource"}, take, stateful=True)
    graph.function("twice", {"q": "resource"}, lambda g, q: g.add(
        "StatefulPartitionedCall", [q], Tout=["float"], f="take", name="called"), stateful=True)
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float"], shapes=[[]])
    y = graph.add("StatefulPartitionedCall", [queue], Tout=["float"], f="twice", name="outer")
    case.start("waits", y)
    case.state("waits")
    case.do(graph.add("QueueEnqueueV2", queue, [graph.const(2.0)]))
    case.finish("waits")
    case.run(y, timeout=100)
    case.start("again", y)
    case.do(graph.add("QueueCloseV2", queue))
    case.finish("again")


def waits_in_functions_and_closed(case):
    graph = case.graph
    take = lambda g, q: g.add("QueueDequeueV2", q, component_types=["float"], name="take")
    graph.function("take", {"q": "resource"}, take, stateful=True)
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float"], shapes=[[]])
    case.start("waits", graph.add("StatefulPartitionedCall", [queue], Tout=["float"], f="take", name="outer"))
    case.start("branch", graph.add("If", graph.const(True), [queue], Tout=["float"], then_branch="take", else_branch="take"))
    case.other("close")
    case.finish("waits")
    case.finish("branch")


def called_by_name(case):
    """A function's name as an op's."""
    graph = case.graph
    _unary(case, "minus", "Neg")
    node = graph.proto.node.add(name="call", op="minus")
    node.input.append(graph.const(2.0).split(":")[0])
    case.run("call:0")


def polymorphic(case):
    graph = case.graph
    graph.function("minus", {"a": "float"}, lambda g, a: g.add("Neg", a))
    definition = graph.proto.library.function[-1]
    definition.signature.attr.add(name="T", type="type")
    definition.signature.input_arg[0].type = 0
    definition.signature.input_arg[0].type_attr = "T"
    definition.signature.output_arg[0].type = 0
    definition.signature.output_arg[0].type_attr = "T"
    definition.node_def[0].attr["T"].placeholder = "T"
    for dtype in ("float", "int32"):
        x = graph.placeholder(dtype)
        kind = attr_value_pb2.AttrValue(type=graph.type_of(x))
        case.run(graph.add("PartitionedCall", [x], Tout=[dtype], f=("minus", {"T": kind})), {x: 3})
    case.run(graph.add("PartitionedCall", [x], Tout=["int32"], f="minus"), {x: 3})


CASES = [
    conditionals, conditional_misfits, a_function_that_is_not_there, cases, whiles, fors, calls, remote_calls,
    remote_calls_of_two_devices, placed_on_number_two, placed_on_gpu, placed_on_another_job, placed_on_nonsense,
    placed_partially, placed_on_another_task, together, together_by_class, together_with_nobody, reference_across_devices,
    gradients, maps, recursion, state_in_functions, waits_in_functions, waits_in_functions_and_closed, called_by_name,
    polymorphic,
]  # fmt: skip
