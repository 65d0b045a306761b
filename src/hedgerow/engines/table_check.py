"""What of a table does not fit its schema, counted exactly: for the owner's eyes, before anything is paid. Nothing of it is released.

As a draft it looks at the rows themselves, so what it says is as private as they are.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.draft import as_array
from hedgerow.engines.draft_columns import DECIMAL_COMMAS, decimal_commas
from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.engines.person_ids import person_column, person_numbers
from hedgerow.engines.telling import hints_of
from hedgerow.errors import TableError
from hedgerow.inference.coverage import WORTH_SAYING
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, is_missing, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import CategoricalCoder, Coder, NumericCoder
from hedgerow.schema.column_types import check_label_type
from hedgerow.schema.columns import columns_of, objects, one_column
from hedgerow.schema.dates import EPOCH, day_of
from hedgerow.schema.schema import Schema

SHOWN = 3  # undeclared values of a column that are named
EYES_ALONE = "This is an exact look at the rows, for their owner alone: not for publication. It costs no ε, because nothing is released."


@dataclass(frozen=True)
class ColumnCheck:
    """Exact counts of one column. undeclared: values that are not declared, or cannot be read as a number or a date; known: how many can

    expected: missing values have a branch of their own; elsewhere: so have undeclared ones
    """

    name: str
    missing: int
    undeclared: Counter[str]
    below: int = 0
    above: int = 0
    known: int = 0
    expected: bool = False
    elsewhere: bool = False

    @property
    def unreadable(self) -> bool:
        """Whether there are values, and none of them is declared or can be read."""
        return bool(self.undeclared) and not self.elsewhere and not self.known

    @property
    def unexpected(self) -> int:
        """Missing values that have no branch."""
        return 0 if self.expected else self.missing

    @property
    def fits(self) -> bool:
        return not (self.unexpected or (self.undeclared and not self.elsewhere) or self.below or self.above)

    @property
    def which(self) -> str:
        """The values that are undeclared, in words."""
        named = ", ".join(f"{text!r} {count:,}" for text, count in self.undeclared.most_common(SHOWN))
        return named + (f" and {len(self.undeclared) - SHOWN:,} others" if len(self.undeclared) > SHOWN else "")

    def line(self) -> tuple[str, ...]:
        """name, missing without a branch, undeclared, below, above, which values are undeclared"""
        return (self.name, *(f"{n:,}" for n in (self.unexpected, self.undeclared.total(), self.below, self.above)), self.which)


@dataclass(frozen=True)
class TableCheck:
    """Exact counts of a table: private, for the owner alone. The target is the last of the columns.

    persons: where the schema names them, what their number is and how many rows are beyond `rows_per_person`, in words
    hints:   whether there are fewer or more rows than declared, which columns tell the class nearly alone, and which follow from others
    """

    rows: int
    columns: tuple[ColumnCheck, ...]
    persons: str = ""
    hints: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return all(column.fits for column in self.columns)

    @property
    def misfits(self) -> list[tuple[str, ...]]:
        """The lines of the columns that do not fit."""
        return [column.line() for column in self.columns if not column.fits]

    @property
    def expected(self) -> str:
        """How many values are missing, or not listed, in columns that declare a branch for them, in words; "" without any."""
        missing = ", ".join(f"{column.name} {column.missing:,}" for column in self.columns if column.expected and column.missing)
        others = "; ".join(
            f"{each.name} {each.undeclared.total():,} ({each.which})" for each in self.columns if each.elsewhere and each.undeclared
        )
        said = [f"missing as the schema declares (`missing`), which fits: {missing}"] if missing else []
        said += (
            [f"not listed, and counted as the schema declares (`other`), which fits unless they are misspelled: {others}"] if others else []
        )
        return "\n".join(said)

    @property
    def unreadable(self) -> str:
        """Why a fit of the table would be in vain, in words; "" where that is not so."""
        target, found = self.columns[-1], [column for column in self.columns[:-1] if column.unreadable]
        if not self.rows:
            return "no row would be counted: there is none. Is it the right file?"
        if not target.known:
            return f"no row would be counted: no value of {target.name!r} is a declared class. Correct one of them."
        if not found:
            return ""
        names = ", ".join(column.name for column in found)
        commas = any(decimal_commas(column.undeclared) for column in found)
        return f"no value can be read, or is declared, in: {names}. " + (
            f"{DECIMAL_COMMAS[0].upper()}{DECIMAL_COMMAS[1:]}." if commas else "Correct the table or the schema."
        )

    def __repr__(self) -> str:
        lines = [
            f"  {name}: {missing} missing, {undeclared} undeclared or not readable, {below} below the bounds, {above} above"
            + (f" ({named})" if named else "")
            for name, missing, undeclared, below, above, named in self.misfits
        ]
        head = f"{self.rows:,} rows" + (": values that do not fit:" if lines else ": every value fits" if self.rows else "")
        return "\n".join([head, *lines, *filter(None, (self.expected, self.persons, *self.hints, self.unreadable)), EYES_ALONE])


def check_rows(table: Any, schema: Schema, labels: Any = None) -> TableCheck:
    """`Schema.check`: of a file, or of a data frame or mapping, whose labels may stand apart."""
    if isinstance(table, (str, os.PathLike, CSVTable)):
        if labels is not None:
            raise TableError("check: got a file and y; expected a file with its target column, or rows and y.")
        return check_table(table, schema)
    if labels is None and isinstance(table, np.ndarray):
        raise TableError("check: got an array without labels; expected them as y: schema.check(X, y).")
    codebook, target = Codebook(schema), schema.target.name
    columns = columns_of(table, schema.names, dates=schema.dates)
    columns.append(columns_of(table, [target])[0] if labels is None else labels)
    check_label_type(one_column(columns[-1], target), schema)  # as a fit would
    entries: tuple[Attribute, ...] = (*schema.attributes, Categorical(target, schema.target.classes))
    arrays = [as_array(column) for column in columns]
    if len({len(array) for array in arrays}) > 1:
        raise TableError("check: rows and labels are not equally many; expected one label for each row.")
    unnamed = schema.person is None or isinstance(table, np.ndarray)
    persons = "" if unnamed else _persons(person_column(table, schema.person or ""), schema)
    hints = _sizes(len(arrays[-1]), schema) + hints_of(schema, dict(zip((*schema.names, target), arrays, strict=True)), arrays[-1])
    return TableCheck(len(arrays[-1]), tuple(map(_checked, entries, codebook.coders, arrays)), persons, hints)


def check_table(path: Any, schema: Schema) -> TableCheck:
    """What does not fit in each column of a file, which is read as a draft reads it."""
    names = [*schema.names, schema.target.name, *([] if schema.person is None else [schema.person])]
    file = TableFile(path, names, dialect=schema.csv)
    columns = file.text_columns(names)
    entries: tuple[Attribute, ...] = (*schema.attributes, Categorical(schema.target.name, schema.target.classes))
    found = []
    for entry, coder in zip(entries, Codebook(schema).coders, strict=True):
        if isinstance(entry, Numeric) and file.columns[entry.name].startswith(("DATE", "TIMESTAMP")):
            columns[entry.name] = _dates(columns[entry.name])
        found.append(_checked(entry, coder, columns[entry.name]))
    persons = "" if schema.person is None else _persons(columns[schema.person], schema)
    labels = columns[schema.target.name]
    return TableCheck(len(labels), tuple(found), persons, _sizes(len(labels), schema) + hints_of(schema, columns, labels))


def _sizes(rows: int, schema: Schema) -> tuple[str, ...]:
    """A sentence where the table is of another size than is declared. Of persons some rows may not be counted."""
    if schema.rows is None or schema.person is not None or abs(rows - schema.rows) <= WORTH_SAYING * schema.rows:
        return ()
    return (
        f"the schema declares {schema.rows:,} rows (`rows`), and this table has {rows:,}: a fit plans for the declared number, and what "
        "is less seems to be missing. Declare that of the table that is learnt from, if it is public, or leave it out.",
    )


def _persons(ids: Any, schema: Schema) -> str:
    """Rows without an id are one person's."""
    counts = np.unique(person_numbers(ids, schema.person or ""), return_counts=True)[1]
    many, k = counts[counts > schema.k], schema.k
    beyond = f"; rows beyond that, which are not counted: {int(many.sum()) - k * len(many):,}" if len(many) else ""
    return f"persons in {schema.person}: {len(counts):,}, with more than {k} rows: {len(many):,}{beyond}"


