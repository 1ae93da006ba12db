"""Stacks, arrays, lists and maps of tensors, and optional values: order, lifetimes, what does not fit."""


def stacks(case):
    graph = case.graph
    for version in ("", "V2"):
        size = [graph.const(2)] if version else []
        stack = graph.add("Stack" + version, *size, elem_type="float", stack_name="s")
        one = graph.add("StackPush" + version, stack, graph.const([1.0]))
        two = graph.add("StackPush" + version, stack, graph.const(2.0), control=[one])
        first = graph.add("StackPop" + version, stack, elem_type="float", control=[two])
        second = graph.add("StackPop" + version, stack, elem_type="float", control=[first])
        third = graph.add("StackPop" + version, stack, elem_type="float", control=[second])
        case.run((one, two, first, second))
        case.run((first, second, third))
        case.run(graph.add("StackPop" + version, stack, elem_type="float"))
        full = graph.add("StackPush" + version, stack, graph.const(3.0), control=[two])
        case.run(graph.add("StackPop" + version, stack, elem_type="float", control=[full]))
        case.run(graph.add("StackPush" + version, stack, graph.const(3)))
        case.run(graph.add("StackPop" + version, stack, elem_type="int32", control=[one]))
        close = graph.add("StackClose" + version, stack, control=[one])
        case.do(close)
        case.run(graph.add("StackPop" + version, stack, elem_type="float", control=[close]))
        case.run(graph.add("StackPush" + version, stack, graph.const(3.0), swap_memory=True))
    case.run(graph.add("StackPushV2", graph.add("StackV2", graph.const([2, 2]), elem_type="float"), graph.const(1.0)))
    unbounded = graph.add("StackV2", graph.const(-1), elem_type="float")
    case.run(graph.add("StackPushV2", unbounded, graph.const(1.0)))


def _array(case, version, size=3, dtype="float", **more):
    """An array of a version: (handle, flow); the first versions have no flow."""
    graph = case.graph
    made = graph.add("TensorArray" + version, graph.const(size), dtype=dtype, **more)
    return (made[0], made[1]) if version == "V3" else (made, graph.const(0.0, control=[made]))


def _per_version(case, what):
    for version in ("", "V2", "V3"):
        what(case, case.graph, version)


def arrays_are_written_and_read(case):
    def what(case, graph, version):
        handle, flow = _array(case, version, clear_after_read=False)
        index, value = graph.placeholder("int32", "index"), graph.placeholder("float", "value")
        write = graph.add("TensorArrayWrite" + version, handle, index, value, flow)
        read = graph.add("TensorArrayRead" + version, handle, index, write, dtype="float")
        for at, element in ((0, 1.0), (2, [1.0, 2.0]), (3, 1.0), (-1, 1.0), ([1, 2], 1.0)):
            case.run(read, {index: at, value: element})
        case.run(graph.add("TensorArrayRead" + version, handle, graph.const(1), write, dtype="float"), {index: 0, value: 1.0})
        case.run(graph.add("TensorArrayRead" + version, handle, index, write, dtype="int32"), {index: 0, value: 1.0})
        twice = graph.add("TensorArrayWrite" + version, handle, index, value, write)
        case.run(twice, {index: 0, value: 1.0})
        case.run(graph.add("TensorArrayWrite" + version, handle, index, graph.const(1), flow), {index: 0})
        other = graph.add("TensorArrayWrite" + version, handle, graph.const(1), graph.const([1.0, 2.0]), write)
        case.run(other, {index: 0, value: 1.0})
        case.run(graph.add("TensorArraySize" + version, handle, write), {index: 0, value: 1.0})
        close = graph.add("TensorArrayClose" + version, handle, control=[write])
        case.run((), {index: 0, value: 1.0}, close)
        gone = graph.add("TensorArrayRead" + version, handle, index, write, dtype="float", control=[close])
        case.run(gone, {index: 0, value: 1.0})
    _per_version(case, what)


