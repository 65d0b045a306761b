"""Shares of noise against exact probabilities, with the system's own coins.

Each comparison raises a false alarm with probability 1e-7 (`ALARM`) or less; there are about 30 of them. The same statistic has to reject
a wrong scale, a share that is missing and one that is used twice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice, permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from slow import slow_but

from hedgerow.accounting.events import PERMUTE_AND_FLIP
from hedgerow.accounting.prices import Rho
from hedgerow.errors import PlanError
from hedgerow.mechanisms import shares as shares_module
from hedgerow.mechanisms.coins import SYSTEM, SeededCoins
from hedgerow.mechanisms.noise import add_share, check_shared_noise
from hedgerow.mechanisms.samplers import LARGEST_DRAW
from hedgerow.mechanisms.shares import MOST_IN_KERNEL, MOST_SHARES, _geometric_numbers, _thin, _thin_kernel, _thinned, laplace_share
from hedgerow.queries import LeafCounts

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DRAWS = 60_000
OWNERS = [2, 3, 5, 10]


def chi_square_p(observed: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """p-value; neighbouring cells are merged until each expects 20."""
    edges, expected = [0], 0.0
    for place, hoped in enumerate((probabilities * observed.sum()).tolist(), start=1):
        expected += hoped
        if expected >= 20:
            edges.append(place)
            expected = 0.0
    starts = edges[:-1]  # what is left over joins the last cell
    seen, hoped = np.add.reduceat(observed, starts), np.add.reduceat(probabilities * observed.sum(), starts)
    return float(stats.chi2.sf(((seen - hoped) ** 2 / hoped).sum(), len(starts) - 1))


def laplace_p(draws: NDArray[np.int64], scale: float) -> float:
    """Against the discrete Laplace law; both tails are one cell each."""
    r, edge = math.exp(-1 / scale), max(1, math.ceil(scale * math.log(draws.size / 50)))
    inside = (1 - r) / (1 + r) * r ** np.abs(np.arange(-edge, edge + 1)).astype(float)
    tail = r ** (edge + 1) / (1 + r)
    observed = np.bincount(np.clip(draws, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return chi_square_p(observed, np.concatenate([[tail], inside, [tail]]))


def owners_sum(scale: Fraction, shares: int, owners: int) -> NDArray[np.int64]:
    return sum(laplace_share(scale, shares, DRAWS, SYSTEM) for _ in range(owners)).astype(np.int64)


@pytest.mark.parametrize("owners", slow_but(2, OWNERS))
@pytest.mark.parametrize("scale", slow_but(1, [Fraction(1), Fraction(20)]), ids=str)
def test_the_shares_of_all_owners_are_one_draw_and_a_missing_one_is_rejected(scale: Fraction, owners: int) -> None:
    draws = owners_sum(scale, owners, owners)
    assert laplace_p(draws, float(scale)) > ALARM
    for wrong in (0.7, 1.3):
        assert laplace_p(draws, wrong * float(scale)) < ALARM
    assert laplace_p(owners_sum(scale, owners, owners - 1), float(scale)) < ALARM  # a missing share
    assert laplace_p(owners_sum(scale, owners + 1, owners), float(scale)) < ALARM  # a wrong number of owners
    once = laplace_share(scale, owners, DRAWS, SYSTEM)
    assert laplace_p((once * owners).astype(np.int64), float(scale)) < ALARM  # one share used by all


@pytest.mark.slow
@pytest.mark.parametrize(("owners", "tolerated"), [(3, 1), (5, 2), (10, 4)])
def test_with_some_absent_there_is_at_least_the_noise_of_one_draw(owners: int, tolerated: int) -> None:
    """Exactly that if all who may be are absent, more if fewer are: every interval around 0 is less likely than for one draw."""
    scale, shares = Fraction(5), owners - tolerated
    assert laplace_p(owners_sum(scale, shares, shares), float(scale)) > ALARM
    everyone = np.abs(owners_sum(scale, shares, owners))
    assert laplace_p(owners_sum(scale, shares, owners), float(scale)) < ALARM
    r = math.exp(-1 / float(scale))
    for edge in range(12):
        inside = 1 - 2 * r ** (edge + 1) / (1 + r)
        assert (everyone <= edge).mean() < inside + 6 * math.sqrt(inside * (1 - inside) / DRAWS)


@pytest.mark.parametrize(
    ("most", "words"), [(2**53, 2**17), (1, 2**17), (4, 2**17), (2**53, 3)], ids=["kernel", "python", "both", "few words"]
)
def test_one_half_of_a_share_is_negative_binomial(most: int, words: int) -> None:
    """Whichever code cuts it, and however often the words run out."""
    size = 10_000
    draws = _thinned(Fraction(7, 2), 3, size, SYSTEM, most, words).astype(np.int64)
    for scale, agrees in ((3.5, True), (4.9, False)):
        law = stats.nbinom(1 / 3, 1 - math.exp(-1 / scale)).pmf(np.arange(200))
        observed = np.bincount(draws, minlength=200)
        assert (chi_square_p(observed, law) > ALARM) == agrees


def test_a_number_is_cut_as_a_permutation_is() -> None:
    """Exactly, for six things and three shares: the law of `_thin` from its definition, and from all permutations with coloured cycles."""
    expected = np.zeros(7)
    for order in permutations(range(6)):
        sizes, seen = [], set()
        for start in range(6):
            length = 0
            while start not in seen:
                seen.add(start)
                start, length = order[start], length + 1
            sizes += [length] if length else []
        law = np.zeros(7)
        law[0] = 1
        for length in sizes:
            law = law * 2 / 3 + np.concatenate([np.zeros(length), law[:-length]]) / 3
        expected += law / 720
    law = np.zeros((7, 7))
    law[0, 0] = 1
    for rest in range(1, 7):
        for length in range(1, rest + 1):
            shorter = law[rest - length]
            law[rest] += (2 / 3 * shorter + np.concatenate([np.zeros(length), shorter[:-length]]) / 3) / rest
    assert np.allclose(law[6], expected)
    coins = SeededCoins(1)
    observed = np.bincount([_thin(6, 3, coins) for _ in range(20_000)], minlength=7)
    assert chi_square_p(observed, expected) > ALARM
    assert chi_square_p(observed, expected[::-1].copy()) < ALARM


def test_the_largest_scale_against_the_continuous_law() -> None:
    scale = Fraction(2**50)
    draws = sum(laplace_share(scale, 2, 20_000, SYSTEM) for _ in range(2)).astype(float)
    assert stats.kstest(draws, stats.laplace(scale=float(scale)).cdf).pvalue > ALARM
    assert stats.kstest(draws, stats.laplace(scale=1.3 * float(scale)).cdf).pvalue < ALARM


def test_what_was_clipped_is_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 64 bits a share goes on: with one share it is the geometric number itself."""
    monkeypatch.setattr(shares_module, "_geometric_numbers", lambda scale, size, coins: np.full(size, LARGEST_DRAW))
    monkeypatch.setattr(shares_module, "geometric", lambda scale, coins: 2**70)
    assert _thinned(Fraction(1), 1, 2, SYSTEM).tolist() == [LARGEST_DRAW + 2**70] * 2
    assert 0 <= min(_thinned(Fraction(1), 2, 20, SYSTEM)) <= LARGEST_DRAW + 2**70


