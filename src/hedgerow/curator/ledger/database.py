"""Database connections and transactions: SQLite in a folder, or a PostgreSQL server. One layout and one code for both.

A change is one transaction. On SQLite it begins with the only write lock of the file (BEGIN IMMEDIATE); on PostgreSQL the ledger locks
its head row first. What is acknowledged is on disk: SQLite syncs at every commit, and so does PostgreSQL, where it was set not to.
After it the head of the chain is written to the file of heads, which is no part of the database.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url

from hedgerow.curator.ledger.guards import guards_of
from hedgerow.curator.ledger.heads import DATABASE, KEY_FILE, ON_A_SERVER, Heads
from hedgerow.curator.ledger.sql_tables import ADDED, head, metadata, schema_version
from hedgerow.errors import LedgerError

VERSION = 3  # older ones are brought here by migrations.py
FILE = DATABASE
ENDINGS = (".sqlite", ".sqlite3", ".db")
PATIENCE = 60  # seconds that a writer waits for others
_CREATES = 0x68656467  # the advisory lock of whoever makes the tables in PostgreSQL
_WRITES = "hedgerow_writes"
# Of a connection: the head that it made; the file of heads; what the accounts that it changed have spent.
APPENDED, HEADS, BALANCES = "hedgerow_appended", "hedgerow_heads", "hedgerow_balances"
FOLDER = "HEDGEROW_CURATOR"  # in the environment: the curator's folder, for commands on a ledger that is on a server
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a database that is away is tried again; each pause is twice the one before
_WRONG = (sql.exc.IntegrityError, sql.exc.DataError, sql.exc.ProgrammingError)  # these would be refused again
Result = TypeVar("Result")


class Database:
    """An open database. Threads share it; a forked process gets connections of its own.

    heads: the file of heads that belongs to it, where one is known
    """

    heads: Heads | None = None

    def __init__(self, url: URL, name: str, read_only: bool = False) -> None:
        self.name = name  # for people: without a password
        self.embedded = url.get_backend_name() == "sqlite"
        self.read_only = read_only
        self.file = Path(_path_in(url)) if self.embedded else None  # with links resolved; None on a server
        self._url = url
        self._secrets = [str(secret) for secret in (url.password, url.query.get("password")) if secret]
        self._engines_of_parent: list[sql.Engine] = []
        self._connect()

    def _connect(self) -> None:
        # Writers of one process queue here, in turn. SQLite's own waiting is by sleeping, and whoever wakes first wins.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._engine = _engine_of(self._url, self.read_only)
        self._loop_engine = _engine_of(self._url, self.read_only) if self.embedded else self._engine

    @property
    def _process_engine(self) -> sql.Engine:
        if os.getpid() != self._process:
            # The parent's connections are kept and never used: to close them here would end them there.
            self._engines_of_parent += [self._engine, self._loop_engine]
            self._connect()
        return self._engine

    def _reading_engine(self) -> sql.Engine:
        """An event loop reads a file itself, and must never wait for the connections that threads hold."""
        engine = self._process_engine
        return engine if asyncio._get_running_loop() is None else self._loop_engine

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """One transaction that changes something: all of it is on disk when the block has ended, or nothing of it ever is."""
        engine = self._process_engine
        with self._lock:
            with self._errors_translated(), engine.connect() as connection:
                connection.info.update({HEADS: self.heads, APPENDED: None, BALANCES: {}})
                with connection.execution_options(**{_WRITES: True}).begin():
                    yield connection
                    made, heads = connection.info[APPENDED], self.heads if self.heads is not None and self.heads.keeping else None
                    if made is not None and heads is not None:
                        heads.begun(made, "&".join(connection.info[BALANCES].values()))
            if made is not None and heads is not None:
                heads.kept(made)

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """One snapshot: what others write meanwhile is not seen."""
        with self._errors_translated(), self._reading_engine().connect() as connection:
            if not self.embedded:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def session(self) -> Iterator[sql.Connection]:
        """A connection without a transaction, for a lock that lasts as long as it does. It is not given to anybody else afterwards."""
        with self._errors_translated(), self._process_engine.connect() as connection:
            try:
                yield connection.execution_options(isolation_level="AUTOCOMMIT")
            finally:
                connection.invalidate()

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """The database's failures as ours, without statements and without a password."""
        try:
            yield
        except sql.exc.SQLAlchemyError as error:
            problem = error.orig if isinstance(error, sql.exc.DBAPIError) and error.orig is not None else error
            text = (str(problem).strip().splitlines() or [""])[0][:300]
            for secret in self._secrets:
                text = text.replace(secret, "***")
            raise LedgerError(
                f"ledger {self.name!r} cannot be used ({type(problem).__name__}: {text}). If this was a change, it is written whole or "
                "not at all: look before it is tried again."
            ) from None

    def prepare(self, make: bool) -> None:
        """See that it is a ledger of this version; make the tables where there are none, if `make` says so."""
        if self.read_only or not make:
            with self.reading() as connection:
                self._check_version(self._version(connection))
        if self.read_only:
            return
        with self.writing() as connection:
            if not self.embedded:
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_CREATES)))
            if not sql.inspect(connection).has_table(schema_version.name):
                metadata.create_all(connection)
                connection.execute(schema_version.insert().values(version=VERSION))
                connection.execute(head.insert().values(id=1, seq=0, hash="0" * 64))
                for statement in guards_of(connection.dialect.name):
                    connection.exec_driver_sql(statement)
            version = self._version(connection)
            for added in ADDED if version == VERSION else ():
                added.create(connection, checkfirst=True)
        self._check_version(version)

    def version(self) -> int:
        """Of the layout of its tables."""
        with self.reading() as connection:
            return self._version(connection)

    def _version(self, connection: sql.Connection) -> int:
        if not sql.inspect(connection).has_table(schema_version.name):
            raise LedgerError(f"{self.name!r} is no ledger: it has none of its tables. Nothing was changed. Is it the right file?")
        found = connection.execute(sql.select(sql.func.max(schema_version.c.version))).scalar_one()
        return int(found or 0)

    def _check_version(self, version: int) -> None:
        if version == VERSION:
            return
        next_step = "Use the hedgerow that wrote it, or a newer one."
        if 0 < version < VERSION:
            next_step = "`hedgerow curator upgrade` makes a backup and brings it to this version."
        raise LedgerError(
            f"ledger {self.name!r} has version {version}; this hedgerow knows version {VERSION}. Nothing was changed. {next_step}"
        )

    def probe(self) -> None:
        """Write something that changes nothing; LedgerError where nothing can be written now."""
        with self.writing() as connection:
            connection.execute(head.update().values(seq=head.c.seq))

    def copy_to(self, path: Path) -> None:
        """A whole copy in a new file, as of one moment, while others read and write. A server has its own tools."""
        if not self.embedded:
            raise LedgerError(f"ledger {self.name!r} is on a server; expected one in a folder. Copy it with `pg_dump`.")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # it is of its owner alone from the beginning
        with self._errors_translated(), self._process_engine.connect() as connection, closing(sqlite3.connect(path)) as target:
            source = connection.connection.driver_connection
            assert source is not None
            source.backup(target)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._engine.dispose()
            self._loop_engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> Any:
        raise LedgerError("an open ledger cannot be sent to another process: open it there, by its address.")


