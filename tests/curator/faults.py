"""Databases that cannot be written for a while: full, read-only, or away. The errors are those of the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql

from hedgerow.curator.ledger.database import Database


@contextmanager
def full(database: Database) -> Iterator[None]:
    """No page more: what is small may still be written, as on a disk that is almost full."""
    with _pragmas(database, "PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823"):  # it is never less than what there is
        yield


@contextmanager
def read_only(database: Database) -> Iterator[None]:
    with _pragmas(database, "PRAGMA query_only = ON", "PRAGMA query_only = OFF"):
        yield


@contextmanager
def _pragmas(database: Database, fault: str, normal: str) -> Iterator[None]:
    """For every connection that is taken meanwhile, and undone for all afterwards."""
    assert database.embedded

    def broken(connection: Any, *_: Any) -> None:
        connection.execute(fault)

    def whole(connection: Any, *_: Any) -> None:
        connection.execute(normal)

    sql.event.listen(database._engine, "checkout", broken)
    try:
        yield
    finally:
        sql.event.remove(database._engine, "checkout", broken)
        sql.event.listen(database._engine, "checkout", whole)
