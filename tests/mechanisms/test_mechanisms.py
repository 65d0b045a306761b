"""Events and the noise that follows from them, number by number; no rows and no statistics."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.prices import Rho
from hedgerow.errors import PlanError
from hedgerow.mechanisms import noise as mechanisms
from hedgerow.mechanisms.choices import exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import SYSTEM, Coins, SeededCoins, random_name
from hedgerow.mechanisms.gaussian import discrete_gaussian
from hedgerow.mechanisms.noise import (
    SAMPLERS,
    add_noise,
    check_noise_source,
    choose_columns,
    opendp_laplace,
    sampler_named,
)
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.queries import Choose
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize("l1", [1, 7])
@pytest.mark.parametrize("k", [1, 3])
def test_what_a_pure_count_charges_and_draws(queries: int, l1: int, k: int) -> None:
    event = counting_event("sizes", THIRD, queries, l1, 100, k)
    assert event == Event("sizes", DISCRETE_LAPLACE, THIRD, queries, Fraction(l1 * k), Fraction(3 * queries * l1 * k), Fraction(0))


@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize("l2_squared", [1, 7])
@pytest.mark.parametrize("k", [1, 3])
def test_what_a_concentrated_count_charges_and_draws(queries: int, l2_squared: int, k: int) -> None:
    event = counting_event("sizes", Rho(THIRD), queries, 100, l2_squared, k)
    squared = l2_squared * k * k
    assert event == Event("sizes", DISCRETE_GAUSSIAN, Fraction(0), queries, Fraction(squared), Fraction(3 * queries * squared, 2), THIRD)


def test_a_count_is_a_histogram_unless_it_says_otherwise() -> None:
    assert counting_event("rows", HALF) == Event("rows", DISCRETE_LAPLACE, HALF, 1, Fraction(1), Fraction(2))
    assert counting_event("rows", Rho(HALF)) == Event("rows", DISCRETE_GAUSSIAN, Fraction(0), 1, Fraction(1), Fraction(1), HALF)


@pytest.mark.parametrize("price", [0.5, 1, "1/2", None])
def test_a_price_is_an_exact_fraction(price: Any) -> None:
    with pytest.raises(PlanError, match="exact fraction"):
        counting_event("rows", price)
    with pytest.raises(PlanError, match="exact fraction"):
        Choose.cost(price, 1, MAX, EXPONENTIAL)


@pytest.mark.parametrize("k", [1, 3])
def test_what_a_choice_charges_and_prefers(k: int) -> None:
    """A monotone score is preferred at ε/Δ, any other at ε/2Δ, Δ being that of k rows."""
    assert Choose.cost(THIRD, k, MAX, EXPONENTIAL) == Event("choose", EXPONENTIAL, THIRD, 1, Fraction(k), Fraction(3 * k))
    gini = Choose.cost(THIRD, k, GINI, PERMUTE_AND_FLIP)
    assert gini == Event("choose", PERMUTE_AND_FLIP, THIRD, 1, Fraction(2 * k), Fraction(6 * k))
    delta = NORMAL_GINI.sensitivity / NORMAL_GINI.unit * k
    assert Choose.cost(THIRD, k, NORMAL_GINI, EXPONENTIAL) == Event("choose", EXPONENTIAL, THIRD, 1, delta, 6 * delta)
    assert Choose.cost(THIRD, 1, MAX, EXPONENTIAL).sensitivity == 1


# ---------------------------------------------------------------- noise


class Script:
    """A sampler that gives these numbers, and notes what it was asked for."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers
        self.asked: list[tuple[Fraction, int]] = []

    def __call__(self, scale: Fraction, size: int, coins: Coins) -> np.ndarray:
        self.asked.append((scale, size))
        return np.array(self.numbers, dtype=np.int64)


def test_each_number_gets_noise_of_its_own() -> None:
    event, sampler = counting_event("rows", THIRD, 2), Script(1, -2, 30, 400)
    counts = np.array([[5, 6], [7, 8]], dtype=np.int64)
    assert add_noise(counts, event, SYSTEM, sampler).tolist() == [[6, 4], [37, 408]]
    assert sampler.asked == [(Fraction(6), 4)]
    assert counts.tolist() == [[5, 6], [7, 8]]


def test_sums_stay_inside_64_bits() -> None:
    most, half = 2**63 - 1, (2**63 - 1) // 2
    counts = np.array([most, -most - 1, most, half, half + 1, -half, 0], dtype=np.int64)
    noise = (most, -most, -most, 1, 0, -1, most)
    expected = [2 * half, -2 * half, 0, half + 1, half, -half - 1, half]
    assert add_noise(counts, counting_event("rows", THIRD), SYSTEM, Script(*noise)).tolist() == expected


@pytest.mark.parametrize("field", ["epsilon", "queries", "sensitivity", "scale"])
def test_noise_must_follow_from_what_was_charged(field: str) -> None:
    right = counting_event("rows", THIRD, 2, 3)
    for factor in (HALF, Fraction(2)):
        fields = {name: getattr(right, name) for name in ("query", "mechanism", "epsilon", "queries", "sensitivity", "scale")}
        wrong = Event(**{**fields, field: fields[field] * factor})
        with pytest.raises(PlanError, match="does not follow"):
            add_noise(np.zeros(1, dtype=np.int64), wrong, SYSTEM, discrete_laplace)


