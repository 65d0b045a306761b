"""Addresses, versions, and what is said when a database cannot be used."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from sqlalchemy.engine import make_url

from hedgerow.curator.ledger.chain import LedgerEntry
from hedgerow.curator.ledger.database import FILE, open_database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.errors import LedgerError


def test_a_folder_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(tmp_path / "new" / "folder"):
        path = tmp_path / "new" / "folder" / FILE
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    monkeypatch.chdir(tmp_path)
    with open_database("books.sqlite") as database:
        assert (tmp_path / "books.sqlite").is_file()
        monkeypatch.chdir(tmp_path / "new")
        Ledger(database).ceiling("patients", 1)
    assert Ledger.open(tmp_path / "books.sqlite").head().seq == 1
    os.link(tmp_path / "books.sqlite", tmp_path / "second.sqlite")
    with pytest.raises(LedgerError, match="hard link"):
        open_database(tmp_path / "second.sqlite")


def test_every_commit_is_on_disk(tmp_path: Path) -> None:
    with open_database(tmp_path) as database, database.reading() as connection:
        pragmas = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_newer_version_is_refused(address: str) -> None:
    with open_database(address) as database:
        with database.writing() as connection:
            connection.exec_driver_sql("UPDATE hedgerow_schema SET version = 9")
        with pytest.raises(LedgerError, match="version 9; this hedgerow knows version 3"):
            open_database(address)


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("my notes, which must not be lost " * 100)
    with pytest.raises(LedgerError, match="cannot be used"):
        open_database(tmp_path / "notes.db")
    assert (tmp_path / "notes.db").read_text().startswith("my notes")


def test_a_head_that_is_gone(ledger: Ledger) -> None:
    with ledger.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM ledger_head")
    with pytest.raises(LedgerError, match="head is missing"):
        ledger.reserve("patients", "ada", "research", "0.1")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cr%40t@127.0.0.1:1/books",
        "postgresql://ada@127.0.0.1:1/books?password=s3cr%40t",
        "postgresql://ada:s3cr@t@127.0.0.1:port/books",
        "mysql://ada:s3cr@t@127.0.0.1/books",
        "postgresql+nonsense://ada:s3cr@t@127.0.0.1/books",
        "://s3cr@t",
    ],
)
def test_a_password_is_never_shown(address: str) -> None:
    with pytest.raises(LedgerError) as caught:
        open_database(address)
    shown = str(caught.value) + repr(caught.value.__cause__)
    assert not any(secret in shown for secret in ("s3cr@t", "s3cr%40t", "s3cr"))


@pytest.mark.postgres
@pytest.mark.parametrize("new_address", ["postgres"], indirect=True)
def test_a_wrong_password(new_address: Callable[[], str]) -> None:
    given = make_url(new_address())
    with pytest.raises(LedgerError, match="password authentication failed") as caught:
        open_database(given.set(password="wr0ng").render_as_string(hide_password=False))
    assert "wr0ng" not in str(caught.value)
    with open_database(given.render_as_string(hide_password=False)) as database:
        assert str(given.password) not in database.name + repr(database) + repr(Ledger(database))


def test_a_ledger_that_is_locked_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.curator.ledger.database.PATIENCE", 0)
    ledger = Ledger.open(tmp_path)
    ledger.ceiling("patients", 1)
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ledger.reserve("patients", "ada", "research", "0.1")
    assert ledger.balance("patients").spent == 0  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    ledger.reserve("patients", "ada", "research", "0.1")


def test_older_books_get_their_indexes(address: str) -> None:
    names = {"ledger_entries_reserved", "curator_answers_paid_by"}
    for _ in range(2):
        with open_database(address) as database, database.writing() as connection:
            found = sql.inspect(connection)
            assert names <= {str(index["name"]) for table in ("ledger_entries", "curator_answers") for index in found.get_indexes(table)}
            for name in names:
                connection.exec_driver_sql(f"DROP INDEX {name}")


def test_an_event_loop_does_not_wait_for_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.curator.ledger.database.PATIENCE", 0.1)

    async def read() -> int:
        return ledger.head().seq

    def hold() -> None:
        while True:
            held.enter_context(database.reading())

    with open_database(tmp_path) as database, ExitStack() as held:
        ledger = Ledger(database)
        with pytest.raises(LedgerError, match="cannot be used"):
            hold()
        assert asyncio.run(read()) == 0


def test_the_last_reservations_are_read_alone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        reserved = ledger.reserve("patients", "ada" if number % 3 else "bob", "research", "0.01")
        ledger.release(reserved.key)
    rows, real = [], LedgerTables.entries

    def counted(*given: Any, **more: Any) -> Iterator[LedgerEntry]:
        for entry in real(*given, **more):
            rows.append(entry)
            yield entry

    monkeypatch.setattr(LedgerTables, "entries", counted)
    assert ledger.last_reservations("patients", None, 5) == ledger.reservations("patients")[:-6:-1]
    assert ledger.last_reservations("patients", "bob", 5) == ledger.reservations("patients", "bob")[:-6:-1]
    assert ledger.last_reservations("others", None, 5) == []
    rows.clear()
    ledger.last_reservations("patients", "bob", 5)
    assert len(rows) == 10  # each is reserved and released
    if ledger.database.embedded:
        with ledger.database.reading() as connection:
            wanted = "FROM ledger_entries WHERE dataset = ? AND kind = 'reserve' ORDER BY seq DESC LIMIT 5"
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT key {wanted}", ("patients",)).all()
        assert "ledger_entries_reserved" in str(plan)
        assert "B-TREE" not in str(plan)  # nothing is sorted