def arrays_are_cleared_by_reading(case):
    def what(case, graph, version):
        handle, flow = _array(case, version)
        write = graph.add("TensorArrayWrite" + version, handle, graph.const(0), graph.const(5.0), flow)
        first = graph.add("TensorArrayRead" + version, handle, graph.const(0), write, dtype="float")
        second = graph.add("TensorArrayRead" + version, handle, graph.const(0), write, dtype="float", control=[first])
        case.run(first)
        case.run(second)
        again = graph.add("TensorArrayWrite" + version, handle, graph.const(0), graph.const(6.0), flow, control=[first])
        case.run(graph.add("TensorArrayRead" + version, handle, graph.const(0), again, dtype="float"))
    _per_version(case, what)


def arrays_grow(case):
    def what(case, graph, version):
        handle, flow = _array(case, version, size=0, dynamic_size=True, element_shape=[None])
        write = graph.add("TensorArrayWrite" + version, handle, graph.const(2), graph.const([5.0]), flow)
        size = graph.add("TensorArraySize" + version, handle, write)
        case.run(size)
        case.run(graph.add("TensorArrayGather" + version, handle, graph.const([2]), write, dtype="float"))
        case.run(graph.add("TensorArrayGather" + version, handle, graph.const([0, 2]), write, dtype="float"))
        case.run(graph.add("TensorArrayWrite" + version, handle, graph.const(0), graph.const(5.0), flow))
        case.run(graph.add("TensorArrayRead" + version, handle, graph.const(1), write, dtype="float"))
    _per_version(case, what)


def arrays_in_bulk(case):
    def what(case, graph, version):
        handle, flow = _array(case, version, size=3, clear_after_read=False)
        value, indices = graph.placeholder("float", "value"), graph.placeholder("int32", "indices")
        lengths = graph.placeholder("int64", "lengths")
        scatter = graph.add("TensorArrayScatter" + version, handle, indices, value, flow)
        gather = graph.add("TensorArrayGather" + version, handle, indices, scatter, dtype="float")
        concat = graph.add("TensorArrayConcat" + version, handle, scatter, dtype="float")
        matrix = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        case.run(gather, {value: matrix, indices: [2, 0, 1]})
        case.run(gather, {value: matrix, indices: [2, 0, 3]})
        case.run(gather, {value: matrix, indices: [2, 0]})
        case.run(gather, {value: 1.0, indices: [2, 0, 1]})
        case.run(gather, {value: matrix, indices: [[2, 0, 1]]})
        case.run(concat, {value: matrix, indices: [2, 0, 1]})
        case.run(concat, {value: [1.0, 2.0, 3.0], indices: [2, 0, 1]})
        partly = graph.add("TensorArrayGather" + version, handle, graph.const([1]), scatter, dtype="float")
        case.run(partly, {value: matrix[:1], indices: [1]})
        case.run(concat, {value: matrix[:1], indices: [1]})
        shaped = graph.add("TensorArrayGather" + version, handle, indices, scatter, dtype="float", element_shape=[3])
        case.run(shaped, {value: matrix, indices: [2, 0, 1]})
        split = graph.add("TensorArraySplit" + version, handle, value, lengths, flow)
        parts = graph.add("TensorArrayConcat" + version, handle, split, dtype="float")
        part = graph.add("TensorArrayRead" + version, handle, graph.const(1), split, dtype="float")
        for given in ([1, 2, 0], [1, 1, 2], [3, 0], [[1, 2, 0]], [-1, 2, 2]):
            case.run(parts, {value: matrix, lengths: given})
            case.run(part, {value: matrix, lengths: given})
        case.run(parts, {value: 1.0, lengths: [1, 0, 0]})
    _per_version(case, what)


def arrays_of_the_first_version(case):
    graph = case.graph
    handle, flow = _array(case, "", size=2)
    unpack = graph.add("TensorArrayUnpack", handle, graph.const([[1.0], [2.0]]), flow)
    case.run(graph.add("TensorArrayPack", handle, unpack, dtype="float"))
    more = graph.add("TensorArrayUnpack", handle, graph.const([[1.0], [2.0], [3.0]]), flow)
    case.run(graph.add("TensorArrayPack", handle, more, dtype="float"))


