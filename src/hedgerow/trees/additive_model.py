"""An additive model: trees whose nodes hold a score for each class; a row's margins are the sums of what it meets. Public numbers.

    F_c(x) = base_c + Σ_t scores_t[node where x ends in tree t, c]          P(class c) = e^(F_c) / Σ_d e^(F_d)

Everything computed here for a row is a function of that row's codes and of the model alone, to the last bit: sums are taken in the
order of the trees, and `exp_minus` (`additive_loops.py`) uses nothing but sums and products, which IEEE 754 rounds in one way. (A
library's exp may differ in the last bit between a loop's vector part and its rest, so that a row's place among others would matter.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.parallel import in_threads
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

if TYPE_CHECKING:
    from hedgerow.trees.additive_loops import exp_minus as exp_minus

MOST_SCORE = 1e6  # no sum of such scores leaves the range in which floats are precise
GRID = 2**12  # whole steps for 1 in a gradient
BLOCK = 8_192  # rows whose codes and margins stay in cache while each tree adds to them
AT_ONCE = 1 << 13  # scores of trees that are added in one loop: as many as stay in a near cache


class _Frozen(np.ndarray[Any, np.dtype[np.float64]]):
    """An array that was copied and made read-only by `_frozen`."""


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """base: (classes,); scores: for each tree (nodes, classes), of an oblivious tree (leaves, classes).

    Arrays are copied, and cannot be changed afterwards.
    """

    base: NDArray[np.float64]
    trees: tuple[Tree | ObliviousTree, ...]
    scores: tuple[NDArray[np.float64], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _frozen(self.base))
        object.__setattr__(self, "trees", tuple(self.trees))
        object.__setattr__(self, "scores", tuple(map(_frozen, self.scores)))
        classes = self.base.shape
        shapes = [(tree.n_nodes, *classes) for tree in self.trees]
        if len(classes) != 1 or [scores.shape for scores in self.scores] != shapes:
            raise PlanError("additive model: expected one score for each class, in the base and in every node of every tree.")

    def plus(self, trees: Sequence[Tree | ObliviousTree], scores: Sequence[NDArray[np.float64]]) -> AdditiveModel:
        """This model with trees added at the end: only these are checked."""
        more, whole = AdditiveModel(self.base, tuple(trees), tuple(scores)), object.__new__(AdditiveModel)
        whole.__dict__.update(base=self.base, trees=self.trees + more.trees, scores=self.scores + more.scores)
        return whole

    @property
    def n_classes(self) -> int:
        return len(self.base)

    def fits(self, sizes: tuple[int, ...], n_classes: int) -> bool:
        """Whether it is made for rows with these domain sizes and for so many classes."""
        return self.n_classes == n_classes and all(tree.sizes == sizes for tree in self.trees)

    def continues(self, other: AdditiveModel) -> bool:
        """Whether it is the other model with trees added at the end, or none: then its margins are the other's and more, bit by bit."""
        known = len(other.trees)
        return (
            np.array_equal(self.base, other.base)
            and self.trees[:known] == other.trees
            and all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in zip(self.scores, other.scores, strict=False))
        )

    def margins(self, codes: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
        """F of every row: (rows, classes)."""
        out = np.empty((len(codes), self.n_classes))
        self.add_margins(codes, out, n_jobs)
        return out

    def add_margins(self, codes: NDArray[Any], out: NDArray[np.float64], n_jobs: int = 1, known: int = 0) -> None:
        """The same into an array that is there. `known`: it holds the margins of the model's first so many trees already."""

        adders = list(_adders(self.trees[known:], self.scores[known:])) if known else self._all_adders

        def work(block: slice) -> None:
            if not known:
                out[block] = self.base
            for add in adders:
                add(codes[block], out[block])

        in_threads(work, (slice(start, start + BLOCK) for start in range(0, len(codes), BLOCK)), n_jobs)

    @cached_property
    def _all_adders(self) -> list[Callable[[NDArray[Any], Any], None]]:
        """Kept, since a stream asks again for every block."""
        return list(_adders(self.trees, self.scores))

    def __getstate__(self) -> dict[str, Any]:
        return {"base": self.base, "trees": self.trees, "scores": self.scores}

    def probabilities(self, codes: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
        """The softmax of the margins: (rows, classes)."""
        from hedgerow.trees.additive_loops import softmax

        margins = self.margins(codes, n_jobs)
        softmax(margins)
        return margins


def _adders(trees: Sequence[Tree | ObliviousTree], scores: Sequence[NDArray[np.float64]]) -> Iterator[Callable[[NDArray[Any], Any], None]]:
    """What adds the scores of all trees, in their order, to the margins of rows: oblivious trees that follow each other at once."""
    from hedgerow.trees.lookups import adder

    batch: list[tuple[ObliviousTree, NDArray[np.float64]]] = []
    numbers = 0
    for tree, own in zip(trees, scores, strict=True):
        numbers += own.size
        if batch and (isinstance(tree, Tree) or numbers > AT_ONCE):
            yield adder(batch)
            batch, numbers = [], own.size
        if isinstance(tree, Tree):
            yield partial(tree.add_scores, own)
            numbers = 0
        else:
            batch.append((tree, own))
    if batch:
        yield adder(batch)


@dataclass(frozen=True, eq=False)
class MostProbable:
    """The class with the largest margin, for each row of codes: a predictor that is plain data."""

    model: AdditiveModel

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(self.model.margins(codes).argmax(axis=1), dtype=np.int64)


def gradient_width(n_classes: int) -> int:
    """How many numbers a gradient has: one for each class, but one alone where there are two classes."""
    return 1 if n_classes == 2 else n_classes


def gradient_norms(n_classes: int) -> tuple[int, int]:
    """Bounds of a row's gradient in steps of 1/GRID: its L1 norm, its squared L2 norm."""
    return (GRID, GRID**2) if n_classes == 2 else (2 * GRID, 2 * GRID**2)


def _frozen(values: Any) -> NDArray[np.float64]:
    """A checked, read-only copy. One that was made here before is itself: a booster's models share most of their arrays."""
    if isinstance(values, _Frozen) and not values.flags.writeable:
        return values
    array = np.array(values, dtype=np.float64, order="C")
    if not (np.abs(array) <= MOST_SCORE).all():  # false for NaN, too
        raise PlanError(f"additive model: a score is not a number, or above {MOST_SCORE:.0e} in size.")
    frozen = array.view(_Frozen)
    frozen.setflags(write=False)
    return frozen


def __getattr__(name: str) -> Any:
    """`exp_minus` is compiled, and loaded when it is asked for."""
    if name == "exp_minus":
        from hedgerow.trees.additive_loops import exp_minus

        return exp_minus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
