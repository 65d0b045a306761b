"""Certified bounds of e^(-x) and of logarithms hold at every precision, a few bits above all, where nothing is left to luck.

At full precision a bound from the wrong side is off by less than anything that is done with it, and no draw and no ε would show it for
years. So the sums behind the bounds are asked for a few bits, where leaving out one rounding or the tail of a series is seen at once, and
bounds of full precision are compared with numbers of twice as many digits.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slow import slow_but

from hedgerow.accounting import zcdp
from hedgerow.accounting.zcdp import _artanh_bounds, _gain, _short, epsilon_for, log_bounds, rho_for
from hedgerow.mechanisms import exactmath
from hedgerow.mechanisms.exactmath import _exp_bounds, exp_minus_bounds, logistic_bounds

DIGITS = 150  # the error of what is computed here is below one part in 10^140
PRECISE = Context(prec=DIGITS)


def decimal_of(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def log_of(x: Fraction) -> Decimal:
    return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def exp_of(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of e^x, 0 <= x <= 1: the series, and after its last term at most that term again."""
    term = total = Fraction(1)
    for n in range(1, 40):
        term = term * x / n
        total += term
    return total, total + term


DENOMINATORS = (1, 2, 3, 5, 7, 8, 16, 64, 1000, 2**20 + 1, 2**60 + 3)
halves = [Fraction(p, q) for q in DENOMINATORS for p in {0, 1, q // 5, q // 3, q // 2 - 1, q // 2}]
thirds = [Fraction(p, q) for q in DENOMINATORS for p in {0, 1, q // 7, q // 4, q // 3 - 1, q // 3}]


@pytest.mark.parametrize("work", slow_but([1, 2, 3, 5, 9, 17, 24], range(1, 25)))
def test_sums_of_the_exponential_enclose_it_at_any_precision(work: int) -> None:
    edges = [Fraction(2 * p + 1, 2 ** (work + 1)) * (1 - Fraction(1, 2**200)) for p in range(min(2**work // 4, 60))]
    near = [Fraction(p, 2**work) - Fraction(1, 2 ** (2 * work + 8)) for p in range(1, min(2**work // 2, 60) + 1)]  # just below a step
    for y in [y for y in [*halves, *edges, *near] if 0 <= y <= Fraction(1, 2)]:
        below, above = exp_of(y)
        low, high = _exp_bounds(y, work)
        assert low <= below * 2**work
        assert above * 2**work <= high
        assert high - low <= 4 + work  # and they are of use


@given(st.fractions(0, Fraction(1, 2)), st.integers(1, 64))
@settings(max_examples=150)
def test_sums_of_the_exponential_enclose_it_anywhere(y: Fraction, work: int) -> None:
    below, above = exp_of(y)
    low, high = _exp_bounds(y, work)
    assert low <= below * 2**work
    assert above * 2**work <= high


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 13, 21])
def test_bounds_of_e_to_the_minus_x_at_few_bits(bits: int) -> None:
    with localcontext(PRECISE):
        for x in [*(Fraction(p, 64) for p in range(64 * 3)), *(Fraction(10) ** k / 7 for k in range(-9, 3)), *map(Fraction, range(40))]:
            true = (-decimal_of(x)).exp() * 2**bits
            low, high = exp_minus_bounds(x, bits)
            assert low <= true <= high
            assert high - low <= 1 + (true in (low, high))
            other = 2**bits / (1 + decimal_of(x).exp())
            low, high = logistic_bounds(x, bits)
            assert low <= other <= high


@pytest.mark.parametrize(
    "x", [Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), *map(Fraction, range(1, 9)), Fraction(1000) - Fraction(1, 9)]
)
def test_the_series_is_summed_only_where_it_was_proven(x: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(exactmath, "_exp_bounds", lambda y, work: seen.append(y) or _exp_bounds(y, work))
    exp_minus_bounds(x, 1001)
    assert 0 < seen[0] <= Fraction(1, 2)


@pytest.mark.parametrize("work", range(1, 25))
def test_sums_of_artanh_enclose_it_at_any_precision(work: int) -> None:
    near = [Fraction(p, 2**work) - Fraction(1, 2 ** (2 * work + 8)) for p in range(1, min(2**work // 3, 60) + 1)]
    with localcontext(PRECISE):
        for u in [u for u in [*thirds, *near] if 0 <= u <= Fraction(1, 3)]:
            true = log_of((1 + u) / (1 - u)) / 2 * 2**work
            low, high = _artanh_bounds(u, work)
            assert low <= true <= high
            assert high - low <= 4 + work


@pytest.mark.slow
@given(st.fractions(0, Fraction(1, 3)), st.integers(1, 64))
@settings(max_examples=150)
def test_sums_of_artanh_enclose_it_anywhere(u: Fraction, work: int) -> None:
    with localcontext(PRECISE):
        low, high = _artanh_bounds(u, work)
        assert low <= log_of((1 + u) / (1 - u)) / 2 * 2**work <= high


numbers = st.one_of(
    st.fractions(Fraction(1, 10**30), 10**30),
    st.integers(-80, 80).map(lambda k: Fraction(2) ** k),
    st.tuples(st.integers(-80, 80), st.integers(1, 200)).map(lambda kn: Fraction(2) ** kn[0] * (1 + Fraction(1, 2 ** kn[1]))),
    st.tuples(st.integers(-80, 80), st.integers(1, 200)).map(lambda kn: Fraction(2) ** kn[0] * (1 - Fraction(1, 2 ** kn[1]))),
)


@pytest.mark.slow
@given(numbers, st.integers(1, 40) | st.just(zcdp.LOG_BITS))
@settings(max_examples=200)
def test_bounds_of_logarithms(x: Fraction, bits: int) -> None:
    with localcontext(PRECISE):
        true = log_of(x) * 2**bits
        low, high = log_bounds(x, bits)
        assert low <= true <= high
        assert high - low <= 2


HAIR = Fraction(1, 10**70)


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 11])
def test_bounds_of_logarithms_where_a_hair_decides(bits: int) -> None:
    """2^bits · ln x is a hair below or above a whole number: what errs to the wrong side, by however little, is on the wrong side of it."""
    with localcontext(PRECISE):
        for whole in [n for n in range(-300, 301, 7) if n]:
            near = Fraction((Decimal(whole) / 2**bits).exp())
            for x, low_most, high_least in ((near * (1 - HAIR), whole - 1, whole), (near * (1 + HAIR), whole, whole + 1)):
                low, high = log_bounds(x, bits)
                assert low <= low_most
                assert high >= high_least


@pytest.mark.parametrize("bits", [2, 3, 5, 8, 11])
def test_bounds_of_e_to_the_minus_x_where_a_hair_decides(bits: int) -> None:
    with localcontext(PRECISE):
        for whole in range(1, 2**bits, max(1, 2**bits // 50)):
            near = Fraction(-(Decimal(whole) / 2**bits).ln())
            for x, low_most, high_least in ((near * (1 + HAIR), whole - 1, whole), (near * (1 - HAIR), whole, whole + 1)):
                low, high = exp_minus_bounds(x, bits)
                assert low <= low_most
                assert high >= high_least


@pytest.mark.parametrize("bits", [2, 3, 5, 8, 11])
def test_bounds_of_the_logistic_function_where_a_hair_decides(bits: int) -> None:
    with localcontext(PRECISE):
        for whole in range(1, 2 ** (bits - 1), max(1, 2**bits // 50)):
            near = Fraction((Decimal(2**bits - whole) / whole).ln())
            for x, low_most, high_least in ((near * (1 + HAIR), whole - 1, whole), (near * (1 - HAIR), whole, whole + 1)):
                low, high = logistic_bounds(x, bits)
                assert low <= low_most
                assert high >= high_least


# ---------------------------------------------------------------- from concentrated privacy to (ε, δ)

alphas = st.integers(-60, 100).flatmap(lambda k: st.fractions(1, 2, max_denominator=2**20).map(lambda m: m * Fraction(2) ** k))
deltas = st.one_of(st.integers(1, 900).map(lambda k: Fraction(1, 2**k)), st.fractions(Fraction(1, 10**12), Fraction(1, 2)))


@pytest.mark.slow
@given(alphas, deltas)
@settings(max_examples=150)
def test_the_gain_is_never_above_the_truth(a: Fraction, delta: Fraction) -> None:
    """Not by one part in 2^256: a logarithm from the other side would be above it always."""
    with localcontext(PRECISE):
        true = log_of(1 + 1 / a) + log_of((1 + a) * delta) / decimal_of(a)
        found = decimal_of(_gain(a, delta))
        assert found <= true
        assert true - found <= (2 + 2 / decimal_of(a)) / 2**zcdp.LOG_BITS


def bound_of(rho: Fraction, delta: Fraction, a: Fraction) -> Decimal:
    """ε at α = 1 + a, as [Z3] writes it."""
    return decimal_of((1 + a) * rho) - log_of(1 + 1 / a) - log_of((1 + a) * delta) / decimal_of(a)


def around(a: Fraction) -> list[Fraction]:
    return [a * (1 + Fraction(i, 2**14)) for i in range(-2, 3)]


losses = st.integers(-8, 8).flatmap(lambda k: st.fractions(1, 10, max_denominator=10**6).map(lambda m: m * Fraction(10) ** k))


@pytest.mark.slow
@given(losses, deltas)
@settings(max_examples=60)
def test_epsilon_is_true_and_the_least_of_its_digits(rho: Fraction, delta: Fraction) -> None:
    """Sure: it is at least the bound at some α. Short: one digit less is below the bound at every α that is near the best."""
    edges: list[Fraction] = []
    edge = zcdp._edge

    def noted(too_small: object) -> Fraction:
        edges.append(edge(too_small))  # type: ignore[arg-type]
        return edges[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zcdp, "_edge", noted)
        epsilon = epsilon_for(rho, delta)
    with localcontext(PRECISE):
        tried = [bound_of(rho, delta, a) for a in around(edges[0])]
        assert min(tried) <= decimal_of(epsilon)
        if epsilon:
            unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - zcdp.DIGITS + 2)
            assert decimal_of(epsilon - unit) < min(tried)


@pytest.mark.slow
@given(losses, deltas)
@example(Fraction(2), Fraction(1, 10**6))  # here the best ρ is so near above a short number that a hair more would round to above it
@example(Fraction(61, 10), Fraction(1, 10**6))
@settings(max_examples=60)
def test_rho_is_true_and_the_most_of_its_digits(epsilon: Fraction, delta: Fraction) -> None:
    edges: list[Fraction] = []
    edge = zcdp._edge

    def noted(too_small: object) -> Fraction:
        edges.append(edge(too_small))  # type: ignore[arg-type]
        return edges[-1]

    rho_for.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zcdp, "_edge", noted)
        rho = rho_for(epsilon, delta)
    with localcontext(PRECISE):
        assert min(bound_of(rho, delta, a) for a in around(edges[0])) <= decimal_of(epsilon)
        more = rho + Fraction(10) ** (math.floor(math.log10(rho)) - zcdp.DIGITS + 2)
        assert min(bound_of(more, delta, a) for a in around(edges[0])) > decimal_of(epsilon)
        a = edges[0]
        gain = log_of(1 + 1 / a) + log_of((1 + a) * delta) / decimal_of(a)
        assert decimal_of(rho) < (decimal_of(epsilon) + gain) / decimal_of(1 + a)


@given(st.fractions(Fraction(1, 10**40), 10**40), st.booleans())
def test_short_numbers_are_rounded_to_the_side_that_is_asked(value: Fraction, up: bool) -> None:
    if value > 0:
        found = _short(value, up)
        assert found >= value if up else found <= value
        assert abs(found - value) < value / 10 ** (zcdp.DIGITS - 2)
        digits = str(found.numerator * 10**80 // found.denominator).rstrip("0")
        assert (found * 10**80).denominator == 1
        assert len(digits) <= zcdp.DIGITS + 1
    exact = Fraction(12345, 1000)
    assert _short(exact, up) == exact
