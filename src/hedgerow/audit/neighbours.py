"""Neighbouring tables: one has a row more. Each pair is aimed at a place where private-tree programs have been seen to leak.

Where the schema names persons, one table has a person more: with as many rows as are counted, all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import AuditError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.schema import Schema

DEFAULT_BINS = 5
Row = dict[str, Any]  # attribute -> value; the label under the name of the target

SMALL = Schema(
    [Categorical("a", ("0", "1")), Categorical("b", ("0", "1", "2")), Numeric("x", 0, 10, edges=(0, 5, 10))],
    Target("class", ("no", "yes")),
)  # of an audit that is given no schema: every kind of attribute, few cells


@dataclass(frozen=True, eq=False)
class Table:
    """A few rows: columns as arrays, labels, and the public schema."""

    columns: dict[str, NDArray[Any]]
    target: NDArray[Any]
    schema: Schema

    def __len__(self) -> int:
        return len(self.target)

    @classmethod
    def of(cls, rows: Sequence[Row], schema: Schema) -> Table:
        columns = {}
        for attribute in schema.attributes:
            values = [row[attribute.name] for row in rows]
            columns[attribute.name] = np.array(values, dtype=np.float64 if isinstance(attribute, Numeric) else object)
        if schema.person is not None:  # everybody has a row, but for whom a row says otherwise
            columns[schema.person] = np.array([row.get(schema.person, f"person {i}") for i, row in enumerate(rows)], dtype=object)
        return cls(columns, np.array([row[schema.target.name] for row in rows], dtype=object), schema)


@dataclass(frozen=True, eq=False)
class Pair:
    """without: D. with_row: D′, the same rows and one more (or k, those of one person more). why: what it is aimed at."""

    name: str
    why: str
    without: Table
    with_row: Table

    @classmethod
    def of(cls, name: str, why: str, rows: Sequence[Row], more: Row, schema: Schema) -> Pair:
        added = [more if schema.person is None else more | {schema.person: "one more"}] * schema.k
        return cls(name, why, Table.of(rows, schema), Table.of([*rows, *added], schema))


@dataclass(frozen=True)
class Maker:
    """How a pair is made from a schema."""

    why: str
    make: Callable[[Schema], tuple[list[Row], Row]] = field(repr=False)


def plain_row(schema: Schema, label: int = 0, **other: int) -> Row:
    """A row with the first value of every attribute, or with the one at the given place; numbers in the middle of a cell."""
    row: Row = {}
    for attribute in schema.attributes:
        place = other.get(attribute.name, 0)
        if isinstance(attribute, Numeric):
            edges = edges_of(attribute)
            row[attribute.name] = (edges[place] + edges[place + 1]) / 2
        else:
            row[attribute.name] = attribute.values[place]
    return row | {schema.target.name: schema.target.classes[label]}


def edges_of(attribute: Numeric) -> list[float]:
    """As declared; without edges those of the default, equal cells."""
    return list(attribute.edges or np.linspace(attribute.low, attribute.high, DEFAULT_BINS + 1).tolist())


def _last_value(schema: Schema) -> dict[str, int]:
    """The place of the last value of the first attribute that has a choice."""
    for attribute in schema.attributes:
        places = len(edges_of(attribute)) - 1 if isinstance(attribute, Numeric) else len(attribute.values)
        if places > 1:
            return {attribute.name: places - 1}
    raise AuditError("audit: every attribute of the schema has a single value; expected one with two or more.")


def _mixed(schema: Schema, rows: int) -> list[Row]:
    """Both of the first two classes, evenly; the last value of the first attribute goes with the second class."""
    return [plain_row(schema, label, **(_last_value(schema) if label else {})) for label in [0, 1] * (rows // 2) + [0] * (rows % 2)]


def _outside(schema: Schema) -> Row:
    """Values that the schema does not declare: text in a category, a number far outside, a class that is not there."""
    row: Row = {a.name: 10 * a.high + 1 if isinstance(a, Numeric) else "?undeclared?" for a in schema.attributes}
    return row | {schema.target.name: "?undeclared?"}


def _edge(schema: Schema) -> tuple[list[Row], Row]:
    numeric = [attribute for attribute in schema.attributes if isinstance(attribute, Numeric)]
    if not numeric:
        raise AuditError("the pair 'bin edge' needs a numeric attribute in the schema.")
    name, edges = numeric[0].name, edges_of(numeric[0])
    rows = [plain_row(schema, i % 2) | {name: edges[i % len(edges)]} for i in range(3 * len(edges))]
    return rows, plain_row(schema, 1) | {name: edges[1]}


MAKERS: dict[str, Maker] = {
    "outlier": Maker(
        "60 rows are alike; one more has another value and another class",
        lambda s: ([plain_row(s)] * 60, plain_row(s, 1, **_last_value(s))),
    ),
    "only row of a class": Maker(
        "60 rows of one class in two cells; one more is the only row of another class",
        lambda s: ([plain_row(s), plain_row(s, 0, **_last_value(s))] * 30, plain_row(s, 1)),
    ),
    "only row of a category": Maker(
        "60 rows of both classes with the same values; one more is the only row of another category",
        lambda s: ([plain_row(s, i % 2) for i in range(60)], plain_row(s, 0, **_last_value(s))),
    ),
    "purity": Maker(
        "each value has rows of one class alone; one more row makes one of them impure",
        lambda s: (_mixed(s, 60), plain_row(s, 1)),
    ),
    "threshold": Maker(
        "99 rows, one below the smallest node that is split by default; one more reaches it",
        lambda s: (_mixed(s, 99), plain_row(s, 1, **_last_value(s))),
    ),
    "empty": Maker("no rows at all; then one", lambda s: ([], plain_row(s, 1))),
    "one row": Maker("a single row; then a second one, of another class", lambda s: ([plain_row(s)], plain_row(s, 1, **_last_value(s)))),
    "bin edge": Maker("numbers exactly on the edges of cells; one more on an edge", _edge),
    "outside": Maker("one more row has values and a class that are not declared", lambda s: (_mixed(s, 20), _outside(s))),
    "balanced": Maker("200 rows, evenly mixed; one more", lambda s: (_mixed(s, 200), plain_row(s))),
}


def pairs_for(schema: Schema = SMALL, names: Sequence[str] | None = None) -> list[Pair]:
    """All pairs that the schema allows, or those that are named."""
    unknown = sorted(set(names or ()) - set(MAKERS))
    if unknown:
        raise AuditError(f"pairs: got {', '.join(unknown)}; expected some of {', '.join(MAKERS)}.")
    found = []
    for name in names or MAKERS:
        try:
            rows, more = MAKERS[name].make(schema)
        except AuditError:
            if names:
                raise
            continue
        found.append(Pair.of(name, MAKERS[name].why, rows, more, schema))
    return found
