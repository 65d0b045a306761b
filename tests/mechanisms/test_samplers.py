"""Exactness, limits and errors of the samplers, without statistics. Distributions: test_sampler_distributions.py."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.mechanisms import choices, samplers
from hedgerow.mechanisms.choices import _choose, exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import SYSTEM, SeededCoins
from hedgerow.mechanisms.exactmath import (
    bernoulli_exp,
    exp_minus_bounds,
    leading_bits,
    logistic_bounds,
    uniform_index,
    uniform_is_below,
)
from hedgerow.mechanisms.samplers import _discrete_laplace, _thresholds, discrete_laplace

MECHANISMS = [exponential_mechanism, permute_and_flip]


class ScriptedCoins:
    """Hands out the given bytes and fails when they are used up."""

    secret = False
    name = "scripted"

    def __init__(self, script: bytes) -> None:
        self.script = script

    def bytes(self, n: int) -> bytes:
        assert n <= len(self.script), "more random bytes asked than the script has"
        head, self.script = self.script[:n], self.script[n:]
        return head


def taylor_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds on e^(-x), x <= 8, by the alternating series: an independent way to the same number."""
    term, total, n = Fraction(1), Fraction(1), 0
    while n < x or abs(term) > Fraction(1, 2**160):
        n += 1
        term *= -x / n
        total += term
    previous = total - term
    return min(previous, total), max(previous, total)


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=8, max_denominator=10**6)


@pytest.mark.slow
@given(positive, st.integers(1, 140))
@settings(max_examples=100, deadline=None)
def test_bounds_enclose_and_are_tight(x: Fraction, bits: int) -> None:
    below, above = taylor_bounds(x)
    low, high = exp_minus_bounds(x, bits)
    assert low <= above * 2**bits
    assert below * 2**bits <= high
    assert high - low <= 2
    low, high = logistic_bounds(x, bits)
    assert low <= above / (1 + above) * 2**bits
    assert below / (1 + below) * 2**bits <= high
    assert high - low <= 3


@pytest.mark.slow
@given(positive, st.integers(0, 120))
@settings(max_examples=100, deadline=None)
def test_leading_bits_are_the_floor(x: Fraction, bits: int) -> None:
    below, above = taylor_bounds(x)
    assert leading_bits(exp_minus_bounds, x, bits) == math.floor(below * 2**bits) == math.floor(above * 2**bits)


def test_bounds_at_the_ends() -> None:
    low, high = exp_minus_bounds(Fraction(0), 50)
    assert low <= 2**50 <= high
    assert exp_minus_bounds(Fraction(10**30), 64) == (0, 1)
    assert leading_bits(exp_minus_bounds, Fraction(10**30), 64) == 0
    assert leading_bits(logistic_bounds, Fraction(1, 2**200), 64) == 2**63 - 1  # a hair below one half
    with pytest.raises(ValueError, match="x >= 0"):
        exp_minus_bounds(Fraction(-1), 10)
    with pytest.raises(ValueError, match="x > 0"):
        leading_bits(exp_minus_bounds, Fraction(0), 10)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(2**50)])
def test_threshold_bytes_against_decimal(scale: Fraction) -> None:
    table = _thresholds(scale, 8, Fraction(32))
    k = table.shape[1] - 1
    assert 2**k / scale >= 32
    assert k == 0 or 2 ** (k - 1) / scale < 32
    with localcontext(Context(prec=80)):
        for i in range(k + 1):
            e = (-(Decimal(2**i) * scale.denominator / scale.numerator)).exp()
            q = e / (1 + e) if i < k else e
            assert int.from_bytes(table[:, i].tobytes(), "big") == int(q * 2**64)


def test_uniform_is_below_reads_on_after_ties() -> None:
    x = Fraction(1, 3)
    edge = leading_bits(exp_minus_bounds, x, 128)
    for last, expected in [(edge - 1, True), (edge + 1, False)]:
        coins = ScriptedCoins(last.to_bytes(16, "big"))
        assert uniform_is_below(exp_minus_bounds, x, coins) is expected
        assert coins.script == b""
        head, tail = last >> 64, ScriptedCoins((last % 2**64).to_bytes(8, "big"))
        assert uniform_is_below(exp_minus_bounds, x, tail, head, 64) is expected


def test_bernoulli_exp_at_zero_needs_no_coin() -> None:
    assert bernoulli_exp(Fraction(0), ScriptedCoins(b""))
    assert not bernoulli_exp(Fraction(10**12), SYSTEM)


