"""The verbs under attack: each is asked a great many times about two neighbouring tables, by the code that training uses.

Counts and choices of nodes are asked for a thousand nodes at once: the table is copied once for each node, so that what happens in
one node is one run. Trees are asked a thousand at a time, for a thousand times the price. The other verbs are called again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import rho_for
from hedgerow.audit.attack import Finding, finding_of
from hedgerow.audit.outputs import Columns
from hedgerow.engines.memory import MemoryRows
from hedgerow.mechanisms.scores import GINI, MAX, NORMAL_GINI, Score
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Categorical, Schema, Target
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import Tree, TreeBuilder

DIGIT = 32  # two attributes of so many values name a copy of the table
COPIES = DIGIT * DIGIT
CALLS = 100  # of a verb with one reservation

Rows = Sequence[tuple[int, int, int]]  # (a, b, class) of each row, all 0 or 1

# 50 rows are 0, 0, 0 and 50 are 1, 1, 1; one more row is 0, 1, 1. It joins a pure cell of the other class by a, and of its own by b:
# the score of a falls by nearly all that one row can do, the score of b does not.
PURE: Rows = [(0, 0, 0)] * 50 + [(1, 1, 1)] * 50
MORE = (0, 1, 1)
# Rows of class 0 that all models below get right; one more row of class 1.
RIGHT: Rows = [(0, 0, 0)] * 20
WRONG = (1, 1, 1)


def codebook_of(copies: bool) -> Codebook:
    digits = [Categorical(name, tuple(range(DIGIT))) for name in ("first", "second")] if copies else []
    return Codebook(Schema([*digits, Categorical("a", (0, 1)), Categorical("b", (0, 1))], Target("class", (0, 1))))


@cache
def tables_of(rows: tuple[tuple[int, int, int], ...], copies: bool) -> MemoryRows:
    """The rows, once or in COPIES copies; encoded once and asked many times."""
    codebook, times = codebook_of(copies), COPIES if copies else 1
    a, b, labels = (np.tile(np.array(column, dtype=np.int64), times) for column in zip(*rows, strict=True))
    columns = {"a": a, "b": b}
    if copies:
        copy = np.repeat(np.arange(COPIES), len(rows))
        columns = {"first": copy // DIGIT, "second": copy % DIGIT} | columns
    return MemoryRows(columns, labels, codebook)


@cache
def copies_tree() -> tuple[Tree, list[int]]:
    """A tree whose leaves are the copies."""
    builder = TreeBuilder(codebook_of(True).sizes)
    nodes = [leaf for node in builder.split(0, 0) for leaf in builder.split(node, 1)]
    return builder.build(), nodes


@dataclass(frozen=True)
class Verb:
    """ask: (a private table, the price) -> one line of numbers for each run in it. reserve: what such a call costs, in prices."""

    name: str
    why: str
    rows: Rows
    more: tuple[int, int, int]
    ask: Callable[[PrivateTable, Any], NDArray[Any]]
    copies: bool = False
    reserve: int = 1
    gaussian: bool = False  # whether one reservation of (ε, δ) pays for a call with Gaussian noise


def _each(ask: Callable[[PrivateTable, Any], Any]) -> Callable[[PrivateTable, Any], NDArray[Any]]:
    """CALLS calls, a run each."""
    return lambda table, price: np.array([np.ravel(ask(table, price)) for _ in range(CALLS)])


def _nodes(ask: Callable[[PrivateTable, Tree, list[int], Any], NDArray[Any]]) -> Callable[[PrivateTable, Any], NDArray[Any]]:
    return lambda table, price: ask(table, *copies_tree(), price).reshape(COPIES, -1)


def _root(codebook: Codebook) -> Tree:
    return TreeBuilder(codebook.sizes).build()


def _trees(ask: Callable[[PrivateTable, list[Tree], Any], list[NDArray[Any]]]) -> Callable[[PrivateTable, Any], NDArray[Any]]:
    """COPIES trees of one leaf for COPIES prices: each costs one."""
    return lambda table, price: np.array([np.ravel(each) for each in ask(table, [_root(table.codebook)] * COPIES, price * COPIES)])


def _choose(score: Score, mechanism: str) -> Callable[[PrivateTable, Any], NDArray[Any]]:
    def ask(table: PrivateTable, tree: Tree, nodes: list[int], price: Any) -> NDArray[Any]:
        candidates = by_value(table.codebook)
        allowed = np.zeros((len(nodes), len(candidates)), dtype=bool)
        allowed[:, 2:] = True  # a or b
        return table.choose(tree, nodes, candidates, allowed, score, price, mechanism)

    return _nodes(ask)


def _choose_locally(table: PrivateTable, tree: Tree, nodes: list[int], price: Any) -> NDArray[Any]:
    candidates = by_value(table.codebook)
    allowed = np.zeros((len(nodes), len(candidates)), dtype=bool)
    allowed[:, 2:] = True
    return table.choose_locally(tree, nodes, candidates, allowed, np.full(len(nodes), 100), price)


def _tables(table: PrivateTable, tree: Tree, nodes: list[int], price: Any) -> NDArray[Any]:
    asked = np.zeros((len(nodes), len(table.codebook.sizes)), dtype=bool)
    asked[:, 2:] = True
    noisy = table.tables(tree, nodes, asked, price)[:, 2 * DIGIT :]  # cells a=0, a=1, b=0, b=1
    # One row more changes two counts, from 0 to 1 and from 50 to 51. The likelihood ratio of both is known: it follows their steps.
    ratio = np.clip(noisy[:, 0, 1], 0, 1) + np.clip(noisy[:, 3, 1], 50, 51)
    return np.concatenate([ratio[:, None], noisy.reshape(len(nodes), -1)], axis=1)


SURE = AdditiveModel(np.array([40.0, -40.0]), (), ())  # takes every row for the first class, with no doubt


@cache
def _sure_of_some() -> AdditiveModel:
    """As SURE, but only about rows with a = 1; of the others it knows nothing, whatever the scale."""
    builder = TreeBuilder(codebook_of(False).sizes)
    builder.split(0, 0)
    return AdditiveModel(np.zeros(2), (builder.build(),), (np.array([[0.0, 0.0], [0.0, 0.0], [40.0, -40.0]]),))


def _sums(table: PrivateTable, trees: list[Tree], price: Any) -> list[NDArray[Any]]:
    return list(table.gradient_sums(trees, SURE, price))


def _zeros(codes: NDArray[Any]) -> NDArray[np.int64]:
    return np.zeros(len(codes), dtype=np.int64)


def _by_a(codes: NDArray[Any]) -> NDArray[np.int64]:
    return codes[:, -2].astype(np.int64)


def _certain(codes: NDArray[Any]) -> NDArray[np.float64]:
    return np.tile([1.0, 0.0], (len(codes), 1))


def _best(table: PrivateTable, price: Any) -> int:
    return table.best([_zeros, _by_a], price)


def _scale(table: PrivateTable, price: Any) -> int:
    return table.best_scale(_sure_of_some(), (1.0, 1e-6), price)


ONE_MORE = "one row more"
IMPURE = "one row that makes a cell of 50 rows impure by one attribute alone"
COUNTS = (
    Verb("rows", ONE_MORE, RIGHT, WRONG, _each(lambda t, p: t.rows(p)), reserve=CALLS),
    Verb("leaf_counts", ONE_MORE, RIGHT, WRONG, _trees(lambda t, trees, p: t.leaf_counts(trees, p)), reserve=COPIES),
    Verb("sizes", ONE_MORE, PURE, MORE, _nodes(lambda t, tree, nodes, p: t.sizes(tree, nodes, p)), True, gaussian=True),
    Verb("class_counts", ONE_MORE, PURE, MORE, _nodes(lambda t, tree, nodes, p: t.class_counts(tree, nodes, p)), True, gaussian=True),
    Verb("tables", "one row more in two tables at once", PURE, MORE, _nodes(_tables), True, gaussian=True),
    Verb("confusion", "one row more, wrongly predicted", RIGHT, WRONG, _each(lambda t, p: t.confusion(_zeros, p)), reserve=CALLS),
    Verb("reliability", "one row more, surely wrong", RIGHT, WRONG, _each(lambda t, p: t.reliability(_certain, 2, p)), reserve=CALLS),
    Verb("gradient_sums", "one row of the class that the model excludes", RIGHT, WRONG, _trees(_sums), reserve=COPIES),
)
CHOICES = (
    Verb("choose", IMPURE, PURE, MORE, _choose(GINI, PERMUTE_AND_FLIP), True),
    Verb("choose, exponential mechanism", IMPURE, PURE, MORE, _choose(GINI, EXPONENTIAL), True),
    Verb("choose, max", IMPURE, PURE, MORE, _choose(MAX, PERMUTE_AND_FLIP), True),
    Verb("choose, Gini index", "a second row", [(0, 0, 0)], MORE, _choose(NORMAL_GINI, EXPONENTIAL), True),
    Verb("best", "one row that only one of two predictors gets right", RIGHT, WRONG, _each(_best), reserve=CALLS),
    Verb("best_scale", "one row that is surely wrong at full scale, and a guess at the other", RIGHT, WRONG, _each(_scale), reserve=CALLS),
)
VERBS = {verb.name: verb for verb in (*COUNTS, *CHOICES)}
NOT_PROVEN = Verb("choose_locally", "local sensitivity at a wrong size", [(0, 0, 0)], MORE, _nodes(_choose_locally), True)


def answers(verb: Verb, with_row: bool, price: Price, reserve: Callable[[], Reservation], runs: int) -> Columns:
    """At least that many runs."""
    rows = (*verb.rows, verb.more) if with_row else tuple(verb.rows)
    engine, found, done = tables_of(rows, verb.copies), list[NDArray[Any]](), 0
    while done < runs:
        found.append(np.asarray(verb.ask(PrivateTable(engine, reserve()), price)))
        done += len(found[-1])
    lines = np.concatenate(found)
    lines = lines if lines.ndim == 2 else lines[:, None]
    return {f"number {j + 1}": lines[:, j].astype(np.float64) for j in range(lines.shape[1])}


def attack_verb(verb: Verb, epsilon: str, runs: int, level: float, delta: str = "0") -> Finding:
    """level: chance of error of each bound of the verdict. With δ the verb is paid for in ρ, and its noise is Gaussian."""
    pure, share = Fraction(epsilon), Fraction(delta)
    price: Price = Rho(rho_for(pure, share)) if share else pure

    def reserve() -> Reservation:
        amount = pure if share else pure * verb.reserve
        return Budget(amount, share).reserve(amount, "audit", share)

    without, with_row = (answers(verb, side, price, reserve, runs) for side in (False, True))
    name = f"{verb.name}, ε = {epsilon}" + (f", δ = {delta}" if share else "")
    return finding_of(name, verb.why, without, with_row, float(pure), float(share), level, classifier=False)
