"""The samplers against exact probabilities, with the system's own coins.

Each comparison raises a false alarm with probability 1e-7 (`ALARM`) or less; there are about 80 of them, so
this file fails by chance less than once in 100,000 runs. The same statistic has to reject a scale, or a rate,
that is 30 % wrong: a test that cannot fail shows nothing.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from slow import slow_but

from hedgerow.mechanisms.choices import GUARD, _choose
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.exactmath import bernoulli_exp, uniform_index
from hedgerow.mechanisms.samplers import _discrete_laplace

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DRAWS = 400_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(10), Fraction(100), Fraction(1000)]
# (depth, excess_from, runs): as shipped; then with ties of one byte and every excess pending; and others.
SHIPPED = (8, Fraction(4), 8)
FORCED = [(1, Fraction(1, 2), 0), (1, Fraction(1, 10), 2), (2, Fraction(32), 1)]


def chi_square_p(observed: NDArray[np.int64], probabilities: NDArray[np.float64], at_least: float = 20) -> float:
    """p-value; neighbouring cells are merged until each expects `at_least`."""
    expected = probabilities * observed.sum()
    cells: list[list[float]] = [[0.0, 0.0]]
    for seen, hoped in zip(observed, expected, strict=True):
        if cells[-1][1] >= at_least:
            cells.append([0.0, 0.0])
        cells[-1][0] += float(seen)
        cells[-1][1] += float(hoped)
    if cells[-1][1] < at_least and len(cells) > 1:
        seen, hoped = cells.pop()
        cells[-1][0] += seen
        cells[-1][1] += hoped
    table = np.array(cells)
    statistic = float(((table[:, 0] - table[:, 1]) ** 2 / table[:, 1]).sum())
    return float(stats.chi2.sf(statistic, len(cells) - 1))


def laplace_p(draws: NDArray[np.int64], scale: float) -> float:
    """Chi-square of draws against the discrete Laplace; the two tails are one cell each."""
    r = math.exp(-1 / scale)
    edge = max(1, math.ceil(scale * math.log(draws.size / 50)))
    inside = np.arange(-edge, edge + 1)
    probabilities = (1 - r) / (1 + r) * r ** np.abs(inside).astype(float)
    tail = r ** (edge + 1) / (1 + r)
    observed = np.bincount(np.clip(draws, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return chi_square_p(observed, np.concatenate([[tail], probabilities, [tail]]))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_is_exact_and_a_wrong_scale_is_rejected(scale: Fraction) -> None:
    draws = _discrete_laplace(scale, DRAWS, SYSTEM, *SHIPPED)
    assert laplace_p(draws, float(scale)) > ALARM
    for wrong in (Fraction(13, 10), Fraction(7, 10)):
        assert laplace_p(_discrete_laplace(scale * wrong, DRAWS, SYSTEM), float(scale)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", slow_but(1, [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(10)]), ids=str)
@pytest.mark.parametrize("tuning", FORCED, ids=["no-runs", "mostly-excess", "many-digits"])
def test_forced_pending_has_the_same_distribution(scale: Fraction, tuning: tuple[int, Fraction, int]) -> None:
    draws = _discrete_laplace(scale, 15_000, SYSTEM, *tuning)
    assert laplace_p(draws, float(scale)) > ALARM
    assert laplace_p(draws, 1.3 * float(scale)) < ALARM


@pytest.mark.slow
def test_ties_after_one_byte_are_settled_without_bias() -> None:
    """One comparison in 256 ties with the only byte known. Enough draws to see if ties always gave 0."""
    draws = _discrete_laplace(Fraction(1), 3_000_000, SYSTEM, depth=1)
    assert laplace_p(draws, 1.0) > ALARM


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000), Fraction(2**50)], ids=str)
def test_moments(scale: Fraction) -> None:
    """Mean 0, variance 2r/(1-r)^2, each within six standard errors (kurtosis below 7): false alarm 1e-8."""
    draws = _discrete_laplace(scale, DRAWS, SYSTEM).astype(float)
    one_minus_r = -math.expm1(-1 / float(scale))
    variance = 2 * (1 - one_minus_r) / one_minus_r**2
    assert abs(draws.mean()) < 6 * math.sqrt(variance / DRAWS)
    assert abs((draws**2).mean() / variance - 1) < 6 * math.sqrt(6 / DRAWS)


@pytest.mark.slow
def test_the_tail_is_not_cut() -> None:
    """Beyond the k digits the excess goes on: P(|X| >= 12) at scale 1 is 2 e^(-12) / (1 + 1/e)."""
    draws = np.abs(_discrete_laplace(Fraction(1), 4_000_000, SYSTEM))
    expected = 2 * math.exp(-12) / (1 + math.exp(-1)) * draws.size
    low, high = stats.poisson.ppf(ALARM / 2, expected), stats.poisson.isf(ALARM / 2, expected)
    assert low > 0
    assert low <= (draws >= 12).sum() <= high


def test_draws_are_independent_of_their_neighbours() -> None:
    draws = _discrete_laplace(Fraction(10), DRAWS, SYSTEM).astype(float)
    for lag in (1, 2):
        correlation = np.corrcoef(draws[lag:], draws[:-lag])[0, 1]
        assert abs(correlation) < 6 / math.sqrt(DRAWS)


@pytest.mark.parametrize("scale", slow_but([10], [1, 10, 100]))
def test_same_distribution_as_opendp(scale: int) -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP, the oracle of this test, is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * 100_000))

    def two_sample_p(ours: NDArray[np.int64]) -> float:
        edges = np.unique(np.quantile(theirs, np.linspace(0, 1, 41))[1:-1])
        counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (ours, theirs)]
        table = np.array(counts)
        return float(stats.chi2_contingency(table[:, table.sum(axis=0) >= 40]).pvalue)

    assert two_sample_p(_discrete_laplace(Fraction(scale), 100_000, SYSTEM)) > ALARM
    assert two_sample_p(_discrete_laplace(Fraction(13 * scale, 10), 100_000, SYSTEM)) < ALARM


@pytest.mark.parametrize("x", slow_but([Fraction(1, 3)], [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7, 2)]), ids=str)
def test_bernoulli_exp(x: Fraction) -> None:
    n = 30_000
    successes = sum(bernoulli_exp(x, SYSTEM) for _ in range(n))
    assert stats.binomtest(successes, n, math.exp(-x)).pvalue > ALARM
    assert stats.binomtest(successes, n, math.exp(-1.3 * x)).pvalue < ALARM or x < Fraction(1, 100)


def test_uniform_index() -> None:
    drawn = np.bincount([uniform_index(11, SYSTEM) for _ in range(50_000)], minlength=11)
    assert drawn.size == 11
    assert chi_square_p(drawn, np.full(11, 1 / 11)) > ALARM


def exponential_probabilities(scores: Sequence[int], rate: float) -> NDArray[np.float64]:
    weights = np.exp(rate * (np.array(scores) - max(scores)))
    return np.asarray(weights / weights.sum())


def flip_probabilities(scores: Sequence[int], rate: float) -> NDArray[np.float64]:
    """Permute-and-flip by its definition: all orders, each coin in turn."""
    accept = np.exp(rate * (np.array(scores) - max(scores)))
    total = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for column in order:
            total[column] += reached * accept[column]
            reached *= 1 - accept[column]
    return total / len(orders)


CANDIDATES = [(3, 0, 5, 4), (2, 2, 0, 1), (0, 7, 7, -9), (1, 1, 1, 1)]  # with and without ties at the maximum
RATE = Fraction(1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("scores", slow_but(2, CANDIDATES), ids=str)
@pytest.mark.parametrize("set_aside", [False, True], ids=["exponential", "permute-and-flip"])
@pytest.mark.parametrize(
    ("rows", "guard", "buffer_words"),
    [(200_000, GUARD, 2**17), (15_000, math.inf, 2**17), (15_000, GUARD, 3), (15_000, 0.2, 7)],
    ids=["shipped", "all-exact", "words-run-out", "half-exact"],
)
def test_choices(scores: tuple[int, ...], set_aside: bool, rows: int, guard: float, buffer_words: int) -> None:
    """A fifth column that is not allowed, with the highest score, must not matter."""
    matrix = np.tile(np.array([*scores[:2], 99, *scores[2:]]), (rows, 1))
    allowed = np.tile(np.array([True, True, False, True, True]), (rows, 1))
    chosen = _choose(matrix, allowed, RATE, SYSTEM, set_aside, guard, buffer_words)
    seen = np.bincount(chosen, minlength=5)
    assert seen[2] == 0
    seen = np.delete(seen, 2)
    exact = flip_probabilities if set_aside else exponential_probabilities
    assert chi_square_p(seen, exact(scores, float(RATE))) > ALARM
    if len(set(scores)) > 1 and rows > 100_000:
        assert chi_square_p(seen, exact(scores, 1.3 * float(RATE))) < ALARM
        other = exponential_probabilities if set_aside else flip_probabilities
        assert chi_square_p(seen, other(scores, float(RATE))) < ALARM


def test_choices_differ_row_by_row() -> None:
    """Rows with different scores and different allowed columns in one call, each kind against its own law."""
    kinds = np.array([[0, 2, 4, 6], [6, 0, 6, 1], [5, 5, 0, 0]])
    allowed_kinds = np.array([[True] * 4, [True, True, False, True], [False, True, True, True]])
    which = np.arange(150_000) % 3
    for set_aside in (False, True):
        chosen = _choose(kinds[which], allowed_kinds[which], RATE, SYSTEM, set_aside)
        for kind in range(3):
            seen = np.bincount(chosen[which == kind], minlength=4)
            columns = np.flatnonzero(allowed_kinds[kind])
            assert seen.sum() == seen[columns].sum()
            exact = flip_probabilities if set_aside else exponential_probabilities
            law = exact(kinds[kind][columns].tolist(), float(RATE))
            assert chi_square_p(seen[columns], law) > ALARM
