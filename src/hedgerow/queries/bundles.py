"""Which trees are summed together: a plan for the loops in `boosting_loops.py`, made of the trees alone.

A leaf of an oblivious tree is told by what its upper and its lower half say. Candidates of a round share halves, and each half is looked up
once. Halves whose pairs are trees make a *bundle*: a row adds its vector to one cell for what all of them say, instead of once for each
tree. The sums of a tree are then those of the cells, added up over what the other halves say.

    u and v above, l and m below, 8 answers each: 8⁴ cells, one addition a row        trees (u, l), (u, m), (v, l), (v, m): 64 leaves each
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.lookups import Levels, Lookups, lookups_of
from hedgerow.trees.oblivious import MOST_LEAVES, ObliviousTree

Pair = tuple[int, int]  # a tree: its upper and its lower half
Bundle = tuple[list[int], list[int]]  # upper halves and lower halves


class Cells(NamedTuple):
    """Where rows are counted.

    members: the halves of all bundles, one after the other, and the stride of each; start: where those of a bundle begin
    begin:   where the cells of a bundle begin, and last how many there are
    shapes:  of each tree where the cells of its bundle begin, and how they stand: before, answers above, between, answers below, behind
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
    return lookups_of(halves), _cells(pairs, sizes, min(most, MOST_LEAVES))


def _halves(trees: Sequence[ObliviousTree]) -> tuple[list[Levels], tuple[Pair, ...]]:
    """The upper and the lower levels of the trees, each kind of half once."""
    number: dict[Levels, int] = {}
    pairs = []
    for tree in trees:
        attributes, answers, middle = tree.attributes, tree.answers, len(tree.attributes) // 2
        upper = number.setdefault((attributes[:middle], answers[:middle]), len(number))
        pairs.append((upper, number.setdefault((attributes[middle:], answers[middle:]), len(number))))
    return list(number), tuple(pairs)


@lru_cache(maxsize=16)  # it is mostly the same for all rounds of a fit
def _cells(pairs: tuple[Pair, ...], sizes: tuple[int, ...], most: int) -> Cells:
    members: list[int] = []
    strides: list[int] = []
    start, begin = [0], [0]
    shapes: dict[Pair, tuple[int, ...]] = {}
    for uppers, lowers in _bundles(pairs, sizes, most):
        halves = [*uppers, *lowers]
        own = [sizes[half] for half in halves]
        members += halves
        strides += [math.prod(own[place + 1 :]) for place in range(len(own))]
        for above, upper in enumerate(uppers):
            for below, lower in enumerate(lowers, len(uppers)):
                parts = (own[:above], own[above : above + 1], own[above + 1 : below], own[below : below + 1], own[below + 1 :])
                shapes[upper, lower] = (begin[-1], *map(math.prod, parts))
        start.append(len(members))
        begin.append(begin[-1] + math.prod(own))
    each = np.array([shapes[pair] for pair in pairs])
    return Cells(np.array(members), np.array(strides).astype(np.uint16), np.array(start), np.array(begin), each)


def _bundles(pairs: tuple[Pair, ...], sizes: tuple[int, ...], most: int) -> Iterator[Bundle]:
    """All pairs, in as few bundles as the cells allow: upper halves that have the same lower ones stand together."""
    below: dict[int, dict[int, None]] = {}
    for upper, lower in pairs:
        below.setdefault(upper, {})[lower] = None
    alike: dict[tuple[int, ...], list[int]] = {}
    for upper, under in below.items():
        alike.setdefault(tuple(under), []).append(upper)
    for lowers, uppers in alike.items():
        abreast = max(1, min(len(uppers), most.bit_length()))
        ways = [list(_blocks(uppers, lowers, together, sizes, most)) for together in range(1, abreast + 1)]
        fit = [way for way in ways[1:] if all(math.prod([sizes[half] for half in (*above, *beneath)]) <= most for above, beneath in way)]
        yield from min([ways[0], *fit], key=len)


def _blocks(uppers: list[int], lowers: tuple[int, ...], together: int, sizes: tuple[int, ...], most: int) -> Iterator[Bundle]:
    """So many upper halves at a time, with as many lower ones as the cells allow."""
    for first in range(0, len(uppers), together):
        above, under = uppers[first : first + together], [lowers[0]]
        alone = math.prod([sizes[half] for half in above])
        cells = alone * sizes[lowers[0]]
        for lower in lowers[1:]:
            cells *= sizes[lower]
            if cells > most:
                yield above, under
                under, cells = [], alone * sizes[lower]
            under = [*under, lower]
        yield above, under