@pytest.mark.parametrize("field", ["rho", "queries", "sensitivity", "scale"])
def test_gaussian_noise_must_follow_from_what_was_charged(field: str) -> None:
    right = counting_event("rows", Rho(THIRD), 2, 1, 3)
    for factor in (HALF, Fraction(2)):
        fields = {name: getattr(right, name) for name in ("query", "mechanism", "epsilon", "queries", "sensitivity", "scale", "rho")}
        wrong = Event(**{**fields, field: fields[field] * factor})
        with pytest.raises(PlanError, match="does not follow"):
            add_noise(np.zeros(1, dtype=np.int64), wrong, SYSTEM, discrete_laplace)


def test_gaussian_noise_is_drawn_with_the_parameter_of_the_event() -> None:
    event = counting_event("rows", Rho(Fraction(1, 1000)), 2, 1, 3)
    counts = np.arange(12, dtype=np.int64).reshape(3, 4)
    found = add_noise(counts, event, SeededCoins(1), discrete_laplace)
    assert np.array_equal(found - counts, discrete_gaussian(event.scale, 12, SeededCoins(1)).reshape(3, 4))


def test_gaussian_noise_has_one_source() -> None:
    event = counting_event("rows", Rho(THIRD))
    check_noise_source(event, discrete_laplace)
    check_noise_source(counting_event("rows", THIRD), opendp_laplace)
    with pytest.raises(PlanError, match='sampler="hedgerow" alone'):
        check_noise_source(event, opendp_laplace)
    with pytest.raises(PlanError, match='sampler="hedgerow" alone'):
        add_noise(np.zeros(1, dtype=np.int64), event, SYSTEM, Script(0))


# ---------------------------------------------------------------- choices


@pytest.mark.parametrize("mechanism", [PERMUTE_AND_FLIP, EXPONENTIAL])
def test_a_choice_is_made_at_the_rate_of_its_event(mechanism: str) -> None:
    """The same coins choose the same columns as the mechanism itself does at 1/(scale·unit)."""
    rng = np.random.default_rng(0)
    scores, allowed = rng.integers(0, 40, (300, 5)), rng.random((300, 5)) < 0.7
    allowed[:, 0] = True
    event = Choose.cost(Fraction(1, 10), 1, MAX, mechanism)
    law = permute_and_flip if mechanism == PERMUTE_AND_FLIP else exponential_mechanism
    for unit in (1, 3):
        expected = law(scores, allowed, Fraction(1, 10 * unit), SeededCoins(7))
        assert np.array_equal(choose_columns(scores, allowed, event, unit, SeededCoins(7)), expected)
        turned = np.asfortranarray(scores), np.asfortranarray(allowed)
        assert np.array_equal(choose_columns(*turned, event, unit, SeededCoins(7)), expected)
    other = exponential_mechanism if mechanism == PERMUTE_AND_FLIP else permute_and_flip
    tenth = Fraction(1, 10)
    assert not np.array_equal(law(scores, allowed, tenth, SeededCoins(7)), other(scores, allowed, tenth, SeededCoins(7)))


# ---------------------------------------------------------------- samplers by name


@pytest.mark.parametrize("scale", [THIRD, Fraction(1, 10), Fraction(2), Fraction(2**40 + 1, 3), Fraction(2**53 + 1, 2**10)])
def test_opendp_gets_the_scale_or_the_next_float_above(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    import opendp.prelude as dp

    asked: list[float] = []
    make = dp.m.make_laplace

    def noted(domain: Any, metric: Any, scale: float) -> Any:
        asked.append(scale)
        return make(domain, metric, scale=scale)

    monkeypatch.setattr(dp.m, "make_laplace", noted)
    assert opendp_laplace(scale, 5, SYSTEM).shape == (5,)
    (used,) = asked
    assert Fraction(used) >= scale
    assert Fraction(math.nextafter(used, 0)) < scale


def test_noise_of_opendp_is_around_0() -> None:
    """At this scale a number other than 0 is drawn once in e^1000."""
    assert opendp_laplace(Fraction(1, 1000), 40, SYSTEM).tolist() == [0] * 40


def test_samplers_by_name() -> None:
    assert sampler_named("hedgerow", SeededCoins(0)) is discrete_laplace
    assert sampler_named("opendp", SYSTEM) is opendp_laplace
    assert sorted(SAMPLERS) == ["hedgerow", "opendp"]
    with pytest.raises(PlanError, match="expected one of hedgerow, opendp"):
        sampler_named("numpy", SYSTEM)
    with pytest.raises(PlanError, match="cannot use test coins"):
        sampler_named("opendp", SeededCoins(0))


def test_opendp_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(PlanError, match="pip install"):
        sampler_named("opendp", SYSTEM)
    assert mechanisms.sampler_named("hedgerow", SYSTEM) is discrete_laplace


def test_coins_say_what_they_are_and_name_tables_by_128_bits() -> None:
    assert SYSTEM.name == "system randomness (os.urandom)"
    assert SeededCoins(1).name == "seeded test coins: no privacy"
    assert random_name(SeededCoins(1)) == SeededCoins(1).bytes(16).hex()
    assert len(random_name(SYSTEM)) == 32
    assert random_name(SYSTEM) != random_name(SYSTEM)
