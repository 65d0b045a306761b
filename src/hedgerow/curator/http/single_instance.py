"""Single instance: locks that keep a second service off the same ledger. Two would not know of each other's jobs, and could be paid
twice for one key.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sql

from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.ledger.database import Database
from hedgerow.errors import LedgerError

FILE, BESIDE = "serve.lock", ".lock"  # in the folder; with the name of a ledger that is a file
CHECK_SECONDS = 5.0  # between two checks that the lock is still held
PATIENCE = 5.0  # seconds in which a server finds out that a service was killed
_SERVES = 0x68656473
_LOCK = sql.text("SELECT pg_try_advisory_lock(:serves, (SELECT oid::int FROM pg_namespace WHERE nspname = current_schema()))")


@contextmanager
def single_instance(folder: Path, database: Database) -> Iterator[None]:
    """Lock the folder and the ledger, wherever it is; LedgerError where another service holds one. A crash releases both."""
    file = database.file
    ledger = _server_lock(database) if file is None else _file_lock(file.with_name(file.name + BESIDE), database.name)
    with _file_lock(folder / FILE, str(folder)), ledger:
        yield


def is_served(database: Database) -> bool | None:
    """Whether a service works on it now; None where the ledger is on a server, which is not asked."""
    if database.file is None:
        return None
    lock = database.file.with_name(database.file.name + BESIDE)
    if not lock.exists():
        return False
    try:
        import fcntl

        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except ModuleNotFoundError:
        return None
    except OSError:
        return True
    return False


@contextmanager
def _file_lock(path: Path, held: str) -> Iterator[None]:
    with path.open("a") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ModuleNotFoundError:  # no such locks here
            pass
        except OSError:
            raise LedgerError(f"{held!r} is served already by another process; expected to be the only one.") from None
        yield


@contextmanager
def _server_lock(database: Database) -> Iterator[None]:
    ended = threading.Event()
    with database.session() as connection:
        _take(connection, database.name)
        watch = threading.Thread(target=_watch, args=(connection, database.name, ended), daemon=True, name="hedgerow lock")
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join(PATIENCE)


def _take(connection: sql.Connection, name: str) -> None:
    end = time.monotonic() + PATIENCE
    while not connection.execute(_LOCK, {"serves": _SERVES}).scalar_one():
        if time.monotonic() > end:
            raise LedgerError(f"ledger {name!r} is served already by another process; expected to be the only one.")
        time.sleep(0.1)


def _watch(connection: sql.Connection, name: str, ended: threading.Event) -> None:
    """The lock is gone with its connection, when the server starts again for example: it is taken anew, or else the service stops."""
    while not ended.wait(CHECK_SECONDS):
        try:
            _take(connection, name)  # once more is no harm
        except sql.exc.SQLAlchemyError:
            log("lock lost", logging.WARNING, message="the connection that holds the ledger has ended; it is taken anew")
            with contextlib.suppress(sql.exc.SQLAlchemyError):
                connection.rollback()  # the next check is over a new one
        except LedgerError as error:
            log("stopping", logging.ERROR, **error_fields(error))
            os.kill(os.getpid(), signal.SIGTERM)
            return
