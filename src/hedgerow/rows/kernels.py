"""Compiled loops over private rows. Exact integer counts come out; only `hedgerow.private` may ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import uint64 as at
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


@numba.njit(nogil=True, cache=True)
def _count_splits(
    codes: Any,
    classes: Any,
    ask: Any,
    onward: Any,
    height: int,
    slot: Any,
    first_cell: Any,
    n_classes: int,
    width: int,
    counts: Any,
) -> None:
    """counts[slot of the row's node · width + (cell of each attribute)·classes + class] += 1, for all attributes in one pass.

    Each attribute has one cell more than values, for the code that has no branch: cheaper than asking every time.
    """
    node = np.empty(TOGETHER, dtype=np.int32)
    n_attributes = first_cell.size
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            place, label = slot[node[i]], at(classes[start + i])
            if place >= 0 and label < at(n_classes):
                base, row = at(place) * at(width) + label, at(start + i)
                for j in range(at(n_attributes)):
                    counts[base + first_cell[j] + at(codes[row, j]) * at(n_classes)] += 1


@numba.njit(nogil=True, cache=True)
def _count_classes(codes: Any, classes: Any, ask: Any, onward: Any, height: int, slot: Any, counts: Any) -> None:
    """counts[slot of the row's node, class] += 1; the last column is for rows of no declared class."""
    node = np.empty(TOGETHER, dtype=np.int32)
    last = counts.shape[1] - 1
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            place = slot[node[i]]
            if place >= 0:
                counts[place, min(np.int64(classes[start + i]), last)] += 1


def slots(tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int32]:
    """For every node of the tree, the place in `nodes` of itself or of the node above it that is there; −1 for none."""
    slot = np.full(tree.n_nodes, -1, dtype=np.int32)
    slot[nodes] = np.arange(len(nodes), dtype=np.int32)
    for level in tree.levels[1:]:
        inherits = slot[level] < 0
        slot[level[inherits]] = slot[tree.parent[level[inherits]]]
    return slot


def split_counts(
    tree: Tree,
    nodes: NDArray[np.int64],
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    n_classes: int,
) -> NDArray[np.int64]:
    """For each node the counts (cell, class) of all attributes, their cells side by side: (nodes, cells, classes)."""
    with_stop = np.asarray(tree.sizes) + 1
    first = np.cumsum(with_stop) - with_stop
    width = int(with_stop.sum()) * n_classes
    counts = np.zeros(len(nodes) * width, dtype=np.int64)
    first_cell = (first * n_classes).astype(np.uint64)
    _count_splits(codes, classes, tree.ask, tree.onward, tree.height, slots(tree, nodes), first_cell, n_classes, width, counts)
    stop = first + with_stop - 1
    return np.delete(counts.reshape(len(nodes), -1, n_classes), stop, axis=1)


def class_counts(
    tree: Tree, nodes: NDArray[np.int64], codes: NDArray[Any], classes: NDArray[np.uint16], n_classes: int
) -> NDArray[np.int64]:
    """Class counts of each node, and last the rows of no declared class: (nodes, classes + 1)."""
    counts = np.zeros((len(nodes), n_classes + 1), dtype=np.int64)
    _count_classes(codes, classes, tree.ask, tree.onward, tree.height, slots(tree, nodes), counts)
    return counts
