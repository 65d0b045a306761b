"""Compiled loops of the boosting queries: each row's clipped gradient and Hessian, and their sums in the leaves of many trees at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.queries.boosting import bound, hessian_weight
from hedgerow.trees.additive_model import BLOCK, GRID, AdditiveModel, exp_minus, gradient_width
from hedgerow.trees.oblivious import ObliviousTree, steps_of
from hedgerow.trees.routing import TOGETHER

PACKED = 1 << 32  # a gradient sum and a Hessian sum share 64 bits: R · PACKED + H
MOST_PACKED = 1 << 18  # rows whose sums surely fit: |R| and H of a row are at most GRID = 2^12


@numba.njit(nogil=True, cache=True)
def _vectors(margins: Any, classes: Any, weight: float, euclidean: bool, most: int, out: Any) -> None:
    """out[i, j] = R · PACKED + w·H of row i, scaled to a norm of at most `most` steps, cut towards zero; 0 for a row of no declared class.

    The last lines hold for whatever the floats above them computed: no row's vector is longer than `most`.  [V14]
    """
    n_classes, width = margins.shape[1], out.shape[1]
    first = n_classes - width  # of two classes the second alone is kept
    share = np.empty(n_classes, dtype=np.float64)
    gradient, hessian = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
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
            gap = highest - margins[i, c]
            share[c] = 1.0 if gap == 0.0 else exp_minus(gap)  # the same number, sooner
            total += share[c]
        if not total >= 1.0:  # the highest adds 1: only margins that are no numbers come here
            continue
        norm = 0.0
        for j in range(width):
            p = share[first + j] / total
            r, h = (1.0 if label == first + j else 0.0) - p, weight * p * (1.0 - p)
            norm += r * r + h * h if euclidean else abs(r) + abs(h)
        if euclidean:
            norm = np.sqrt(norm)
        steps = float(GRID)
        if norm * GRID > most:
            steps = most / norm
        size = 0
        for j in range(width):
            p = share[first + j] / total
            r, h = (1.0 if label == first + j else 0.0) - p, weight * p * (1.0 - p)
            gradient[j], hessian[j] = 0, 0
            if abs(r) <= 1.0 and 0.0 <= h <= 1.0 and 0.0 <= steps <= GRID:  # false for NaN
                gradient[j], hessian[j] = int(r * steps), int(h * steps)  # towards zero
            if euclidean:
                size += gradient[j] * gradient[j] + hessian[j] * hessian[j]
            else:
                size += abs(gradient[j]) + hessian[j]
        if size <= (most * most if euclidean else most):
            for j in range(width):
                out[i, j] = gradient[j] * PACKED + hessian[j]


@numba.njit(nogil=True, cache=True)
def _add_in_leaves(codes: Any, vectors: Any, used: Any, levels: Any, steps: Any, first: Any, pairs: Any, sums: Any) -> None:
    """sums[t, leaf of row i in tree t] += vectors[i]. The leaf of a tree is the sum of what its two halves say, `pairs[t]`.

    Where vectors have one number, every second row adds to sums[:, :, 1]: an addition need not wait for the one before it.

    used: the attributes that are asked about; levels: which of them each level asks; first: where the levels of a half begin
    """
    width = vectors.shape[1]
    columns = np.zeros((used.size, TOGETHER), dtype=codes.dtype)
    half = np.empty((first.size - 1, TOGETHER), dtype=np.uint16)
    leaf = np.empty(TOGETHER, dtype=np.uint16)
    one = np.empty(TOGETHER, dtype=np.int64)  # the vectors, where they have one number; behind the last row nothing is added
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        for i in range(rows):
            for u in range(used.size):
                columns[u, i] = codes[start + i, used[u]]
        for i in range(TOGETHER):
            one[i] = vectors[start + i, 0] if i < rows else 0
        for h in range(first.size - 1):
            place = half[h]
            for i in range(TOGETHER):
                place[i] = 0
            for level in range(first[h], first[h + 1]):
                column, step = columns[levels[level]], steps[level]
                for i in range(TOGETHER):
                    place[i] += step[column[i]]
        for t in range(pairs.shape[0]):
            upper, lower, own = half[pairs[t, 0]], half[pairs[t, 1]], sums[t]
            for i in range(TOGETHER):
                leaf[i] = upper[i] + lower[i]
            if width == 1:
                for i in range(0, TOGETHER, 2):
                    own[np.int64(leaf[i]), 0] += one[i]
                    own[np.int64(leaf[i + 1]), 1] += one[i + 1]
            else:
                for i in range(rows):
                    for j in range(width):
                        own[np.int64(leaf[i]), j] += vectors[start + i, j]


def add_tree_sums(
    trees: Sequence[ObliviousTree],
    model: AdditiveModel,
    concentrated: bool,
    codes: NDArray[Any],
    classes: NDArray[np.uint16],
    margins: NDArray[np.float64] | None,
    sums: NDArray[np.int64],
) -> None:
    """Add each row's vector to its leaf of every tree: `sums` is (trees, leaves, 2 · gradient_width), gradients first.

    A row's vector is a function of that row and of the model alone, and the sums are of whole numbers: in whichever order and on however
    many threads they are taken, they are the same. `margins` are the model's for these rows, where they are known.
    """
    width = gradient_width(model.n_classes)
    used, levels, steps, first, pairs = _halves(trees)
    most, weight = bound(model.n_classes, concentrated), hessian_weight(concentrated)
    space = np.empty((min(BLOCK, len(codes)), model.n_classes))
    vectors = np.empty((len(space), width), dtype=np.int64)
    for begin in range(0, len(codes), MOST_PACKED):
        packed = np.zeros((*sums.shape[:2], max(width, 2)), dtype=np.int64)
        end = min(begin + MOST_PACKED, len(codes))
        for start in range(begin, end, BLOCK):
            block = slice(start, min(start + BLOCK, end))
            rows, labels = codes[block], classes[block]
            here, own = space[: len(rows)], vectors[: len(rows)]
            if margins is None:
                model.add_margins(rows, here)
            else:
                here = margins[block]
            _vectors(here, labels, weight, concentrated, most, own)
            _add_in_leaves(rows, own, used, levels, steps, first, pairs, packed)
        if width == 1:
            packed = packed.sum(axis=2, keepdims=True)
        sums[:, :, :width] += packed >> 32
        sums[:, :, width:] += packed & (PACKED - 1)


def _halves(trees: Sequence[ObliviousTree]) -> tuple[NDArray[Any], ...]:
    """The upper and the lower levels of each tree, each kind of half once: candidates that share them share the look-ups."""
    number: dict[Any, int] = {}
    places: list[list[int]] = []
    levels: list[int] = []
    steps: list[NDArray[np.uint16]] = []
    first = [0]
    width = max(trees[0].sizes) + 1
    for tree in trees:
        middle, pair = len(tree.attributes) // 2, []
        below = math.prod(tree.radix[middle:])
        for part, stride in ((slice(0, middle), below), (slice(middle, None), 1)):
            key = (tree.attributes[part], tree.answers[part], stride)
            if key not in number:
                number[key] = len(number)
                levels.extend(tree.attributes[part])
                steps.append(steps_of(tree.answers[part], width, stride))
                first.append(len(levels))
            pair.append(number[key])
        places.append(pair)
    used = np.unique(np.array(levels, dtype=np.int64))
    which = np.searchsorted(used, levels).astype(np.int64)
    return used, which, np.concatenate(steps), np.array(first, dtype=np.int64), np.array(places, dtype=np.int64)
