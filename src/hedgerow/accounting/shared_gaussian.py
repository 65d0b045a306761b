"""Discrete Gaussian noise in shares: how near their sum is to one draw, and what it costs. The theorem is M6 of mechanisms/PROOF.md.

A sum of discrete Gaussians is not one exactly. At the noise that counts get the difference is far below a billionth; a plan pays for a
billionth beforehand, and where that would not be enough nothing begins.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import epsilon_for, rho_for, rounded_up

DISTANCE = Fraction(1, 10**9)  # of the logarithms of probabilities, for all numbers that one person changes
MOST_BITS = 4096
SHOWN_DIGITS = 4


def shared_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The ρ of counts for (ε, δ), with room for the distance between a sum of shares and one draw.  [M6]"""
    return rho_for(epsilon - 2 * DISTANCE, delta * (1 - DISTANCE))


def counts_price(epsilon: Fraction, delta: Fraction) -> Price:
    """What counts that are added up are asked for: ε with Laplace noise, or with a δ its ρ with Gaussian noise."""
    return Rho(shared_rho(epsilon, delta)) if delta else epsilon


def near_one_draw(sigma_squared: Fraction, changed: Fraction | int, shares: int) -> bool:
    """Whether shares of σ²/shares add up to nearly one draw: 10·shares·d·e^(-π²σ²/shares) is at most the distance.  [M6]

    changed: d, how many numbers one person changes at most
    """
    each = math.floor(sigma_squared / shares)
    return each >= 1 and 10 * shares * changed <= DISTANCE * 2 ** min(14 * each, MOST_BITS)  # e^(-π² s) < 2^(-14 s)


def gaussian_epsilon_without_one(rho: Fraction, delta: Fraction, whole: int) -> Fraction:
    """The ε, at the same δ, where one share of `whole` is known, rounded up: (whole - 1)/whole of σ² is left.  [M6]"""
    if whole < 2:
        raise ValueError(f"gaussian_epsilon_without_one: expected two shares or more, got {whole}")
    return rounded_up(epsilon_for(rho * whole / (whole - 1), delta * (1 - DISTANCE)) + 2 * DISTANCE, SHOWN_DIGITS)
