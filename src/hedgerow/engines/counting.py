"""The verbs of an engine, each as one question over all rows: what engines share, wherever their rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.growing import GrowingTree
from hedgerow.queries import kernels
from hedgerow.queries.blocks import (
    BrierSums,
    ClassCounts,
    Confusions,
    GradientSums,
    LeafCounts,
    Question,
    ReliabilityCounts,
    RowCount,
    SplitCounts,
    Sums,
)
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.tree import Tree


class CountingRows(ABC):
    """An engine that can answer one question at a time over all its rows."""

    codebook: Codebook
    assumed = ""  # what a certificate says about where the rows came from

    def __init__(self, codebook: Codebook) -> None:
        self.codebook = codebook
        self._growing = GrowingTree()

    @abstractmethod
    def _ask(self, question: Question) -> Sums:
        """The question's arrays, added up over all rows: one pass."""

    def close(self) -> None:
        """Nothing more will be asked: a connection is ended, a folder of one's own is taken away."""
        return

    def count_rows(self) -> int:
        return int(self._ask(RowCount())[0][0])

    def leaf_counts(self, trees: list[Tree]) -> list[NDArray[np.int64]]:
        return self._ask(LeafCounts(trees, self.codebook.n_classes))

    def class_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        known = self._growing.class_counts(tree, nodes)
        if known is not None:
            return known
        counts = self._ask(ClassCounts(tree, nodes, self.codebook.n_classes))[0]
        self._growing.keep_class_counts(tree, nodes, counts)
        return counts

    def split_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = self._growing.split_counts(tree, nodes)
        if counts is None:
            counts = self._ask(SplitCounts(tree, nodes, self.codebook.n_classes))[0]
            self._growing.keep_split_counts(tree, nodes, counts)
        return _without_stops(tree, counts)

    def gradient_sums(self, asked: list[Tree], model: AdditiveModel) -> list[NDArray[np.int64]]:
        return self._ask(GradientSums(asked, model))

    def brier_sums(self, model: AdditiveModel, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        return self._ask(BrierSums(model, scales))[0]

    def confusions(self, predictors: Sequence[Predictor]) -> list[NDArray[np.int64]]:
        nothing = np.zeros((1, len(self.codebook.sizes)), dtype=self.codebook.dtype)
        for predict in predictors:
            predict(nothing)  # what it makes once is made now, and not by several threads
        return self._ask(Confusions(predictors, self.codebook.n_classes))

    def confusion(self, predict: Predictor) -> NDArray[np.int64]:
        return self.confusions([predict])[0]

    def reliability(self, probabilities: Probabilities, bins: int) -> NDArray[np.int64]:
        return self._ask(ReliabilityCounts(probabilities, bins, self.codebook.n_classes))[0]


def _without_stops(tree: Tree, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cells of declared values and the declared classes alone: rows that could not go on, or have no class, support no split."""
    first, _ = kernels.split_cells(tree)
    return np.ascontiguousarray(np.delete(counts, first + np.asarray(tree.sizes), axis=1)[:, :, :-1])
