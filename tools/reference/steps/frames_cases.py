"""Control flow of version 1: frames, dead values, references, and graphs that nobody should write."""


def _loop(graph, limit=5, name="loop", next="next", **more):
    """i = 0; while i < limit: i = what the node `next` gives. Returns the nodes that enter, merge and switch."""
    enter = graph.add("Enter", graph.const(0), frame_name=name, **more)
    merge = graph.add("Merge", [enter, f"{next}:0"], name=f"{name}_merge")
    bound = graph.add("Enter", graph.const(limit), frame_name=name, is_constant=True, **more)
    more_turns = graph.add("LoopCond", graph.add("Less", merge[0], bound), name=f"{name}_more")
    switch = graph.add("Switch", merge[0], more_turns, name=f"{name}_switch")
    return enter, merge, switch


def _counting(graph, limit=5, **more):
    enter, merge, switch = _loop(graph, limit, **more)
    one = graph.const(1, control=[switch[1]])
    graph.add("NextIteration", graph.add("AddV2", switch[1], one), name="next")
    return graph.add("Exit", switch[0], name="exit"), switch


def counts(case):
    exit, _ = _counting(case.graph)
    case.run(exit)


def one_turn_at_a_time(case):
    exit, _ = _counting(case.graph, parallel_iterations=1)
    case.run(exit)


def fetched_from_within(case):
    exit, switch = _counting(case.graph)
    case.run(switch[1])
    case.run([exit, switch[0]])
    case.do("next")


def fed_within(case):
    graph = case.graph
    exit, switch = _counting(graph)
    case.run(exit, {switch[1]: 7})


def inputs_from_different_frames(case):
    graph = case.graph
    _, switch = _counting(graph)
    other = graph.add("Enter", graph.const(2), frame_name="other")
    mixed = graph.add("AddV2", switch[1], other, name="mixed")
    case.run(graph.add("Exit", mixed))


def input_of_no_frame(case):
    graph = case.graph
    exit, switch = _counting(graph)
    mixed = graph.add("AddV2", switch[1], graph.placeholder("int32"), name="mixed")
    case.run(exit, {"x:0": 1})
    case.run(graph.add("Exit", mixed), {"x:0": 1})


def constant_from_outside_in_a_body(case):
    graph = case.graph
    enter, merge, switch = _loop(graph)
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, name="outside")), name="next")
    case.run(graph.add("Exit", switch[0]))


def control_from_another_frame(case):
    graph = case.graph
    exit, switch = _counting(graph)
    after = graph.add("NoOp", control=[switch[1]])
    case.do(after)
    late = graph.const(3, control=[switch[1], exit])
    case.run(late)


def temporaries_of_turns(case):
    """Each turn has a variable of one name, which it adds its number to; the turns add up what they leave."""
    for name, at_once in ("loop", 10), ("second", 1):
        graph, more = case.graph, {"parallel_iterations": at_once}
        _, _, switch = _loop(graph, 40, name, f"{name}_next", **more)
        start = graph.add("Enter", graph.const(0), frame_name=name, **more)
        sum = graph.add("Merge", [start, f"{name}_sum:0"])
        sums = graph.add("Switch", sum[0], f"{name}_more:0")
        made = graph.add("TemporaryVariable", name=f"{name}_t", shape=[], dtype="int32", var_name="t", control=[switch[1]])
        first = graph.add("Assign", made, graph.const(100, control=[switch[1]]))
        second = graph.add("AssignAdd", first, switch[1])
        last = graph.add("DestroyTemporaryVariable", second, var_name="t")
        total = graph.add("AddV2", sums[1], last)
        graph.add("NextIteration", total, name=f"{name}_sum")
        one = graph.const(1, control=[switch[1]] + ([total] if at_once == 1 else []))
        graph.add("NextIteration", graph.add("AddV2", switch[1], one), name=f"{name}_next")
        case.run(graph.add("Exit", sums[0]))


def condition_that_is_dead(case):
    graph = case.graph
    p = graph.placeholder("bool", "p")
    bound = graph.add("Switch", graph.const(3), p)
    enter = graph.add("Enter", graph.const(0), frame_name="loop")
    merge = graph.add("Merge", [enter, "next:0"])
    limit = graph.add("Enter", bound[1], frame_name="loop", is_constant=True)
    switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], limit)))
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[switch[1]])), name="next")
    exit = graph.add("Exit", switch[0])
    joined = graph.add("Merge", [exit, bound[0]])
    after = graph.add("Merge", [graph.add("AddV2", exit, exit), bound[0]])
    for value in True, False, True:
        case.run([joined[0], joined[1], after[0]], {p: value})