def test_a_scripted_draw_digit_by_digit() -> None:
    """Scale 1: k = 2, thresholds of digits 0, 1 begin with 0x44, 0x1e, of the excess with 0x04."""
    assert _thresholds(Fraction(1), 8, Fraction(4))[0].tolist() == [0x44, 0x1E, 0x04]
    script = bytes([0x43, 0x1F, 0x03, 0x05, 0x45, 0x1D, 0xFF])  # +(1 + 0 + 4·1) - (0 + 2 + 0) = 3
    assert discrete_laplace(Fraction(1), 1, ScriptedCoins(script + bytes(200))).tolist() == [3]


def test_a_draw_with_all_bytes_tied_is_finished_exactly() -> None:
    """Every comparison of the kernel ties; the bits drawn afterwards decide."""
    tied = _thresholds(Fraction(1), 8, Fraction(4)).T.tobytes()
    buffer = (tied * 2).ljust(2 * 8 * (2 + 8 + 1) + 7, b"\xff")  # of the size that one draw asks for
    below, above = bytes(8), b"\xff" * 8
    plus = below * 3 + above  # digits 0 and 1 are 1, the excess is 1 and no more: 7
    minus = below + above * 2  # digit 0 is 1: 1
    coins = ScriptedCoins(buffer + plus + minus)
    assert discrete_laplace(Fraction(1), 1, coins).tolist() == [7 - 1]
    assert coins.script == b""


@pytest.mark.parametrize(("excess_from", "columns"), [(Fraction(1), 1), (Fraction(4), 3)])
def test_a_draw_begins_only_where_all_of_it_may_be_pending(excess_from: Fraction, columns: int) -> None:
    """Without runs both halves of a draw are pending, and its digits too if they tie; here none does."""
    thresholds = _thresholds(Fraction(1), 1, excess_from)
    assert thresholds.shape == (1, columns)
    for room in range(2 * columns, 2 * columns + 7):
        pending = np.full((room, 4), -1, dtype=np.int64)
        buffer = np.frombuffer(b"\xff" * 1000, dtype=np.uint8)
        done, n_pending = samplers._laplace_kernel(thresholds, buffer, np.empty(50, dtype=np.int64), 0, pending, 2 * columns, 0)
        assert n_pending == 2 * done == 2 * ((room - 2 * columns) // 2 + 1)


def test_saturates_instead_of_wrapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "bernoulli_exp", lambda x, coins: next(answers))
    answers = iter([True] * 3000 + [False] + [False] * 3)
    draws = np.array([5, 5], dtype=np.int64)
    table = _thresholds(Fraction(2**50), 8, Fraction(4))
    k = table.shape[1] - 1
    samplers._settle(draws, [[0, 1, k, 1], [1, -1, k, 1]], table, Fraction(1, 2**50), SYSTEM)
    assert draws.tolist() == [2**63 - 1, 5]
    answers = iter([True] * 3000 + [False])
    samplers._settle(draws, [[1, -1, k, 1]], table, Fraction(1, 2**50), SYSTEM)
    assert draws[1] == -(2**63 - 1)


def test_scale_limits() -> None:
    assert np.abs(discrete_laplace(Fraction(2**50), 100, SYSTEM)).max() > 2**40
    assert not discrete_laplace(Fraction(1, 10**9), 1000, SYSTEM).any()
    for scale in (Fraction(0), Fraction(-1), Fraction(2**50) + Fraction(1, 7)):
        with pytest.raises(ValueError, match="scale must be positive and at most"):
            discrete_laplace(scale, 1, SYSTEM)
    with pytest.raises(ValueError, match="size"):
        discrete_laplace(Fraction(1), -1, SYSTEM)


@pytest.mark.parametrize("size", [0, 1, 1000, 300_001])  # the last needs several buffers
def test_shape_and_dtype(size: int) -> None:
    draws = discrete_laplace(Fraction(10), size, SYSTEM)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    assert size < 1000 or (draws[-1000:] != 0).any()


def test_threshold_cache_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        _thresholds(Fraction(10), 8, Fraction(4))[0, 0] = 1


