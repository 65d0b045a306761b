"""Cells of about equal noisy mass: where a number's values are many there are many cells. Post-processing of released sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STANDS_OUT = 2.0  # a fine cell counts as empty below so many standard deviations of the noise
SPREAD = 0.05  # and this share of the mass is spread evenly over all, so that empty stretches are cut, too


def equal_mass(sizes: NDArray[np.int64], sd: float, most: int) -> NDArray[np.int64]:
    """For each of the fine cells, whose noisy sizes are given in order, the number of its cell: at most so many, from 0 on."""
    mass = np.where(sizes > STANDS_OUT * sd, sizes, 0).astype(np.float64)
    if not mass.any():
        mass[:] = 1.0
    mass += SPREAD * mass.sum() / len(mass)
    below = np.concatenate([[0.0], np.cumsum(mass)[:-1]]) / mass.sum()
    cell = np.minimum((below * most).astype(np.int64), most - 1)
    return np.unique(cell, return_inverse=True)[1].astype(np.int64)


def fewer(cell: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Neighbouring cells put together, so that there are at most so many."""
    d = int(cell.max()) + 1
    return np.unique(cell * min(most, d) // d, return_inverse=True)[1].astype(np.int64)
