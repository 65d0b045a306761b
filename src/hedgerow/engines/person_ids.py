"""Who is one person: one value of a column, compared by its text, so that 7, 7.0 and "7" are one. Rows without an id are one person's.

The same for columns in memory, where persons get numbers, and for relations in DuckDB, where they stay texts.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.schema.attributes import is_missing
from hedgerow.schema.columns import columns_of, one_column

MISSING = -1  # the number of the person without an id, where numbers are given in the order of their first rows


def person_column(table: Any, name: str) -> Any:
    """The column of ids of a data frame or mapping, for `person_numbers`. It may have types that no attribute may have, such as dates."""
    if isinstance(table, np.ndarray) or not (hasattr(table, "columns") or hasattr(table, "keys")):
        raise TableError(
            f"table: the schema names the column {name!r} of persons, and an array has no names. Give a data frame or a mapping of columns."
        )
    return columns_of(table, [name], any_type=True)[0]


def person_numbers(column: Any, name: str = "person") -> NDArray[np.int64]:
    """A number for each row, the same for rows of one person: those with the same text as id. Missing ids have one number.

    Which way a column is read depends on its type alone; what a value is never raises an error, and never changes who others are.
    """
    if column is None:
        raise TableError(f"table: the schema names the column {name!r} of persons; give their ids with the rows.")
    column = one_column(column, name, any_type=True)
    try:
        numbers = _array_numbers(column) if isinstance(column, np.ndarray) else _series_numbers(column)
    except Exception:
        numbers = None  # whatever a library says about a value is not repeated
    if numbers is None:
        raise TableError(
            f"column {name!r}: its type, {_type_words(column)}, cannot tell persons apart; expected text, numbers, dates or UUIDs. "
            "Convert it to text first."
        )
    return numbers


def _type_words(column: Any) -> str:
    return str(column.dtype)[:60]


def _array_numbers(column: NDArray[Any]) -> NDArray[np.int64] | None:
    if isinstance(column, np.ma.MaskedArray):
        return _object_numbers(column.tolist())  # None where it is masked
    kind = column.dtype.kind
    if kind in "biu":
        return column.astype(np.uint64).view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64)
    if kind in "mM":
        return column.astype(column.dtype.newbyteorder("=")).view(np.int64)  # NaT is one number
    if kind == "f":
        with np.errstate(all="ignore"):
            numbers = column.astype(np.float64)
        numbers[np.isnan(numbers)] = np.nan
        return (numbers + 0.0).view(np.int64)  # −0.0 becomes 0.0
    if kind == "U":
        return _text_numbers(column)
    if kind == "S":
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    return _object_numbers(column.tolist()) if kind == "O" else None


def _text_numbers(column: NDArray[Any]) -> NDArray[np.int64] | None:
    import pyarrow as pa

    try:
        return _arrow_numbers(pa.chunked_array([pa.array(column, type=pa.large_string())]))
    except Exception:  # text that is not Unicode; the slow way gives numbers to the same persons
        return np.unique(column, return_inverse=True)[1].astype(np.int64)


def _series_numbers(series: Any) -> NDArray[np.int64] | None:
    """A pandas, polars or pyarrow column. As in `coders.py`, objects are read one by one: no library may guess their type."""
    import narwhals as nw

    native, dtype = series.to_native(), series.dtype
    if isinstance(dtype, (nw.List, nw.Array, nw.Struct, nw.Int128, nw.UInt128)):
        return None
    if type(native).__module__.startswith("pandas"):
        if native.dtype == np.dtype(object) or getattr(native.dtype, "storage", "") == "python":
            return _object_numbers(np.asarray(native, dtype=object).tolist())
        if isinstance(dtype, (nw.Categorical, nw.Enum)):
            of_category = _object_numbers([*native.cat.categories.tolist(), None])
            return np.asarray(of_category[native.cat.codes.to_numpy()])
    if isinstance(dtype, nw.Object):
        return _object_numbers(series.to_list())
    if dtype.is_integer() and series.null_count() == 0:
        return _array_numbers(np.asarray(series.to_numpy()))
    if dtype.is_float():
        return _array_numbers(np.asarray(series.to_numpy(), dtype=np.float64))
    arrow = native if type(native).__module__.startswith("pyarrow") else series.to_arrow()
    return _arrow_numbers(arrow)


def _arrow_numbers(column: Any) -> NDArray[np.int64] | None:
    """By Arrow's table of distinct values; nulls and empty text are one person."""
    import pyarrow as pa

    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if isinstance(chunked.type, pa.BaseExtensionType):  # a UUID is 16 bytes by another name
        chunked = pa.chunked_array([chunk.storage for chunk in chunked.chunks], type=chunked.type.storage_type)
    if pa.types.is_dictionary(chunked.type):
        chunked = pa.chunked_array([chunk.dictionary_decode() for chunk in chunked.chunks], type=chunked.type.value_type)
    if pa.types.is_floating(chunked.type):
        return _array_numbers(np.asarray(chunked.to_numpy(), dtype=np.float64))
    if pa.types.is_null(chunked.type):
        return np.full(len(chunked), MISSING, dtype=np.int64)
    if pa.types.is_nested(chunked.type):
        return None
    found = chunked.dictionary_encode()
    parts = [chunk.indices.fill_null(MISSING).to_numpy(zero_copy_only=False) for chunk in found.chunks]
    numbers = np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)
    kind = chunked.type
    if found.num_chunks and any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        empty = found.chunk(found.num_chunks - 1).dictionary.index("").as_py()
        if empty >= 0:
            numbers[numbers == empty] = MISSING
    return numbers


