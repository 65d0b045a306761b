"""Budget gauges: how much of a ceiling is spent, as a picture and in words that say the same."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hedgerow import formatting
from hedgerow.curator.http.request_context import RequestContext
from hedgerow.curator.ledger.balances import ANALYST, DATASET, Balance, tightest


@dataclass(frozen=True)
class Gauge:
    """spent, requested: in percent of the ceiling; requested follows spent."""

    spent: float
    requested: float
    words: str
    whose: str


def gauge_of(balance: Balance, you: str, requested: Fraction = Fraction(0)) -> Gauge | None:
    """None where there is no ceiling of its own."""
    if balance.epsilon is None or balance.delta is None:
        return None
    left = balance.remaining or Fraction(0)
    words = f"ε: {formatting.amount(balance.spent)} of {formatting.amount(balance.epsilon)} spent, {formatting.amount(left)} left"
    if balance.delta:
        left_delta = formatting.amount(balance.remaining_delta or Fraction(0))
        words += f"; δ: {formatting.amount(balance.spent_delta)} of {formatting.amount(balance.delta)} spent, {left_delta} left"
    if requested:
        words += f"; this request (hatched): {formatting.amount(requested)}"
    spent = _percent(balance.spent, balance.epsilon) if balance.epsilon else 100.0
    return Gauge(spent, min(_percent(requested, balance.epsilon), 100.0 - spent) if balance.epsilon else 0.0, words, _whose(balance, you))


def gauge_for(context: RequestContext, dataset: str, purpose: str, requested: Fraction = Fraction(0)) -> Gauge | None:
    """Of the ceiling that leaves the least ε for a request of this person and purpose."""
    accounts = context.accounts(dataset, purpose)
    return gauge_of(tightest(accounts)[0], context.person.name, requested) if accounts[0].epsilon is not None else None


def _percent(part: Fraction, whole: Fraction) -> float:
    return round(float(min(max(100 * part / whole, Fraction(0)), Fraction(100))), 2)


def _whose(balance: Balance, you: str) -> str:
    if balance.scope == DATASET:
        return "limit of the whole dataset, over everyone"
    if balance.scope == ANALYST:
        return "your own limit" if balance.name == you else f"limit of the analyst {balance.name}"
    return f"limit of the purpose {balance.name}, over everyone"
