"""What is asked of every block of rows: whole numbers that add up, in whichever order and wherever the blocks are.

A question is plain data, so that it can travel to where the rows are (another thread, a Spark executor). Its answer over a table is the
sum of what each block adds; each row's share depends on that row alone. The labels of PROOF.md stand at the verbs of `private_table.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries import kernels
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.queries.reliability_bins import bin_edges, reliability
from hedgerow.trees.additive_model import AdditiveModel, gradient_width
from hedgerow.trees.tree import Tree

Sums: TypeAlias = list[NDArray[np.int64]]
Codes: TypeAlias = NDArray[Any]
Classes: TypeAlias = NDArray[np.uint16]


class Question(ABC):
    """Arrays to add to, and what a block of rows adds."""

    @abstractmethod
    def zeros(self) -> Sums: ...

    @abstractmethod
    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None: ...


@dataclass(frozen=True, eq=False)
class RowCount(Question):
    def zeros(self) -> Sums:
        return [np.zeros(1, dtype=np.int64)]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        sums[0][0] += len(codes)


@dataclass(frozen=True, eq=False)
class LeafCounts(Question):
    """Class counts in every leaf of every tree: (leaves, classes) each."""

    trees: list[Tree]
    n_classes: int

    def zeros(self) -> Sums:
        return [np.zeros((len(tree.leaves), self.n_classes), dtype=np.int64) for tree in self.trees]

    @cached_property
    def places(self) -> list[Any]:
        return [kernels.leaf_places(tree) for tree in self.trees]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        kernels.add_leaf_counts(self.trees, codes, classes, sums, self.places)


@dataclass(frozen=True, eq=False)
class ClassCounts(Question):
    """Class counts of each node, and last the rows of no declared class: (nodes, classes + 1)."""

    tree: Tree
    nodes: NDArray[np.int64]
    n_classes: int

    def zeros(self) -> Sums:
        return [np.zeros((len(self.nodes), self.n_classes + 1), dtype=np.int64)]

    @cached_property
    def slot(self) -> Any:
        return kernels.slots(self.tree, self.nodes)

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        kernels.add_class_counts(self.tree, self.slot, codes, classes, sums[0])


@dataclass(frozen=True, eq=False)
class SplitCounts(Question):
    """(node, cell, class) counts. Each attribute has a last cell for rows without a branch; the last class is for undeclared ones."""

    tree: Tree
    nodes: NDArray[np.int64]
    n_classes: int

    def zeros(self) -> Sums:
        cells = kernels.split_cells(self.tree)[1]
        return [np.zeros((len(self.nodes), cells, self.n_classes + 1), dtype=np.int64)]

    @cached_property
    def slot(self) -> Any:
        return kernels.slots(self.tree, self.nodes)

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        kernels.add_split_counts(self.tree, self.slot, codes, classes, sums[0])


@dataclass(frozen=True, eq=False)
class Confusions(Question):
    """Counts of (true class, predicted class) for each predictor; one row more than there are classes, for rows of no declared class."""

    predictors: Sequence[Predictor]
    n_classes: int

    def zeros(self) -> Sums:
        return [np.zeros((self.n_classes + 1, self.n_classes), dtype=np.int64) for _ in self.predictors]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        for block in row_blocks(len(codes), ROWS_AT_ONCE):
            for predict, table in zip(self.predictors, sums, strict=True):
                predicted = predict(codes[block])
                if predicted.shape != classes[block].shape:  # a broadcast would count a row many times
                    raise TableError("a prediction is one class for each row.")
                np.add.at(table, (classes[block], predicted), 1)


@dataclass(frozen=True, eq=False)
class ReliabilityCounts(Question):
    """Counts of (bin of the largest probability; wrong, right): (bins, 2)."""

    probabilities: Probabilities
    bins: int
    n_classes: int

    def zeros(self) -> Sums:
        return [np.zeros((self.bins, 2), dtype=np.int64)]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        edges = bin_edges(self.n_classes, self.bins)
        for block in row_blocks(len(codes), ROWS_AT_ONCE):
            sums[0] += reliability(self.probabilities(codes[block]), classes[block], self.n_classes, edges)


@dataclass(frozen=True, eq=False)
class GradientSums(Question):
    """For each leaf of each asked tree the sum of its rows' gradients, in whole steps."""

    asked: Sequence[Tree]
    model: AdditiveModel

    def zeros(self) -> Sums:
        width = gradient_width(self.model.n_classes)
        return [np.zeros((len(tree.leaves), width), dtype=np.int64) for tree in self.asked]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        self.add_with(codes, classes, sums, None)

    def add_with(self, codes: Codes, classes: Classes, sums: Sums, margins: NDArray[np.float64] | None) -> None:
        """The same where the model's margins of these rows are known."""
        for total, more in zip(sums, kernels.gradient_sums(list(self.asked), self.model, codes, classes, margins), strict=True):
            total += more


@dataclass(frozen=True, eq=False)
class BrierSums(Question):
    """For each scale the sum of the rows' Brier scores, in whole steps."""

    model: AdditiveModel
    scales: NDArray[np.float64]

    def zeros(self) -> Sums:
        return [np.zeros(len(self.scales), dtype=np.int64)]

    def add(self, codes: Codes, classes: Classes, sums: Sums) -> None:
        self.add_with(codes, classes, sums, None)

    def add_with(self, codes: Codes, classes: Classes, sums: Sums, margins: NDArray[np.float64] | None) -> None:
        sums[0] += kernels.brier_sums(self.model, self.scales, codes, classes, margins)
