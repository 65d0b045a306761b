"""The estimators as a user meets them: inputs, labels, plans, refusals before the budget is touched."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from strategies import small_schema, small_table

from hedgerow import (
    Budget,
    BudgetFile,
    Categorical,
    HedgerowClassifier,
    Numeric,
    PrivateRDTClassifier,
    RandomDecisionTreesClassifier,
    Schema,
    SNRForestClassifier,
    Target,
    private_calibration,
    private_score,
)
from hedgerow.errors import (
    BudgetError,
    ExactScoreWarning,
    HedgerowError,
    PlanError,
    SchemaError,
    SchemaMismatchWarning,
    TableError,
    UnreviewedSchemaWarning,
)
from hedgerow.estimators import all_estimators, surroundings
from hedgerow.evaluation.public import public_score
from hedgerow.mechanisms.coins import SeededCoins

PRIVATE = [PrivateRDTClassifier, SNRForestClassifier]
private = pytest.mark.parametrize("algorithm", PRIVATE)


@private
def test_learns_from_every_kind_of_table(algorithm: Any, tmp_path: Path) -> None:
    columns, labels = small_table(3000)
    frame = pd.DataFrame(columns)
    frame.assign(**{"class": labels}).to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(**{"class": labels}).to_parquet(tmp_path / "rows.parquet")
    with_labels = frame.assign(**{"class": labels}, note="x")
    inputs = {
        "pandas": (frame, pd.Series(labels)),
        "polars": (pl.DataFrame(columns), pl.Series(labels)),
        "pyarrow": (pa.table(columns), pa.array(labels)),
        "array": (frame.to_numpy(dtype=object), labels),
        "mapping": (columns, labels.tolist()),
        "csv": (str(tmp_path / "rows.csv"), None),
        "parquet": (tmp_path / "rows.parquet", None),
        "pandas with labels": (with_labels, None),
        "polars with labels": (pl.DataFrame(with_labels), None),
        "mapping with labels": ({**columns, "class": labels}, None),
    }
    test, truth = small_table(1000, seed=1)
    answers = {}
    for kind, (X, y) in inputs.items():
        model = algorithm(small_schema(), 2000, random_state=3).fit(X, y)  # so little noise that all must agree
        rows = pd.DataFrame(test).to_numpy(dtype=object) if kind == "array" else test
        answers[kind] = model.release_.predict(rows)
        assert (model.classes_ == ["no", "yes"]).all()
    for kind, answer in answers.items():
        assert np.array_equal(answer, answers["pandas"]), kind
    assert (answers["csv"] == truth).mean() > 0.8
    model = algorithm(small_schema(), 5).fit(with_labels)
    assert len(model.predict(pd.DataFrame(test))) == 1000


@pytest.mark.parametrize("algorithm", [*PRIVATE, RandomDecisionTreesClassifier])
@pytest.mark.parametrize("classes", [[1, 2], [-1, 1], ["no", "yes"], [False, True], [1.0, 2.0], [0, 1]])
def test_any_labels_are_learnt(algorithm: Any, classes: list[Any]) -> None:
    """Trap 10: labels other than 0..k−1 silently destroying the model. Accuracy is checked, not membership."""
    schema = Schema(small_schema().attributes, Target("class", classes))
    columns, labels = small_table(3000)
    y = np.array(classes)[(labels == "yes").astype(int)]
    arguments = {"schema": schema, "epsilon": 20, "random_state": 0}
    model = algorithm(**{k: v for k, v in arguments.items() if k in inspect.signature(algorithm).parameters}).fit(pd.DataFrame(columns), y)
    predicted = model.predict(pd.DataFrame(columns))
    assert predicted.dtype == np.array(classes).dtype
    assert (predicted == y).mean() > 0.8
    assert model.score(pd.DataFrame(columns), y) > 0.8


def test_labels_of_the_wrong_type_are_refused_with_a_hint() -> None:
    columns, _ = small_table(20)
    budget = Budget(1)
    schema = Schema(small_schema().attributes, Target("class", ["0", "1"]))
    with pytest.raises(TableError, match="declare them with the type"):
        PrivateRDTClassifier(schema, 1, budget=budget).fit(columns, np.zeros(20, dtype=int))
    assert budget.spent == 0


TWO = Schema([Numeric("a", 0, 10), Numeric("b", 0, 10)], Target("class", [0, 1]))


def rows_in_another_order() -> tuple[pd.DataFrame, np.ndarray]:
    """The class follows from a, which the table has second and the schema first."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b": rng.uniform(0, 10, 2000), "a": rng.uniform(0, 10, 2000)})
    return table, (table["a"] > 5).to_numpy().astype(int)


