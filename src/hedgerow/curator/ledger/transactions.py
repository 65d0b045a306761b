"""Exclusive transactions: changes beside the ledger wait for each other as its own steps do, and a ledger step can join one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sql

from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.ledger_tables import LedgerTables


@contextmanager
def exclusive_transaction(database: Database, connection: sql.Connection | None = None) -> Iterator[sql.Connection]:
    """A transaction that waits for all other writers, so that what it has read stays true; or the given one, which is under way."""
    if connection is not None:
        yield connection
        return
    with database.writing() as own:
        LedgerTables(own, lock=True)  # every writer begins with this lock, so no two can wait for each other
        yield own


class JoinedTransaction(Database):
    """A database that runs everything in one open transaction: `Ledger(JoinedTransaction(database, connection))` writes within it.

    Nothing is on disk until that transaction has ended, and an error must end it: nothing here is undone by itself.
    """

    def __init__(self, database: Database, connection: sql.Connection) -> None:
        self.name, self.embedded = database.name, database.embedded
        self._connection = connection

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        yield self._connection

    def close(self) -> None:
        """Whoever began the transaction ends it."""


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(when: datetime) -> str:
    """A time as the ledger writes it. Such texts compare as the times do."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
