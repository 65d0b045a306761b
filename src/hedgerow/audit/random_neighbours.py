"""Neighbouring tables at random: any rows that a table may hold, one row or one person more, anywhere in it.

Values are declared, missing, not declared, on an edge, or of another type. Of persons some have more rows than are counted, and rows are
often alike, so that those of one person end as those of the next begin: what is kept of one must not depend on the other (PROOF.md, U2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.neighbours import Pair, Row, Table, edges_of
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.schema import Schema

SIZES = (0, 1, 2, 5, 12, 30, 80, 250)  # rows, or persons, of a table, in turn
WHY = "rows of any kind; one more, or one person more, anywhere"


def random_pairs(schema: Schema, count: int, seed: int = 0) -> list[Pair]:
    """`count` pairs of neighbours, of tables from no row to some hundred."""
    return [_pair(schema, i, np.random.default_rng([seed, i])) for i in range(count)]


def _pair(schema: Schema, number: int, rng: np.random.Generator) -> Pair:
    size = SIZES[number % len(SIZES)]
    pool = [_row(schema, rng, strange=0.15) for _ in range(int(rng.choice([2, 2, 3, 8, 60])))]  # few: many rows are alike
    rows = list(_persons(schema, pool, size, rng)) if schema.person else [pool[int(rng.integers(len(pool)))] for _ in range(size)]
    if schema.person is None:
        more = [_row(schema, rng, strange=0.3) if rng.random() < 0.5 else pool[0]]
    else:
        known = {row[schema.person] for row in rows}
        who = f"p{rng.integers(10 * size + 10)}" if rng.random() < 0.8 else None  # all rows without an id are one person's
        more = [] if who in known else _rows_of(who, schema, pool, rng)
        if not more:  # that one is here already: the pair is with and without all of their rows
            more, rows = [row for row in rows if row[schema.person] == who], [row for row in rows if row[schema.person] != who]
    larger = list(rows)
    for row in more:
        larger.insert(int(rng.integers(len(larger) + 1)), row)
    if number % 2:  # a table is a multiset: the order of its rows tells nothing
        larger = [larger[int(i)] for i in rng.permutation(len(larger))]
    return Pair(f"random {number + 1}", WHY, _table(rows, schema), _table(larger, schema))


def _persons(schema: Schema, pool: Sequence[Row], size: int, rng: np.random.Generator) -> Iterator[Row]:
    names: list[Any] = [f"p{i}" for i in rng.choice(10 * size + 10, size=size, replace=False)]
    for who in [*names, *([None] if size > 4 else [])]:
        yield from _rows_of(who, schema, pool, rng)


def _rows_of(who: Any, schema: Schema, pool: Sequence[Row], rng: np.random.Generator) -> list[Row]:
    """Of one person: few, as many as are counted, or more; often all alike, as the first or last rows of others are."""
    assert schema.person is not None
    many = int(rng.choice([1, schema.k, schema.k + 1, schema.k + 3, 2 * schema.k + 4]))
    picks = rng.integers(len(pool), size=many) if rng.random() < 0.6 else np.full(many, rng.integers(len(pool)))
    return [pool[int(i)] | {schema.person: who} for i in picks]


def _row(schema: Schema, rng: np.random.Generator, strange: float) -> Row:
    row: Row = {}
    for attribute in schema.attributes:
        if isinstance(attribute, Numeric):
            usual: list[Any] = [float(rng.uniform(attribute.low, attribute.high)), *edges_of(attribute)]
            odd: list[Any] = [None, math.nan, math.inf, -math.inf, attribute.low - 1, attribute.high + 1, 1e300, "no number", ""]
        else:
            usual, odd = list(attribute.values), [None, "", "?undeclared?", 10**20, -0.5, True]
        row[attribute.name] = _one(odd if rng.random() < strange else usual, rng)
    classes = [*schema.target.classes]
    return row | {schema.target.name: _one([None, "?undeclared?", ""] if rng.random() < strange else classes, rng)}


def _one(values: Sequence[Any], rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _table(rows: Sequence[Row], schema: Schema) -> Table:
    """Columns of objects: no type is guessed from the values that happen to be there."""
    columns = {name: _objects([row[name] for row in rows]) for name in (*schema.names, *([schema.person] if schema.person else []))}
    return Table(columns, _objects([row[schema.target.name] for row in rows]), schema)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array
