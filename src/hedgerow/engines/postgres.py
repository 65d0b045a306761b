"""A table or a query of a PostgreSQL server, streamed through ADBC: every pass reads the same snapshot.

One read-only transaction stays open from the first look at the catalogue to `close`, so that no pass sees what others write meanwhile, and
nothing here can change the database. Only the needed columns leave the server. What the server says about a failure may quote a row, and an
address may hold a password: neither is ever repeated, only the kind of the failure.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import duckdb
import pyarrow

from hedgerow.engines.connection import connected
from hedgerow.engines.encoding_sql import dotted, identifier, spelled
from hedgerow.errors import TableError

SCHEMES = ("postgresql://", "postgres://")
RELATION = "hedgerow_rows"
BATCH_BYTES = 4 << 20  # that the driver gathers before it hands rows on
# Lost networks are noticed; the server's list of connections says who this is. The address or the environment may say otherwise.
CONNECTION = {"connect_timeout": "30", "keepalives_idle": "60", "fallback_application_name": "hedgerow"}
SESSION = (
    "SET client_encoding = 'UTF8'",
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'postgres'",
    "SET timezone = 'UTC'",
    "SET synchronize_seqscans = off",  # or a pass could begin where another reader is
    "SET idle_in_transaction_session_timeout = 0",  # the transaction waits while trees are grown
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
)
AS_THEY_ARE = {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN"}
AS_TEXT = {
    "numeric": "DECIMAL",
    "date": "DATE",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "interval": "INTERVAL",
    "uuid": "UUID",
}
# The type of each column, domains as what they are made of. The join keeps the server from reading a row.
TYPES = """
SELECT base.typname::text, base.typtype::text, base.typcategory::text, pg_catalog.format_type(base.oid, NULL)
FROM (SELECT ARRAY[{kinds}]::pg_catalog.oid[] AS kinds FROM (SELECT 1) AS one LEFT JOIN {relation} AS q ON false) AS typed,
    unnest(typed.kinds) WITH ORDINALITY AS kind(id, place),
    LATERAL (
        WITH RECURSIVE inner_type AS (
            SELECT t.* FROM pg_catalog.pg_type AS t WHERE t.oid = kind.id
            UNION ALL SELECT t.* FROM pg_catalog.pg_type AS t JOIN inner_type AS d ON d.typtype = 'd' AND t.oid = d.typbasetype
        ) SELECT * FROM inner_type WHERE typtype <> 'd'
    ) AS base
