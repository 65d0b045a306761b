"""Votes for a few rows by NumPy alone, bit for bit as the compiled ones: see `trees/few_rows.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.vote import SummedCounts, Vote
from hedgerow.trees.few_rows import Floats, few_margins, route_few, softmax, total_of


def few_rows(vote: Vote, codes: NDArray[Any]) -> Floats:
    """Class probabilities of all rows."""
    if isinstance(vote, AdditiveForest):
        return softmax(few_margins(vote.model, codes))
    if isinstance(vote, SummedCounts):
        return summed_counts(vote, codes)
    return vote.probabilities(codes)


def summed_counts(vote: SummedCounts, codes: NDArray[Any]) -> Floats:
    sums = np.zeros((len(codes), vote.forest.codebook.n_classes))
    for tree, counts in zip(vote.forest.trees, vote.counts, strict=True):
        sums += counts[route_few(tree, codes)]
    sums[~(sums > 0)] = 0.0
    total = total_of(sums)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, sums / total, vote.prior)
