"""Planted faults in a single look at the rows, ε = 1: a root that is chosen, a threshold, a count. Beside each the sound version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import exact as exact_answers
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.meter import Budget
from hedgerow.audit.neighbours import Table
from hedgerow.audit.outputs import Feature
from hedgerow.engines.memory import MemoryRows
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Choose, choose
from hedgerow.queries.scores import Score, scores_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import TreeBuilder

WIDTH = 10  # of the domain of x: the global sensitivity of its median


def _margins(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Σ_v |n_v1 − n_v2|: one row more raises it by 1, or lowers it by 1."""
    return np.asarray(abs(counts[:, :, 0] - counts[:, :, 1]).sum(axis=1))


MARGIN = Score("margin", 1, Fraction(1), False, _margins)


def chosen_root(table: Table, score: Score = MARGIN, epsilon: int = 1, finalists: int | None = None) -> str:
    """The attribute that our own private choice takes; `finalists`: only so many with the best true scores are left to it."""
    codebook = Codebook(table.schema)
    engine, candidates = MemoryRows(table.columns, table.target, codebook), by_value(codebook)
    tree, allowed = TreeBuilder(codebook.sizes).build(), np.ones((1, len(candidates)), dtype=bool)
    if finalists is not None:
        true = scores_of(score, exact_answers.split_counts(engine, tree, np.array([0])), candidates)
        allowed[0, np.argsort(-true[0], kind="stable")[finalists:]] = False
    private = PrivateTable(engine, Budget(epsilon).reserve(epsilon, "a root"))
    with patch.object(choose, "score_named", lambda name: score):
        return table.schema.names[int(private.ask(Choose(tree, [0], candidates, allowed, score), Fraction(epsilon))[0])]


def monotone_discount(table: Table) -> str:
    """The choice has the rate of a monotone score, ε/Δ, with a score that one row may raise here and lower there."""
    return chosen_root(table, replace(MARGIN, monotone=True), 2)


def no_discount(table: Table) -> str:
    return chosen_root(table, MARGIN, 2)


def true_finalists(table: Table) -> str:
    """The private choice is left only the candidate with the best true score."""
    return chosen_root(table, finalists=1)


def _noisy_median(values: list[float], sensitivity: float) -> int:
    noise = int(discrete_laplace(Fraction(sensitivity), 1, SYSTEM)[0]) if sensitivity else 0
    return int(values[(len(values) - 1) // 2]) + noise


def median_locally(table: Table) -> int:
    """A threshold at the median of x, with noise for its local sensitivity: how far one row can move the median of these values."""
    values = sorted(table.columns["x"].tolist())
    middle = (len(values) - 1) // 2
    return _noisy_median(values, max(abs(value - values[middle]) for value in values[max(0, middle - 1) : middle + 2]))


def median_globally(table: Table) -> int:
    return _noisy_median(sorted(table.columns["x"].tolist()), WIDTH)


def _second_class(table: Table) -> int:
    return int((table.target == table.schema.target.classes[1]).sum())


def float_noise(table: Table) -> float:
    """Textbook Laplace noise in floating point: 0 + noise lies on a finer grid than 1 + noise."""
    return _second_class(table) + float(np.random.default_rng().laplace())


def whole_noise(table: Table) -> float:
    return float(_second_class(table) + discrete_laplace(Fraction(1), 1, SYSTEM)[0])


def grid_of(output: float) -> Mapping[str, Feature]:
    """What an attacker makes of a float: its value, and how fine the grid is on which it lies."""
    return {"count": output, "binary digits after the point": output.as_integer_ratio()[1].bit_length() - 1}
