"""`integer = true`: people are shown whole numbers; cells and releases stay as they are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import HedgerowClassifier, Numeric, PrivateRDTClassifier, Schema, Target
from hedgerow.engines.draft import draft
from hedgerow.errors import SchemaError
from hedgerow.inference.text import values_in_words
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.toml import read, write
from hedgerow.trees.paths import condition_words


def book(attribute: Numeric, bins: int = 16) -> Codebook:
    return Codebook(Schema([attribute], Target("ill", ["no", "yes"])), bins)


def holds(words: str, number: int) -> bool:
    """Whether words such as "below 26", "26 to 28", "29 or more" and "26" hold a number."""
    ends = [int(text.replace(",", "").replace("−", "-")) for text in re.findall(r"[−0-9,]+", words)]
    if words.startswith("below"):
        return number < ends[0]
    if words.endswith("or more"):
        return number >= ends[0]
    return ends[0] <= number <= ends[-1]


def test_ranges_are_told_in_whole_numbers() -> None:
    ages = book(Numeric("age", 18, 95, integer=True))
    assert [values_in_words(ages, 0, [code]) for code in (0, 1, 2, 15)] == ["below 23", "23 to 27", "28 to 32", "91 or more"]
    assert values_in_words(ages, 0, [1, 2, 3]) == "23 to 37"
    assert condition_words(ages, 0, [0]) == "age = 18 to 22"
    assert condition_words(ages, 0, [15]) == "age = 91 to 95"
    assert ages.edge_texts[0][:3] == ["18", "23", "28"]
    few = book(Numeric("visits", 0, 4, integer=True))
    assert values_in_words(few, 0, [4]) == "1"  # 1 to 1.25
    assert values_in_words(few, 0, [5]) == "1.25 to 1.5, no whole number"
    assert values_in_words(few, 0, [5, 6, 7, 8]) == "2"


def test_wide_cells_keep_their_round_numbers_and_others_their_fractions() -> None:
    plain, whole = (book(Numeric("income", 0, 1_000_000, integer=integer), 3) for integer in (False, True))
    assert plain.edge_texts == whole.edge_texts
    assert values_in_words(whole, 0, [1]) == values_in_words(plain, 0, [1]) == "330,000 to 670,000"
    assert values_in_words(book(Numeric("age", 18, 95)), 0, [1]) == "22.8 to 27.6"


@given(st.integers(-60, 60), st.integers(1, 300), st.integers(2, 40), st.data())
def test_what_is_shown_is_true_of_every_whole_number(low: int, width: int, bins: int, data: st.DataObject) -> None:
    attribute = Numeric("x", low, low + width, integer=True)
    if any(whole is None for whole in attribute.first_whole(bins)):
        return  # wide cells are told roughly
    found = book(attribute, bins)
    first = data.draw(st.integers(0, bins - 1))
    last = data.draw(st.integers(first, bins - 1))
    words = values_in_words(found, 0, list(range(first, last + 1)))
    numbers = np.arange(low - 3, low + width + 4)
    codes = found.encode({"x": numbers})[:, 0]
    inside = (first <= codes) & (codes <= last)
    if inside.any() and words != "any number":
        assert [holds(words, int(number)) for number in numbers] == inside.tolist(), words


def test_a_schema_keeps_it_and_a_draft_finds_it() -> None:
    schema = Schema([Numeric("age", 18, 95, integer=True), Numeric("bmi", 14, 60)], Target("ill", ["no", "yes"]))
    assert read(write(schema)) == schema
    assert write(schema).count("integer = true") == 1
    rng = np.random.default_rng(1)
    table = {"age": rng.integers(18, 95, 300), "bmi": rng.normal(25, 3, 300).round(1), "ill": rng.choice(["no", "yes"], 300)}
    drafted = {entry.name: entry for entry in draft(table, "ill").attributes}
    assert drafted["age"].integer
    assert not drafted["bmi"].integer


@pytest.mark.parametrize(("integer", "date"), [(1, None), ("yes", None), (True, "%Y-%m-%d")])
def test_what_is_no_answer_is_refused(integer: object, date: str | None) -> None:
    with pytest.raises(SchemaError, match=r"integer of 'x'.*expected true or false"):
        Numeric("x", 0, 10, integer=integer, date=date)  # type: ignore[arg-type]


def test_the_cells_and_so_the_counts_stay_the_same() -> None:
    plain, whole = (Numeric("age", 18, 95, integer=integer) for integer in (False, True))
    ages = np.arange(10, 100)
    assert (book(plain).encode({"age": ages}) == book(whole).encode({"age": ages})).all()
    assert "integer" not in write(book(plain).schema)  # a release without it has the bytes that it had


def test_what_people_see_of_a_forest() -> None:
    rng = np.random.default_rng(2)
    age = rng.integers(18, 95, 3000)
    schema = Schema([Numeric("age", 18, 95, integer=True)], Target("ill", ["no", "yes"]))
    release = HedgerowClassifier(schema, 8, delta=1e-6).fit({"age": age}, np.where(age > 50, "yes", "no")).release_
    shown = [value for effect in release.effects() for value in effect.values if value != "missing or not declared"]
    shown += [rule.text() for rule in release.rules()]
    assert shown
    assert not [text for text in shown if "no whole number" in text]  # a cell that nobody can be in
    assert not [text for text in shown if re.search(r"age\D*\d+\.\d|^(below )?\d+\.\d", text)]


def test_cells_that_nobody_can_be_in_are_part_of_the_range_before_them() -> None:
    """Six whole numbers in 32 cells: most hold none. Every row is shown once, under what holds its number."""
    rng = np.random.default_rng(3)
    claims, y = rng.integers(0, 6, 4000), rng.choice(["no", "yes"], 4000)
    schema = Schema([Numeric("claims", 0, 5, integer=True)], Target("ill", ["no", "yes"]))
    release = HedgerowClassifier(schema, 8, delta=1e-6, random_state=0).fit({"claims": claims}, np.where(claims > 2, "yes", y)).release_
    (effect,) = release.effects()
    assert not [text for text in effect.values if "no whole number" in text]
    assert effect.cuts is not None
    assert len(effect.values) == len(effect.scores) == len(effect.cuts) + 1 + (effect.values[-1] == "missing or not declared")
    assert effect.rows.sum() == pytest.approx(1)
    forest = PrivateRDTClassifier(schema, 50, bins=32, random_state=0).fit({"claims": claims}, y).release_
    rules = forest.rules(above_noise=False, pruned=False)
    assert rules
    assert not [rule for rule in rules if "no whole number" in rule.text()]
