"""A table that Spark knows or can read, opened for one command: the session is made, used and closed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import hedgerow
from hedgerow.engines.files import CSV_ENDINGS, PARQUET_ENDINGS, CSVTable
from hedgerow.engines.spark_work import split_lines
from hedgerow.errors import TableError
from hedgerow.schema.csv_dialect import DELIMITERS, CSVDialect, header_cells

QUIET = {  # Spark's own log would quote rows in its errors
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
NO_LOG = "appender.none.type = Null\nappender.none.name = none\nrootLogger.level = off\nrootLogger.appenderRef.none.ref = none\n"
ARROW = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}


@contextmanager
def open_spark_table(
    table: str | CSVTable, master: str | None = None, connect: str | None = None, dialect: CSVDialect | None = None
) -> Iterator[Any]:
    """A DataFrame of a table by its name, or of Parquet or CSV files by a path or pattern that Spark can read.

    master: a cluster (spark://host:7077, local[2]), or sc://host:15002 for Spark Connect; by default what Spark is configured for
    connect: the address of a Spark Connect server
    dialect: of a path to CSV files, `schema.csv`; a `CSVTable` has its own

    A CSV is read as the other engines read it, each line by itself (`csv_split.py`). A line that is the header is left out wherever it is.
    """
    dialect = table.dialect if isinstance(table, CSVTable) else dialect or CSVDialect()
    table = str(table.path) if isinstance(table, CSVTable) else table
    if dialect.multiline and _ending(table) in CSV_ENDINGS:
        raise TableError("csv multiline: Spark reads a CSV line by line. Write it as Parquet first, or count without Spark.")
    if master is not None and master.startswith("sc://"):
        master, connect = None, master
    session, ours = _session(master, connect)
    try:
        frame, kind = None, ""
        try:
            frame = _frame(session, table, dialect)
            frame.schema  # noqa: B018 (Connect looks for the table only now)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            kind = type(error).__name__
        if kind:
            raise TableError(
                f"table {table!r}: Spark cannot open it ({kind}). Expected the name of a table that Spark knows, or a path or pattern of "
                "Parquet or CSV files that Spark and its executors can read."
            )
        yield frame
    finally:
        if ours:
            session.stop()


def _session(master: str | None, connect: str | None) -> tuple[Any, bool]:
    """The session, and whether it was made here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
            from pyspark.sql import SparkSession
    except ImportError:
        raise TableError("Spark is not installed here. Install it with `pip install 'hedgerow[spark]'`; it needs Java 17.") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    if master is not None and master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors are this machine: this Python has what they need
    builder = SparkSession.builder.appName("hedgerow")
    settings = ARROW if connect is not None else {**ARROW, **QUIET}
    for name, value in settings.items():
        builder = builder.config(name, value)
    if connect is not None:
        builder = builder.remote(connect)
    elif master is not None:
        builder = builder.master(master)
    kind = ""
    try:
        with warnings.catch_warnings(), _quiet_start():
            warnings.simplefilter("ignore", FutureWarning)
            return builder.getOrCreate(), True
    except Exception as error:
        kind = type(error).__name__
    where = connect or master or "as it is configured"
    raise TableError(
        f"Spark ({where}) cannot be reached or started ({kind}). Nothing was spent. Check the address, and that Java 17 or newer is here "
        "(JAVA_HOME); for sc:// addresses `pip install 'pyspark[connect]'`."
    )


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Java writes no log to the screen from its first line on, unless somebody has said how it should log."""
    given = os.environ.get("SPARK_SUBMIT_OPTS")
    if "log4j" in (given or ""):
        yield
        return
    with TemporaryDirectory(prefix="hedgerow-") as folder:
        settings = Path(folder) / "log4j2.properties"
        settings.write_text(NO_LOG, encoding="ascii")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{given or ''} -Dlog4j2.configurationFile={settings.as_uri()}".strip()
        try:
            yield
        finally:
            os.environ.pop("SPARK_SUBMIT_OPTS")
            if given is not None:
                os.environ["SPARK_SUBMIT_OPTS"] = given


def _frame(session: Any, table: str, dialect: CSVDialect) -> Any:
    ending = _ending(table)
    if ending in CSV_ENDINGS:
        return _csv(session, table, dialect)
    if ending in PARQUET_ENDINGS or "/" in table:
        return session.read.parquet(table)
    return session.table(table)


def _ending(table: str) -> str:
    endings = [ending.lower() for ending in PurePosixPath(table).suffixes if ending.lower() not in (".gz", ".zst")]
    return endings[-1] if endings else ""


def _csv(session: Any, path: str, dialect: CSVDialect) -> Any:
    """Only the header is looked at: the delimiter is the one that is declared, or else cuts it into the most names."""
    from pyspark.sql.types import StringType, StructField, StructType

    text = session.read.text(path, lineSep="\n")
    first = text.limit(1).collect()
    line = first[0][0].removeprefix("\ufeff").removesuffix("\r") if first else ""
    delimiters = DELIMITERS if dialect.delimiter is None else (dialect.delimiter,)
    cuts = [(cells, d) for d in delimiters if (cells := header_cells(line, dialect, d)) is not None]
    if not cuts or "\r" in line:
        raise ValueError("no header")
    names, delimiter = max(cuts, key=lambda cut: len(cut[0]))
    shape = StructType([StructField(name, StringType()) for name in names])
    return text.mapInArrow(partial(split_lines, hedgerow.__version__, line.encode(), len(names), dialect, delimiter), shape)