def test_one_share_is_the_whole_draw() -> None:
    assert laplace_p(laplace_share(Fraction(3), 1, DRAWS, SYSTEM).astype(np.int64), 3.0) > ALARM


def test_counts_get_a_share_of_the_noise_that_was_charged() -> None:
    event = LeafCounts.cost(Fraction(1, 2), 1, 2)  # scale 4
    counts = np.arange(DRAWS, dtype=np.int64).reshape(-1, 2)
    noise = sum(add_share(counts, event, SYSTEM, 2) - counts for _ in range(2)).astype(np.int64).ravel()
    assert laplace_p(noise, 4.0) > ALARM
    assert laplace_p(noise, 5.2) < ALARM
    with pytest.raises(PlanError, match="does not follow from what was charged"):
        add_share(counts, replace(event, scale=Fraction(3)), SYSTEM, 2)


def test_noise_that_does_not_come_in_shares_is_refused() -> None:
    counts = np.zeros(3, dtype=np.int64)
    with pytest.raises(PlanError, match="too small for their sum to be like one draw"):
        add_share(counts, LeafCounts.cost(Rho(Fraction(1, 2)), 1), SYSTEM, 2)
    with pytest.raises(PlanError, match=r"this is permute-and-flip\. Nothing was spent"):
        add_share(counts, replace(LeafCounts.cost(Fraction(1), 1), mechanism=PERMUTE_AND_FLIP), SYSTEM, 2)


