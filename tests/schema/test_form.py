"""A schema as a form and back: nothing is lost, and what is typed is checked as a file is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.errors import SchemaError
from hedgerow.schema.form import ON, fields_of, schema_of

SCHEMA = Schema(
    [
        Numeric("age", 0, 120, unreviewed=True, missing="unknown", integer=True),
        Numeric("income", 0, 1e6, edges=[0, 1000.5, 1e6]),
        Numeric("admitted", 16436, 20088, date="%d.%m.%Y"),
        Categorical("smoker", ["never", "former", 3], other="other", unreviewed=True),
        Categorical("ward", [1, 2], taxonomy={1: "all", 2: "all"}),
    ],
    Target("ill", [0, 1], unreviewed=True),
    5000,
    unreviewed_rows=True,
    person="id",
    rows_per_person=3,
)


def test_a_form_that_nobody_changed_is_the_schema() -> None:
    again = schema_of(fields_of(SCHEMA), SCHEMA, "schema")
    assert again == SCHEMA
    assert again.to_toml() == SCHEMA.to_toml()
    assert fields_of(SCHEMA)["2.low"] == "2015-01-01"


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6))
def test_any_values_come_back(values: list[str]) -> None:
    try:
        schema = Schema([Categorical("x", values)], Target("y", ["a", "b"]))
    except SchemaError:
        return
    assert schema_of(fields_of(schema), schema, "schema") == schema


def test_what_is_typed_is_what_is_declared() -> None:
    typed = fields_of(SCHEMA) | {
        "0.high": "110", "0.public": ON, "1.edges": "", "1.low": "-5", "1.high": "2e6", "2.high": "2025-01-31", "rows": "", "person": "",
        "rows_per_person": "", "3.values": "never\n\n  former \ncurrent", "3.other": "", "4.leave_out": ON, "target.public": ON,
    }  # fmt: skip
    made = schema_of(typed, SCHEMA, "schema")
    age, income, admitted, smoker = made.attributes
    assert (age.high, age.unreviewed, age.missing) == (110, False, "unknown")
    assert (income.low, income.high, income.edges) == (-5, 2e6, None)
    assert admitted.bounds_text.endswith("2025-01-31")
    assert (smoker.values, smoker.other, smoker.unreviewed) == (("never", "former", "current"), None, True)
    assert (made.rows, made.person, made.unreviewed) == (None, None, ("smoker",))


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"0.low": "130"}, "age"),
        ({"0.low": "ten"}, "'age', low: got 'ten'; expected a number"),
        ({"2.low": "2015-13-01"}, "expected a date"),
        ({"3.values": ""}, "smoker"),
        ({"3.values": '"never'}, "in quotes"),
        ({"rows": "many"}, "expected a whole number"),
        ({"person": "", "rows_per_person": "3"}, "it needs `person`"),
        ({"target.classes": "1\n1"}, "the same value"),
    ],
)
def test_what_cannot_be_is_refused(typed: dict[str, str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        schema_of(fields_of(SCHEMA) | typed, SCHEMA, "schema")
