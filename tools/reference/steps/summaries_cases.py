"""Writers of event files: what is in the files but for the time, order of making, using and closing, what does not fit."""


def _created(graph, name="w", folder="logs", most=10):
    writer = graph.add("SummaryWriter", shared_name=name)
    arguments = [graph.const(folder), graph.const(most, "int32"), graph.const(1_000_000, "int32"), graph.const(".x")]
    return writer, graph.add("CreateSummaryFileWriter", writer, *arguments)


def _contents(case, folder="logs"):
    """A step that reads the records of a folder's files, without the time at their start."""
    graph = case.graph
    files = graph.add("MatchingFiles", graph.const(folder + "/events.out.tfevents.*.x"))
    queue = graph.add("FIFOQueueV2", component_types=["string"], shapes=[[]])
    enqueue = graph.add("QueueEnqueueManyV2", queue, [files])
    reader = graph.add("TFRecordReaderV2")
    case.do(enqueue)
    _, values = graph.add("ReaderReadUpToV2", reader, queue, graph.const(100, "int64"))
    case.run(graph.add("Substr", values, graph.const(9, "int32"), graph.const(10000, "int32")))


def _step(graph, number):
    return graph.const(number, "int64")


def _summary(tag):
    return bytes([10, 8, 10, 1]) + tag + b"\x15\x00\x00\x80\x3f"


def kinds_of_events(case):
    graph = case.graph
    writer, create = _created(graph)
    tag = graph.const("t")
    case.do(create)
    case.do(create)
    for index, dtype in enumerate(("float", "double", "half", "int32", "int64", "uint8", "uint64")):
        case.do(graph.add("WriteScalarSummary", writer, _step(graph, index), tag, graph.const(3, dtype)))
    case.do(graph.add("WriteScalarSummary", writer, _step(graph, 7), tag, graph.const([2.5])))
    case.do(graph.add("WriteHistogramSummary", writer, _step(graph, 8), tag, graph.const([[1.5, -2.0], [0.0, 1e30]])))
    case.do(graph.add("WriteHistogramSummary", writer, _step(graph, 9), tag, graph.const([1, 2], "int64")))
    sounds = graph.const([[0.0, 0.5, -0.5], [1.5, 0.25, -2.0]])
    case.do(graph.add("WriteAudioSummary", writer, _step(graph, 10), tag, sounds, graph.const(8000.0)))
    case.do(graph.add("WriteAudioSummary", writer, _step(graph, 11), tag, sounds, graph.const(8000.0), max_outputs=1))
    for metadata in (b"", b"\n\x03\n\x01p"):
        case.do(graph.add("WriteSummary", writer, _step(graph, 12), graph.const([[1, 2]]), tag, graph.const(metadata)))
        case.do(graph.add("WriteSummary", writer, _step(graph, 13), graph.const(["a", ""]), tag, graph.const(metadata)))
    raw = graph.const([_summary(b"a"), _summary(b"b") + _summary(b"a")])
    case.do(graph.add("WriteRawProtoSummary", writer, _step(graph, 14), raw))
    case.do(graph.add("WriteGraphSummary", writer, _step(graph, 15), graph.const(b"\n\x03\n\x01a")))
    case.do(graph.add("WriteGraphSummary", writer, _step(graph, 16), graph.const("")))
    case.do(graph.add("ImportEvent", writer, graph.const(b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x11")))
    case.do(graph.add("FlushSummaryWriter", writer))
    _contents(case)


def events_wait(case):
    graph = case.graph
    writer, create = _created(graph, most=1)
    write = graph.add("WriteScalarSummary", writer, _step(graph, 1), graph.const("t"), graph.const(1.0))
    close = graph.add("CloseSummaryWriter", writer)
    case.do(create)
    _contents(case)
    case.do(write)
    _contents(case)
    case.do(write)
    _contents(case)
    case.do(write)
    case.do(close)
    _contents(case)
    case.do(write)
    case.do(close)


def what_does_not_fit(case):
    graph = case.graph
    writer, create = _created(graph)
    tag, nonsense = graph.const("t"), graph.const(b"\x7fzz")
    one = _step(graph, 1)
    number = graph.add("WriteScalarSummary", writer, one, tag, graph.const(1.0))
    case.do(number)
    case.do(graph.add("FlushSummaryWriter", writer))
    case.do(graph.add("CloseSummaryWriter", writer))
    case.do(create)
    case.do(number)
    case.do(graph.add("WriteScalarSummary", writer, one, tag, graph.const(1.0, "bfloat16")))
    case.do(graph.add("WriteHistogramSummary", writer, one, tag, graph.const(float("nan"))))
    case.do(graph.add("WriteImageSummary", writer, one, tag, graph.const([1.0]), graph.const([1], "uint8")))
    image = graph.const([[[[1.0, 2.0, 3.0]]]])
    case.do(graph.add("WriteImageSummary", writer, one, tag, image, graph.const([1], "uint8")))
    case.do(graph.add("WriteAudioSummary", writer, one, tag, graph.const([[0.5]]), graph.const(0.0)))
    case.do(graph.add("WriteRawProtoSummary", writer, one, nonsense))
    case.do(graph.add("WriteGraphSummary", writer, one, nonsense))
    case.do(graph.add("ImportEvent", writer, nonsense))
    case.do(graph.add("CloseSummaryWriter", writer))
    case.do(number)


CASES = [kinds_of_events, events_wait, what_does_not_fit]
