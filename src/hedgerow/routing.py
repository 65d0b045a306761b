"""Compiled: which node does a row reach? Rows of codes in, node numbers out."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import uint64 as at  # an index that cannot be negative: no wrap-around check, a third faster
from numpy.typing import NDArray

from hedgerow.tree import NODE, Nodes, Tree

TOGETHER = 512  # rows that go down a tree side by side: their codes and places stay in the nearest cache


@numba.njit(inline="always")
def descend(codes: Any, start: int, rows: int, ask: Any, onward: Any, height: int, node: Any) -> None:
    """Send rows start … start + rows − 1 down a tree; node[i] is then the last node that row start + i reaches.

    All rows take one step before any takes the next, so that the processor works on many look-ups at once instead of
    waiting for each. A row with no branch to go on stays where it is.
    """
    for i in range(at(rows)):
        node[i] = 0
    for _ in range(height):
        for i in range(at(rows)):
            question = ask[at(node[i])]
            if question >= 0:
                node[i] = onward[at(question >> 16) + at(codes[at(start) + i, at(question & 0xFFFF)])]


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