def test_seeded_coins_repeat_and_system_coins_do_not() -> None:
    scale = Fraction(100)
    first, again, other = (discrete_laplace(scale, 50, SeededCoins(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert (discrete_laplace(scale, 50, SYSTEM) != discrete_laplace(scale, 50, SYSTEM)).any()
    coins = SeededCoins(1)
    assert coins.bytes(16) != coins.bytes(16)
    assert SYSTEM.secret
    assert not coins.secret
    assert "no privacy" in coins.name


def test_uniform_index_limits() -> None:
    assert uniform_index(1, ScriptedCoins(b"")) == 0
    assert uniform_index(5, ScriptedCoins(bytes([7 << 5, 4 << 5]))) == 4  # 7 is rejected
    assert uniform_index(256, ScriptedCoins(b"\xff")) == 255
    assert uniform_index(257, ScriptedCoins(b"\x80\x7f")) == 256
    with pytest.raises(ValueError, match="at least one"):
        uniform_index(0, SYSTEM)


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestChoiceContracts:
    def test_only_allowed_columns(self, mechanism) -> None:
        generator = np.random.default_rng(0)
        scores = generator.integers(-50, 50, (2000, 7))
        allowed = generator.random((2000, 7)) < 0.3
        allowed[np.arange(2000), generator.integers(0, 7, 2000)] = True
        scores[~allowed] = 10**6  # a forbidden column must not set the maximum either
        chosen = mechanism(scores, allowed, Fraction(1, 20), SYSTEM)
        assert allowed[np.arange(2000), chosen].all()
        assert len(np.unique(chosen)) == 7

    def test_large_rate_takes_the_maximum(self, mechanism) -> None:
        scores = np.random.default_rng(1).permuted(np.tile(np.arange(6), (500, 1)), axis=1)
        for rate in (Fraction(1000), Fraction(2**1001)):
            chosen = mechanism(scores, np.ones_like(scores, dtype=bool), rate, SYSTEM)
            assert (chosen == scores.argmax(axis=1)).all()

    def test_gaps_beyond_int64(self, mechanism) -> None:
        extremes = np.array([[-(2**63), 2**63 - 1, -(2**63)]] * 200)
        allowed = np.ones_like(extremes, dtype=bool)
        assert (mechanism(extremes, allowed, Fraction(1), SYSTEM) == 1).all()
        # With this rate the gap of 2^64 - 1 is worth about 1: all three columns must come up.
        assert len(np.unique(mechanism(extremes, allowed, Fraction(1, 2**64), SYSTEM))) == 3

    def test_rate_zero_is_uniform_choice(self, mechanism) -> None:
        scores = np.arange(4)[None, :] * np.ones((400, 1), dtype=np.int64)
        assert len(np.unique(mechanism(scores, np.ones_like(scores, dtype=bool), Fraction(0), SYSTEM))) == 4

    def test_errors(self, mechanism) -> None:
        scores = np.zeros((2, 3), dtype=np.int64)
        allowed = np.ones((2, 3), dtype=bool)
        with pytest.raises(ValueError, match="at least one allowed column"):
            mechanism(scores, np.array([[True] * 3, [False] * 3]), Fraction(1), SYSTEM)
        with pytest.raises(ValueError, match="negative"):
            mechanism(scores, allowed, Fraction(-1), SYSTEM)
        with pytest.raises(ValueError, match="one shape"):
            mechanism(scores, allowed[:, :2], Fraction(1), SYSTEM)
        with pytest.raises(TypeError, match="int64"):
            mechanism(scores.astype(float), allowed, Fraction(1), SYSTEM)

    @pytest.mark.parametrize("columns", [0, 3])
    def test_no_rows(self, mechanism, columns: int) -> None:
        empty = np.zeros((0, columns), dtype=np.int64)
        assert mechanism(empty, empty.astype(bool), Fraction(1), SYSTEM).shape == (0,)

    def test_more_columns_than_any_table_has(self, mechanism) -> None:
        scores = np.zeros((1, 2**20 + 1), dtype=np.int64)
        scores[0, 70_000] = 10**18
        assert mechanism(scores, scores != 0, Fraction(2**1100), SYSTEM).tolist() == [70_000]  # a rate that is no float


@pytest.mark.parametrize(("columns", "chosen"), [(2, 1), (3, 1), (5, 1), (4, 3)])
def test_a_word_that_would_favour_some_columns_is_passed_over(columns: int, chosen: int) -> None:
    """All scores are equal, so that the first pick is taken: the last word 2^64 - 1, unless 2^64 is no multiple of the columns."""
    words = np.array([2**64 - 1, 1] + [0] * (4 * columns - 2), dtype=np.uint64)
    scores = np.zeros((1, columns), dtype=np.int64)
    assert exponential_mechanism(scores, scores == 0, Fraction(1), ScriptedCoins(words.tobytes())).tolist() == [chosen]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_best_of_very_small_scores(mechanism) -> None:
    for lowest in (-(2**63), -(2**62) - 5, -(2**61)):
        scores = np.array([[lowest, lowest + 2, lowest + 1]] * 20)
        assert (mechanism(scores, np.ones((20, 3), dtype=bool), Fraction(1000), SYSTEM) == 1).all()


def test_no_more_rows_are_pending_than_there_is_room_for() -> None:
    """An infinite guard leaves every row open that does not pick one of the best."""
    scores, words = np.array([[0, 1]] * 50), np.frombuffer(bytes(8 * 200), dtype=np.uint64)  # each picks the first, which is worse
    pending = np.empty((3, 6), dtype=np.int64)
    allowed, chosen = np.ones((50, 2), dtype=bool), np.empty(50, dtype=np.int64)
    assert choices._choice_kernel(scores, allowed, 1.0, math.inf, False, words, chosen, 0, pending) == (3, 3)
    assert pending[:, 0].tolist() == [0, 1, 2]


def verdict_of(gap: int, coin: int, rate: float, guard: float) -> str:
    """What the kernel does with the coin of a column that is `gap` below the best; if it rejects it, the best is picked next."""
    words = np.frombuffer(np.array([0, coin, 1, 0], dtype=np.uint64).tobytes(), dtype=np.uint64)
    chosen, pending = np.full(1, -1, dtype=np.int64), np.empty((1, 6), dtype=np.int64)
    _, open_rows = choices._choice_kernel(np.array([[0, gap]]), np.ones((1, 2), dtype=bool), rate, guard, False, words, chosen, 0, pending)
    return "pending" if open_rows else ("accepted", "rejected")[chosen[0]]


@pytest.mark.parametrize("guard", [choices.GUARD, 0.25, 0.0])
def test_a_float_decides_two_words_and_the_guard_away_from_its_threshold(guard: float) -> None:
    threshold = math.exp(-40.0) * 2.0**64  # about 78: here whole words are seen
    for coin in range(200):
        low, high = threshold * (1 - guard) - 2, threshold * (1 + guard) + 2
        assert verdict_of(40, coin, 1.0, guard) == ("accepted" if coin < low else "rejected" if coin > high else "pending")
    assert [verdict_of(1000, coin, 1.0, guard) for coin in range(5)] == ["pending"] * 3 + ["rejected"] * 2  # the threshold is 0
    assert verdict_of(1, 2**63, 0.0, 0.5) == "pending"  # it is just half the threshold
    assert verdict_of(1, 2**63 - 2**11, 0.0, 0.5) == "accepted"


def test_a_float_decides_only_gaps_that_it_holds_exactly() -> None:
    assert [verdict_of(2**53 + more, 0, 2.0**-53, choices.GUARD) for more in (-1, 0, 1)] == ["accepted", "pending", "pending"]


def test_the_guard_is_the_one_that_is_proven() -> None:
    assert choices.GUARD == 2.0**-40


@pytest.mark.parametrize("set_aside", [False, True])
def test_exact_path_agrees_with_float_path_on_the_same_words(set_aside: bool) -> None:
    """One row, two columns, x = 1 for the first. The script picks it and then tosses the given word.

    If it is rejected, all that follows makes the second pick the best column, whichever path reads it.
    """
    scores, allowed = np.array([[0, 3]]), np.ones((1, 2), dtype=bool)
    rate = Fraction(1, 3)
    edge = leading_bits(exp_minus_bounds, Fraction(1), 64)
    generator = np.random.default_rng(5)
    near = [edge + offset for offset in (-(2**40), -(2**20), -1, 0, 1, 2**20, 2**40)]
    for word in near + [int(w) for w in generator.integers(0, 2**64, 50, dtype=np.uint64)]:
        pick_then_coin = np.array([0, word] + [1] * 6, dtype=np.uint64).tobytes()
        results = set()
        for guard in (choices.GUARD, math.inf):
            coins = ScriptedCoins(pick_then_coin + b"\xff" * 64)
            results.add(int(_choose(scores, allowed, rate, coins, set_aside, guard)[0]))
        if word != edge:
            assert results == {0 if word < edge else 1}
        else:  # a tie: the further bits are all ones, so not below
            assert results == {1}


@pytest.mark.slow
def test_forced_pending_uses_several_batches() -> None:
    draws = _discrete_laplace(Fraction(10), 20_000, SYSTEM, depth=1, excess_from=Fraction(1, 2), runs=0)
    assert draws.shape == (20_000,)
    assert 12 < draws.std() < 16.5
