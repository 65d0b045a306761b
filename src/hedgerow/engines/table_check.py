"""What of a table does not fit its schema, counted exactly: for the owner's eyes, before anything is paid. Nothing of it is released.

As a draft it looks at the rows themselves, so what it says is as private as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.files import TableFile
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, is_missing, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import CategoricalCoder, Coder, NumericCoder
from hedgerow.schema.columns import objects
from hedgerow.schema.dates import EPOCH, day_of
from hedgerow.schema.schema import Schema

SHOWN = 3  # undeclared values of a column that are named


@dataclass(frozen=True)
class ColumnCheck:
    """Exact counts of one column. undeclared: values that are not declared, or cannot be read as a number or a date"""

    name: str
    missing: int
    undeclared: Counter[str]
    below: int = 0
    above: int = 0

    @property
    def fits(self) -> bool:
        return not (self.missing or self.undeclared or self.below or self.above)

    def line(self) -> tuple[str, ...]:
        """name, missing, undeclared, below, above, which values are undeclared"""
        named = ", ".join(f"{text!r} {count:,}" for text, count in self.undeclared.most_common(SHOWN))
        more = f" and {len(self.undeclared) - SHOWN:,} others" if len(self.undeclared) > SHOWN else ""
        return (self.name, *(f"{n:,}" for n in (self.missing, self.undeclared.total(), self.below, self.above)), named + more)


def check_table(path: Any, schema: Schema) -> tuple[int, tuple[ColumnCheck, ...]]:
    """The number of rows, and what does not fit in each column; the target is the last. Reads a file, as a draft does."""
    names = [*schema.names, schema.target.name]
    file = TableFile(path, [*names, *([] if schema.person is None else [schema.person])], dialect=schema.csv)
    columns = file.text_columns(names)
    entries: tuple[Attribute, ...] = (*schema.attributes, Categorical(schema.target.name, schema.target.classes))
    found = []
    for entry, coder in zip(entries, Codebook(schema).coders, strict=True):
        dates = isinstance(entry, Numeric) and file.columns[entry.name].startswith(("DATE", "TIMESTAMP"))
        found.append(_checked(entry, coder, _dates(columns[entry.name]) if dates else columns[entry.name]))
    return len(columns[schema.target.name]), tuple(found)


def _checked(entry: Attribute, coder: Coder, column: NDArray[Any]) -> ColumnCheck:
    missing = np.fromiter(map(is_missing, column.tolist()), dtype=bool, count=len(column))
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
    return ColumnCheck(entry.name, int(missing.sum()), Counter(map(str, column[strange & ~missing].tolist())), *beyond)


def _dates(column: NDArray[Any]) -> NDArray[Any]:
    """Dates of a type of their own, which are read as days however the schema writes them."""
    days = [None if is_missing(value) else day_of(value[:10], "%Y-%m-%d") for value in column.tolist()]
    return objects([value if day is None else EPOCH + timedelta(days=int(day)) for value, day in zip(column.tolist(), days, strict=True)])
