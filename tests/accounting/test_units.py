"""The unit of an ε: its text, and that no look at rows is paid for in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score
from strategies import names, schemas, small_schema, small_table

from hedgerow import Budget, Schema, Unit, count, private_calibration, private_score, private_scorer
from hedgerow.accounting.units import ROW
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError
from hedgerow.estimators import all_estimators
from hedgerow.evaluation.private import private_evaluation
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Rows
from hedgerow.schema.attributes import MAX_ROWS_PER_PERSON
from hedgerow.schema.codebook import Codebook

PRIVATE = [estimator for estimator in all_estimators().values() if estimator._algorithm.private]
private = pytest.mark.parametrize("algorithm", PRIVATE)
COLUMNS, LABELS = small_table(120)
TABLE = {**COLUMNS, "who": np.arange(120) // 3, "class": LABELS}
ROWS = small_schema()
SCHEMAS = {"rows": ROWS, "three": replace(ROWS, person="who", rows_per_person=3), "two": replace(ROWS, person="who", rows_per_person=2)}
OTHERS = [("rows", "three"), ("three", "rows"), ("three", "two")]
mismatch = pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")

people = st.one_of(names, st.text(", at most0123456789 rows\"'\\\n:é漢", min_size=1, max_size=30))


@given(people, st.integers(1, MAX_ROWS_PER_PERSON))
def test_a_unit_is_its_text(person: str, k: int) -> None:
    unit = Unit(person, k)
    assert Unit.read(str(unit)) == unit
    assert str(Unit.read(str(unit))) == str(unit)


@given(st.lists(st.tuples(people, st.integers(1, 30)), min_size=2, max_size=2, unique=True))
def test_two_units_have_two_texts(two: list[tuple[str, int]]) -> None:
    first, second = (Unit(*each) for each in two)
    assert str(first) != str(second)


@pytest.mark.slow
@given(schemas(), st.one_of(st.none(), st.tuples(st.just("the person"), st.integers(1, 9))))
def test_a_schema_has_a_unit(schema: Schema, persons: tuple[str, int] | None) -> None:
    assert Unit.of(schema) == ROW == Unit.read("row")
    if persons is not None:
        assert Unit.of(replace(schema, person=persons[0], rows_per_person=persons[1])) == Unit(*persons)


@pytest.mark.parametrize(
    "text",
    [
        "", "Row", "rows", "row ", "person: who", "person: who, at most 0 rows", "person: who, at most 03 rows",
        "person: who, at most 1 rows", "person: who, at most 2 row", "person: , at most 2 rows", "person: who, at most 1000001 rows",
        "person: who, at most 2 rows ", "person: who, at most ２ rows", None, 3,
    ],
)  # fmt: skip
def test_every_other_text_is_refused(text: Any) -> None:
    with pytest.raises(PlanError, match="unit"):
        Unit.read(text)


@pytest.mark.parametrize(
    "given", [(None, 3), ("", 3), (3, 3), ("who", 0), ("who", True), ("who", 1.5), ("who", 10**7), ("\ud800", 2), ("who\udfff", 2)]
)
def test_what_is_no_unit_is_refused(given: Any) -> None:
    with pytest.raises(PlanError, match="unit"):
        Unit(*given)


def test_without_a_number_one_row_counts_as_in_a_schema() -> None:
    assert Unit("who", 1).rows_per_person == 1
    assert Unit("who") == Unit("who", 1) == Unit.of(replace(ROWS, person="who"))


# ---------------------------------------------------------------- every look


@pytest.mark.parametrize(("paid", "read"), OTHERS)
def test_a_private_table_takes_no_reservation_of_another_unit(paid: str, read: str) -> None:
    """So a caller who forgets to say the unit gets nothing, and nothing is added up wrongly."""
    codebook = Codebook(SCHEMAS[read])
    engine = MemoryRows(COLUMNS, LABELS, codebook, persons=TABLE["who"] if codebook.schema.person else None, key=bytes(16))
    with pytest.raises(BudgetError, match="No row was looked at"):
        PrivateTable(engine, Budget(1).reserve(1, "test", unit=Unit.of(SCHEMAS[paid])))
    PrivateTable(engine, Budget(1).reserve(1, "test", unit=Unit.of(SCHEMAS[read]))).ask(Rows(), Fraction(1))


def refused(budget: Budget, look: Callable[[], Any]) -> None:
    spent, entries = budget.spent, budget.entries
    with pytest.raises(BudgetError, match=r"cannot pay for .* could not be added up\. Nothing was spent"):
        look()
    assert (budget.spent, budget.entries) == (spent, entries)


def fit(algorithm: Any, kind: str, budget: Budget) -> Any:
    return algorithm(SCHEMAS[kind], "0.5", budget=budget, random_state=0).fit(TABLE)


@mismatch
@private
@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_every_estimator(algorithm: Any, first: str, second: str) -> None:
    budget = Budget(4)
    fit(algorithm, first, budget)
    assert budget.unit == Unit.of(SCHEMAS[first])
    refused(budget, lambda: fit(algorithm, second, budget))
    fit(algorithm, first, budget)


@mismatch
@pytest.mark.parametrize("algorithm", [estimator for estimator in PRIVATE if "max_depth" in estimator._algorithm.defaults])
def test_tuning(algorithm: Any) -> None:
    budget, grid = Budget(4, unit=ROW), {"max_depth": [1, 2]}
    refused(budget, lambda: algorithm(SCHEMAS["three"], 1, budget=budget).tune(TABLE, grid=grid))
    algorithm(ROWS, 1, budget=budget).tune(TABLE, grid=grid)


MERGEABLE = [estimator for estimator in PRIVATE if hasattr(estimator, "partial_fit")]


@mismatch
@pytest.mark.parametrize("algorithm", MERGEABLE)
def test_counts_and_batches(algorithm: Any) -> None:
    budget = Budget(8, unit=ROW)
    for kind in ("three", "rows"):
        fitted = algorithm(SCHEMAS[kind], 1, random_state=0).fit(TABLE)
        looks = [
            lambda fitted=fitted: count(fitted.release_, TABLE, budget=budget, epsilon=1),
            lambda fitted=fitted: fitted.set_params(budget=budget).partial_fit(TABLE),
        ]
        for look in looks:
            refused(budget, look) if kind == "three" else look()
    assert budget.spent == 2


@mismatch
def test_scores() -> None:
    budget = Budget(8, unit=ROW)
    looks = [private_score, private_calibration, private_evaluation]
    for kind in ("three", "rows"):
        release = fit(PRIVATE[0], kind, Budget(1)).release_
        for look in looks:
            ask = lambda look=look, release=release: look(release, TABLE, epsilon="0.5", budget=budget)  # noqa: E731
            refused(budget, ask) if kind == "three" else ask()
    assert budget.spent == Fraction(3, 2)


@mismatch
def test_scores_of_scikit_learn() -> None:
    model = all_estimators()["PrivateRDTClassifier"](SCHEMAS["rows"], 10, random_state=0)
    budget, frame = Budget(4, unit=Unit("who", 3)), COLUMNS
    X = np.column_stack([frame[name] for name in ROWS.names])
    refused(budget, lambda: cross_val_score(model, X, LABELS, cv=2, scoring=private_scorer("0.5", budget), error_score="raise"))
