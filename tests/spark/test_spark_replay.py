"""Neighbouring tables behind Spark, with the same answers: the same queries, the same release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow.audit import random_pairs, replay
from hedgerow.audit.algorithms import ALGORITHMS
from hedgerow.audit.neighbours import SMALL, Table
from hedgerow.audit.requests import Request, arrow_of, fit

PERSONS = replace(SMALL, person="who", rows_per_person=3)


@pytest.mark.parametrize(("number", "name"), list(enumerate(ALGORITHMS)))
def test_neighbouring_tables_behind_spark(spark: Any, number: int, name: str) -> None:
    def put(table: Table) -> tuple[Any, None]:
        rows = arrow_of(table)
        types = ", ".join(f"`{field.name}` {'double' if str(field.type) == 'double' else 'string'}" for field in rows.schema)
        return spark.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], types).repartition(3), None

    pairs = random_pairs(PERSONS if number % 2 else SMALL, 24)[number + 4 :][:1]
    settings = {"max_depth": 2} if name in ("dpdf", "diffpid3") else {}
    found = replay(Request(fit(name), settings=settings, place=put), pairs, epsilon=1, answers=["wild"])
    assert not found.violated, found
    assert found.findings[0].queries
