"""Barriers, accumulators, staging areas, mutexes: order, waiting, closing, what does not fit."""


def _barrier(case, shapes=((), ())):
    graph = case.graph
    types = ["float", "string"]
    barrier = graph.add("Barrier", name="b", component_types=types, shapes=list(map(list, shapes)))
    keys, x, s = graph.placeholder("string", "keys"), graph.placeholder(), graph.placeholder("string", "s")
    first = graph.add("BarrierInsertMany", barrier, keys, x, name="first", component_index=0)
    second = graph.add("BarrierInsertMany", barrier, keys, s, name="second", component_index=1)
    n = graph.placeholder("int32", "n")
    take = lambda **more: graph.add("BarrierTakeMany", barrier, n, component_types=types, **more)
    sizes = [graph.add("BarrierReadySize", barrier), graph.add("BarrierIncompleteSize", barrier)]
    return barrier, (keys, x, s, n), first, second, take, sizes


def barrier_fills_up(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    take = take()
    case.run((), {keys: [b"a", b"b", b"c"], x: [1.0, 2.0, 3.0]}, first)
    case.run(sizes)
    case.run((), {keys: [b"c", b"a"], s: [b"C", b"A"]}, second)
    case.run(sizes)
    case.run(take, {n: 1})
    case.start("two", take, {n: 2})
    case.state("two")
    case.run((), {keys: [b"b"], s: [b"B"]}, second)
    case.finish("two")
    case.run(sizes)
    case.run((), {keys: [b"a"], x: [9.0]}, first)
    case.run((), {keys: [b"a"], s: [b"again"]}, second)
    case.run(take, {n: 1})
    case.run(take, {n: 0})


def barrier_misfits(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    graph = case.graph
    case.run((), {keys: [b"a", b"b"], x: [1.0]}, first)
    case.run((), {keys: [b"a"], x: [[1.0]]}, first)
    case.run((), {keys: [b"a", b"a"], x: [1.0, 2.0]}, first)
    case.run(sizes)
    wrong = graph.add("BarrierInsertMany", barrier, keys, x, component_index=1)
    case.run((), {keys: [b"a"], x: [1.0]}, wrong)
    far = graph.add("BarrierInsertMany", barrier, keys, x, component_index=2)
    case.run((), {keys: [b"a"], x: [1.0]}, far)
    below = graph.add("BarrierInsertMany", barrier, keys, x, component_index=-1)
    case.run((), {keys: [b"a"], x: [1.0]}, below)
    case.run(take(), {n: -1})
    case.run(graph.add("BarrierTakeMany", barrier, n, component_types=["float"]), {n: 1})


def barrier_makers(case):
    graph = case.graph
    for more in (
        {"component_types": ["float"], "shapes": [[], []]}, {"component_types": ["float"], "capacity": 3},
        {"component_types": ["float"], "shapes": [[None]]}, {"component_types": ["float", "int32"]},
        {"component_types": ["float"], "shapes": [[0]]},
    ):  # fmt: skip
        case.run(graph.add("BarrierReadySize", graph.add("Barrier", **more)))
    same = {"shared_name": "one", "component_types": ["float"]}
    for more in ({"shapes": [[]]}, {"shapes": [[]]}, {"shapes": [[2]]}, {"component_types": ["int32"], "shapes": [[]]}):
        case.run(graph.add("BarrierReadySize", graph.add("Barrier", **(same | more))))


def barrier_closed(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    close = case.graph.add("BarrierClose", barrier)
    cancel = case.graph.add("BarrierClose", barrier, cancel_pending_enqueues=True)
    plain, small = take(), take(allow_small_batch=True)
    case.run((), {keys: [b"a", b"b", b"c"], x: [1.0, 2.0, 3.0]}, first)
    case.run((), {keys: [b"a"], s: [b"A"]}, second)
    case.do(close)
    case.run((), {keys: [b"new"], x: [4.0]}, first)
    case.run((), {keys: [b"b"], s: [b"B"]}, second)
    case.run(sizes)
    case.run(small, {n: 3})
    case.run(sizes)
    case.do(close)
    case.do(cancel)
    case.run((), {keys: [b"c"], s: [b"C"]}, second)
    case.run(sizes)
    case.run(plain, {n: 1})
    case.run(small, {n: 1})
    case.do(cancel)


def barrier_closed_while_taking(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    close = case.graph.add("BarrierClose", barrier)
    plain, small = take(), take(allow_small_batch=True)
    patient = take(allow_small_batch=True, wait_for_incomplete=True)
    case.run((), {keys: [b"a", b"b", b"c"], x: [1.0, 2.0, 3.0]}, first)
    case.run((), {keys: [b"a", b"b"], s: [b"A", b"B"]}, second)
    case.start("plain", plain, {n: 3})
    case.do(close)
    case.state("plain")
    case.run((), {keys: [b"c"], s: [b"C"]}, second)
    case.finish("plain")
    case.run(small, {n: 1})
    case.run(patient, {n: 1})


def barrier_waits_for_incomplete(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    close = case.graph.add("BarrierClose", barrier)
    patient = take(allow_small_batch=True, wait_for_incomplete=True)
    strict = take(wait_for_incomplete=True)
    case.run((), {keys: [b"a", b"b", b"c", b"d"], x: [1.0, 2.0, 3.0, 4.0]}, first)
    case.run((), {keys: [b"a", b"b"], s: [b"A", b"B"]}, second)
    case.run(strict, {n: 1})
    case.start("patient", patient, {n: 5})
    case.do(close)
    case.state("patient")
    case.run((), {keys: [b"c"], s: [b"C"]}, second)
    case.state("patient")
    case.run((), {keys: [b"d"], s: [b"D"]}, second)
    case.finish("patient")
    case.run(patient, {n: 1})
    case.run(strict, {n: 1})


def barrier_cancelled_while_taking(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    cancel = case.graph.add("BarrierClose", barrier, cancel_pending_enqueues=True)
    plain, small = take(), take(allow_small_batch=True)
    case.run((), {keys: [b"a", b"b"], x: [1.0, 2.0]}, first)
    case.run((), {keys: [b"a"], s: [b"A"]}, second)
    case.start("plain", plain, {n: 2})
    case.do(cancel)
    case.finish("plain")
    case.run(small, {n: 2})
    case.run(sizes)


def barrier_deadline(case):
    barrier, (keys, x, s, n), first, second, take, sizes = _barrier(case)
    plain = take()
    case.run(plain, {n: 2}, timeout=100)
    case.run((), {keys: [b"a"], x: [1.0]}, first)
    case.run((), {keys: [b"a"], s: [b"A"]}, second)
    case.run(plain, {n: 1})


def _accumulator(case, op="ConditionalAccumulator", **more):
    graph = case.graph
    prefix = "Resource" if op.startswith("Resource") else ""
    made = graph.add(op, name="a", **({"dtype": "float", "shape": [2]} | more))
    step, x, n = graph.placeholder("int64", "step"), graph.placeholder(), graph.placeholder("int32", "n")
    put = graph.add(prefix + "AccumulatorApplyGradient", made, step, x, name="put")
    take = graph.add(prefix + "AccumulatorTakeGradient", made, n, dtype=more.get("dtype", "float"), name="take")
    count = graph.add(prefix + "AccumulatorNumAccumulated", made)
    set_step = graph.add(prefix + "AccumulatorSetGlobalStep", made, step)
    return (step, x, n), put, take, count, set_step


def _accumulated(case, op):
    (step, x, n), put, take, count, set_step = _accumulator(case, op)
    case.run((), {step: 0, x: [1.0, 2.0]}, put)
    case.run((), {step: 0, x: [3.0, 6.0]}, put)
    case.run(count)
    case.run(take, {n: 2})
    case.run(count)
    case.run((), {step: 0, x: [3.0, 6.0]}, put)
    case.run(count)
    case.start("waits", take, {n: 1})
    case.run((), {step: 1, x: [3.0, 6.0]}, put)
    case.finish("waits")
    case.run((), {step: 10}, set_step)
    case.run((), {step: 9, x: [1.0, 1.0]}, put)
    case.run(count)
    case.run((), {step: 10, x: [1.0, 1.0]}, put)
    case.run(take, {n: 1})
    case.run((), {step: 3}, set_step)
    case.run((), {step: 3, x: [1.0, 1.0]}, put)
    case.run(count)


def accumulated(case):
    _accumulated(case, "ConditionalAccumulator")


def accumulated_in_a_resource(case):
    _accumulated(case, "ResourceConditionalAccumulator")


def accumulated_sum(case):
    (step, x, n), put, take, count, set_step = _accumulator(case, reduction_type="SUM", shape=None)
    case.run((), {step: 0, x: [1.0, 2.0]}, put)
    case.run((), {step: 5, x: [3.0, 6.0]}, put)
    case.run((), {step: 5, x: [3.0]}, put)
    case.run(count)
    case.run(take, {n: 1})
    case.run((), {step: 5, x: 3.0}, put)
    case.run(take, {n: 1})


def accumulator_misfits(case):
    (step, x, n), put, take, count, set_step = _accumulator(case)
    graph = case.graph
    case.run((), {step: 0, x: [1.0]}, put)
    case.run((), {step: [0], x: [1.0, 2.0]}, put)
    case.run((), {step: [0]}, set_step)
    case.run(take, {n: 0})
    case.run(take, {n: -1})
    case.run(take, {n: [1]})
    other = graph.add("AccumulatorApplyGradient", "a", step, graph.const([1.0, 2.0], "double"))
    case.run((), {step: 0}, other)
    case.run(graph.add("AccumulatorTakeGradient", "a", n, dtype="double"), {n: 1})
    case.run(take, {n: 1}, timeout=100)


def accumulator_shared(case):
    graph = case.graph
    same = {"shared_name": "one", "dtype": "float", "shape": [2]}
    for more in ({}, {"dtype": "double"}, {"shape": [3]}, {"reduction_type": "SUM"}):
        made = graph.add("ConditionalAccumulator", **(same | more))
        case.run(graph.add("AccumulatorNumAccumulated", made))
    case.run(graph.add("AccumulatorNumAccumulated", graph.add("ConditionalAccumulator", dtype="int32", shape=[])))


def accumulated_sparse(case):
    graph = case.graph
    for reduction in ("MEAN", "SUM"):
        made = graph.add("SparseConditionalAccumulator", dtype="float", shape=[None, 2], reduction_type=reduction)
        step, i, x = graph.const(0, "int64"), graph.placeholder("int64", "i"), graph.placeholder()
        shape = graph.placeholder("int64", "shape")
        put = graph.add("SparseAccumulatorApplyGradient", made, step, i, x, shape, has_known_shape=True)
        loose = graph.add("SparseAccumulatorApplyGradient", made, step, i, x, shape, has_known_shape=False)
        take = graph.add("SparseAccumulatorTakeGradient", made, graph.const(2), dtype="float")
        count = graph.add("AccumulatorNumAccumulated", made)
        case.run((), {i: [0, 2], x: [[1.0, 2.0], [3.0, 4.0]], shape: [3, 2]}, put)
        case.run((), {i: [1, 2], x: [[10.0, 20.0], [30.0, 40.0]], shape: [3, 2]}, put)
        case.run(count)
        case.run(take)
        case.run(count)
        put = graph.add("SparseAccumulatorApplyGradient", made, graph.const(7, "int64"), i, x, shape, has_known_shape=True)
        case.run((), {i: [0, 2], x: [[1.0, 2.0]], shape: [3, 2]}, put)
        case.run((), {i: [0], x: [[1.0]], shape: [3, 1]}, put)
        case.run((), {i: [0], x: [1.0], shape: [3]}, put)
        case.run((), {i: [[0]], x: [[1.0, 2.0]], shape: [3, 2]}, put)
        case.run((), {i: [0], x: 1.0, shape: [3, 2]}, put)
        case.run((), {i: [0], x: [[1.0, 2.0]], shape: [3, 2]}, loose)
        case.run(count)


def accumulated_sparse_without_shape(case):
    graph = case.graph
    made = graph.add("SparseConditionalAccumulator", dtype="double", shape=None)
    step, i, x = graph.const(0, "int64"), graph.placeholder("int64", "i"), graph.placeholder("double")
    shape = graph.placeholder("int64", "shape")
    put = graph.add("SparseAccumulatorApplyGradient", made, step, i, x, shape, has_known_shape=False)
    take = graph.add("SparseAccumulatorTakeGradient", made, graph.const(1), dtype="double")
    case.run((), {i: [5, 1], x: [[1.0], [3.0]], shape: []}, put)
    case.run((), {i: [1, 1], x: [[1.0], [3.0]], shape: []}, put)
    case.run((), {i: [1], x: [[1.0, 4.0]], shape: []}, put)
    case.run(take)


def _stage(case, **more):
    graph = case.graph
    where = {"shared_name": "area", **more}
    x, s, i = graph.placeholder(), graph.placeholder("string", "s"), graph.placeholder("int32", "i")
    types = {"dtypes": ["float", "string"]}
    put = graph.add("Stage", [x, s], **where)
    take = graph.add("Unstage", **where, **types)
    peek = graph.add("StagePeek", i, **where, **types)
    size, clear = graph.add("StageSize", **where, **types), graph.add("StageClear", **where, **types)
    return (x, s, i), put, take, peek, size, clear


def staged(case):
    (x, s, i), put, take, peek, size, clear = _stage(case)
    case.run(size)
    case.run((), {x: 1.0, s: b"a"}, put)
    case.run((), {x: [2.0, 3.0], s: [b"b"]}, put)
    case.run(size)
    case.run(peek, {i: 1})
    case.run(take)
    case.start("peek", peek, {i: 1})
    case.state("peek")
    case.run((), {x: 4.0, s: b"c"}, put)
    case.finish("peek")
    case.do(clear)
    case.run(size)
    case.start("take", take)
    case.state("take")
    case.run((), {x: 5.0, s: b"d"}, put)
    case.finish("take")


def staged_up_to_a_capacity(case):
    (x, s, i), put, take, peek, size, clear = _stage(case, capacity=1)
    case.run((), {x: 1.0, s: b"a"}, put)
    case.start("put", (), {x: 2.0, s: b"b"}, put)
    case.state("put")
    case.run(take)
    case.finish("put")
    case.run(take)


def staged_up_to_a_limit(case):
    (x, s, i), put, take, peek, size, clear = _stage(case, memory_limit=60)
    case.run((), {x: [1.0] * 7, s: b"a"}, put)
    case.run(size)
    case.start("put", (), {x: [2.0] * 7, s: b"b"}, put)
    case.state("put")
    case.run((), {x: [1.0] * 100, s: b"a"}, put)
    case.do(clear)
    case.finish("put")
    case.run(take)


def stage_misfits(case):
    graph = case.graph
    case.do(graph.add("Stage", [graph.const(1.0)], shared_name="a"))
    case.run(graph.add("Unstage", shared_name="a", dtypes=["float", "float"]))
    case.do(graph.add("Stage", [graph.const(1.0)], shared_name="a"))
    case.run(graph.add("Unstage", shared_name="a", dtypes=["int32"]))
    case.run(graph.add("StagePeek", graph.const(-1), shared_name="a", dtypes=["float"]), timeout=200)


def _map_stage(case, prefix, **more):
    graph = case.graph
    types = {"dtypes": ["float", "string"]}
    where = {"shared_name": "map", **more}
    key, x, s = graph.placeholder("int64", "key"), graph.placeholder(), graph.placeholder("string", "s")
    indices = graph.placeholder("int32", "indices")
    add = lambda op, *inputs, **attrs: graph.add(prefix + op, *inputs, **where, **attrs)
    return (key, indices, x, s), {
        "both": add("Stage", key, indices, [x, s], **types),
        "one": add("Stage", key, indices, [x], **types),
        "other": add("Stage", key, indices, [s], **types),
        "take": add("Unstage", key, indices, **types),
        "take_first": add("Unstage", key, indices, dtypes=["float"]),
        "any": add("UnstageNoKey", indices, **types),
        "peek": add("Peek", key, indices, **types),
        "size": add("Size", **types),
        "incomplete": add("IncompleteSize", **types),
        "clear": add("Clear", **types),
    }


def _mapped(case, prefix):
    (key, indices, x, s), ops = _map_stage(case, prefix)
    sizes = [ops["size"], ops["incomplete"]]
    case.run((), {key: 3, indices: [0, 1], x: 1.0, s: b"three"}, ops["both"])
    case.run((), {key: 1, indices: [0, 1], x: 2.0, s: b"one"}, ops["both"])
    case.run(sizes)
    case.run((), {key: 2, indices: [0], x: 3.0}, ops["one"])
    case.run(sizes)
    case.run((), {key: 2, indices: [1], s: b"two"}, ops["other"])
    case.run(sizes)
    case.run(ops["peek"], {key: 3, indices: [0, 1]})
    case.run(ops["take"], {key: 3, indices: [0, 1]})
    case.start("waits", ops["take"], {key: 9, indices: [0, 1]})
    case.state("waits")
    case.run((), {key: 9, indices: [1], s: b"nine"}, ops["other"])
    case.state("waits")
    case.run((), {key: 9, indices: [0], x: 9.0}, ops["one"])
    case.finish("waits")
    if prefix == "OrderedMap":
        case.run(ops["any"], {indices: [0, 1]})
    else:
        case.run(ops["take"], {key: 1, indices: [0, 1]})
    case.run(ops["any"], {indices: [0, 1]})
    case.run(sizes)
    case.start("any", ops["any"], {indices: [0, 1]})
    case.state("any")
    case.run((), {key: 5, indices: [0, 1], x: 5.0, s: b"five"}, ops["both"])
    case.finish("any")
    case.run((), {key: 7, indices: [0, 1], x: 7.0, s: b"seven"}, ops["both"])
    case.run(ops["take_first"], {key: 7, indices: [0]})
    case.run(sizes)
    case.do(ops["clear"])
    case.run(sizes)


def staged_by_key(case):
    _mapped(case, "Map")


def staged_by_key_in_order(case):
    _mapped(case, "OrderedMap")


def map_stage_misfits(case):
    (key, indices, x, s), ops = _map_stage(case, "Map")
    case.run((), {key: 1, indices: [0], x: 1.0}, ops["one"])
    case.run((), {key: 1, indices: [0], x: 1.0}, ops["one"])
    case.run((), {key: 1, indices: [7], x: 1.0}, ops["one"])
    case.run((), {key: 1, indices: [1], x: 1.0}, ops["one"])
    case.run((), {key: 2, indices: [0], x: 1.0, s: b""}, ops["both"])
    case.run((), {key: 2, indices: [0, 0], x: 1.0, s: b""}, ops["both"])
    case.run((), {key: 4, indices: [0, 1], x: 1.0, s: b"four"}, ops["both"])
    case.run((), {key: 4, indices: [0, 1], x: 1.0, s: b"four"}, ops["both"])
    case.run(ops["peek"], {key: 4, indices: [0, 3]})
    case.run(ops["take_first"], {key: 4, indices: [1]})
    case.run(ops["peek"], {key: 4, indices: [0]})
    case.run(ops["peek"], {key: 77, indices: [0, 1]}, timeout=100)


def map_stage_with_limits(case):
    (key, indices, x, s), ops = _map_stage(case, "Map", capacity=1)
    case.run((), {key: 1, indices: [0, 1], x: 1.0, s: b"a"}, ops["both"])
    case.start("put", (), {key: 2, indices: [0, 1], x: 2.0, s: b"b"}, ops["both"])
    case.state("put")
    case.run(ops["take"], {key: 1, indices: [0, 1]})
    case.finish("put")
    case.run(ops["size"])


def map_stage_with_little_memory(case):
    (key, indices, x, s), ops = _map_stage(case, "OrderedMap", memory_limit=40)
    case.run((), {key: 1, indices: [0, 1], x: [1.0] * 20, s: b"a"}, ops["both"])
    case.run((), {key: 1, indices: [0], x: [1.0] * 8}, ops["one"])
    case.run([ops["size"], ops["incomplete"]])


def mutex(case):
    graph = case.graph
    made = graph.add("MutexV2", name="m")
    queue = graph.add("FIFOQueueV2", name="q", component_types=["int32"])
    lock = graph.add("MutexLock", made, name="first")
    take = graph.add("QueueDequeueV2", queue, component_types=["int32"], control=[lock])
    free = graph.add("ConsumeMutexLock", lock, control=[take], name="free")
    second = graph.add("MutexLock", made, name="second")
    free_second = graph.add("ConsumeMutexLock", second, name="free_second")
    put = graph.add("QueueEnqueueV2", queue, [graph.const(1)])
    case.start("holds", take, None, [free])
    case.start("waits", (), None, [free_second])
    case.state("holds")
    case.state("waits")
    case.run((), None, [free_second], timeout=100)
    case.do(put)
    case.finish("holds")
    case.finish("waits")
    case.do(free_second)


def mutex_twice_in_one_step(case):
    graph = case.graph
    made = graph.add("MutexV2", name="m")
    lock = graph.add("MutexLock", made, name="first")
    second = graph.add("MutexLock", made, name="second", control=[lock])
    free = graph.add("ConsumeMutexLock", lock, control=[second], name="free")
    case.run((), None, [free], timeout=200)


def mutex_given_back_by_a_step(case):
    graph = case.graph
    made = graph.add("MutexV2", name="m")
    lock = graph.add("MutexLock", made, name="first")
    case.do(lock)
    case.do(lock)
    again = graph.add("ConsumeMutexLock", lock, name="again")
    case.do(again)
    case.do(graph.add("ConsumeMutexLock", graph.add("MutexV2", name="other")))


def closed_with_all_kinds_waiting(case):
    """What waiters of each kind are told when the session is closed."""
    graph = case.graph
    barrier = graph.add("Barrier", name="b", component_types=["float"], shapes=[[]])
    case.start("barrier", graph.add("BarrierTakeMany", barrier, graph.const(1), component_types=["float"]))
    accumulator = graph.add("ConditionalAccumulator", name="a", dtype="float", shape=[])
    case.start("accumulator", graph.add("AccumulatorTakeGradient", accumulator, graph.const(1), dtype="float"))
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float"], capacity=1, shapes=[[]])
    case.start("queue", graph.add("QueueDequeueManyV2", queue, graph.const(5), component_types=["float"]))
    put = graph.add("QueueEnqueueManyV2", queue, [graph.const([1.0] * 9)])
    case.start("put", (), None, put)
    case.other("close")
    for key in ("barrier", "accumulator", "queue", "put"):
        case.finish(key)


CASES = [
    barrier_fills_up, barrier_misfits, barrier_makers, barrier_closed, barrier_closed_while_taking, barrier_waits_for_incomplete,
    barrier_cancelled_while_taking, barrier_deadline, accumulated, accumulated_in_a_resource, accumulated_sum, accumulator_misfits,
    accumulator_shared, accumulated_sparse, accumulated_sparse_without_shape, staged, staged_up_to_a_capacity,
    staged_up_to_a_limit, stage_misfits, staged_by_key, staged_by_key_in_order, map_stage_misfits, map_stage_with_limits,
    map_stage_with_little_memory, mutex, mutex_twice_in_one_step, mutex_given_back_by_a_step, closed_with_all_kinds_waiting,
]  # fmt: skip
