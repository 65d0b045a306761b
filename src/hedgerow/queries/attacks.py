"""Neighbouring tables on which the audit tries a query: small, and each aimed at the most that one row can change.

Counts and choices of nodes are asked for a thousand nodes at once: the table is copied once for each node, so that what happens in
one node is one run. Trees are asked a thousand at a time, for a thousand times the price. Other queries are asked again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.oblivious import ObliviousTree, one_question
from hedgerow.trees.tree import Tree, TreeBuilder

if TYPE_CHECKING:
    from hedgerow.queries.query import Query

DIGIT = 32  # two attributes of so many values name a copy of the table
COPIES = DIGIT * DIGIT

Rows = Sequence[tuple[int, int, int]]  # (a, b, class) of each row, all 0 or 1

# 50 rows are 0, 0, 0 and 50 are 1, 1, 1; one more row is 0, 1, 1. It joins a pure cell of the other class by a, and of its own by b:
# the score of a falls by nearly all that one row can do, the score of b does not.
PURE: Rows = [(0, 0, 0)] * 50 + [(1, 1, 1)] * 50
MORE = (0, 1, 1)
# Rows of class 0 that all models below get right; one more row of class 1.
RIGHT: Rows = [(0, 0, 0)] * 20
WRONG = (1, 1, 1)
ONE_MORE = "one row more"
IMPURE = "one row that makes a cell of 50 rows impure by one attribute alone"


@dataclass(frozen=True)
class Attack:
    """name: of the query, and then perhaps a comma and which case it is; rows, more: the table, and the row that is added

    make: the query over a codebook of `codebook_of`: attributes a and b; with copies, first and second before them
    runs: independent runs in one answer, `prices` of which it costs
    copies: the table is copied, see above; gaussian: one price of (ε, δ) pays for it; read: an answer as a line of numbers for each run
    """

    name: str
    why: str
    rows: Rows
    more: tuple[int, int, int]
    make: Callable[[Codebook], Query[Any]]
    runs: int = 1
    prices: int = 1
    copies: bool = False
    gaussian: bool = False
    read: Callable[[Any], NDArray[Any]] | None = None

    def lines(self, answer: Any) -> NDArray[Any]:
        """One line of numbers for each run."""
        return np.asarray(answer if self.read is None else self.read(answer)).reshape(self.runs, -1)


def codebook_of(copies: bool) -> Codebook:
    digits = [Categorical(name, tuple(range(DIGIT))) for name in ("first", "second")] if copies else []
    return Codebook(Schema([*digits, Categorical("a", (0, 1)), Categorical("b", (0, 1))], Target("class", (0, 1))))


@cache
def copies_tree() -> tuple[Tree, list[int]]:
    """A tree whose leaves are the copies."""
    builder = TreeBuilder(codebook_of(True).sizes)
    nodes = [leaf for node in builder.split(0, 0) for leaf in builder.split(node, 1)]
    return builder.build(), nodes


def root(codebook: Codebook) -> Tree:
    return TreeBuilder(codebook.sizes).build()


def halves_of(codebook: Codebook) -> list[ObliviousTree]:
    """Two trees of one question: by the attribute a, and one that takes all rows for the same."""
    sizes = codebook.sizes
    return [one_question(sizes, 0, (0, 1, 1)), one_question(sizes, 0, (0, 0, 0))]


@cache
def contrary() -> AdditiveModel:
    """Takes every row for the class that it is not, with no doubt, if its class is that of a: gradients of opposite signs for a = 0 and 1.

    One more row with a = 1 raises the score of the tree that asks about a as much as it lowers that of the other of `halves_of`.
    """
    builder = TreeBuilder(codebook_of(False).sizes)
    builder.split(0, 0)
    return AdditiveModel(np.zeros(2), (builder.build(),), (np.array([[0.0, 0.0], [-40.0, 40.0], [40.0, -40.0]]),))


SURE = AdditiveModel(np.array([40.0, -40.0]), (), ())  # takes every row for the first class, with no doubt


@cache
def sure_of_some() -> AdditiveModel:
    """As SURE, but only about rows with a = 1; of the others it knows nothing, whatever the scale."""
    builder = TreeBuilder(codebook_of(False).sizes)
    builder.split(0, 0)
    return AdditiveModel(np.zeros(2), (builder.build(),), (np.array([[0.0, 0.0], [0.0, 0.0], [40.0, -40.0]]),))


def first_class(codes: NDArray[Any]) -> NDArray[np.int64]:
    return np.zeros(len(codes), dtype=np.int64)


def by_a(codes: NDArray[Any]) -> NDArray[np.int64]:
    return codes[:, -2].astype(np.int64)


def certainly_a(codes: NDArray[Any]) -> NDArray[np.float64]:
    return np.eye(2)[np.minimum(by_a(codes), 1)]


def certainly_first(codes: NDArray[Any]) -> NDArray[np.float64]:
    return np.tile([1.0, 0.0], (len(codes), 1))
