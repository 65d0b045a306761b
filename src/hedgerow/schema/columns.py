"""Tables as columns: every kind that users have, by the declared names, refused by type or shape and never by a value."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError

COMPUTED = {  # tables whose rows are still to be computed, by package and class, and how they are
    ("polars", "LazyFrame"): "collect",
    ("duckdb", "DuckDBPyRelation"): "df",
    ("dask", "DataFrame"): "compute",
    ("pyspark", "DataFrame"): "toPandas",
}


def columns_of(table: Any, names: Sequence[str], any_type: bool = False, dates: Collection[str] = ()) -> list[Any]:
    """The declared columns of a data frame (by name), of a mapping (by name) or of a 2-D array (by position).

    dates: those that are declared as dates, and may have a type of dates
    """
    check_in_memory(table)
    if isinstance(table, (str, os.PathLike)):
        raise TableError(
            "table: got the path of a file; expected rows. Read it first; `predict` of an estimator and `hedgerow predict` take a file."
        )
    if isinstance(table, Mapping):
        require(names, [name for name in table if isinstance(name, str)])
        columns = [one_column(table[name], name, any_type, name in dates) for name in names]
        if len({len(column) for column in columns}) > 1:
            raise TableError("table: its columns do not all have the same number of rows.")
        return columns
    if not isinstance(table, np.ndarray) and hasattr(table, "columns"):
        import narwhals as nw

        _check_once(names_of(table), names)
        frame = nw.from_native(table, eager_only=True)
        place = {str(name): i for i, name in enumerate(frame.columns)}  # pandas may name columns by numbers
        require(names, place)
        return [one_column(frame[:, place[name]], name, any_type, name in dates) for name in names]
    array = rows_as_array(table, names)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise TableError(
            f"table: got an array of shape (rows{''.join(f', {n}' for n in array.shape[1:])}); expected 2 dimensions, with "
            f"one column for each declared attribute ({len(names)}: {', '.join(names)})."
        )
    return [array[:, j] for j in range(len(names))]


def names_of(table: Any) -> list[str]:
    """The names of the columns of a mapping or a data frame; of pyarrow's tables `columns` are the values."""
    return [str(name) for name in (table if isinstance(table, Mapping) else getattr(table, "column_names", table.columns))]


def check_in_memory(table: Any) -> None:
    """Refuse a table whose rows are still to be computed, and say how they are."""
    package, name = type(table).__module__.split(".")[0].lstrip("_"), type(table).__name__
    if (package, name) in COMPUTED:
        raise TableError(
            f"table: got a {name} of {package}, whose rows are not computed yet; expected a table in memory. Nothing was spent. Call "
            f".{COMPUTED[package, name]}() first, and give what it returns."
        )


def check_fitted_order(fitted: Any, names: Sequence[str], table: Any) -> None:
    """Refuse rows without names for a model that was fitted on columns in another order than the schema's: they may stand in either.

    fitted: the names of the columns in `fit`, in their order, or None
    """
    order = [] if fitted is None else [str(name) for name in fitted]
    if sorted(order) != sorted(names) or order == list(names):
        return
    listed = isinstance(table, (list, tuple)) and not (table and isinstance(table[0], Mapping))  # rows that are mappings have names
    if listed or (hasattr(table, "__array__") and not hasattr(table, "columns")):
        first = [f"{', '.join(each[:4])}{', …' if len(each) > 4 else ''}" for each in (order, names)]
        got = "rows" if isinstance(table, (list, tuple)) else "an array"
        raise TableError(
            f"table: got {got}, whose columns have no names; the model was fitted on {first[0]}, and the schema declares {first[1]}, "
            "another order. Nothing was spent. Give a data frame or a mapping, whose columns are found by their names."
        )


def absent_columns(table: Any, names: Sequence[str]) -> list[str]:
    """The declared columns that a table with named columns does not have; at least one must be there."""
    if isinstance(table, Mapping):
        have = set(table)
    elif not isinstance(table, np.ndarray) and hasattr(table, "columns"):
        have = set(names_of(table))
    else:
        return []  # an array has its columns by position: all of them
    absent = [name for name in names if name not in have]
    if len(absent) == len(names):
        require(names, have)
    return absent


def labels_column(y: Any, target: str) -> Any:
    """The labels, one for each row."""
    if isinstance(y, str):
        raise TableError(
            f"y: got a text; expected the labels, one for each row. Nothing was spent. Leave y out where the table has the target column "
            f"{target!r}, or give that column itself, such as table[{target!r}]."
        )
    if not isinstance(y, np.ndarray) and hasattr(y, "columns"):  # a data frame
        if len(y.columns) != 1:
            raise TableError(
                f"y: got a table with {len(y.columns)} columns; expected the labels, one for each row. Nothing was spent. Give the column "
                f"that holds them, such as y[{target!r}]."
            )
        return columns_of(y, names_of(y))[0]
    return one_column(y, target)


def check_labels_named(y: Any, table: Any, names: Sequence[str], target: str) -> None:
    """Refuse a column that is one to learn from, or another than the target of a table that has it. names: of the columns to learn from"""
    columns = names_of(y) if not isinstance(y, np.ndarray) and hasattr(y, "columns") else []
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
    have = names_of(table) if isinstance(table, Mapping) or hasattr(table, "columns") else []
    if not isinstance(name, str) or name == target or name not in (*names, *(have if target in have else ())):
        return
    if target not in have:
        raise TableError(
            f"y: got the column {name!r}, which the schema declares as one to learn from, and {target!r} as the target. Nothing was spent. "
            f"Give the column {target!r}; if these are its labels under another name, y.rename({target!r})."
        )
    what = "the schema declares it as one to learn from" if name in names else "the table has it beside the target"
    raise TableError(
        f"y: got the column {name!r}; {what}, and {target!r} is what the schema declares as the target, which the table has. Nothing was "
        f"spent. Give y=table[{target!r}], or leave y out."
    )