def gaussian_p(draws: NDArray[np.int64], sigma_squared: float) -> float:
    """Against one discrete Gaussian draw; both tails are one cell each."""
    edge = math.ceil(4 * math.sqrt(sigma_squared))
    weights = np.exp(-(np.arange(-3 * edge, 3 * edge + 1).astype(float) ** 2) / (2 * sigma_squared))
    law = weights / weights.sum()
    inside = law[2 * edge : 4 * edge + 1]
    observed = np.bincount(np.clip(draws, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    tail = law[: 2 * edge].sum()
    return chi_square_p(observed, np.concatenate([[tail], inside, [tail]]))


@pytest.mark.parametrize("owners", slow_but(2, OWNERS))
def test_gaussian_shares_of_all_owners_are_one_draw_and_a_wrong_scale_is_rejected(owners: int) -> None:
    event = LeafCounts.cost(Rho(Fraction(1, 20)), 1, 4)  # σ² = 40
    counts = np.arange(DRAWS, dtype=np.int64)
    noise = [(add_share(counts, event, SYSTEM, owners) - counts).astype(np.int64) for _ in range(owners)]
    assert gaussian_p(sum(noise), 40.0) > ALARM
    for wrong in (0.8, 1.25):
        assert gaussian_p(sum(noise), 40 * wrong) < ALARM
    assert gaussian_p(sum(noise[1:]), 40.0) < ALARM  # a missing share
    assert gaussian_p(noise[0] * owners, 40.0) < ALARM  # one share used by all
    with pytest.raises(PlanError, match="does not follow from what was charged"):
        add_share(counts, replace(event, scale=Fraction(39)), SYSTEM, owners)


def test_whether_shares_are_like_one_draw_depends_on_all_that_a_person_changes() -> None:
    event = replace(LeafCounts.cost(Rho(Fraction(1, 20)), 1), scale=Fraction(10), queries=10**6)
    check_shared_noise(event, 2)
    with pytest.raises(PlanError, match="too small for their sum to be like one draw"):
        check_shared_noise(replace(event, sensitivity=Fraction(10**6)), 2)


def test_shares_of_noise_for_several_rows_of_a_person() -> None:
    """Several trees and rows, so that what was charged is a product of both."""
    counts = np.zeros(DRAWS, dtype=np.int64)
    gaussian = LeafCounts.cost(Rho(Fraction(1, 20)), 3, 4)
    assert (gaussian.queries, gaussian.sensitivity, gaussian.scale) == (4, 9, 360)
    assert gaussian_p(sum(add_share(counts, gaussian, SYSTEM, 2) for _ in range(2)).astype(np.int64), 360.0) > ALARM
    laplace = LeafCounts.cost(Fraction(1), 3, 2)
    assert (laplace.queries, laplace.sensitivity, laplace.scale) == (2, 3, 6)
    assert laplace_p(sum(add_share(counts, laplace, SYSTEM, 2) for _ in range(2)).astype(np.int64), 6.0) > ALARM


@pytest.mark.parametrize("shares", [0, -1, MOST_SHARES + 1])
def test_a_number_of_shares_out_of_range_is_refused(shares: int) -> None:
    with pytest.raises(ValueError, match="shares must be 1 to"):
        laplace_share(Fraction(1), shares, 3, SYSTEM)


def test_as_many_shares_as_one_word_can_tell_apart() -> None:
    assert MOST_SHARES == 1024
    assert MOST_IN_KERNEL * MOST_SHARES < 2**64
    for shares in (1, 2, 1024):
        assert laplace_share(Fraction(1), shares, 3, SYSTEM).shape == (3,)
    assert laplace_share(Fraction(1), 2, 0, SYSTEM).size == 0


def cut_by_hand(rest: int, shares: int, words: list[int]) -> tuple[int, int]:
    """What is kept of a number, and how many words that takes: those above the largest multiple are passed over."""
    kept = used = 0
    while rest:
        choices, word = rest * shares, words[used]
        used += 1
        if word < 2**64 // choices * choices:
            length, other = divmod(word % choices, shares)
            kept += length + 1 if other == 0 else 0
            rest -= length + 1
    return kept, used


@pytest.mark.parametrize("shares", [1, 2, 3, 5, 1000, 1024])
@pytest.mark.parametrize("rest", [1, 2, 3, 7, 2**40 + 1, 2**53 - 1])
def test_the_kernel_cuts_as_by_hand_at_every_edge(rest: int, shares: int) -> None:
    """Words on both sides of the largest multiple and of each share; where the words run out, the number goes on with the next ones."""
    choices = rest * shares
    multiple = 2**64 // choices * choices
    edges = [multiple - 1, multiple, 2**64 - 1, 2**64 - 2, 0, 1, shares - 1, shares, choices - 1, choices - shares]
    rng = np.random.default_rng(rest % 1000)
    later = [int(word) for word in rng.integers(0, 2**64, 400, dtype=np.uint64)]
    for edge in (word for word in edges if 0 <= word < 2**64):
        words = [edge, *later]
        kept, used = cut_by_hand(rest, shares, words)
        for cut in {0, 1, used // 2, used}:
            numbers, found, done = np.array([rest, 0]), np.zeros(2, dtype=np.int64), 0
            for part in (words[:cut], words[cut:used]):
                done = _thin_kernel(numbers, found, done, shares, np.array(part, dtype=np.uint64))
            assert (found.tolist(), numbers.tolist(), done) == ([kept, 0], [0, 0], 2)
        if used > 1:
            numbers, found = np.array([rest, 0]), np.zeros(2, dtype=np.int64)
            assert _thin_kernel(numbers, found, 0, shares, np.array(words[: used - 1], dtype=np.uint64)) == 0


@pytest.mark.parametrize(("size", "most"), [(0, 2**53), (1, 2**53), (9, 2**53), (40, 2**53), (40, 5), (40, 1)])
def test_with_one_share_all_of_every_number_is_kept(size: int, most: int) -> None:
    numbers = _geometric_numbers(Fraction(7, 2), size, SeededCoins(size))
    assert _thinned(Fraction(7, 2), 1, size, SeededCoins(size), most).tolist() == numbers.tolist()


def test_geometric_numbers_are_the_draws_that_are_not_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, also where the first draws are too few."""
    draws = (n if n % 3 == 0 else -n for n in range(10_000))
    monkeypatch.setattr(shares_module, "discrete_laplace", lambda scale, size, coins: np.array(list(islice(draws, size))))
    found = _geometric_numbers(Fraction(1), 30, SYSTEM)
    assert found.size == 30
    assert found[:5].tolist() == [0, 3, 6, 9, 12]
    assert (np.diff(found) > 0).all()
    assert not (found % 3).any()


def test_a_share_is_added_to_each_count_of_queries_that_weigh_more() -> None:
    """A scale that follows from two queries of sensitivity 3; the same coins give the same share."""
    event = replace(LeafCounts.cost(Fraction(1, 2), 1, 2), sensitivity=Fraction(3), scale=Fraction(12))
    counts = np.arange(20, dtype=np.int64).reshape(5, 4)
    share = laplace_share(Fraction(12), 4, 20, SeededCoins(3)).reshape(5, 4)
    assert np.array_equal(add_share(counts, event, SeededCoins(3), 4), counts + share)
    assert share.any()
