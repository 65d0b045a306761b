"""A first schema, read from the rows. It is private until a person has reviewed it: every entry is marked so."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Target, Value, is_missing, text_of
from hedgerow.schema.coders import Coder
from hedgerow.schema.columns import columns_of, objects, one_column
from hedgerow.schema.schema import Schema

MAX_WHOLE_CATEGORIES = 12  # a column of whole numbers with more distinct values than this is numeric
MAX_TEXT_CATEGORIES = 100  # a text column with more is left out of a draft: it looks like an identifier


def draft_from_file(path: str | Path | CSVTable, target: str) -> tuple[Schema, list[str]]:
    """A draft schema of a file, and the columns left out because they look like identifiers. It keeps the dialect of a CSV."""
    file = TableFile(path, [])
    if target not in file.columns:
        near = difflib.get_close_matches(target, file.columns, n=1, cutoff=0.5)
        raise TableError(
            f"table {file.name!r} has no column {target!r}; its columns are {', '.join(list(file.columns)[:40])}."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )
    columns: dict[str, Any] = {name: _whole_numbers(column) for name, column in file.text_columns(list(file.columns)).items()}
    labels = columns.pop(target)
    schema, left_out = draft(columns, labels, target, keep_all=False)
    return replace(schema, csv=path.dialect if isinstance(path, CSVTable) else None), left_out


def _whole_numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Text that is whole numbers throughout, as those numbers: a file has no types of its own."""
    if all(value is None or (value.lstrip("-").isdecimal() and text_of(value) == str(int(value))) for value in set(column)):
        return np.array([None if value is None else int(value) for value in column], dtype=object)
    return column


def draft_from_table(table: Any, labels: Any, target: str) -> Schema:
    """A draft of all columns of a data frame, mapping or array; the columns of an array are named x0, x1, …"""
    names = column_names(table)
    columns = dict(zip(names, columns_of(table, names), strict=True))
    return draft(columns, labels, target, keep_all=True)[0]


def column_names(table: Any) -> list[str]:
    if isinstance(table, np.ndarray):
        return [f"x{j}" for j in range(table.shape[1])]
    names = [str(name) for name in (table.keys() if isinstance(table, dict) else table.columns)]
    if not names:
        raise TableError("table: it has no columns.")
    if hasattr(table, "column_names"):  # pyarrow's `columns` are the data
        names = list(table.column_names)
    return names


def draft(columns: dict[str, Any], labels: Any, target: str, keep_all: bool) -> tuple[Schema, list[str]]:
    attributes: list[Attribute] = []
    left_out: list[str] = []
    for name, column in columns.items():
        attribute = _attribute(name, _as_array(column))
        too_many = isinstance(attribute, Categorical) and len(attribute.values) > MAX_TEXT_CATEGORIES
        if too_many and not keep_all:
            left_out.append(name)
        else:
            attributes.append(attribute)
    present = _values(_as_array(labels))
    if not present:
        raise TableError(f"table: the target column {target!r} has no values to draft classes from.")
    if len(present) > MAX_TEXT_CATEGORIES and not keep_all:
        raise TableError(
            f"table: the target column {target!r} has more than {MAX_TEXT_CATEGORIES} different values; expected a few classes. "
            "If it is a number, put it into classes first (for example below and above a limit)."
        )
    if not attributes:
        raise TableError("table: no column is left to learn from; every one looks like an identifier.")
    return Schema(attributes, Target(target, _in_order(present), unreviewed=True)), left_out


class _Any(Coder):
    """Any column as an array; no privacy is claimed for what is drafted from it."""

    def from_text_series(self, series: Any) -> NDArray[Any]:
        return objects(series.to_list())

    def with_missing(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        return objects([None if gone else value for value, gone in zip(values.tolist(), missing, strict=True)])


def _as_array(column: Any) -> NDArray[Any]:
    return _Any().whole_column(one_column(column, "table"))


def _values(column: NDArray[Any]) -> list[Any]:
    """The distinct values that are not missing."""
    if column.dtype.kind in "biuf":
        found = np.unique(column[~np.isnan(column)] if column.dtype.kind == "f" else column)
        return list(found[np.isfinite(found)] if found.dtype.kind == "f" else found)
    distinct: dict[str, Any] = {}
    for value in column.tolist():
        if not is_missing(value):
            distinct.setdefault(text_of(value), value)
    return list(distinct.values())


def _attribute(name: str, column: NDArray[Any]) -> Attribute:
    values = _values(column)
    if column.dtype.kind == "f":
        has_missing = bool(np.isnan(column).any())
    else:
        has_missing = column.dtype.kind not in "biu" and any(map(is_missing, column.tolist()))
    missing = "missing" if has_missing else None
    numbers = _numbers(values) if column.dtype.kind != "b" else None
    if numbers is not None and (column.dtype.kind == "f" or len(numbers) > MAX_WHOLE_CATEGORIES or not _whole(numbers)):
        low, high = min(numbers), max(numbers)
        return Numeric(name, low, high if high > low else low + max(1.0, abs(low) * 1e-6), missing=missing, unreviewed=True)
    if not values:
        return Categorical(name, ["missing"], missing="missing", unreviewed=True)
    return Categorical(name, _in_order(values), missing=missing, unreviewed=True)


def _numbers(values: list[Any]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    return numbers if numbers and all(map(np.isfinite, numbers)) else None


def _whole(numbers: list[float]) -> bool:
    return all(number.is_integer() for number in numbers)


def _in_order(values: list[Any]) -> tuple[Value, ...]:
    """Distinct values, numbers by size and the rest by text."""
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    plain = [value if isinstance(value, (str, int, float)) else str(value) for value in plain]
    return tuple(sorted(plain, key=lambda v: (isinstance(v, str), text_of(v) if isinstance(v, str) else v)))
