"""The privacy ledger: ceilings of ε and δ for datasets, analysts and purposes, and what was spent. Entries are only appended.

    reserve  →  opened, before the rows are read  →  settle
        └────→  release, only if they never were

A dataset is counted in one unit, rows or persons: that of its registered schema, or else of the first request. Others are refused.
Each step is one transaction that waits for all others, so that no interleaving spends more than a ceiling. What was reserved and did not
settle stays spent: after a crash nobody knows what was seen.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

import sqlalchemy as sql

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.accounting.units import ROW, Unit, checked_unit
from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.balances import DATASET, Balance, account_of, accounts_of, check_room, check_unit_of
from hedgerow.curator.ledger.chain import CEILING, CLOSE, OPEN, RELEASE, RESERVE, SETTLE, UNIT, Head, LedgerEntry, Reserved, reservations_in
from hedgerow.curator.ledger.checks import amount_from_zero, checked_name, checked_text
from hedgerow.curator.ledger.database import Database, open_database
from hedgerow.curator.ledger.export import exported
from hedgerow.curator.ledger.heads import Heads
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.paid_requests import IdempotencyKey, remember, request_row
from hedgerow.curator.ledger.records import digest_of
from hedgerow.curator.ledger.verification import Verification, verification_of
from hedgerow.errors import LedgerError

PAGE = 1000  # entries that are read at once
TAKEN_OVER = "another service has taken over this ledger: this one has lost its lock, and takes no more work."


class Ledger:
    """The ledger in a database. Threads may share one; other processes open the same address."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._number: int | None = None  # of the service that it is; None: of none

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
        amount, amount_delta, text = amount_from_zero(epsilon, "epsilon"), exact_delta(delta), checked_text(what, "what")
        account = account_of(dataset, analyst, purpose)
        with self._step() as tables:
            found = tables.accounts({(dataset, DATASET, ""): 0, account: 0})
            whole = found[dataset, DATASET, ""]
            _check_open(whole)
            if whole.epsilon is None and account != whole.account:
                _refuse_without_ceiling(dataset)
            unit = tables.registered_unit(dataset) if whole.unit is None and not whole.unknown_unit() else whole.unit
            entry = tables.append(
                CEILING, dataset, analyst=analyst, purpose=purpose, what=text, epsilon=amount, delta=amount_delta, unit=unit
            )
            found[account] = replace(found[account], epsilon=amount, delta=amount_delta)
            found[whole.account] = replace(found[whole.account], unit=unit)
            tables.store(found.values())
        return entry

    def state_unit(self, dataset: str, unit: Unit, what: str = "") -> LedgerEntry:
        """The owner says what was counted on a dataset so far, where the ledger is older than units. Said once, it stays."""
        stated, text = checked_unit(unit), checked_text(what, "what")
        checked_text(str(stated), "unit")
        with self._step() as tables:
            (whole,) = tables.accounts([(checked_name(dataset, "dataset"), DATASET, "")]).values()
            if whole.epsilon is None:
                _refuse_without_ceiling(dataset)
            _check_open(whole)
            if whole.unit is not None:
                raise LedgerError(f"dataset {dataset!r} is for {whole.unit.words}; a unit that is known stays. Nothing was changed.")
            registered = tables.registered_unit(dataset)
            if registered is not None and registered != stated:
                raise LedgerError(
                    f"dataset {dataset!r}: got {stated.words}; its registered schema counts {registered.words}. Nothing was changed. If "
                    "something else was spent on it, close it, and register the table under another name for what is left."
                )
            entry = tables.append(UNIT, dataset, what=text, unit=stated)
            tables.store([replace(whole, unit=stated)])
        return entry

    def close(self, dataset: str, what: str = "") -> LedgerEntry:
        """End it: nothing more is reserved or opened. What is under way may still settle or be released, which only gives back."""
        checked_name(dataset, "dataset")
        with self._step() as tables:
            (whole,) = tables.accounts([(dataset, DATASET, "")]).values()
            if whole.epsilon is None:
                _refuse_without_ceiling(dataset)
            _check_open(whole)
            entry = tables.append(CLOSE, dataset, what=checked_text(what, "what"))
            tables.store([replace(whole, closed=True)])
        return entry

    # ------------------------------------------------------------ a request

    def reserve(
        self, dataset: str, analyst: str, purpose: str, epsilon: Any, delta: Any = 0, what: str = "a request", key: str | None = None,
        unit: Unit = ROW, request: IdempotencyKey | None = None,
    ) -> Reserved:  # fmt: skip
        """Take (ε, δ) from the dataset, the analyst and the purpose at once, or refuse and take nothing. unit: what it is counted in.

        request: what it is for, as the analyst calls it. It is written in the same transaction.
        """
        amount, amount_delta, counted = exact_epsilon(epsilon), exact_delta(delta), checked_unit(unit)
        checked_text(str(counted), "unit")
        for name, of in ((dataset, "dataset"), (analyst, "analyst"), (purpose, "purpose")):
            checked_name(name, of)
        own = uuid.uuid4().hex if key is None else checked_name(key, "key")
        text, asked = checked_text(what, "what"), None if request is None else request.checked()
        with self._step() as tables:
            self._check_number(tables)
            found = tables.accounts(accounts_of(dataset, analyst, purpose))
            whole = next(iter(found.values()))
            if whole.epsilon is None:
                _refuse_without_ceiling(dataset)
            _check_open(whole)
            if key is not None and tables.reservation(own) is not None:
                raise LedgerError(f"reservation {own!r} exists already; expected a key that was never used. Nothing was spent.")
            check_unit_of(whole, tables.registered_unit(dataset) if whole.unit is None else None, counted, text)
            check_room(found.values(), amount, amount_delta, text)
            row = None if asked is None else request_row(own, tables.head.seq + 1, analyst, asked)
            entry = tables.append(
                RESERVE, dataset, key=own, analyst=analyst, purpose=purpose, what=text, epsilon=amount, delta=amount_delta, unit=counted,
                digest=None if row is None else digest_of(row),
            )  # fmt: skip
            found[whole.account] = replace(whole, unit=counted)
            tables.store(balance.plus(amount, amount_delta) for balance in found.values())
            if row is not None:
                remember(tables.connection, row)
        return Reserved(own, entry.seq, entry.when, dataset, analyst, purpose, text, amount, amount_delta, unit=counted)

    def opened(self, key: str) -> Reserved:
        """Write down that the rows are about to be looked at; when this returns it is on disk. Refused if the dataset was closed."""
        with self._step() as tables:
            reserved = _unsettled(tables, key, "opened")
            if reserved.opened:
                return reserved
            (whole,) = tables.accounts([(reserved.dataset, DATASET, "")]).values()
            _check_open(whole)
            return reserved.after(_append(tables, OPEN, reserved))

    def settle(self, key: str, spent: Any = None) -> Reserved:
        """The request has ended well and has cost `spent` (None: all of it); the rest is given back. With δ above 0 nothing is."""
        with self._step() as tables:
            reserved = _unsettled(tables, key, "settled")
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
            entry = _append(tables, SETTLE, reserved, cost, reserved.delta)
            _add_to_balances(tables, reserved, cost - reserved.epsilon, Fraction(0))
            return reserved.after(entry)

    def release(self, key: str) -> Reserved:
        """Give back all of it: only where the rows were never looked at."""
        with self._step() as tables:
            reserved = _unsettled(tables, key, "released")
            if reserved.opened:
                raise LedgerError(f"reservation {key!r} was opened: its rows may have been looked at, so it is not released. Settle it.")
            return _released(tables, reserved)

    def release_if_unopened(self, key: str) -> Reserved | None:
        """The same where it may be; None where it was opened, or has ended already."""
        with self._step() as tables:
            reserved = _existing(tables, key)
            return None if reserved.opened or reserved.ended else _released(tables, reserved)

    def release_unopened(self) -> list[Reserved]:
        """Give back whatever was reserved and never opened: it is on disk before any look, so nothing was looked at.

        For the start of a service. A program that holds such a reservation now finds it released when it opens it, and looks at nothing.
        """
        found = [self.release_if_unopened(reserved.key) for reserved in self.unsettled() if not reserved.opened]
        return [reserved for reserved in found if reserved is not None]

    # ------------------------------------------------------------ services

    def take_over(self) -> int:
        """Become the service of this ledger: what an earlier one would reserve from now on is refused."""
        with self._step() as tables:
            number = 1 + (tables.service_number() or 0)
            tables.store_service_number(number)
        self._number = number
        return number

    def in_charge(self) -> bool:
        """Whether no later service has taken over; also where this ledger is not a service's."""
        if self._number is None:
            return True
        with self.database.reading() as connection:
            return LedgerTables(connection).service_number() == self._number

    def _check_number(self, tables: LedgerTables) -> None:
        if self._number is not None and tables.service_number() != self._number:
            raise LedgerError(f"{TAKEN_OVER} Nothing was spent.")

    # ------------------------------------------------------------ reads

    def balance(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Balance:
        """The account of a dataset, or of one analyst or one purpose on it."""
        account = account_of(dataset, analyst, purpose)
        with self.database.reading() as connection:
            return LedgerTables(connection).accounts([account])[account]

    def balances(self, dataset: str | None = None) -> list[Balance]:
        """All accounts, or those of a dataset."""
        with self.database.reading() as connection:
            chosen = [] if dataset is None else [sql_tables.balances.c.dataset == dataset]
            return list(LedgerTables(connection).balances(*chosen).values())

    def accounts(self, dataset: str, analyst: str, *purposes: str) -> list[Balance]:
        """The accounts that a request is booked on: of the dataset, of the analyst, and of the purpose, or of each of some."""
        wanted = dict.fromkeys(account for purpose in purposes for account in accounts_of(dataset, analyst, purpose))
        with self.database.reading() as connection:
            return list(LedgerTables(connection).accounts(wanted or [(dataset, DATASET, "")]).values())

    def reservation(self, key: str) -> Reserved:
        with self.database.reading() as connection:
            return _existing(LedgerTables(connection), key)

    def reservations(self, dataset: str, analyst: str | None = None, purpose: str | None = None) -> list[Reserved]:
        """What was reserved on a dataset, in order; of one analyst and for one purpose if they are given."""
        wanted = {"dataset": dataset, "analyst": analyst, "purpose": purpose}
        conditions = [sql_tables.entries.c[name] == value for name, value in wanted.items() if value is not None]
        with self.database.reading() as connection:
            return list(reservations_in(LedgerTables(connection).entries(sql_tables.entries.c.key.is_not(None), *conditions)).values())

    def reservations_of(self, keys: Sequence[str]) -> list[Reserved]:
        """Those of these keys that there are."""
        with self.database.reading() as connection:
            return list(reservations_in(LedgerTables(connection).entries(sql_tables.entries.c.key.in_(keys))).values())

    def last_reservations(self, dataset: str, analyst: str | None, most: int, before: int = 2**62) -> list[Reserved]:
        """The newest ones before an entry, newest first; of one analyst if one is given. No others are read."""
        columns = sql_tables.entries.c
        chosen = [columns.dataset == dataset, sql_tables.RESERVES, columns.seq < before]
        chosen += [] if analyst is None else [columns.analyst == analyst]
        with self.database.reading() as connection:
            keys = connection.execute(sql.select(columns.key).where(*chosen).order_by(columns.seq.desc()).limit(most)).scalars().all()
            return list(reservations_in(LedgerTables(connection).entries(columns.key.in_(keys))).values())[::-1]

    def unsettled(self) -> list[Reserved]:
        """Reservations that neither settled nor were released: under way now, or spent by a crash. Listed at every start."""
        other = sql_tables.entries.alias()
        ended = sql.exists().where(other.c.key == sql_tables.entries.c.key, other.c.kind.in_((SETTLE, RELEASE)))
        with self.database.reading() as connection:
            return list(reservations_in(LedgerTables(connection).entries(sql_tables.entries.c.key.is_not(None), ~ended)).values())

    def head(self) -> Head:
        """The number and hash of the last entry. Write it down elsewhere: `verify` then finds a tail that was cut off."""
        with self.database.reading() as connection:
            return LedgerTables(connection).head

    def entries(self, after: int = 0) -> Iterator[LedgerEntry]:
        """All entries that there are now, in order, a page at a time: whoever reads slowly keeps nobody waiting."""
        last = self.head().seq
        while after < last:
            with self.database.reading() as connection:
                page = list(LedgerTables(connection).entries(sql_tables.entries.c.seq > after, sql_tables.entries.c.seq <= last, most=PAGE))
            yield from page
            after = page[-1].seq if page else last

    def verify(self, expected_head: str | Head | None = None, heads: Heads | None = None, newest: int | None = None) -> Verification:
        """Read everything again: the chain, the balances, whether each step was possible when it was made, the rows of other tables.

        heads: a file of heads; without it, the one that belongs to the database. newest: how many of its signatures are checked.
        """
        with self.database.reading() as connection:
            head = None if expected_head is None else str(expected_head)
            return verification_of(LedgerTables(connection), head, heads or self.database.heads, newest)

    def export(self, format: str = "csv") -> Iterator[str]:
        """All entries as CSV or JSON, in pieces of text."""
        return exported(self.entries(), format)

    @contextmanager
    def _step(self) -> Iterator[LedgerTables]:
        with self.database.writing() as connection:
            yield LedgerTables(connection, lock=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database.name!r})"


