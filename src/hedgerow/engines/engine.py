"""What a place where rows live can answer: exact integer counts, and those only to `hedgerow.mechanisms`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.tree import Tree

Progress = Callable[[float], None]
"""Called with the share of a pass over the rows that is done, from 0 to 1. If it has a method `rows_seen(rows)`, that is called with how
many rows the pass has read: a private number, for the screen of whoever holds the table."""


class Engine(Protocol):
    """Exact answers about the rows of one table. Opening may be slow and happens at the first question."""

    @property
    def codebook(self) -> Codebook: ...

    @property
    def assumed(self) -> str:
        """What a certificate says about where the rows came from; "" where there is nothing to say."""
        ...

    def close(self) -> None:
        """Nothing more will be asked."""
        ...

    def count_rows(self) -> int: ...

    def leaf_counts(self, trees: list[Tree]) -> list[NDArray[np.int64]]: ...

    def class_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class counts of each node, and last the rows of no declared class: (nodes, classes + 1)."""
        ...

    def split_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """(node, cell, class) counts, the cells of all attributes side by side (`splits.offsets`)."""
        ...

    def confusions(self, predictors: Sequence[Predictor]) -> list[NDArray[np.int64]]:
        """The confusion of each predictor, all in one pass."""
        ...

    def confusion(self, predict: Predictor) -> NDArray[np.int64]:
        """Counts of (true class, predicted class); one row more than there are classes, for rows of no declared class."""
        ...

    def reliability(self, probabilities: Probabilities, bins: int) -> NDArray[np.int64]:
        """Counts of (bin of the largest probability; wrong, right): (bins, 2). Rows of no declared class are counted nowhere."""
        ...

    def gradient_sums(self, asked: list[Tree], model: AdditiveModel) -> list[NDArray[np.int64]]:
        """For each leaf of each asked tree the sum of its rows' gradients in whole steps (`additive_model.GRID` for 1)."""
        ...

    def brier_sums(self, model: AdditiveModel, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """For each scale the sum over the rows of the Brier score of softmax(scale · margins), in steps of 1/GRID, each row's at most 2."""
        ...