def _object_numbers(values: list[Any]) -> NDArray[np.int64]:
    """Any objects, one by one; the number of a text is that of its first row."""
    known: dict[str, int] = {}

    def number(value: Any) -> int:
        text = value if type(value) is str else _id_text(value)
        return known.setdefault(text, len(known)) if text else MISSING

    return np.fromiter(map(number, values), dtype=np.int64, count=len(values))


def _id_text(value: Any) -> str:
    """The text by which ids are compared, "" for a missing one: a whole number in whatever type is that whole number."""
    try:
        if is_missing(value):
            return ""
        if not isinstance(value, str) and hasattr(value, "item"):  # a NumPy scalar
            value = value.item()
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (float, Decimal)) and value == int(value):
            return str(int(value))
        return str(value)
    except Exception:  # whatever an object does when it is looked at: infinity is no whole number, others are no id
        return str(value) if isinstance(value, (float, Decimal)) else ""


# ---------------------------------------------------------------- the same in DuckDB

_PLAIN = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|VARINT|BIGNUM|BOOLEAN|VARCHAR|JSON|UUID|DATE|TIME(STAMP)?(_S|_MS|_NS)?( WITH TIME ZONE)?"
    r"|TIMETZ|TIMESTAMPTZ|BLOB|BIT|ENUM\(.*\))",
    re.DOTALL,
)


def person_sql(quoted_column: str, duckdb_type: str, name: str = "person") -> str:
    """A DuckDB expression for the text of an id, '' for a missing one: rows of one person have the same, of two persons different ones."""
    kind = duckdb_type.upper().strip()
    nested = kind.endswith("]")
    if kind in ("FLOAT", "DOUBLE", "REAL") or (re.fullmatch(r"DECIMAL(\(.*\))?", kind) and not nested):
        whole = f"CAST(CAST({quoted_column} AS HUGEINT) AS VARCHAR)"
        other = f"CAST({quoted_column} AS VARCHAR)"
        if kind.startswith("DECIMAL"):
            return f"CASE WHEN {quoted_column} IS NULL THEN '' WHEN {quoted_column} = trunc({quoted_column}) THEN {whole} ELSE {other} END"
        small = f"abs({quoted_column}) < 1e38 AND {quoted_column} = trunc({quoted_column})"
        return f"CASE WHEN {quoted_column} IS NULL OR isnan({quoted_column}) THEN '' WHEN {small} THEN {whole} ELSE {other} END"
    if nested or not _PLAIN.fullmatch(kind):
        raise TableError(
            f"column {name!r}: its type, {duckdb_type[:60]}, cannot tell persons apart; expected text, numbers, dates or UUIDs. "
            "Convert it to text first."
        )
    return f"coalesce(CAST({quoted_column} AS VARCHAR), '')"


def person_changes(ids: Any, before: str | None = None) -> tuple[NDArray[np.bool_], str | None]:
    """Which rows of a sorted Arrow column of texts begin a person, and the last text. `before` is the last text of the batch before.

    Texts come from `person_sql`, so that none is null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if not len(column):
        return np.zeros(0, dtype=bool), before
    differs = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    first = before is None or column[0].as_py() != before
    return np.concatenate([[first], differs]).astype(bool), column[len(column) - 1].as_py()
