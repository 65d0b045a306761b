"""The noise of every verb, cell by cell: the stated scale, for empty and full cells alike, and independent of one another.

Every test accepts the truth and must reject planted errors (`PLANTED`): a scale 30 % too small, one draw shared by all cells of a
tree, no noise on empty cells. False alarms: each p-value is compared with 1e-7, and there are fewer than 40 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from strategies import small_schema, small_table

from hedgerow.accounting.meter import Budget
from hedgerow.encoding import Codebook
from hedgerow.growers import rdt
from hedgerow.private import table as table_module
from hedgerow.private.coins import SYSTEM
from hedgerow.private.mechanisms import add_noise
from hedgerow.private.samplers import discrete_laplace
from hedgerow.private.table import PrivateTable
from hedgerow.rows.memory import MemoryRows

ALARM = 1e-7
RUNS = 1500
CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(2)]
ENGINE = MemoryRows(*small_table(12), CODEBOOK)  # few rows: most cells are empty


def predict(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


VERBS: dict[str, tuple[Callable[[PrivateTable], Any], Callable[[], Any], int]] = {
    "rows": (lambda table: [np.array([table.rows(Fraction(1))])], lambda: [np.array([ENGINE.count_rows()])], 1),
    "leaf_counts": (lambda table: table.leaf_counts(TREES, Fraction(1)), lambda: ENGINE.leaf_counts(TREES), len(TREES)),
    "confusion": (lambda table: [table.confusion(predict, Fraction(1))], lambda: [ENGINE.confusion(predict)], 1),
}


def noise_of(verb: str) -> tuple[np.ndarray, np.ndarray]:
    """(runs, cells) of noisy − exact, and the exact cells."""
    ask, truth, _ = VERBS[verb]
    exact = np.concatenate([counts.ravel() for counts in truth()])
    reservation = Budget(RUNS).reserve(RUNS, "test")
    table = PrivateTable(ENGINE, reservation)
    answers = [np.concatenate([np.asarray(part).ravel() for part in ask(table)]) for _ in range(RUNS)]
    return np.array(answers) - exact, exact


def p_of_scale(noise: np.ndarray, scale: float) -> float:
    """Chi-square of integers against the exact discrete Laplace probabilities."""
    r = np.exp(-1 / scale)
    edge = int(np.ceil(scale * np.log(max(2, noise.size / 40))))
    x = np.arange(-edge, edge + 1)
    expected = (1 - r) / (1 + r) * r ** np.abs(x)
    expected[[0, -1]] = r**edge / (1 + r)  # everything from ±edge on
    counted = np.bincount(np.clip(noise.ravel(), -edge, edge) + edge, minlength=len(x))
    return float(stats.chisquare(counted, expected * noise.size).pvalue)


def p_of_independence(noise: np.ndarray) -> float:
    """The largest correlation between two cells, with Bonferroni's correction over all pairs."""
    if noise.shape[1] < 2:
        return 1.0
    correlation = np.corrcoef(noise, rowvar=False)
    pairs = correlation[np.triu_indices(noise.shape[1], 1)]
    z = np.abs(np.arctanh(np.clip(pairs, -0.999999, 0.999999))) * np.sqrt(len(noise) - 3)
    return float(min(1.0, 2 * stats.norm.sf(z.max()) * len(pairs)))


def p_values(verb: str) -> dict[str, float]:
    noise, exact = noise_of(verb)
    scale = VERBS[verb][2]  # ε = 1: the number of trees
    found = {"independence": p_of_independence(noise)}
    for kind, cells in (("empty", exact == 0), ("full", exact > 0)):
        if cells.any():
            found[kind] = p_of_scale(noise[:, cells], scale)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("verb", list(VERBS))
def test_the_noise_is_what_was_charged(verb: str) -> None:
    found = p_values(verb)
    assert min(found.values()) > ALARM, found


def too_little(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_laplace(event.scale * Fraction(7, 10), counts.size, SYSTEM).reshape(counts.shape)


def shared(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_laplace(event.scale, 1, SYSTEM)[0]


def not_on_empty(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return np.where(counts == 0, 0, add_noise(counts, event, coins, sampler))


PLANTED = {"too little": too_little, "shared by all cells": shared, "not on empty cells": not_on_empty}


@pytest.mark.statistical
@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize("error", list(PLANTED))
def test_planted_errors_are_found(error: str, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if verb == "rows" and error != "too little":
        pytest.skip("a single number that is not empty: this error cannot be made")
    monkeypatch.setattr(table_module, "add_noise", PLANTED[error])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = p_values(verb)
    assert min(p for p in found.values() if p == p) < ALARM, found
