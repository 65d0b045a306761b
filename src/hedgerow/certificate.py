"""What a release claims about privacy, in words and exact numbers that travel with it."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import msgspec

from hedgerow.accounting.events import LOCAL_SENSITIVITY, Event
from hedgerow.accounting.loss import text_of_fraction

NEIGHBOURS = "add or remove one row"
UNREVIEWED = "domains were read from private data"
NOT_PROVEN = "splits were chosen with local sensitivity, for which the stated ε is not proven"
TEST_COINS = "noise came from seeded test coins that anyone can replay"


class EventRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A charged event; see `accounting/events.py` for the meaning of each field."""

    verb: str
    mechanism: str
    epsilon: str
    queries: int
    sensitivity: str
    scale: str

    @classmethod
    def of(cls, event: Event) -> EventRecord:
        return cls(
            event.verb,
            event.mechanism,
            text_of_fraction(event.epsilon),
            event.queries,
            text_of_fraction(event.sensitivity),
            text_of_fraction(event.scale),
        )


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The guarantee of a release.

    guarantee:   "epsilon-DP", or "none" with the reason why
    epsilon:     the exact loss, as text ("0.3", "1/3"): what the request might have charged at most; None where no ε is claimed
    neighbours:  the relation under which it holds
    unit:        what one neighbour differs in
    events:      every charged look at the rows; their ε add up to `epsilon`, or to less where a run ended early
    assumptions: what the owner states and nobody checked
    """

    guarantee: Literal["epsilon-DP", "none"]
    epsilon: str | None
    reason: str
    neighbours: str
    unit: str
    events: list[EventRecord]
    assumptions: list[str]
    sampler: str

    @property
    def spent(self) -> Fraction:
        return sum((Fraction(event.epsilon) for event in self.events), Fraction(0))

    def sentence(self) -> str:
        """The guarantee in one line."""
        if self.guarantee == "none":
            return f"no privacy guarantee: {self.reason}"
        return f"ε = {self.epsilon} differential privacy, neighbours: {self.neighbours}"


def private_certificate(
    events: tuple[Event, ...],
    public_rows: int | None,
    unreviewed: tuple[str, ...],
    sampler: str,
    secret: bool,
    requested: Fraction,
    no_guarantee: str | None = None,
) -> Certificate:
    """The certificate of a private run: ε is what was asked for, the bound for every way the run could have gone.

    A run that ended early charged less; its events say what, and the rest went back to the budget.
    """
    assert sum((event.epsilon for event in events), Fraction(0)) <= requested
    problems = [] if no_guarantee is None else [no_guarantee]
    if unreviewed:
        problems.append(f"{UNREVIEWED} and not reviewed: {', '.join(unreviewed)}")
    if not secret:
        problems.append(TEST_COINS)
    if any(event.mechanism == LOCAL_SENSITIVITY for event in events):
        problems.append(NOT_PROVEN)
    assumptions = ["the schema holds public facts only: domains, bounds and classes were not read from the private rows"]
    if unreviewed:
        assumptions = []
    if public_rows is not None:
        assumptions.append(f"the number of rows, {public_rows}, is public (declared by the owner, not checked)")
    assumptions.append("each person has at most one row in the table")
    return Certificate(
        guarantee="none" if problems else "epsilon-DP",
        epsilon=None if problems else text_of_fraction(requested),
        reason="; ".join(problems) if problems else "every look at the rows was noised and charged before it was made",
        neighbours=NEIGHBOURS,
        unit="one row",
        events=[EventRecord.of(event) for event in events],
        assumptions=assumptions,
        sampler=sampler,
    )


def no_certificate(reason: str) -> Certificate:
    """For non-private baselines: exact counts, nothing claimed."""
    return Certificate("none", None, reason, NEIGHBOURS, "one row", [], [], "none")