def condition_that_dies_in_a_turn(case):
    graph = case.graph
    p = graph.placeholder("int32", "p")
    enter = graph.add("Enter", graph.const(0), frame_name="loop")
    merge = graph.add("Merge", [enter, "next:0"])
    last = graph.add("Enter", p, frame_name="loop", is_constant=True)
    limit = graph.add("Enter", graph.const(5), frame_name="loop", is_constant=True)
    lives = graph.add("Switch", limit, graph.add("Less", merge[0], last))
    switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], lives[1])))
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[switch[1]])), name="next")
    exit = graph.add("Exit", switch[0])
    case.run(exit, {p: 10})
    case.run(exit, {p: 3})
    case.run(exit, {p: 0})


def loop_without_an_exit(case):
    graph = case.graph
    enter, merge, switch = _loop(graph)
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[switch[1]])), name="next")
    case.do("next")


def exit_without_a_frame(case):
    graph = case.graph
    case.run(graph.add("Exit", graph.const(1)))


def next_iteration_without_a_frame(case):
    graph = case.graph
    step = graph.add("NextIteration", graph.const(1))
    case.do(step)
    case.run(step)


def cycle_without_next_iteration(case):
    graph = case.graph
    merge = graph.add("Merge", [graph.const(1), "add:0"], name="merge")
    graph.add("AddV2", merge[0], graph.const(1), name="add")
    case.run(merge[0])


def frame_with_two_names(case):
    graph = case.graph
    a = graph.add("Enter", graph.const(1), frame_name="a")
    b = graph.add("Enter", a, frame_name="b")
    case.run(graph.add("Exit", b))
    case.run(graph.add("Exit", graph.add("Exit", b)))
    case.run(b)


def one_frame_name_twice(case):
    """Two loops that are written with one frame's name are one frame."""
    graph = case.graph
    exits = []
    for index in range(2):
        enter = graph.add("Enter", graph.const(index), frame_name="same")
        merge = graph.add("Merge", [enter, f"step{index}:0"])
        bound = graph.add("Enter", graph.const(4), frame_name="same", is_constant=True)
        switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], bound)))
        graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[switch[1]])), name=f"step{index}")
        exits.append(graph.add("Exit", switch[0]))
    case.run(exits)
    case.run(exits[1])


def different_parallel_iterations(case):
    graph = case.graph
    a = graph.add("Enter", graph.const(1), frame_name="a", parallel_iterations=3)
    b = graph.add("Enter", graph.const(1), frame_name="a", parallel_iterations=4)
    case.run(graph.add("Exit", graph.add("AddV2", a, b)))


def parallel_iterations_of_nothing(case):
    graph = case.graph
    for count in (0, -1):
        a = graph.add("Enter", graph.const(1), frame_name=f"a{-count}", parallel_iterations=count)
        case.run(graph.add("Exit", a))


def frame_without_a_name(case):
    graph = case.graph
    case.run(graph.add("Exit", graph.add("Enter", graph.const(1), frame_name="")))


def dead_fetches(case):
    graph = case.graph
    p = graph.placeholder("bool", "p")
    switch = graph.add("Switch", graph.const(4), p, name="switch")
    case.run(switch[0], {p: False})
    case.run(switch[0], {p: True})
    case.run(switch, {p: True})
    negative = graph.add("Neg", switch[1], name="negative")
    case.run(negative, {p: False})
    case.run((), {p: False}, negative)
    case.run((), {p: False}, graph.add("NoOp", control=[negative]))
    case.run(graph.const(1, control=[negative]), {p: False})


def merges(case):
    graph = case.graph
    p, q = graph.placeholder("bool", "p"), graph.placeholder("bool", "q")
    a, b = graph.add("Switch", graph.const(1), p), graph.add("Switch", graph.const(2), q)
    merge = graph.add("Merge", [a[0], b[1]])
    case.run(merge, {p: True, q: True})
    case.run(merge, {p: False, q: False})
    case.run(merge, {p: True, q: False})
    case.run(graph.add("Merge", [graph.const(5)]), {})


def merge_of_two_that_live(case):
    graph = case.graph
    merge = graph.add("Merge", [graph.const(1), graph.const(2)])
    case.run(merge)


