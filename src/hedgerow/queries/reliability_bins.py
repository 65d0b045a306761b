"""How sure, and whether right: the bins of a reliability table. A row adds 1 to one cell, whatever its probabilities are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError


def bin_edges(classes: int, bins: int) -> NDArray[np.float64]:
    """Equal-width bins for the largest of some class probabilities, from 1/classes to 1. Public: no row enters."""
    return np.linspace(1 / classes, 1.0, bins + 1)


def reliability(
    shares: NDArray[np.float64], classes: NDArray[np.uint16], n_classes: int, edges: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Counts of (bin of the largest probability; wrong, right) over rows of class probabilities: (bins, 2).

    A row with a probability that is no finite number is in the lowest bin, and taken to say the first class. A row of no declared class
    is counted nowhere. Only comparisons place a row, so that no rounding depends on what stands beside it.
    """
    if shares.shape != (len(classes), n_classes):  # a broadcast would count a row many times
        raise TableError("probabilities are one number for each row and class.")
    sound = np.where(np.isfinite(shares).all(axis=1, keepdims=True), shares, 0.0)
    place = np.searchsorted(edges[1:-1], sound.max(axis=1), side="right")
    right = sound.argmax(axis=1) == classes
    declared = classes < n_classes
    bins = len(edges) - 1
    cells = np.bincount((2 * place + right)[declared], minlength=2 * bins)
    return cells.astype(np.int64).reshape(bins, 2)
