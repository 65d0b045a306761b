"""Compiled loops over private rows. Exact integer counts come out; only `hedgerow.private` may ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.routing import TOGETHER, descend
from hedgerow.tree import Tree

BLOCK = 8_192  # rows whose codes stay in cache while each tree counts them
PARTS = 100  # how often progress is told


@numba.njit(nogil=True, cache=True)
def _count_leaves(codes: Any, classes: Any, ask: Any, onward: Any, height: int, place: Any, counts: Any) -> None:
    """`place[node]` is the leaf's row in `counts`, −1 for an asking node: a row that stopped there is not counted."""
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            leaf, label = place[node[i]], classes[start + i]
            if leaf >= 0 and label < counts.shape[1]:
                counts[leaf, label] += 1


def leaf_counts(
    trees: list[Tree],
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    n_classes: int,
    progress: Callable[[float], None] | None = None,
) -> list[NDArray[np.int64]]:
    """Class counts in every leaf of every tree: (leaves, classes) each. A row adds 1 to at most one cell of a tree.

    This is UpdateStatistics with AddInstance of Jagannathan et al. 2012, Algorithm 2, for all trees in one pass.
    """
    results = [np.zeros((len(tree.leaves), n_classes), dtype=np.int64) for tree in trees]
    places = []
    for tree in trees:
        place = np.full(tree.n_nodes, -1, dtype=np.int32)
        place[tree.leaves] = np.arange(len(tree.leaves), dtype=np.int32)
        places.append(place)
    parts = PARTS if progress else 1  # of equal size whatever the number of rows, which must not show in the progress
    for part in range(parts):
        end = len(codes) * (part + 1) // parts
        for start in range(len(codes) * part // parts, end, BLOCK):
            block = slice(start, min(start + BLOCK, end))
            for tree, place, counts in zip(trees, places, results, strict=True):
                _count_leaves(codes[block], classes[block], tree.ask, tree.onward, tree.height, place, counts)
        if progress:
            progress((part + 1) / parts)
    return results
