"""The golden releases, counts and scores of tests/golden from tables in PostgreSQL, byte for byte."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from golden.cases import CASES, TABLES, check, counted_plan, scores

from hedgerow import SQLTable

pytestmark = pytest.mark.postgres
TYPES = {"i": "int8", "f": "float8", "O": "text"}  # by NumPy's kinds


def literal(value: Any) -> str:
    return "NULL" if pd.isna(value) else "'" + str(value).replace("'", "''") + "'"


def filled(database: Any, name: str) -> SQLTable:
    frame = TABLES[name].astype(dict.fromkeys(TABLES[name].select_dtypes(exclude="number"), object))
    columns = [f'"{column}" {TYPES[kind.kind]}' for column, kind in frame.dtypes.items()]
    database.do(f"CREATE TABLE {name} ({', '.join(columns)})")
    rows = ", ".join(f"({', '.join(map(literal, row))})" for row in frame.itertuples(index=False))
    database.do(f"INSERT INTO {name} VALUES {rows}")
    return SQLTable(database.address, table=f"{database.schema}.{name}")


@pytest.mark.parametrize("table", TABLES)
def test_releases(table: str, database: Any) -> None:
    place = filled(database, table)
    for name, case in CASES.items():
        if case.table == table:
            check(f"releases/{name}.json", case.bytes(place))


def test_counts_and_scores(database: Any) -> None:
    flat, persons = filled(database, "flat"), filled(database, "persons")
    check("owners/rdt-north.json", counted_plan(flat))
    check("scores.json", scores(flat, persons))
