"""Where private rows are, as the commands that read them name it: files, a database, a Spark table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.errors import PlanError

PRIVATE_ROWS = (
    "Where the private rows are: a CSV (also .gz, .zst) or Parquet file, a folder of them, a pattern in quotes ('data/*.parquet'), a "
    "DuckDB file or postgresql://user@host/name (with --table or --query), or with --engine spark a table that Spark knows."
)


class EngineName(StrEnum):
    duckdb = "duckdb"
    spark = "spark"


Data = Annotated[str, typer.Argument(help=PRIVATE_ROWS, show_default=False, metavar="DATA")]
TableOption = Annotated[str | None, typer.Option("--table", help="The table in the database.", show_default=False)]
QueryOption = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="One SELECT on the database (\":memory:\" for one over files). Each of its rows must be made from one row of one person.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Where rows are counted: duckdb, in this process; spark, on a cluster's executors.")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", help="spark: the cluster, such as spark://host:7077, local[2], or sc://host:15002 (Spark Connect).", show_default=False
    ),
]


class Place:
    """What the options say, checked before anything is opened."""

    def __init__(self, data: str, table: str | None, query: str | None, engine: EngineName, master: str | None) -> None:
        from hedgerow.rows.sql import DUCKDB_ENDINGS, IN_MEMORY, POSTGRES

        self.data, self._master = data, master
        self._spark = engine is EngineName.spark
        self._sql = None
        if self._spark and (table is not None or query is not None):
            raise PlanError("--table, --query: with --engine spark the table is named in place of DATA. Leave them out.")
        if master is not None and not self._spark:
            raise PlanError("--master: it names a Spark cluster. Add --engine spark, or leave it out.")
        database = data == IN_MEMORY or data.startswith(POSTGRES) or data.lower().endswith(DUCKDB_ENDINGS)
        if database and not self._spark:
            if table is None and query is None:
                raise PlanError("DATA is a database: say which rows with --table NAME or --query 'SELECT …'.")
            from hedgerow.rows.sql import SQLTable

            self._sql = SQLTable(data, table, query)
        elif table is not None or query is not None:
            raise PlanError(
                "--table, --query: DATA is no database; expected a DuckDB file (.duckdb, .ddb, .db), postgresql://…, or \":memory:\"."
            )

    @property
    def files(self) -> list[Path]:
        """The files that are read: no output may have the name of one."""
        from hedgerow.rows.files import files_of

        if self._spark or (self._sql is not None and self._sql.remote):
            return []
        if self._sql is not None:
            return [Path(self.data), Path(f"{self.data}.wal")]
        return files_of(self.data)

    @contextmanager
    def rows(self) -> Iterator[Any]:
        """What `fit` takes; a Spark session is open as long."""
        if not self._spark:
            yield self.data if self._sql is None else self._sql
            return
        from hedgerow.rows.spark import open_spark_table

        with open_spark_table(self.data, self._master) as frame:
            yield frame
