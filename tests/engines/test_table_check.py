"""`Schema.check`: what of a table does not fit, in Python, for its owner alone."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Numeric, Schema, Target
from hedgerow.errors import TableError, UnknownValuesWarning
from hedgerow.schema.codebook import Codebook

SCHEMA = Schema(
    (Numeric("age", 0, 100), Categorical("sex", ["f", "m"]), Numeric("since", 0, 20_000, date="%Y-%m-%d")), Target("ill", ["no", "yes"])
)
COLUMNS: dict[str, Any] = {
    "age": [30.0, None, -1.0, 200.0],
    "sex": ["f", "m", "female", None],
    "since": ["2001-01-01", "soon", "1999-12-31", "2001-01-01"],
    "ill": ["no", "yes", "yess", "yes"],
}
FOUND = {"age": (1, 0, 1, 1), "sex": (1, 1, 0, 0), "since": (0, 1, 0, 0), "ill": (0, 1, 0, 0)}


def counts(found: Any) -> dict[str, tuple[int, ...]]:
    return {each.name: (each.missing, each.undeclared.total(), each.below, each.above) for each in found.columns}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, dict])
def test_a_frame_is_counted_exactly(frame: Any) -> None:
    found = SCHEMA.check(frame(COLUMNS))
    assert (found.rows, found.fits, counts(found)) == (4, False, FOUND)
    assert "sex: 1 missing, 1 undeclared or not readable, 0 below the bounds, 0 above ('female' 1)" in str(found)
    assert "for their owner alone" in str(found)


def test_missing_values_that_are_declared_stand_apart_from_what_does_not_fit() -> None:
    schema = replace(SCHEMA, attributes=tuple(replace(each, missing="missing") for each in SCHEMA.attributes))
    said = str(schema.check({**COLUMNS, "since": ["2001-01-01", None, None, "1999-12-31"], "ill": ["no", "yes", "no", None]}))
    assert "age: 0 missing, 0 undeclared or not readable, 1 below the bounds, 1 above" in said
    assert "ill: 1 missing" in said
    assert "missing as the schema declares (`missing`), which fits: age 1, sex 1, since 2" in said
    fits = schema.check({"age": [None], "sex": [None], "since": [None], "ill": ["no"]})
    assert fits.fits
    assert "every value fits\nmissing as the schema declares (`missing`), which fits: age 1, sex 1, since 1" in str(fits)
    assert "missing as" not in str(SCHEMA.check(COLUMNS))


def test_values_that_have_a_declared_branch_fit() -> None:
    """They were listed as what does not fit, predicted as "not known", and warned of, though the forest has learnt what they tell."""
    attributes = [Categorical("ward", ["a", "b"], other="other", missing="missing"), Numeric("age", 0, 100)]
    schema = Schema(attributes, Target("ill", ["no", "yes"]))
    table = {"ward": ["a", "c", "c", "d", None] * 20, "age": [30.0] * 100, "ill": ["no", "yes"] * 50}
    found = schema.check(table)
    assert found.fits
    assert "(`other`), which fits unless they are misspelled: ward 60 ('c' 40, 'd' 20)" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownValuesWarning)
        model = HedgerowClassifier(schema, epsilon=50, budget=Budget(50)).fit({**table, "ward": ["a", "c", "a", "b", None] * 20})
        told = [each.unknown for each in model.release_.explain({name: table[name][:5] for name in schema.names})]
        model.predict({**table, "ward": ["a", "c", "a", "b", None] * 20})
    assert told == [(), (), (), (), ("ward",)]
    with pytest.warns(UnknownValuesWarning, match="ward"):
        model.predict({**table, "ward": ["c"] * 100})  # more than half: perhaps another spelling
    shared = replace(schema, attributes=[replace(attributes[0], missing=None), attributes[1]])
    assert Codebook(shared, 5).elsewhere == (-1, -1)  # a missing value has the same branch
    assert Codebook(schema, 5).elsewhere == (2, -1)


def test_numbers_that_nearly_all_count_as_a_bound_are_told() -> None:
    """Another unit: 0.44 were predicted ill instead of 0.21, without a word."""
    rng = np.random.default_rng(0)
    income = rng.uniform(0, 100, 400)
    table = {"income": income, "debt": np.where(np.arange(400) < 380, 0.0, income), "ill": np.where(income > 40, "yes", "no")}
    schema = Schema([Numeric("income", 0, 200), Numeric("debt", 0, 200)], Target("ill", ["no", "yes"]))
    model = HedgerowClassifier(schema, epsilon=50, budget=Budget(50)).fit(table)
    for times, where in ((1000, "last"), (-1, "first")):
        with pytest.warns(UnknownValuesWarning, match=rf"nearly all rows are in the {where} range of income, where .*unit of the schema"):
            model.predict({**table, "income": income * times})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownValuesWarning)
        model.predict(table)  # most have no debt, as it was
        model.predict({name: np.asarray(table[name][:10]) * (1000 if name == "income" else 1) for name in schema.names})  # of few nothing


def test_labels_may_stand_apart() -> None:
    frame = pandas.DataFrame(COLUMNS)
    assert counts(SCHEMA.check(frame.drop(columns="ill"), frame["ill"])) == FOUND
    with pytest.raises(TableError, match="one label for each row"):
        SCHEMA.check(frame.drop(columns="ill"), ["no"] * 3)


def test_files_are_read_as_by_the_command(tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.parquet"):
        path = tmp_path / name
        frame = pandas.DataFrame(COLUMNS)
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
        assert counts(SCHEMA.check(path)) == counts(SCHEMA.check(str(path))) == FOUND


def test_labels_are_given_where_the_table_has_none_and_not_twice(tmp_path: Path) -> None:
    schema = Schema([Numeric("age", 0, 100)], Target("ill", ["no", "yes"]))
    assert schema.check(np.array([[30.0], [31.0]]), ["no", "yes"]).fits
    with pytest.raises(TableError, match=r"schema.check\(X, y\)"):
        schema.check(np.array([[30.0], [31.0]]))
    with pytest.raises(TableError, match="got a file and y"):
        schema.check(tmp_path / "rows.csv", ["no"])


def test_persons_are_counted_and_rows_beyond_the_limit(tmp_path: Path) -> None:
    """Persons: 7 has four rows, however its id is written, 8 has one, and two rows without an id are one person's."""
    table = pandas.DataFrame({"age": [1.0] * 7, "ill": ["no"] * 7, "id": [7.0, 7.0, 7.0, 7.0, 8.0, None, None]})
    schema = Schema([Numeric("age", 0, 100)], Target("ill", ["no", "yes"]), person="id", rows_per_person=2)
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    for each in (table, dict(table), tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        said = str(schema.check(each))
        assert "\npersons in id: 3, with more than 2 rows: 1; rows beyond that, which are not counted: 2\n" in said
    assert "persons in id: 3, with more than 4 rows: 0\n" in str(replace(schema, rows_per_person=4).check(table))
    assert "persons" not in str(SCHEMA.check(COLUMNS))


def test_a_table_that_fits_says_so() -> None:
    dates = [datetime.date(2001, 1, 1)] * 2
    found = SCHEMA.check(polars.DataFrame({"age": [1, 2], "sex": ["f", "m"], "since": dates, "ill": ["no", "yes"]}))
    assert found.fits
    assert str(found).startswith("2 rows: every value fits")


def test_booleans_where_texts_are_declared_are_undeclared() -> None:
    found = SCHEMA.check({**COLUMNS, "sex": np.array([True, False, True, True])})
    assert "('True' 3, 'False' 1)" in str(found)