def test_named_columns_may_stand_in_any_order() -> None:
    table, labels = rows_in_another_order()
    model = HedgerowClassifier(TWO, 5).fit(table, labels)
    assert dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))["a"] > 0.9
    for order in (["a", "b"], ["b", "a"]):
        assert (model.predict(table[order]) == labels).mean() > 0.95
        assert (model.predict({name: table[name] for name in order}) == labels).mean() > 0.95


def test_a_model_that_an_earlier_version_has_pickled_predicts() -> None:
    """It held the names in the order of its table: no order of columns was right any more."""
    table, labels = rows_in_another_order()
    model = HedgerowClassifier(TWO, 5).fit(table, labels)
    del model._order_in_fit
    model.feature_names_in_ = np.array(["b", "a"], dtype=object)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  its own
    assert list(again.feature_names_in_) == ["a", "b"]
    for order in (["a", "b"], ["b", "a"]):
        assert (again.predict(table[order]) == labels).mean() > 0.95
    with pytest.raises(TableError, match="another order"):
        again.predict(table.to_numpy())


def test_an_array_is_refused_where_the_fit_had_another_order_than_the_schema() -> None:
    """scikit-learn would take it in the order of the fit, a release in that of the schema."""
    table, labels = rows_in_another_order()
    budget = Budget(6)
    model = HedgerowClassifier(TWO, 5, budget=budget).partial_fit(table, labels)
    array = table.to_numpy()
    for use in (
        lambda: model.predict(array),
        lambda: model.predict_proba(array),
        lambda: private_score(model, array, labels, epsilon=1, budget=budget),
        lambda: private_calibration(model, array, labels, epsilon=1, budget=budget),
        lambda: public_score(model, array, labels),
        lambda: model.partial_fit(array, labels),
        lambda: model.partial_fit(array.tolist(), labels),
        lambda: model.predict(array.tolist()),
        lambda: private_score(model, array.tolist(), labels, epsilon=1, budget=budget),
    ):
        with pytest.raises(TableError, match=r"fitted on b, a, and the schema declares a, b, another order\. Nothing was spent"):
            use()
    assert budget.spent == 5
    records = table.to_dict("records")  # found by name
    assert (model.predict(records) == labels).mean() > 0.9
    assert public_score(model, records, labels).accuracy > 0.9
    HedgerowClassifier(TWO, 5).partial_fit(table, labels).partial_fit(records, labels)
    piped = make_pipeline(FunctionTransformer(), HedgerowClassifier(TWO, 5)).fit(table, labels)
    with pytest.raises(TableError, match="another order"):
        private_score(piped, array, labels, epsilon=1, budget=budget)
    poor = HedgerowClassifier(TWO, 5, budget=Budget(5)).fit(table[["a", "b"]], labels)
    with pytest.raises(BudgetError):
        poor.fit(table, labels)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        poor.predict(array)  # what it has learnt is still of the first table
    model = HedgerowClassifier(TWO, 5).fit(table, labels)
    in_order = HedgerowClassifier(TWO, 5).fit(table[["a", "b"]], labels)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert (in_order.predict(table[["a", "b"]].to_numpy()) == labels).mean() > 0.9
    assert (model.release_.predict(table[["a", "b"]].to_numpy()) == labels).mean() > 0.9


@private
def test_random_state_seeds_structure_only(algorithm: Any) -> None:
    first, second = (algorithm(small_schema(rows=500), 1, random_state=4).fit(*small_table(500)).release_ for _ in range(2))
    assert first.forest.trees == second.forest.trees
    counts = [np.concatenate([c.ravel() for c in release.forest.counts]) for release in (first, second)]
    assert not np.array_equal(*counts)


