"""The edges of an op case for diff.py, one after another: empty inputs, other ranks, places out of range.

Every case is the given one with one change; what comes out is the same each time.
"""

import numpy as np

from diff_cases import plain, resized

# More cases of one op have few new types in them.
CASES_PER_OP = 4


def chosen(cases):
    """Few cases of one op, with other ranks, types or attributes each."""
    found = {}
    for case in cases:
        node = case.nodes[0]
        types = tuple((value.dtype, value.ndim) for value in case.values.values())
        found.setdefault((types, str(sorted(node.attr))), case)
    several = sorted(found.values(), key=lambda case: -sum(value.size > 0 for value in case.values.values()))
    return several[:CASES_PER_OP]


def reshaped(rng, case, shapes):
    """The case with other shapes of some inputs."""
    less = case.copy()
    for name, shape in shapes.items():
        less.values[name] = resized(rng, case.values[name], shape)
    return less


def edges(rng, case):
    """The edges of a case. `rng` is for numbers where there were none."""
    shapes = {name: list(value.shape) for name, value in case.values.items()}
    yield reshaped(rng, case, {name: [0 if extent else extent for extent in shape] for name, shape in shapes.items()})
    for extent in sorted({extent for shape in shapes.values() for extent in shape}):
        for new in {0, 1, extent + 1} - {extent}:
            yield reshaped(rng, case, {name: [new if old == extent else old for old in shape] for name, shape in shapes.items()})
    for name, shape in shapes.items():
        for axis in range(len(shape)):
            for new in {0, 1, shape[axis] + 1} - {shape[axis]}:
                yield reshaped(rng, case, {name: shape[:axis] + [new] + shape[axis + 1:]})
        for new in ([], [0], [1], [1] + shape, shape + [1], shape[1:], shape[:-1], [0] + shape):
            if new != shape:
                yield reshaped(rng, case, {name: new})
    for name, value in case.values.items():
        if plain(value) and value.dtype in (np.int32, np.int64) and value.size:
            for number in (-1, 0, 1000, -1000, np.iinfo(value.dtype).min):
                for at in {0, value.size - 1}:
                    less = case.copy()
                    flat = value.copy().reshape(-1)
                    flat[at] = number
                    less.values[name] = flat.reshape(value.shape)
                    yield less


def all_edges(rng, seeds, names):
    """The edges of the cases of all ops, with shapes that are known before and shapes that are not."""
    for name in names:
        for seed in chosen(seeds[name]):
            for case in edges(rng, seed):
                for shaped in (False, True):
                    case = case.copy()
                    case.shaped = shaped
                    yield case
