"""Verification of a ledger: everything is computed again from the entries only, by rules that are written here a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from hedgerow.curator.ledger.balances import DATASET, Account, Balance, account_of, accounts_of
from hedgerow.curator.ledger.chain import (
    ACCEPT,
    ANSWER,
    CEILING,
    CLOSE,
    KEY,
    NOTHING_YET,
    OPEN,
    RELEASE,
    RESERVE,
    SETTLE,
    UNIT,
    Head,
    LedgerEntry,
    Reserved,
    amount_of,
    hash_of,
    reserved_by,
    unit_of,
)
from hedgerow.curator.ledger.guards import missing_guards
from hedgerow.curator.ledger.heads import Heads
from hedgerow.curator.ledger.heads_verification import KnownHeads
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.records import CHANGES, TABLES, Record, record_of, record_problems
from hedgerow.curator.ledger.sql_tables import requests
from hedgerow.errors import LedgerError


@dataclass(frozen=True)
class Problem:
    """What is wrong; seq: the first entry that shows it, None where it is in no entry."""

    seq: int | None
    why: str

    def __str__(self) -> str:
        return self.why if self.seq is None else f"entry {self.seq}: {self.why}"


@dataclass(frozen=True)
class Verification:
    """What was found. A ledger that is sound has no problems.

    head: the last entry that could be followed
    unguarded: triggers that are missing: nothing is wrong yet, but an accident would not be stopped
    heads: how many lines of the file of heads were compared; None where there was no such file
    by_itself: problems of the database alone, whatever the file of heads says
    """

    entries: int
    head: Head
    problems: tuple[Problem, ...]
    unguarded: tuple[str, ...] = ()
    heads: int | None = None
    by_itself: tuple[Problem, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        first = f"sound: {self.entries} entries, head {self.head}" if self.sound else "not sound:"
        missing = [f"unguarded: the triggers {', '.join(self.unguarded)} are missing"] if self.unguarded else []
        return "\n".join([first, *(f"  {problem}" for problem in self.problems), *missing])


def verification_of(tables: LedgerTables, expected_head: str | None, heads: Heads | None = None, newest: int | None = None) -> Verification:
    """Walk the chain up to the first entry that does not follow; compare what is kept beside it, and the file of heads if one is given.

    newest: how many signatures of that file are checked, counted from its end; None: all
    """
    replay, known = Replay(), KnownHeads(heads)
    last, expected = Head(0, NOTHING_YET), _Expected(expected_head)
    problems: list[Problem] = []
    for entry in tables.entries():
        why = _link(entry, last) or replay.step(entry)
        if why is not None:
            problems = [Problem(min(entry.seq, last.seq + 1), why)]
            break
        last = Head(entry.seq, entry.hash)
        expected.see(last)
        known.see(last)
    problems = problems or list(_kept(tables, last, replay))
    outside = [Problem(seq, why) for seq, why in known.problems(last, replay.keys, tables.noted, newest)]
    found = (*problems, *outside, *expected.problems(last))
    return Verification(last.seq, last, found, missing_guards(tables.connection), known.compared, tuple(problems))


def _link(entry: LedgerEntry, last: Head) -> str | None:
    if entry.seq != last.seq + 1:
        return f"is missing: after {last.seq} comes {entry.seq}"
    try:
        unaltered = hash_of(entry) == entry.hash
    except (TypeError, ValueError):  # SQLite holds bytes in any column
        unaltered = False
    if not unaltered:
        return "was altered: its content does not have its hash"
    if entry.previous != last.hash:
        return "does not follow from the entry before it: one of them was replaced, moved or inserted"
    return None


def _kept(tables: LedgerTables, last: Head, replay: Replay) -> Iterator[Problem]:
    """The head, the balances and the rows of other tables beside the entries."""
    if tables.head != last:
        yield Problem(last.seq + 1, f"is missing or was added by hand: the entries end at {last.seq}, the head is {tables.head}")
    try:
        kept = tables.balances()
    except LedgerError as error:
        yield Problem(None, str(error))
        return
    for why in record_problems(tables.connection, replay.records, replay.without_digest):
        yield Problem(None, why)
    for account in sorted(kept.keys() | replay.balances.keys(), key=str):
        found, right = kept.get(account), replay.balances.get(account)
        if found != right:
            words = (found or right or Balance(*account)).words
            yield Problem(None, f"the balance of {words} is not what its entries add up to")


class _Expected:
    """A head that was written down: a hash, or number and hash."""

    def __init__(self, text: str | None) -> None:
        number, _, self.hash = (text or "").strip().lower().rpartition(":")
        if text is not None and (len(self.hash) != 64 or set(self.hash) - set("0123456789abcdef") or (number and not number.isdigit())):
            raise LedgerError(f"expected_head: got {text!r:.100}; expected a head as `hedgerow ledger show` prints it, such as 12:3b1f….")
        self.given, self.number = text is not None, int(number) if number else None
        self.found = self.hash == NOTHING_YET

    def see(self, head: Head) -> None:
        self.found = self.found or (head.hash == self.hash and self.number in (None, head.seq))

    def problems(self, last: Head) -> Iterator[Problem]:
        if self.given and not self.found:
            seq = last.seq + 1 if self.number is None or self.number > last.seq else self.number
            yield Problem(seq, "the head that was written down is not in it: its end is missing (an older copy?) or was written anew")


class Replay:
    """The history so far: balances, reservations, digests of rows in other tables, and keys of the service, from entries only."""

    def __init__(self) -> None:
        self.records: dict[Record, str] = {}
        self.without_digest: set[Record] = set()  # requests of the first reservations, when entries did not have their digests
        self.digests_began = False
        self.keys: list[str] = []
        self.balances: dict[Account, Balance] = {}
        self.reservations: dict[str, Reserved] = {}

    def step(self, entry: LedgerEntry) -> str | None:
        """Take one entry; why it could not have been written, if it could not."""
        try:
            steps = {RESERVE: self._reserve, OPEN: self._go_on, SETTLE: self._go_on, RELEASE: self._go_on}
            steps |= {CEILING: self._ceiling, CLOSE: self._close, UNIT: self._unit, KEY: self._key, ACCEPT: self._accept}
            steps |= dict.fromkeys(TABLES, self._record)
            if entry.kind not in steps:
                raise ValueError(f"has an unknown kind {entry.kind!r}")
            steps[entry.kind](entry)
        except (ValueError, TypeError) as error:
            return f"is impossible: {error}"
        return None

    def _whole(self, dataset: str) -> Balance:
        return self.balances.get((dataset, DATASET, ""), Balance(dataset, DATASET, ""))

    def _record(self, entry: LedgerEntry) -> None:
        named = record_of(entry)
        if (named in self.records) != (entry.kind in CHANGES):
            raise ValueError(f"what it is about {'existed already' if named in self.records else 'was never made'}")
        if entry.digest is None or len(entry.digest) != 64:
            raise ValueError("it has no digest")
        if entry.kind == ANSWER:
            reserved = self.reservations.get(entry.key or "")
            if reserved is None or not reserved.opened or (entry.analyst, entry.dataset) != (reserved.analyst, reserved.dataset):
                raise ValueError("nothing of this person has paid for the answer")
        self.records[named] = entry.digest

    def _key(self, entry: LedgerEntry) -> None:
        self.keys.append(entry.what)

    def _accept(self, entry: LedgerEntry) -> None:
        if not entry.what:
            raise ValueError("it does not say why")

    def _check_open(self, dataset: str) -> None:
        if self._whole(dataset).epsilon is None:
            raise ValueError(f"dataset {dataset!r} had no ceiling")
        if self._whole(dataset).closed:
            raise ValueError(f"dataset {dataset!r} was closed")

    def _ceiling(self, entry: LedgerEntry) -> None:
        account = account_of(entry.dataset, entry.analyst, entry.purpose)
        if account[1] != DATASET or self._whole(entry.dataset).closed:
            self._check_open(entry.dataset)
        balance = self.balances.get(account, Balance(*account))
        self.balances[account] = replace(balance, epsilon=amount_of(entry.epsilon), delta=amount_of(entry.delta))
        self._count_in_one_unit(entry)

    def _count_in_one_unit(self, entry: LedgerEntry) -> None:
        """The first unit is that of the dataset, and all after it are the same. None is for entries from before there were units."""
        unit, whole = unit_of(entry.unit), self._whole(entry.dataset)
        if whole.unit is not None and unit != whole.unit:
            raise ValueError(f"dataset {entry.dataset!r} is counted in another unit")
        if unit is not None and whole.unknown_unit():
            raise ValueError("nobody had stated what earlier ones were counted in")
        self.balances[whole.account] = replace(whole, unit=unit)

    def _unit(self, entry: LedgerEntry) -> None:
        self._check_open(entry.dataset)
        unit, whole = unit_of(entry.unit), self._whole(entry.dataset)
        if unit is None or whole.unit is not None:
            raise ValueError("a unit that was known is stated, or none is")
        self.balances[whole.account] = replace(whole, unit=unit)

    def _close(self, entry: LedgerEntry) -> None:
        self._check_open(entry.dataset)
        self.balances[entry.dataset, DATASET, ""] = replace(self._whole(entry.dataset), closed=True)

    def _reserve(self, entry: LedgerEntry) -> None:
        self._check_open(entry.dataset)
        reserved = reserved_by(entry)
        if reserved.key in self.reservations:
            raise ValueError(f"reservation {reserved.key!r} existed already")
        if reserved.epsilon <= 0:
            raise ValueError("nothing was reserved")
        self._count_in_one_unit(entry)
        self._request(entry, (requests.name, reserved.key))
        self._book(reserved, reserved.epsilon, reserved.delta)
        for account in accounts_of(reserved.dataset, reserved.analyst, reserved.purpose):
            if self.balances[account].overspent():
                raise ValueError(f"the ceiling of {self.balances[account].words} did not allow it")
        self.reservations[reserved.key] = reserved

    def _request(self, entry: LedgerEntry, named: Record) -> None:
        self.digests_began = self.digests_began or entry.digest is not None
        if entry.digest is not None:
            self.records[named] = entry.digest
        elif not self.digests_began:
            self.without_digest.add(named)

    def _go_on(self, entry: LedgerEntry) -> None:
        reserved = self.reservations.get(entry.key or "")
        if reserved is None or reserved.ended:
            raise ValueError(f"reservation {entry.key!r} was {'never made' if reserved is None else reserved.state + ' already'}")
        if (entry.dataset, entry.analyst, entry.purpose) != (reserved.dataset, reserved.analyst, reserved.purpose):
            raise ValueError(f"reservation {entry.key!r} was of somebody else")
        after = reserved.after(entry)
        if entry.kind == OPEN:
            self._check_open(entry.dataset)
            if reserved.opened:
                raise ValueError(f"reservation {entry.key!r} was open already")
        else:
            self._give_back(reserved, after, amount_of(entry.delta))
        self.reservations[reserved.key] = after

    def _give_back(self, reserved: Reserved, after: Reserved, delta: Fraction) -> None:
        settled = after.state == "settled"
        if delta != (reserved.delta if settled else 0) or not 0 <= after.cost <= reserved.epsilon:
            raise ValueError("it does not give back what may be given back")
        if settled and reserved.delta and after.cost != reserved.epsilon:
            raise ValueError("it gives back ε of a reservation with a δ")
        if settled and after.cost and not reserved.opened:
            raise ValueError("it was spent and never opened")
        if not settled and reserved.opened:
            raise ValueError("it was released after it was opened")
        self._book(reserved, after.cost - reserved.epsilon, delta - reserved.delta)

    def _book(self, reserved: Reserved, epsilon: Fraction, delta: Fraction) -> None:
        for account in accounts_of(reserved.dataset, reserved.analyst, reserved.purpose):
            self.balances[account] = self.balances.get(account, Balance(*account)).plus(epsilon, delta)
