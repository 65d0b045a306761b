"""What a query may be, found out without running it: one SELECT that reads tables and Parquet files.

A CSV or JSON file in a query is refused: DuckDB would read rows of it to guess its columns and types, before anything is paid, and one row
could change how all others are read. The same file given as the table itself is read by the declared columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from hedgerow.errors import TableError

READERS = ("read_parquet", "parquet_scan", "unnest", "range", "generate_series")  # functions that guess nothing from rows
GUESSED = re.compile(r"read_(csv|json|ndjson|text|blob|xlsx)|sniff_csv|\.(csv|tsv|txt|json|jsonl|ndjson|xlsx)\b", re.IGNORECASE)
GUESSING = (
    "would be read before anything is paid, to guess its types from its rows. Give a CSV file as the table itself "
    "(`hedgerow fit rows.csv`), or make a table or a Parquet file of it first."
)


def one_select(query: str) -> str:
    """The query without what stands after it (semicolons, comments), if it is one SELECT."""
    try:
        with duckdb.connect(":memory:") as connection:
            kinds = [statement.type for statement in connection.extract_statements(query)]
        said = ""
    except duckdb.Error as error:
        kinds, said = [], first_words(error)
    if said:
        raise TableError(f"query: it cannot be understood: {said}")
    if kinds != [duckdb.StatementType.SELECT]:
        raise TableError(f"query: got {len(kinds)} statement(s) that are not one SELECT; expected one SELECT.")
    end = len(query)
    for start, kind in reversed(duckdb.tokenize(query)):
        if kind != duckdb.token_type.comment and not query[start:].startswith(";"):
            break
        end = start
    return query[:end].strip()


def check_readers(connection: Any, select: str) -> bool:
    """Refuse what guesses from rows, in the query and in the views that it reads. True if it reads a view."""
    stored = connection.execute("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").fetchall()
    views = {str(name): str(sql) for name, sql in stored}
    (found,) = connection.execute("SELECT json_serialize_sql(?)", [select]).fetchone()
    document = json.loads(found)
    if document.get("error"):
        raise TableError("query: it cannot be understood; expected one SELECT.")
    names = set()
    for node in _nodes(document):
        if node.get("type") == "TABLE_FUNCTION":
            function = str(node["function"]["function_name"]).lower()
            if function not in READERS:
                raise TableError(f"query: {function}(…) is not allowed: what it reads {GUESSING}")
        elif node.get("type") == "BASE_TABLE":
            name = str(node["table_name"])
            if GUESSED.search(name):
                raise TableError(f"query: {name!r} {GUESSING}")
            names.add(name.casefold())
    read = {name for name in views if name.casefold() in names}
    if read and any(GUESSED.search(sql) for sql in views.values()):
        raise TableError(f"view {min(read)!r}: the database has a view over a CSV or JSON file, which {GUESSING}")
    return bool(read)


def _nodes(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        yield document
        document = list(document.values())
    if isinstance(document, list):
        for each in document:
            yield from _nodes(each)


def first_words(error: Exception) -> str:
    """DuckDB's own first line where it speaks of names; elsewhere it may quote a row."""
    about_names = isinstance(error, (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException))
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}" if about_names else f"{type(error).__name__}."
