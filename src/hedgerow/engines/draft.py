"""A first schema, read from the rows. It is private until a person has reviewed it: every entry is marked so."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.draft_columns import (
    AS_CODES,
    AS_COUNTS,
    AS_DATES,
    AS_MISSING,
    AS_OTHER,
    DECIMAL_COMMAS,
    EITHER,
    EMPTY,
    FAR_APART,
    GROWING,
    KEPT_MANY,
    MANY,
    MAX_TEXT_CATEGORIES,
    MAX_WHOLE_CATEGORIES,
    SINGLE,
    WITH_COMMAS,
    WITH_PERCENT,
    Drafted,
    Values,
    drafted,
    in_order,
    numbers_of,
    plain_values,
    typed,
)
from hedgerow.engines.files import CSVTable, TableFile, delimiter_named
from hedgerow.engines.telling import hints_of
from hedgerow.errors import DraftWarning, TableError
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Target, is_missing, text_of
from hedgerow.schema.coders import Coder
from hedgerow.schema.column_types import held_by
from hedgerow.schema.columns import check_in_memory, columns_of, objects, one_column
from hedgerow.schema.schema import Schema

MANY_CLASSES = 20  # of a target: more are asked about


def draft_of(
    table: Any,
    target: Any,
    person: str | None = None,
    rows_per_person: int | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
) -> Schema:
    """`Schema.draft`: of a data frame, a mapping or a file, with one warning that says what was read, changed and left out."""
    keep, drop = ([names] if isinstance(names, str) else names for names in (keep, drop))
    if isinstance(table, (str, os.PathLike, CSVTable)):
        schema = draft_from_file(Path(table) if isinstance(table, str) else table, target, person, rows_per_person, keep, drop)  # type: ignore[arg-type]
    else:
        check_in_memory(table)
        names = column_names(table)
        columns = dict(zip(names, columns_of(table, names, any_type=True), strict=True))
        label = target if isinstance(target, str) else str(getattr(target, "name", None) or "target")
        if not isinstance(target, str):
            columns[label] = one_column(target, label)
        orders = {name: order for name, column in columns.items() if (order := _own_order(column)) is not None}
        arrays = {name: as_array(column) for name, column in columns.items()}
        schema = draft(arrays, label, person, rows_per_person, keep, drop, orders)
        schema = replace(schema, target=_as_held(schema.target, columns[label]))
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in (*schema.hints, *schema.notes))
    warnings.warn(
        f"the draft was read from the rows and is as private as they are.{notes} Compare each entry with what is publicly known, then "
        "schema.accept(); until then no ε can be claimed.",
        DraftWarning,
        stacklevel=3,
    )
    return schema


def draft_from_file(
    path: str | Path | CSVTable,
    target: str,
    person: str | None = None,
    rows_per_person: int | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
) -> Schema:
    """A draft schema of a file. It keeps the dialect of a CSV."""
    file = TableFile(path, [])
    names = list(file.columns)
    if len(names) == 1 and target in names[0] and target != names[0]:
        before, _, after = names[0].partition(target)
        sign = (before[-1:] or after[:1]).strip()
        if sign and not sign.isalnum() and sign != "_":
            raise TableError(f"table {file.name!r}: as it was read, its header is one column, {names[0]}. {delimiter_named(sign)}")
    _require(target, names, f"table {file.name!r}")
    columns = {name: _objects(column) for name, column in file.text_columns(names).items()}
    schema = draft(columns, target, person, rows_per_person, keep, drop)
    return replace(schema, csv=path.dialect if isinstance(path, CSVTable) else None)


def draft(
    columns: Mapping[str, NDArray[Any]],
    target: str,
    person: str | None = None,
    rows_per_person: int | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> Schema:
    """A draft of named columns, one of which is the target; its notes say what was done.

    orders: the values of columns that have an order of their own, in that order
    """
    names, orders = list(columns), orders or {}
    named = [(target, "target"), *([(person, "person")] if person is not None else [])]
    for name, what in (*named, *((each, "keep") for each in keep), *((each, "drop") for each in drop)):
        _require(name, names, f"{what}: the table")
    _check_dropped(target, person, keep, drop)
    learnt = {name: column for name, column in columns.items() if name not in (target, person, *drop)}
    found = {name: drafted(name, column, name in keep, orders.get(name)) for name, column in learnt.items()}
    if any(what == DECIMAL_COMMAS for each in found.values() for what, _ in each.said):
        found = {name: drafted(name, column, name in keep, orders.get(name), decimal=True) for name, column in learnt.items()}
    attributes = [each.attribute for each in found.values() if each.attribute is not None]
    if not attributes:
        raise TableError("table: no column is left to learn from; every one looks like an identifier, has one value alone, or is empty.")
    labels = Values.of(columns[target])
    classes = _target(target, labels, orders.get(target))
    schema = Schema(attributes, classes, person=person, rows_per_person=rows_per_person)
    return replace(schema, notes=tuple(_notes(found, target, labels, person)), hints=hints_of(schema, columns, columns[target]))


def _check_dropped(target: str, person: str | None, keep: Collection[str], drop: Collection[str]) -> None:
    """Refuse to leave out what the draft needs, or what it is asked to keep."""
    if target in drop:
        raise TableError(f"drop: got {target!r}, which is the target; expected columns to learn from. Leave it out of drop.")
    if person is not None and person in drop:
        raise TableError(
            f"drop: got {person!r}, which says whose row it is (person), not learnt from; expected other columns. Leave it out of drop."
        )
    both = [name for name in keep if name in drop]
    if both:
        raise TableError(f"keep and drop: both name {', '.join(map(repr, both))}; expected each column in one of them.")


def _own_order(column: Any) -> list[Any] | None:
    """The values of an ordered categorical of pandas, or of an Enum of polars, in their order."""
    dtype = getattr(column.to_native() if hasattr(column, "to_native") else column, "dtype", None)
    return list(dtype.categories) if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum" else None  # type: ignore[union-attr]


def _target(name: str, labels: Values, order: Sequence[Any] | None) -> Target:
    if not labels.values:
        raise TableError(f"table: the target column {name!r} has no values to draft classes from.")
    numbers = numbers_of(labels.values)
    amounts = numbers is not None and len(numbers) > MAX_WHOLE_CATEGORIES and not all(number.is_integer() for number in numbers)
    if amounts or len(labels.values) > MAX_TEXT_CATEGORIES:
        raise TableError(
            f"table: the target column {name!r} has too many different values, or amounts; expected a few classes. "
            "If it is a number, put it into classes first (for example below and above a limit)."
        )
    whole = numbers is not None and labels.gaps and all(isinstance(value, float) and value.is_integer() for value in labels.values)
    values = [int(value) for value in labels.values] if whole else typed(labels.values)  # floats, for the missing ones among them
    classes = in_order(values) if order is None else plain_values(order)
    return Target(name, classes, unreviewed=True)


def _as_held(target: Target, column: Any) -> Target:
    """Classes that were read as numbers or booleans, as a column of text spells them: labels of another type would be refused."""
    held, values = held_by(column), [value for value in as_array(column).tolist() if not is_missing(value)]
    if held != "text" and not (held is None and all(isinstance(value, str) for value in values)):  # text of pandas before version 3
        return target
    spelled: dict[str, str] = {}  # the shortest of several spellings, such as 1 and 1.0
    for text in sorted({value for value in values if isinstance(value, str)}, key=lambda text: (len(text), text)):
        spelled.setdefault(text_of(text), text)
    return replace(target, classes=tuple(spelled.get(text_of(value), text_of(value)) for value in target.classes))


def _notes(found: Mapping[str, Drafted], target: str, labels: Values, person: str | None) -> list[str]:
    """What was done to which columns, one sentence each."""
    said: dict[str, list[str]] = {}
    for name, each in found.items():
        if each.attribute is None:
            said.setdefault(each.why, []).append(name)
        for what, where in each.said:
            said.setdefault(what, []).append(where)
    notes = []
    if MANY in said:
        notes.append(
            "left out, since they look like identifiers (text with very many different values, or whole numbers of which each row or "
            f"person has its own) and may identify people: {', '.join(said[MANY])}. To learn from one of them, draft again with "
            "keep=['COLUMN']" + ("" if person else "; if one of them names persons who may have several rows, with person='COLUMN'")
        )
    if EMPTY in said:
        notes.append(f"left out, since nothing stands in them: {', '.join(said[EMPTY])}")
    if SINGLE in said:
        notes.append(
            f"left out, since every row has the same value there, which tells nothing: {', '.join(said[SINGLE])}. Where other values could "
            "occur, draft again with keep=['COLUMN'] and declare them"
        )
    for what in (
        KEPT_MANY, AS_MISSING, WITH_COMMAS, DECIMAL_COMMAS, WITH_PERCENT, AS_OTHER, AS_COUNTS, GROWING, FAR_APART, AS_CODES, AS_DATES,
    ):  # fmt: skip
        if what in said:
            notes.append(f"{what}: {'; '.join(said[what])}")
    if EITHER in said:
        notes.append(f"these dates fit two formats, check which is right: {'; '.join(said[EITHER])}")
    if len(labels.values) == 1:
        notes.append(f"{target} has one value alone, {labels.values[0]!r}: add the other classes, or there is nothing to learn")
    if len(labels.values) > MANY_CLASSES:
        notes.append(
            f"{target} has {len(labels.values):,} values, each a class of its own: with so many, few rows tell about each. If it is a "
            "number, put it into classes first (for example below and above a limit)"
        )
    if labels.gaps:
        notes.append(f"rows without a value of {target} are not counted")
    if any(isinstance(each.attribute, Numeric) for each in found.values()):
        notes.append("bounds are rounded outward; values beyond them count as the nearest bound")
    return notes


def _require(name: str, names: list[str], where: str) -> None:
    if name not in names:
        alike = [each for each in names if each.lower() == str(name).lower()]
        more = f" and {len(names) - 40} more" if len(names) > 40 else ""
        near = alike or difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        raise TableError(
            f"{where} has no column {name!r}; its columns are {', '.join(names[:40])}{more}."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )


def _objects(column: NDArray[Any]) -> NDArray[Any]:
    return column if column.dtype == object else column.astype(object)


# ---------------------------------------------------------------- for models without privacy, whose schema follows the rows


def draft_from_table(table: Any, labels: Any, target: str) -> Schema:
    """All columns of a data frame, mapping or array as they are, for what claims no ε; the columns of an array are named x0, x1, …"""
    names = column_names(table)
    columns = zip(names, columns_of(table, names), strict=True)
    attributes = [_as_it_is(name, as_array(column)) for name, column in columns]
    present = _values(as_array(labels))
    if not present:
        raise TableError(f"table: the target column {target!r} has no values to draft classes from.")
    return Schema(attributes, Target(target, in_order(present), unreviewed=True))


def column_names(table: Any) -> list[str]:
    if isinstance(table, np.ndarray):
        return [f"x{j}" for j in range(table.shape[1])]
    names = [str(name) for name in (table.keys() if isinstance(table, dict) else table.columns)]
    if not names:
        raise TableError("table: it has no columns.")
    if hasattr(table, "column_names"):  # pyarrow's `columns` are the data
        names = list(table.column_names)
    return names


class _Any(Coder):
    """Any column as an array; no privacy is claimed for what is drafted from it."""

    def from_text_series(self, series: Any) -> NDArray[Any]:
        return objects(series.to_list())

    def with_missing(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        return objects([None if gone else value for value, gone in zip(values.tolist(), missing, strict=True)])


def as_array(column: Any) -> NDArray[Any]:
    return _Any().whole_column(one_column(column, "table", any_type=True))


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


def _as_it_is(name: str, column: NDArray[Any]) -> Attribute:
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
    return Categorical(name, in_order(values), missing=missing, unreviewed=True)


def _numbers(values: list[Any]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    return numbers if numbers and all(map(np.isfinite, numbers)) else None


def _whole(numbers: list[float]) -> bool:
    return all(number.is_integer() for number in numbers)
