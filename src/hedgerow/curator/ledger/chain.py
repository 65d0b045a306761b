"""The hash chain: entries of the ledger as plain data, each sealed with a hash over itself and the one before it.

An amount is text, exactly as `text_of_fraction` writes it; a hash is SHA-256 over one canonical JSON text. So the same history has the
same hashes in every database, and anybody can check an exported ledger with a few lines of any language.

Reservations and ceilings say what their ε is counted in. Entries from before they did have no unit, and their hashes cover none.
People, tokens, datasets, grants and answers are in tables of their own: each change of one is an entry with the digest of its row
(records.py), so that the chain covers them too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.units import Unit

RESERVE, OPEN, SETTLE, RELEASE, CEILING, CLOSE, UNIT = "reserve", "open", "settle", "release", "ceiling", "close", "unit"
PERSON, TOKEN, REVOKE, REGISTER, GRANT, WITHDRAW, ANSWER = "person", "token", "revoke", "register", "grant", "withdraw", "answer"
KEY, ACCEPT = "key", "accept"  # the service's public key; an owner's word that a chain which misses heads is to be gone on with
NOTHING_YET = "0" * 64  # what the first entry has before it


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger, as it is stored. Ceilings and closings have no key; a ceiling of the whole dataset has no analyst.

    unit: of a reservation, a ceiling or what an owner states, as text
    digest: of a row in another table, as it was then; an entry about people alone has an empty dataset
    """

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
    hash: str = ""
    unit: str | None = None
    digest: str | None = None

    def sealed(self) -> LedgerEntry:
        return replace(self, hash=hash_of(self))


LATER = ("unit", "digest")  # fields that the first entries did not have: their hashes stay as they were
FIELDS = tuple(field.name for field in fields(LedgerEntry))


def hash_of(entry: LedgerEntry) -> str:
    """SHA-256 over all fields but the hash itself: JSON in UTF-8, keys sorted, no blanks, no floats.

    A unit or digest that is null is left out.
    """
    content = {name: value for name, value in asdict(entry).items() if name != "hash" and (value is not None or name not in LATER)}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def amount_of(text: str | None) -> Fraction:
    """An amount from its text; ValueError if it is not written as this package writes it."""
    if not isinstance(text, str) or len(text) > 4000 or set(text) - set("0123456789./"):
        raise ValueError("an amount is not a plain fraction")
    try:
        amount = Fraction(text)
    except ZeroDivisionError:
        raise ValueError("an amount is not a plain fraction") from None
    if text_of_fraction(amount) != text:
        raise ValueError("an amount is not written in its shortest form")
    return amount


def unit_of(text: str | None) -> Unit | None:
    """A unit from its text; ValueError if it is not written as this package writes it."""
    return None if text is None else Unit.read(text)


@dataclass(frozen=True)
class Head:
    """The end of the chain. Written down elsewhere, it proves later that nothing before it was changed or cut off."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True)
class Reserved:
    """One reservation, as its entries tell it. state: reserved, open, settled or released."""

    key: str
    seq: int
    when: str
    dataset: str
    analyst: str
    purpose: str
    what: str
    epsilon: Fraction
    delta: Fraction
    state: str = "reserved"
    opened: bool = False
    spent: Fraction | None = None
    unit: Unit | None = None

    @property
    def ended(self) -> bool:
        return self.state in ("settled", "released")

    @property
    def cost(self) -> Fraction:
        """The ε that it has cost so far: all of it until it settles."""
        return self.epsilon if self.spent is None else self.spent

    def after(self, entry: LedgerEntry) -> Reserved:
        if entry.kind == OPEN:
            return replace(self, state="open", opened=True)
        if entry.kind == SETTLE:
            return replace(self, state="settled", spent=amount_of(entry.epsilon))
        return replace(self, state="released", spent=Fraction(0))


def reserved_by(entry: LedgerEntry) -> Reserved:
    """What a `reserve` entry says; ValueError where it does not say all of it."""
    if entry.key is None or entry.analyst is None or entry.purpose is None:
        raise ValueError("a reservation lacks its key, analyst or purpose")
    epsilon, delta = amount_of(entry.epsilon), amount_of(entry.delta)
    who, unit = (entry.dataset, entry.analyst, entry.purpose), unit_of(entry.unit)
    return Reserved(entry.key, entry.seq, entry.when, *who, entry.what, epsilon, delta, unit=unit)


def reservations_in(entries: Iterable[LedgerEntry]) -> dict[str, Reserved]:
    """The reservations that entries tell of, by key, in the order in which they were made."""
    found: dict[str, Reserved] = {}
    for entry in entries:
        if entry.kind == RESERVE:
            reserved = reserved_by(entry)
            found[reserved.key] = reserved
        elif entry.kind in (OPEN, SETTLE, RELEASE) and entry.key in found:
            found[entry.key] = found[entry.key].after(entry)
    return found
