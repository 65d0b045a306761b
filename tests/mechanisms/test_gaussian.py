"""Discrete Gaussian noise: exactness, limits and errors, without statistics. Distributions: test_gaussian_distribution.py."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.mechanisms import gaussian
from hedgerow.mechanisms.coins import SYSTEM, SeededCoins
from hedgerow.mechanisms.exactmath import exp_minus_bounds, leading_bits
from hedgerow.mechanisms.gaussian import (
    GUARD,
    LARGEST_VARIANCE,
    _accepts,
    _discrete_gaussian,
    _gaussian_kernel,
    discrete_gaussian,
    geometric,
)
from hedgerow.mechanisms.samplers import LARGEST_DRAW


class NoCoins:
    """Nothing more may be drawn."""

    secret = False
    name = "none"

    def bytes(self, n: int) -> bytes:
        raise AssertionError("no coin was needed here")


def parts(sigma_squared: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    scale = Fraction(min(math.isqrt(int(sigma_squared)) + 1, 2**50))
    return scale, sigma_squared / scale, 1 / (2 * sigma_squared)


def verdicts_of(proposals: list[int], words: list[int], sigma_squared: Fraction, guard: float = GUARD) -> list[int]:
    _, centre, rate = parts(sigma_squared)
    verdicts = np.empty(len(words), dtype=np.uint8)
    arrays = np.array(proposals, dtype=np.int64), np.array(words, dtype=np.uint64)
    _gaussian_kernel(*arrays, float(centre), float(rate), guard, verdicts)
    return [int(verdict) for verdict in verdicts]


SIGMAS = [Fraction(1, 2**390), Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(10**8), Fraction(2**99 + 1, 3), Fraction(2**100)]


@pytest.mark.parametrize("sigma_squared", SIGMAS, ids=float)
def test_floats_decide_only_what_exact_arithmetic_decides_alike(sigma_squared: Fraction) -> None:
    """Words near each threshold, from the next one to far enough away that the kernel is sure of itself."""
    scale, centre, rate = parts(sigma_squared)
    sigma = math.sqrt(sigma_squared)
    decided = 0
    for size in sorted({round(sigma * x / 4) for x in range(50)} | {int(centre), int(centre) + 1}):
        z = (size - centre) ** 2 * rate
        edge = leading_bits(exp_minus_bounds, z, 64) if z else 2**64
        offsets = [0, *(sign * 2**power for power in range(0, 64, 3) for sign in (1, -1))]
        words = [word for word in (edge + offset for offset in offsets) if 0 <= word < 2**64]
        for word, verdict in zip(words, verdicts_of([-size] * len(words), words, sigma_squared), strict=True):
            if verdict != gaussian._UNDECIDED:
                decided += 1
                assert word != edge
                assert (verdict == gaussian._ACCEPTED) == (word < edge)
            if word != edge:
                assert _accepts(size, word, scale, centre, rate, NoCoins()) == (word < edge)
    assert decided > 20


@pytest.mark.parametrize("guard", [GUARD, 0.25, 0.0])
def test_a_float_decides_two_words_and_the_guard_away_from_its_threshold(guard: float) -> None:
    words = np.arange(200, dtype=np.uint64)
    verdicts = np.empty(200, dtype=np.uint8)
    _gaussian_kernel(np.full(200, -9), words, 1.0, 40 / 64, guard, verdicts)
    threshold = math.exp(-40.0) * 2.0**64  # about 78: here whole words are seen
    low, high = threshold * (1 - guard) - 2, threshold * (1 + guard) + 2
    assert verdicts.tolist() == [1 if word < low else 0 if word > high else 2 for word in range(200)]
    _gaussian_kernel(np.full(200, 33), words, 1.0, 1.0, guard, verdicts)  # the threshold is 0
    assert verdicts[:5].tolist() == [2, 2, 2, 0, 0]
    half = np.array([2**63, 2**63 - 2**11], dtype=np.uint64)
    _gaussian_kernel(np.zeros(2, dtype=np.int64), half, 0.0, 1.0, 0.5, verdicts[:2])  # half the threshold, and less
    assert verdicts[:2].tolist() == [2, 1]


def test_a_float_decides_nearly_all() -> None:
    words = [int(word) for word in np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)]
    proposals = np.random.default_rng(1).integers(-40, 40, 100_000).tolist()
    assert gaussian._UNDECIDED not in verdicts_of(proposals, words, Fraction(100))
    assert set(verdicts_of(proposals, words, Fraction(100), guard=math.inf)) == {gaussian._UNDECIDED}


def test_draws_are_the_accepted_proposals_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of 0 is accepted and the largest one rejected, whatever the proposal (near 0, at σ = 10)."""
    blocks = iter([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    words = iter([[0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]])

    class Script:
        secret = False
        name = "scripted"

        def bytes(self, n: int) -> bytes:
            return np.array([(2**64 - 1) * w for w in next(words)], dtype=np.uint64).tobytes()

    monkeypatch.setattr(gaussian, "discrete_laplace", lambda scale, size, coins: np.array(next(blocks), dtype=np.int64))
    assert _discrete_gaussian(Fraction(100), 5, Script(), block=4).tolist() == [1, 3, 8, 9, 10]


def test_the_number_of_proposals_follows_from_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = gaussian.discrete_laplace

    def watched(scale: Fraction, size: int, coins: SeededCoins) -> np.ndarray:
        asked.append((scale, size))
        return original(scale, size, coins)

    monkeypatch.setattr(gaussian, "discrete_laplace", watched)
    _discrete_gaussian(Fraction(399, 4), 3000, SYSTEM, block=1000)
    assert asked[:3] == [(10, 1000)] * 3  # ⌊√99.75⌋ + 1 = 10
    assert all(size <= 1000 for _, size in asked)


def test_what_lies_beyond_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clipped proposal is decided by its true size, which is drawn on; an accepted one stays clipped."""
    further = iter([-3, LARGEST_DRAW, -1, LARGEST_DRAW, 5])
    monkeypatch.setattr(gaussian, "discrete_laplace", lambda scale, size, coins: np.array([next(further)], dtype=np.int64))
    assert geometric(Fraction(2**50), SYSTEM) == 2 * LARGEST_DRAW + 5

    seen = []
    monkeypatch.setattr(gaussian, "geometric", lambda scale, coins: 7)
    monkeypatch.setattr(gaussian, "bernoulli_exp", lambda x, coins, word, bits: seen.append((x, word, bits)) or True)
    sigma_squared = Fraction(2**100)
    scale, centre, rate = parts(sigma_squared)
    assert scale == centre == 2**50
    assert verdicts_of([LARGEST_DRAW, -LARGEST_DRAW], [5, 2**64 - 1], sigma_squared) == [gaussian._UNDECIDED] * 2
    assert _accepts(-LARGEST_DRAW, 5, scale, centre, rate, SYSTEM)
    assert seen == [(Fraction((2**63 + 6 - 2**50) ** 2, 2**101), 5, 64)]
    monkeypatch.setattr(gaussian, "discrete_laplace", lambda scale, size, coins: np.full(size, -LARGEST_DRAW))
    assert discrete_gaussian(sigma_squared, 2, SYSTEM).tolist() == [-LARGEST_DRAW] * 2


def test_limits_and_errors() -> None:
    assert np.abs(discrete_gaussian(Fraction(LARGEST_VARIANCE), 100, SYSTEM)).max() > 2**45
    for tiny in (Fraction(1, 10**6), Fraction(1, 2**399), Fraction(1, 10**1000)):  # the last is decided without floats
        assert not discrete_gaussian(tiny, 300, SYSTEM).any()
    for wrong in (Fraction(0), Fraction(-1), LARGEST_VARIANCE + Fraction(1, 7)):
        with pytest.raises(ValueError, match="sigma_squared must be positive and at most"):
            discrete_gaussian(wrong, 1, SYSTEM)
    with pytest.raises(ValueError, match="size"):
        discrete_gaussian(Fraction(1), -1, SYSTEM)


@pytest.mark.parametrize("size", [0, 1, 1000, 300_001])  # the last needs several blocks
def test_shape_and_dtype(size: int) -> None:
    draws = discrete_gaussian(Fraction(100), size, SYSTEM)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    assert size < 1000 or (draws[-1000:] != 0).any()


def test_seeded_coins_repeat_and_exact_coins_agree_with_floats() -> None:
    first, again, other = (discrete_gaussian(Fraction(10**4), 500, SeededCoins(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    exact = _discrete_gaussian(Fraction(10**4), 500, SeededCoins(1), guard=math.inf)  # the same words, decided without floats
    assert (first == exact).all()
    assert (discrete_gaussian(Fraction(100), 50, SYSTEM) != discrete_gaussian(Fraction(100), 50, SYSTEM)).any()
