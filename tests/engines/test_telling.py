"""Columns that tell the class nearly alone are named by a draft and by a check, before anything is paid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.engines.telling import repeated_columns, telling_columns
from hedgerow.errors import DraftWarning, TableError
from hedgerow.schema.toml import same_columns

ROWS = 600


def loans() -> pd.DataFrame:
    """`rejected` is the class in other words, `letter` its date, `income` what is known beforehand."""
    rng = np.random.default_rng(0)
    income = rng.normal(50, 15, ROWS).round(1)
    approved = (income + rng.normal(0, 12, ROWS) > 40).astype(int)
    letter = np.where(approved == 1, rng.uniform(1, 30, ROWS), rng.uniform(60, 90, ROWS)).round(1)
    row = np.arange(ROWS) + 0.5  # of each value one row: nothing can be told from the others
    return pd.DataFrame({"income": income, "rejected": 1 - approved, "letter": letter, "row": row, "approved": approved})


def test_a_draft_and_a_check_name_them(tmp_path: Path) -> None:
    table = loans()
    with pytest.warns(DraftWarning, match=r"Nearly tell approved alone: rejected, letter\. .*drop=\['rejected', 'letter'\]"):
        schema = Schema.draft(table, "approved")
    assert "nearly tell" not in schema.to_toml()  # in no file, where it would stay when entries are accepted
    assert "nearly tell" not in schema.accept().to_toml()
    assert schema.accept().hints == ()
    reviewed = [replace(each, unreviewed=False) for each in schema.attributes]
    assert replace(schema, attributes=reviewed, target=replace(schema.target, unreviewed=False)).hints == ()  # of a schema to publish
    assert same_columns(schema.accept(), Schema.from_toml(schema.accept().to_toml()))
    assert "nearly tell approved alone: rejected, letter" in repr(schema.check(table))
    assert "nearly tell" in repr(schema.check(table.drop(columns="approved"), table["approved"]))
    table.to_csv(tmp_path / "loans.csv", index=False)
    assert "nearly tell approved alone: rejected, letter" in "".join(schema.check(tmp_path / "loans.csv").hints)
    with pytest.warns(DraftWarning) as said:
        less = Schema.draft(table, "approved", drop=["rejected", "letter"])
    assert "Nearly tell" not in str(said[0].message)
    assert less.names == ("income", "row")
    assert less.check(table).hints == ()
    with pytest.raises(TableError, match=r"drop: the table has no column 'reject'.*Did you mean 'rejected'"):
        Schema.draft(table, "approved", drop=["reject"])


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_a_number_that_a_limit_makes_the_class_of_is_named(share: float) -> None:
    """A low weight at birth beside the weight: the cut lay inside a cell."""
    rng = np.random.default_rng(0)
    weight = rng.normal(7, 1.5, 1000).round(2)
    table = pd.DataFrame(
        {"weight": weight, "age": rng.integers(15, 45, 1000), "low": np.where(weight < np.quantile(weight, share), "y", "n")}
    )
    with pytest.warns(DraftWarning, match=r"Nearly tell low alone: weight\."):
        Schema.draft(table, "low")
    table.loc[:9, "weight"] = np.nan  # rows without a number cannot be told by it
    with pytest.warns(DraftWarning) as said:
        Schema.draft(table, "low")
    assert ("Nearly tell low alone: weight" in str(said[0].message)) == (share > 0.05)


def test_a_column_that_tells_one_class_of_several_is_named() -> None:
    """Whether somebody is very happy, beside how happy: as exact, and of one class alone; alone it got a quarter of the rows right more."""
    rng = np.random.default_rng(1)
    happy = rng.choice(["very", "pretty", "not too"], ROWS, p=[0.3, 0.55, 0.15])
    table = pd.DataFrame({"very": (happy == "very").astype(int), "age": rng.integers(18, 90, ROWS), "happy": happy})
    with pytest.warns(DraftWarning, match=r"Nearly tell happy alone: very \(whether it is very\)\. If.*drop=\['very'\]"):
        schema = Schema.draft(table, "happy")
    table.loc[:40, "very"] = 1 - table.loc[:40, "very"]
    assert telling_columns(schema, table, table["happy"]) == {}


def test_columns_that_follow_from_others_are_named() -> None:
    """The year as marks of single years, a square, the same in groups: what they say was counted several times. The first one stays."""
    rng = np.random.default_rng(2)
    year, age = rng.choice([1994, 1996, 1998], ROWS), rng.integers(18, 90, ROWS)
    table = pd.DataFrame(
        {"year": year, "y96": (year == 1996).astype(int), "age": age, "squared": age**2, "other": rng.integers(0, 3, ROWS)}
    )
    table["old"], table["ill"] = np.where(age > 60, "old", "young"), rng.choice(["no", "yes"], ROWS)
    with pytest.warns(
        DraftWarning, match=r"Nearly follow from other columns: y96 \(from year\), squared \(from age\), old \(from age\)\. They"
    ):
        schema = Schema.draft(table, "ill")
    assert any("y96 (from year)" in hint for hint in schema.check(table).hints)
    with pytest.warns(DraftWarning) as said:
        Schema.draft(table, "ill", drop=["y96", "squared", "old"])
    assert "follow from" not in str(said[0].message)
    table.loc[:99, "old"] = "old"  # a third of the young ones: it says something else
    assert "old" not in repeated_columns(schema, table)
    many = pd.DataFrame({name: np.arange(ROWS) for name in ("id", "again")}).astype(str)
    wide = Schema([Categorical(name, [str(i) for i in range(20_000)]) for name in many], schema.target)
    assert repeated_columns(wide, many) == {}  # their table would have 400 million cells
    assert repeated_columns(schema, table.assign(age=np.where(age > 80, np.inf, age)))["y96"] == "year"
    rare = table.assign(y96=0)
    rare.loc[:20, "y96"] = 1
    assert "y96" not in repeated_columns(schema, rare)


def test_a_number_in_another_unit_or_on_another_scale_follows() -> None:
    """Cells of equal width were compared: of an amount its square, its logarithm and its inverse had others."""
    rng = np.random.default_rng(2)
    for amount in (rng.lognormal(size=ROWS) * 30, rng.integers(18, 90, ROWS).astype(float)):
        others = {"same": amount, "less": -amount, "twice": 2 * amount, "squared": amount**2, "log": np.log(amount), "over": 1 / amount}
        table = pd.DataFrame({"amount": amount, **others, "whole": amount.round(), "free": rng.random(ROWS)})
        table["rough"] = amount + rng.normal(size=ROWS) * amount.std() * 0.3
        schema = Schema([Numeric(name, table[name].min(), table[name].max()) for name in table], Target("ill", ["no", "yes"]))
        assert repeated_columns(schema, table) == dict.fromkeys([*others, "whole"], "amount")
    gaps = table.assign(amount=np.where(np.arange(ROWS) % 3, amount, np.nan), log=np.nan)
    assert "log" not in repeated_columns(schema, gaps)


def test_few_rows_and_one_class_name_nothing() -> None:
    table = loans()
    with pytest.warns(DraftWarning):
        schema = Schema.draft(table, "approved")
    assert telling_columns(schema, table[:40], table["approved"][:40]) == {}
    one = table[table["approved"] == 1]
    assert telling_columns(schema, one, one["approved"]) == {}
    nearly = table.copy()
    nearly.loc[:3, "rejected"] = nearly.loc[:3, "approved"]  # four errors: fewer than a quarter of those of the most frequent class
    assert "rejected" in telling_columns(schema, nearly, nearly["approved"])
    nearly.loc[:80, "rejected"] = nearly.loc[:80, "approved"]
    assert "rejected" not in telling_columns(schema, nearly, nearly["approved"])
