"""Which differences between the two libraries are on purpose: what diff_deliberate.txt says.

A line of it is `OP KIND if CONDITION and CONDITION: why ours is right, or no matter`; OP and KIND are patterns, and conditions
may be left out. They speak of the inputs and attributes of the last node of a case, and of the outcomes:

    double, half, integer, complex, float        an input has such a type (float: of single precision)
    nan, infinite, zero, negative, huge, empty   an input has such an element (huge: beyond 32 bits); or no elements
    binary                                       an input has a string that is not UTF-8
    constants, placeholders                      what inputs are
    rank N                                       an input has this rank
    NAME=VALUE                                   an attribute; text as it is, types by name
    outputs N,N                                  only these outputs differ
    by one                                       whole numbers differ by one at most
    but for signs                                absolute values agree
    but for order                                the values are the same ones in another order
    shapes                                       the reference's shape function refuses the inputs where shapes are known before
    says TEXT                                    the reference's message has this text
    not CONDITION
"""

import dataclasses
import fnmatch
import pathlib

import numpy as np
import tensorflow as tf

import diff_cases


def number(value):
    """The value as an array of plain numbers; of strings and the like, nothing."""
    if value.dtype == object:
        return np.zeros(0)
    if value.dtype.names:
        return value[value.dtype.names[0]]
    if diff_cases.dtype_of(value).is_floating:
        return value.astype(np.float64)
    return value


def is_text(value):
    try:
        return value.dtype != object or all(isinstance(part.decode(), str) for part in value.reshape(-1))
    except UnicodeDecodeError:
        return False


HALVES = (tf.float16, tf.bfloat16)
OF_INPUTS = {
    "float": lambda value: diff_cases.dtype_of(value) == tf.float32,
    "double": lambda value: diff_cases.dtype_of(value) == tf.float64,
    "half": lambda value: diff_cases.dtype_of(value) in HALVES,
    "complex": lambda value: diff_cases.dtype_of(value).is_complex,
    "integer": lambda value: diff_cases.dtype_of(value).is_integer,
    "nan": lambda value: np.isnan(number(value)).any(),
    "infinite": lambda value: np.isinf(number(value)).any(),
    "zero": lambda value: (number(value) == 0).any(),
    "negative": lambda value: (np.real(number(value)) < 0).any(),
    "huge": lambda value: bool((np.abs(np.real(number(value)).astype(np.float64)) > 2.0**31).any()),
    "empty": lambda value: not value.size,
    "binary": lambda value: not is_text(value),
}


def by_one(ours, theirs):
    whole = [number(value) for value in (ours, theirs)]
    return whole[0].shape == whole[1].shape and all(np.issubdtype(value.dtype, np.integer) for value in whole) and bool(
        (np.abs(whole[0].astype(np.float64) - whole[1].astype(np.float64)) <= 1).all())


def but_for_signs(ours, theirs):
    return ours.shape == theirs.shape and np.allclose(np.abs(number(ours)), np.abs(number(theirs)), 1e-3, 1e-4, equal_nan=True)


def but_for_order(ours, theirs):
    return ours.shape == theirs.shape and np.array_equal(np.sort(number(ours), axis=None), np.sort(number(theirs), axis=None),
                                                         equal_nan=ours.dtype != object)


OF_OUTPUTS = {"by one": by_one, "but for signs": but_for_signs, "but for order": but_for_order}


def attribute(node, name):
    """An attribute's value as text."""
    value = node.attr[name] if name in node.attr else next(
        (attr.default_value for attr in diff_cases.definition(node).attr if attr.name == name), None)
    if value is None:
        return None
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(value.type).name
    if kind == "s":
        return value.s.decode(errors="replace")
    return str(getattr(value, kind)).lower() if kind in ("b", "i", "f") else None


@dataclasses.dataclass
class Found:
    """A difference. `differ` is the places of the outputs that differ."""

    case: object
    kind: str
    ours: tuple
    theirs: tuple
    differ: list
    refused_with_shapes: bool = False

    def holds(self, condition):
        """Whether a condition of the list holds."""
        node = self.case.nodes[-1]
        inputs = [self.case.values[name] for name in node.input if name in self.case.values]
        if condition in OF_INPUTS:
            return any(OF_INPUTS[condition](value) for value in inputs)
        if condition.startswith("not "):
            return not self.holds(condition[len("not "):])
        if condition in OF_OUTPUTS:
            return all(OF_OUTPUTS[condition](self.ours[1][at], self.theirs[1][at]) for at in self.differ)
        if condition in ("constants", "placeholders"):
            return self.case.constant == (condition == "constants")
        if condition == "shapes":
            return self.refused_with_shapes
        word, _, rest = condition.partition(" ")
        if word == "rank":
            return any(value.ndim == int(rest) for value in inputs)
        if word == "outputs":
            return bool(self.differ) and set(self.differ) <= set(map(int, rest.split(",")))
        if word == "says":
            return isinstance(self.theirs[1], str) and rest in self.theirs[1]
        name, equals, value = condition.partition("=")
        if not equals:
            raise ValueError(f"diff_deliberate.txt: what is `{condition}`?")
        return attribute(node, name) == value


@dataclasses.dataclass
class Entry:
    """A line of the list."""

    op: str
    kind: str
    conditions: list

    def fits(self, found):
        return (fnmatch.fnmatchcase(found.case.nodes[-1].op, self.op) and fnmatch.fnmatchcase(found.kind, self.kind)
                and all(map(found.holds, self.conditions)))


def read():
    """The lines of the list."""
    entries = []
    for line in (pathlib.Path(__file__).parent / "diff_deliberate.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        what, _, conditions = line.split(": ", 1)[0].partition(" if ")
        op, kind = what.split(" ")
        entries.append(Entry(op, kind, conditions.split(" and ") if conditions else []))
    return entries
