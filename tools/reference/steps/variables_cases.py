"""Variables of both kinds, temporary ones, and values that a session keeps: lifetimes, order, what does not fit."""

from itertools import product


def _reference(case, dtype="float", shape=(), name="v", **more):
    return case.graph.add("VariableV2", name=name, shape=shape, dtype=dtype, **more)


def _resource(case, dtype="float", shape=(), name="v", **more):
    return case.graph.add("VarHandleOp", name=name, shape=shape, dtype=dtype, **({"shared_name": name} | more))


def references_come_and_go(case):
    graph = case.graph
    v = _reference(case)
    there = graph.add("IsVariableInitialized", v)
    value = graph.add("Identity", v)
    x = graph.placeholder()
    case.run(there)
    case.run(value)
    case.run((), {x: 1.0}, graph.add("AssignAdd", v, x))
    for op in ("Assign", "AssignAdd", "AssignSub"):
        case.run(graph.add(op, v, x), {x: 5.0})
    case.run((there, value))
    case.other("session")
    case.run(value, session=1)
    case.run(there, session=1)


def a_reference_is_read_when_it_is_used(case):
    graph = case.graph
    v = _reference(case)
    set_one = graph.add("Assign", v, graph.const(1.0))
    before = graph.add("Identity", set_one)
    set_two = graph.add("Assign", v, graph.const(2.0), control=[before])
    after = graph.add("Identity", v, control=[set_two])
    case.run((before, after))


def first_version_of_variables(case):
    graph = case.graph
    v = graph.add("Variable", name="v", shape=[], dtype="float")
    case.run(graph.add("Assign", v, graph.const([1.0, 2.0]), validate_shape=False))
    case.run(v)
    w = graph.add("Variable", name="w", shape=[2], dtype="float")
    case.run(graph.add("Assign", w, graph.const([1.0])))
    case.run(graph.add("Assign", w, graph.const([1.0, 3.0])))


def shapes_of_references(case):
    graph = case.graph
    v = _reference(case, shape=None)
    one, two = graph.const([1.0, 2.0]), graph.const([[1.0], [2.0], [3.0]])
    case.run(graph.add("Assign", v, one))
    case.run(graph.add("Assign", v, two))
    case.run(graph.add("Assign", v, two, validate_shape=False))
    case.run(graph.add("Shape", v))
    case.run(graph.add("AssignAdd", v, one))
    case.run(graph.add("AssignSub", v, two))


def shared_references(case):
    graph = case.graph
    a = _reference(case, name="a", shared_name="same")
    b = _reference(case, name="b", shared_name="same")
    c = _reference(case, name="c", shared_name="same", container="box")
    d = _reference(case, name="d", shared_name="same", dtype="int32")
    case.do(graph.add("Assign", a, graph.const(4.0)).split(":")[0])
    case.run((a, b))
    case.run(c)
    case.run(d)


def counted_up(case):
    graph = case.graph
    v = _reference(case, "int32")
    up = graph.add("CountUpTo", v, limit=2)
    case.run(up)
    case.run(graph.add("Assign", v, graph.const(0)))
    for _ in range(3):
        case.run(up)
    case.run(v)
    r = _resource(case, "int64", name="r")
    up = graph.add("ResourceCountUpTo", r, limit=2, T="int64")
    case.run(up)
    case.do(graph.add("AssignVariableOp", r, graph.const(0, "int64")))
    for _ in range(3):
        case.run(up)
    case.run(graph.add("ReadVariableOp", r, dtype="int64"))


def rows_of_references(case):
    graph = case.graph
    v = _reference(case, shape=[3, 2])
    i = graph.placeholder("int32", "i")
    x = graph.placeholder()
    start = graph.add("Assign", v, graph.const([[8.0, 6.0], [4.0, 2.0], [9.0, 3.0]]))
    rules = ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"]
    nodes = [graph.add("Scatter" + rule, v, i, x, use_locking=locking) for rule, locking in product(rules, (False, True))]
    case.run(nodes[0], {i: [0], x: [[1.0, 2.0]]})
    case.run(start)
    for node in nodes:
        case.run(node, {i: [2, 0], x: [[2.0, 3.0], [3.0, 1.0]]})
        case.run(node, {i: [3], x: [[1.0, 2.0]]})
        case.run(v)
        case.run(node, {i: [1], x: [[1.0, 2.0, 3.0]]})
        case.run(node, {i: [[1, 1]], x: [[[1.0, 2.0], [3.0, 4.0]]]})
        case.run(node, {i: 1, x: 2.0})
        case.run(node, {i: [], x: [[]]})
    case.run(v)


