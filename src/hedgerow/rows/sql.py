"""A table or a query in a database: DuckDB's own files here, PostgreSQL in `postgres.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from hedgerow.errors import TableError
from hedgerow.rows.connection import connect
from hedgerow.rows.encoding_sql import identifier, quoted

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
        return self.database.startswith(POSTGRES)

    def __repr__(self) -> str:
        """Without the address: it may hold a password."""
        return f"SQLTable({'PostgreSQL' if self.remote else self.database!r}, {self.table or 'a query'!r})"


class DuckDBTable:
    """A table or a query in a DuckDB file, opened read-only for each pass."""

    def __init__(self, given: SQLTable) -> None:
        self._path = None if given.database == IN_MEMORY else Path(given.database)
        if self._path is not None and not self._path.is_file():
            raise TableError(f"database {given.database!r}: no such file. Give a DuckDB file, postgresql://…, or \":memory:\".")
        self.name = given.table if given.table is not None else "query"
        self._select = _one_select(given.query) if given.query is not None else f"SELECT * FROM {dotted(given.table or '')}"
        with self.open(1) as (connection, relation):
            self.columns = _described(connection, relation, given)

    def sql_name(self, column: str) -> str:
        return identifier(column)

    @contextmanager
    def open(self, threads: int) -> Iterator[tuple[Any, str]]:
        with connect(threads) as connection:
            if self._path is not None:
                kind = _attached(connection, self._path)
                if kind:
                    raise TableError(
                        f"database {str(self._path)!r} cannot be opened ({kind}): it is no DuckDB file, or another program writes to it."
                    )
            yield connection, f"({self._select})"

    def stamp(self) -> Any:
        """Size and time of the database and of its log of recent writes; a query over other files has none."""
        if self._path is None:
            return None
        found = [path.stat() for path in (self._path, Path(f"{self._path}.wal")) if path.exists()]
        return tuple((each.st_size, each.st_mtime_ns, each.st_ino) for each in found)


def dotted(table: str) -> str:
    """schema.table, each part quoted; a name that has quotes is taken as it is written."""
    return table if '"' in table else ".".join(identifier(part) for part in table.split("."))


def _attached(connection: Any, path: Path) -> str:
    try:
        connection.execute(f"ATTACH {quoted(str(path))} AS owned (READ_ONLY); USE owned")
        return ""
    except duckdb.Error as error:
        return type(error).__name__


def _one_select(query: str) -> str:
    """The query without its semicolon, if it is one SELECT: whatever else it is, it is refused before it runs."""
    try:
        with duckdb.connect(IN_MEMORY) as connection:
            found = connection.extract_statements(query)
        kinds = [statement.type for statement in found]
    except duckdb.Error as error:
        raise TableError(f"query: it cannot be understood ({type(error).__name__}): {_first_words(error)}") from None
    if kinds != [duckdb.StatementType.SELECT]:
        raise TableError(f"query: got {len(kinds)} statement(s) that are not one SELECT; expected one SELECT.")
    return query.strip().rstrip(";").strip()


def _described(connection: Any, relation: str, given: SQLTable) -> dict[str, str]:
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    except duckdb.Error as error:  # names and types only: no row was read
        what = f"table {given.table!r}" if given.table is not None else "query"
        raise TableError(f"{what}: it cannot be read ({type(error).__name__}): {_first_words(error)}") from None
    return {str(row[0]): str(row[1]) for row in found}


def _first_words(error: Exception) -> str:
    """DuckDB's own first line where it speaks of names; elsewhere it may quote a row of a file that the query reads."""
    about_names = isinstance(error, (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException))
    return str(error).split("\n")[0][:200] if about_names else "check it with another program."
