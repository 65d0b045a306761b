"""Columns of a type that cannot hold what is declared would be counted nowhere: refused before anything is paid.

The type of a column is a public fact of its container (a data frame, a file, a database), like its name; of categories, so is theirs.
Values are not: a column of objects may hold anything, and is not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.errors import TableError
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Value, text_of
from hedgerow.schema.schema import Schema

FROM_DUCKDB = " (DuckDB's read_csv makes booleans of yes and no, unless types = {'column': 'VARCHAR'} says otherwise)"
ALL_MISSING = " (one that is all missing: make it text, astype(object) in pandas, or leave it out of the schema)"
CODE = re.compile(r"0\d+")  # text that a program may take for a number
WORDS = {"text": "text", "numbers": "numbers", "whole": "numbers", "booleans": "booleans (true, false)"}


def check_label_type(y: Any, schema: Schema) -> None:
    """y: a column as `one_column` gives it"""
    held, declared = held_by(y), {_kind(value) for value in schema.target.classes}
    if (
        held is None
        or held.replace("whole", "numbers") in declared
        or (held == "booleans" and any(text_of(value) in ("true", "false") for value in schema.target.classes))
    ):
        return
    raise TableError(
        f"labels: the column {schema.target.name!r} (y) holds {WORDS[held]}, but the schema declares the classes "
        f"{', '.join(map(repr, schema.target.classes))}: labels of another type are refused before anything is paid, whatever they "
        f"say. Nothing was spent. Predictions are the declared objects: declare them with the type that y has, or convert y (in pandas: "
        f"{_conversion(held, declared, schema.target.classes)})."
    )


def _conversion(held: str, declared: set[str], classes: Sequence[Value]) -> str:
    """What of pandas makes labels of the declared type, gaps or not."""
    if declared == {"text"} and not all(_is_number(str(value)) for value in classes):  # no number or boolean is spelled so
        return f"y.map({{…: {classes[0]!r}, …: {classes[-1]!r}}}), with your values for …"
    if declared == {"booleans"}:
        return "y.map({'True': True, 'False': False}), as your text spells them" if held == "text" else "y.map({1: True, 0: False})"
    if declared != {"numbers"}:
        return "y.astype(str)"
    if held == "booleans":
        return "y.astype(int)"
    return "pandas.to_numeric(y), where the text spells numbers; a label that is missing becomes NaN, and its row is not counted"


def check_column_types(columns: Sequence[Any], attributes: Sequence[Attribute]) -> None:
    """Refuse columns of which no value can be declared. columns: those of these attributes, as `columns_of` gives them."""
    check_code_types(columns, attributes)
    for attribute, column in zip(attributes, columns, strict=True):
        if isinstance(attribute, Categorical):
            check_values(attribute.name, attribute.values, held_by(column))
        else:
            _check_numbers(attribute, column)


def _check_numbers(attribute: Numeric, column: Any) -> None:
    """Refuse what is no number between the bounds, whatever its values are: intervals, complex numbers, and booleans where 0 and 1
    are not between them. Text may be read as a number.
    """
    native = column if isinstance(column, np.ndarray) else getattr(column, "to_native", lambda: column)()
    dtype = getattr(native, "dtype", None)
    of_categories = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    outside = held_by(column) == "booleans" and not attribute.low <= 0 < 1 <= attribute.high
    holds = (
        "intervals (of pandas.cut)"
        if str(of_categories).startswith("interval")
        else "complex numbers"
        if getattr(dtype, "kind", "") == "c"
        else "booleans"
        if outside
        else ""
    )
    if holds:
        raise TableError(
            f"column {attribute.name!r}: it holds {holds}, but the schema declares numbers from {attribute.low:g} to {attribute.high:g}: "
            "nothing could be learnt from it. Nothing was spent. Declare what the table has, or give the numbers themselves."
        )


def check_code_types(columns: Sequence[Any], attributes: Sequence[Attribute]) -> None:
    """The same for codes alone, of rows that are predicted: there another value may be new. columns: of these attributes."""
    for attribute, column in zip(attributes, columns, strict=True):
        if isinstance(attribute, Categorical):
            check_codes(attribute.name, attribute.values, held_by(column))


def check_values(name: str, values: Sequence[Value], held: str | None) -> None:
    """Refuse booleans, or numbers, where all declared values are other words: rows of such a column could only be missing.

    Text may be read as a number, so it stays allowed.
    held: what the type of the column says that it holds, one of WORDS, or None
    """
    texts = [text_of(value) for value in values]
    numbers = held in ("whole", "numbers")
    if (held == "booleans" and not {"true", "false"} & {*texts}) or (numbers and not any(map(_is_number, texts))):
        hint = FROM_DUCKDB if held == "booleans" else ALL_MISSING if held == "numbers" else ""
        raise TableError(
            f"column {name!r}: it holds {WORDS[str(held)]}, but the schema declares {', '.join(map(repr, values[:5]))}"
            f"{', …' if len(values) > 5 else ''}: no row would have a declared value. Nothing was spent. Declare the values as the table "
            f"has them, or convert the column{hint}."
        )


def check_codes(name: str, values: Sequence[Value], held: str | None) -> None:
    """Refuse numbers where codes such as '0042' are declared: a number has lost its zeros, and no row would be right."""
    codes = [value for value in values if isinstance(value, str) and CODE.fullmatch(value)]
    if codes and held in ("numbers", "whole"):
        raise TableError(
            f"column {name!r}: it holds numbers, but the schema declares codes such as {codes[0]!r}: zeros at the beginning were lost when "
            f"the table was read or written. Nothing was spent. Keep it as text: pandas.read_csv(…, dtype={{{name!r}: str}})."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kind(value: Value) -> str:
    return "text" if isinstance(value, str) else "booleans" if isinstance(value, (bool, np.bool_)) else "numbers"


def held_by(y: Any) -> str | None:
    """What its type says that it holds: one of WORDS, or None for a type that may hold anything."""
    if isinstance(y, np.ndarray):
        return {"U": "text", "S": "text", "i": "whole", "u": "whole", "f": "numbers", "b": "booleans"}.get(y.dtype.kind)
    import narwhals as nw

    if not isinstance(y, nw.Series) or getattr(nw.to_native(y), "dtype", None) == np.dtype(object):
        return None  # narwhals would look at the values of objects to name their type
    dtype: Any = y.dtype
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _held_by_categories(nw.to_native(y))
    numbers = "whole" if dtype.is_integer() else "numbers" if dtype.is_numeric() else None
    return "text" if dtype == nw.String else "booleans" if dtype == nw.Boolean else numbers


def _held_by_categories(column: Any) -> str | None:
    """By the type of the categories: of pandas they may be of any, elsewhere they are text."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    if not type(column).__module__.startswith("pandas") or categories is None:
        return "text"
    import narwhals as nw

    return held_by(nw.from_native(categories.to_series(), series_only=True))
