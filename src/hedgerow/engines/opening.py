"""Which engine for what a user gave: a file, a pattern, a folder, a database, a Spark table. Rows in memory are opened by their holders."""

from __future__ import annotations

import os
from typing import Any

from hedgerow.engines.encoding_sql import needed_columns, spelled
from hedgerow.engines.engine import Engine, Progress
from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.engines.sql import DuckDBTable, SQLTable
from hedgerow.engines.streamed import Source, StreamedRows
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Categorical
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

OF_A_QUERY = "the rows are those of a query, and each was made from one row of one person: no limit, sample, window or group over persons"


def is_place(table: Any) -> bool:
    """Whether rows are somewhere else, and are read where they are."""
    return isinstance(table, (str, os.PathLike, CSVTable, SQLTable)) or is_spark_frame(table)


def is_spark_frame(table: Any) -> bool:
    """Whether it is a DataFrame of Spark, classic or Connect; without importing Spark."""
    return type(table).__module__.startswith("pyspark.") and hasattr(table, "mapInArrow")


def open_place(table: Any, codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None, key: bytes = b"") -> Engine:
    """The engine, with everything checked that can be without reading a row."""
    if is_spark_frame(table):
        from hedgerow.engines.spark import SparkRows

        return SparkRows(table, codebook, progress=progress, key=key)
    source = _source(table, codebook)
    engine = StreamedRows(source, codebook, n_jobs, progress, key)
    if getattr(source, "of_a_query", False):
        engine.assumed = OF_A_QUERY
    elif isinstance(source, TableFile):
        engine.assumed = source.assumed
        if source.by_line:
            _check_lines(codebook.schema)
    return engine


def _check_lines(schema: Schema) -> None:
    """Refuses declared values that no line can hold: all rows that have one would be left out."""
    values = [(a.name, value) for a in schema.attributes if isinstance(a, Categorical) for value in a.values]
    values += [(schema.target.name, value) for value in schema.target.classes]
    broken = next((name for name, value in values if isinstance(value, str) and "\n" in value), None)
    if broken is not None:
        raise TableError(
            f"column {broken!r}: a declared value holds a line break, and in a CSV a line is a row. Declare cells over several lines "
            "(multiline = true under [csv] in the schema, or --csv multiline), or use Parquet."
        )


def _source(table: Any, codebook: Codebook) -> Source:
    needed = needed_columns(codebook)
    if isinstance(table, (str, os.PathLike, CSVTable)):
        return TableFile(table, needed, leave_out_unreadable=True, dialect=codebook.schema.csv)
    if table.remote:
        from hedgerow.engines.postgres import PostgresSource

        return PostgresSource(table.database, table.table, table.query, needed, person=codebook.schema.person)
    source = DuckDBTable(table)
    absent = [column for column in needed if column not in source.columns]
    if absent:
        raise TableError(
            f"table {source.name!r}: the column(s) {', '.join(absent)} are missing; needed are {', '.join(needed)}."
            + spelled(source.columns, needed)
        )
    return source
