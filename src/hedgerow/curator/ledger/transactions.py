"""Changes beside the ledger wait for each other as its own steps do, and a step of the ledger can be part of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sql

from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.tables import Books


@contextmanager
def alone(database: Database, connection: sql.Connection | None = None) -> Iterator[sql.Connection]:
    """One transaction that waits for all others, so that what it has looked up stays true; or the one that is under way."""
    if connection is not None:
        yield connection
        return
    with database.writing() as own:
        Books(own, lock=True)  # every writer begins with this lock, so no two can wait for each other
        yield own


class Joined(Database):
    """A transaction under way in the place of its database: `Ledger(Joined(database, connection))` writes within it.

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


def written(when: datetime) -> str:
    """A time as the ledger writes it. Such texts compare as the times do."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
