"""A ledger that is only read: nothing is made, changed or left beside it, and what is no ledger is refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hedgerow.curator.ledger.database import FILE, open_database, read_database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import LedgerError


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_database(tmp_path / "a folder; 100% ?mode=rw") as database:
        Ledger(database).ceiling("patients", 1)
        Ledger(database).reserve("patients", "ada", "research", "0.1")
    return tmp_path / "a folder; 100% ?mode=rw"


def test_nothing_is_changed_or_left(folder: Path) -> None:
    before = contents(folder)
    with read_database(folder) as database:
        assert (Ledger(database).verify().sound, database.file) == (True, folder / FILE)
        with pytest.raises(LedgerError, match="readonly"):
            Ledger(database).ceiling("patients", 2)
    assert contents(folder) == before


def test_what_may_not_be_written_is_read(folder: Path, tmp_path: Path) -> None:
    """A backup, in a folder and of a mode that allow nothing more. (The account of a test may be allowed everything.)"""
    place = tmp_path / "backups"
    place.mkdir()
    shutil.copy(folder / FILE, place / "backup.sqlite")
    os.chmod(place / "backup.sqlite", 0o400)
    os.chmod(place, 0o500)
    try:
        with read_database(place / "backup.sqlite") as database:
            assert Ledger(database).verify().sound
        assert [path.name for path in place.iterdir()] == ["backup.sqlite"]
    finally:
        os.chmod(place, 0o700)


def test_what_a_service_writes_meanwhile_is_seen(folder: Path) -> None:
    with open_database(folder) as served, read_database(folder) as database:
        before = Ledger(database).head().seq
        Ledger(served).ceiling("patients", 2)
        assert Ledger(database).head().seq == before + 1
        assert Ledger(database).verify().sound


def _empty(path: Path) -> None:
    path.touch()


def _text(path: Path) -> None:
    path.write_text("my notes " * 1000)


def _other(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()


@pytest.mark.parametrize("make", [_empty, _text, _other])
def test_what_is_no_ledger_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / FILE)
    before = contents(tmp_path)
    for address in (tmp_path, tmp_path / FILE):
        with pytest.raises(LedgerError, match=r"is no ledger|not a database"):
            read_database(address)
    assert contents(tmp_path) == before
    with pytest.raises(LedgerError, match=r"is no ledger|not a database"):
        open_database(tmp_path, make=False)


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for address in (tmp_path / "none", tmp_path, tmp_path / "none.sqlite"):
        with pytest.raises(LedgerError, match="there is none"):
            read_database(address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
@pytest.mark.parametrize("new_address", ["postgres"], indirect=True)
def test_a_server_without_tables(address: str) -> None:
    with pytest.raises(LedgerError, match="is no ledger"):
        read_database(address)
    with open_database(address) as database:
        Ledger(database).ceiling("patients", 1)
    with read_database(address) as database:
        assert Ledger(database).verify().entries == 1
