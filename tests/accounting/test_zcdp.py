"""Concentrated privacy: exact ρ, and conversions to (ε, δ) that are sure."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from hedgerow.accounting.zcdp import (
    LEAST,
    LEAST_DELTA,
    MOST,
    choice_epsilon,
    epsilon_for,
    gaussian_variance,
    log_bounds,
    rho_after,
    rho_for,
    rho_of_exponential,
    rho_of_gaussian,
    rho_of_pure,
    sigma_squared_for,
)
from hedgerow.errors import PlanError

epsilons = st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=1000)
rhos = st.fractions(min_value=Fraction(1, 10**5), max_value=20, max_denominator=10**5)
deltas = st.integers(1, 40).map(lambda power: Fraction(1, 2**power)) | st.fractions(Fraction(1, 10**9), Fraction(1, 2))


def log_of(x: Fraction) -> Decimal:
    return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def log_delta(rho: Fraction, epsilon: Fraction, alpha: Fraction) -> Decimal:
    """The logarithm of the bound of Canonne, Kamath & Steinke as they write it, in 60 digits: another way to the same number."""
    exponent = (alpha - 1) * (alpha * rho - epsilon)
    power = Decimal(alpha.numerator) / Decimal(alpha.denominator) * log_of(1 - 1 / alpha)
    return Decimal(exponent.numerator) / Decimal(exponent.denominator) - log_of(alpha - 1) + power


def best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """The least over α, found by another search."""
    r, e = float(rho), float(epsilon)

    def rough(log_a: float) -> float:
        a = math.exp(log_a)
        return a * ((1 + a) * r - e) - log_a - (1 + a) * math.log1p(1 / a)

    start = min(np.linspace(-15, 25, 400), key=rough)
    found = optimize.minimize_scalar(rough, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-10})
    return log_delta(rho, epsilon, 1 + Fraction(math.exp(found.x)))


@pytest.mark.slow
@given(epsilons, deltas)
@settings(max_examples=150, deadline=None)
def test_rho_is_sure_and_hardly_less_than_the_best(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    with localcontext(prec=60):
        assert best_log_delta(rho, epsilon) <= log_of(delta)
        assert best_log_delta(rho * (1 + Fraction(1, 10**8)), epsilon) > log_of(delta)


@pytest.mark.slow
@given(rhos, deltas)
@settings(max_examples=150, deadline=None)
def test_epsilon_is_sure_and_hardly_more_than_the_best(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_for(rho, delta)
    with localcontext(prec=60):
        assert best_log_delta(rho, epsilon) <= log_of(delta)
        if epsilon > 0:
            assert best_log_delta(rho, epsilon - max(epsilon, rho) / 10**8) > log_of(delta)


@given(epsilons, deltas, st.floats(0.001, 1000))
@settings(max_examples=100, deadline=None)
def test_no_alpha_does_better(epsilon: Fraction, delta: Fraction, a: float) -> None:
    """(ε + g)/α of a random α, in floats, never exceeds what was found."""
    other = (float(epsilon) + math.log1p(1 / a) + (math.log1p(a) + math.log(delta)) / a) / (1 + a)
    assert other <= float(rho_for(epsilon, delta)) * (1 + 1e-8) + 1e-12


@pytest.mark.slow
@given(epsilons, deltas)
@settings(max_examples=100, deadline=None)
def test_there_and_back(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert epsilon_for(rho, delta) <= epsilon * (1 + Fraction(1, 10**9))  # rounded up to ten digits
    if len(str(epsilon.denominator).rstrip("0")) == 1 and epsilon.denominator in (1, 10, 100):
        assert epsilon_for(rho, delta) <= epsilon  # ε has few digits: no rounding goes beyond it
    assert epsilon_for(rho * (1 + Fraction(1, 10**7)), delta) >= epsilon


@given(rhos, deltas)
@settings(max_examples=100, deadline=None)
def test_never_worse_than_the_textbook(rho: Fraction, delta: Fraction) -> None:
    """ε = ρ + 2√(ρ ln(1/δ)) (Bun & Steinke 2016, Proposition 1.3)."""
    assert float(epsilon_for(rho, delta)) <= (float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))) * (1 + 1e-9)


@pytest.mark.slow
@given(rhos, deltas)
@settings(max_examples=100, deadline=None)
def test_the_gaussian_itself_keeps_the_promise(rho: Fraction, delta: Fraction) -> None:
    """The continuous Gaussian is exactly ρ-zCDP with μ²/2 = ρ; its δ(ε) is known (Balle & Wang 2018) and must not be above δ."""
    epsilon, mu = float(epsilon_for(rho, delta)), math.sqrt(2 * float(rho))
    exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu))
    assert exact <= float(delta)


def test_known_numbers() -> None:
    """Against the bound evaluated by hand at the best α, and pinned so that a change is seen."""
    assert float(rho_for(Fraction(1), Fraction(1, 10**6))) == pytest.approx(0.02435597035, rel=1e-9)
    assert float(epsilon_for(Fraction(1, 10), Fraction(1, 10**6))) == pytest.approx(2.141938929, rel=1e-9)
    assert rho_for(Fraction(1), Fraction(1, 10**6)) > Fraction(1787, 100000)  # the textbook's


def test_monotone() -> None:
    numbers = [Fraction(k, 10) for k in (1, 2, 5, 10, 11, 100)]
    for delta in (Fraction(1, 10**9), Fraction(1, 100)):
        for convert in (rho_for, epsilon_for):
            answers = [convert(x, delta) for x in numbers]
            assert answers == sorted(set(answers))
    for x in numbers:
        assert rho_for(x, Fraction(1, 10**9)) < rho_for(x, Fraction(1, 10**5))
        assert epsilon_for(x, Fraction(1, 10**9)) > epsilon_for(x, Fraction(1, 10**5))


def test_answers_are_short() -> None:
    for epsilon in (Fraction(1, 3), Fraction(7), Fraction(1, 1000)):
        rho = rho_for(epsilon, Fraction(1, 10**6))
        assert 10**9 <= rho * 10**30 // 10 ** (30 - 9 - math.floor(-math.log10(rho)) - 1) < 10**11
        assert (rho * Fraction(10) ** (math.ceil(-math.log10(rho)) + 10)).denominator == 1


def test_ends_of_the_range() -> None:
    for epsilon in (LEAST, MOST):
        for delta in (LEAST_DELTA, Fraction(1, 10**9), Fraction(1, 2)):
            rho = rho_for(epsilon, delta)
            assert rho > 0
            if LEAST <= rho <= MOST:
                assert epsilon_for(rho, delta) <= epsilon * (1 + Fraction(1, 10**8))
    assert epsilon_for(Fraction(0), Fraction(1, 10)) == 0
    assert epsilon_for(Fraction(1, 100), Fraction(1, 2)) == 0  # so little that δ covers all of it


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1), Fraction(2**101), Fraction(1, 2**101)])
def test_refused_losses(wrong: Fraction) -> None:
    with pytest.raises(PlanError, match="epsilon"):
        rho_for(wrong, Fraction(1, 100))
    if wrong:
        with pytest.raises(PlanError, match="rho"):
            epsilon_for(wrong, Fraction(1, 100))


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1), Fraction(1), Fraction(2), Fraction(51, 100), Fraction(1, 2**1001)])
def test_refused_deltas(wrong: Fraction) -> None:
    for convert in (rho_for, epsilon_for):
        with pytest.raises(PlanError, match="delta"):
            convert(Fraction(1), wrong)


@pytest.mark.slow
@given(st.fractions(min_value=Fraction(1, 10**60), max_value=10**60), st.integers(1, 200))
@settings(max_examples=200, deadline=None)
def test_logarithms_are_enclosed(x: Fraction, bits: int) -> None:
    if x > 0:
        low, high = log_bounds(x, bits)
        with localcontext(prec=100):
            assert low <= log_of(x) * 2**bits <= high
        assert high - low <= 2


def test_logarithms_at_special_places() -> None:
    low, high = log_bounds(Fraction(1), 100)
    assert low <= 0 <= high
    assert high - low <= 2
    for x in (Fraction(2), Fraction(1, 2), 1 + Fraction(1, 2**300), 1 - Fraction(1, 2**300), Fraction(2**1000 - 1), Fraction(1, 2**1000)):
        low, high = log_bounds(x, 250)
        with localcontext(prec=500):
            assert low <= log_of(x) * 2**250 <= high
    with pytest.raises(ValueError, match="x > 0"):
        log_bounds(Fraction(0), 10)


def test_costs_of_mechanisms() -> None:
    assert rho_of_pure(Fraction(1, 3)) == Fraction(1, 18)
    assert rho_of_exponential(Fraction(1, 3)) == Fraction(1, 72)
    assert rho_of_gaussian(4, Fraction(100)) == Fraction(1, 50)
    assert sigma_squared_for(4, Fraction(1, 50)) == 100
    assert sigma_squared_for(1, Fraction(1, 2**101)) == 2**100  # σ of 2^50 can still be drawn
    with pytest.raises(PlanError, match="larger epsilon"):
        sigma_squared_for(1, Fraction(1, 2**102))
    with pytest.raises(PlanError, match="above 0"):
        sigma_squared_for(1, Fraction(0))


def renyi(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    inside = (p > 0) & (q > 0)
    return float(np.log(np.sum(np.exp(alpha * np.log(p[inside]) + (1 - alpha) * np.log(q[inside])))) / (alpha - 1))


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max())
    return weights / weights.sum()


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 7.0, 40.0])
def test_the_theorems_on_examples(alpha: float) -> None:
    """Rényi divergences computed from the laws themselves stay below α·ρ."""
    x = np.arange(-400, 401)
    for sigma_squared in (0.3, 1.0, 50.0):
        for shift in (1, 2, 5):  # [M3], computed with logarithms that do not underflow
            exponent = -(alpha * x**2 + (1 - alpha) * (x - shift) ** 2) / (2 * sigma_squared)
            total = np.logaddexp.reduce(exponent) - np.logaddexp.reduce(-(x**2) / (2 * sigma_squared))
            assert total / (alpha - 1) <= alpha * shift**2 / (2 * sigma_squared) * (1 + 1e-9)
    generator = np.random.default_rng(7)
    for _ in range(200):
        epsilon = generator.uniform(0.05, 4)
        scores = generator.uniform(0, 10, 6)
        monotone = softmax(epsilon * scores), softmax(epsilon * (scores + generator.choice([0.0, 1.0], 6)))
        either = softmax(epsilon / 2 * scores), softmax(epsilon / 2 * (scores + generator.choice([-1.0, 1.0], 6)))
        for p, q in (monotone, either):  # [Z2] at rates ε/Δ and ε/2Δ
            assert renyi(p, q, alpha) <= alpha * epsilon**2 / 8 * (1 + 1e-9) + 1e-12
        yes = math.exp(epsilon) / (1 + math.exp(epsilon))  # randomised response, the worst ε-DP algorithm
        assert renyi(np.array([yes, 1 - yes]), np.array([1 - yes, yes]), alpha) <= alpha * epsilon**2 / 2 * (1 + 1e-9)


def test_permute_and_flip_is_not_charged_as_the_exponential_mechanism() -> None:
    """Two candidates whose scores change places, ε = 1: more than α·ε²/8, less than α·ε²/2."""
    lose = math.exp(-0.5) / 2
    divergence = renyi(np.array([lose, 1 - lose]), np.array([1 - lose, lose]), 1.1)
    assert 1.1 / 8 < divergence <= 1.1 / 2


def test_filter() -> None:
    spent = Fraction(0)
    for _ in range(3):
        spent = rho_after(spent, Fraction(1, 30), Fraction(1, 10))
    assert spent == Fraction(1, 10)
    assert rho_after(spent, Fraction(0), Fraction(1, 10)) == spent
    with pytest.raises(PlanError, match="rho"):
        rho_after(spent, Fraction(1, 10**9), Fraction(1, 10))
    with pytest.raises(PlanError, match="rho"):
        rho_after(spent, Fraction(-1, 10), Fraction(1, 10))


@given(st.fractions(min_value=Fraction(1, 2000), max_value=30, max_denominator=10**4))
def test_variance_by_summation(sigma_squared: Fraction) -> None:
    x = np.arange(-200, 201).astype(float)
    weights = np.exp(-(x**2) / (2 * float(sigma_squared)))
    assert gaussian_variance(sigma_squared) == pytest.approx(float((x**2 * weights).sum() / weights.sum()), rel=1e-12, abs=1e-300)


def test_variance_ends() -> None:
    assert gaussian_variance(Fraction(2**100)) == 2.0**100
    assert gaussian_variance(Fraction(1, 10**400)) == 0.0
    assert 0.99999 < gaussian_variance(Fraction(1)) < 1


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize("power", [-30, -5, -2, -1, 0, 1, 6, 21])
def test_the_epsilon_of_a_choice_is_the_largest_of_its_digits(power: int, times: int) -> None:
    """Never above what ρ pays for, also where ρ is a hair below a square; short, and not below by more than its last digit."""
    for numerator in (1, 3, 7919, 5 * 10**15 + 37):
        rho = Fraction(10) ** power * Fraction(numerator, 10**15 + 39 if numerator > 10**9 else 1)
        epsilon = choice_epsilon(rho, times)
        digits = max(0, 10 - math.floor(math.log10(rho) / 2))
        step = Fraction(1, 10**digits)
        assert epsilon**2 <= times * rho < (epsilon + step) ** 2
        assert (epsilon / step).denominator == 1
        if numerator != 1:  # below a power of ten there would be a digit more
            assert choice_epsilon((epsilon**2 - step**2 / 1000) / times, times) == epsilon - step


def test_the_largest_noise_that_can_be_drawn_is_not_refused() -> None:
    assert sigma_squared_for(2 * 2**100, Fraction(1)) == 2**100
    with pytest.raises(PlanError, match="far above any count"):
        sigma_squared_for(2 * 2**100 + 1, Fraction(1))


def test_an_event_that_costs_nothing_is_taken() -> None:
    assert rho_after(Fraction(1), Fraction(0), Fraction(1)) == 1
    with pytest.raises(PlanError, match="expected at most 0"):
        rho_after(Fraction(1), Fraction(-1, 10**9), Fraction(1))
