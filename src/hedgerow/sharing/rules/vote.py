"""What a rule set predicts: the classes of the rule that a row is in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.sharing.pseudo.sizes import class_weights
from hedgerow.trees.paths import Paths

BLOCK = 4_096  # rows that are compared with all rules at a time


class RuleVote:
    """A row has the class shares of its rule. In none, or in one with nobody, it has the shares of all rules together.

    Where a rule asks about a value that has no code, the row is not in the rule.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        weights = class_weights(paths, "counts") * (paths.totals > 0)[:, None]
        together = weights.sum(axis=0)
        prior = together / together.sum() if together.sum() > 0 else np.full(len(together), 1 / len(together))
        totals = weights.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0, weights / np.where(totals > 0, totals, 1), prior)
        self.shares = np.vstack([shares, prior])

    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        return self.shares[self.rule(codes)]

    def rule(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The rule of each row; the number of rules where it is in none."""
        blocks = [self._rule(codes[start : start + BLOCK]) for start in range(0, len(codes), BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)

    def _rule(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        inside = np.ones((len(codes), len(self.paths)), dtype=bool)
        for j, size in enumerate(self.paths.codebook.sizes):
            first = self.paths.first_code[j]
            fits = np.vstack([self.paths.allowed[:, first : first + size].T, ~self.paths.asked[:, j]])
            inside &= fits[np.minimum(codes[:, j].astype(np.int64), size)]
        return np.where(inside.any(axis=1), inside.argmax(axis=1), len(self.paths))
