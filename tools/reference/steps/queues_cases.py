"""Queues of all kinds: order, waiting, closing, cancelling, what does not fit."""

FIFO = {"component_types": ["float"], "shapes": [[]]}


def _fifo(case, capacity=2, **more):
    """A queue of scalars, and ops on it: (queue, value, put, take)."""
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", capacity=capacity, **(FIFO | more))
    x = graph.placeholder()
    put = graph.add("QueueEnqueueV2", queue, [x], name="put")
    take = graph.add("QueueDequeueV2", queue, name="take", component_types=["float"])
    return queue, x, put, take


def takers_wait_in_line(case):
    queue, x, put, take = _fifo(case)
    case.start("first", take)
    case.start("second", take)
    case.state("first")
    case.run((), {x: 1.0}, put)
    case.run((), {x: 2.0}, put)
    case.finish("first")
    case.finish("second")
    case.run(case.graph.add("QueueSizeV2", queue))


def bringers_wait_in_line(case):
    queue, x, put, take = _fifo(case, capacity=1)
    case.run((), {x: 1.0}, put)
    case.start("second", (), {x: 2.0}, put)
    case.start("third", (), {x: 3.0}, put)
    case.state("second")
    for _ in range(3):
        case.run(take)
    case.finish("second")
    case.finish("third")


def closed_while_takers_wait(case):
    queue, x, put, take = _fifo(case)
    close = case.graph.add("QueueCloseV2", queue)
    case.start("waits", take)
    case.do(close)
    case.finish("waits")
    case.run((), {x: 1.0}, put)
    case.run(take)
    case.do(close)


def closed_while_bringers_wait(case):
    queue, x, put, take = _fifo(case, capacity=1)
    close = case.graph.add("QueueCloseV2", queue)
    closed = case.graph.add("QueueIsClosedV2", queue)
    case.run((), {x: 1.0}, put)
    case.start("waits", (), {x: 2.0}, put)
    case.start("closing", (), None, close)
    case.state("closing")
    case.run(closed)
    case.run(take)
    case.finish("waits")
    case.finish("closing")
    case.run(closed)
    case.run(take)
    case.run(take)


def closed_and_cancelled(case):
    queue, x, put, take = _fifo(case, capacity=1)
    close = case.graph.add("QueueCloseV2", queue, cancel_pending_enqueues=True)
    case.run((), {x: 1.0}, put)
    case.start("waits", (), {x: 2.0}, put)
    case.do(close)
    case.finish("waits")
    case.run(take)
    case.run(take)
    case.do(close)


