"""Addresses, versions, and what is said when a database cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from hedgerow.curator.database import FILE, open_database
from hedgerow.curator.ledger import Ledger
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
        with pytest.raises(LedgerError, match="version 9; this hedgerow knows version 1"):
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
    monkeypatch.setattr("hedgerow.curator.database.PATIENCE", 0)
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