def _checked(entry: Attribute, coder: Coder, column: NDArray[Any]) -> ColumnCheck:
    missing = where_missing(column)
    if isinstance(entry, Numeric) and isinstance(coder, NumericCoder):
        numbers = coder.numbers(column)
        strange = np.isnan(numbers)
        ends = entry.cell_edges(1)
        beyond = int((numbers < ends[0]).sum()), int((numbers > ends[-1]).sum())
    else:
        assert isinstance(coder, CategoricalCoder)
        known = coder.code_of_text
        strange = np.fromiter((text_of(value) not in known for value in column.tolist()), dtype=bool, count=len(column))
        beyond = 0, 0
    undeclared = Counter(map(str, column[strange & ~missing].tolist()))
    known_values = int((~strange & ~missing).sum())
    branches = {"expected": getattr(entry, "missing", None) is not None, "elsewhere": getattr(entry, "other", None) is not None}
    return ColumnCheck(entry.name, int(missing.sum()), undeclared, *beyond, known_values, **branches)


def where_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """column: as `as_array` gives it"""
    return np.fromiter(map(is_missing, column.tolist()), dtype=bool, count=len(column))


def _dates(column: NDArray[Any]) -> NDArray[Any]:
    """Dates of a type of their own, which are read as days however the schema writes them."""
    days = [None if is_missing(value) else day_of(value[:10], "%Y-%m-%d") for value in column.tolist()]
    return objects([value if day is None else EPOCH + timedelta(days=int(day)) for value, day in zip(column.tolist(), days, strict=True)])
