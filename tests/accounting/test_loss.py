"""Exact losses: what is accepted, what is refused, and the text of it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.accounting.loss import (
    LEAST_DELTA,
    MAX_SCALE,
    MOST_DELTA,
    _fraction,
    exact_delta,
    exact_epsilon,
    exact_sum,
    noise_scale,
    noise_variance,
    plain_fraction,
    text_of_delta,
    text_of_fraction,
    text_of_loss,
)
from hedgerow.errors import PlanError
from hedgerow.mechanisms.gaussian import LARGEST_VARIANCE
from hedgerow.mechanisms.samplers import LARGEST_SCALE


def test_decimals_mean_what_they_say() -> None:
    assert exact_epsilon(0.1) + exact_epsilon(0.2) == exact_epsilon(0.3) == Fraction(3, 10)
    same = [0.5, "0.5", "1/2", Decimal("0.5"), Fraction(1, 2), np.float64(0.5), np.float32(0.5)]
    assert {exact_epsilon(value) for value in same} == {Fraction(1, 2)}
    assert exact_epsilon(2) == exact_epsilon(np.int64(2)) == 2


@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 0.0, float("nan"), float("inf"), "nan", "inf", "", "one", True, "1/0", "1e999999999", [1], Decimal("NaN")],
)
def test_refused(value: Any) -> None:
    with pytest.raises(PlanError, match="epsilon"):
        exact_epsilon(value)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9))
def test_text_is_exact(value: Fraction) -> None:
    assert Fraction(text_of_fraction(value)) == value


def test_text_is_readable() -> None:
    assert [text_of_fraction(Fraction(a, b)) for a, b in [(3, 10), (1, 3), (2, 1), (97, 1000)]] == ["0.3", "1/3", "2", "0.097"]


@given(st.fractions(min_value=Fraction(1, 50), max_value=500, max_denominator=100))
def test_variance_by_summation(scale: Fraction) -> None:
    r = math.exp(-float(1 / scale))
    most = int(60 * scale) + 10
    x = np.arange(1, most)
    by_sum = 2 * (1 - r) / (1 + r) * float(np.sum(x.astype(float) ** 2 * np.exp(-x / float(scale))))
    assert noise_variance(scale) == pytest.approx(by_sum, rel=1e-9, abs=1e-300)


def test_absurd_noise_is_refused() -> None:
    assert noise_scale(10, Fraction(1, 2)) == 20
    with pytest.raises(PlanError, match="larger epsilon"):
        noise_scale(1, Fraction(1, 2**60))


# ---------------------------------------------------------------- ends of ranges


def test_limits_are_those_of_the_samplers() -> None:
    assert LARGEST_SCALE == 2**50
    assert MAX_SCALE == LARGEST_SCALE
    assert LARGEST_VARIANCE == 2**100
    assert (Fraction(1, 2**1000), Fraction(1, 2)) == (LEAST_DELTA, MOST_DELTA)


def test_the_widest_noise() -> None:
    assert noise_scale(2**50, Fraction(1)) == 2**50
    with pytest.raises(PlanError, match="larger epsilon"):
        noise_scale(2**50 + 1, Fraction(1))
    for epsilon in (Fraction(0), Fraction(-1)):
        with pytest.raises(PlanError, match="above 0"):
            noise_scale(1, epsilon)
    assert noise_scale(1, Fraction(1, 10)) == 10


def test_numbers_have_at_most_a_hundred_digits() -> None:
    assert exact_epsilon(10**99) == 10**99
    assert exact_epsilon("1" * 100) == int("1" * 100)
    assert exact_delta(Fraction(1, 10**97 + 1)) == Fraction(1, 10**97 + 1)
    for convert, value in ((exact_epsilon, 10**100), (exact_delta, Fraction(1, 10**98 + 1))):
        with pytest.raises(PlanError, match="more than 100 digits"):
            convert(value)
    with pytest.raises(PlanError, match="finite number"):
        exact_epsilon("1" * 101)
    with pytest.raises(PlanError, match="finite number"):
        exact_epsilon("0." + "0" * 98 + "1")


def test_exponents_have_at_most_three_digits() -> None:
    assert _fraction("1e999", "x") == 10**999
    assert _fraction("1E+999", "x") == 10**999
    assert _fraction("2e-999", "x") == Fraction(2, 10**999)
    for text in ("1e1000", "1e-1000", "1E+1000", "1e0001"):
        with pytest.raises(PlanError, match="finite number"):
            _fraction(text, "x")


def test_the_smallest_and_the_largest_delta() -> None:
    assert exact_delta(0) == exact_delta("0") == 0
    assert exact_delta("1/2") == exact_delta(0.5) == Fraction(1, 2)
    assert exact_delta(1e-6) == Fraction(1, 10**6)
    for value in (-1, "-1e-9", 0.51, 1, 2, None, True, "x", float("nan"), Fraction(1, 2**1001), Fraction(1, 2**2000)):
        with pytest.raises(PlanError, match=r"^delta: got .*; expected 0 \(pure ε\)"):
            exact_delta(value)
    with pytest.raises(PlanError, match="more than 100 digits"):
        exact_delta(LEAST_DELTA)  # it is in the range, and too long
    with pytest.raises(PlanError, match=r"^chance: got"):
        exact_delta(1, "chance")


def test_what_is_refused_is_named() -> None:
    with pytest.raises(PlanError, match=r"^epsilon is required"):
        exact_epsilon(None)
    with pytest.raises(PlanError, match=r"^share is required.*share=1"):
        exact_epsilon(None, "share")
    with pytest.raises(PlanError, match=r"^share: got 'x'; expected a finite number"):
        exact_epsilon("x", "share")
    with pytest.raises(PlanError, match=r"^epsilon: got 0; expected a number above 0"):
        exact_epsilon(0)
    assert exact_epsilon("1e-9") == Fraction(1, 10**9)


class Shown:
    """Something with `item`, as NumPy's scalars have it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


