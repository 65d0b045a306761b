"""The discrete Gaussian against exact probabilities, with the system's own coins.

Each comparison raises a false alarm with probability 1e-7 (`ALARM`) or less; there are about 40 of them. The same statistic has
to reject a σ that is 30 % wrong: a test that cannot fail shows nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from slow import slow_but

from hedgerow.accounting.zcdp import gaussian_variance
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.gaussian import GUARD, _discrete_gaussian, discrete_gaussian, geometric

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DRAWS = 400_000
WRONG = (Fraction(169, 100), Fraction(49, 100))  # σ 30 % too large or too small
VARIANCES = [Fraction(1, 6), Fraction(1, 3), Fraction(99, 100), Fraction(1), Fraction(7, 2), Fraction(1000, 3), Fraction(10**6)]


def chi_square_p(observed: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """p-value; neighbouring cells are merged until each expects 20, and a last one that is short joins the one before."""
    cells = [[0.0, 0.0]]
    for seen, hoped in zip(observed.tolist(), (probabilities * observed.sum()).tolist(), strict=True):
        if cells[-1][1] >= 20:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += hoped
    if cells[-1][1] < 20:
        seen, hoped = cells.pop()
        cells[-1][0] += seen
        cells[-1][1] += hoped
    table = np.array(cells)
    return float(stats.chi2.sf(((table[:, 0] - table[:, 1]) ** 2 / table[:, 1]).sum(), len(cells) - 1))


def gaussian_p(draws: NDArray[np.int64], sigma_squared: Fraction) -> float:
    """Chi-square of draws against the discrete Gaussian, from its definition; both tails go with the last cells."""
    edge = math.ceil(12 * math.sqrt(sigma_squared)) + 1  # beyond it: below e^(-72), no draw ever
    x = np.arange(-edge, edge + 1)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * float(sigma_squared)))
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=x.size)
    return chi_square_p(observed, weights / weights.sum())


@pytest.mark.parametrize("sigma_squared", VARIANCES, ids=str)
def test_exact_and_a_wrong_sigma_is_rejected(sigma_squared: Fraction) -> None:
    assert gaussian_p(discrete_gaussian(sigma_squared, DRAWS, SYSTEM), sigma_squared) > ALARM
    for wrong in WRONG:
        assert gaussian_p(discrete_gaussian(sigma_squared * wrong, DRAWS, SYSTEM), sigma_squared) < ALARM


@pytest.mark.parametrize("sigma_squared", slow_but(1, [Fraction(22, 7), Fraction(1, 3), Fraction(1), Fraction(100)]), ids=str)
@pytest.mark.parametrize(("guard", "block"), [(math.inf, 2**17), (0.2, 2**17), (GUARD, 3)], ids=["exact", "half-exact", "small-blocks"])
def test_other_tunings_have_the_same_law(sigma_squared: Fraction, guard: float, block: int) -> None:
    draws = _discrete_gaussian(sigma_squared, 15_000, SYSTEM, guard, block)
    assert gaussian_p(draws, sigma_squared) > ALARM
    assert gaussian_p(draws, sigma_squared * WRONG[0]) < ALARM


@pytest.mark.parametrize("sigma_squared", [Fraction(10**8), Fraction(2**80, 3), Fraction(2**100)], ids=float)
def test_large_sigma_against_the_normal_law(sigma_squared: Fraction) -> None:
    """The grid of the integers does not show any more: Kolmogorov–Smirnov with 200,000 draws."""
    sigma = math.sqrt(sigma_squared)
    draws = discrete_gaussian(sigma_squared, 200_000, SYSTEM) + np.random.default_rng(0).uniform(-0.5, 0.5, 200_000)
    assert stats.kstest(draws, stats.norm(scale=sigma).cdf).pvalue > ALARM
    assert stats.kstest(draws, stats.norm(scale=1.3 * sigma).cdf).pvalue < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 4), Fraction(1), Fraction(10**4), Fraction(2**100)], ids=float)
def test_moments(sigma_squared: Fraction) -> None:
    """Mean 0 and the stated variance, each within six standard errors (kurtosis below 9): false alarm 1e-8."""
    draws = discrete_gaussian(sigma_squared, DRAWS, SYSTEM).astype(float)
    variance = gaussian_variance(sigma_squared)
    assert abs(draws.mean()) < 6 * math.sqrt(variance / DRAWS)
    assert abs((draws**2).mean() / variance - 1) < 6 * math.sqrt(8 / DRAWS)


@pytest.mark.slow
def test_the_tail_is_not_cut() -> None:
    """P(|X| >= 40) at σ = 10, about 8e-5, by a Poisson bound around the exact expectation."""
    draws = np.abs(discrete_gaussian(Fraction(100), 2_000_000, SYSTEM))
    weights = np.exp(-(np.arange(-200, 201).astype(float) ** 2) / 200)
    expected = 2 * weights[240:].sum() / weights.sum() * draws.size
    low, high = stats.poisson.ppf(ALARM / 2, expected), stats.poisson.isf(ALARM / 2, expected)
    assert low > 0
    assert low <= (draws >= 40).sum() <= high


def test_draws_are_independent_of_their_neighbours() -> None:
    draws = discrete_gaussian(Fraction(100), DRAWS, SYSTEM).astype(float)
    for lag in (1, 2):
        for change in (np.array, np.abs):
            pairs = change(draws)
            assert abs(np.corrcoef(pairs[lag:], pairs[:-lag])[0, 1]) < 6 / math.sqrt(DRAWS)


@pytest.mark.slow
def test_no_place_in_a_short_array_is_special() -> None:
    """The last of three draws, taken from whatever block it comes, against the exact law: nothing is selected by its value."""
    draws = np.array([_discrete_gaussian(Fraction(2), 3, SYSTEM, block=2)[[0, -1]] for _ in range(10_000)])
    for place in (0, 1):
        assert gaussian_p(draws[:, place], Fraction(2)) > ALARM
        assert gaussian_p(draws[:, place], 2 * WRONG[0]) < ALARM


def test_geometric() -> None:
    draws = np.array([geometric(Fraction(2), SYSTEM) for _ in range(10_000)])
    r = math.exp(-0.5)
    probabilities = (1 - r) * r ** np.arange(60.0)
    assert chi_square_p(np.bincount(np.minimum(draws, 59), minlength=60), probabilities) > ALARM


@pytest.mark.slow
def test_same_distribution_as_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP, the oracle of this test, is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=10.0)([0] * 60_000))

    def two_sample_p(ours: NDArray[np.int64]) -> float:
        cells = np.arange(-25, 26)
        table = np.array([np.bincount(np.searchsorted(cells, x), minlength=cells.size + 1) for x in (ours, theirs)])
        return float(stats.chi2_contingency(table).pvalue)

    assert two_sample_p(discrete_gaussian(Fraction(100), 60_000, SYSTEM)) > ALARM
    assert two_sample_p(discrete_gaussian(Fraction(169), 60_000, SYSTEM)) < ALARM
