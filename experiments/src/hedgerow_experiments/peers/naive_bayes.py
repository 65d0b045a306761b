"""Private naive Bayes, the plain way: every table of counts with Laplace noise, once.

One row is in one cell of each of the m attribute-by-class tables and of the class totals. ε is split equally over these
m + 1, so every count gets noise of scale (m + 1)/ε. Floating-point noise: for comparison only, not a release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CELLS = 10  # equal-width cells of a numeric attribute over its public bounds


def cells_of(
    X: NDArray[np.float64], sizes: NDArray[np.int64], bounds: NDArray[np.float64], cells: int = CELLS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole numbers for all attributes, and how many each may take."""
    codes = X.copy()
    for j in np.flatnonzero(sizes == 0):
        low, high = bounds[j]
        codes[:, j] = np.clip(np.floor((X[:, j] - low) / (high - low) * cells), 0, cells - 1)
    return codes.astype(np.int64), np.where(sizes == 0, cells, sizes)


class NaiveBayes:
    def __init__(
        self,
        codes: NDArray[np.int64],
        y: NDArray[np.int64],
        sizes: NDArray[np.int64],
        n_classes: int,
        epsilon: float,
        rng: np.random.Generator,
    ) -> None:
        scale = (len(sizes) + 1) / epsilon

        def noisy(exact: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.maximum(exact + rng.laplace(0, scale, exact.shape), 0) + 1

        prior = noisy(np.bincount(y, minlength=n_classes))
        self.log_prior = np.log(prior / prior.sum())
        self.log_tables = []  # log p(value | class), a row for each value
        for j, size in enumerate(sizes.tolist()):
            counts = noisy(np.bincount(codes[:, j] * n_classes + y, minlength=size * n_classes).reshape(size, n_classes))
            self.log_tables.append(np.log(counts / counts.sum(axis=0)))

    def probabilities(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        log_p = self.log_prior + sum(table[codes[:, j]] for j, table in enumerate(self.log_tables))
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
