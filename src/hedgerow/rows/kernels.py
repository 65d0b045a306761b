"""Compiled loops over private rows. Exact integer counts come out; only `hedgerow.private` may ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import uint64 as at
from numpy.typing import NDArray

from hedgerow.additive_model import GRID, AdditiveModel, exp_minus, gradient_width
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
    places = list(map(_places, trees))
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


def _places(tree: Tree) -> NDArray[np.int32]:
    """For every node the number of the leaf that it is, −1 for an asking node."""
    place = np.full(tree.n_nodes, -1, dtype=np.int32)
    place[tree.leaves] = np.arange(len(tree.leaves), dtype=np.int32)
    return place


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


@numba.njit(nogil=True, cache=True)
def _gradients(margins: Any, classes: Any, out: Any) -> None:
    """out[i] = the gradient of row i in steps of 1/GRID, cut towards zero; 0 for a row of no declared class.

    The last lines hold for whatever the floats above them computed: no row's vector is longer than `gradient_norms` says.
    """
    n_classes, width = margins.shape[1], out.shape[1]
    first = n_classes - width  # of two classes the second alone is kept: the other is its negative
    most, most_squared = GRID, GRID * GRID
    if width > 1:
        most, most_squared = 2 * GRID, 2 * GRID * GRID
    share = np.empty(n_classes, dtype=np.float64)
    for i in range(margins.shape[0]):
        label = np.int64(classes[i])
        for j in range(width):
            out[i, j] = 0
        if label >= n_classes:
            continue
        highest = margins[i, 0]
        for c in range(1, n_classes):
            highest = max(highest, margins[i, c])
        total = 0.0
        for c in range(n_classes):
            share[c] = exp_minus(highest - margins[i, c])
            total += share[c]
        if not total >= 1.0:  # the highest adds 1: only margins that are no numbers come here
            continue
        size, squared = 0, 0
        for j in range(width):
            c = first + j
            gradient = (1.0 if label == c else 0.0) - share[c] / total
            steps = 0
            if abs(gradient) <= 2.0:  # false for NaN
                steps = int(gradient * GRID)  # towards zero
            out[i, j] = steps
            size += abs(steps)
            squared += steps * steps
        if size > most or squared > most_squared:
            for j in range(width):
                out[i, j] = 0


@numba.njit(nogil=True, cache=True)
def _add_brier(margins: Any, classes: Any, scales: Any, sums: Any) -> None:
    """sums[k] += the Brier score of each row, Σ_c (1[c = class] − softmax(scales[k]·margins)_c)², in steps of 1/GRID, cut to 0 … 2·GRID.

    A row of no declared class adds nothing. The last lines hold for whatever the floats above them computed.
    """
    n_classes = margins.shape[1]
    share = np.empty(n_classes, dtype=np.float64)
    for i in range(margins.shape[0]):
        label = np.int64(classes[i])
        if label >= n_classes:
            continue
        highest = margins[i, 0]
        for c in range(1, n_classes):
            highest = max(highest, margins[i, c])
        for k in range(scales.size):
            total = 0.0
            for c in range(n_classes):
                share[c] = exp_minus(scales[k] * (highest - margins[i, c]))
                total += share[c]
            score = 0.0
            for c in range(n_classes):
                off = (1.0 if label == c else 0.0) - share[c] / total
                score += off * off
            steps = 2 * GRID
            if score <= 2.0:  # false for NaN
                steps = int(score * GRID)
            sums[k] += min(max(steps, 0), 2 * GRID)


def brier_sums(
    model: AdditiveModel, scales: NDArray[np.float64], codes: NDArray[Any], classes: NDArray[np.uint16], margins: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    """For each scale the sum of the rows' Brier scores, in steps of 1/GRID. `margins` are the model's, where they are known."""
    sums = np.zeros(len(scales), dtype=np.int64)
    space = np.empty((min(BLOCK, len(codes)), model.n_classes))
    for start in range(0, len(codes), BLOCK):
        rows, labels = codes[start : start + BLOCK], classes[start : start + BLOCK]
        here = space[: len(rows)] if margins is None else margins[start : start + BLOCK]
        if margins is None:
            model.add_margins(rows, here)
        _add_brier(here, labels, scales, sums)
    return sums


@numba.njit(nogil=True, cache=True)
def _sum_in_leaves(codes: Any, vectors: Any, ask: Any, onward: Any, height: int, place: Any, sums: Any) -> None:
    """A row's vector is added to one leaf, or nowhere if it stopped on the way."""
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            leaf = place[node[i]]
            if leaf >= 0:
                for j in range(sums.shape[1]):
                    sums[leaf, j] += vectors[start + i, j]


def gradient_sums(
    asked: list[Tree],
    model: AdditiveModel,
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    margins: NDArray[np.float64] | None = None,
) -> list[NDArray[np.int64]]:
    """For each leaf of each asked tree the sum of the integer gradients of its rows: (leaves, gradient_width) each.

    Each row's vector is a function of that row and of the model alone, and the sums are of integers: in whichever order and on however
    many threads they are taken, they are the same. `margins` are the model's for these rows, where they are known.
    """
    width = gradient_width(model.n_classes)
    results = [np.zeros((len(tree.leaves), width), dtype=np.int64) for tree in asked]
    places = list(map(_places, asked))
    space = np.empty((min(BLOCK, len(codes)), model.n_classes))
    vectors = np.empty((len(space), width), dtype=np.int64)
    for start in range(0, len(codes), BLOCK):
        rows, labels = codes[start : start + BLOCK], classes[start : start + BLOCK]
        here, steps = space[: len(rows)], vectors[: len(rows)]
        if margins is not None:
            here = margins[start : start + BLOCK]
        else:
            model.add_margins(rows, here)
        _gradients(here, labels, steps)
        for tree, place, sums in zip(asked, places, results, strict=True):
            _sum_in_leaves(rows, steps, tree.ask, tree.onward, tree.height, place, sums)
    return results
