"""Plays cases on one library through its C API and writes what came of them.

    player.py LIBRARY CASES OUTCOMES

CASES and OUTCOMES are pickles: a list of {name, graph, config, files, steps} and a list of {name: lines}. Each case runs in
a process of its own, which is ended after a while. Does not import tensorflow.
"""

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
import traceback

import numpy as np

NUMPY = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64", 10: "bool",
    17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
NUMBERS = {name: number for number, name in NUMPY.items()}
STRING = 7
SETTLE = 0.15
LIMIT = 8

Pointer = ctypes.c_void_p


class Output(ctypes.Structure):
    """TF_Output."""

    _fields_ = [("oper", Pointer), ("index", ctypes.c_int)]


class Library:
    """The C functions that are called."""

    def __init__(self, path):
        self.all = ctypes.CDLL(path)
        for name in (
            "NewStatus NewGraph NewBufferFromString NewImportGraphDefOptions NewSessionOptions NewSession NewBuffer"
            " GraphOperationByName AllocateTensor TensorData StringGetDataPointer"
        ).split():
            getattr(self.all, "TF_" + name).restype = Pointer
        self.all.TF_Message.restype = ctypes.c_char_p
        for name in ("TensorByteSize", "Dim", "StringGetSize"):
            getattr(self.all, "TF_" + name).restype = ctypes.c_size_t

    def __getattr__(self, name):
        function = getattr(self.all, name)

        def call(*arguments):
            return function(*[Pointer(one) if isinstance(one, int) and one > 1 << 31 else one for one in arguments])

        return call

    def status(self):
        """A new status."""
        return self.TF_NewStatus()

    def outcome(self, status):
        """(code, message), and the status is deleted."""
        found = self.TF_GetCode(status), self.TF_Message(status).decode("utf-8", "backslashreplace")
        self.TF_DeleteStatus(status)
        return found

    def tensor(self, array):
        """A TF_Tensor with an array's elements; bytes in arrays of objects are strings."""
        array = np.asarray(array)
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        if array.dtype == object or array.dtype.kind in "SU":
            tensor = self.TF_AllocateTensor(STRING, dims, array.ndim, ctypes.c_size_t(24 * array.size))
            data = self.TF_TensorData(tensor)
            for index, text in enumerate(array.reshape(-1)):
                text = text.encode() if isinstance(text, str) else bytes(text)
                self.TF_StringInit(Pointer(data + 24 * index))
                self.TF_StringCopy(Pointer(data + 24 * index), text, ctypes.c_size_t(len(text)))
            return tensor
        raw = array.tobytes()
        tensor = self.TF_AllocateTensor(NUMBERS[array.dtype.name], dims, array.ndim, ctypes.c_size_t(len(raw)))
        if raw:
            ctypes.memmove(self.TF_TensorData(tensor), raw, len(raw))
        return tensor

    def array(self, tensor):
        """(type, shape, elements); elements are None for handles. The tensor is deleted."""
        dtype = self.TF_TensorType(tensor)
        shape = tuple(int(self.TF_Dim(tensor, index)) for index in range(self.TF_NumDims(tensor)))
        count = int(np.prod(shape, dtype=np.int64))
        data = self.TF_TensorData(tensor)
        elements = None
        if dtype == STRING:
            elements = []
            for index in range(count):
                place = Pointer(data + 24 * index)
                elements.append(ctypes.string_at(self.TF_StringGetDataPointer(place), self.TF_StringGetSize(place)))
        elif dtype in NUMPY:
            raw = ctypes.string_at(data, self.TF_TensorByteSize(tensor)) if count else b""
            elements = np.frombuffer(raw, NUMPY[dtype]).reshape(shape)
        self.TF_DeleteTensor(tensor)
        return dtype, shape, elements


