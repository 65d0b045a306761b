"""`hedgerow export`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.console import guarantee, say
from hedgerow.cli.outputs import check_output
from hedgerow.cli.predict import STANDARD_OUTPUT


class Goal(StrEnum):
    onnx = "onnx"
    sql = "sql"
    python = "python"


ENDINGS = {".onnx": Goal.onnx, ".sql": Goal.sql, ".py": Goal.python}


class SQLDialect(StrEnum):
    duckdb = "duckdb"
    postgresql = "postgresql"
    spark = "spark"


def export(
    forest: Annotated[Path, typer.Argument(help="A saved forest.", show_default=False)],
    to: Annotated[
        Goal | None,
        typer.Option(
            "--to",
            help="onnx: a model for onnxruntime. sql: one SELECT. python: one file that needs nothing but Python.",
            show_default="by the ending of --output: .onnx, .sql, .py",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file; - is standard output.  [default: -, for onnx it must be given]", show_default=False),
    ] = None,
    dialect: Annotated[SQLDialect, typer.Option("--dialect", help="sql: who is to run it.")] = SQLDialect.duckdb,
    table: Annotated[str, typer.Option("--table", help="sql: the table that is read, table or schema.table.")] = "rows",
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="sql: a column to stand beside the predictions, such as an id.  [default: the attributes]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Write a forest for another program: ONNX, SQL, or one Python file. Costs no ε.

    What is written predicts as `hedgerow predict` does, missing and unknown values included, without Hedgerow. It carries the
    certificate: in the metadata of an ONNX model, as a comment in SQL, as CERTIFICATE in Python.

    Example:

        hedgerow export forest.json --to sql --dialect postgresql --table patients --keep id -o predict.sql

        hedgerow export forest.json -o forest.onnx
    """
    from hedgerow.errors import PlanError

    output = None if output == STANDARD_OUTPUT else output
    to = ENDINGS.get("" if output is None else output.suffix.lower()) if to is None else to
    if to is None:
        raise PlanError("--to: missing; expected onnx, sql or python, or an --output that ends in .onnx, .sql or .py.")
    if to is Goal.onnx and output is None and sys.stdout.isatty():
        raise PlanError("an ONNX model is not text for a terminal; name a file with -o forest.onnx.")
    if output is not None:
        check_output(output, [forest], force)
    from hedgerow.exporters.export import export as exported
    from hedgerow.release.release import Release

    release = Release.load(forest)
    made = exported(release, str(to), dialect=str(dialect), table=table, keep=keep or None)
    content = made if isinstance(made, bytes) else made.encode("utf-8", errors="surrogatepass")
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    output.write_bytes(content)
    say(f"wrote {output}: {len(content):,} bytes")
    guarantee(release.certificate.sentence(), holds=release.certificate.private)
