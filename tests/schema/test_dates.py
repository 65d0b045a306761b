"""Dates count as days, the same wherever the rows are; edges alone are enough."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import HedgerowClassifier, Numeric, Schema, SQLTable, Target
from hedgerow.engines.files import TableFile
from hedgerow.engines.opening import open_place
from hedgerow.errors import SchemaError, TableError
from hedgerow.inference.text import values_in_words
from hedgerow.queries.leaf_counts import LeafCounts
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import TreeBuilder

DAYS = ["2020-01-01", "2020-06-30", "2021-12-31", "1999-01-01", "2020-2-3", " 2020-02-03", "", "?", "2020-13-01", "18300", "2020-01-01x"]
SCHEMA = Schema([Numeric("day", "2020-01-01", "2021-12-31", date="%Y-%m-%d", missing="none")], Target("y", ["a", "b"]))  # type: ignore[arg-type]
CODEBOOK = Codebook(SCHEMA, 10)
LABELS = ["a", "b"] * 5 + ["a"]


def test_days_are_numbers_and_what_is_no_day_is_missing() -> None:
    codes = CODEBOOK.encode({"day": np.array(DAYS, dtype=object)})[:, 0].tolist()
    first, mid, last, before, short, blank, empty, mark, wrong, number, trailing = codes
    assert (first, last, before) == (0, 9, 0)
    assert mid == 2
    assert short == blank == 0
    assert {empty, mark, wrong, trailing} == {10}
    assert number == int((18300 - 18262) / (730 / 10))  # a number of days since 1970


def test_every_place_gives_the_same_codes(tmp_path: Path) -> None:
    expected = CODEBOOK.encode({"day": np.array(DAYS, dtype=object)})
    frame = pd.DataFrame({"day": DAYS, "y": LABELS})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for place in ("rows.csv", "rows.parquet"):
        codes = TableFile(tmp_path / place, ["day", "y"]).codes(CODEBOOK)
        assert (codes == expected).all(), place
    for other in (frame, pl.from_pandas(frame)):
        assert (CODEBOOK.encode(other) == expected).all()


def test_columns_that_have_the_type_of_dates(tmp_path: Path) -> None:
    days: list[Any] = [datetime.date(2020, 1, 1), datetime.date(2021, 5, 5), None, datetime.date(1950, 1, 1)] * 3
    expected = CODEBOOK.encode({"day": days})
    assert expected[:4, 0].tolist() == [0, 6, 10, 0]
    frame = pl.DataFrame({"day": days, "y": ["a", "b"] * 6})
    timed = frame.with_columns(pl.col("day").cast(pl.Datetime))
    for each in (frame, timed, frame.to_pandas(), timed.to_pandas(), {"day": timed["day"].to_numpy()}):
        assert (CODEBOOK.encode(each) == expected).all()
    for name, each in (("dates", frame), ("times", timed)):
        each.write_parquet(tmp_path / f"{name}.parquet")
        codes = TableFile(tmp_path / f"{name}.parquet", ["day", "y"]).codes(CODEBOOK)
        assert (codes == expected).all(), name
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as database:
        database.execute(f"CREATE TABLE rows AS SELECT * FROM '{tmp_path / 'times.parquet'}'")
    there = open_place(SQLTable(str(tmp_path / "rows.duckdb"), table="rows"), CODEBOOK, 1)
    here = open_place(tmp_path / "dates.parquet", CODEBOOK, 1)
    builder = TreeBuilder(CODEBOOK.sizes)
    builder.split(0, 0)
    query = LeafCounts([builder.build()])
    assert all((a == b).all() for a, b in zip(there.sums(query), here.sums(query), strict=True))


def test_digits_alone_are_dates_before_they_are_numbers() -> None:
    schema = Schema([Numeric("day", "2020-01-01", "2021-12-31", date="%Y%m%d")], Target("y", ["a", "b"]))  # type: ignore[arg-type]
    codebook = Codebook(schema, 10)
    as_text = codebook.encode({"day": np.array(["20200101", "20211231", "20210505"], dtype=object)})
    assert (codebook.encode({"day": np.array([20200101, 20211231, 20210505])}) == as_text).all()


def test_a_column_of_dates_that_is_not_declared_says_what_to_do() -> None:
    schema = Schema([Numeric("day", 0, 1)], Target("y", ["a", "b"]))
    with pytest.raises(TableError, match='date = "%Y-%m-%d"'):
        Codebook(schema).encode(pl.DataFrame({"day": [datetime.date(2020, 1, 1)]}))


def test_the_file_has_dates_and_the_release_keeps_them(tmp_path: Path) -> None:
    text = SCHEMA.to_toml()
    assert "low = 2020-01-01\nhigh = 2021-12-31\n" in text
    assert Schema.from_toml(text) == SCHEMA
    days = [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(400)]
    model = HedgerowClassifier(SCHEMA, epsilon=5).fit({"day": days}, ["a" if i % 12 < 6 else "b" for i in range(400)])
    model.release_.save(tmp_path / "forest.json")
    again = type(model.release_).load(tmp_path / "forest.json")
    assert again.schema == SCHEMA
    assert (again.predict({"day": days}) == model.predict({"day": days})).all()


def test_people_see_dates() -> None:
    assert values_in_words(CODEBOOK, 0, [3, 4]) == "2020-08-07 to 2020-12-31"
    assert SCHEMA.attributes[0].bounds_text == "2020-01-01 to 2021-12-31"  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", ["%Y-%m", "%d.%m.%y", "", "%Y-%m-%d %Z", "%Y%Y%m%d", 7])
def test_formats_that_name_no_day_are_refused(wrong: Any) -> None:
    with pytest.raises(SchemaError, match=r"%Y-%m-%d"):
        Numeric("day", 0, 1, date=wrong)


def test_edges_alone_are_enough() -> None:
    assert Numeric("age", edges=[0, 18, 65, 120]) == Numeric("age", 0, 120, edges=[0, 18, 65, 120])
    schema = Schema.from_toml('[target]\nname = "y"\nclasses = [0, 1]\n[attributes.age]\nkind = "numeric"\nedges = [0, 18, 65, 120]\n')
    assert schema.attributes[0] == Numeric("age", 0, 120, edges=[0, 18, 65, 120])
    assert Schema.from_toml(schema.to_toml()) == schema
    with pytest.raises(SchemaError, match="low and high, or edges"):
        Numeric("age")
    with pytest.raises(SchemaError, match="from low"):
        Numeric("age", 1, 120, edges=[0, 18, 65, 120])


WRITTEN = st.one_of(st.text(max_size=14), st.from_regex(r"[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2}", fullmatch=True))


@given(st.lists(st.one_of(WRITTEN, st.integers(), st.none(), st.booleans(), st.floats())))
def test_each_value_is_read_by_itself(values: list[Any]) -> None:
    together = CODEBOOK.encode({"day": np.array([*values, "2020-01-01"], dtype=object)})[:-1]
    alone = [CODEBOOK.encode({"day": np.array([value], dtype=object)})[0, 0] for value in values]
    assert together[:, 0].tolist() == alone


@pytest.mark.parametrize(
    "values", [[True, "true", "True", 1, "1"], [18300, "18300", 18300.0, "18300.0", b"18300"], [None, "", float("nan")]]
)
def test_a_value_is_read_the_same_whatever_stands_beside_it(values: list[Any]) -> None:
    """Values that look alike as text may be different numbers: what one row holds must not decide what another's is."""
    alone = [CODEBOOK.encode({"day": np.array([value], dtype=object)})[0, 0] for value in values]
    for order in (slice(None), slice(None, None, -1)):
        column = np.empty(len(values), dtype=object)
        column[:] = values[order]
        assert CODEBOOK.encode({"day": column})[:, 0].tolist() == alone[order]
