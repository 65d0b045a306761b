"""Exact counts with no privacy at all, for the non-private baselines and for public rows. What is made from them says `guarantee: none`.

It is not a PrivateTable and cannot be given to a private estimator's grower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.engine import Engine
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.trees.tree import Tree


class ExactTable:
    """The verbs without noise and without a price."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def rows(self) -> int:
        return self._engine.count_rows()

    def leaf_counts(self, trees: list[Tree]) -> list[NDArray[np.int64]]:
        return self._engine.leaf_counts(trees)

    def split_counts(self, tree: Tree, nodes: list[int]) -> NDArray[np.int64]:
        return self._engine.split_counts(tree, np.asarray(nodes, dtype=np.int64))

    def confusion(self, predict: Predictor) -> NDArray[np.int64]:
        return self._engine.confusion(predict)

    def reliability(self, probabilities: Probabilities, bins: int) -> NDArray[np.int64]:
        return self._engine.reliability(probabilities, bins)