@private
def test_plan_touches_no_data_and_fit_keeps_to_it(algorithm: Any) -> None:
    model = algorithm(small_schema(rows=800), "0.7", random_state=1)
    plan = model.plan()
    release = model.fit(*small_table(800)).release_
    assert plan.trees == release.forest.trees
    assert [e.epsilon for e in plan.events] == [Fraction(e.epsilon) for e in release.certificate.events]
    assert sum(e.epsilon for e in plan.events) == Fraction(7, 10)
    text = str(plan)
    for word in ("0.7", "800 (declared public)", "leaves", "standard deviation", "rows in a leaf"):
        assert word in text
    assumed = algorithm(small_schema(), 1).plan(rows=10_000)
    assert "assumed" in str(assumed)
    assert [e.query for e in assumed.events] == ["rows", "leaf_counts"]


@private
def test_without_public_rows_three_percent_pays_for_a_noisy_count(algorithm: Any) -> None:
    release = algorithm(small_schema(), 2).fit(*small_table(5000)).release_
    assert [(e.query, e.epsilon) for e in release.certificate.events] == [("rows", "0.06"), ("leaf_counts", "1.94")]
    assert abs(release.released["rows"] - 5000) < 1000  # noise of scale 16.7: off by more with probability e^(−60)


BAD_SETTINGS = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": Fraction(1, 2**70)}, "larger epsilon"),
    ({"bins": 0}, "bins"),
    ({"max_leaves": 0}, "max_leaves"),
    ({"max_leaves": 3}, "max_leaves"),
    ({"sampler": "numpy"}, "sampler"),
    ({"budget": 1.0}, "budget"),
    ({"schema": None}, "schema"),
    ({"schema": 3}, "schema"),
    ({"schema": "/no/such/file.toml"}, "cannot be read"),
]
BAD_RDT = [
    ({"n_estimators": 0}, "n_estimators"),
    ({"n_estimators": 2.5}, "n_estimators"),
    ({"max_depth": 0}, "max_depth"),
    ({"max_depth": True}, "max_depth"),
    ({"numeric_splits": "best"}, "numeric_splits"),
]


@pytest.mark.parametrize(
    ("algorithm", "settings", "says"),
    [(a, s, t) for a in PRIVATE for s, t in BAD_SETTINGS]
    + [(PrivateRDTClassifier, s, t) for s, t in BAD_RDT]
    + [(SNRForestClassifier, {"noise_rule": "loud"}, "noise_rule")],
)
def test_bad_requests_are_refused_before_anything_is_spent(algorithm: Any, settings: dict[str, Any], says: str) -> None:
    budget = Budget(10)
    arguments = {"schema": small_schema(rows=100_000), "epsilon": 1, "budget": budget, **settings}
    with pytest.raises(HedgerowError, match=says):
        algorithm(**arguments).fit(*small_table(50))
    assert budget.spent == 0


@private
@pytest.mark.parametrize("table", ["no such column", "wrong width", "uneven", "no file", "no labels"])
def test_bad_tables_are_refused_before_anything_is_spent(algorithm: Any, table: str, tmp_path: Path) -> None:
    columns, labels = small_table(50)
    budget = Budget(10)
    X, y = {
        "no such column": ({"colour": columns["colour"]}, labels),
        "wrong width": (np.zeros((50, 2)), labels),
        "uneven": (columns, labels[:-1]),
        "no file": (tmp_path / "none.csv", None),
        "no labels": (columns, None),
    }[table]
    with pytest.raises(TableError) as raised:
        algorithm(small_schema(), 1, budget=budget).fit(X, y)
    assert budget.spent == 0
    assert "50" not in str(raised.value).replace(str(tmp_path), "")  # not even the number of rows


@private
def test_a_shared_budget_refuses_what_it_cannot_pay(algorithm: Any) -> None:
    budget = Budget("2.5")
    model = algorithm(small_schema(), 1, budget=budget)
    model.fit(*small_table(100))
    clone(model).fit(*small_table(100))  # a clone pays from the same budget
    with pytest.raises(BudgetError, match=r"remaining 0\.5 of 2\.5, short by 0\.5"):
        model.fit(*small_table(100))
    assert budget.spent == 2


@pytest.mark.slow
def test_cross_validation_pays_for_every_fold(tmp_path: Path) -> None:
    """Trap 13: hyper-parameter search outside the budget."""
    columns, labels = small_table(300)
    frame = pd.DataFrame(columns)
    budget = Budget(5)
    cross_val_score(PrivateRDTClassifier(small_schema(), 1, budget=budget), frame, labels, cv=5)
    assert budget.remaining == 0
    shared = BudgetFile.create(tmp_path / "budget.json", 3)
    scores = cross_val_score(PrivateRDTClassifier(small_schema(), 1, budget=shared), frame, labels, cv=3, n_jobs=2, error_score="raise")
    assert len(scores) == 3
    assert BudgetFile(tmp_path / "budget.json").remaining == 0


