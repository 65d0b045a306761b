"""The sum of shares of discrete Gaussian noise against one draw: the law of the sum exactly, by convolution, and what it costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hedgerow.accounting.shared_gaussian import DISTANCE, gaussian_epsilon_without_one, near_one_draw, shared_rho
from hedgerow.accounting.zcdp import epsilon_for, rho_for
from hedgerow.errors import PlanError

DELTA = Fraction(1, 10**6)


def law(sigma_squared: float, edge: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-edge, edge + 1).astype(float) ** 2) / (2 * sigma_squared))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("shares", [2, 3, 10])
@pytest.mark.parametrize("each", [0.3, 0.5, 1.0])
def test_the_distance_of_the_sum_from_one_draw_is_what_m6_says(shares: int, each: float) -> None:
    """At shares so small that it can be seen: |ln| of the ratio is at most 5 (n - 1) e^(-π² s), and is not nothing."""
    edge = 40
    total = one = law(each, edge)
    for _ in range(shares - 1):
        total = np.convolve(total, one)
    middle = slice(len(total) // 2 - 6, len(total) // 2 + 7)
    found = np.abs(np.log(total[middle] / law(each * shares, len(total) // 2)[middle])).max()
    bound = 5 * (shares - 1) * np.exp(-(np.pi**2) * each)
    assert found <= bound
    if each < 1:
        assert found > 1e-4


def test_the_price_leaves_room_for_the_distance() -> None:
    rho = shared_rho(Fraction(1), DELTA)
    assert rho < rho_for(Fraction(1), DELTA)
    assert rho > rho_for(Fraction(1), DELTA) * Fraction(999_999, 1_000_000)
    assert epsilon_for(rho, DELTA * (1 - DISTANCE)) <= 1 - 2 * DISTANCE + Fraction(1, 10**9)
    with pytest.raises(PlanError, match="epsilon"):
        shared_rho(Fraction(1, 10**9), DELTA)


@pytest.mark.parametrize(("sigma_squared", "changed", "shares", "near"), [
    (400, 10, 10, True), (40, 10, 10, True), (20, 10, 10, False), (3, 1, 2, False), (1, 1, 2, False), (2**90, 10**6, 100, True),
])  # fmt: skip
def test_how_much_noise_shares_need(sigma_squared: Fraction, changed: int, shares: int, near: bool) -> None:
    assert near_one_draw(Fraction(sigma_squared), changed, shares) == near
    if near and sigma_squared < 2**20:
        assert 5 * (shares - 1) * changed * np.exp(-(np.pi**2) * float(sigma_squared) / shares) < float(DISTANCE) / 2


def test_who_knows_one_share_sees_the_rest() -> None:
    rho = shared_rho(Fraction(1), DELTA)
    found = [gaussian_epsilon_without_one(rho, DELTA, whole) for whole in (2, 3, 10, 100)]
    assert found == sorted(found, reverse=True)
    assert 1 < found[-1] < found[0] < 2
    assert found[1] >= epsilon_for(rho * Fraction(3, 2), DELTA)
    with pytest.raises(ValueError, match="two shares or more"):
        gaussian_epsilon_without_one(rho, DELTA, 1)