def test_numpy_scalars_are_unpacked() -> None:
    assert exact_epsilon(Shown(2)) == 2
    assert exact_epsilon(Shown("1/3")) == Fraction(1, 3)
    assert exact_epsilon(np.float32(0.5)) == Fraction(1, 2)
    assert exact_epsilon(np.float32(0.1)) == exact_epsilon(np.float16(0.1)) == Fraction(1, 10)  # it was 0.10000000149
    found = exact_epsilon(np.int8(3))
    assert type(found.numerator) is int
    assert exact_epsilon(np.float64(0.1)) == Fraction(1, 10)
    with pytest.raises(PlanError):
        exact_epsilon(np.bool_(True))


@pytest.mark.parametrize("text", ["1", "0.5", "1/3", "007", "9" * 15, f"{2**50}", "1." + "3" * 200])
def test_plain_fractions(text: str) -> None:
    assert plain_fraction(text) == Fraction(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a plain"), ("-1", "not a plain"), ("1e5", "not a plain"), ("1/2/3", "not a plain"), (" 1", "not a plain"),
        ("1_0", "not a plain"), ("1." + "3" * 201, "not a plain"), ("1" * 201, "not a plain"), ("1\n", "not a plain"),
        ("1/0", "out of range"), ("1/000", "out of range"), ("0", "out of range"), ("0/5", "out of range"),
        (f"{2**50 + 1}", "out of range"),
    ],
)  # fmt: skip
def test_what_is_no_plain_fraction(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plain_fraction(text)


def test_plain_fractions_up_to_a_limit() -> None:
    assert plain_fraction("7", 7) == 7
    assert plain_fraction("1/10") == Fraction(1, 10)
    with pytest.raises(ValueError, match="out of range"):
        plain_fraction("7.1", 7)


def test_sums() -> None:
    assert exact_sum([]) == 0
    assert exact_sum([Fraction(1, 3), Fraction(1, 6)]) == Fraction(1, 2)
    longest = Fraction(1, 2**599)  # 600 bits
    assert exact_sum([longest, Fraction(1)]) == 1 + longest
    with pytest.raises(PlanError, match="too many digits"):
        exact_sum([Fraction(1, 2**600)])


TEXTS = {
    Fraction(0): "0", Fraction(10): "10", Fraction(-1, 4): "-0.25", Fraction(-3): "-3", Fraction(1, 10): "0.1",
    Fraction(1, 8): "0.125", Fraction(3, 25): "0.12", Fraction(7, 40): "0.175", Fraction(1, 6): "1/6", Fraction(-5, 3): "-5/3",
    Fraction(1, 10**12): "0.000000000001", Fraction(1, 10**13): "1/10000000000000", Fraction(1, 2**12): "0.000244140625",
    Fraction(1, 2**13): "1/8192",
    Fraction(1, 5**12): "0.000000004096", Fraction(1, 5**13): "1/1220703125", Fraction(123456, 1000): "123.456", Fraction(12, 7): "12/7",
    Fraction(1, 250): "0.004", Fraction(99, 2): "49.5", Fraction(-1, 2): "-0.5", Fraction(1001, 1000): "1.001", Fraction(1): "1",
}  # fmt: skip


@pytest.mark.parametrize("value", list(TEXTS))
def test_texts(value: Fraction) -> None:
    assert text_of_fraction(value) == TEXTS[value]


def test_texts_of_delta_and_of_losses() -> None:
    assert text_of_delta(Fraction(1, 10**6)) == "1e-06"
    assert text_of_delta(Fraction(1, 3 * 10**6)) == "1/3000000"
    assert text_of_delta(Fraction(0)) == "0"
    assert text_of_loss(Fraction(1, 3), Fraction(0)) == "ε = 1/3"
    assert text_of_loss(Fraction(1, 3), Fraction(1, 10**6)) == "(ε = 1/3, δ = 1e-06)"


def test_variance_at_the_ends() -> None:
    assert 0 < noise_variance(Fraction(1, 700)) < 1e-300
    assert noise_variance(Fraction(1, 701)) == 0.0
    assert noise_variance(Fraction(1)) == pytest.approx(2 * math.exp(-1) / (1 - math.exp(-1)) ** 2, rel=1e-14)
    assert noise_variance(Fraction(10**6)) == pytest.approx(2e12, rel=1e-9)
