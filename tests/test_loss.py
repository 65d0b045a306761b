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

from hedgerow.accounting.loss import exact_epsilon, noise_scale, noise_variance, text_of_fraction
from hedgerow.errors import PlanError


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
