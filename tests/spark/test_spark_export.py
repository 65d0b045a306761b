"""Forests exported as SQL predict in Spark as their releases do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from export_cases import DAY, NAMES, odd_rows, of_yes_and_no, release_of

import hedgerow

ROWS = 10_000


@pytest.fixture(scope="module")
def rows(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    frame = odd_rows(ROWS)
    place = tmp_path_factory.mktemp("odd") / "rows.parquet"
    frame.assign(id=range(ROWS)).to_parquet(place, index=False)
    spark.read.parquet(str(place)).createOrReplaceTempView("odd_rows")
    return frame


def predicted(spark: Any, name: str, table: str) -> tuple[list[Any], np.ndarray[Any, Any]]:
    text = hedgerow.export(release_of(name), "sql", dialect="spark", table=table, keep=["id"])
    found = sorted(tuple(row) for row in spark.sql(text).collect())
    return [row[1] for row in found], np.array([row[2:] for row in found], dtype=float)


@pytest.mark.parametrize("name", NAMES)
def test_every_forest(name: str, spark: Any, rows: pd.DataFrame) -> None:
    labels, shares = predicted(spark, name, "odd_rows")
    assert np.abs(shares - release_of(name).predict_proba(rows)).max() < 1e-9
    assert np.mean(np.array(labels, dtype=object) == release_of(name).predict(rows)) > 0.999


def test_dates_of_a_type_of_their_own(spark: Any, tmp_path: Any) -> None:
    frame = odd_rows(500)
    days = pd.to_datetime(frame[DAY].str.strip(), format="%d.%m.%Y", errors="coerce")
    typed = frame.assign(**{DAY: days.dt.date.astype(object).where(days.notna(), None)})
    typed.assign(id=range(500)).to_parquet(tmp_path / "typed.parquet", index=False)
    spark.read.parquet(str(tmp_path / "typed.parquet")).createOrReplaceTempView("typed")
    assert np.abs(predicted(spark, "rdt", "typed")[1] - release_of("rdt").predict_proba(typed)).max() < 1e-9


def test_booleans_where_texts_are_declared_are_an_error(spark: Any) -> None:
    """They were taken for undeclared values, without a word."""
    release = of_yes_and_no()
    text = hedgerow.export(release, "sql", dialect="spark", table="paid_rows", keep=["old"])
    spark.createDataFrame([("no", False), ("yes", True)], "paid string, old boolean").createOrReplaceTempView("paid_rows")
    want = release.predict_proba({"paid": ["no", "yes"], "old": [False, True]})
    assert np.abs(np.array([tuple(row)[2:] for row in sorted(spark.sql(text).collect())], dtype=float) - want).max() < 1e-9
    spark.createDataFrame([(False, False), (True, True)], "paid boolean, old boolean").createOrReplaceTempView("paid_rows")
    with pytest.raises(Exception, match="column paid holds booleans"):
        spark.sql(text).collect()
