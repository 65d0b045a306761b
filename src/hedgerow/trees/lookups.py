"""Compiled: what oblivious trees, or halves of such, say of each row. Rows of codes in, numbers of leaves out.

Columns of a block of rows stand side by side, and each level adds to the answer of all of its rows: a threshold, or a set of values that
changes sides a few times, by comparisons, which take many rows at once; a set that changes more often by a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import uint64 as at
from numpy.typing import NDArray

from hedgerow.trees.oblivious import Answers, ObliviousTree
from hedgerow.trees.routing import TOGETHER

FEW_EDGES = 16  # comparisons that are quicker than a look-up

Levels = tuple[tuple[int, ...], tuple[Answers, ...]]  # of a tree or of a half: what its levels ask about, and the answers


class Lookups(NamedTuple):
    """A plan for the loops.

    used:   the attributes that are asked about
    levels: which of them each level asks; first: where the levels of each tree begin
    code, more: of a level with few edges: from code[k] on the answer of its tree is more[k] more, modulo 2^16
    edges:  where the edges of a level begin
    table:  of a level with more edges, which line of `steps` it has, what each code adds to the answer; else -1
    """

    used: NDArray[np.int64]
    levels: NDArray[np.int64]
    first: NDArray[np.int64]
    code: NDArray[np.uint16]
    more: NDArray[np.uint16]
    edges: NDArray[np.int64]
    table: NDArray[np.int64]
    steps: NDArray[np.uint16]


def lookups_of(trees: Sequence[Levels]) -> Lookups:
    asked = np.array([j for attributes, _ in trees for j in attributes], dtype=np.int64)
    levels = [own for _, answers in trees for own in answers]
    ends = _ends([len(own.array) for own in levels])
    values = np.concatenate([np.zeros(0, dtype=np.uint16), *[own.array for own in levels]])
    radix = np.array([own.radix for own in levels], dtype=np.int64)
    used, places = np.unique(asked, return_inverse=True)
    first = _ends([len(attributes) for attributes, _ in trees])
    return Lookups(used, places, first, *_found(values, ends, radix, first, FEW_EDGES))


@numba.njit(nogil=True, cache=True)
def _found(values: Any, ends: Any, radix: Any, trees: Any, few: int) -> Any:
    """code, more, edges, table and steps of the levels whose answers stand one after the other in `values`."""
    strides = np.ones(radix.size, dtype=np.int64)  # how many leaves there are below one answer
    for t in range(trees.size - 1):
        for level in range(trees[t + 1] - 2, trees[t] - 1, -1):
            strides[level] = strides[level + 1] * radix[level + 1]
    count, width, many = np.zeros(strides.size, dtype=np.int64), 1, 0
    for level in range(strides.size):
        before = np.uint16(0)
        for k in range(ends[level], ends[level + 1]):
            count[level] += values[k] != before
            before = values[k]
        if count[level] > few:
            many += 1
            width = max(width, ends[level + 1] - ends[level])
    edges, table = np.zeros(strides.size + 1, dtype=np.int64), np.full(strides.size, -1)
    for level in range(strides.size):
        edges[level + 1] = edges[level] + (count[level] if count[level] <= few else 0)
    code, more = np.empty(edges[-1], dtype=np.uint16), np.empty(edges[-1], dtype=np.uint16)
    steps = np.zeros((many, width), dtype=np.uint16)
    many = 0
    for level in range(strides.size):
        first, stride = ends[level], strides[level]
        if count[level] > few:
            table[level] = many
            for k in range(first, ends[level + 1]):
                steps[many, k - first] = values[k] * stride
            many += 1
        else:
            place, last = edges[level], np.int64(0)
            for k in range(first, ends[level + 1]):
                if values[k] != last:
                    code[place], more[place] = k - first, (values[k] - last) * stride  # modulo 2^16
                    place, last = place + 1, np.int64(values[k])
    return code, more, edges, table, steps


@numba.njit(inline="always")
def read_columns(codes: Any, start: int, rows: int, used: Any, columns: Any) -> None:
    """columns[u, i] = the code of row start + i of attribute used[u]."""
    for u in range(at(used.size)):
        j, column = at(used[u]), columns[u]
        for i in range(at(rows)):
            column[i] = codes[at(start) + i, j]


@numba.njit(inline="always")
def say(
    tree: int, columns: Any, levels: Any, first: Any, code: Any, more: Any, edges: Any, table: Any, steps: Any, leaf: Any,
) -> None:  # fmt: skip
    """leaf[i] = the leaf of the row whose codes are columns[:, i]."""
    for i in range(TOGETHER):
        leaf[i] = 0
    for level in range(first[tree], first[tree + 1]):
        column = columns[levels[level]]
        if table[level] < 0:
            for k in range(edges[level], edges[level + 1]):
                start, step = code[k], more[k]
                for i in range(TOGETHER):
                    leaf[i] += step if column[i] >= start else np.uint16(0)
        else:
            line = steps[table[level]]
            for i in range(TOGETHER):
                leaf[i] += line[column[i]]


@numba.njit(nogil=True, cache=True)
def _add_leaf_scores(
    codes: Any, used: Any, levels: Any, first: Any, code: Any, more: Any, edges: Any, table: Any, steps: Any,
    scores: Any, begin: Any, out: Any,
) -> None:  # fmt: skip
    """out[i] += what the leaf of row i scores, for each tree in turn: those of tree t begin at scores[begin[t]]."""
    columns = np.zeros((used.size, TOGETHER), dtype=codes.dtype)
    leaf = np.empty(TOGETHER, dtype=np.uint16)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        read_columns(codes, start, rows, used, columns)
        for t in range(first.size - 1):
            say(t, columns, levels, first, code, more, edges, table, steps, leaf)
            own, here = scores[begin[t] : begin[t + 1]], out[start : start + rows]
            if scores.shape[1] == 2:  # a loop of its own, which is quicker
                for i in range(at(rows)):
                    here[i, at(0)] += own[at(leaf[i]), at(0)]
                    here[i, at(1)] += own[at(leaf[i]), at(1)]
            else:
                for i in range(at(rows)):
                    for c in range(at(scores.shape[1])):
                        here[i, c] += own[at(leaf[i]), c]


def adder(batch: Sequence[tuple[ObliviousTree, NDArray[np.float64]]]) -> Callable[[NDArray[Any], NDArray[np.float64]], None]:
    """Adds what trees score, each (leaves, classes), to margins of rows of codes."""
    lookups = lookups_of([(tree.attributes, tree.answers) for tree, _ in batch])
    scores, begin = np.concatenate([own for _, own in batch]), _ends([len(own) for _, own in batch])

    def add(codes: NDArray[Any], out: NDArray[np.float64]) -> None:
        _add_leaf_scores(codes, *lookups, scores, begin, out)

    return add


def _ends(lengths: list[int]) -> NDArray[np.int64]:
    return np.array(list(itertools.accumulate(lengths, initial=0)), dtype=np.int64)