def switch_on_what_is_no_scalar(case):
    graph = case.graph
    p = graph.placeholder("bool", "p")
    switch = graph.add("Switch", graph.const(1), p)
    case.run(switch[0], {p: [True, False]})
    case.run(switch[1], {p: [True]})
    cond = graph.add("LoopCond", p)
    case.run(cond, {p: [True, False]})


def switch_of_many(case):
    graph = case.graph
    i = graph.placeholder("int32", "i")
    switch = graph.add("_SwitchN", graph.const(7), i, num_outs=3)
    merge = graph.add("Merge", [graph.add("Neg", switch[0]), switch[1], graph.add("Square", switch[2])])
    for index in (0, 1, 2, 3, -1):
        case.run(merge, {i: index})
    case.run(merge, {i: [1]})


def references(case):
    graph = case.graph
    p = graph.placeholder("bool", "p")
    variables = [graph.add("VariableV2", name=f"v{i}", shape=[], dtype="float") for i in range(2)]
    case.do(*[graph.add("Assign", v, graph.const(float(i + 1))) for i, v in enumerate(variables)])
    switch = graph.add("RefSwitch", variables[0], p)
    up = graph.add("AssignAdd", switch[1], graph.const(10.0))
    down = graph.add("AssignSub", switch[0], graph.const(10.0))
    merge = graph.add("RefMerge", [down, up])
    case.run(merge, {p: True})
    case.run(merge, {p: False})
    case.run(graph.add("AssignAdd", merge[0], graph.const(100.0)), {p: True})
    case.run(variables[0])
    i = graph.placeholder("int32", "i")
    select = graph.add("RefSelect", i, variables)
    case.run(select, {i: 0})
    case.run(select, {i: 1})
    case.run(graph.add("Assign", select, graph.const(77.0)), {i: 1})
    case.run(variables[1])
    case.run(select, {i: 2})
    case.run(select, {i: -1})
    case.run(select, {i: [0]})
    same = graph.add("RefIdentity", variables[1])
    case.run(graph.add("AssignAdd", same, graph.const(1.0)))


def references_in_a_loop(case):
    graph = case.graph
    v = graph.add("VariableV2", name="v", shape=[], dtype="float")
    set = graph.add("Assign", v, graph.const(1.0))
    case.do(set)
    enter = graph.add("RefEnter", v, frame_name="loop", is_constant=True)
    start = graph.add("Enter", graph.const(0), frame_name="loop", parallel_iterations=10)
    merge = graph.add("Merge", [start, "next:0"])
    bound = graph.add("Enter", graph.const(3), frame_name="loop", is_constant=True)
    switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], bound)))
    double = graph.add("AssignAdd", enter, graph.const(1.0, control=[switch[1]]))
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[double])), name="next")
    exit = graph.add("Exit", switch[0])
    case.run(exit)
    case.run(v)
    case.run(graph.add("RefExit", graph.add("RefEnter", v, frame_name="plain")))


def reference_through_turns(case):
    graph = case.graph
    v = graph.add("VariableV2", name="v", shape=[], dtype="float")
    case.do(graph.add("Assign", v, graph.const(1.0)))
    enter = graph.add("RefEnter", v, frame_name="loop")
    merge = graph.add("RefMerge", [enter, "next:0"])
    bound = graph.add("Enter", graph.const(5.0), frame_name="loop", is_constant=True)
    cond = graph.add("LoopCond", graph.add("Less", merge[0], bound))
    switch = graph.add("RefSwitch", merge[0], cond)
    more = graph.add("AssignAdd", switch[1], graph.const(1.0, control=[switch[1]]))
    graph.add("RefNextIteration", more, name="next")
    case.run(graph.add("RefExit", switch[0]))
    case.run(v)


def uninitialized(case):
    graph = case.graph
    v = graph.add("VariableV2", name="v", shape=[2], dtype="float")
    case.run(v)
    case.run(graph.add("Identity", v))
    case.run(graph.add("AssignAdd", v, graph.const([1.0, 2.0])))
    case.run(graph.add("IsVariableInitialized", v))
    p = graph.placeholder("bool", "p")
    case.run(graph.add("RefSwitch", v, p)[1], {p: True})


def loop_of_nothing_closed(case):
    """A loop without an end, from another thread."""
    graph = case.graph
    exit, _ = _counting(graph, limit=2**31 - 1)
    case.start("loops", exit)
    case.state("loops")
    case.other("close")
    case.finish("loops")


def loop_of_nothing_late(case):
    exit, _ = _counting(case.graph, limit=2**31 - 1)
    case.run(exit, timeout=200)