def arrays_of_gradients(case):
    def what(case, graph, version):
        handle, flow = _array(case, version, size=2, clear_after_read=False)
        write = graph.add("TensorArrayWrite" + version, handle, graph.const(0), graph.const([5.0]), flow)
        grad = graph.add("TensorArrayGrad" + version, handle, write, source="g")
        grad, its = (grad[0], grad[1]) if version == "V3" else (grad, graph.const(0.0, control=[grad]))
        one = graph.add("TensorArrayWrite" + version, grad, graph.const(0), graph.const([1.0]), its)
        two = graph.add("TensorArrayWrite" + version, grad, graph.const(0), graph.const([2.5]), one)
        case.run(graph.add("TensorArrayRead" + version, grad, graph.const(0), two, dtype="float"))
        case.run(graph.add("TensorArrayRead" + version, grad, graph.const(1), two, dtype="float"))
        case.run(graph.add("TensorArraySize" + version, grad, two))
        case.run(graph.add("TensorArrayWrite" + version, grad, graph.const(0), graph.const([2.5, 1.0]), one))
    _per_version(case, what)
    graph = case.graph
    handle, flow = _array(case, "V3", size=1, element_shape=[2], identical_element_shapes=True)
    grad = graph.add("TensorArrayGradWithShape", handle, flow, graph.const([3]), source="g")
    put = graph.add("TensorArrayWriteV3", grad[0], graph.const(0), graph.const([[1.0, 2.0]] * 3), grad[1])
    case.run(graph.add("TensorArrayReadV3", grad[0], graph.const(0), put, dtype="float"))
    dynamic, flow = _array(case, "V3", size=1, dynamic_size=True)
    case.run(graph.add("TensorArrayGradV3", dynamic, flow, source="g")[1])


def arrays_misfit(case):
    graph = case.graph
    case.run(graph.add("TensorArrayV3", graph.const(-1), dtype="float")[1])
    case.run(graph.add("TensorArrayV3", graph.const([1, 2]), dtype="float")[1])
    handle, flow = _array(case, "V3", size=2, element_shape=[2])
    case.run(graph.add("TensorArrayWriteV3", handle, graph.const(0), graph.const([1.0]), flow))
    same, flow = _array(case, "V3", size=2, identical_element_shapes=True)
    one = graph.add("TensorArrayWriteV3", same, graph.const(0), graph.const([1.0]), flow)
    case.run(graph.add("TensorArrayWriteV3", same, graph.const(1), graph.const([1.0, 2.0]), one))
    case.run(graph.add("TensorArrayGatherV3", same, graph.const([0, 1]), one, dtype="float"))
    empty, flow = _array(case, "V3", size=0, element_shape=[2])
    case.run(graph.add("TensorArrayGatherV3", empty, graph.const([], "int32"), flow, dtype="float", element_shape=[2]))
    case.run(graph.add("TensorArrayConcatV3", empty, flow, dtype="float", element_shape_except0=[2]))
    case.run(graph.add("TensorArrayConcatV3", empty, flow, dtype="float"))


def _list(graph, values, shape=(), dtype="float"):
    """A list of tensors, one by one."""
    made = graph.add("EmptyTensorList", graph.const(list(shape), "int32"), graph.const(-1), element_dtype=dtype)
    for value in values:
        made = graph.add("TensorListPushBack", made, graph.const(value, dtype))
    return made


