"""Compiled loops over private rows. Exact integer counts come out; only `hedgerow.private` may ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.routing import descend
from hedgerow.tree import Tree

BLOCK = 8_192  # rows whose codes stay in cache while each tree counts them


@numba.njit(nogil=True, cache=True)
def _count_leaves(
    codes: Any, classes: Any, attribute: Any, first_branch: Any, branch: Any, place: Any, counts: Any
) -> None:
    n_classes = counts.shape[1]
    for row in range(codes.shape[0]):
        if classes[row] < n_classes:
            node, is_leaf = descend(codes, row, attribute, first_branch, branch)
            if is_leaf:
                counts[place[node], classes[row]] += 1


def leaf_counts(
    trees: list[Tree],
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    n_classes: int,
    progress: Callable[[float], None] = lambda share: None,
) -> list[NDArray[np.int64]]:
    """Class counts in every leaf of every tree: (leaves, classes) each. A row adds 1 to at most one cell of a tree."""
    results = [np.zeros((len(tree.leaves), n_classes), dtype=np.int64) for tree in trees]
    places = []
    for tree in trees:
        place = np.full(tree.n_nodes, -1, dtype=np.int32)
        place[tree.leaves] = np.arange(len(tree.leaves), dtype=np.int32)
        places.append(place)
    for start in range(0, len(codes), BLOCK):
        rows, labels = codes[start : start + BLOCK], classes[start : start + BLOCK]
        for tree, place, counts in zip(trees, places, results, strict=True):
            _count_leaves(rows, labels, tree.attribute, tree.first_branch, tree.branch, place, counts)
        progress(min(1.0, (start + BLOCK) / len(codes)))
    return results
