"""Which trees are summed together: a plan for the loops in `boosting_loops.py`, made of the trees alone.

A leaf of an oblivious tree is told by what its upper and its lower half say. Candidates of a round share halves, and each half is looked up
once. Trees that share their upper half make a *bundle*: a row adds its vector to one cell for what all their halves say, instead of once
for each tree. The sums of a tree are then those of the cells, added up over what the other lower halves say.

    u above, l and m below, 8 answers each: 8³ cells, one addition a row                      trees (u, l) and (u, m): 64 leaves each
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.oblivious import MOST_LEAVES, Answers, ObliviousTree, steps_of

Half = tuple[tuple[int, ...], tuple[Answers, ...]]  # what its levels ask about, and the answers
Pair = tuple[int, int]  # a tree: its upper and its lower half


@dataclass(frozen=True)
class Lookups:
    """What each half says of a row.

    used:   the attributes that are asked about
    levels: which of them each level of a half asks; first: where the levels of a half begin
    steps:  (levels, codes): what a code adds to the answer of its half
    at, by: the same as edges: from code at[k] on the answer is by[k] more, modulo 2^16; edges: where those of a level begin
    """

    used: NDArray[np.int64]
    levels: NDArray[np.int64]
    first: NDArray[np.int64]
    steps: NDArray[np.uint16]
    at: NDArray[np.uint16]
    by: NDArray[np.uint16]
    edges: NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Where rows are counted.

    members: the halves of all bundles, one after the other, and the stride of each; start: where those of a bundle begin
    begin:   where the cells of a bundle begin, and last how many there are
    shapes:  of each tree where the cells of its bundle begin, and how they stand: answers above, between, answers below, behind
    """

    members: NDArray[np.int64]
    strides: NDArray[np.uint16]
    start: NDArray[np.int64]
    begin: NDArray[np.int64]
    shapes: NDArray[np.int64]


def bundled(trees: Sequence[ObliviousTree], most: int) -> tuple[Lookups, Cells]:
    """most: cells of a bundle, unless it is of one tree alone, which has its leaves. Their numbers have 16 bits, as those of leaves."""
    halves, pairs = _halves(trees)
    sizes = tuple([math.prod([own.radix for own in answers]) for _, answers in halves])
    return _lookups(halves, max(trees[0].sizes) + 1), _cells(pairs, sizes, min(most, MOST_LEAVES))


def _halves(trees: Sequence[ObliviousTree]) -> tuple[list[Half], tuple[Pair, ...]]:
    """The upper and the lower levels of the trees, each kind of half once."""
    number: dict[Half, int] = {}
    pairs = []
    for tree in trees:
        attributes, answers, middle = tree.attributes, tree.answers, len(tree.attributes) // 2
        upper = number.setdefault((attributes[:middle], answers[:middle]), len(number))
        pairs.append((upper, number.setdefault((attributes[middle:], answers[middle:]), len(number))))
    return list(number), tuple(pairs)


def _lookups(halves: list[Half], width: int) -> Lookups:
    asked = [j for attributes, _ in halves for j in attributes]
    used = np.unique(np.array(asked, dtype=np.int64))
    steps = np.concatenate([steps_of(answers, width) for _, answers in halves])
    change = np.diff(steps, axis=1, prepend=np.uint16(0))  # modulo 2^16
    level, code = np.nonzero(change)
    edges = _ends(np.bincount(level, minlength=len(asked)))
    first = _ends([len(attributes) for attributes, _ in halves])
    return Lookups(used, np.searchsorted(used, asked), first, steps, code.astype(np.uint16), change[level, code], edges)


@lru_cache(maxsize=16)  # it is mostly the same for all rounds of a fit
def _cells(pairs: tuple[Pair, ...], sizes: tuple[int, ...], most: int) -> Cells:
    members: list[int] = []
    strides: list[int] = []
    lengths, begin = [], [0]
    shapes = np.zeros((len(pairs), 5), dtype=np.int64)
    for trees in _bundles(pairs, sizes, most):
        halves = [pairs[trees[0]][0], *(pairs[t][1] for t in trees)]
        own = [sizes[half] for half in halves]
        members += halves
        strides += [math.prod(own[place + 1 :]) for place in range(len(own))]
        for place, t in enumerate(trees, 1):
            shapes[t] = begin[-1], own[0], math.prod(own[1:place]), own[place], strides[place - len(own)]
        lengths.append(len(own))
        begin.append(begin[-1] + math.prod(own))
    return Cells(np.array(members), np.array(strides).astype(np.uint16), _ends(lengths), np.array(begin), shapes)


def _bundles(pairs: tuple[Pair, ...], sizes: tuple[int, ...], most: int) -> Iterator[list[int]]:
    """The trees of each: such as share their upper half, as many as the cells allow."""
    under: dict[int, list[int]] = {}
    for t, (upper, _) in enumerate(pairs):
        under.setdefault(upper, []).append(t)
    for upper, trees in under.items():
        some: list[int] = []
        cells = sizes[upper]
        for t in trees:
            size = sizes[pairs[t][1]]
            if some and cells * size > most:
                yield some
                some, cells = [], sizes[upper]
            some.append(t)
            cells *= size
        yield some


def _ends(lengths: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