ORDER BY kind.place
"""
KINDS = {  # of the server's failures, by the first letters of their SQLSTATE
    "42P01": "there is no such table or view. Names are taken as they are written, case and all; name its schema: schema.table",
    "3F000": "there is no such schema. Names are taken as they are written, case and all",
    "42501": "the account may not read it. Ask for the right to SELECT",
    "42601": "the query is not one statement that SQL allows. Give one SELECT",
    "42703": "the query names a column that does not exist",
    "42702": "the query has several columns of one name. Give each its own",
    "25006": "the query writes, and only reading is allowed. Give a query that reads",
    "0A000": "the query is of a kind that cannot be read from. Give one SELECT",
    "57014": "the server stopped the query (a time limit, or somebody's order)",
    "22": "a value made an expression of the table's view or of the query fail. Correct it; the server's log says more",
    "42": "the query is not valid. Try it with another program",
    "53": "the server has run out of memory, disk or connections",
}
VIEW = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('{name}') AND relkind IN ('v', 'm', 'f')"
WHICH = "SELECT now()::text, pg_backend_pid()"  # the transaction: both stay the same as long as it lasts
BROKEN = (
    "the server ended the query in the middle of the rows: a value that the view or the query cannot take, or a limit of the server. "
    "Its log says more"
)
INTERRUPTED = "interrupted"
LOST = "the connection was lost, and with it the snapshot that all passes read. Nothing more can be read; open the table again"


class PostgresSource:
    """The rows of one table (`schema.table`) or of one query.

    needed: the columns that will be read, all readable ones by default; others never leave the server
    optional: needed columns may be missing, all but one; a row has no branch for them. `absent` lists them
    person: the one of them that says whose row it is
    """

    opened = None  # nothing can change: every pass reads one snapshot

    def __init__(
        self,
        address: str,
        table: str | None = None,
        query: str | None = None,
        needed: Sequence[str] | None = None,
        optional: bool = False,
        person: str | None = None,
    ) -> None:
        self.name = masked(address)
        self._person = person
        if (table is None) == (query is None):
            raise TableError(f"table {self.name!r}: give either the name of a table or a query.")
        statement = f"SELECT * FROM {dotted(table)}" if table is not None else _one_statement(str(query))
        self.name += f" table {table}" if table is not None else " (query)"
        self._relation = f"(\n{statement}\n)"
        self.of_a_query = query is not None
        self._lock = threading.Lock()
        self._connection: Any = None
        self._began: Any = None
        self._ended = "it was closed. Open it again"
        self._broken = False  # whether the stream of this pass has failed
        try:
            self._connect(address)
            if table is not None and self._ask(VIEW.format(name=dotted(table).replace("'", "''"))):
                self.of_a_query = True
            self._columns_of(statement, needed, optional)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"PostgresSource({self.name!r})"

    def __enter__(self) -> PostgresSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    def sql_name(self, column: str) -> str:
        """By place, since DuckDB takes names that differ only in case for the same."""
        return f"c{self._places[column]}"

    def stamp(self) -> None:
        """Nothing can change: every pass reads one snapshot."""

    @contextmanager
    def open(self, threads: int = 1, in_order: bool = False) -> Iterator[tuple[Any, str]]:
        """One pass: a DuckDB connection and the name of the relation in it. It can be read once, since it comes as a stream.

        If it is left early without an error, the next pass reads the rest first, and the snapshot stays.
        """
        if not self._lock.acquire(blocking=False):
            raise TableError(f"table {self.name!r}: it is being read already, and one connection can be read only once at a time.")
        kind, self._broken = None, False
        try:
            if self._ask(WHICH) != self._began:
                self._refuse(LOST)
            with self._cursor() as cursor, self._stream(cursor) as reader, connected(threads, in_order) as connection:
                connection.register(RELATION, reader)
                yield connection, RELATION
        except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
            stopped = isinstance(error, duckdb.InterruptException) or str(error).lstrip().startswith("INTERRUPT Error")
            kind = INTERRUPTED if stopped else f"{type(error).__name__} in the middle of the rows"
        finally:
            self._lock.release()
        if self._broken:  # the snapshot is gone: nothing is left that could be read
            self._ended = self._why()
            self.close()
            self._refuse(self._ended)
        if kind == INTERRUPTED:
            _raise_alone(KeyboardInterrupt())  # so DuckDB reports Ctrl-C
        if kind is not None:
            self._refuse(kind)

    def close(self) -> None:
        """Ends the transaction and the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # whatever it says, it is over
                connection.close()

    def _connect(self, address: str) -> None:
        driver, kind = _driver(), None
        try:
            self._connection = driver.connect(_with_defaults(address), autocommit=True)
        except Exception as error:
            kind = _kind_of_connecting(str(error))
        if kind is not None:
            self._refuse(kind)
        for statement in SESSION:
            self._ask(statement)
        self._began = self._ask(WHICH)  # the first question takes the snapshot

    def _columns_of(self, statement: str, needed: Sequence[str] | None, optional: bool) -> None:
        have = [str(name) for name in self._described(statement)]
        wanted = list(dict.fromkeys(have if needed is None else needed))
        self.absent = frozenset(name for name in wanted if name not in have)
        if self.absent and not (optional and len(self.absent) < len(wanted)):
            raise TableError(
                f"table {self.name!r}: the column(s) {', '.join(name for name in wanted if name in self.absent)} are missing; needed are "
                f"{', '.join(wanted)}.{spelled(have, wanted)}"
            )
        wanted = [name for name in wanted if name not in self.absent]
        twice = [name for name in wanted if have.count(name) > 1]
        if twice:
            raise TableError(f"table {self.name!r}: it has several columns named {', '.join(map(repr, twice))}. Give each its own name.")
        kinds = ", ".join(f"pg_catalog.pg_typeof(q.{identifier(name)})" for name in wanted)
        found = self._ask(TYPES.format(kinds=kinds, relation=self._relation)) if wanted else []
        self.columns: Mapping[str, str] = {}
        self._places: dict[str, int] = {}
        expressions: list[str] = []
        for name, (typname, typtype, category, shown) in zip(wanted, found, strict=True):
            read = _read_as(f"q.{identifier(name)}", typname, typtype, category, name == self._person)
            if read is None:
                if needed is not None:
                    raise TableError(
                        f"table {self.name!r}, column {name!r}: got the type {shown}; expected numbers, text, booleans, dates or an "
                        "enumeration. Convert it with a query."
                    )
                continue
            self._places[name] = len(expressions)
            expressions.append(f"{read[0]} AS c{len(expressions)}")
            self.columns = {**self.columns, name: read[1]}
        if not expressions:
            raise TableError(f"table {self.name!r}: it has no column that can be read.")
        self._select = f"SELECT {', '.join(expressions)} FROM {self._relation} AS q"

    def _described(self, statement: str) -> list[str]:
        """The names of the columns, from the prepared statement: nothing is executed."""
        kind = names = None
        with self._cursor() as cursor:
            try:
                names = cursor.adbc_execute_schema(statement).names
            except Exception as error:
                kind = _kind(error)
        if kind is not None:
            self._refuse(kind)
        return list(names or [])

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        connection = self._connection
        if connection is None:
            self._refuse(self._ended)
        cursor = connection.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        try:
            yield cursor
        finally:
            with contextlib.suppress(Exception):
                cursor.close()

    def _ask(self, statement: str) -> list[Any]:
        """A small question to the catalogue."""
        rows, kind = self._tried(statement)
        if kind is not None:
            self._refuse(kind)
        return rows

    def _tried(self, statement: str) -> tuple[list[Any], str | None]:
        """The answer, or the kind of failure."""
        with self._cursor() as cursor:
            try:
                cursor.execute(statement)
                return (cursor.fetchall() if cursor.description else []), None
            except Exception as error:
                return [], _kind(error)

    @contextmanager
    def _stream(self, cursor: Any) -> Iterator[Any]:
        kind = reader = None
        try:
            cursor.execute(self._select)
            reader = cursor.fetch_record_batch()
        except Exception as error:
            kind = _kind(error)
        if kind is not None:
            self._refuse(kind)
        assert reader is not None
        try:
            yield pyarrow.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        finally:
            with contextlib.suppress(Exception):
                reader.close()

    def _batches(self, reader: Any) -> Iterator[Any]:
        """The batches as they come. A failure is noted here, and DuckDB, which repeats what it is told, is told nothing of it."""
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception:
                self._broken = True
            if self._broken:
                raise OSError("the stream of rows has ended with an error")
            yield batch

    def _why(self) -> str:
        """Why the stream of a pass has failed; asked of the server, since the stream's own error has no code."""
        if self._connection is None:
            return LOST
        _, kind = self._tried(WHICH)
        return LOST if kind == LOST else BROKEN

    def _refuse(self, kind: str) -> NoReturn:
        _raise_alone(TableError(f"table {self.name!r}: {kind}."))


