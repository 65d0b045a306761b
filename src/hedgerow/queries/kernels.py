"""Compiled loops over private rows. Exact integer counts come out; only `hedgerow.mechanisms` may ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import uint64 as at
from numpy.typing import NDArray

from hedgerow.trees.additive_model import GRID, AdditiveModel, exp_minus, gradient_width
from hedgerow.trees.routing import TOGETHER, descend
from hedgerow.trees.tree import Tree

BLOCK = 8_192  # rows whose codes stay in cache while each tree counts them
PARTS = 100  # how often progress is told


@numba.njit(nogil=True, cache=True)
def _count_leaves(codes: Any, classes: Any, ask: Any, onward: Any, height: int, place: Any, counts: Any) -> None:
    """`place[node]` is the leaf's row in `counts`, −1 for an asking node: a row that stopped there is not counted.

    Such a row adds 0 to some cell. That is cheaper than a branch which the processor cannot foresee: where many values are missing,
    counting takes no longer.
    """
    node = np.empty(TOGETHER, dtype=np.int32)
    n_classes = at(counts.shape[1])
    if counts.size == 0:
        return
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(at(rows)):
            leaf, label = place[at(node[i])], at(classes[at(start) + i])
            counts[at(max(leaf, np.int32(0))), min(label, n_classes - at(1))] += np.int64(leaf >= 0) & np.int64(label < n_classes)


def leaf_places(tree: Tree) -> NDArray[np.int32]:
    """For every node the number of the leaf that it is, −1 for an asking node."""
    place = np.full(tree.n_nodes, -1, dtype=np.int32)
    place[tree.leaves] = np.arange(len(tree.leaves), dtype=np.int32)
    return place


def add_leaf_counts(
    trees: list[Tree],
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    results: list[NDArray[np.int64]],
    places: list[NDArray[np.int32]] | None = None,
) -> None:
    """Add these rows to the class counts in every leaf of every tree, `results[t]`: (leaves, classes) each.

    A row adds 1 to at most one cell of a tree. `places`: `leaf_places` of each tree, where the caller has kept them.
    """
    places = list(map(leaf_places, trees)) if places is None else places
    for start in range(0, len(codes), BLOCK):
        block = slice(start, start + BLOCK)
        for tree, place, counts in zip(trees, places, results, strict=True):
            _count_leaves(codes[block], classes[block], tree.ask, tree.onward, tree.height, place, counts)


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
    places = list(map(leaf_places, trees))
    parts = PARTS if progress else 1  # of equal size whatever the number of rows, which must not show in the progress
    for part in range(parts):
        rows = slice(len(codes) * part // parts, len(codes) * (part + 1) // parts)
        add_leaf_counts(trees, codes[rows], classes[rows], results, places)
        if progress:
            progress((part + 1) / parts)
    return results


@numba.njit(nogil=True, cache=True)
def _count_splits(codes: Any, classes: Any, ask: Any, onward: Any, height: int, slot: Any, first_cell: Any, counts: Any) -> None:
    """counts[slot of the row's node, first_cell[attribute] + code, class] += 1, for all attributes in one pass.

    Each attribute has one cell more than values, for the code that has no branch: cheaper than asking every time.
    """
    node = np.empty(TOGETHER, dtype=np.int32)
    columns = at(counts.shape[2])
    width = at(counts.shape[1]) * columns
    flat, first = counts.reshape(-1), first_cell.astype(np.uint64) * columns
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(at(rows)):
            place = slot[at(node[i])]
            if place >= 0:
                row = at(start) + i
                base = at(place) * width + min(at(classes[row]), columns - at(1))
                for j in range(at(first.size)):
                    flat[base + first[j] + at(codes[row, j]) * columns] += 1


@numba.njit(nogil=True, cache=True)
def _count_classes(codes: Any, classes: Any, ask: Any, onward: Any, height: int, slot: Any, counts: Any) -> None:
    """counts[slot of the row's node, class] += 1; the last column is for rows of no declared class."""
    node = np.empty(TOGETHER, dtype=np.int32)
    last = at(counts.shape[1] - 1)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(at(rows)):
            place = slot[at(node[i])]
            if place >= 0:
                counts[at(place), min(at(classes[at(start) + i]), last)] += 1


def slots(tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int32]:
    """For every node of the tree, the place in `nodes` of itself or of the node above it that is there; −1 for none."""
    slot = np.full(tree.n_nodes, -1, dtype=np.int32)
    slot[nodes] = np.arange(len(nodes), dtype=np.int32)
    for level in tree.levels[1:]:
        inherits = slot[level] < 0
        slot[level[inherits]] = slot[tree.parent[level[inherits]]]
    return slot


def split_cells(tree: Tree) -> tuple[NDArray[np.int64], int]:
    """Where the cells of each attribute begin, and how many cells there are: for each attribute its values and one for no value."""
    with_stop = np.asarray(tree.sizes, dtype=np.int64) + 1
    return np.cumsum(with_stop) - with_stop, int(with_stop.sum())


def add_split_counts(
    tree: Tree, slot: NDArray[np.int32], codes: NDArray[Any], classes: NDArray[np.uint16], counts: NDArray[np.int64]
) -> None:
    """Add these rows to the (cell, class) counts of each node, in the layout of `split_cells`: (nodes, cells, classes + 1), contiguous.

    `slot`: `slots(tree, nodes)`. The last column is for rows of no declared class.
    """
    first_cell, _ = split_cells(tree)
    _count_splits(codes, classes, tree.ask, tree.onward, tree.height, slot, first_cell, counts)


def split_counts(
    tree: Tree,
    nodes: NDArray[np.int64],
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    n_classes: int,
) -> NDArray[np.int64]:
    """For each node the counts (cell, class) of all attributes, their cells side by side: (nodes, cells, classes)."""
    first, n_cells = split_cells(tree)
    counts = np.zeros((len(nodes), n_cells, n_classes + 1), dtype=np.int64)
    add_split_counts(tree, slots(tree, nodes), codes, classes, counts)
    return np.delete(counts[:, :, :n_classes], first + np.asarray(tree.sizes), axis=1)


def add_class_counts(
    tree: Tree, slot: NDArray[np.int32], codes: NDArray[Any], classes: NDArray[np.uint16], counts: NDArray[np.int64]
) -> None:
    """Add these rows to the class counts of each node: (nodes, classes + 1), the last column for rows of no declared class.

    `slot`: `slots(tree, nodes)`.
    """
    _count_classes(codes, classes, tree.ask, tree.onward, tree.height, slot, counts)


def class_counts(
    tree: Tree, nodes: NDArray[np.int64], codes: NDArray[Any], classes: NDArray[np.uint16], n_classes: int
) -> NDArray[np.int64]:
    """Class counts of each node, and last the rows of no declared class: (nodes, classes + 1)."""
    counts = np.zeros((len(nodes), n_classes + 1), dtype=np.int64)
    add_class_counts(tree, slots(tree, nodes), codes, classes, counts)
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
def _brier_steps(share: Any, label: Any) -> int:
    """Σ_c (1[c = class] − share_c)², in steps of 1/GRID, cut to 0 … 2·GRID: the last lines hold whatever the floats above them computed."""
    score = 0.0
    for c in range(share.size):
        off = (1.0 if label == c else 0.0) - share[c]
        score += off * off
    steps = 2 * GRID
    if score <= 2.0:  # false for NaN
        steps = int(score * GRID)
    return min(max(steps, 0), 2 * GRID)


@numba.njit(nogil=True, cache=True)
def _add_brier(margins: Any, classes: Any, scales: Any, sums: Any) -> None:
    """sums[k] += the Brier score of each row, Σ_c (1[c = class] − softmax(scales[k]·margins)_c)², in steps of 1/GRID.

    A row of no declared class adds nothing.
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
            for c in range(n_classes):
                share[c] /= total
            sums[k] += _brier_steps(share, label)


@numba.njit(nogil=True, cache=True)
def brier_sum(shares: Any, classes: Any) -> int:
    """The same for class probabilities: (rows, classes). A row of no declared class adds nothing."""
    total = 0
    for i in range(shares.shape[0]):
        label = np.int64(classes[i])
        if label < shares.shape[1]:
            total += _brier_steps(shares[i], label)
    return total


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
        for i in range(at(rows)):
            leaf = place[at(node[i])]
            if leaf >= 0:
                for j in range(at(sums.shape[1])):
                    sums[at(leaf), j] += vectors[at(start) + i, j]


def gradient_sums(
    trees: list[Tree],
    model: AdditiveModel,
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    margins: NDArray[np.float64] | None = None,
) -> list[NDArray[np.int64]]:
    """For each leaf of each tree the sum of the integer gradients of its rows: (leaves, gradient_width) each.

    Each row's vector is a function of that row and of the model alone, and the sums are of integers: in whichever order and on however
    many threads they are taken, they are the same. `margins` are the model's for these rows, where they are known.
    """
    width = gradient_width(model.n_classes)
    results = [np.zeros((len(tree.leaves), width), dtype=np.int64) for tree in trees]
    places = list(map(leaf_places, trees))
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
        for tree, place, sums in zip(trees, places, results, strict=True):
            _sum_in_leaves(rows, steps, tree.ask, tree.onward, tree.height, place, sums)
    return results