def is_unavailable(error: BaseException) -> bool:
    """Whether the database could not be used just now: away, full, read-only, locked. Later it may be."""
    cause = error.__context__
    return isinstance(error, LedgerError) and isinstance(cause, (sql.exc.SQLAlchemyError, OSError)) and not isinstance(cause, _WRONG)


def patiently(step: Callable[[], Result], seconds: float = PATIENCE) -> Result:
    """Do a step that may be done again, and do it again while the database is away, for at most so long."""
    ends, pause = time.monotonic() + seconds, FIRST_PAUSE
    while True:
        try:
            return step()
        except LedgerError as error:
            if not is_unavailable(error) or time.monotonic() + pause > ends:
                raise
        time.sleep(pause)
        pause = min(LONGEST_PAUSE, 2 * pause)


def open_database(address: str | os.PathLike[str], make: bool = True) -> Database:
    """The database at an address: a folder, a file that ends in .sqlite or .db, or postgresql://user@host/name. New ones if `make`."""
    database = database_at(address, make)
    try:
        database.prepare(make)
    except LedgerError:
        database.close()
        raise
    return database


def read_database(address: str | os.PathLike[str]) -> Database:
    """The same to read alone: nothing is made or changed, nor any file beside it."""
    database = database_at(address, make=False, read_only=True)
    try:
        database.prepare(make=False)
    except LedgerError:
        database.close()
        raise
    return database