def lists_grow_and_shrink(case):
    graph = case.graph
    made = _list(graph, [1.0, 2.0, 3.0])
    shape = graph.const([], "int32")
    case.run(graph.add("TensorListLength", made))
    back = graph.add("TensorListPopBack", made, shape, element_dtype="float")
    case.run((back[1], graph.add("TensorListLength", back[0])))
    case.run(graph.add("TensorListPopBack", _list(graph, []), shape, element_dtype="float")[1])
    for index in (0, 2, 3, -1):
        case.run(graph.add("TensorListGetItem", made, graph.const(index), shape, element_dtype="float"))
        changed = graph.add("TensorListSetItem", made, graph.const(index), graph.const(9.0))
        case.run(graph.add("TensorListStack", changed, shape, element_dtype="float"))
        grown = graph.add("TensorListSetItem", made, graph.const(index), graph.const(9.0), resize_if_index_out_of_bounds=True)
        case.run(graph.add("TensorListStack", grown, shape, element_dtype="float"))
    for size in (1, 5, -1):
        resized = graph.add("TensorListResize", made, graph.const(size))
        case.run(graph.add("TensorListLength", resized))
        case.run(graph.add("TensorListStack", resized, shape, element_dtype="float"))
    bounded = graph.add("EmptyTensorList", shape, graph.const(1), element_dtype="float")
    one = graph.add("TensorListPushBack", bounded, graph.const(1.0))
    case.run(graph.add("TensorListLength", graph.add("TensorListPushBack", one, graph.const(1.0))))
    for out in ("int32", "int64"):
        case.run(graph.add("TensorListElementShape", made, shape_type=out))
        case.run(graph.add("TensorListElementShape", graph.add("EmptyTensorList", graph.const(-1), graph.const(-1), element_dtype="float"), shape_type=out))
    case.run(graph.add("TensorListLength", graph.add("TensorListPushBack", made, graph.const([1.0]))))
    case.run(graph.add("TensorListLength", graph.add("TensorListPushBack", made, graph.const(1))))
    case.run(graph.add("TensorListGetItem", made, graph.const(0), shape, element_dtype="int32"))


def lists_reserved(case):
    graph = case.graph
    for shape, at in (([2], [2]), ([-1], [2]), (-1, [-1])):
        made = graph.add("TensorListReserve", graph.const(shape, "int32"), graph.const(3), element_dtype="float")
        wanted = graph.const(at, "int32")
        case.run(graph.add("TensorListLength", made))
        case.run(graph.add("TensorListGetItem", made, graph.const(1), wanted, element_dtype="float"))
        some = graph.add("TensorListSetItem", made, graph.const(1), graph.const([1.0, 2.0]))
        case.run(graph.add("TensorListStack", some, wanted, element_dtype="float"))
        case.run(graph.add("TensorListStack", some, wanted, element_dtype="float", num_elements=2))
        case.run(graph.add("TensorListGather", some, graph.const([1, 0]), wanted, element_dtype="float"))
        case.run(graph.add("TensorListGather", some, graph.const([3]), wanted, element_dtype="float"))
        case.run(graph.add("TensorListStack", made, wanted, element_dtype="float"))
    case.run(graph.add("TensorListLength", graph.add("TensorListReserve", wanted, graph.const(-1), element_dtype="float")))


def lists_in_bulk(case):
    graph = case.graph
    shape, wild = graph.const([2], "int32"), graph.const([-1], "int32")
    x, i = graph.placeholder(), graph.placeholder("int32", "i")
    lengths = graph.placeholder("int64", "lengths")
    matrix = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    made = graph.add("TensorListFromTensor", x, shape)
    stack = graph.add("TensorListStack", made, shape, element_dtype="float")
    gather = graph.add("TensorListGather", made, i, shape, element_dtype="float")
    concat = graph.add("TensorListConcat", made, element_dtype="float", element_shape=[2])
    concat_v2 = graph.add("TensorListConcatV2", made, wild, lengths, element_dtype="float")
    for value in (matrix, [1.0, 2.0], 1.0, [[1.0], [2.0]], [[]]):
        case.run(stack, {x: value})
        case.run(concat, {x: value})
        case.run(concat_v2, {x: value, lengths: [2, 2, 2]})
    case.run(gather, {x: matrix, i: [2, 0]})
    case.run(gather, {x: matrix, i: [2, -1]})
    case.run(gather, {x: matrix, i: []})
    scattered = [
        graph.add("TensorListScatter", x, i, shape),
        graph.add("TensorListScatterV2", x, i, shape, graph.const(4)),
        graph.add("TensorListScatterIntoExistingList", graph.add("TensorListFromTensor", graph.const(matrix), shape), x, i),
    ]  # fmt: skip
    for list_ in scattered:
        whole = graph.add("TensorListStack", list_, shape, element_dtype="float")
        for at in ([2, 0, 1], [0, 1], [1, 1, 0]) if list_ == scattered[-1] else ([2, 0, 1], [5, 0, 1], [-1, 0, 1], [0, 1], [1, 1, 0]):
            case.run(whole, {x: matrix, i: at})
    split = graph.add("TensorListSplit", x, wild, lengths)
    part = graph.add("TensorListGetItem", split, graph.const(0), wild, element_dtype="float")
    for value, given in ((matrix, [1, 2]), ([1.0, 2.0, 3.0], [1, 2]), ([1.0, 2.0], [1, 2]), ([1.0, 2.0], [3, -1]), (1.0, [1])):
        case.run(part, {x: value, lengths: given})
        case.run(graph.add("TensorListConcatV2", split, wild, lengths, element_dtype="float"), {x: value, lengths: given})
    both = graph.add("TensorListConcatLists", made, made, element_dtype="float")
    case.run(graph.add("TensorListStack", both, shape, element_dtype="float"), {x: matrix})
    handles = graph.add("Pack", [made, made])
    batch = graph.add("TensorListPushBackBatch", handles, x)
    first = graph.add("Unpack", batch, num=2)[1]
    case.run(graph.add("TensorListStack", first, shape, element_dtype="float"), {x: [[7.0, 8.0], [9.0, 10.0]]})


