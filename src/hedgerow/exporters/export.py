"""`hedgerow.export`: a release as a file for another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.exporters.portable import portable
from hedgerow.release.release import Release

ONNX, SQL, PYTHON = "onnx", "sql", "python"
TARGETS = (ONNX, SQL, PYTHON)


def export(release: Any, to: str, *, dialect: str = "duckdb", table: str = "rows", keep: Sequence[str] | None = None) -> str | bytes:
    """A release as a model that predicts the same elsewhere: text, or the bytes of an ONNX model. Costs no ε.

    release: a Release, or a fitted estimator that has one
    to:      "python": one file without dependencies; "sql": one SELECT; "onnx": a model for onnxruntime (needs `hedgerow[onnx]`)
    dialect: of SQL: "duckdb", "postgresql" or "spark"
    table:   of SQL: the table that is read, `table` or `schema.table`
    keep:    of SQL: the columns that stand beside the predictions, such as an id; by default the attributes
    """
    given, release = release, getattr(getattr(release, "best_estimator_", release), "release_", release)
    if not isinstance(release, Release):
        raise PlanError(
            f"export: got {type(given).__name__}; expected a Release or a fitted estimator of hedgerow. Of a Pipeline export the last "
            "step, pipeline[-1]: what the steps in front of it do to a row is not exported."
        )
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
