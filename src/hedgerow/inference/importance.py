"""How much each attribute tells about the class, read from released counts: it costs nothing.

    importance of a   =   Σ  n(c)·(G(c) − G(v))   over the nodes v that ask a, not below 0 for any v, and their children c

    n   rows of a node, its negative counts taken as 0          G   its negative Gini impurity (`prune.gini`)

With exact counts that is the decrease of the Gini impurity, weighted by rows. A node counts only where its support is more
than twice its noise: a few rows of noise look pure, and attributes with many values would win by having many such children.
"""

from __future__ import annotations

import numpy as np

from hedgerow.inference.prune import gini
from hedgerow.inference.rules import Removed
from hedgerow.trees.forest import CountedForest


def importances(forest: CountedForest, removed: Removed = None) -> dict[str, float]:
    """The share of each attribute, by name; they add up to 1, or are all 0 where no split stands out from the noise."""
    sums = np.zeros(len(forest.codebook.sizes))
    for t, tree in enumerate(forest.trees):
        counts = forest.node_counts[t]
        noise = forest.node_noise_sd(t) * np.sqrt(counts.shape[1])
        clear = counts.sum(axis=1) > 2 * noise
        if removed is not None:
            clear &= ~removed[t]
        purity = gini(counts)
        child = np.flatnonzero(clear & (tree.parent >= 0))
        child = child[clear[tree.parent[child]]]
        parent = tree.parent[child]
        gain = np.zeros(tree.n_nodes)
        np.add.at(gain, parent, np.maximum(counts[child], 0).sum(axis=1) * (purity[child] - purity[parent]))
        asks = tree.attribute >= 0
        np.add.at(sums, tree.attribute[asks], np.maximum(gain[asks], 0))
    total = sums.sum()
    shares = sums / total if total > 0 else sums
    return dict(zip(forest.codebook.schema.names, shares.tolist(), strict=True))
