"""The bounds, against exact binomial probabilities and numbers worked out by hand. No test draws anything: none can fail by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from hedgerow.audit.bounds import advantage_allowed, at_least, at_most, delta_at_least, epsilon_at_least, epsilon_at_level


@pytest.mark.parametrize("runs", [1, 7, 40, 200])
@pytest.mark.parametrize("alpha", [0.2, 0.025, 1e-3])
def test_a_bound_is_wrong_no_more_often_than_it_says(runs: int, alpha: float) -> None:
    hits = np.arange(runs + 1)
    low, high = at_least(hits, runs, alpha), at_most(hits, runs, alpha)
    for p in np.linspace(0, 1, 101):
        chances = binom.pmf(hits, runs, p)
        assert chances[low > p + 1e-12].sum() <= alpha * (1 + 1e-9)
        assert chances[high < p - 1e-12].sum() <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("runs", [7, 40, 200])
def test_a_bound_is_no_weaker_than_it_must_be(runs: int) -> None:
    """At the lower bound itself, so many hits or more have exactly the chance α: a larger bound would be wrong more often."""
    alpha, hits = 0.025, np.arange(1, runs + 1)
    assert binom.sf(hits - 1, runs, at_least(hits, runs, alpha)) == pytest.approx(np.full(runs, alpha))
    assert binom.cdf(hits - 1, runs, at_most(hits - 1, runs, alpha)) == pytest.approx(np.full(runs, alpha))


def test_edges_by_hand() -> None:
    assert at_least(0, 10, 0.05) == 0
    assert at_most(10, 10, 0.05) == 1
    assert at_least(10, 10, 0.05) == pytest.approx(0.05**0.1)  # p^10 = α
    assert at_most(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert (at_least(0, 0, 0.05), at_most(0, 0, 0.05)) == (0, 1)  # no runs: nothing is known
    assert at_least(1, 1, 0.05) == pytest.approx(0.05)


def test_epsilon_by_hand() -> None:
    p = 0.025 ** (1 / 100)  # all of 100 runs, α halved
    assert epsilon_at_least(100, 100, 0, 100, 0.95) == pytest.approx(math.log(p / (1 - p)))
    assert epsilon_at_level(100, 100, 0, 100, 0.025) == epsilon_at_least(100, 100, 0, 100, 0.95)
    assert epsilon_at_least(100, 100, 0, 100, 0.95, delta=0.5) == pytest.approx(math.log((p - 0.5) / (1 - p)))
    assert delta_at_least(100, 100, 0, 100, 1.0, 0.025) == pytest.approx(p - math.e * (1 - p))


def test_nothing_is_shown_by_the_wrong_direction_by_equality_or_by_no_runs() -> None:
    assert epsilon_at_least(0, 100, 100, 100, 0.95) == 0
    assert epsilon_at_least(50, 100, 50, 100, 0.95) == 0
    assert epsilon_at_least(0, 0, 0, 0, 0.95) == 0
    assert epsilon_at_least(100, 100, 0, 100, 0.95, delta=1.0) == 0
    assert delta_at_least(50, 100, 50, 100, 1.0, 0.025) == 0


def test_more_runs_show_more_and_more_confidence_shows_less() -> None:
    bounds = [float(epsilon_at_least(8 * n, 10 * n, 2 * n, 10 * n, 0.95)) for n in (10, 100, 1000, 10_000)]
    assert bounds == sorted(bounds)
    assert bounds[-1] < math.log(4)  # never above what the shares say
    by_level = [float(epsilon_at_level(80, 100, 20, 100, alpha)) for alpha in (0.1, 1e-3, 1e-6, 1e-12)]
    assert by_level == sorted(by_level, reverse=True)
    assert len(set(by_level)) == 4


def test_randomised_response_is_never_shown_to_leak_more_than_its_epsilon_but_for_the_stated_chance() -> None:
    """The chance of a false alarm, summed exactly over both tables. p / q = e^ε: the hardest case."""
    epsilon, runs, alpha = 1.0, 60, 0.05
    p = math.e / (1 + math.e)
    k = np.arange(runs + 1)
    bounds = epsilon_at_level(k[:, None], runs, k[None, :], runs, alpha)
    chances = np.outer(binom.pmf(k, runs, p), binom.pmf(k, runs, 1 - p))
    assert 0 < chances[bounds > epsilon].sum() <= 2 * alpha


def test_advantage_by_hand() -> None:
    assert advantage_allowed(0.0) == 0
    assert advantage_allowed(math.log(3)) == pytest.approx(0.5)  # randomised response that is right with 3/4: 3/4 − 1/4
    assert advantage_allowed(0.0, 0.1) == pytest.approx(0.1)
    assert advantage_allowed(50.0) == pytest.approx(1.0)
