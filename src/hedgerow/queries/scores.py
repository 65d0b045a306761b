"""The closed list of split scores, each with its proven sensitivity: how good is a split of a node, as an integer.

A score is data access: the query `Choose` takes a member of this list, never a function from a grower. Scores are integers
on a grid of `unit` steps for 1, computed from exact integer counts, so that the private choice over them is exact.

    n_v    rows of the node whose value leads to child v        n_vc   those of class c

Sensitivity Δ is that of the integer score, in grid steps, for add/remove-one neighbours. `monotone` means that adding a row never
raises any candidate's score of a node more than a constant that all candidates of the node share; then the choice
costs rate·Δ instead of 2·rate·Δ. Theorems C1 to C4 of PROOF.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.additive_model import GRID as STEPS
from hedgerow.trees.splits import Candidates, offsets

Counts = NDArray[np.int64]  # (nodes, children, classes)
Scores = NDArray[np.int64]  # (nodes,)

GRID = 1024
NORMAL_GRID = 1 << 20  # for scores between −1 and 0


@dataclass(frozen=True)
class Score:
    """One member of the list."""

    name: str
    unit: int
    sensitivity: Fraction  # of the integer score, in grid steps
    monotone: bool
    of: Callable[[Counts], Scores]

    @property
    def plain_sensitivity(self) -> Fraction:
        """The sensitivity as the papers write it, for a score where 1 is 1."""
        return self.sensitivity / self.unit


def _gini(counts: Counts) -> Scores:
    """Σ_v Σ_c n_vc² / n_v, each child's term rounded down to the grid; an empty child counts 0.  [C1]

    That is the Gini impurity of the children taken off the rows that they hold: a row that no child takes adds nothing, and so a split that
    loses rows (a value that is not declared) is no better for it.
    """
    counts = _bounded(counts)
    n_v = counts.sum(axis=2)
    squares = (counts * counts).sum(axis=2)
    divisor = np.maximum(n_v, 1)
    whole, rest = np.divmod(squares, divisor)  # in two steps, so that no product leaves 64 bits
    terms = GRID * whole + rest * GRID // divisor
    return np.asarray(terms.sum(axis=1))


def _bounded(counts: Counts) -> Counts:
    """Counts no larger than sums of squares can hold. A row changes the bounded table by one step or not at all."""
    return np.minimum(counts, math.isqrt(2**62 // counts.shape[2]))


def _max(counts: Counts) -> Scores:
    """Σ_v max_c n_vc: how many rows the majority of each child gets right.  [C2]"""
    return np.asarray(counts.max(axis=2).sum(axis=1))


def _normal_gini(counts: Counts) -> Scores:
    """The Gini index divided by the node's rows, between −1 and 0, rounded down to a finer grid.  [C4]"""
    counts = _bounded(counts)
    n = np.maximum(counts.sum(axis=(1, 2)), 1)
    n_v = counts.sum(axis=2)
    squares = (counts * counts).sum(axis=2)
    exact = [
        sum((Fraction(int(s), int(m)) - int(m) for s, m in zip(row, sizes, strict=True) if m), Fraction(0))
        for row, sizes in zip(squares, n_v, strict=True)
    ]
    return np.array([math.floor(NORMAL_GRID * value / int(rows)) for value, rows in zip(exact, n, strict=True)], dtype=np.int64)


def _entropy(most_rows: int) -> Callable[[Counts], Scores]:
    def score(counts: Counts) -> Scores:
        """Σ_v (Σ_c L(n_vc) − L(n_v)), L(n) ≈ n·log2 n: minus the rows' conditional entropy.  [C3]"""
        return np.asarray(_n_log_n(counts, most_rows).sum(axis=(1, 2)) - _n_log_n(counts.sum(axis=2), most_rows).sum(axis=1))

    return score


def _n_log_n(n: Counts, most_rows: int) -> Counts:
    """⌊GRID·n·log2 n⌉ up to `most_rows`, then straight on with the slope reached there: a function of n alone.  [C3]"""
    values, which = np.unique(np.minimum(n, most_rows), return_inverse=True)
    # One number at a time: a library's loop over an array may take another path for its tail or where the array lies elsewhere.
    logarithms = np.array([math.log2(max(value, 1)) for value in values.tolist()])
    curve = np.rint(GRID * values.astype(np.float64) * logarithms).astype(np.int64)[which].reshape(n.shape)
    return np.asarray(curve + np.maximum(n - most_rows, 0) * _steepest(most_rows))


def _steepest(most_rows: int) -> int:
    """GRID·(log2(N + 1) + 1/ln 2), rounded up: more than one more row adds to n·log2 n for any n < N."""
    return math.ceil(GRID * (math.log2(most_rows + 1) + 1 / math.log(2)))


def _not_of_splits(counts: Counts) -> Scores:
    raise NotImplementedError("no split has this score")


GINI = Score("count-scaled Gini", GRID, Fraction(2 * GRID), True, _gini)  # [C1]
MAX = Score("max", 1, Fraction(1), True, _max)  # [C2]
NORMAL_GINI = Score("Gini index, Δ = 1/2", NORMAL_GRID, Fraction(NORMAL_GRID, 2) + 1, False, _normal_gini)  # [C4]
BRIER = Score("Brier score", STEPS, Fraction(2 * STEPS), True, _not_of_splits)  # of `best_scale` and `best_model`  [V12, V17]
MOST_ROWS = 1 << 34  # above this the floats in `_n_log_n` could be off by more than one step


def information_gain(most_rows: int) -> Score:
    """Δ = log2(N + 1) + 1/ln 2 for N = `most_rows`, a public number: never the true or a noisy size.

    The proof holds for tables of any size; but counts far above N are scored alike, so N should be above the table's size.
    """
    if not 1 <= most_rows <= MOST_ROWS:
        raise ValueError(f"most_rows: got {most_rows}; expected 1 to {MOST_ROWS}")
    bound = Fraction(_steepest(most_rows) + 16)
    return Score(f"information gain, N = {most_rows}", GRID, bound, True, _entropy(most_rows))  # [C3]


def score_named(name: str) -> Score | None:
    """The member of the list that has this name, if there is one."""
    known = {score.name: score for score in (GINI, MAX, NORMAL_GINI)}
    kind, _, most_rows = name.partition(", N = ")
    if kind == "information gain" and most_rows.isdecimal() and len(most_rows) <= 20 and 1 <= int(most_rows) <= MOST_ROWS:
        return information_gain(int(most_rows))
    return known.get(name)


def scores_of(score: Score, counts: Counts, candidates: Candidates) -> NDArray[np.int64]:
    """The score of every candidate at every node, from (node, cell, class) counts: (nodes, candidates)."""
    first = offsets(candidates.codebook.sizes)
    found = np.empty((len(counts), len(candidates)), dtype=np.int64)
    for i, split in enumerate(candidates.splits):
        cells = counts[:, first[split.attribute] : first[split.attribute + 1], :]
        if split.n_children < len(split.groups):
            groups = np.array(split.groups)
            cells = np.stack([cells[:, groups == child, :].sum(axis=1) for child in range(split.n_children)], axis=1)
        found[:, i] = score.of(cells)
    return found
