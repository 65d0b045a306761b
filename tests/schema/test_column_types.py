"""Columns whose type cannot hold what is declared are refused by that type, before anything is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Numeric, Schema, SQLTable, Target, private_score
from hedgerow.engines.files import TableFile
from hedgerow.errors import TableError, UnknownValuesWarning
from hedgerow.schema.column_types import held_by
from hedgerow.schema.columns import one_column

SCHEMA = Schema([Categorical("branch", ("0007", "0042")), Categorical("kind", (1, 2))], Target("y", ("no", "yes")))
TEXT = {"branch": ["0042", "0007"] * 50, "kind": [1, 2] * 50}
NUMBERS = {"branch": [42, 7] * 50, "kind": [1, 2] * 50}
LABELS = np.array(["no", "yes"] * 50)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, lambda columns: {name: np.array(column) for name, column in columns.items()}]
)
def test_codes_that_became_numbers_are_refused_before_they_cost(frame: Any) -> None:
    budget = Budget(1)
    with pytest.raises(TableError, match=r"column 'branch': it holds numbers, .* codes such as '0007'.*Nothing was spent.*dtype"):
        HedgerowClassifier(SCHEMA, 1, budget=budget).fit(frame(NUMBERS), LABELS)
    assert budget.remaining == 1
    model = HedgerowClassifier(SCHEMA, 1, budget=budget).fit(frame(TEXT), LABELS)
    with pytest.raises(TableError, match="it holds numbers"):
        model.predict(frame(NUMBERS))
    paying = Budget(1)
    with pytest.raises(TableError, match="it holds numbers"):
        private_score(model, frame(NUMBERS), LABELS, epsilon=1, budget=paying)
    assert paying.remaining == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_are_of_the_type_of_what_they_list(library: str) -> None:
    """As text such labels were refused, and as categories they were paid for, and no row was counted."""
    numbered, budget = Schema(WORDS.attributes, Target("y", (0, 1))), Budget(2)
    words = pd.DataFrame({"branch": ["north", "south"] * 50, "kind": [1, 2] * 50})
    texts: Any = pd.Series(LABELS).astype("category")
    if library == "polars":
        texts = pl.Series(LABELS).cast(pl.Categorical)
    with pytest.raises(TableError, match="holds text, but the schema declares the classes 0, 1: labels of another type"):
        HedgerowClassifier(numbered, 1, budget=budget).fit(words, texts)
    assert budget.spent == 0
    model = HedgerowClassifier(WORDS, 1, budget=budget).fit(words, texts)
    with pytest.raises(TableError, match="holds numbers, but the schema declares the classes 'no', 'yes'"):
        private_score(model, words, pd.Series([0, 1] * 50).astype("category"), epsilon=1, budget=budget)
    with pytest.raises(TableError, match=r"'branch': it holds numbers, .*'north', 'south': no row .*Nothing was spent"):
        HedgerowClassifier(WORDS, 1, budget=budget).fit(words.assign(branch=pd.Series([0, 1] * 50).astype("category")), texts)
    assert budget.spent == 1
    intervals = words.assign(kind=pd.cut(words["kind"], 2))  # of another type: it may be declared as text
    assert held_by(one_column(intervals["kind"], "kind")) is None


def test_a_column_of_objects_is_not_looked_into() -> None:
    objects = pd.DataFrame({"branch": pd.Series([42, "0007"] * 50, dtype=object), "kind": [1, 2] * 50})
    HedgerowClassifier(SCHEMA, 1, budget=Budget(1)).fit(objects, LABELS)


WORDS = Schema([Categorical("branch", ("north", "south"), missing="missing"), Categorical("kind", (1, 2))], Target("y", ("no", "yes")))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_floats_where_words_are_declared_are_refused_before_they_cost(frame: Any) -> None:
    words = frame({"branch": ["north", "south"] * 50, "kind": [1.0, 2.0] * 50})  # numbers that are declared may be floats
    floats, budget = frame({"branch": [0.0, 1.0] * 50, "kind": [1.0, 2.0] * 50}), Budget(1)
    with pytest.raises(TableError, match=r"'branch': it holds numbers, .*'north', 'south': no row .*Nothing was spent.*all missing"):
        HedgerowClassifier(WORDS, 1, budget=budget).fit(floats, LABELS)
    assert budget.remaining == 1
    model = HedgerowClassifier(WORDS, 1, budget=budget).fit(words, LABELS)
    paying = Budget(1)
    with pytest.raises(TableError, match="it holds numbers"):
        private_score(model, floats, LABELS, epsilon=1, budget=paying)
    assert paying.remaining == 1
    with pytest.warns(UnknownValuesWarning, match="branch"):  # rows that are predicted may hold new values
        model.predict(floats)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
def test_a_column_that_is_all_missing_is_taken_as_objects() -> None:
    rows = pd.DataFrame({"branch": [np.nan] * 100, "kind": [1, 2] * 50})
    with pytest.raises(TableError, match="all missing"):  # of floats nobody looks whether they are
        HedgerowClassifier(WORDS, 1, budget=Budget(1)).fit(rows, LABELS)
    HedgerowClassifier(WORDS, 1, budget=Budget(1)).fit(rows.astype({"branch": object}), LABELS)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"branch": [42, 7] * 50}, "column 'branch': it holds numbers, .* codes such as '0007'"),
        ({"kind": [True, False] * 50}, "column 'kind': it holds booleans.*DuckDB's read_csv"),
        ({"y": [0.0, 1.0] * 50}, "column 'y': it holds numbers, but the schema declares 'no', 'yes'"),
        ({"y": [0, 1] * 50}, "column 'y': it holds numbers, but the schema declares 'no', 'yes'"),
    ],
)
def test_the_types_of_a_file_and_of_a_database_are_looked_at_before_they_cost(
    kind: str, changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    table = pl.DataFrame({**TEXT, "y": LABELS} | changed)
    if kind == "parquet":
        place: Any = tmp_path / "rows.parquet"
        table.write_parquet(place)
    else:
        path = tmp_path / "rows.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table.to_arrow())
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        place = SQLTable(str(path), "rows")
    budget = Budget(1)
    with pytest.raises(TableError, match=said):
        HedgerowClassifier(SCHEMA, 1, budget=budget).fit(place)
    assert budget.remaining == 1


def test_a_file_to_predict_may_hold_new_values_but_no_codes_that_lost_their_zeros(tmp_path: Path) -> None:
    model = HedgerowClassifier(SCHEMA, 1, budget=Budget(1)).fit(pl.DataFrame(TEXT), LABELS)
    path = tmp_path / "rows.parquet"
    pl.DataFrame({**TEXT, "kind": [True, False] * 50}).write_parquet(path)
    codebook = model.release_.codebook
    assert len(TableFile(path, codebook.schema.names).codes(codebook)) == 100
    pl.DataFrame(NUMBERS).write_parquet(path)
    with pytest.raises(TableError, match="it holds numbers"):
        TableFile(path, codebook.schema.names).codes(codebook)


@pytest.mark.parametrize("holds", ["intervals", "complex numbers", "booleans"])
def test_what_is_no_number_between_the_bounds_is_refused(holds: str) -> None:
    """Each was paid for, and nothing was learnt from it; of booleans there was no warning at all."""
    age, budget = pd.Series(np.arange(100) % 80 + 10.0), Budget(1)
    column = {"intervals": pd.cut(age, 4), "complex numbers": age.astype(complex), "booleans": age > 50}[holds]
    schema = Schema([Numeric("age", 10, 100)], Target("y", ("no", "yes")))
    with pytest.raises(TableError, match=rf"'age': it holds {holds}.*numbers from 10 to 100.*Nothing was spent"):
        HedgerowClassifier(schema, 1, budget=budget).fit(pd.DataFrame({"age": column}), LABELS)
    assert budget.spent == 0
    if holds == "booleans":
        flags = Schema([Numeric("age", 0, 1)], Target("y", ("no", "yes")))
        HedgerowClassifier(flags, 1, budget=budget).fit(pd.DataFrame({"age": column}), LABELS)


def test_labels_that_are_another_column_of_the_table_are_refused() -> None:
    table, budget = pd.DataFrame({"age": np.arange(100) % 80 + 10.0, "y": LABELS, "other": LABELS[::-1]}), Budget(1)
    schema = Schema([Numeric("age", 10, 100)], Target("y", ("no", "yes")))
    with pytest.raises(TableError, match=r"y: got the column 'other'; the table has it beside the target, and 'y' is what"):
        HedgerowClassifier(schema, 1, budget=budget).fit(table, table["other"])
    assert budget.spent == 0
    HedgerowClassifier(schema, 1, budget=budget).fit(table, table["y"])