class Player:
    """One case on its own graph."""

    def __init__(self, library, case, file):
        self.tf = library
        self.case = case
        self.file = file
        self.threads = {}
        self.sessions = []

    def tell(self, *outcome):
        """Sends an outcome to the parent."""
        pickle.dump(outcome, self.file)
        self.file.flush()

    def play(self):
        """Runs all steps."""
        for path, content in self.case["files"].items():
            with open(path, "wb") as file:
                file.write(content)
        graph = self.case["graph"]
        self.graph = self.tf.TF_NewGraph()
        buffer = self.tf.TF_NewBufferFromString(graph, ctypes.c_size_t(len(graph)))
        status = self.tf.status()
        self.tf.TF_GraphImportGraphDef(self.graph, buffer, self.tf.TF_NewImportGraphDefOptions(), status)
        code, message = self.tf.outcome(status)
        if code:
            return self.tell("import", code, message, [])
        self.session({"config": self.case["config"]})
        for step in self.case["steps"]:
            getattr(self, step["do"])(step)

    def session(self, step):
        """Makes one more session."""
        options = self.tf.TF_NewSessionOptions()
        status = self.tf.status()
        config = step.get("config", b"")
        if config:
            self.tf.TF_SetConfig(options, config, ctypes.c_size_t(len(config)), status)
        self.sessions.append(self.tf.TF_NewSession(self.graph, options, status))
        code, message = self.tf.outcome(status)
        if code:
            self.tell("session", code, message, [])

    def _output(self, tensor):
        name, _, index = tensor.partition(":")
        return Output(self.tf.TF_GraphOperationByName(self.graph, name.encode()), int(index or 0))

    def _run(self, step):
        feeds, fetches, targets = list(step["feeds"].items()), step["fetches"], step["targets"]
        inputs = (Output * len(feeds))(*[self._output(tensor) for tensor, _ in feeds])
        values = (Pointer * len(feeds))(*[self.tf.tensor(value) for _, value in feeds])
        outputs = (Output * len(fetches))(*[self._output(tensor) for tensor in fetches])
        results = (Pointer * len(fetches))()
        nodes = (Pointer * len(targets))(
            *[self.tf.TF_GraphOperationByName(self.graph, target.split(":")[0].encode()) for target in targets]
        )
        options = None
        if "timeout" in step:
            timeout, encoded = step["timeout"], b"\x10"
            while timeout > 127:
                encoded, timeout = encoded + bytes([timeout & 127 | 128]), timeout >> 7
            encoded += bytes([timeout])
            options = self.tf.TF_NewBufferFromString(encoded, ctypes.c_size_t(len(encoded)))
        status = self.tf.status()
        session = self.sessions[step.get("session", 0)]
        self.tf.TF_SessionRun(
            session, options, inputs, values, len(feeds), outputs, results, len(fetches), nodes, len(targets), None, status
        )
        code, message = self.tf.outcome(status)
        return code, message, [] if code else [self.tf.array(result) for result in results]

    def run(self, step):
        """One step on this thread."""
        self.tell("run", *self._run(step))

    def start(self, step):
        """One step on another thread."""
        found = []
        thread = threading.Thread(target=lambda: found.append(self._run(step)), daemon=True)
        self.threads[step["key"]] = thread, found
        thread.start()
        time.sleep(SETTLE)

    def state(self, step):
        """Whether a step still waits."""
        waits = self.threads[step["key"]][0].is_alive()
        self.tell("waits" if waits else "ended", 0, "", [])

    def finish(self, step):
        """The end of a step."""
        thread, found = self.threads[step["key"]]
        thread.join()
        self.tell(f"end of {step['key']}", *found[0])

    def close(self, step):
        """TF_CloseSession."""
        status = self.tf.status()
        self.tf.TF_CloseSession(self.sessions[step.get("session", 0)], status)
        self.tell("close", *self.tf.outcome(status), [])


def play(library, case):
    """Plays a case in a process of its own; returns its outcomes, and how the process ended if it did before its time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(LIMIT)
        with os.fdopen(writer, "wb") as file:
            player = Player(library, case, file)
            try:
                player.play()
            except BaseException:  # the parent shows it
                player.tell("fault of the player", 0, traceback.format_exc(), [])
        os._exit(0)
    os.close(writer)
    outcomes = []
    with os.fdopen(reader, "rb") as file:
        try:
            while True:
                outcomes.append(pickle.load(file))
        except EOFError:
            pass
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended:
        word = {-signal.SIGALRM: "never ends", -signal.SIGABRT: "aborts", -signal.SIGSEGV: "crashes"}
        outcomes.append((word.get(ended, f"ended with {ended}"), 0, "", []))
    return outcomes


def main():
    """See the module."""
    library = Library(sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        cases = pickle.load(file)
    with open(sys.argv[3], "wb") as file:
        pickle.dump({case["name"]: play(library, case) for case in cases}, file)


if __name__ == "__main__":
    main()
