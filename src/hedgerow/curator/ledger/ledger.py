"""The ledger: who may spend how much of which dataset, and what was spent; entries are added and never changed.

    reserve  →  opened, before the rows are looked at  →  settle
        └────→  release, only if they never were

A dataset is counted in one unit, rows or persons: that of its registered schema, or else of the first request. Others are refused.
Each step is one transaction that waits for all others, so that no interleaving spends more than a ceiling. What was reserved and did not
settle stays spent: after a crash nobody knows what was seen.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

import sqlalchemy as sql

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.accounting.units import ROW, Unit, checked_unit
from hedgerow.curator.ledger import database as tables
from hedgerow.curator.ledger.balances import DATASET, Balance, account_of, accounts_of, check_room, check_unit_of
from hedgerow.curator.ledger.chain import CEILING, CLOSE, OPEN, RELEASE, RESERVE, SETTLE, UNIT, Head, LedgerEntry, Reserved, reservations_in
from hedgerow.curator.ledger.checks import amount_from_zero, checked_name, checked_text
from hedgerow.curator.ledger.database import Database, open_database
from hedgerow.curator.ledger.export import exported
from hedgerow.curator.ledger.tables import Books
from hedgerow.curator.ledger.verification import Verification, verification_of
from hedgerow.errors import LedgerError

PAGE = 1000  # entries that are read at once


class Ledger:
    """The ledger in a database. Threads may share one; other processes open the same address."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, address: str | os.PathLike[str]) -> Ledger:
        """The ledger in a folder, a file or at postgresql://…; a new one if there is none."""
        return cls(open_database(address))

    # ------------------------------------------------------------ the owner

    def ceiling(
        self, dataset: str, epsilon: Any, delta: Any = 0, *, analyst: str | None = None, purpose: str | None = None, what: str = ""
    ) -> LedgerEntry:
        """Set how much may be spent: on a dataset by all, or by one analyst, or for one purpose.

        It may be raised and lowered later. Below what is spent already, everything further is refused. With δ = 0 it pays for pure ε alone.
        """
        for name, of in ((dataset, "dataset"), (analyst, "analyst"), (purpose, "purpose")):
            if name is not None or of == DATASET:
                checked_name(name or "", of)
        if analyst is not None and purpose is not None:
            raise LedgerError("ceiling: got an analyst and a purpose; expected one of them, or none for the whole dataset. Set two.")
        amount, chance, text = amount_from_zero(epsilon, "epsilon"), exact_delta(delta), checked_text(what, "what")
        account = account_of(dataset, analyst, purpose)
        with self._step() as books:
            found = books.accounts({(dataset, DATASET, ""): 0, account: 0})
            whole = found[dataset, DATASET, ""]
            _refuse_closed(whole)
            if whole.epsilon is None and account != whole.account:
                _no_ceiling(dataset)
            unit = books.registered_unit(dataset) if whole.unit is None and not whole.unknown_unit() else whole.unit
            entry = books.append(
                CEILING, dataset, analyst=analyst, purpose=purpose, what=text, epsilon=amount, delta=chance, unit=unit
            )
            found[account] = replace(found[account], epsilon=amount, delta=chance)
            found[whole.account] = replace(found[whole.account], unit=unit)
            books.store(found.values())
        return entry

    def state_unit(self, dataset: str, unit: Unit, what: str = "") -> LedgerEntry:
        """The owner says what was counted on a dataset so far, where the ledger is older than units. Said once, it stays."""
        stated, text = checked_unit(unit), checked_text(what, "what")
        checked_text(str(stated), "unit")
        with self._step() as books:
            (whole,) = books.accounts([(checked_name(dataset, "dataset"), DATASET, "")]).values()
            if whole.epsilon is None:
                _no_ceiling(dataset)
            _refuse_closed(whole)
            if whole.unit is not None:
                raise LedgerError(f"dataset {dataset!r} is for {whole.unit.words}; a unit that is known stays. Nothing was changed.")
            registered = books.registered_unit(dataset)
            if registered is not None and registered != stated:
                raise LedgerError(
                    f"dataset {dataset!r}: got {stated.words}; its registered schema counts {registered.words}. Nothing was changed. If "
                    "something else was spent on it, close it, and register the table under another name for what is left."
                )
            entry = books.append(UNIT, dataset, what=text, unit=stated)
            books.store([replace(whole, unit=stated)])
        return entry

    def close(self, dataset: str, what: str = "") -> LedgerEntry:
        """End it: nothing more is reserved or opened. What is under way may still settle or be released, which only gives back."""
        checked_name(dataset, "dataset")
        with self._step() as books:
            (whole,) = books.accounts([(dataset, DATASET, "")]).values()
            if whole.epsilon is None:
                _no_ceiling(dataset)
            _refuse_closed(whole)
            entry = books.append(CLOSE, dataset, what=checked_text(what, "what"))
            books.store([replace(whole, closed=True)])
        return entry

    # ------------------------------------------------------------ a request

    def reserve(
        self, dataset: str, analyst: str, purpose: str, epsilon: Any, delta: Any = 0, what: str = "a request", key: str | None = None,
        unit: Unit = ROW,
    ) -> Reserved:  # fmt: skip
        """Take (ε, δ) from the dataset, the analyst and the purpose at once, or refuse and take nothing. unit: what it is counted in."""
        amount, chance, counted = exact_epsilon(epsilon), exact_delta(delta), checked_unit(unit)
        checked_text(str(counted), "unit")
        for name, of in ((dataset, "dataset"), (analyst, "analyst"), (purpose, "purpose")):
            checked_name(name, of)
        own = uuid.uuid4().hex if key is None else checked_name(key, "key")
        text = checked_text(what, "what")
        with self._step() as books:
            found = books.accounts(accounts_of(dataset, analyst, purpose))
            whole = next(iter(found.values()))
            if whole.epsilon is None:
                _no_ceiling(dataset)
            _refuse_closed(whole)
            if key is not None and books.reserved(own) is not None:
                raise LedgerError(f"reservation {own!r} exists already; expected a key that was never used. Nothing was spent.")
            check_unit_of(whole, books.registered_unit(dataset) if whole.unit is None else None, counted, text)
            check_room(found.values(), amount, chance, text)
            entry = books.append(
                RESERVE, dataset, key=own, analyst=analyst, purpose=purpose, what=text, epsilon=amount, delta=chance, unit=counted
            )
            found[whole.account] = replace(whole, unit=counted)
            books.store(balance.plus(amount, chance) for balance in found.values())
        return Reserved(own, entry.seq, entry.when, dataset, analyst, purpose, text, amount, chance, unit=counted)

    def opened(self, key: str) -> Reserved:
        """Write down that the rows are about to be looked at; when this returns it is on disk. Refused if the dataset was closed."""
        with self._step() as books:
            reserved = _going(books, key, "opened")
            if reserved.opened:
                return reserved
            (whole,) = books.accounts([(reserved.dataset, DATASET, "")]).values()
            _refuse_closed(whole)
            return reserved.after(_about(books, OPEN, reserved))

    def settle(self, key: str, spent: Any = None) -> Reserved:
        """The request has ended well and has cost `spent` (None: all of it); the rest is given back. With δ above 0 nothing is."""
        with self._step() as books:
            reserved = _going(books, key, "settled")
            cost = reserved.epsilon if spent is None else amount_from_zero(spent, "spent")
            if cost > reserved.epsilon or (reserved.delta and cost != reserved.epsilon):
                raise LedgerError(
                    f"reservation {key!r}: got spent ε = {text_of_fraction(cost)}; expected "
                    + ("" if reserved.delta else "at most ")
                    + f"what was reserved, {text_of_fraction(reserved.epsilon)}"
                    + (", since with a δ nothing is given back." if reserved.delta else ".")
                )
            if cost and not reserved.opened:
                raise LedgerError(
                    f"reservation {key!r} has spent something and was never opened; expected `opened` before the rows are looked at."
                )
            entry = _about(books, SETTLE, reserved, cost, reserved.delta)
            _book(books, reserved, cost - reserved.epsilon, Fraction(0))
            return reserved.after(entry)

    def release(self, key: str) -> Reserved:
        """Give back all of it: only where the rows were never looked at."""
        with self._step() as books:
            reserved = _going(books, key, "released")
            if reserved.opened:
                raise LedgerError(f"reservation {key!r} was opened: its rows may have been looked at, so it is not released. Settle it.")
            entry = _about(books, RELEASE, reserved, Fraction(0), Fraction(0))
            _book(books, reserved, -reserved.epsilon, -reserved.delta)
            return reserved.after(entry)

    # ------------------------------------------------------------ questions

    def balance(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Balance:
        """The account of a dataset, or of one analyst or one purpose on it."""
        account = account_of(dataset, analyst, purpose)
        with self.database.reading() as connection:
            return Books(connection).accounts([account])[account]

    def balances(self, dataset: str | None = None) -> list[Balance]:
        """All accounts, or those of a dataset."""
        with self.database.reading() as connection:
            return list(Books(connection).balances(*([] if dataset is None else [tables.balances.c.dataset == dataset])).values())

    def accounts(self, dataset: str, analyst: str, *purposes: str) -> list[Balance]:
        """The accounts that a request is booked on: of the dataset, of the analyst, and of the purpose, or of each of some."""
        wanted = dict.fromkeys(account for purpose in purposes for account in accounts_of(dataset, analyst, purpose))
        with self.database.reading() as connection:
            return list(Books(connection).accounts(wanted or [(dataset, DATASET, "")]).values())

    def reservation(self, key: str) -> Reserved:
        with self.database.reading() as connection:
            return _known(Books(connection), key)

    def reservations(self, dataset: str, analyst: str | None = None, purpose: str | None = None) -> list[Reserved]:
        """What was reserved on a dataset, in order; of one analyst and for one purpose if they are given."""
        wanted = {"dataset": dataset, "analyst": analyst, "purpose": purpose}
        conditions = [tables.entries.c[name] == value for name, value in wanted.items() if value is not None]
        with self.database.reading() as connection:
            return list(reservations_in(Books(connection).entries(tables.entries.c.key.is_not(None), *conditions)).values())

    def last_reservations(self, dataset: str, analyst: str | None, most: int, before: int = 2**62) -> list[Reserved]:
        """The newest ones before an entry, newest first; of one analyst if one is given. No others are read."""
        columns = tables.entries.c
        chosen = [columns.dataset == dataset, tables.RESERVES, columns.seq < before]
        chosen += [] if analyst is None else [columns.analyst == analyst]
        with self.database.reading() as connection:
            keys = connection.execute(sql.select(columns.key).where(*chosen).order_by(columns.seq.desc()).limit(most)).scalars().all()
            return list(reservations_in(Books(connection).entries(columns.key.in_(keys))).values())[::-1]

    def unsettled(self) -> list[Reserved]:
        """Reservations that neither settled nor were released: under way now, or spent by a crash. To be told at every start."""
        other = tables.entries.alias()
        ended = sql.exists().where(other.c.key == tables.entries.c.key, other.c.kind.in_((SETTLE, RELEASE)))
        with self.database.reading() as connection:
            return list(reservations_in(Books(connection).entries(tables.entries.c.key.is_not(None), ~ended)).values())

    def head(self) -> Head:
        """The number and hash of the last entry. Write it down elsewhere: `verify` then finds a tail that was cut off."""
        with self.database.reading() as connection:
            return Books(connection).head

    def entries(self, after: int = 0) -> Iterator[LedgerEntry]:
        """All entries that there are now, in order, a page at a time: whoever reads slowly keeps nobody waiting."""
        last = self.head().seq
        while after < last:
            with self.database.reading() as connection:
                page = list(Books(connection).entries(tables.entries.c.seq > after, tables.entries.c.seq <= last, most=PAGE))
            yield from page
            after = page[-1].seq if page else last

    def verify(self, expected_head: str | Head | None = None) -> Verification:
        """Read everything again: the chain, the balances, and whether each step was possible when it was made."""
        with self.database.reading() as connection:
            return verification_of(Books(connection), None if expected_head is None else str(expected_head))

    def export(self, format: str = "csv") -> Iterator[str]:
        """All entries as CSV or JSON, in pieces of text."""
        return exported(self.entries(), format)

    @contextmanager
    def _step(self) -> Iterator[Books]:
        with self.database.writing() as connection:
            yield Books(connection, lock=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database.name!r})"