def _existing(tables: LedgerTables, key: str) -> Reserved:
    reserved = tables.reservation(checked_name(key, "key"))
    if reserved is None:
        raise LedgerError(f"reservation {key!r} is not in the ledger; expected the key that `reserve` gave.")
    return reserved


def _unsettled(tables: LedgerTables, key: str, step: str) -> Reserved:
    reserved = _existing(tables, key)
    if reserved.ended:
        raise LedgerError(f"reservation {key!r} cannot be {step}: it is {reserved.state} already. Nothing was changed.")
    return reserved


def _append(
    tables: LedgerTables, kind: str, reserved: Reserved, epsilon: Fraction | None = None, delta: Fraction | None = None
) -> LedgerEntry:
    return tables.append(
        kind, reserved.dataset, key=reserved.key, analyst=reserved.analyst, purpose=reserved.purpose, what=reserved.what, epsilon=epsilon,
        delta=delta,
    )  # fmt: skip


def _released(tables: LedgerTables, reserved: Reserved) -> Reserved:
    entry = _append(tables, RELEASE, reserved, Fraction(0), Fraction(0))
    _add_to_balances(tables, reserved, -reserved.epsilon, -reserved.delta)
    return reserved.after(entry)


def _add_to_balances(tables: LedgerTables, reserved: Reserved, epsilon: Fraction, delta: Fraction) -> None:
    found = tables.accounts(accounts_of(reserved.dataset, reserved.analyst, reserved.purpose))
    tables.store(balance.plus(epsilon, delta) for balance in found.values())


def _check_open(whole: Balance) -> None:
    if whole.closed:
        raise LedgerError(f"dataset {whole.dataset!r} is closed: its owner has ended the connection. Nothing was spent.")


def _refuse_without_ceiling(dataset: str) -> NoReturn:
    raise LedgerError(f"dataset {dataset!r} has no ceiling in this ledger; expected its owner to set one first. Nothing was spent.")
