"""The Gaussian noise of every query that is paid in ρ, cell by cell: the charged σ², on empty and full cells alike, and independent.

Every test accepts the truth and must reject planted errors (`PLANTED`): σ 30 % too small, one draw shared by all cells of an answer, no
noise on empty cells. False alarms: each p-value is compared with 1e-7, and there are fewer than 30 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from scipy import stats
from slow import slow_but
from strategies import oblivious_trees, small_schema, small_table

from hedgerow import private_table as table_module
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.engines.memory import MemoryRows
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.gaussian import discrete_gaussian
from hedgerow.mechanisms.noise import add_noise
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    BoostRound,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel

pytestmark = pytest.mark.statistical

ALARM = 1e-7
RUNS = 1200
CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(2)]
TREE, LEAVES = TREES[0], TREES[0].leaves
ENGINE = MemoryRows(*small_table(12), CODEBOOK)  # few rows: most cells are empty
BOOSTED = oblivious_trees(CODEBOOK, 2, 4)
MODEL = AdditiveModel(np.array([0.3, 0.0]), (TREE,), (np.random.default_rng(5).normal(size=(TREE.n_nodes, 2)),))
ASKED = np.zeros((len(LEAVES), len(CODEBOOK.sizes)), dtype=bool)
ASKED[:4, 3] = ASKED[0, 1] = True  # two tables at the first node, one at three others, none elsewhere
ASKED_CELLS = np.repeat(ASKED, CODEBOOK.sizes, axis=1)
PRICE = Rho(Fraction(1, 40))


def predict(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


def sure(codes: np.ndarray) -> np.ndarray:
    first = 1 / (1 + codes[:, 2])
    return np.stack([first, 1 - first], axis=1)


# query -> how to ask, the truth, and Δ² of the whole answer
QUERY_CASES: dict[str, tuple[Callable[[PrivateTable], Any], Callable[[], Any], int]] = {
    "rows": (lambda table: [np.array([table.ask(Rows(), PRICE)])], lambda: [np.array([exact_answers.count_rows(ENGINE)])], 1),
    "leaf_counts": (lambda table: table.ask(LeafCounts(TREES), PRICE), lambda: exact_answers.leaf_counts(ENGINE, TREES), len(TREES)),
    "confusion": (lambda table: [table.ask(Confusion(predict), PRICE)], lambda: [exact_answers.confusion(ENGINE, predict)], 1),
    "reliability": (lambda table: [table.ask(Reliability(sure, 5), PRICE)], lambda: [exact_answers.reliability(ENGINE, sure, 5)], 1),
    "score_bins": (
        lambda table: [table.ask(ScoreBins(sure, 5, (0, 1)), PRICE)],
        lambda: [exact_answers.score_bins(ENGINE, sure, 5, (0, 1))],
        2,
    ),
    "sizes": (
        lambda table: [table.ask(Sizes(TREE, LEAVES), PRICE)],
        lambda: [exact_answers.class_counts(ENGINE, TREE, LEAVES).sum(axis=1)],
        1,
    ),
    "class_counts": (
        lambda table: [table.ask(ClassCounts(TREE, LEAVES), PRICE)],
        lambda: [exact_answers.class_counts(ENGINE, TREE, LEAVES)[:, :-1]],
        1,
    ),
    "tables": (
        lambda table: [table.ask(Tables(TREE, LEAVES, ASKED), PRICE)[ASKED_CELLS]],
        lambda: [exact_answers.split_counts(ENGINE, TREE, LEAVES)[ASKED_CELLS]],
        2,  # the most asked at one node
    ),
    "leaf_sizes": (
        lambda table: table.ask(LeafSizes(TREES), PRICE),
        lambda: [counts.sum(axis=1) for counts in exact_answers.leaf_counts(ENGINE, TREES)],
        len(TREES),
    ),
    "boost_round": (
        lambda table: [table.ask(BoostRound(BOOSTED[:1], MODEL, True), PRICE)[1]],
        lambda: [exact_answers.round_sums(ENGINE, BOOSTED[:1], MODEL, True)],
        2027**2,  # two classes
    ),
    "gradient_sums": (
        lambda table: table.ask(GradientSums(TREES, MODEL), PRICE),
        lambda: exact_answers.gradient_sums(ENGINE, TREES, MODEL),
        len(TREES) * GRID**2,  # two classes
    ),
}


def noise_of(query: str) -> tuple[np.ndarray, np.ndarray]:
    """(runs, cells) of noisy − exact, and the exact cells."""
    ask, truth, _ = QUERY_CASES[query]
    exact = np.concatenate([counts.ravel() for counts in truth()])
    table = PrivateTable(ENGINE, Budget(1000, "1e-6").reserve(1000, "test", "1e-6"))
    answers = [np.concatenate([np.asarray(part).ravel() for part in ask(table)]) for _ in range(RUNS)]
    return np.array(answers) - exact, exact


def p_of_variance(noise: np.ndarray, sigma_squared: Fraction) -> float:
    """Chi-square of integers against exact probabilities of the discrete Gaussian, gathered in about 40 cells."""
    sigma = float(sigma_squared) ** 0.5
    edge = int(12 * sigma) + 1
    x = np.arange(-edge, edge + 1)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * float(sigma_squared)))
    cell = np.searchsorted(np.linspace(-2.4, 2.4, 40) * sigma, x)
    expected = np.bincount(cell, weights / weights.sum())
    counted = np.bincount(cell[np.clip(noise.ravel(), -edge, edge) + edge], minlength=len(expected))
    wide = expected * noise.size >= 5
    return float(stats.chisquare(counted[wide], expected[wide] / expected[wide].sum() * counted[wide].sum()).pvalue)


def p_of_independence(noise: np.ndarray) -> float:
    if noise.shape[1] < 2:
        return 1.0
    correlation = np.corrcoef(noise, rowvar=False)
    pairs = correlation[np.triu_indices(noise.shape[1], 1)]
    z = np.abs(np.arctanh(np.clip(pairs, -0.999999, 0.999999))) * np.sqrt(len(noise) - 3)
    return float(min(1.0, 2 * stats.norm.sf(z.max()) * len(pairs)))


def p_values(query: str) -> dict[str, float]:
    noise, exact = noise_of(query)
    sigma_squared = QUERY_CASES[query][2] / (2 * PRICE.value)
    found = {"independence": p_of_independence(noise)}
    for kind, cells in (("empty", exact == 0), ("full", exact != 0)):
        if cells.any():
            found[kind] = p_of_variance(noise[:, cells], sigma_squared)
    return found


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_the_noise_is_what_was_charged(query: str) -> None:
    found = p_values(query)
    assert min(found.values()) > ALARM, found


def too_little(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_gaussian(event.scale * Fraction(49, 100), counts.size, SYSTEM).reshape(counts.shape)


def shared(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_gaussian(event.scale, 1, SYSTEM)[0]


def not_on_empty(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return np.where(counts == 0, 0, add_noise(counts, event, coins, sampler))


PLANTED = {"too little": too_little, "shared by all cells": shared, "not on empty cells": not_on_empty}


@pytest.mark.slow
@pytest.mark.parametrize("query", slow_but(3, QUERY_CASES))
@pytest.mark.parametrize("error", list(PLANTED))
def test_planted_errors_are_found(error: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if query == "rows" and error != "too little":
        pytest.skip("a single number that is not empty: this error cannot be made")
    monkeypatch.setattr(table_module, "add_noise", PLANTED[error])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = p_values(query)
    assert min(p for p in found.values() if p == p) < ALARM, found
