"""Compiled: which node does a row reach? Rows of codes in, node numbers out."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import uint64 as at  # an index that cannot be negative: no wrap-around check, a third faster
from numpy.typing import NDArray

from hedgerow.trees.tree import NODE, Nodes, Tree

TOGETHER = 512  # rows that go down a tree before they are counted: their codes and places stay in the nearest cache
ABREAST = 8  # rows that take each step side by side


@numba.njit(inline="always")
def descend(codes: Any, start: int, rows: int, ask: Any, onward: Any, height: int, node: Any) -> None:
    """Send rows start … start + rows − 1 down a tree; node[i] is then the last node that row start + i reaches.

    Each step is a look-up that must wait for the one before. So eight rows take each step side by side, their states in
    registers: the processor works on eight look-ups at once. A row with no branch to go on stays where it is. `ask` and `onward` are
    the tree's (see there); codes must be of this tree's attributes, each at most its size.
    """
    root, mask, place = at(ask[0]), at(ask[1]), at(ask[2])
    which = (at(1) << mask) - at(1)
    i, end = at(0), at(rows)
    while i + at(ABREAST) <= end:
        row = at(start) + i
        a = b = c = d = e = f = g = h = root
        for _ in range(height):
            a = at(onward[(a >> place) + (at(codes[row, a & which]) & (a >> mask))])
            b = at(onward[(b >> place) + (at(codes[row + at(1), b & which]) & (b >> mask))])
            c = at(onward[(c >> place) + (at(codes[row + at(2), c & which]) & (c >> mask))])
            d = at(onward[(d >> place) + (at(codes[row + at(3), d & which]) & (d >> mask))])
            e = at(onward[(e >> place) + (at(codes[row + at(4), e & which]) & (e >> mask))])
            f = at(onward[(f >> place) + (at(codes[row + at(5), f & which]) & (f >> mask))])
            g = at(onward[(g >> place) + (at(codes[row + at(6), g & which]) & (g >> mask))])
            h = at(onward[(h >> place) + (at(codes[row + at(7), h & which]) & (h >> mask))])
        node[i], node[i + at(1)], node[i + at(2)], node[i + at(3)] = a >> place, b >> place, c >> place, d >> place
        node[i + at(4)], node[i + at(5)], node[i + at(6)], node[i + at(7)] = e >> place, f >> place, g >> place, h >> place
        i += at(ABREAST)
    while i < end:
        a = root
        for _ in range(height):
            a = at(onward[(a >> place) + (at(codes[at(start) + i, a & which]) & (a >> mask))])
        node[i] = a >> place
        i += at(1)


@numba.njit(nogil=True, cache=True)
def _route(codes: Any, ask: Any, onward: Any, height: int, out: Any) -> None:
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, out[start : start + rows])


def route(tree: Tree, codes: NDArray[Any]) -> Nodes:
    """For each row of codes (made by `Codebook.encode`), the node of the tree where it ends."""
    out = np.empty(len(codes), dtype=NODE)
    _route(codes, tree.ask, tree.onward, tree.height, out)
    return out
