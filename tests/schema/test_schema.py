"""The schema: round trips, one behaviour for values, errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies import schemas, texts, values

from hedgerow.errors import SchemaError
from hedgerow.schema.attributes import Categorical, Numeric, Target, is_missing, spellings, text_of
from hedgerow.schema.schema import Schema


@given(schemas())
def test_toml_round_trip(schema: Schema) -> None:
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert [type(value) for value in again.target.classes] == [type(value) for value in schema.target.classes]
    assert again.unreviewed == schema.unreviewed


def test_file_round_trip(tmp_path: Path) -> None:
    schema = Schema([Categorical("naïve", ["ä", 'quo"te', "line\nbreak"])], Target("y", [True, False]), rows=7)
    schema.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == schema


@given(values)
def test_text_of_is_stable_and_spelt(value: Any) -> None:
    text = text_of(value)
    assert text_of(text) == text
    assert all(text_of(spelling) == text for spelling in spellings(text))


@given(texts)
def test_only_listed_spellings_mean_a_value(text: str) -> None:
    assert text in spellings(text_of(text))


def test_one_value_in_all_formats() -> None:
    assert {text_of(v) for v in (1, 1.0, "1", "1.0", np.int8(1), np.float32(1))} == {"1"}
    assert {text_of(v) for v in (True, np.True_, "True", "true", "TRUE")} == {"true"}
    assert text_of(-0.0) == "0"


@pytest.mark.parametrize("value", [None, float("nan"), "", np.nan])
def test_missing(value: Any) -> None:
    assert is_missing(value)


def test_domain_lists_fallbacks_last() -> None:
    assert Categorical("a", ["x"], other="other", missing="unknown").domain == ("x", "other", "unknown")
    assert Categorical("a", ["x", "y"], other="y").domain == ("x", "y")


def test_equal_width_cells_and_edges() -> None:
    assert Numeric("a", 0, 10).cell_edges(5) == (0, 2, 4, 6, 8, 10)
    assert Numeric("a", 0, 10, edges=[0, 1, 10]).cell_edges(5) == (0, 1, 10)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Categorical("a", []), "at least 1"),
        (lambda: Categorical("a", [1, "1.0"]), "same value"),
        (lambda: Categorical("a", "abc"), "list of values"),
        (lambda: Categorical("a", [None]), "missing"),
        (lambda: Categorical("", ["x"]), "name"),
        (lambda: Categorical("a", ["x"], other=3), "name of a branch"),  # type: ignore[arg-type]
        (lambda: Numeric("a", 1, 1), "low < high"),
        (lambda: Numeric("a", 0, float("inf")), "finite"),
        (lambda: Numeric("a", "0", 1), "number"),  # type: ignore[arg-type]
        (lambda: Numeric("a", 0, 1, edges=[0, 0.7, 0.5, 1]), "ascending"),
        (lambda: Numeric("a", 0, 1, edges=[0.1, 1]), "ascending"),
        (lambda: Target("y", [1, 1]), "same value"),
        (lambda: Schema([], Target("y", [0, 1])), "at least one"),
        (lambda: Schema([Numeric("y", 0, 1)], Target("y", [0, 1])), "more than once"),
        (lambda: Schema([Numeric("a", 0, 1)], Target("y", [0, 1]), rows=0), "at least 1"),
        (lambda: Schema([Numeric("a", 0, 1)], "y"), "Target"),  # type: ignore[arg-type]
    ],
)
def test_clear_errors(make: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        make()


GOOD = """
[target]
name = "y"
classes = ["a", "b"]
[attributes.x]
kind = "numeric"
low = 0
high = 1
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not toml [", "not valid TOML"),
        ("", "missing"),
        (GOOD.replace("low = 0", "lo = 0"), "low"),
        (GOOD + "colour = 3\n", "unknown key"),
        (GOOD.replace("numeric", "number"), "categorical"),
        (GOOD.replace('["a", "b"]', "3"), "schema"),
        (GOOD.replace("low = 0", "low = 2"), "low < high"),
        ("rows = -1\n" + GOOD, "rows"),
        (GOOD + 'unreviewed = "yes"\n', "true or false"),
        (GOOD.replace("[attributes.x]", "[[attributes.x]]"), "kind"),
    ],
)
def test_toml_errors_name_the_entry(text: str, says: str) -> None:
    assert Schema.from_toml(GOOD)
    with pytest.raises(SchemaError, match=says):
        Schema.from_toml(text)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="schema draft"):
        Schema.load(tmp_path / "none.toml")


def test_an_entry_that_is_not_there_cannot_be_accepted() -> None:
    schema = Schema([Numeric("age", 0, 9, unreviewed=True)], Target("y", ["a", "b"]))
    with pytest.raises(SchemaError, match="no entry 'foo'; its entries are age, y, and those that wait for review are age"):
        schema.accept("foo")
    with pytest.raises(SchemaError, match="no entry 'foo'; its entries are age, y, and none waits for review"):
        schema.accept().accept("foo")