def elements_of_references(case):
    graph = case.graph
    v = _reference(case, shape=[3, 2])
    i = graph.placeholder("int32", "i")
    x = graph.placeholder()
    start = graph.add("Assign", v, graph.const([[8.0, 6.0], [4.0, 2.0], [9.0, 3.0]]))
    nodes = [graph.add("ScatterNd" + rule, v, i, x) for rule in ("Update", "Add", "Sub", "Min", "Max")]
    case.run(nodes[0], {i: [[0]], x: [[1.0, 2.0]]})
    case.run(start)
    for node in nodes:
        case.run(node, {i: [[2, 1], [0, 0]], x: [2.0, 30.0]})
        case.run(node, {i: [[1]], x: [[5.0, 1.0]]})
        case.run(node, {i: [[3, 0]], x: [1.0]})
        case.run(node, {i: [[0, -1]], x: [1.0]})
        case.run(node, {i: [[0, 0, 0]], x: [1.0]})
        case.run(node, {i: [[0, 0]], x: [1.0, 2.0]})
    case.run(v)


def resources_come_and_go(case):
    graph = case.graph
    v = _resource(case)
    x = graph.placeholder()
    there = graph.add("VarIsInitializedOp", v)
    read = graph.add("ReadVariableOp", v, dtype="float")
    case.run(there)
    case.run(read)
    case.run((), {x: 1.0}, graph.add("AssignAddVariableOp", v, x))
    for op in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"):
        case.run((), {x: 5.0}, graph.add(op, v, x))
        case.run(read)
    case.run(graph.add("VariableShape", v))
    case.run(graph.add("VariableShape", v, out_type="int64"))
    case.run((there, read))
    destroy = graph.add("DestroyResourceOp", v)
    strict = graph.add("DestroyResourceOp", v, ignore_lookup_error=False)
    case.do(strict)
    case.do(strict)
    case.do(destroy)
    case.run(there)
    case.run(read)
    case.run(graph.add("VariableShape", v))
    case.run(v)


def resources_misfit(case):
    graph = case.graph
    v = _resource(case, shape=[2])
    read = graph.add("ReadVariableOp", v, dtype="float")
    x = graph.placeholder()
    for op in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"):
        node = graph.add(op, v, x)
        case.run((), {x: [1.0, 2.0]}, node)
        case.run((), {x: [1.0, 2.0, 3.0]}, node)
        case.run((), {x: [1.0, 2.0]}, node)
        case.run(read)
    strict = graph.add("AssignVariableOp", v, x, validate_shape=True)
    case.run((), {x: [1.0, 2.0, 3.0]}, strict)
    case.run(read)


def _refused(name, build):
    """A case with an op that does not fit the type of a variable: the graph is refused."""

    def case_of(case):
        case.run(build(case.graph, _resource(case, shape=[2])))

    case_of.__name__ = f"refused_{name}"
    return case_of


REFUSED = [
    _refused("read", lambda g, v: g.add("ReadVariableOp", v, dtype="int32")),
    _refused("assigned", lambda g, v: g.add("AssignVariableOp", v, g.const([1, 2]))),
    _refused("added", lambda g, v: g.add("AssignAddVariableOp", v, g.const([1, 2]))),
    _refused("gathered", lambda g, v: g.add("ResourceGather", v, g.const([1]), dtype="int32")),
    _refused("gathered_nd", lambda g, v: g.add("ResourceGatherNd", v, g.const([[1]]), dtype="int32")),
    _refused("scattered", lambda g, v: g.add("ResourceScatterAdd", v, g.const([1]), g.const([1]), dtype="int32")),
    _refused("scattered_nd", lambda g, v: g.add("ResourceScatterNdAdd", v, g.const([[1]]), g.const([1]))),
    _refused("counted", lambda g, v: g.add("ResourceCountUpTo", v, limit=2, T="int32")),
]


def shared_resources(case):
    graph = case.graph
    a = _resource(case, name="a", shared_name="same")
    b = _resource(case, name="b", shared_name="same")
    c = _resource(case, name="c", shared_name="same", container="box")
    d = _resource(case, name="d", shared_name="same", dtype="int32")
    case.do(graph.add("AssignVariableOp", a, graph.const(4.0)))
    for handle, dtype in ((a, "float"), (b, "float"), (c, "float"), (d, "int32")):
        case.run(graph.add("ReadVariableOp", handle, dtype=dtype))
    case.do(graph.add("AssignVariableOp", d, graph.const(4)))
    anonymous = _resource(case, name="e", shared_name="cd2c89b7-88b7-44c8-ad83-06c2a9158347")
    set_it = graph.add("AssignVariableOp", anonymous, graph.const(2.0))
    case.run(graph.add("ReadVariableOp", anonymous, dtype="float", control=[set_it]))


