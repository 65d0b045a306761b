"""A table or a query in a database: DuckDB's own files here, PostgreSQL in `postgres.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from hedgerow.engines.connection import connected
from hedgerow.engines.encoding_sql import dotted, identifier, quoted
from hedgerow.engines.sql_checks import check_readers, first_words, one_select
from hedgerow.errors import TableError

IN_MEMORY = ":memory:"
POSTGRES = ("postgresql://", "postgres://")
DUCKDB_ENDINGS = (".duckdb", ".ddb", ".db")


@dataclass(frozen=True)
class SQLTable:
    """Rows in a database, given to `fit`, `partial_fit`, `count` or `private_score` like any other table.

    database: a DuckDB file, a PostgreSQL address (postgresql://user@host/name), or ":memory:" for a query over files
    table:    its name, perhaps with a schema (`clinic.visits`); or
    query:    one SELECT. The guarantee is about the rows that it gives: each must be made from one row of one person, so no LIMIT, no
              sample, no window and no GROUP BY over persons
    """

    database: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise TableError("SQLTable: expected a table or a query, and not both.")
        text = self.table if self.query is None else self.query
        if not isinstance(text, str) or not text.strip() or not isinstance(self.database, str) or not self.database:
            raise TableError("SQLTable: expected texts: the database, and the name of a table or a query.")
        if self.table is not None and self.database == IN_MEMORY:
            raise TableError('SQLTable: ":memory:" holds no table. Give a query over files, or the path of a database.')

    @property
    def remote(self) -> bool:
        return self.database.lower().startswith(POSTGRES)

    def __repr__(self) -> str:
        """Without the address: it may hold a password."""
        return f"SQLTable({'PostgreSQL' if self.remote else self.database!r}, {self.table or 'a query'!r})"


class DuckDBTable:
    """A table or a query in a DuckDB file, opened read-only for each pass."""

    def __init__(self, given: SQLTable) -> None:
        self._path = None if given.database == IN_MEMORY else Path(given.database)
        if self._path is not None and not self._path.is_file():
            raise TableError(f'database {given.database!r}: no such file. Give a DuckDB file, postgresql://…, or ":memory:".')
        self.opened = self.stamp()
        self.name = given.table if given.table is not None else "query"
        select = one_select(given.query) if given.query is not None else f"SELECT * FROM {dotted(given.table or '')}"
        self._relation = f"(\n{select}\n)"
        with self.open(1) as (connection, relation):
            self.of_a_query = check_readers(connection, select) or given.query is not None
            self.columns = _described(connection, relation, given)

    def sql_name(self, column: str) -> str:
        return identifier(column)

    @contextmanager
    def open(self, threads: int) -> Iterator[tuple[Any, str]]:
        with connected(threads) as connection:
            if self._path is not None:
                kind = _attached(connection, self._path)
                if kind:
                    raise TableError(
                        f"database {str(self._path)!r} cannot be opened ({kind}): it is no DuckDB file, or another program writes to it."
                    )
            yield connection, self._relation

    def stamp(self) -> Any:
        """Size and time of the database and of its log of recent writes; a query over other files has none."""
        if self._path is None:
            return None
        found = [path.stat() for path in (self._path, Path(f"{self._path}.wal")) if path.exists()]
        return tuple((each.st_size, each.st_mtime_ns, each.st_ino) for each in found)


def _attached(connection: Any, path: Path) -> str:
    try:
        connection.execute(f"ATTACH {quoted(str(path))} AS owned (READ_ONLY); USE owned")
        return ""
    except duckdb.Error as error:
        return type(error).__name__


def _described(connection: Any, relation: str, given: SQLTable) -> dict[str, str]:
    """Names and types: no row is read, since nothing that guesses types from rows is allowed in a query."""
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {str(row[0]): str(row[1]) for row in found}
    except duckdb.Error as error:
        said = first_words(error)
    what = f"table {given.table!r}" if given.table is not None else "query"
    raise TableError(f"{what}: it cannot be read: {said}")
