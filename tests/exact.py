"""Exact answers of an engine, for tests: what queries count before any noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.queries import (
    Best,
    BestScale,
    BoostRound,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    Reliability,
    Rows,
    ScoreBins,
    Tables,
)
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.tree import Tree

Counts = NDArray[np.int64]


def count_rows(engine: Any) -> int:
    return int(engine.sums(Rows())[0][0])


def leaf_counts(engine: Any, trees: Sequence[Tree]) -> list[Counts]:
    found: list[Counts] = engine.sums(LeafCounts(trees))
    return found


def class_counts(engine: Any, tree: Tree, nodes: Any) -> Counts:
    """The last column holds the rows of no declared class."""
    found: Counts = engine.sums(ClassCounts(tree, nodes))[0]
    return found


def split_counts(engine: Any, tree: Tree, nodes: Any) -> Counts:
    query = Tables.all(tree, nodes)
    return query.declared(engine.sums(query)[0])


def confusion(engine: Any, predict: Any) -> Counts:
    found: Counts = engine.sums(Confusion(predict))[0]
    return found


def confusions(engine: Any, predictors: Any) -> list[Counts]:
    found: list[Counts] = engine.sums(Best(predictors))
    return found


def reliability(engine: Any, probabilities: Any, bins: int) -> Counts:
    found: Counts = engine.sums(Reliability(probabilities, bins))[0]
    return found


def score_bins(engine: Any, probabilities: Any, bins: int, classes: tuple[int, ...]) -> Counts:
    found: Counts = engine.sums(ScoreBins(probabilities, bins, classes))[0]
    return found


def gradient_sums(engine: Any, asked: Sequence[Tree], model: AdditiveModel) -> list[Counts]:
    found: list[Counts] = engine.sums(GradientSums(asked, model))
    return found


def round_sums(engine: Any, trees: Any, model: AdditiveModel, concentrated: bool = False) -> Counts:
    found: Counts = engine.sums(BoostRound(trees, model, concentrated))[0]
    return found


def brier_sums(engine: Any, model: AdditiveModel, scales: Any) -> Counts:
    found: Counts = engine.sums(BestScale(model, scales))[0]
    return found


def even(codes: NDArray[Any]) -> NDArray[np.float64]:
    """A model that knows nothing."""
    return np.full((len(codes), 2), 0.5)