def rows_of_resources(case):
    graph = case.graph
    v = _resource(case, shape=[3, 2])
    i = graph.placeholder("int32", "i")
    x = graph.placeholder()
    read = graph.add("ReadVariableOp", v, dtype="float")
    gather = graph.add("ResourceGather", v, i, dtype="float")
    gather_nd = graph.add("ResourceGatherNd", v, i, dtype="float")
    rules = ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"]
    nodes = [graph.add("ResourceScatter" + rule, v, i, x, dtype="float") for rule in rules]
    case.run((), {i: [0], x: [[1.0, 2.0]]}, nodes[0])
    case.run(gather, {i: [0]})
    case.run(gather_nd, {i: [[0]]})
    case.do(graph.add("AssignVariableOp", v, graph.const([[8.0, 6.0], [4.0, 2.0], [9.0, 3.0]])))
    for node in nodes:
        case.run((), {i: [2, 0], x: [[2.0, 3.0], [3.0, 1.0]]}, node)
        case.run(read)
        case.run((), {i: [3], x: [[1.0, 2.0]]}, node)
        case.run((), {i: [[1, 1]], x: [[[1.0, 2.0], [3.0, 4.0]]]}, node)
        case.run((), {i: 1, x: 2.0}, node)
    case.run(gather, {i: [[2, 0]]})
    case.run(gather, {i: 1})
    case.run(gather, {i: [3]})
    case.run(gather_nd, {i: [[2, 0], [1, 1]]})
    case.run(gather_nd, {i: [[2]]})
    case.run(gather_nd, {i: [[2, 5]]})
    case.run(gather_nd, {i: [[2, 0, 0]]})
    case.run(graph.add("ResourceGather", v, i, dtype="float", batch_dims=1), {i: [[0], [1], [1]]})


def elements_of_resources(case):
    graph = case.graph
    v = _resource(case, shape=[3, 2])
    i = graph.placeholder("int32", "i")
    x = graph.placeholder()
    read = graph.add("ReadVariableOp", v, dtype="float")
    nodes = [graph.add("ResourceScatterNd" + rule, v, i, x, T="float") for rule in ("Update", "Add", "Sub", "Min", "Max")]
    case.run((), {i: [[0]], x: [[1.0, 2.0]]}, nodes[0])
    case.do(graph.add("AssignVariableOp", v, graph.const([[8.0, 6.0], [4.0, 2.0], [9.0, 3.0]])))
    for node in nodes:
        case.run((), {i: [[2, 1], [0, 0]], x: [2.0, 30.0]}, node)
        case.run(read)
        case.run((), {i: [[1]], x: [[5.0, 1.0]]}, node)
        case.run((), {i: [[3, 0]], x: [1.0]}, node)
        case.run((), {i: [[0, -1]], x: [1.0]}, node)
        case.run((), {i: [[0, 0, 0]], x: [1.0]}, node)
        case.run((), {i: [[0, 0]], x: [1.0, 2.0]}, node)
    case.run(read)


def many_are_read(case):
    graph = case.graph
    a, b = _resource(case, name="a"), _resource(case, "int32", [2], name="b")
    many = graph.add("_ReadVariablesOp", [a, b], dtypes=["float", "int32"], N=2)
    case.run(many)
    case.do(graph.add("AssignVariableOp", a, graph.const(4.0)), graph.add("AssignVariableOp", b, graph.const([1, 2])))
    case.run(many)


