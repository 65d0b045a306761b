"""`hedgerow.export`: a release as a file for another program."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.errors import PlanError
from hedgerow.exporters.portable import portable
from hedgerow.release.release import Release

ONNX, SQL, PYTHON = "onnx", "sql", "python"
TARGETS = (ONNX, SQL, PYTHON)


def export(release: Release, to: str, *, dialect: str = "duckdb", table: str = "rows", keep: Sequence[str] | None = None) -> str | bytes:
    """A release as a model that predicts the same elsewhere: text, or the bytes of an ONNX model. Costs no ε.

    to:      "python": one file without dependencies; "sql": one SELECT; "onnx": a model for onnxruntime (needs `hedgerow[onnx]`)
    dialect: of SQL: "duckdb", "postgresql" or "spark"
    table:   of SQL: the table that is read, `table` or `schema.table`
    keep:    of SQL: the columns that stand beside the predictions, such as an id; by default the attributes
    """
    if to not in TARGETS:
        raise PlanError(f"to: got {to!r}; expected one of {', '.join(TARGETS)}.")
    if to == PYTHON:
        from hedgerow.exporters.python_file import python_text

        return python_text(portable(release), bool(release.forest.united))
    if to == SQL:
        from hedgerow.exporters.sql import sql_text

        return sql_text(portable(release), dialect, table, keep)
    from hedgerow.exporters.onnx_model import onnx_bytes

    return onnx_bytes(portable(release))
