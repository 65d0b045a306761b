"""What `ChooseTree` and `BoostRound` have in common: gradients and Hessians of an additive model, summed in the leaves of trees.

A row of class y has, for each class c, R_c = 1[y = c] − p_c and H_c = p_c·(1 − p_c), p the softmax of the model's margins. The vector
(R, w·H) is scaled down to a norm of at most `bound`, cut towards zero to steps of 1/GRID, and added to the row's leaf in each tree. Of two
classes the second alone is kept.

    concentrated   the Euclidean norm is at most 0.7 (of two classes, where one entry stands for two, 0.7/√2), w = 1
    pure           the L1 norm is at most 1 (of two classes 1/2), w = 1/4
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.errors import PlanError
from hedgerow.queries.query import Block, Counts, Query, Sums
from hedgerow.queries.scores import Score
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel, gradient_width
from hedgerow.trees.oblivious import ObliviousTree

MOST_TREES = 1000  # candidates of one query: as many as one travels with
MOST_SUMS = 1 << 24  # numbers that are counted for one query


def bound(n_classes: int, concentrated: bool) -> int:
    """The norm that no row's vector exceeds, in steps of 1/GRID: Euclidean, or L1 where the price is pure."""
    if concentrated:
        return 2027 if n_classes == 2 else 2867
    return GRID // 2 if n_classes == 2 else GRID


def hessian_weight(concentrated: bool) -> float:
    """w: what a Hessian is multiplied by before it is scaled with its gradient."""
    return 1.0 if concentrated else 0.25


def mechanism(concentrated: bool) -> str:
    """Under concentrated privacy the exponential mechanism costs ε²/8, permute-and-flip four times as much.  [Z2]"""
    return EXPONENTIAL if concentrated else PERMUTE_AND_FLIP


@dataclass(frozen=True, eq=False)
class GradientQuery(Query[Any]):
    """Sums: (trees, leaves of the largest, 2 · gradient_width): first Σ R, then Σ w·H, in steps of 1/GRID."""

    trees: Sequence[ObliviousTree]
    model: AdditiveModel
    concentrated: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "trees", tuple(self.trees))

    def check(self, codebook: Codebook) -> None:
        name = type(self).name
        if not self.trees or type(self.model) is not AdditiveModel or not self.model.fits(codebook.sizes, codebook.n_classes):
            raise PlanError(f"{name}: expected at least one tree, and an AdditiveModel over this schema.")
        if any(type(tree) is not ObliviousTree or tree.sizes != codebook.sizes for tree in self.trees):
            raise PlanError(f"{name}: expected oblivious trees over this schema.")
        if type(self.concentrated) is not bool or len(self.trees) > MOST_TREES or self.zeros_size > MOST_SUMS:
            raise PlanError(f"{name}: at most {MOST_TREES} trees, and {MOST_SUMS} numbers in their leaves. Nothing was spent.")

    @property
    def leaves(self) -> int:
        return max((tree.n_nodes for tree in self.trees), default=0)  # none: `check` refuses

    @property
    def _sums_shape(self) -> tuple[int, int, int]:
        return len(self.trees), self.leaves, 2 * gradient_width(self.model.n_classes)

    @property
    def zeros_size(self) -> int:
        """How many numbers are counted."""
        return math.prod(self._sums_shape)

    @property
    def needs_margins_of(self) -> AdditiveModel:
        return self.model

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(self._sums_shape, dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries.boosting_loops import add_tree_sums

        add_tree_sums(self.trees, self.model, self.concentrated, block.codes, block.classes, block.margins, sums[0])


def tree_score(n_classes: int, concentrated: bool) -> Score:
    """How well a tree tells rows apart that the model gets wrong: Σ over its leaves of ‖Σ R‖, Euclidean or L1, in whole steps.  [V13]"""
    return Score("gradient norm", GRID, Fraction(bound(n_classes, concentrated)), False, _not_of_splits)


def scores_of_trees(sums: Counts, concentrated: bool) -> NDArray[np.int64]:
    """One whole number for each tree: (1, trees)."""
    gradients = sums[:, :, : sums.shape[2] // 2]
    if not concentrated or gradients.shape[2] == 1:
        return np.asarray(np.abs(gradients).sum(axis=(1, 2))[None])
    return np.asarray(_roots(gradients).sum(axis=1)[None])


def _roots(gradients: Counts) -> Counts:
    """⌊√(Σ_c u_c²)⌋ for each leaf, exactly."""
    most = int(np.abs(gradients).max(initial=0))
    if most**2 * gradients.shape[2] >= 2**62:  # above: no 64 bits hold it
        return np.array([[math.isqrt(sum(u * u for u in leaf)) for leaf in tree] for tree in gradients.tolist()], dtype=np.int64)
    squares = (gradients * gradients).sum(axis=2)
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)  # off by less than 1, and put right in whole numbers
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return np.asarray(root)


def _not_of_splits(counts: Counts) -> NDArray[np.int64]:
    raise NotImplementedError("no split has this score")