def _known(books: Books, key: str) -> Reserved:
    reserved = books.reserved(checked_name(key, "key"))
    if reserved is None:
        raise LedgerError(f"reservation {key!r} is not in the ledger; expected the key that `reserve` gave.")
    return reserved


def _going(books: Books, key: str, step: str) -> Reserved:
    reserved = _known(books, key)
    if reserved.ended:
        raise LedgerError(f"reservation {key!r} cannot be {step}: it is {reserved.state} already. Nothing was changed.")
    return reserved


def _about(books: Books, kind: str, reserved: Reserved, epsilon: Fraction | None = None, delta: Fraction | None = None) -> LedgerEntry:
    analyst, purpose, what = reserved.analyst, reserved.purpose, reserved.what
    return books.append(kind, reserved.dataset, key=reserved.key, analyst=analyst, purpose=purpose, what=what, epsilon=epsilon, delta=delta)


def _book(books: Books, reserved: Reserved, epsilon: Fraction, delta: Fraction) -> None:
    found = books.accounts(accounts_of(reserved.dataset, reserved.analyst, reserved.purpose))
    books.store(balance.plus(epsilon, delta) for balance in found.values())


def _refuse_closed(whole: Balance) -> None:
    if whole.closed:
        raise LedgerError(f"dataset {whole.dataset!r} is closed: its owner has ended the connection. Nothing was spent.")


def _no_ceiling(dataset: str) -> NoReturn:
    raise LedgerError(f"dataset {dataset!r} has no ceiling in this ledger; expected its owner to set one first. Nothing was spent.")