def closed_with_many_waiting(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", capacity=10, **FIFO)
    x = graph.placeholder()
    put = graph.add("QueueEnqueueManyV2", queue, [x])
    close = graph.add("QueueCloseV2", queue)
    n = graph.const(3)
    many = graph.add("QueueDequeueManyV2", queue, n, component_types=["float"])
    up_to = graph.add("QueueDequeueUpToV2", queue, n, component_types=["float"])
    take = graph.add("QueueDequeueV2", queue, component_types=["float"])
    case.run((), {x: [1.0, 2.0]}, put)
    case.start("many", many)
    case.start("up_to", up_to)
    case.start("one", take)
    case.run((), {x: [3.0, 4.0]}, put)
    case.finish("many")
    case.do(close)
    case.finish("up_to")
    case.finish("one")


def too_few_left_when_closed(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", capacity=10, **FIFO)
    put = graph.add("QueueEnqueueManyV2", queue, [graph.const([1.0, 2.0])])
    close = graph.add("QueueCloseV2", queue)
    many = graph.add("QueueDequeueManyV2", queue, graph.const(3), component_types=["float"])
    size = graph.add("QueueSizeV2", queue)
    case.do(put)
    case.start("many", many)
    case.run(size)
    case.do(close)
    case.finish("many")
    case.run(size)
    case.run(graph.add("QueueDequeueV2", queue, component_types=["float"]))


def many_in_more_than_fits(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", capacity=2, **FIFO)
    put = graph.add("QueueEnqueueManyV2", queue, [graph.const([1.0, 2.0, 3.0, 4.0, 5.0])])
    take = graph.add("QueueDequeueV2", queue, component_types=["float"])
    many = graph.add("QueueDequeueManyV2", queue, graph.const(4), component_types=["float"])
    case.start("put", (), None, put)
    case.state("put")
    case.run(take)
    case.state("put")
    case.run(many)
    case.finish("put")


def deadlines(case):
    queue, x, put, take = _fifo(case, capacity=1)
    many = case.graph.add("QueueDequeueManyV2", queue, case.graph.const(2), component_types=["float"])
    size = case.graph.add("QueueSizeV2", queue)
    case.run(take, timeout=100)
    case.run((), {x: 1.0}, put)
    case.run((), {x: 2.0}, put, timeout=100)
    case.run(many, timeout=100)
    case.run(size)
    case.run(take)


def session_closed(case):
    queue, x, put, take = _fifo(case, capacity=1)
    case.start("waits", take)
    case.other("close")
    case.finish("waits")
    case.run(take)


def another_part_fails(case):
    queue, x, put, take = _fifo(case, capacity=1)
    graph = case.graph
    fails = graph.add("CheckNumerics", x, message="bad", name="fails")
    case.run([take, fails], {x: float("nan")})
    case.run((), {x: 1.0}, put)
    case.run(take)


def misfits(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float", "int32"], shapes=[[2], []])
    x, y = graph.placeholder(), graph.placeholder("int32", "y")
    put = graph.add("QueueEnqueueV2", queue, [x, y])
    many = graph.add("QueueEnqueueManyV2", queue, [x, y])
    case.run((), {x: [1.0, 2.0], y: 1}, put)
    case.run((), {x: [1.0], y: 1}, put)
    case.run((), {x: [1.0, 2.0], y: [1]}, put)
    case.run((), {x: [[1.0, 2.0]], y: [1]}, many)
    case.run((), {x: [[1.0, 2.0]], y: [1, 2]}, many)
    case.run((), {x: [[1.0, 2.0]], y: 1}, many)
    case.run((), {x: [[1.0], [2.0]], y: [1, 2]}, many)
    one = graph.add("QueueEnqueueV2", queue, [x], name="one")
    case.run((), {x: [1.0, 2.0]}, one)
    other = graph.add("QueueDequeueV2", queue, component_types=["float"])
    case.run(other)
    turned = graph.add("QueueDequeueV2", queue, component_types=["int32", "float"])
    case.run(turned)


def misfits_without_shapes(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float", "int32"])
    x, y = graph.placeholder(), graph.placeholder("int32", "y")
    many = graph.add("QueueEnqueueManyV2", queue, [x, y])
    case.run((), {x: [1.0, 2.0], y: [1]}, many)
    case.run((), {x: [], y: []}, many)
    n = graph.placeholder("int32", "n")
    take = graph.add("QueueDequeueManyV2", queue, n, component_types=["float", "int32"])
    case.run(take, {n: 1})
    case.run(take, {n: 0})


def counts(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float"], shapes=[[2]])
    n = graph.placeholder("int32", "n")
    many = graph.add("QueueDequeueManyV2", queue, n, component_types=["float"])
    up_to = graph.add("QueueDequeueUpToV2", queue, n, component_types=["float"])
    case.run(many, {n: 0})
    case.run(up_to, {n: 0})
    case.run(many, {n: -1})
    case.run(up_to, {n: -1})
    close = graph.add("QueueCloseV2", queue)
    case.do(close)
    case.run(up_to, {n: 2})
    case.run(many, {n: 0})


def makers_that_are_wrong(case):
    graph = case.graph
    made = [
        graph.add("FIFOQueueV2", component_types=["float"], shapes=[[], []]),
        graph.add("FIFOQueueV2", component_types=["float"], shapes=[[None]]),
        graph.add("PaddingFIFOQueueV2", component_types=["float"]),
        graph.add("PaddingFIFOQueueV2", component_types=["float"], shapes=[None]),
        graph.add("PriorityQueueV2", component_types=["float"]),
        graph.add("PriorityQueueV2", component_types=["float"], shapes=[[None]]),
        graph.add("RandomShuffleQueueV2", component_types=["float"], capacity=5, min_after_dequeue=5),
        graph.add("RandomShuffleQueueV2", component_types=["float"], capacity=5, min_after_dequeue=-1),
        graph.add("RandomShuffleQueueV2", component_types=["float"], capacity=-1, min_after_dequeue=7),
    ]
    for queue in made:
        case.run(graph.add("QueueSizeV2", queue))


def shared(case):
    graph = case.graph
    same = {"shared_name": "one", "capacity": 3}
    first = graph.add("FIFOQueueV2", name="a", **(FIFO | same))
    put = graph.add("QueueEnqueueV2", first, [graph.const(4.0)])
    case.do(put)
    others = [
        graph.add("FIFOQueueV2", name="b", **(FIFO | same)),
        graph.add("FIFOQueueV2", name="c", **(FIFO | same | {"capacity": 4})),
        graph.add("FIFOQueueV2", name="d", **(FIFO | same | {"shapes": [[1]]})),
        graph.add("FIFOQueueV2", name="e", **(FIFO | same | {"component_types": ["int32"]})),
        graph.add("FIFOQueueV2", name="f", **(FIFO | same | {"container": "box"})),
        graph.add("RandomShuffleQueueV2", name="g", **(FIFO | same)),
        graph.add("PaddingFIFOQueueV2", name="h", **(FIFO | same)),
        graph.add("PriorityQueueV2", name="i", **(FIFO | same)),
    ]
    for other in others:
        case.run(graph.add("QueueSizeV2", other))


def shared_by_shufflers(case):
    graph = case.graph
    same = {"shared_name": "one", "capacity": 8, "min_after_dequeue": 2, "seed": 1, "seed2": 2}
    for change in ({}, {"min_after_dequeue": 3}, {"seed": 4}, {"seed2": 5}):
        queue = graph.add("RandomShuffleQueueV2", **(FIFO | same | change))
        case.run(graph.add("QueueSizeV2", queue))


def shuffled(case):
    graph = case.graph
    queue = graph.add("RandomShuffleQueueV2", name="q", capacity=20, min_after_dequeue=3, seed=5, seed2=6, **FIFO)
    put = graph.add("QueueEnqueueManyV2", queue, [graph.const([float(i) for i in range(10)])])
    take = graph.add("QueueDequeueV2", queue, component_types=["float"])
    many = graph.add("QueueDequeueManyV2", queue, graph.const(4), component_types=["float"])
    up_to = graph.add("QueueDequeueUpToV2", queue, graph.const(4), component_types=["float"])
    close = graph.add("QueueCloseV2", queue)
    case.do(put)
    for _ in range(3):
        case.run(take)
    case.run(many)
    case.start("waits", take)
    case.state("waits")
    case.do(put)
    case.finish("waits")
    case.run(up_to)
    case.start("up_to", up_to)
    case.start("many", many)
    case.state("up_to")
    case.do(close)
    case.finish("up_to")
    case.finish("many")
    case.run(graph.add("QueueSizeV2", queue))


def by_name(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", shared_name="q", capacity=3, **FIFO)
    name = graph.add("FakeQueue", queue)
    case.run(name)
    case.do(graph.add("QueueEnqueue", name, [graph.const(1.0)]))
    case.run(graph.add("QueueSizeV2", queue))
    case.run(graph.add("QueueDequeue", name, component_types=["float"]))


def by_priority(case):
    graph = case.graph
    queue = graph.add("PriorityQueueV2", name="q", component_types=["string"], shapes=[[]], capacity=4)
    p, x = graph.placeholder("int64", "p"), graph.placeholder("string", "x")
    put = graph.add("QueueEnqueueV2", queue, [p, x])
    many = graph.add("QueueEnqueueManyV2", queue, [p, x])
    take = graph.add("QueueDequeueV2", queue, component_types=["int64", "string"])
    four = graph.add("QueueDequeueManyV2", queue, graph.const(4), component_types=["int64", "string"])
    for priority, text in ((3, b"c"), (1, b"a"), (2, b"b"), (1, b"a2")):
        case.run((), {p: priority, x: text}, put)
    case.start("fifth", (), {p: 0, x: b"zero"}, put)
    case.run(take)
    case.finish("fifth")
    case.run(four)
    case.run((), {p: [5, -5], x: [b"v", b"w"]}, many)
    case.run(take)
    case.run((), {p: [5, -5], x: b"v"}, put)


def padded(case):
    graph = case.graph
    queue = graph.add("PaddingFIFOQueueV2", name="q", component_types=["int32", "string"], shapes=[[None, 2], [None]])
    x, y = graph.placeholder("int32"), graph.placeholder("string", "y")
    put = graph.add("QueueEnqueueV2", queue, [x, y])
    n = graph.placeholder("int32", "n")
    many = graph.add("QueueDequeueManyV2", queue, n, component_types=["int32", "string"])
    up_to = graph.add("QueueDequeueUpToV2", queue, n, component_types=["int32", "string"])
    case.run((), {x: [[1, 2]], y: [b"a", b"bc"]}, put)
    case.run((), {x: [[3, 4], [5, 6]], y: []}, put)
    case.run((), {x: [[3, 4, 5]], y: [b"a"]}, put)
    case.run((), {x: [[3, 4]], y: b"a"}, put)
    case.run(many, {n: 2})
    case.run(many, {n: 0})
    case.run((), {x: [[7, 8]], y: [b"x"]}, put)
    close = graph.add("QueueCloseV2", queue)
    case.do(close)
    case.run(up_to, {n: 5})
    case.run(up_to, {n: 5})
    case.run(many, {n: 5})


def first_versions(case):
    graph = case.graph
    for op in ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"):
        seeds = {"seed": 3, "seed2": 4} if op == "RandomShuffleQueue" else {}
        queue = graph.add(op, **FIFO, **seeds)
        value = [graph.const(1, "int64")] if op == "PriorityQueue" else []
        types = ["int64", "float"] if value else ["float"]
        put = graph.add("QueueEnqueue", queue, value + [graph.const(1.5)])
        many = [graph.const([4, 3, 2], "int64")] if value else []
        puts = graph.add("QueueEnqueueMany", queue, many + [graph.const([1.0, 2.0, 3.0])])
        take = graph.add("QueueDequeue", queue, component_types=types)
        takes = graph.add("QueueDequeueMany", queue, graph.const(2), component_types=types)
        up_to = graph.add("QueueDequeueUpTo", queue, graph.const(9), component_types=types)
        case.do(put)
        case.do(puts)
        case.run(graph.add("QueueSize", queue))
        case.run(take)
        case.run(takes)
        case.do(graph.add("QueueClose", queue))
        case.run(graph.add("QueueSize", queue))
        case.run(up_to if op != "PriorityQueue" else take)


def in_one_step(case):
    """An op that waits holds no thread."""
    queue, x, put, take = _fifo(case, capacity=1)
    graph = case.graph
    second = graph.add("QueueDequeueV2", queue, name="second", component_types=["float"])
    more = graph.add("QueueEnqueueV2", queue, [graph.add("AddV2", take, x)], name="more")
    case.config = b"\x10\x01\x28\x01"
    case.run([take, second], {x: 2.0}, [put, more])


def timeout_attribute(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", **FIFO)
    case.do(graph.add("QueueEnqueueV2", queue, [graph.const(1.0)], timeout_ms=10))
    case.run(graph.add("QueueDequeueV2", queue, component_types=["float"], timeout_ms=10))
    case.run(graph.add("QueueDequeueManyV2", queue, graph.const(1), component_types=["float"], timeout_ms=10))


def not_a_queue(case):
    graph = case.graph
    handle = graph.add("VarHandleOp", dtype="float", shape=[])
    case.run(graph.add("QueueSizeV2", handle))
    case.run(graph.add("QueueDequeueV2", handle, component_types=["float"]))
    stack = graph.add("StackV2", graph.const(-1), elem_type="float")
    case.do(graph.add("QueueCloseV2", stack))


def types_that_differ(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", **FIFO)
    case.do(graph.add("QueueEnqueueV2", queue, [graph.const(1)]))
    case.run(graph.add("QueueDequeueV2", queue, component_types=["int32"]))
    case.do(graph.add("QueueEnqueueManyV2", queue, [graph.const([1])]))
    case.run(graph.add("QueueDequeueManyV2", queue, graph.const(1), component_types=["int32"]))


CASES = [
    by_name,
    takers_wait_in_line, bringers_wait_in_line, closed_while_takers_wait, closed_while_bringers_wait, closed_and_cancelled,
    closed_with_many_waiting, too_few_left_when_closed, many_in_more_than_fits, deadlines, session_closed, another_part_fails,
    misfits, misfits_without_shapes, counts, makers_that_are_wrong, shared, shared_by_shufflers, shuffled, by_priority, padded,
    first_versions, in_one_step, timeout_attribute, not_a_queue, types_that_differ,
]  # fmt: skip
