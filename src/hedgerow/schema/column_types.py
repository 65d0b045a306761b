"""Columns of a type that cannot hold what is declared would be counted nowhere: refused before anything is paid.

The type of a column is a public fact of its container, like its name. Values are not: a column of objects, or of categories, may hold
anything, and is not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.errors import TableError
from hedgerow.schema.attributes import Attribute, Categorical, Value, text_of
from hedgerow.schema.schema import Schema

CODE = re.compile(r"0\d+")  # text that a program may take for a number
WORDS = {"text": "text", "numbers": "numbers", "booleans": "booleans (true, false)"}


def check_label_type(y: Any, schema: Schema) -> None:
    """y: a column as `one_column` gives it"""
    held, declared = _held(y), {_kind(value) for value in schema.target.classes}
    if (
        held is None
        or held in declared
        or (held == "booleans" and any(text_of(value) in ("true", "false") for value in schema.target.classes))
    ):
        return
    raise TableError(
        f"labels: the column {schema.target.name!r} (y) holds {WORDS[held]}, but the schema declares the classes "
        f"{', '.join(map(repr, schema.target.classes))}: no row would be of a declared class. Nothing was spent. Predictions are the "
        "declared objects: declare them with the type that y has, or convert y."
    )


def check_column_types(columns: Sequence[Any], attributes: Sequence[Attribute]) -> None:
    """Refuse columns of which no value can be declared: booleans, or whole numbers, where all declared values are other words.

    Text may be read as a number, and a column of floats may be all missing, so these stay allowed.
    columns: those of these attributes, as `columns_of` gives them
    """
    check_code_types(columns, attributes)
    for attribute, column in zip(attributes, columns, strict=True):
        if not isinstance(attribute, Categorical):
            continue
        held, texts = _held(column), [text_of(value) for value in attribute.values]
        never = held == "booleans" and not {"true", "false"} & {*texts}
        if never or (held == "numbers" and _whole(column) and not any(map(_is_number, texts))):
            raise TableError(
                f"column {attribute.name!r}: it holds {WORDS[str(held)]}, but the schema declares "
                f"{', '.join(map(repr, attribute.values[:5]))}{', …' if len(attribute.values) > 5 else ''}: no row would have a declared "
                "value. Nothing was spent. Declare the values as the table has them, or convert the column."
            )


def check_code_types(columns: Sequence[Any], attributes: Sequence[Attribute]) -> None:
    """Refuse numbers where codes such as '0042' are declared: a number has lost its zeros, and no row would be right.

    columns: those of these attributes, as `columns_of` gives them
    """
    for attribute, column in zip(attributes, columns, strict=True):
        values = attribute.values if isinstance(attribute, Categorical) else ()
        codes = [value for value in values if isinstance(value, str) and CODE.fullmatch(value)]
        if codes and _held(column) == "numbers":
            raise TableError(
                f"column {attribute.name!r}: it holds numbers, but the schema declares codes such as {codes[0]!r}: zeros at the beginning "
                "were lost when the table was read. Nothing was spent. Read it as text: pandas.read_csv(…, dtype=str), or "
                f"dtype={{{attribute.name!r}: str}}."
            )


def _whole(column: Any) -> bool:
    """Whether its type holds whole numbers alone."""
    return column.dtype.kind in "iu" if isinstance(column, np.ndarray) else bool(column.dtype.is_integer())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kind(value: Value) -> str:
    return "text" if isinstance(value, str) else "booleans" if isinstance(value, (bool, np.bool_)) else "numbers"


def _held(y: Any) -> str | None:
    """What its type says that it holds: "text", "numbers", "booleans", or None for a type that may hold anything."""
    if isinstance(y, np.ndarray):
        return {"U": "text", "S": "text", "i": "numbers", "u": "numbers", "f": "numbers", "b": "booleans"}.get(y.dtype.kind)
    import narwhals as nw

    if not isinstance(y, nw.Series) or getattr(nw.to_native(y), "dtype", None) == np.dtype(object):
        return None  # narwhals would look at the values of objects to name their type
    dtype = y.dtype
    return "text" if dtype == nw.String else "booleans" if dtype == nw.Boolean else "numbers" if dtype.is_numeric() else None
