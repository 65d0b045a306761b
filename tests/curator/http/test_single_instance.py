"""Only one service on a ledger that is elsewhere, whatever becomes of its connection."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from curator.http.serving import wait_until

from hedgerow.curator.http import single_instance as module
from hedgerow.curator.http.single_instance import single_instance
from hedgerow.curator.ledger.database import open_database
from hedgerow.errors import LedgerError

SCHEMA = "(SELECT oid::int FROM pg_namespace WHERE nspname = current_schema())"
HOLDERS = f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = {module._SERVES} AND objid::int = {SCHEMA}"
WAIT = f"SELECT pg_advisory_lock({module._SERVES}, {SCHEMA})"


def test_one_service_on_a_file_whatever_leads_to_it(tmp_path: Path) -> None:
    books, first, second, third = (tmp_path / name for name in ("books", "first", "second", "third"))
    for folder in (books, first, second, third):
        folder.mkdir()
    (third / "curator.sqlite").symlink_to(books / "curator.sqlite")
    with open_database(books) as database, single_instance(first, database):
        for folder, address in ((second, books), (second, books / "curator.sqlite"), (books, books), (third, third), (first, second)):
            with open_database(address) as other, pytest.raises(LedgerError, match="served already"), single_instance(folder, other):
                raise AssertionError("two services")
        with open_database(second) as other, single_instance(second, other):
            """Other books in another folder are nobody's business."""


@pytest.mark.postgres
@pytest.mark.parametrize("new_address", ["postgres"], indirect=True)
def test_a_lock_that_is_lost_is_taken_anew(new_address: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    address = new_address()
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    with (
        open_database(address) as database,
        open_database(address) as other,
        psycopg.connect(address, autocommit=True) as server,
        psycopg.connect(address, autocommit=True) as rival,
    ):

        def holders() -> list[int]:
            return [row[0] for row in server.execute(HOLDERS)]

        with single_instance(first, database):
            (before,) = holders()
            with pytest.raises(LedgerError, match="served already"), single_instance(second, other):
                raise AssertionError("two services")
            server.execute("SELECT pg_terminate_backend(%s)", [before])
            wait_until(lambda: holders() not in ([], [before]))
            with pytest.raises(LedgerError, match="served already"), single_instance(second, other):
                raise AssertionError("two services")

            told = threading.Event()
            monkeypatch.setattr(module.os, "kill", lambda _, number: told.set() if number == signal.SIGTERM else None)
            waiter = threading.Thread(target=rival.execute, args=(WAIT,))  # it stands in the queue, so it is next
            waiter.start()
            wait_until(lambda: bool(server.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchall()))
            server.execute("SELECT pg_terminate_backend(%s)", holders())
            assert told.wait(180)  # another has it now: the first one stops
            waiter.join(30)
        rival.execute("SELECT pg_advisory_unlock_all()")
        with single_instance(second, other):
            assert len(holders()) == 1
