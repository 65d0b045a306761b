"""Where private rows are, as the commands that read them name it: files, a database, a Spark table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.cli.service import ServiceDataset
    from hedgerow.schema.schema import Schema

PRIVATE_ROWS = (
    "Where the private rows are: a CSV (also .gz, .zst) or Parquet file, a folder of them, a pattern in quotes ('data/*.parquet'), a "
    "DuckDB file or postgresql://user@host/name (with --table or --query), or with --engine spark a table that Spark knows; or "
    "https://host/datasets/NAME, rows at an owner's service (your token in the environment variable HEDGEROW_TOKEN)."
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
        help='One SELECT on the database (":memory:" for one over files). Each of its rows must be made from one row of one person.',
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


PurposeOption = Annotated[
    str | None, typer.Option("--purpose", help="At a service: what the query is for, if several purposes are granted.", show_default=False)
]


_WRITTEN = (
    r"How the CSV is written: 'delimiter=; quote=none escape=\ multiline', of these what differs from the default. `multiline`: a quoted "
    "cell may hold line breaks.  [default: "
)
_USUAL = "the delimiter of the header, quotes written twice, a line is a row]"
CSVOption = Annotated[  # of commands that are given a schema
    str | None, typer.Option("--csv", help=f"{_WRITTEN}the schema's \\[csv]; without one, {_USUAL}", show_default=False)
]
CSVOfRows = Annotated[  # of others: a plan or a forest does not say how files are written
    str | None, typer.Option("--csv", help=f"{_WRITTEN}{_USUAL}", show_default=False)
]


def csv_rows(path: Any, csv: str | None) -> Any:
    """The path, with the dialect if one is given."""
    if csv is None:
        return path
    from dataclasses import asdict

    from hedgerow.engines.files import CSVTable
    from hedgerow.schema.csv_dialect import CSVDialect

    return CSVTable(path, **asdict(CSVDialect.of_text(csv)))


class Place:
    """What the options say, checked before anything is opened."""

    def __init__(
        self,
        data: str,
        table: str | None,
        query: str | None,
        engine: EngineName,
        master: str | None,
        purpose: str | None = None,
        csv: str | None = None,
    ) -> None:
        from hedgerow.engines.sql import DUCKDB_ENDINGS, IN_MEMORY, POSTGRES

        self.data, self._table, self._query, self._master = data, table, query, master
        self._spark = engine is EngineName.spark
        self._sql, self._purpose = None, purpose
        self.remote = data.startswith(("https://", "http://"))
        if self.remote and (self._spark or table is not None or query is not None):
            raise PlanError("--table, --query, --engine: DATA is a service, whose owner decides where the rows are. Leave them out.")
        if purpose is not None and not self.remote:
            raise PlanError("--purpose: it belongs to a service, https://host/datasets/NAME. Leave it out.")
        if self._spark and (table is not None or query is not None):
            raise PlanError("--table, --query: with --engine spark the table is named in place of DATA. Leave them out.")
        if master is not None and not self._spark:
            raise PlanError("--master: it names a Spark cluster. Add --engine spark, or leave it out.")
        database = data == IN_MEMORY or data.startswith(POSTGRES) or data.lower().endswith(DUCKDB_ENDINGS)
        if database and not self._spark:
            if table is None and query is None:
                raise PlanError("DATA is a database: say which rows with --table NAME or --query 'SELECT …'.")
            from hedgerow.engines.sql import SQLTable

            self._sql = SQLTable(data, table, query)
        elif table is not None or query is not None:
            raise PlanError(
                '--table, --query: DATA is no database; expected a DuckDB file (.duckdb, .ddb, .db), postgresql://…, or ":memory:".'
            )
        self._rows: Any = self._sql if self._sql is not None else csv_rows(data, csv)
        if csv is not None and (self.remote or self._sql is not None):
            raise PlanError("--csv: it says how CSV files are written, and DATA is none. Leave it out.")

    @property
    def named(self) -> list[str | None]:
        """How the rows are named, from whichever folder a command is run (but for files in --query): nothing that is in them."""
        elsewhere = self._spark or "://" in self.data or self.data.startswith(":")
        shown = re.sub(r"(://[^:/@]*):[^@]*(?=@)|(?<=[?&])password=[^&]*", r"\1", self.data)  # without a password
        return [shown if elsewhere else os.path.realpath(self.data), self._table, self._query]

    @property
    def files(self) -> list[Path]:
        """The files that are read: no output may have the name of one."""
        from hedgerow.engines.files import files_of

        if self.remote or self._spark or (self._sql is not None and self._sql.remote):
            return []
        if self._sql is not None:
            return [Path(self.data), Path(f"{self.data}.wal")]
        return files_of(self.data)

    @contextmanager
    def rows(self, schema: Schema | None = None) -> Iterator[Any]:
        """What `fit` takes; a Spark session is open as long. schema: of the rows, where it says how a CSV is written."""
        if self.remote:
            yield self.service.table
            return
        if not self._spark:
            yield self._rows
            return
        from hedgerow.engines.spark import open_spark_table

        with open_spark_table(self._rows, self._master, dialect=None if schema is None else schema.csv) as frame:
            yield frame

    @cached_property
    def service(self) -> ServiceDataset:
        """The dataset at a service. What is public of it is fetched; no row is read."""
        from hedgerow.cli.service import ServiceDataset

        return ServiceDataset.at(self.data, self._purpose)

    def schema(self, path: Path | None) -> Schema:
        """The schema in the file; of a service its own, where no file is given."""
        from hedgerow.schema.schema import Schema

        if path is None and not self.remote:
            raise PlanError("--schema: missing; expected the reviewed schema (TOML). `hedgerow schema draft` writes a first one.")
        return self.service.table.codebook.schema if path is None else Schema.load(path)
