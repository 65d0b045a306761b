"""How many pseudo-rows each path and each class of it gets: whole numbers that add up to the asked size exactly.

A share is rounded up or down by chance, so that it is right on average and never off by one row or more. (The largest remainders
instead would give every row of a path with few rows to its majority class.) Whole numbers stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.paths import Paths

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


def class_weights(paths: Paths, classes: str) -> Numbers:
    """(paths, classes): by the released class counts, or by hit and miss with the misses spread evenly over the other classes.

    A negative noisy count is 0. A path on which only classes with no positive count meet says nothing: all are alike.
    """
    n_classes = paths.codebook.n_classes
    if classes == "counts" and paths.counts is not None:
        weights = np.maximum(paths.counts, 0)
    else:
        miss = np.maximum(paths.miss, 0)
        weights = np.repeat(miss[:, None] / max(n_classes - 1, 1), n_classes, axis=1)
        weights[np.arange(len(paths)), paths.label] = np.maximum(paths.hit, 0) if n_classes > 1 else np.maximum(paths.hit + miss, 0)
    weights[weights.sum(axis=1) <= 0] = 1.0
    return weights


def path_weights(paths: Paths) -> Numbers:
    """(paths,): hit + miss, a negative noisy number as 0; 0 also where no person can be, since an attribute was asked to pieces."""
    possible = np.logical_or.reduceat(paths.allowed, paths.first_code[:-1], axis=1).all(axis=1)
    weights = np.where(possible, np.maximum(paths.totals, 0), 0.0)
    return np.asarray(weights if weights.sum() > 0 else possible, dtype=np.float64)


def whole_numbers(weights: Numbers, total: int, rng: np.random.Generator) -> Whole:
    """`total` divided in proportion to the weights."""
    summed = weights.sum()
    if summed <= 0:
        return np.zeros(len(weights), dtype=np.int64)
    shares = weights * (total / summed)
    floors = np.floor(shares)
    left = total - int(floors.sum())
    order = rng.permutation(len(weights))  # so that neighbours, which are alike, do not go up and down by turns
    numbers: Whole = floors.astype(np.int64)
    numbers[order] += _ups((shares - floors)[order][None], np.array([left]), rng)[0]
    return numbers


def whole_numbers_by_row(weights: Numbers, totals: Whole, rng: np.random.Generator) -> Whole:
    """Each of the totals divided in proportion to its own row of weights."""
    shares = weights * (totals / weights.sum(axis=1))[:, None]
    floors = np.floor(shares)
    return np.asarray(floors.astype(np.int64) + _ups(shares - floors, totals - floors.sum(axis=1).astype(np.int64), rng))


def _ups(fractions: Numbers, left: Whole, rng: np.random.Generator) -> Whole:
    """Which shares are rounded up, `left` of them in each row, each with its fraction as the chance (systematic sampling)."""
    ends = np.cumsum(fractions, axis=1)
    ends = ends / np.maximum(ends[:, -1:], np.finfo(float).tiny) * left[:, None]  # what floats lost in the sum
    steps = np.minimum(np.floor(ends + rng.random((len(fractions), 1))), left[:, None])
    steps[:, -1] = left
    return np.diff(steps, axis=1, prepend=0).astype(np.int64)