def slices_are_assigned(case):
    graph = case.graph
    numbers = [graph.placeholder("int32", name) for name in ("begin", "end", "strides")]
    x = graph.placeholder()
    start = graph.const([1.0, 2.0, 3.0, 4.0])
    v = _resource(case, shape=[4])
    w = _reference(case, shape=[4], name="w")
    types = {"T": "float", "Index": "int32"}
    resource = graph.add("ResourceStridedSliceAssign", v, *numbers, x, **types)
    read = graph.add("ReadVariableOp", v, dtype="float")
    reference = graph.add("StridedSliceAssign", w, *numbers, x, **types)
    fed = dict(zip(numbers, ([1], [3], [1])))
    case.run((), fed | {x: [7.0, 8.0]}, resource)
    case.run(reference, fed | {x: [7.0, 8.0]})
    case.do(graph.add("AssignVariableOp", v, start))
    case.run(graph.add("Assign", w, start))
    for limits, value in (
        (([1], [3], [1]), [7.0, 8.0]),
        (([3], [0], [-2]), [5.0, 6.0]),
        (([0], [4], [1]), [1.0]),
        (([0], [4], [0]), [1.0]),
        (([0, 0], [4, 1], [1, 1]), [1.0]),
        (([0], [3], [1]), [1.0, 2.0]),
    ):
        fed = dict(zip(numbers, limits)) | {x: value}
        case.run((), fed, resource)
        case.run(read)
        case.run(reference, fed)


def temporary(case):
    graph = case.graph
    t = graph.add("TemporaryVariable", name="t", shape=[2], dtype="float")
    case.run(t)
    first = graph.add("Assign", t, graph.const([1.0, 2.0]))
    second = graph.add("AssignAdd", first, graph.const([10.0, 20.0]))
    gone = graph.add("DestroyTemporaryVariable", second, var_name="t")
    case.run(gone)
    case.run(gone)
    named = graph.add("TemporaryVariable", name="u", shape=[], dtype="float", var_name="other")
    value = graph.add("Assign", named, graph.const(3.0))
    case.run(graph.add("DestroyTemporaryVariable", value, var_name="other"))
    case.run(graph.add("DestroyTemporaryVariable", value, var_name="nobody"))
    again = graph.add("TemporaryVariable", name="w", shape=[], dtype="float", var_name="other", control=[value])
    case.run(graph.add("Assign", again, graph.const(1.0)))
    plain = _reference(case, name="plain")
    case.run(graph.add("DestroyTemporaryVariable", graph.add("Assign", plain, graph.const(1.0)), var_name="plain"))


def _kept(node, number):
    return f"{node};{number};/job:localhost/replica:0/task:0/device:CPU:0"


def values_that_a_session_keeps(case):
    graph = case.graph
    x = graph.placeholder("float")
    text = graph.placeholder("string", "text")
    keep = graph.add("GetSessionHandle", x, name="keep")
    get = graph.add("GetSessionTensor", text, dtype="float")
    delete = graph.add("DeleteSessionTensor", text)
    case.run(keep, {x: [1.0, 2.0]})
    case.run(get, {text: _kept("keep", 0)})
    case.run(graph.add("GetSessionTensor", text, dtype="int32"), {text: _kept("keep", 0)})
    case.run(get, {text: "keep;0"})
    case.run(get, {text: _kept("nobody", 0)})
    case.run(get, {text: ["a", "b"]})
    case.run((), {text: "nobody"}, delete)
    case.run((), {text: _kept("keep", 0)}, delete)
    case.run(get, {text: _kept("keep", 0)})
    case.run((), {text: _kept("keep", 0)}, delete)


def values_are_kept_for_who_fetches_them(case):
    graph = case.graph
    x = graph.placeholder("float")
    text = graph.placeholder("string", "text")
    keep = graph.add("GetSessionHandle", x, name="keep")
    named = graph.add("Identity", keep)
    get = graph.add("GetSessionTensor", text, dtype="float")
    case.run(named, {x: 1.0})
    case.run(get, {text: _kept("keep", 0)})
    case.run((keep, named), {x: 2.0})
    case.run(get, {text: _kept("keep", 1)})
    case.run((keep, graph.add("GetSessionTensor", keep, dtype="float")), {x: 3.0})
    case.run((), {x: 4.0}, keep[:-2])
    case.run(get, {text: _kept("keep", 3)})
    handle = graph.add("GetSessionHandleV2", x, name="resource")
    case.run(graph.add("StringFormat", [handle], template="<%s>"), {x: 5.0})
    case.run((), {x: 6.0}, graph.add("DeleteSessionTensor", keep))
    case.other("session")
    case.run(get, {text: _kept("keep", 1)}, session=1)
    case.run(keep, {x: 7.0}, session=1)


CASES = [
    references_come_and_go, a_reference_is_read_when_it_is_used, first_version_of_variables, shapes_of_references,
    shared_references, counted_up, rows_of_references, elements_of_references, resources_come_and_go, resources_misfit,
    shared_resources, rows_of_resources, elements_of_resources, slices_are_assigned, many_are_read, temporary, values_that_a_session_keeps,
    values_are_kept_for_who_fetches_them,
    *REFUSED,
]  # fmt: skip
