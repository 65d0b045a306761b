"""Compiled loops of the boosting queries: each row's clipped gradient and Hessian, and their sums in the leaves of many trees at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numba import uint64 as at
from numpy.typing import NDArray

from hedgerow.queries.boosting import bound, hessian_weight
from hedgerow.queries.bundles import bundled
from hedgerow.trees.additive_model import BLOCK, GRID, AdditiveModel, exp_minus, gradient_width
from hedgerow.trees.lookups import read_columns, say
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.routing import TOGETHER

PACKED = 1 << 32  # a gradient sum and a Hessian sum share 64 bits: R · PACKED + H
MOST_PACKED = 1 << 18  # rows whose sums surely fit: |R| and H of a row are at most GRID = 2^12
MOST_CELLS = 1 << 12  # sums of a bundle of trees: as many as stay in the nearest cache


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


@numba.njit(nogil=True, cache=True, error_model="numpy")  # which divides without asking: so that rows go side by side
def _vectors_of_two(gaps: Any, classes: Any, weight: float, euclidean: bool, most: int, out: Any) -> None:
    """The same for two classes, without branches. gaps: the margin of the second class over that of the first"""
    for i in range(gaps.shape[0]):
        gap = gaps[i]
        less = exp_minus(abs(gap))
        p = (1.0 if gap >= 0.0 else less) / (1.0 + less)
        r, h = (1.0 if classes[i] == 1 else 0.0) - p, weight * p * (1.0 - p)
        norm = np.sqrt(r * r + h * h) if euclidean else abs(r) + abs(h)
        steps = most / norm if norm * GRID > most else float(GRID)
        sound = (classes[i] < 2) & (gap == gap) & (abs(r) <= 1.0) & (h >= 0.0) & (h <= 1.0) & (steps >= 0.0) & (steps <= GRID)
        gradient, hessian = int(r * steps if sound else 0.0), int(h * steps if sound else 0.0)
        size = gradient * gradient + hessian * hessian if euclidean else abs(gradient) + hessian
        out[i] = gradient * PACKED + hessian if size <= (most * most if euclidean else most) else 0


@numba.njit(nogil=True, cache=True)
def _add_in_cells(
    codes: Any, vectors: Any, used: Any, levels: Any, first: Any, code: Any, more: Any, edges: Any, table: Any, steps: Any,
    members: Any, strides: Any, start: Any, begin: Any, sums: Any,
) -> None:  # fmt: skip
    """sums[cell of row i in bundle b] += vectors[i], for every bundle. The rest is as in `Lookups` and `Cells`."""
    width = vectors.shape[1]
    columns = np.zeros((used.size, TOGETHER), dtype=codes.dtype)
    half = np.empty((first.size - 1, TOGETHER), dtype=np.uint16)
    cell = np.empty(TOGETHER, dtype=np.uint16)
    one = np.empty(TOGETHER, dtype=np.int64)  # the vectors, where they have one number; behind the last row nothing is added
    for above in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - above)
        read_columns(codes, above, rows, used, columns)
        for i in range(TOGETHER):
            one[i] = vectors[above + i, 0] if i < rows else 0
        for h in range(first.size - 1):
            say(h, columns, levels, first, code, more, edges, table, steps, half[h])
        for b in range(start.size - 1):
            own = sums[begin[b] : begin[b + 1]]
            for i in range(TOGETHER):
                cell[i] = 0
            for m in range(start[b], start[b + 1]):
                place, stride = half[members[m]], strides[m]
                for i in range(TOGETHER):
                    cell[i] += place[i] * stride
            if width == 1:
                for i in range(TOGETHER):
                    own[np.int64(cell[i]), 0] += one[i]
            else:
                for i in range(rows):
                    for j in range(width):
                        own[np.int64(cell[i]), j] += vectors[above + i, j]


@numba.njit(nogil=True, cache=True)
def _take_apart(cells: Any, shapes: Any, sums: Any) -> None:
    """sums[t, leaf] += the sums of all cells whose answers lead to that leaf of tree t, for every tree: gradients first, then Hessians."""
    width, flat = at(cells.shape[1]), cells.reshape(-1)
    for t in range(shapes.shape[0]):
        begin, before, uppers, between, lowers, behind = shapes[t]
        packed = np.zeros(at(uppers * lowers) * width, dtype=np.int64)
        cell, line = at(begin) * width, at(lowers) * width
        for place in range(before * uppers * between):
            own = packed[at(place // between % uppers) * line :]
            if behind == 1:  # as they stand, which is quicker
                for k in range(line):
                    own[k] += flat[cell + k]
                cell += line
                continue
            for lower in range(at(lowers)):
                for j in range(width):
                    total = 0
                    for last in range(at(behind)):
                        total += flat[cell + last * width + j]
                    own[lower * width + j] += total
                cell += at(behind) * width
        for leaf in range(at(uppers * lowers)):
            for j in range(width):
                sums[t, leaf, j] += packed[leaf * width + j] >> 32
                sums[t, leaf, width + j] += packed[leaf * width + j] & (PACKED - 1)


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
    lookups, cells = bundled(trees, min(MOST_CELLS, len(codes)) // width)
    most, weight = bound(model.n_classes, concentrated), hessian_weight(concentrated)
    space = np.empty((min(BLOCK, len(codes)), model.n_classes))
    vectors = np.empty((len(space), width), dtype=np.int64)
    for begin in range(0, len(codes), MOST_PACKED):
        packed = np.zeros((cells.begin[-1], width), dtype=np.int64)
        end = min(begin + MOST_PACKED, len(codes))
        for start in range(begin, end, BLOCK):
            block = slice(start, min(start + BLOCK, end))
            rows, labels = codes[block], classes[block]
            here, own = space[: len(rows)], vectors[: len(rows)]
            if margins is None:
                model.add_margins(rows, here)
            else:
                here = margins[block]
            if model.n_classes == 2:
                _vectors_of_two(here[:, 1] - here[:, 0], labels, weight, concentrated, most, own[:, 0])
            else:
                _vectors(here, labels, weight, concentrated, most, own)
            _add_in_cells(rows, own, *lookups, cells.members, cells.strides, cells.start, cells.begin, packed)
        _take_apart(packed, cells.shapes, sums)