def maps(case):
    graph = case.graph
    empty = graph.add("EmptyTensorMap")
    one = graph.add("TensorMapInsert", empty, graph.const("a"), graph.const([1.0]))
    two = graph.add("TensorMapInsert", one, graph.const("b"), graph.const([2.0, 3.0]))
    over = graph.add("TensorMapInsert", two, graph.const("a"), graph.const([4.0]))
    for made in (empty, one, two, over):
        case.run(graph.add("TensorMapSize", made))
        case.run(graph.add("TensorMapHasKey", made, graph.const("b")))
        case.run(graph.add("TensorMapLookup", made, graph.const("a"), value_dtype="float"))
        gone = graph.add("TensorMapErase", made, graph.const("a"), value_dtype="float")
        case.run(graph.add("TensorMapSize", gone))
    case.run(graph.add("TensorMapStackKeys", one, key_dtype="string"))
    case.run(graph.add("TensorMapStackKeys", empty, key_dtype="string"))
    case.run(graph.add("TensorMapStackKeys", one, key_dtype="int32"))
    case.run(graph.add("TensorMapLookup", one, graph.const("a"), value_dtype="int32"))
    case.run(graph.add("TensorMapHasKey", one, graph.const(1)))
    case.run(graph.add("TensorMapSize", _list(graph, [1.0])))
    case.run(graph.add("TensorListLength", one))


def optional_values(case):
    graph = case.graph
    some = graph.add("OptionalFromValue", [graph.const([1.0, 2.0]), graph.const("x")])
    none = graph.add("OptionalNone")
    kinds = {"output_types": ["float", "string"], "output_shapes": [[2], []]}
    for optional in (some, none):
        case.run(graph.add("OptionalHasValue", optional))
        case.run(graph.add("OptionalGetValue", optional, **kinds))
    case.run(graph.add("OptionalGetValue", some, output_types=["float"], output_shapes=[[2]]))
    case.run(graph.add("OptionalGetValue", some, output_types=["int32", "string"], output_shapes=[[2], []]))
    case.run(graph.add("OptionalGetValue", some, output_types=["float", "string"], output_shapes=[[3], []]))
    case.run(graph.add("OptionalGetValue", some, output_types=["float", "string"], output_shapes=[None, None]))
    case.run(graph.add("OptionalHasValue", graph.add("EmptyTensorMap")))
    case.run(some)


CASES = [
    stacks, arrays_are_written_and_read, arrays_are_cleared_by_reading, arrays_grow, arrays_in_bulk, arrays_of_the_first_version,
    arrays_of_gradients, arrays_misfit, lists_grow_and_shrink, lists_reserved, lists_in_bulk, maps, optional_values,
]  # fmt: skip