def test_what_an_inferred_schema_costs_is_said() -> None:
    """A budget paid for what claims no guarantee, and nobody was told."""
    columns, labels = small_table(300)
    budget = Budget(5)
    with pytest.warns(UnreviewedSchemaWarning, match=r"claims no .*The budget is charged ε = 1 all the same: .*without columns"):
        PrivateRDTClassifier("infer", 1, budget=budget).fit(pd.DataFrame(columns), labels)
    assert budget.spent == 1
    with pytest.warns(UnreviewedSchemaWarning) as told:
        PrivateRDTClassifier("infer", 1).fit(pd.DataFrame(columns), labels)
    assert "The budget is charged" not in "".join(str(each.message) for each in told)


def test_a_draft_schema_needs_an_explicit_word() -> None:
    columns, labels = small_table(300)
    draft = Schema([Categorical("flag", [0, 1], unreviewed=True), Numeric("age", 0, 100)], Target("class", ["no", "yes"]))
    budget = Budget(2)
    with pytest.raises(SchemaError, match="flag were read from data"):
        PrivateRDTClassifier(draft, 1, budget=budget).fit(columns, labels)
    assert budget.spent == 0
    with pytest.warns(UnreviewedSchemaWarning, match="flag"):
        accepted = PrivateRDTClassifier(draft, 1).fit(columns, labels, accept_draft=True)
    with pytest.warns(UnreviewedSchemaWarning):
        inferred = PrivateRDTClassifier("infer", 1).fit(pd.DataFrame(columns), labels)
    for model in (accepted, inferred):
        certificate = model.release_.certificate
        assert certificate.guarantee == "none"
        assert certificate.epsilon is None
        assert "domains were read from private data" in certificate.sentence()


def test_the_plain_forest_claims_nothing_and_does_not_warn() -> None:
    columns, labels = small_table(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RandomDecisionTreesClassifier(random_state=0).fit(pd.DataFrame(columns), labels)
    assert model.release_.certificate.guarantee == "none"
    assert "exact" in model.release_.certificate.sentence()
    assert "RDT" in str(RandomDecisionTreesClassifier(schema=small_schema()).plan(rows=100))
    with pytest.raises(PlanError, match="give a size"):
        RandomDecisionTreesClassifier(schema=small_schema()).plan()


@private
def test_threads_change_nothing_but_time(algorithm: Any) -> None:
    columns, labels = small_table(3000)
    answers = []
    for n_jobs in (1, 2, 3, -1):
        model = algorithm(small_schema(rows=3000), 1, random_state=0, n_jobs=n_jobs)
        model._coins = SeededCoins(5)
        release = model.fit(pd.DataFrame(columns), labels).release_
        answers.append(model.predict_proba(pd.DataFrame(columns)))
        assert release.certificate.guarantee == "none"
        assert "test coins" in release.certificate.sentence()
    assert all(np.array_equal(answers[0], other) for other in answers[1:])


@private
def test_a_schema_that_does_not_fit_is_noticed_from_released_numbers(algorithm: Any) -> None:
    columns, labels = small_table(5000)
    with pytest.warns(SchemaMismatchWarning) as told:
        algorithm(small_schema(), 20).fit(columns, np.where(labels == "yes", "ja", "no"))
    assert any("declare" in str(each.message) for each in told)
    narrow = Schema([Categorical("colour", ["red"]), Numeric("age", 0, 100)], Target("class", ["no", "yes"]))
    with pytest.warns(SchemaMismatchWarning) as told:
        algorithm(narrow, 20, random_state=0).fit(columns, labels)
    assert any(re.search(r"7\d%|8\d%", str(each.message)) for each in told)


def test_predicting_a_file(tmp_path: Path) -> None:
    columns, labels = small_table(500)
    pd.DataFrame(columns).to_csv(tmp_path / "rows.csv", index=False)
    model = PrivateRDTClassifier(small_schema(), 5).fit(columns, labels)
    assert np.array_equal(model.predict(tmp_path / "rows.csv"), model.predict(columns))
    with pytest.raises(TableError, match="hedgerow predict"):
        model.release_.predict(str(tmp_path / "rows.csv"))


def test_short_reprs() -> None:
    model = PrivateRDTClassifier(small_schema(), 1)
    assert "4 attributes" in repr(model)
    assert len(repr(model.plan(rows=100))) < 100


def test_progress_is_told() -> None:
    told: list[float] = []
    PrivateRDTClassifier(small_schema(), 1, n_jobs=2).fit(*small_table(100), progress=told.append)
    assert told[-1] == 1


def test_thresholds_and_fine_bins_learn() -> None:
    columns, labels = small_table(5000)
    test, truth = small_table(1000, seed=2)
    for settings in ({"numeric_splits": "thresholds", "bins": 20}, {"bins": 10}):
        model = PrivateRDTClassifier(small_schema(), 20, n_estimators=20, max_depth=3, random_state=0, **settings)
        assert (model.fit(columns, labels).predict(test) == truth).mean() > 0.8


# ---------------------------------------------------------------- scikit-learn's habits


def test_schema_and_epsilon_are_needed() -> None:
    for missing in ((), (small_schema(),)):
        with pytest.raises(TypeError, match="epsilon"):
            HedgerowClassifier(*missing)


def test_a_score_is_told_to_be_an_exact_look_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "said", {"budget"})
    X, y = small_table(300)
    models = [algorithm(small_schema(), 5).fit(X, y) for algorithm in PRIVATE]
    with pytest.warns(ExactScoreWarning, match=r"exact look.*private_score"):
        first = models[0].score(X, y)
    assert first == (models[0].predict(X) == y).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactScoreWarning)
        for model in models:
            model.score(X, y)
    monkeypatch.setattr(surroundings, "said", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactScoreWarning)
        RandomDecisionTreesClassifier().fit(pd.DataFrame(X), y).score(pd.DataFrame(X), y)  # it has no guarantee to lose


