"""Reads and writes of the ledger's tables within one transaction. What may be written is decided in ledger.py."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sql

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.units import Unit
from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.balances import Account, Balance, said_balance
from hedgerow.curator.ledger.chain import Head, LedgerEntry, Reserved, amount_of, reservations_in, unit_of
from hedgerow.curator.ledger.database import APPENDED, BALANCES, HEADS
from hedgerow.curator.ledger.heads import Heads
from hedgerow.curator.ledger.sql_tables import datasets
from hedgerow.errors import LedgerError
from hedgerow.schema import toml as schema_toml

_FIND = sql.and_(
    sql_tables.balances.c.dataset == sql.bindparam("of_dataset"),
    sql_tables.balances.c.scope == sql.bindparam("of_scope"),
    sql_tables.balances.c.name == sql.bindparam("of_name"),
)
_UPDATE = sql_tables.balances.update().where(_FIND)
_HEAD = sql.select(sql_tables.head.c.seq, sql_tables.head.c.hash)
_BALANCES = sql.select(sql_tables.balances).order_by(sql_tables.balances.c.dataset, sql_tables.balances.c.scope, sql_tables.balances.c.name)

_ENTRIES_OF_KEY = sql.select(sql_tables.entries).where(sql_tables.entries.c.key == sql.bindparam("key")).order_by(sql_tables.entries.c.seq)


@cache
def _balances_of(number: int) -> sql.Select[Any]:
    """So many balances by their names. It is made once: to put a statement together takes longer than to run it."""
    columns = (sql_tables.balances.c.dataset, sql_tables.balances.c.scope, sql_tables.balances.c.name)
    each = [[column == sql.bindparam(f"{of}{account}") for of, column in zip("dsn", columns, strict=True)] for account in range(number)]
    return _BALANCES.where(sql.or_(*(sql.and_(*named) for named in each)))


class LedgerTables:
    """The tables, as one transaction sees them. With `lock` nobody else writes until it ends."""

    def __init__(self, connection: sql.Connection, lock: bool = False) -> None:
        self.connection = connection
        self._kept: int | None = None  # the number of the last head that is known to be kept
        if lock:
            # PostgreSQL: whoever comes second waits here and then sees what the first has written. SQLite has its lock already.
            self.head = self._read_head(_HEAD.with_for_update())
            self._check_heads()

    @cached_property
    def head(self) -> Head:
        return self._read_head(_HEAD)

    def _check_heads(self) -> None:
        """Whoever writes keeps the heads, where they are kept, and goes on only from one of them."""
        heads: Heads | None = self.connection.info.get(HEADS)
        if self.connection.info.get(APPENDED) is not None:
            return  # its own transaction has moved it
        if heads is not None and heads.keeping:
            self._kept = heads.check(self.head)
        elif self.noted:
            raise LedgerError(
                "ledger: its heads are kept in a file and signed with a key, and one of them is not here. Nothing was changed. Where the "
                "ledger is on a server, set HEDGEROW_CURATOR to the curator's folder; a copy is only read."
            )

    def _read_head(self, statement: sql.Select[Any]) -> Head:
        row = self.connection.execute(statement).one_or_none()
        if row is None:
            raise LedgerError("ledger: its head is missing. Restore the database from a backup; nothing was written.")
        return Head(row.seq, row.hash)

    @property
    def noted(self) -> int:
        """The number of the last head that is known to be in the file of heads; 0 where there was none."""
        return int(self.connection.execute(sql.select(sql_tables.head.c.noted)).scalar_one_or_none() or 0)

    def entries(self, *conditions: sql.ColumnElement[bool], most: int | None = None) -> Iterator[LedgerEntry]:
        statement = sql.select(sql_tables.entries).where(*conditions).order_by(sql_tables.entries.c.seq).limit(most)
        for row in self.connection.execute(statement, execution_options={"yield_per": 1000}):
            yield LedgerEntry(*row)

    def reservation(self, key: str) -> Reserved | None:
        """Its entries are few: they come in one answer of the database."""
        rows = self.connection.execute(_ENTRIES_OF_KEY, {"key": key})
        return reservations_in(LedgerEntry(*row) for row in rows).get(key)

    def balances(self, *conditions: sql.ColumnElement[bool]) -> dict[Account, Balance]:
        found = (_balance(row) for row in self.connection.execute(_BALANCES.where(*conditions)))
        return {balance.account: balance for balance in found}

    def accounts(self, accounts: Iterable[Account]) -> dict[Account, Balance]:
        """These accounts, in this order; those that there are not yet are empty and without a ceiling."""
        wanted = list(accounts)
        values = {f"{of}{number}": part for number, account in enumerate(wanted) for of, part in zip("dsn", account, strict=True)}
        rows = self.connection.execute(_balances_of(len(wanted)), values)
        found = {balance.account: balance for balance in map(_balance, rows)}
        self._stored = set(found)
        return {account: found.get(account, Balance(*account)) for account in wanted}

    def registered_unit(self, dataset: str) -> Unit | None:
        """What a dataset is counted in by its registered schema, which never changes; None if it is not registered."""
        statement = sql.select(datasets.c.schema).where(datasets.c.name == dataset)
        text = self.connection.execute(statement).scalar_one_or_none()
        return None if text is None else Unit.of(schema_toml.read(text, f"schema of {dataset!r}"))

    def service_number(self) -> int | None:
        """Of the service that was started last; None before the first."""
        return self.connection.execute(sql.select(sql_tables.service.c.number)).scalar_one_or_none()

    def store_service_number(self, number: int) -> None:
        table = sql_tables.service
        new = self.service_number() is None
        self.connection.execute(table.insert().values(id=1, number=number) if new else table.update().values(number=number))

    def append(
        self,
        kind: str,
        dataset: str,
        *,
        key: str | None = None,
        analyst: str | None = None,
        purpose: str | None = None,
        what: str = "",
        epsilon: Fraction | None = None,
        delta: Fraction | None = None,
        unit: Unit | None = None,
        digest: str | None = None,
    ) -> LedgerEntry:
        """Write the next entry and move the head."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        seq, previous = self.head.seq + 1, self.head.hash
        amounts = _text(epsilon), _text(delta)
        counted = None if unit is None else str(unit)
        entry = LedgerEntry(seq, when, kind, key, dataset, analyst, purpose, what, *amounts, previous, unit=counted, digest=digest).sealed()
        self.connection.execute(sql_tables.entries.insert(), asdict(entry))
        self.head = Head(seq, entry.hash)
        moved = {"seq": seq, "hash": entry.hash} | ({} if self._kept is None else {"noted": self._kept})
        self.connection.execute(sql_tables.head.update().values(**moved))
        self.connection.info[APPENDED] = self.head
        return entry

    def store(self, balances: Iterable[Balance]) -> None:
        """Keep the balances of accounts that `accounts` has given."""
        old, new = [], []
        for balance in balances:
            if balance.too_long():
                raise LedgerError(
                    f"ledger: the amounts on {balance.words} have too many digits to be added up exactly; expected short ones such as "
                    "0.5 or 1/3. Nothing was written."
                )
            row = _row(balance)
            self.connection.info.get(BALANCES, {})[balance.account] = said_balance(balance)
            if balance.account in self._stored:
                old.append(row | dict(zip(("of_dataset", "of_scope", "of_name"), balance.account, strict=True)))
            else:
                new.append(row | dict(zip(("dataset", "scope", "name"), balance.account, strict=True)))
        if old:
            self.connection.execute(_UPDATE, old)
        if new:
            self.connection.execute(sql_tables.balances.insert(), new)


def _row(balance: Balance) -> dict[str, str | bool | None]:
    return {
        "ceiling_epsilon": _text(balance.epsilon),
        "ceiling_delta": _text(balance.delta),
        "spent_epsilon": text_of_fraction(balance.spent),
        "spent_delta": text_of_fraction(balance.spent_delta),
        "closed": balance.closed,
        "unit": None if balance.unit is None else str(balance.unit),
    }


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else text_of_fraction(amount)


def _balance(row: sql.Row[Any]) -> Balance:
    try:
        epsilon, delta = (None if text is None else amount_of(text) for text in (row.ceiling_epsilon, row.ceiling_delta))
        spent, spent_delta, unit = amount_of(row.spent_epsilon), amount_of(row.spent_delta), unit_of(row.unit)
    except ValueError:
        raise LedgerError(
            f"ledger: the balance of {row.scope} {row.name!r} on dataset {row.dataset!r} is not a number, or its unit is none. Restore it "
            "from a backup."
        ) from None
    return Balance(row.dataset, row.scope, row.name, epsilon, delta, spent, spent_delta, row.closed, unit)
