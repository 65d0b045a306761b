"""Responses of a service to its owner, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hedgerow.accounting.units import Unit
from hedgerow.remote.responses import Loss, amount, unit_of


@dataclass(frozen=True)
class Balance:
    """What was spent of a dataset: by all, by an analyst, for a purpose. None where it has no ceiling of its own."""

    scope: str
    name: str
    epsilon: Fraction | None
    delta: Fraction | None
    spent: Fraction
    spent_delta: Fraction
    remaining: Fraction | None
    remaining_delta: Fraction | None

    @classmethod
    def read(cls, found: Any) -> Balance:
        ceiling, remaining = ((_amount(found[a]), _amount(found[b])) for a, b in (("epsilon", "delta"), ("remaining", "remaining_delta")))
        spent = amount(found["spent"]), amount(found["spent_delta"])
        return cls(str(found["scope"]), str(found["name"]), *ceiling, *spent, *remaining)


def _amount(text: str | None) -> Fraction | None:
    return None if text is None else amount(text)


@dataclass(frozen=True)
class OwnedDataset:
    """place: where its rows are, for its owner alone; unit: what all its accounts are counted in, None until the first ceiling."""

    name: str
    place: dict[str, Any]
    closed: bool
    balances: tuple[Balance, ...]
    unit: Unit | None

    @classmethod
    def read(cls, found: Any) -> OwnedDataset:
        balances = tuple(map(Balance.read, found["balances"]))
        return cls(str(found["name"]), dict(found["place"]), bool(found["closed"]), balances, unit_of(found["unit"]))


@dataclass(frozen=True)
class Person:
    """role: owner or analyst."""

    name: str
    role: str

    @classmethod
    def read(cls, found: Any) -> Person:
        return cls(str(found["name"]), str(found["role"]))


@dataclass(frozen=True)
class Token:
    """text: the token itself, only where it was made just now, and in no repr."""

    id: str
    person: str
    made: str
    expires: str
    revoked: str | None
    text: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, found: Any) -> Token:
        texts = {name: str(found[name]) for name in ("id", "person", "made", "expires")}
        return cls(**texts, revoked=found["revoked"], text=found.get("token"))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger, as it is stored: amounts as exact text."""

    seq: int
    when: str
    kind: str
    key: str | None
    dataset: str
    analyst: str | None
    purpose: str | None
    what: str
    epsilon: str | None
    delta: str | None
    previous: str
    hash: str
    unit: str | None
    digest: str | None = None

    @classmethod
    def read(cls, found: Any) -> Entry:
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name != "digest"}, digest=found.get("digest"))


@dataclass(frozen=True)
class Unsettled:
    """A reservation that neither settled nor was given back."""

    id: str
    when: str
    dataset: str
    analyst: str
    purpose: str
    what: str
    cost: Loss
    opened: bool
    under_way: bool

    @classmethod
    def read(cls, found: Any) -> Unsettled:
        texts = {name: str(found[name]) for name in ("id", "when", "dataset", "analyst", "purpose", "what")}
        return cls(**texts, cost=Loss.read(found), opened=bool(found["opened"]), under_way=bool(found["under_way"]))


@dataclass(frozen=True)
class LostRequest:
    """A request that was paid for and has no answer. settled: by an older version."""

    id: str
    when: str
    dataset: str
    analyst: str
    purpose: str
    what: str
    reason: str
    cost: Loss
    settled: bool

    @classmethod
    def read(cls, found: Any) -> LostRequest:
        texts = {name: str(found[name]) for name in ("id", "when", "dataset", "analyst", "purpose", "what", "reason")}
        return cls(**texts, cost=Loss.read(found), settled=bool(found["settled"]))


@dataclass(frozen=True)
class Verification:
    """head: the end of the chain; written down elsewhere, it proves later that nothing before it was changed."""

    sound: bool
    entries: int
    head: str
    problems: tuple[str, ...]

    @classmethod
    def read(cls, found: Any) -> Verification:
        return cls(bool(found["sound"]), int(found["entries"]), str(found["head"]), tuple(map(str, found["problems"])))