@pytest.mark.parametrize("algorithm", [*PRIVATE, HedgerowClassifier, RandomDecisionTreesClassifier])
def test_importances_and_logarithms(algorithm: Any) -> None:
    X, y = small_table(3000)
    needed = {"epsilon": 20} if algorithm._algorithm.private else {}
    model = algorithm(schema=small_schema(), **needed).fit(X, y)
    assert model.feature_importances_.tolist() == list(model.release_.feature_importances().values())
    assert model.feature_importances_.shape == (4,)
    with np.errstate(divide="ignore"):
        assert np.array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_the_decision_function_is_what_the_attributes_add_up_to() -> None:
    X, y = small_table(3000)
    model = HedgerowClassifier(small_schema(), 20).fit(X, y)
    decisions = model.decision_function(X)
    assert decisions.shape == (3000,)
    assert np.array_equal(model.classes_[(decisions > 0).astype(int)], model.predict(X))
    share = model.predict_proba(X)[:, 1]
    assert np.allclose(1 / (1 + np.exp(-decisions)), share)
    three, y = Schema(small_schema().attributes, Target("class", ["no", "yes", "perhaps"])), np.where(np.arange(3000) % 5, y, "perhaps")
    scores = HedgerowClassifier(three, 20).fit(X, y).decision_function(X)
    assert scores.shape == (3000, 3)


@pytest.mark.parametrize("algorithm", [*PRIVATE, HedgerowClassifier])
def test_partial_fit_says_what_it_takes(algorithm: Any) -> None:
    taken = inspect.signature(algorithm.partial_fit).parameters
    assert {"X", "y", "classes", "batch", "owner", "disjoint", "other_rows", "progress", "accept_draft"} == taken.keys() - {"self"}


def test_a_schema_shows_its_columns() -> None:
    text = repr(small_schema(rows=10))
    assert "4 attributes: " in text
    for name in (*small_schema().names, "class"):
        assert repr(name) in text
    wide = Schema([Numeric(f"x{i}", 0, 1) for i in range(100)], Target("y", [0, 1]))
    assert "'x11' and 88 more" in repr(wide)


@pytest.mark.parametrize("name", all_estimators())
def test_the_help_of_an_estimator_teaches(name: str) -> None:
    estimator = all_estimators()[name]
    text = inspect.getdoc(estimator) or ""
    sections = text.split("\n----------\n")
    assert len(sections) >= 4  # Parameters, Attributes, References
    assert "Examples\n--------" in text
    for parameter in inspect.signature(estimator).parameters:
        assert f"\n{parameter} : " in text, parameter
