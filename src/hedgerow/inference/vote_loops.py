"""Compiled: the votes of trees, row by row, in the order of the trees (see `vote.py`).

Imported when rows are predicted, since numba takes a while to be imported.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from hedgerow.trees.routing import TOGETHER, descend


@numba.njit(nogil=True, cache=True)
def add_counts(codes: Any, ask: Any, onward: Any, height: int, counts: Any, sums: Any) -> None:
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            for label in range(sums.shape[1]):
                sums[start + i, label] += counts[node[i], label]


@numba.njit(nogil=True, cache=True)
def shares_of_sums(sums: Any, prior: Any) -> None:
    """In place: negative sums are 0, and a row is divided by its total; where that is 0 it gets the prior."""
    for i in range(sums.shape[0]):
        total = 0.0
        for c in range(sums.shape[1]):
            if not sums[i, c] > 0:
                sums[i, c] = 0.0
            total += sums[i, c]
        for c in range(sums.shape[1]):
            sums[i, c] = sums[i, c] / total if total > 0 else prior[c]


@numba.njit(nogil=True, cache=True)
def add_votes(
    codes: Any, ask: Any, onward: Any, height: int, place: Any, here: Any, label: Any, weight: Any, counts: Any, shares: Any, votes: Any
) -> None:
    """One tree: its shares where a row rests, and its vote: the counts there, or where there are none a weight for one class."""
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            rests = place[node[i]]
            for c in range(shares.shape[1]):
                shares[start + i, c] += here[rests, c]
            for c in range(counts.shape[1]):
                votes[start + i, c] += counts[rests, c]
            if not counts.shape[1]:
                votes[start + i, label[rests]] += weight[rests]


@numba.njit(nogil=True, cache=True)
def decide(votes: Any, shares: Any) -> None:
    """In place: votes as parts of their sum, and only a tie is decided by the shares."""
    for i in range(votes.shape[0]):
        total = 0.0
        for c in range(votes.shape[1]):
            total += votes[i, c]
        mixed = 0.0
        for c in range(votes.shape[1]):
            votes[i, c] = (votes[i, c] / max(total, 1e-300) if total > 0 else 0.0) + 1e-9 * shares[i, c]
            mixed += votes[i, c]
        for c in range(votes.shape[1]):
            votes[i, c] /= mixed


@numba.njit(nogil=True, cache=True)
def add_confidence(
    codes: Any, ask: Any, onward: Any, height: int, chosen: Any, shares: Any, sure: Any, label: Any, state: Any, predicted: Any, winner: Any
) -> None:
    """One tree. state: for each row the highest confidence so far, whether it is tied, then the summed confidences of each class."""
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            best, row = chosen[node[i]], start + i
            for c in range(shares.shape[1]):
                state[row, 2 + c] += shares[best, c]
            if sure[best] > state[row, 0]:
                state[row, 0], state[row, 1], predicted[row] = sure[best], 0.0, label[best]
                for c in range(shares.shape[1]):
                    winner[row, c] = shares[best, c]
            elif sure[best] == state[row, 0] and label[best] != predicted[row]:
                state[row, 1] = 1.0


@numba.njit(nogil=True, cache=True)
def break_ties(winner: Any, state: Any, trees: int) -> None:
    """A node may be even between classes: that too is a tie which the sums decide."""
    for i in range(winner.shape[0]):
        highest = 0
        for c in range(winner.shape[1]):
            highest += winner[i, c] == state[i, 0]
        if highest > 1 or state[i, 1] > 0:
            for c in range(winner.shape[1]):
                winner[i, c] = state[i, 2 + c] / trees
