"""A price in ρ: an exact fraction above 0, and its shares."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from hedgerow.accounting.prices import Rho
from hedgerow.errors import PlanError


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1, 2), 0.5, 1, "1/2", None])
def test_what_is_no_fraction_above_0_is_refused(value: Any) -> None:
    with pytest.raises(PlanError, match="rho: got"):
        Rho(value)


def test_shares_and_parts_are_exact() -> None:
    third = Fraction(1, 3)
    assert Rho(third).value == third
    assert Rho(third) * Fraction(3, 10) == Rho(Fraction(1, 10))
    assert Rho(third) / 4 == Rho(Fraction(1, 12))
