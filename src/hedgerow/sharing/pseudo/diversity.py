"""How anonymous pseudo-rows are by themselves: groups of rows with the same value in every attribute, counted block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.sharing.pseudo.generate import Block

MOST_GROUPS = 2_000_000  # that are kept; a table with more is not measured


class Diversity:
    """Counts of (group, class), a group known by a 64-bit hash of its values."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self.counts: NDArray[np.int64] = np.empty((0, n_classes), dtype=np.int64)
        self.too_many = False

    def add(self, block: Block) -> None:
        if self.too_many:
            return
        keys, place = np.unique(np.concatenate([self.keys, _hashes(block)]), return_inverse=True)
        self.too_many = len(keys) > MOST_GROUPS
        counts = np.zeros((len(keys), self.n_classes), dtype=np.int64)
        counts[place[: len(self.keys)]] = self.counts
        np.add.at(counts, (place[len(self.keys) :], block.classes), 1)
        self.keys, self.counts = keys, counts

    def measured(self) -> dict[str, Any]:
        """The worst group: fewest rows (k), fewest classes (ℓ), largest share of one class (α)."""
        if self.too_many:
            return {"measured": False, "why": f"more than {MOST_GROUPS} different rows"}
        if not len(self.keys):
            return {"measured": False, "why": "no rows"}
        totals = self.counts.sum(axis=1)
        return {
            "measured": True,
            "groups": len(self.keys),
            "smallest_group": int(totals.min()),
            "fewest_classes_in_a_group": int((self.counts > 0).sum(axis=1).min()),
            "largest_share_of_one_class": float((self.counts.max(axis=1) / totals).max()),
        }


def _hashes(block: Block) -> NDArray[np.uint64]:
    """One number for each row: equal rows have equal ones, and others practically never."""
    found = np.full(len(block), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(block.codes.shape[1]):
        column = block.numbers[j].view(np.uint64) if j in block.numbers else block.codes[:, j].astype(np.uint64)
        found = _mixed(found ^ _mixed(column + np.uint64(j + 1)))
    return found


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of splitmix64: every bit of the result depends on every bit of x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
