"""A public table that is like the private one, as a user gives it: rows and labels, a data frame, or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.schema.columns import columns_of
from hedgerow.schema.schema import Schema

Columns = dict[str, NDArray[Any]]


def public_table(like: Any, schema: Schema) -> tuple[Columns, NDArray[Any]]:
    """Its declared columns, and its labels."""
    if isinstance(like, (str, os.PathLike)):
        return _of_file(os.fspath(like), schema)
    if isinstance(like, (tuple, list)) and len(like) == 2:
        table, labels = like
    elif isinstance(like, Mapping) or hasattr(like, "columns"):
        table, labels = like, columns_of(like, [schema.target.name], any_type=True)[0]
    else:
        raise TableError(
            f"like: got {type(like).__name__}; expected a pair (X, y), a data frame with the column {schema.target.name!r}, or the path "
            "of a CSV or Parquet file."
        )
    columns = columns_of(table, schema.names, dates=schema.dates)
    return {name: np.asarray(column) for name, column in zip(schema.names, columns, strict=True)}, np.asarray(labels)


def _of_file(path: str, schema: Schema) -> tuple[Columns, NDArray[Any]]:
    """The columns of a public file, as text or numbers."""
    import duckdb

    with duckdb.connect() as connection:
        try:
            relation = connection.read_parquet(path) if path.endswith(".parquet") else connection.read_csv(path, all_varchar=True)
            names = relation.columns
        except duckdb.Error as error:
            raise TableError(f"like: {path!r} cannot be read as a table ({str(error)[:100]}).") from None
        needed = [*schema.names, schema.target.name]
        absent = [name for name in needed if name not in names]
        if absent:
            raise TableError(f"like: {path!r} has no column {', '.join(absent)}; expected those of the schema and its target.")
        rows = relation.fetchall()
    columns = {}
    for name in needed:
        place, values = names.index(name), np.empty(len(rows), dtype=object)
        values[:] = [row[place] for row in rows]
        columns[name] = values
    return {name: columns[name] for name in schema.names}, columns[schema.target.name]
