"""Compiled: which node does a row reach? Rows of codes in, node numbers out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.tree import NODE, Nodes, Tree

ROWS_AT_ONCE = 65_536


@numba.njit(inline="always")
def descend(codes: Any, row: int, attribute: Any, first_branch: Any, branch: Any) -> tuple[int, bool]:
    """The last node that the row reaches, and whether it is a leaf (False: it stopped at an asking node)."""
    node = 0
    while True:
        asked = attribute[node]
        if asked < 0:
            return node, True
        child = branch[first_branch[node] + codes[row, asked]]
        if child < 0:
            return node, False
        node = child


@numba.njit(nogil=True, cache=True)
def _route(codes: Any, attribute: Any, first_branch: Any, branch: Any, out: Any) -> None:
    for row in range(codes.shape[0]):
        out[row] = descend(codes, row, attribute, first_branch, branch)[0]


def route(tree: Tree, codes: NDArray[Any]) -> Nodes:
    """For each row of codes (made by `Codebook.encode`), the node of the tree where it ends."""
    out = np.empty(len(codes), dtype=NODE)
    _route(codes, tree.attribute, tree.first_branch, tree.branch, out)
    return out


def in_threads(work: Any, items: Any, n_jobs: int) -> list[Any]:
    """`work` on every item, on `n_jobs` threads; the compiled loops release the interpreter lock."""
    items = list(items)
    if n_jobs <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(n_jobs, len(items))) as pool:
        return list(pool.map(work, items))


def row_blocks(rows: int, at_once: int = ROWS_AT_ONCE) -> list[slice]:
    return [slice(start, min(start + at_once, rows)) for start in range(0, rows, at_once)]
