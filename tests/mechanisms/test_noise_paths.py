"""Noise where shortcuts would hide: small ε, many trees, long arrays, large draws, the second sampler, forged events.

Each statistical comparison has a false-alarm rate of at most 1e-7.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from scipy import stats
from strategies import small_schema, small_table

from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.meter import Budget
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.noise import add_noise, opendp_laplace
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts
from hedgerow.schema.codebook import Codebook

ALARM = 1e-7
CODEBOOK = Codebook(small_schema(), 30)


def p_of_laplace(noise: np.ndarray, scale: float) -> float:
    """Kolmogorov–Smirnov against Laplace noise of that scale: for scales above 100 the grid of the integers does not show."""
    spread = noise.astype(float) + np.random.default_rng(0).uniform(-0.5, 0.5, noise.size)
    return float(stats.kstest(spread, stats.laplace(scale=scale).cdf).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hedgerow", "opendp"])
def test_small_epsilon_many_trees_and_long_arrays(sampler: str) -> None:
    if sampler == "opendp":
        pytest.importorskip("opendp")
    trees = [rdt.build_tree_structure(CODEBOOK, 4, "bins", np.random.default_rng(i)) for i in range(4)]
    engine = MemoryRows(*small_table(50), CODEBOOK)
    table = PrivateTable(engine, Budget(1).reserve(1, "test"), sampler=sampler)
    exact = exact_answers.leaf_counts(engine, trees)
    noise = [(a - b).ravel() for a, b in zip(table.ask(LeafCounts(trees), Fraction(1, 50)), exact, strict=True)]
    assert min(map(len, noise)) > 1000
    for part in noise:
        assert p_of_laplace(part, 200) > ALARM
    assert p_of_laplace(np.concatenate(noise), 200 * 0.7) < ALARM  # a planted error
    for i, one in enumerate(noise):
        for other in noise[:i]:
            length = min(len(one), len(other))
            assert (one[:length] == other[:length]).mean() < 0.05  # no tree has another's noise
        half = len(one) // 2
        assert (one[:half] == one[half : 2 * half]).mean() < 0.05  # no part repeats another


def test_large_draws_are_added_as_they_are() -> None:
    event = counting_event("rows", Fraction(1))
    draws = np.array([2**40, -(2**40), 0, 7])
    noisy = add_noise(np.array([1, 2, 3, 4]), event, SYSTEM, lambda scale, size, coins: draws)
    assert noisy.tolist() == [2**40 + 1, -(2**40) + 2, 3, 11]


@pytest.mark.statistical
def test_the_tail_is_not_cut() -> None:
    """P(|X| > 8·scale) = 3.4e-4: of 400,000 draws at scale 5 about 134 lie beyond; fewer than 60 would happen once in 1e12 runs."""
    assert (np.abs(discrete_laplace(Fraction(5), 400_000, SYSTEM)) > 40).sum() > 60


def test_opendp_rounds_the_scale_up() -> None:
    dp = pytest.importorskip("opendp.prelude")
    seen: list[float] = []
    original = dp.m.make_laplace

    def watched(*arguments: Any, scale: float) -> Any:
        seen.append(scale)
        return original(*arguments, scale=scale)

    dp.m.make_laplace = watched
    try:
        for scale in (Fraction(1, 3), Fraction(10, 7), Fraction(1000, 97)):
            opendp_laplace(scale, 1, SYSTEM)
            assert scale <= Fraction(seen[-1]) < scale * Fraction(1_000_001, 1_000_000)
    finally:
        dp.m.make_laplace = original


def test_a_forged_event_is_refused() -> None:
    event = counting_event("rows", Fraction(1), queries=4)
    for forged in (replace(event, scale=Fraction(1)), replace(event, queries=1), replace(event, epsilon=Fraction(1, 2))):
        with pytest.raises(PlanError, match="does not follow"):
            add_noise(np.zeros(3, dtype=np.int64), forged, SYSTEM, discrete_laplace)
