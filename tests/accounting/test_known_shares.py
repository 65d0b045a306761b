"""The ε against an owner who knows its share of the noise, against exact values of the law of what is left."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest

from hedgerow.accounting import known_shares
from hedgerow.accounting.known_shares import epsilon_without_one


def law(r: Fraction, q: Fraction, largest: int, terms: int) -> list[tuple[Fraction, Fraction]]:
    """P(n)/(1 - q)^(2r) for n = 0, …, largest as exact bounds: so many terms of Σ_j a_j a_(j+n) q^(2j+n), and the rest."""
    a = [Fraction(1)]
    for j in range(terms + largest):
        a.append(a[-1] * (r + j) / (j + 1))
    found = []
    for n in range(largest + 1):
        low = sum((a[j] * a[j + n] * q ** (2 * j + n) for j in range(terms)), Fraction(0))
        found.append((low, low + a[terms] * a[terms + n] * q ** (2 * terms + n) / (1 - q * q)))
    return found


SHAPES = [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(9, 10), Fraction(99, 100)]
RATIOS = [Fraction(1, 20), Fraction(1, 2), Fraction(4, 5), Fraction(19, 20)]


@pytest.mark.parametrize("r", SHAPES, ids=str)
@pytest.mark.parametrize("q", RATIOS, ids=str)
def test_the_ratio_of_neighbouring_probabilities_is_largest_at_zero(r: Fraction, q: Fraction) -> None:
    """Exactly, in fractions: P(n)/P(n+1) falls, and stays above 1/q: the theorem of M5."""
    found = law(r, q, 6, 40 if q < Fraction(9, 10) else 160)
    most = [above / below for (_, above), (below, _) in pairwise(found)]
    least = [below / above for (below, _), (_, above) in pairwise(found)]
    assert all(first > second for first, second in zip(least, most[1:], strict=False))
    assert all(each > 1 / q for each in least)
    assert most[0] <= 1 / (r * q) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("whole", [2, 3, 4, 10, 100])
@pytest.mark.parametrize("scale", [Fraction(1, 400), Fraction(1, 3), Fraction(2), Fraction(20), Fraction(50, 3)], ids=str)
def test_the_bound_is_above_the_exact_value_and_close_to_it(scale: Fraction, whole: int) -> None:
    """S·ln(P(0)/P(1)) from the two series, in decimals of 60 digits; the bound is rounded up to four digits."""
    with localcontext(prec=60):
        square = (Decimal(-2 * scale.denominator) / scale.numerator).exp()
        a, power, at_zero, at_one = Decimal(1), Decimal(1), Decimal(0), Decimal(0)
        for j in range(2000):
            after = a * ((j + 1) * whole - 1) / ((j + 1) * whole)
            at_zero, at_one = at_zero + a * a * power, at_one + a * after * power
            a, power = after, power * square
        exact = 12 * (Decimal(scale.denominator) / scale.numerator + (at_zero / at_one).ln())
        found = epsilon_without_one(12 / scale, Fraction(12), whole)
        bound = Decimal(found.numerator) / found.denominator
        assert exact <= bound <= exact * Decimal("1.0011")


def test_more_owners_leave_more_noise_and_never_less_than_epsilon() -> None:
    found = [epsilon_without_one(Fraction(1, 2), Fraction(10), whole) for whole in (2, 3, 4, 10, 100)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > Fraction(1, 2)
    for whole, each in zip((2, 3, 4, 10, 100), found, strict=True):
        assert float(each) < 0.5 + 10 * math.log(whole / (whole - 1))


def test_wide_noise_and_hardly_any() -> None:
    """Beyond the largest scale that is followed the bound of that scale holds; where there is hardly any noise, ε + S·ln(1/r)."""
    wide = known_shares._log_excess(Fraction(2**40), 3)
    assert wide == known_shares._log_excess(Fraction(known_shares.LARGEST_SCALE), 3) < known_shares._log_excess(Fraction(100), 3)
    assert float(known_shares._log_excess(Fraction(1, 1000), 3)) == pytest.approx(math.log(1.5))
    with pytest.raises(ValueError, match="two shares or more"):
        epsilon_without_one(Fraction(1), Fraction(1), 1)
