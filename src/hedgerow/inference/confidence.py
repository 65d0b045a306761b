"""Fletcher & Islam 2015 (DP-RF), sections 4.5 to 4.7: signal-to-noise pruning, the most confident node, their vote.

Everything here is computed from released noisy counts and the public noise scale: it costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.noise import rough_variance
from hedgerow.trees.forest import CountedForest


def signal_to_noise(forest: CountedForest, tree: int, noise_rule: str) -> NDArray[np.float64]:
    """Eq. 10 for every node: its noisy support over the noise of the leaves below it.

    The paper's noise is |C|·√2·√leaves/ε; the standard deviation of the sum of |C| counts is √(2|C|)·√leaves/ε ("tight").
    """
    support = forest.node_counts[tree].sum(axis=1)
    n_classes = forest.codebook.n_classes
    classes = n_classes**2 if noise_rule == "paper" else n_classes
    variance = sum(rough_variance(noise) for noise in forest.scales[tree])
    noise = np.sqrt(classes * variance * forest.leaves_below[tree])  # one root at the end: a ratio of exactly 1 is not rounded below it
    return np.asarray(support / np.maximum(noise, np.finfo(float).tiny))


def unreliable(forest: CountedForest, tree: int, noise_rule: str) -> NDArray[np.bool_]:
    """Section 4.5, nodes that pruning removes: SNR < 1, and everything below them. The root stays."""
    removed = signal_to_noise(forest, tree, noise_rule) < 1
    removed[0] = False
    structure = forest.trees[tree]
    for here in structure.levels[1:]:
        removed[here] |= removed[structure.parent[here]]
    return removed


def node_confidences(forest: CountedForest, tree: int) -> NDArray[np.float64]:
    """Class shares of every node, negative counts taken as 0; a node with no positive count says nothing (even shares)."""
    counts = np.maximum(forest.node_counts[tree], 0)
    totals = counts.sum(axis=1, keepdims=True)
    even = 1 / counts.shape[1]
    return np.asarray(np.where(totals > 0, counts / np.maximum(totals, 1), even))


def most_confident_nodes(forest: CountedForest, tree: int, noise_rule: str) -> NDArray[np.int32]:
    """For every node where a row may end, the most confident node that is left on its path (section 4.6)."""
    structure = forest.trees[tree]
    removed = unreliable(forest, tree, noise_rule)
    confidence = node_confidences(forest, tree).max(axis=1)
    best = np.zeros(structure.n_nodes, dtype=np.int32)
    for here in structure.levels[1:]:
        above = best[structure.parent[here]]
        better = ~removed[here] & (confidence[here] > confidence[above])
        best[here] = np.where(better, here, above)
    return best


class ConfidentVote:
    """Section 4.7: the single highest confidence decides; a tie between classes goes to the summed confidences."""

    def __init__(self, forest: CountedForest, noise_rule: str) -> None:
        self.forest = forest
        self.chosen = [most_confident_nodes(forest, t, noise_rule) for t in range(len(forest.trees))]
        self.shares = [node_confidences(forest, t) for t in range(len(forest.trees))]
        self.sure = [shares.max(axis=1) for shares in self.shares]
        self.label = [shares.argmax(axis=1) for shares in self.shares]

    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Each row by itself, in the order of the trees: see `inference/vote.py`."""
        from hedgerow.inference.vote_loops import add_confidence, break_ties

        rows, n_classes = len(codes), self.forest.codebook.n_classes
        state = np.zeros((rows, 2 + n_classes))
        state[:, 0] = -1.0
        winner, predicted = np.zeros((rows, n_classes)), np.zeros(rows, dtype=np.int64)
        tables = zip(self.chosen, self.shares, self.sure, self.label, strict=True)
        for tree, table in zip(self.forest.trees, tables, strict=True):
            add_confidence(codes, tree.ask, tree.onward, tree.height, *table, state, predicted, winner)
        break_ties(winner, state, len(self.forest.trees))
        return winner
