"""From a forest with counts to class probabilities. Post-processing: it costs nothing.

What a row gets is a function of its codes and of the released counts alone, to the last bit: each row is summed by itself, in the order of
the trees and then of the classes, by compiled loops of IEEE 754 operations that are not reordered. (A NumPy sum over an axis may take
another order for another memory layout.) Private scores rest on this: PROOF.md, V3, V9 and V11.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.inference.confidence import ConfidentVote, node_confidences
from hedgerow.inference.prune import resting_place
from hedgerow.parallel import in_threads, row_blocks
from hedgerow.trees.forest import LEAVES, CountedForest

SUMMED_COUNTS = "summed counts"
MOST_CONFIDENT = "most confident"
WEIGHTED = "weighted by confidence"
MAJORITY = "majority"
PRUNED_SUM = "summed counts of pruned trees"
ADDITIVE = "added scores"  # of a Hedgerow forest; see `inference/additive.py`
VOTES = (SUMMED_COUNTS, MOST_CONFIDENT, WEIGHTED, MAJORITY, PRUNED_SUM, ADDITIVE)


class Vote(Protocol):
    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]: ...


class SummedCounts:
    """Jagannathan et al. 2012, Algorithm 3: P(t | x) = Σ_i α_i[t] / Σ_τ Σ_i α_i[τ], α_i the counts where x ends in tree i.

    The noisy counts are summed as they are, since clamping each would add bias; a negative sum then counts as 0. A row for
    which no sum is positive gets the class shares of the whole table. A row that stops above the leaves, since a value is missing or
    not declared, has the mean of the leaves below: as a whole they would outvote every tree in which the row is known.
    """

    def __init__(self, forest: CountedForest) -> None:
        self.forest = forest
        below = [leaves[:, None] if forest.measured == LEAVES else 1 for leaves in forest.leaves_below]
        self.counts = [counts / leaves for counts, leaves in zip(forest.node_counts, below, strict=True)]
        totals = np.maximum(forest.class_totals, 0)
        even = np.full(len(totals), 1 / len(totals))
        self.prior = totals / totals.sum() if totals.sum() > 0 else even

    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        from hedgerow.inference.vote_loops import add_counts, shares_of_sums

        sums = np.zeros((len(codes), self.forest.codebook.n_classes))
        for tree, counts in zip(self.forest.trees, self.counts, strict=True):
            add_counts(codes, tree.ask, tree.onward, tree.height, counts, sums)
        shares_of_sums(sums, self.prior)
        return sums


class PrunedVote:
    """Fletcher & Islam 2015 (DPDF): each pruned tree votes for the majority class where the row ends.

    weigh: "weighted by confidence", the paper's: a vote counts as much as the share of its class in that node; "majority": all
    votes are equal; "summed counts of pruned trees": the positive counts of those nodes are added up. Ties go to the larger
    summed shares, so that a single tree gives the class shares of its node.
    """

    def __init__(self, forest: CountedForest, weigh: str) -> None:
        self.forest, self.weigh = forest, weigh
        trees = range(len(forest.trees))
        self.place = [resting_place(forest, t) for t in trees]
        self.shares = [node_confidences(forest, t) for t in trees]
        self.label = [shares.argmax(axis=1) for shares in self.shares]
        counted = [counts.max(axis=1) > 0 for counts in forest.node_counts]  # a node with no positive count says nothing
        strength = [shares.max(axis=1) if weigh == WEIGHTED else np.ones(len(shares)) for shares in self.shares]
        self.weight = [says * much for says, much in zip(counted, strength, strict=True)]
        self.counts = [np.maximum(c, 0).astype(np.float64) if weigh == PRUNED_SUM else np.empty((len(c), 0)) for c in forest.node_counts]

    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        from hedgerow.inference.vote_loops import add_votes, decide

        votes = np.zeros((len(codes), self.forest.codebook.n_classes))
        shares = np.zeros_like(votes)
        tables = zip(self.place, self.shares, self.label, self.weight, self.counts, strict=True)
        for tree, table in zip(self.forest.trees, tables, strict=True):
            add_votes(codes, tree.ask, tree.onward, tree.height, *table, shares, votes)
        if len(self.forest.trees) == 1:
            return shares
        decide(votes, shares)
        return votes


def vote_named(name: str, forest: CountedForest, noise_rule: str = "paper") -> Vote:
    if name == SUMMED_COUNTS:
        return SummedCounts(forest)
    if name == MOST_CONFIDENT:
        return ConfidentVote(forest, noise_rule)
    if name in VOTES:
        return PrunedVote(forest, name)
    raise ReleaseError(f"vote: got {name!r}; expected one of {', '.join(VOTES)}.")


def probabilities(vote: Vote, codes: NDArray[Any], n_classes: int, n_jobs: int = 1) -> NDArray[np.float64]:
    """Class probabilities of all rows, block by block so that memory stays small, on `n_jobs` threads."""
    result = np.empty((len(codes), n_classes))

    def fill(block: slice) -> None:
        result[block] = vote.probabilities(codes[block])

    in_threads(fill, row_blocks(len(codes)), n_jobs)
    return result
