"""What owners who count together lose to those who know too many shares of the noise: the ε of the noise that is left, as an upper bound.

Labels [M5] refer to the theorem in mechanisms/PROOF.md. All but a first guess is whole numbers, each rounding on the safe side.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from hedgerow.accounting.zcdp import log_bounds, rounded_up

BITS = 96  # after the binary point
LARGEST_SCALE = 4096  # of the noise that is followed; at a larger one the bound is that of this one, which is above
SHOWN_DIGITS = 4


def epsilon_without_one(epsilon: Fraction, sensitivity: Fraction, whole: int) -> Fraction:
    """The ε of counts of that L1 sensitivity whose noise lacks one share of the `whole` that are a draw of scale sensitivity/ε, rounded up.

    With one share in all nothing would be left, and no ε holds.  [M5]

    >>> float(epsilon_without_one(Fraction(1, 2), Fraction(10), 3))
    2.467
    """
    if whole < 2:
        raise ValueError(f"epsilon_without_one: expected two shares or more, got {whole}")
    return rounded_up(epsilon + sensitivity * _log_excess(sensitivity / epsilon, whole), SHOWN_DIGITS)


@lru_cache(maxsize=1024)
def _log_excess(scale: Fraction, whole: int) -> Fraction:
    """An upper bound of ln x, where P(0)/P(1) = x/q for the noise that is left, q = e^(-1/scale).  [M5]"""
    scale = min(scale, Fraction(LARGEST_SCALE))
    one, steps = 1 << BITS, math.ceil(8 * scale) + 8
    square = _below_square(scale)
    # x_n = q·P(n)/P(n+1) is at most (n+1)/(n+r), r = (whole - 1)/whole, and gives x_(n-1); an upper bound gives an upper bound.
    x = -(-((steps + 1) * whole * one) // ((steps + 1) * whole - 1))
    for n in range(steps, 0, -1):
        x = -(-((one + square) * n * whole - square * (n * whole + 1) * one // x) // (n * whole - 1))
    return Fraction(log_bounds(Fraction(x, one), BITS)[1], one)


def _below_square(scale: Fraction) -> int:
    """A whole number at most 2^BITS · q² = 2^BITS · e^(-2/scale), nearly as large: a smaller q² makes x larger.  [M5]"""
    exponent = 2 / scale
    if exponent > 100:
        return 0
    guess = math.floor(Fraction(math.exp(-float(exponent))) * (1 - Fraction(1, 2**40)) * (1 << BITS))
    sure = guess > 0 and log_bounds(Fraction(guess, 1 << BITS), BITS)[1] <= -exponent * (1 << BITS)
    return guess if sure else 0