def check_row_order(y: Any, table: Any) -> None:
    """Refuse labels whose row numbers are those of the table in another order: rows and labels are put together by their places. Of
    numbers alone, which pandas made: what else an index holds may be about people.
    """
    own: Any = getattr(y, "index", None)
    other: Any = getattr(table, "index", None)
    if not (has_row_numbers(own) and has_row_numbers(other)) or len(own) != len(other) or own.equals(other):
        return
    if own.is_unique and own.sort_values().equals(other.sort_values()):
        raise TableError(
            "y: its row numbers (the index of pandas) are those of X in another order, and each label would go to the row in its place. "
            "Nothing was spent. Put them in the same order, y.loc[X.index]; or, if they are meant as they stand, give y.to_numpy()."
        )


def has_row_numbers(index: Any) -> bool:
    return getattr(index, "name", "") is None and getattr(getattr(index, "dtype", None), "kind", "") in "iu"


def one_column(column: Any, name: str, any_type: bool = False, is_date: bool = False) -> Any:
    """A column with one value for each row, of a type that is read value by value; refused by its type, never by a value.

    any_type: dates and whatever else a column of ids may hold are not refused here
    is_date:  nor are dates
    """
    import narwhals as nw

    if isinstance(column, (list, tuple)):
        return objects(column)
    if type(column).__module__.startswith("pandas") and not hasattr(column, "to_frame"):  # an extension array
        import pandas

        column = pandas.Series(column)
    if type(column).__module__.startswith("pyarrow") and not hasattr(column, "chunks"):
        import pyarrow

        column = pyarrow.chunked_array([column])
    series = None if type(column) is np.ndarray else nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        refused = (nw.Date, nw.Datetime, nw.Duration, nw.Time, nw.List, nw.Array, nw.Struct, nw.Binary, nw.Int128, nw.UInt128)
        dated = isinstance(series.dtype, (nw.Date, nw.Datetime))
        if isinstance(series.dtype, refused) and not any_type and not (dated and is_date):
            declare = ' Or declare it as a date: kind = "numeric", date = "%Y-%m-%d".' if dated else ""
            raise TableError(
                f"column {name!r}: got the type {series.dtype}; expected text, numbers or booleans. Convert it first.{declare}"
            )
        return series
    if not hasattr(column, "__array__") or getattr(column, "ndim", 1) != 1 or isinstance(column, np.matrix):
        raise TableError(f"column {name!r}: expected one value for each row (one dimension); flatten it first.")
    return column if isinstance(column, np.ndarray) else np.asarray(column)


def rows_as_array(table: Any, names: Sequence[str]) -> NDArray[Any]:
    """An array as it is; other sequences of rows as objects, each cell by itself: of a row that is a mapping, by name.

    NumPy would find one type for all rows of a list, so that a single row could change how all others are read. A row that
    is not of the right width has missing cells only.
    """
    width = len(names)
    if isinstance(table, np.ndarray) and not isinstance(table, np.matrix):
        return table
    if hasattr(table, "__array__"):
        return np.asarray(table)
    if not isinstance(table, Sequence):
        raise TableError(f"table: got {type(table).__name__}; expected a data frame, a mapping of columns or a dense array of rows.")
    array = np.empty((len(table), width), dtype=object)
    for i, row in enumerate(table):
        try:
            if isinstance(row, Mapping):
                cells = [row.get(name) for name in names]
            else:
                cells = list(row) if isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, str) else []
            if len(cells) == width:
                for j, cell in enumerate(cells):
                    array[i, j] = cell
        except Exception:  # whatever a row does when it is looked at, it is a row with missing cells
            array[i, :] = None
    return array


def _check_once(have: list[str], names: Sequence[str]) -> None:
    twice = [name for name in names if have.count(name) > 1] if len(set(have)) < len(have) else []
    if twice:
        raise TableError(f"table: the declared column {twice[0]!r} is there more than once; expected it once. Nothing was spent. Drop one.")


def require(names: Sequence[str], have: Iterable[Any]) -> None:
    """Refuse a table that lacks declared columns, and name those that may be meant."""
    have = [str(name) for name in have]
    absent = [name for name in names if name not in have]
    if absent:
        others = [name for name in have if name not in names]
        lower = {name.lower(): name for name in reversed(others)}
        near = {name: [lower[name.lower()]] if name.lower() in lower else get_close_matches(name, others, 1, 0.7) for name in absent}
        alike = [f"{match[0]!r} for {name!r}" for name, match in near.items() if match]
        coded = [name for name in absent if sum(other.startswith(f"{name}_") for other in others) > 1]
        raise TableError(
            f"table: the declared column(s) {', '.join(absent)} are missing; the schema declares {', '.join(names)}. "
            + (f"Did you mean {', '.join(alike[:3])}? " if alike else "")
            + (f"If the columns {coded[0]}_… were made of it (pandas.get_dummies), give it as it was, in text. " if coded else "")
            + "Rename the column in the table or in the schema."
        )


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array
