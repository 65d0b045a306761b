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

from hedgerow.trees.oblivious import MOST_LEAVES, Answers, ObliviousTree

FEW_EDGES = 16  # comparisons that are quicker than a look-up

Half = tuple[tuple[int, ...], tuple[Answers, ...]]  # what its levels ask about, and the answers
Pair = tuple[int, int]  # a tree: its upper and its lower half


@dataclass(frozen=True)
class Lookups:
    """What each half says of a row.

    used:   the attributes that are asked about
    levels: which of them each level of a half asks; first: where the levels of a half begin
    at, by: of a level with few edges: from code at[k] on the answer of its half is by[k] more, modulo 2^16
    edges:  where the edges of a level begin
    table:  of a level with more edges, which line of `steps` it has, what each code adds to the answer; else -1
    """

    used: NDArray[np.int64]
    levels: NDArray[np.int64]
    first: NDArray[np.int64]
    at: NDArray[np.uint16]
    by: NDArray[np.uint16]
    edges: NDArray[np.int64]
    table: NDArray[np.int64]
    steps: NDArray[np.uint16]


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
    asked, first = [j for attributes, _ in halves for j in attributes], _ends([len(attributes) for attributes, _ in halves])
    used = np.unique(np.array(asked, dtype=np.int64))
    at, by, lengths, table = [np.zeros(0, dtype=np.uint16)], [np.zeros(0, dtype=np.int64)], [], []
    many: list[tuple[Answers, int]] = []
    for _, answers in halves:
        stride = math.prod([own.radix for own in answers])
        for own in answers:
            stride //= own.radix
            codes, change = own.edges
            few = len(codes) <= FEW_EDGES
            lengths.append(len(codes) if few else 0)
            table.append(-1 if few else len(many))
            if few:
                at.append(codes)
                by.append(change * stride)
            else:
                many.append((own, stride))
    steps = np.zeros((len(many), width if many else 1), dtype=np.uint16)
    for line, (own, stride) in zip(steps, many, strict=True):
        line[: len(own)] = own.array * np.int64(stride)
    ends = _ends(lengths)
    changes = np.concatenate(by).astype(np.uint16)  # modulo 2^16
    return Lookups(used, np.searchsorted(used, asked), first, np.concatenate(at), changes, ends, np.array(table, dtype=np.int64), steps)


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