def _raise_alone(error: BaseException) -> NoReturn:
    """Raises without the error that is being handled further out: at the end of a `with` Python would carry it along, text and all."""
    try:
        raise error
    finally:
        error.__context__ = None


def _driver() -> Any:
    with contextlib.suppress(ImportError):
        from adbc_driver_postgresql import dbapi

        return dbapi
    raise TableError("PostgreSQL needs a driver that is not installed: pip install 'hedgerow[postgresql]'.")


def _kind(error: Exception) -> str:
    """What kind of failure the server reported."""
    state = str(getattr(error, "sqlstate", None) or "")
    if state.startswith(("08", "57P")) or (not state and type(error).__name__ == "OperationalError"):
        return LOST
    found = max((known for known in KINDS if state.startswith(known)), key=len, default=None)
    return f"{KINDS[found] if found else 'the server refused it'} ({f'SQLSTATE {state}' if state else type(error).__name__})"


def masked(address: str) -> str:
    """The address for messages: no password, no options."""
    scheme = next((scheme for scheme in SCHEMES if str(address).lower().startswith(scheme)), None)
    if scheme is None:
        raise TableError("database: expected an address such as postgresql://user@host:5432/database.")
    rest, _, options = address[len(scheme) :].partition("?")
    if "@" in options and "@" not in rest:  # a password with a question mark, or options with an @: nobody can tell
        return "postgresql://***"
    person, at, place = rest.rpartition("@")
    user, colon, _ = person.partition(":")
    host, slash, database = place.partition("/")
    host = re.sub(r":(?!\d*(?:,|$|\]|[0-9a-fA-F:]*\]))[^,]*", ":***", host)  # no port: perhaps a password whose @ was forgotten
    return f"postgresql://{user}{':***' if colon else ''}{at}{host}{slash}{database}"


