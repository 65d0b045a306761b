"""Fletcher & Islam 2015 (DPDF), section 3.2: leaves that do not make their parent better are taken away (Eq. 27).

Computed from released counts: it costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.forest import CountedForest

ROUNDING = 1e-12  # what floats may take from a tie


def gini(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """G of Eq. 4 for one set of class counts: the negative impurity, 0 where all rows are of one class; negative counts as 0."""
    positive = np.maximum(counts, 0).astype(np.float64)
    total = np.maximum(positive.sum(axis=-1, keepdims=True), 1)
    return np.asarray(((positive / total) ** 2).sum(axis=-1) - 1)


def pruned_nodes(forest: CountedForest, tree: int) -> NDArray[np.bool_]:
    """Procedure PruneTree: which nodes it removes, from the deepest level up.

    A parent whose children are all leaves by now loses them if G(parent) is at least their mean, weighted by their own sizes.
    """
    structure, counts = forest.trees[tree], forest.node_counts[tree]
    removed = np.zeros(structure.n_nodes, dtype=bool)
    asks = structure.attribute >= 0
    for level in structure.levels[::-1]:
        for parent in level[asks[level]]:
            children = np.unique(structure.children(int(parent)))
            children = children[children >= 0]
            if asks[children].any():
                continue
            sizes = np.maximum(counts[children].sum(axis=1), 0)  # lines 41 and 42
            mean = (sizes * gini(counts[children])).sum() / sizes.sum() if sizes.sum() > 0 else -np.inf
            if gini(counts[parent]) >= mean - ROUNDING:
                removed[children] = True
                asks[parent] = False
    for level in structure.levels[1:]:
        removed[level] |= removed[structure.parent[level]]
    return removed


def resting_place(forest: CountedForest, tree: int) -> NDArray[np.int64]:
    """For every node, itself or the lowest node above it that pruning leaves."""
    structure, removed = forest.trees[tree], pruned_nodes(forest, tree)
    place = np.arange(structure.n_nodes)
    for level in structure.levels[1:]:
        gone = removed[level]
        place[level[gone]] = place[structure.parent[level[gone]]]
    return place
