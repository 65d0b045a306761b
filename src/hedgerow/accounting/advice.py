"""What a refusal advises. Whoever does as it says is not refused again: tests take the advice and try it."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.accounting.loss import LEAST_DELTA
from hedgerow.accounting.meaning import SUGGESTED_DELTA
from hedgerow.formatting import amount, at_most

USED_UP = "It is used up."
NO_DELTA = "leave delta out"


def payable(left: Fraction, left_delta: Fraction, delta: Fraction, total_delta: Fraction) -> str:
    """The most that can be asked for where so much is left; delta: what was requested, total_delta: what there was in the beginning."""
    if left <= 0:
        return USED_UP
    most = f"Ask for at most ε = {at_most(left)}"
    if not delta:
        return f"{most}."
    if left_delta < LEAST_DELTA:
        why = "the δ is used up" if total_delta else "it was made without a δ"
        return f"{most} and no δ ({NO_DELTA}): {why}, and it pays for pure ε alone."
    return f"{most} and δ = {at_most(min(delta, left_delta))}."


def delta_left(left: Fraction) -> str:
    """How many more requests with a δ a budget pays for. Each has a δ of its own, and they add up; scores and counts have none."""
    usual, less = Fraction(SUGGESTED_DELTA), Fraction(SUGGESTED_DELTA) / 10
    if left < less:
        return (
            "its δ is used up: from now on it pays for pure ε alone"
            if left <= 0
            else f"its δ pays for requests of δ = {at_most(left)} in all"
        )
    smaller = f"{_many(left // less)} at δ = {amount(less)}, with about a tenth more noise"
    if left < usual:
        return f"its δ pays for {smaller}"
    return f"its δ pays for {_many(left // usual)} at δ = {amount(usual)}" + (f", or {smaller}" if left < 3 * usual else "")


def _many(fits: int) -> str:
    return f"{fits:,} {'fit' if fits == 1 else 'fits'}"