def database_at(address: str | os.PathLike[str], make: bool, read_only: bool = False) -> Database:
    """The database as it is, of whatever version, if it is one."""
    text = os.fspath(address)
    if "://" in text:
        return _server(text, read_only)
    if not make and not file_at(Path(text)).is_file():
        raise LedgerError(f"ledger {text!r}: there is none; expected the folder of a ledger, or postgresql://user@host/name.")
    path = file_at(Path(text)).resolve() if read_only else _file_of(Path(text))
    url = URL.create("sqlite", database=str(path))
    if read_only:
        # A service that runs has a journal (-wal) beside the file. Where there is none, nobody writes, and SQLite need not make one.
        journal = path.with_name(f"{path.name}-wal").exists()
        alone = {} if journal else {"immutable": "1"}
        url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true", **alone})
    database = Database(url, str(text), read_only)
    database.heads = Heads.beside(path)
    return database


def _path_in(url: URL) -> str:
    """The path of a file, which is quoted in an address that opens it to read alone."""
    path = str(url.database)
    return unquote(path.removeprefix("file:")) if "uri" in url.query else path


def file_at(path: Path) -> Path:
    """The SQLite file that a path names: itself, or that of a folder."""
    return path / FILE if path.is_dir() or not (path.is_file() or path.suffix in ENDINGS) else path


def _server(text: str, read_only: bool) -> Database:
    try:
        url = make_url(text)
        if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise ValueError("driver")
    except (sql.exc.SQLAlchemyError, ValueError):
        raise LedgerError(
            "ledger address: got an address that cannot be read; expected a folder, or postgresql://user:password@host:port/database."
        ) from None
    name = url.set(query={}).render_as_string(hide_password=True)  # a query may hold a password, too
    try:
        database = Database(url.set(drivername="postgresql+psycopg"), name, read_only)
    except ModuleNotFoundError:
        raise LedgerError("PostgreSQL needs a driver that is not installed: pip install 'hedgerow[curator]'.") from None
    folder = os.environ.get(FOLDER)
    if folder:
        database.heads = Heads(Path(folder) / ON_A_SERVER, Path(folder) / KEY_FILE).ready()
    return database


def _file_of(path: Path) -> Path:
    """The file of a folder or of a path; a new one can be read by its owner alone."""
    try:
        if path.is_dir() or not (path.is_file() or path.suffix in ENDINGS):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = path / FILE
        path = path.resolve()  # a change of folder must not change the ledger
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise LedgerError(f"ledger {str(path)!r} cannot be opened ({error.strerror}); expected a folder that can be written.") from None
    if path.stat().st_nlink > 1:
        raise LedgerError(f"ledger {str(path)!r} has a second name (a hard link): SQLite's locks need one. Keep one name.")
    return path


def _engine_of(url: URL, read_only: bool) -> sql.Engine:
    pool: dict[str, Any] = {"pool_size": 5, "max_overflow": 15, "pool_timeout": PATIENCE, "hide_parameters": True}
    if url.get_backend_name() != "sqlite":
        engine = sql.create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True, **pool)
        sql.event.listen(engine, "connect", _prepare_server)
        return engine
    engine = sql.create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False}, **pool)
    sql.event.listen(engine, "connect", _prepare_to_read if read_only else _prepare_file)
    sql.event.listen(engine, "begin", _begin_file)
    return engine


def _prepare_file(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # Python's module would begin transactions by itself, and too late
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_to_read(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON")


def _begin_file(connection: sql.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_server(connection: Any, _: Any) -> None:
    """A commit waits for the disk; nobody waits for ever, and nobody who has fallen silent keeps the ledger locked."""
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
        cursor.execute(f"SET lock_timeout = '{PATIENCE}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE}s'")
    connection.autocommit = False
