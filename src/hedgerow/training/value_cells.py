"""`bins="values"`: cells that follow the numbers in the rows, for the algorithms without privacy that can use them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.engines.opening import is_place
from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import number_coder
from hedgerow.schema.columns import columns_of
from hedgerow.schema.schema import Schema
from hedgerow.schema.value_edges import edges_between_values
from hedgerow.training.recipe import Recipe


def codebook_for(recipe: Recipe, schema: Schema, X: Any) -> Codebook:
    """The recipe's codebook. Only where it asks for cells between values are rows read: the numbers of attributes without edges."""
    codebook = recipe.codebook(schema)
    if not recipe.at_values:
        return codebook
    open_ = [entry.name for entry in schema.attributes if isinstance(entry, Numeric) and entry.edges is None]
    numbers = _numbers(X, schema, open_) if open_ else {}
    attributes = [
        replace(entry, edges=edges_between_values(entry, numbers[entry.name]))
        if isinstance(entry, Numeric) and entry.name in numbers
        else entry
        for entry in schema.attributes
    ]
    return Codebook(replace(schema, attributes=tuple(attributes)), codebook.bins)


def _numbers(X: Any, schema: Schema, names: list[str]) -> dict[str, NDArray[np.float64]]:
    if isinstance(X, (str, os.PathLike, CSVTable)):
        texts = TableFile(X, names, leave_out_unreadable=True, dialect=schema.csv).text_columns(names)
        declared = {entry.name: entry for entry in schema.attributes if isinstance(entry, Numeric)}
        return {name: number_coder(declared[name], 1).numbers(texts[name]) for name in names}
    if is_place(X):
        raise PlanError(
            "bins: 'values' reads the numbers of rows in memory and of CSV or Parquet files; got a database or a Spark table. Give a "
            "whole number of cells, declare edges in the schema, or write the rows to a file first."
        )
    return {
        entry.name: number_coder(entry, 1).numbers(number_coder(entry, 1).guarded(column, entry.name))
        for entry, column in zip(schema.attributes, columns_of(X, schema.names, dates=schema.dates), strict=True)
        if isinstance(entry, Numeric) and entry.name in names
    }
