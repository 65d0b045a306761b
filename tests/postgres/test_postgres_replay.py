"""Every private estimator on neighbouring tables of a PostgreSQL server, with the same answers: the same queries, the same release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow import SQLTable
from hedgerow.audit import random_pairs, replay
from hedgerow.audit.algorithms import ALGORITHMS
from hedgerow.audit.neighbours import SMALL, Table
from hedgerow.audit.requests import OTHERS, Request, arrow_of, fit

pytestmark = pytest.mark.postgres
UNITS = {"row": SMALL, "person": replace(SMALL, person="who"), "person, k = 3": replace(SMALL, person="who", rows_per_person=3)}


def place_in(database: Any) -> Any:
    def literal(value: Any) -> str:
        return "NULL" if value is None else f"'{value}'"

    def put(table: Table) -> tuple[Any, None]:
        rows = arrow_of(table)
        types = ["float8" if str(field.type) == "double" else "text" for field in rows.schema]
        names = [f'"{name}"' for name in rows.column_names]
        database.do("DROP TABLE IF EXISTS rows")
        database.do(f"CREATE TABLE rows ({', '.join(map(' '.join, zip(names, types, strict=True)))})")
        lines = ", ".join(f"({', '.join(map(literal, line.values()))})" for line in rows.to_pylist())
        if lines:
            database.do(f"INSERT INTO rows VALUES {lines}")
        return SQLTable(database.address, table=database.name("rows")), None

    return put


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", [*ALGORITHMS, "evaluate"])
def test_neighbouring_tables_of_a_server(database: Any, name: str, unit: str) -> None:
    ask, times = OTHERS.get(name) or (fit(name), 1)
    place = place_in(database)
    number = 8 * list(UNITS).index(unit) + list(ALGORITHMS).index(name) if name in ALGORITHMS else 5
    pairs = random_pairs(UNITS[unit], 24)[number % 24 :][:1]
    found = replay(Request(ask, place=place), pairs, epsilon=times, answers=["as drawn"])
    assert not found.violated, found
    assert found.findings[0].queries