def waits_in_a_loop_and_closed(case):
    graph = case.graph
    queue = graph.add("FIFOQueueV2", name="q", component_types=["int32"])
    enter, merge, switch = _loop(graph)
    inner = graph.add("Enter", queue, frame_name="loop", is_constant=True)
    took = graph.add("QueueDequeueV2", inner, component_types=["int32"], control=[switch[1]], name="took")
    graph.add("NextIteration", graph.add("AddV2", switch[1], took), name="next")
    exit = graph.add("Exit", switch[0])
    case.do(graph.add("QueueEnqueueV2", queue, [graph.const(2)]))
    case.start("waits", exit)
    case.state("waits")
    case.other("close")
    case.finish("waits")


def fails_in_a_turn(case):
    graph = case.graph
    enter, merge, switch = _loop(graph, limit=3)
    less = graph.add("Sub", switch[1], graph.const(2, control=[switch[1]]))
    divided = graph.add("FloorDiv", graph.const(6, control=[switch[1]]), less, name="divided")
    one = graph.const(1, control=[divided])
    graph.add("NextIteration", graph.add("AddV2", switch[1], one), name="next")
    case.run(graph.add("Exit", switch[0]))


def a_loop_in_a_loop(case):
    graph = case.graph
    outer = graph.add("Enter", graph.const(0), frame_name="outer")
    merge = graph.add("Merge", [outer, "outer_next:0"])
    bound = graph.add("Enter", graph.const(3), frame_name="outer", is_constant=True)
    switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], bound)))
    inner = graph.add("Enter", switch[1], frame_name="inner")
    merge_in = graph.add("Merge", [inner, "inner_next:0"])
    limit = graph.const(2, control=[switch[1]])
    bound_in = graph.add("Enter", limit, frame_name="inner", is_constant=True)
    switch_in = graph.add("Switch", merge_in[0], graph.add("LoopCond", graph.add("Less", merge_in[0], bound_in)))
    graph.add("NextIteration", graph.add("AddV2", switch_in[1], graph.const(1, control=[switch_in[1]])), name="inner_next")
    out = graph.add("Exit", switch_in[0])
    graph.add("NextIteration", graph.add("AddV2", out, graph.const(1, control=[switch[1]])), name="outer_next")
    case.run(graph.add("Exit", switch[0]))


def nothing_to_loop_over(case):
    exit, _ = _counting(case.graph, limit=0)
    case.run(exit)


def dead_enter(case):
    graph = case.graph
    p = graph.placeholder("bool", "p")
    gate = graph.add("Switch", graph.const(0), p)
    enter = graph.add("Enter", gate[1], frame_name="loop")
    merge = graph.add("Merge", [enter, "next:0"])
    bound = graph.add("Enter", graph.const(3), frame_name="loop", is_constant=True)
    switch = graph.add("Switch", merge[0], graph.add("LoopCond", graph.add("Less", merge[0], bound)))
    graph.add("NextIteration", graph.add("AddV2", switch[1], graph.const(1, control=[switch[1]])), name="next")
    exit = graph.add("Exit", switch[0])
    joined = graph.add("Merge", [exit, gate[0]])
    case.run(joined, {p: True})
    case.run(joined, {p: False})


def control_triggers(case):
    graph = case.graph
    case.do(graph.add("ControlTrigger"))
    p = graph.placeholder("bool", "p")
    dead = graph.add("Switch", graph.const(1), p)
    trigger = graph.add("ControlTrigger", control=[dead[0]])
    case.run(graph.const(8, control=[trigger]), {p: True})


CASES = [
    counts, one_turn_at_a_time, fetched_from_within, fed_within, inputs_from_different_frames, input_of_no_frame,
    constant_from_outside_in_a_body, control_from_another_frame, loop_without_an_exit, exit_without_a_frame,
    next_iteration_without_a_frame, cycle_without_next_iteration, frame_with_two_names, one_frame_name_twice,
    different_parallel_iterations, parallel_iterations_of_nothing, frame_without_a_name, dead_fetches, merges,
    merge_of_two_that_live, switch_on_what_is_no_scalar, switch_of_many, references, references_in_a_loop,
    reference_through_turns, uninitialized, loop_of_nothing_closed, loop_of_nothing_late, waits_in_a_loop_and_closed,
    fails_in_a_turn, a_loop_in_a_loop, nothing_to_loop_over, dead_enter, control_triggers,
    temporaries_of_turns, condition_that_is_dead, condition_that_dies_in_a_turn,
]  # fmt: skip
