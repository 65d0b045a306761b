"""From a forest with counts to class probabilities. Post-processing: it costs nothing."""

from __future__ import annotations

from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.after.confidence import ConfidentVote, node_confidences
from hedgerow.after.prune import resting_place
from hedgerow.errors import ReleaseError
from hedgerow.forest import LEAVES, CountedForest
from hedgerow.parallel import in_threads, row_blocks
from hedgerow.routing import TOGETHER, descend, route

SUMMED_COUNTS = "summed counts"
MOST_CONFIDENT = "most confident"
WEIGHTED = "weighted by confidence"
MAJORITY = "majority"
PRUNED_SUM = "summed counts of pruned trees"
ADDITIVE = "added scores"  # of a Hedgerow forest; see `after/additive.py`
VOTES = (SUMMED_COUNTS, MOST_CONFIDENT, WEIGHTED, MAJORITY, PRUNED_SUM, ADDITIVE)


class Vote(Protocol):
    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]: ...


@numba.njit(nogil=True, cache=True)
def _add_counts(codes: Any, ask: Any, onward: Any, height: int, counts: Any, sums: Any) -> None:
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            for label in range(sums.shape[1]):
                sums[start + i, label] += counts[node[i], label]


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
        sums = np.zeros((len(codes), self.forest.codebook.n_classes))
        for tree, counts in zip(self.forest.trees, self.counts, strict=True):
            _add_counts(codes, tree.ask, tree.onward, tree.height, counts, sums)
        shares = np.maximum(sums, 0)
        totals = shares.sum(axis=1, keepdims=True)
        return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), self.prior)


class PrunedVote:
    """Fletcher & Islam 2015 (DPDF): each pruned tree votes for the majority class where the row ends.

    weigh: "weighted by confidence", the paper's: a vote counts as much as the share of its class in that node; "majority": all
    votes are equal; "summed counts of pruned trees": the positive counts of those nodes are added up. Ties go to the larger
    summed shares, so that a single tree gives the class shares of its node.
    """

    def __init__(self, forest: CountedForest, weigh: str) -> None:
        self.forest, self.weigh = forest, weigh
        self.place = [resting_place(forest, t) for t in range(len(forest.trees))]
        self.shares = [node_confidences(forest, t) for t in range(len(forest.trees))]

    def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        votes = np.zeros((len(codes), self.forest.codebook.n_classes))
        shares = np.zeros_like(votes)
        every = np.arange(len(codes))
        for t, tree in enumerate(self.forest.trees):
            node = self.place[t][route(tree, codes)]
            here = self.shares[t][node]
            shares += here
            if self.weigh == PRUNED_SUM:
                votes += np.maximum(self.forest.node_counts[t][node], 0)
            else:
                says = self.forest.node_counts[t][node].max(axis=1) > 0  # a node with no positive count says nothing
                votes[every, here.argmax(axis=1)] += says * (here.max(axis=1) if self.weigh == WEIGHTED else 1)
        if len(self.forest.trees) == 1:
            return shares
        total = votes.sum(axis=1, keepdims=True)
        decided = np.where(total > 0, votes / np.maximum(total, 1e-300), 0)
        mixed = decided + 1e-9 * shares  # only a tie is decided by the shares
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


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
