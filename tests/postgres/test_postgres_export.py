"""Forests exported as SQL predict in PostgreSQL as their releases do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from export_cases import DAY, HOSTILE, NAMES, NUMBERS, odd_rows, of_yes_and_no, release_of

import hedgerow

pytestmark = pytest.mark.postgres
ROWS = 10_000


def literal(value: Any, number: bool) -> str:
    """A number that is NaN stays one; text that is missing is NULL."""
    return "NULL" if value is None or (pd.isna(value) and not number) else "'" + str(value).replace("'", "''") + "'"


def filled(database: Any, frame: pd.DataFrame, day_type: str = "text") -> None:
    types = {**dict.fromkeys(NUMBERS, "float8"), DAY: day_type}
    columns = [f"{quoted(name)} {types.get(name, 'text')}" for name in frame.columns]
    database.do(f"CREATE TABLE {quoted('the rows')} (id int8, {', '.join(columns)})")
    for start in range(0, len(frame), 2_000):
        part = frame.iloc[start : start + 2_000].itertuples(index=False)
        numbers = [name in NUMBERS for name in frame.columns]
        rows = ", ".join(f"({start + i}, {', '.join(map(literal, row, numbers))})" for i, row in enumerate(part))
        database.do(f"INSERT INTO {quoted('the rows')} VALUES {rows}")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def predicted(database: Any, name: str) -> tuple[list[Any], np.ndarray[Any, Any]]:
    table = f'"{database.schema}"."the rows"'
    rows = sorted(database.do(str(hedgerow.export(release_of(name), "sql", dialect="postgresql", table=table, keep=["id"]))))
    return [row[1] for row in rows], np.array([row[2:] for row in rows], dtype=float)


def test_every_forest(database: Any) -> None:
    frame = odd_rows(ROWS)
    filled(database, frame)
    for name in NAMES:
        labels, shares = predicted(database, name)
        assert np.abs(shares - release_of(name).predict_proba(frame)).max() < 1e-9, name
        assert np.mean(np.array(labels, dtype=object) == release_of(name).predict(frame)) > 0.999, name


def test_dates_of_a_type_of_their_own(database: Any) -> None:
    frame = odd_rows(500)
    days = pd.to_datetime(frame[DAY].str.strip(), format="%d.%m.%Y", errors="coerce")
    typed = frame.assign(**{DAY: days.dt.date.astype(object).where(days.notna(), None)})
    filled(database, typed, "date")
    assert np.abs(predicted(database, "rdt")[1] - release_of("rdt").predict_proba(typed)).max() < 1e-9


def test_by_default_the_attributes_stand_beside_the_predictions(database: Any) -> None:
    filled(database, odd_rows(5))
    text = hedgerow.export(release_of("rdt"), "sql", dialect="postgresql", table=f'"{database.schema}"."the rows"')
    assert all(len(row) == len(HOSTILE.names) + 1 + 3 for row in database.do(str(text)))


def test_booleans_where_texts_are_declared_are_an_error(database: Any) -> None:
    """They were taken for undeclared values, without a word."""
    release = of_yes_and_no()
    table, want = f'"{database.schema}"."paid rows"', release.predict_proba({"paid": ["no", "yes"], "old": [False, True]})
    text = str(hedgerow.export(release, "sql", dialect="postgresql", table=table, keep=["old"]))
    database.do('CREATE TABLE "paid rows" (paid text, old boolean)')
    database.do("""INSERT INTO "paid rows" VALUES ('no', false), ('yes', true)""")
    assert np.abs(np.array([row[2:] for row in sorted(database.do(text))], dtype=float) - want).max() < 1e-9
    database.do("""ALTER TABLE "paid rows" ALTER paid TYPE boolean USING paid = 'yes'""")
    with pytest.raises(Exception, match="column paid holds booleans"):
        database.do(text)