def _with_defaults(address: str) -> str:
    missing = [f"{name}={value}" for name, value in CONNECTION.items() if f"{name}=" not in address]
    if "PGCONNECT_TIMEOUT" in os.environ:
        missing = [each for each in missing if not each.startswith("connect_timeout")]
    return address + ("&" if "?" in address else "?") + "&".join(missing) if missing else address


def _one_statement(query: str) -> str:
    statement = query.strip()
    while statement.endswith(";"):
        statement = statement[:-1].rstrip()
    if not statement or "\0" in statement:
        raise TableError("query: expected one SELECT statement.")
    return statement


def _read_as(column: str, typname: str, typtype: str, category: str, is_person: bool) -> tuple[str, str] | None:
    """How the server is asked for a column, and the DuckDB type that it stands for; None if it holds no values of a table.

    Persons are compared by text, so that 1 and 1.00 must have the same.
    """
    if typtype == "e" or category == "S" or typname == "char":
        return f"{column}::text", "VARCHAR"
    if typtype != "b" or category == "A":
        return None
    if typname in AS_THEY_ARE:
        return f"{column}::pg_catalog.{typname}", AS_THEY_ARE[typname]
    if typname == "numeric":  # NaN is missing, as it is among floats
        number = f"nullif({column}::numeric, 'NaN')"
        return (f"trim_scale({number})::text", "VARCHAR") if is_person else (f"{number}::text", AS_TEXT[typname])
    return (f"{column}::text", AS_TEXT[typname]) if typname in AS_TEXT else None


def _kind_of_connecting(text: str) -> str:
    """Which failure it was. The text is looked at and not repeated: it may hold a part of the address."""
    said = text.lower()
    if "password" in said or "authentication" in said or "pg_hba" in said or "role" in said:
        return "the server refused the account or its password. The password may stand in PGPASSWORD or in ~/.pgpass"
    if "database" in said and "does not exist" in said:
        return "the server has no such database"
    if any(word in said for word in ("token", "uri", "invalid", "option")) and "connection to server" not in said:
        return "the address cannot be understood. Expected postgresql://user@host:5432/database, with %40 for an @ in a password"
    return "the server cannot be reached. Check host and port, and whether it runs"
