"""Rows dealt out at random, of every class the same share to everybody: folds, and rows that are held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state


def places(classes: NDArray[np.int64], random_state: Any) -> NDArray[np.int64]:
    """A place in a queue for each row: class after class, in random order within a class."""
    order = check_random_state(random_state).permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    place = np.empty(len(classes), dtype=np.int64)
    place[order] = np.arange(len(classes))
    return place


def folds(classes: NDArray[np.int64], count: int, random_state: Any) -> NDArray[np.int64]:
    """The fold of each row, 0 to count − 1."""
    return places(classes, random_state) % count


def held_out(classes: NDArray[np.int64], share: float, random_state: Any) -> NDArray[np.bool_]:
    """Which rows are held out: every third place for a share of one third."""
    place = places(classes, random_state)
    held: NDArray[np.bool_] = np.floor((place + 1) * share) > np.floor(place * share)
    return held
