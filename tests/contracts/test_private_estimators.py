"""One battery for every private estimator, found by looking: whoever takes an ε inherits these checks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from strategies import small_schema, small_table

import hedgerow
from hedgerow import Budget, BudgetFile, HedgerowClassifier
from hedgerow.accounting.loss import exact_epsilon
from hedgerow.accounting.zcdp import rho_for
from hedgerow.errors import BudgetError, PlanError, SchemaError, SchemaMismatchWarning
from hedgerow.estimators import all_estimators
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.queries import BY_NAME
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.schema import Schema

PRIVATE = [estimator for estimator in all_estimators().values() if estimator._algorithm.private]
private = pytest.mark.parametrize("algorithm", PRIVATE)
mismatch = pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
BY_NOISY_ROWS = [HedgerowClassifier]  # which of its stages run is decided by the noisy n̂, which is paid for first
WITH_DELTA = [estimator for estimator in PRIVATE if estimator._algorithm.delta]
with_delta = pytest.mark.parametrize("algorithm", WITH_DELTA)
QUERY_CASES = set(BY_NAME)


def odd_tables() -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
    columns, labels = small_table(200)
    return {
        "usual": (columns, labels),
        "empty": ({name: column[:0] for name, column in columns.items()}, labels[:0]),
        "one row": ({name: column[:1] for name, column in columns.items()}, labels[:1]),
        "one class": (columns, np.repeat("yes", 200)),
        "one value": ({name: np.repeat(column[:1], 200) for name, column in columns.items()}, labels),
        "undeclared values": ({name: np.repeat("no such value", 200) for name in columns}, labels),
        "undeclared class": (columns, np.repeat("no such class", 200)),
    }


def test_some_are_found() -> None:
    assert len(PRIVATE) >= 5
    assert {estimator.__name__ for estimator in PRIVATE} <= set(hedgerow.__all__)


@mismatch
@private
@pytest.mark.parametrize("kind", list(odd_tables()))
def test_any_table_can_be_learnt_from(algorithm: Any, kind: str) -> None:
    X, y = odd_tables()[kind]
    test, _ = small_table(30, seed=1)
    for epsilon in ("0.01", 1, 100):
        model = algorithm(small_schema(), epsilon).fit(X, y)
        assert set(model.predict(test)) <= {"no", "yes"}
        assert np.allclose(model.predict_proba(test).sum(axis=1), 1)
        assert model.classes_.tolist() == ["no", "yes"]


@mismatch
@private
@pytest.mark.parametrize("kind", list(odd_tables()))
@pytest.mark.parametrize("epsilon", ["0.03", Fraction(1, 3), 2.5, 60])
def test_the_certificate_states_what_was_charged_and_no_more_was(algorithm: Any, kind: str, epsilon: Any) -> None:
    budget = Budget(100)
    model = algorithm(small_schema(), epsilon, budget=budget)
    certificate = model.fit(*odd_tables()[kind]).release_.certificate
    charged = sum((Fraction(event.epsilon) for event in certificate.events), Fraction(0))
    assert certificate.guarantee == "epsilon-DP"
    assert Fraction(certificate.epsilon) == exact_epsilon(epsilon)  # what was asked for bounds every way the run could go
    assert 0 < charged == budget.spent <= exact_epsilon(epsilon)
    assert {event.query for event in certificate.events} <= QUERY_CASES
    for event in certificate.events:
        plain = event.queries * Fraction(event.sensitivity) / Fraction(event.epsilon)
        counts = event.mechanism == "discrete Laplace"
        assert Fraction(event.scale) in ((plain,) if counts else (plain, 2 * plain))
    # What was charged is a beginning of what was planned, or all of it: no event is dearer than its plan.
    noisy = max(1, model.release_.released.get("rows", 200)) if algorithm in BY_NOISY_ROWS else 200
    planned = model.plan(rows=noisy).events
    assert sum(event.epsilon for event in planned) == exact_epsilon(epsilon)
    if algorithm in BY_NOISY_ROWS:
        assert charged == exact_epsilon(epsilon)  # what a stage does not need goes to the counts: nothing ever comes back
        others = [[e for e in events if e.query != "leaf_counts"] for events in (certificate.events, planned)]
        assert Counter((e.query, Fraction(e.epsilon)) for e in others[0]) <= Counter((e.query, e.epsilon) for e in others[1])
        return
    assert len(certificate.events) <= len(planned)
    assert {(event.query, Fraction(event.epsilon)) for event in certificate.events} <= {(e.query, e.epsilon) for e in planned}


@mismatch
@private
def test_a_release_comes_back_as_it_was(algorithm: Any, tmp_path: Path) -> None:
    test, _ = small_table(200, seed=1)
    for kind, table in odd_tables().items():
        release = algorithm(small_schema(), 20).fit(*table).release_
        path = tmp_path / f"{kind}.json"
        release.save(path)
        again = Release.load(path)
        assert again.content_hash == release.content_hash
        assert again.certificate == release.certificate
        assert again.forest.trees == release.forest.trees
        assert again.forest.measured == release.forest.measured
        assert again.forest.noise == release.forest.noise
        assert np.array_equal(again.predict_proba(test), release.predict_proba(test))


@private
def test_a_shared_budget_is_never_overspent(algorithm: Any, tmp_path: Path) -> None:
    for budget in (Budget("1.5"), BudgetFile.create(tmp_path / "budget.json", "1.5")):
        model = algorithm(small_schema(), 1, budget=budget)
        model.fit(*small_table(100))
        while budget.remaining >= 1:  # a tree that ended early left enough for another one
            clone(model).fit(*small_table(100))
        spent, entries = budget.spent, len(budget.entries)
        with pytest.raises(BudgetError, match=r"Nothing was spent"):
            model.fit(*small_table(100))
        assert budget.spent == spent <= Fraction(3, 2)
        assert len(budget.entries) == entries


@private
def test_random_state_never_makes_noise_repeat(algorithm: Any) -> None:
    """At least four counts with noise of scale 10 and more: two runs agree less than once in 10^6 times."""
    hashes = {algorithm(small_schema(rows=500), "0.5", random_state=0).fit(*small_table(500)).release_.content_hash for _ in range(3)}
    assert len(hashes) == 3


@private
def test_test_coins_repeat_and_are_confessed(algorithm: Any) -> None:
    releases = []
    for n_jobs in (1, 2):
        model = algorithm(small_schema(rows=500), 5, random_state=0, n_jobs=n_jobs)
        model._coins = SeededCoins(3)
        releases.append(model.fit(*small_table(500)).release_)
    assert releases[0].content_hash == releases[1].content_hash
    assert releases[0].certificate.guarantee == "none"
    assert "test coins" in releases[0].certificate.sentence()


@mismatch
@private
def test_opendp_can_draw_the_noise(algorithm: Any) -> None:
    pytest.importorskip("opendp")
    columns, labels = small_table(2000)
    model = algorithm(small_schema(), 200, sampler="opendp", random_state=0).fit(columns, labels)
    assert model.release_.certificate.sampler.startswith("opendp")
    assert model.release_.certificate.guarantee == "epsilon-DP"
    assert model.score(columns, labels) > 0.75


@private
@pytest.mark.parametrize("classes", [[1, 2], ["no", "yes"], [False, True], [-1, 1], ["b", "a"], [2, 1]])
def test_any_labels_are_learnt(algorithm: Any, classes: list[Any]) -> None:
    """Labels other than 0..k−1 must not be mixed up: accuracy is checked, not membership."""
    schema = Schema(small_schema().attributes, Target("class", classes))
    columns, labels = small_table(3000)
    y = np.array(classes)[(labels == "yes").astype(int)]
    model = algorithm(schema, 500, random_state=0).fit(pd.DataFrame(columns), y)
    predicted = model.predict(pd.DataFrame(columns))
    assert predicted.dtype == np.array(classes).dtype
    assert (predicted == y).mean() > 0.8


@private
def test_many_classes_are_learnt_and_one_class_is_refused(algorithm: Any) -> None:
    columns, labels = small_table(3000)
    three = np.where(columns["flag"] == 1, "flag", labels)
    schema = Schema(small_schema().attributes, Target("class", ["no", "yes", "flag", "never"]))
    budget = Budget(500)
    with pytest.warns(SchemaMismatchWarning, match="hardly any has the class never"):
        model = algorithm(schema, 500, random_state=0, budget=budget).fit(columns, three)
    assert (model.predict(columns) == three).mean() > 0.6
    alone = Schema(small_schema().attributes, Target("class", ["only"]))
    budget = Budget(1)
    with pytest.raises(SchemaError, match=r"one class alone, 'only', so there is nothing to learn\. Nothing was spent"):
        algorithm(alone, 1, budget=budget).fit(columns, np.repeat("only", 3000))
    with pytest.raises(SchemaError, match="one class alone"):
        algorithm(alone, 1).plan(3000)
    assert budget.spent == 0


@private
def test_clone_and_parameters(algorithm: Any) -> None:
    model = algorithm(small_schema(), Fraction(1, 3), random_state=5)
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.epsilon == Fraction(1, 3)
    assert repr(copy)
    assert not hasattr(copy, "release_")


@private
def test_the_plan_can_be_read_before_any_row_is_seen(algorithm: Any) -> None:
    plan = algorithm(small_schema(), "0.7").plan(rows=1000)
    assert "0.7" in str(plan)
    assert "charge" in str(plan)
    assert {event.query for event in plan.events} <= QUERY_CASES


@private
def test_the_release_explains_itself(algorithm: Any) -> None:
    release = algorithm(small_schema(), 20).fit(*small_table(2000)).release_
    assert release.certificate.neighbours == "add or remove one row"
    assert "ε" in release.certificate.sentence()
    assert release.algorithm in repr(release)
    # What was asked for, if it is written down, is no less than what the certificate states.
    assert release.certificate.spent <= Fraction(release.parameters.get("epsilon", "20")) == 20


# ---------------------------------------------------------------- (ε, δ)


def wide_table(rows: int, seed: int = 0) -> tuple[Schema, dict[str, np.ndarray], np.ndarray]:
    """Enough attributes for δ to be worth its while."""
    draw = np.random.default_rng(seed)
    columns = {f"a{i}": draw.integers(0, 3, rows) for i in range(16)}
    labels = np.where(columns["a0"] + columns["a1"] + draw.integers(0, 2, rows) > 2, "yes", "no")
    return Schema([Categorical(name, [0, 1, 2]) for name in columns], Target("class", ["no", "yes"])), columns, labels


def test_those_with_delta_are_found() -> None:
    assert HedgerowClassifier in WITH_DELTA


@mismatch
@with_delta
@pytest.mark.parametrize("rows", [0, 1, 40, 3000])
@pytest.mark.parametrize("epsilon", ["0.05", 1, 4])
def test_with_delta_the_whole_covers_every_look(algorithm: Any, rows: int, epsilon: Any) -> None:
    schema, columns, labels = wide_table(rows)
    budget = Budget(5, "1e-5")
    release = algorithm(schema, epsilon, 1e-6, budget=budget).fit(columns, labels).release_
    certificate, (part,) = release.certificate, release.certificate.parts
    worth = rho_for(exact_epsilon(epsilon), Fraction(1, 10**6))
    assert certificate.guarantee == "epsilon-delta-DP"
    assert (Fraction(certificate.epsilon), Fraction(certificate.delta)) == (exact_epsilon(epsilon), Fraction(1, 10**6))
    concentrated = any(event.mechanism == "discrete Gaussian" for event in part.events)
    charged = sum((Fraction(event.epsilon) for event in part.events), Fraction(0))
    assert Fraction(999, 1000) * worth < part.zcdp_cost <= worth if concentrated else charged == exact_epsilon(epsilon)
    assert (budget.spent, budget.spent_delta) == (exact_epsilon(epsilon), Fraction(1, 10**6))
    again = Release.from_json(release.to_json())
    test = wide_table(100, seed=1)[1]
    assert again.content_hash == release.content_hash
    assert np.array_equal(again.predict_proba(test), release.predict_proba(test))


@with_delta
def test_a_budget_without_delta_pays_for_none(algorithm: Any) -> None:
    schema, columns, labels = wide_table(50)
    for budget in (Budget(5), Budget(5, "1e-7")):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            algorithm(schema, 1, 1e-6, budget=budget).fit(columns, labels)
        assert (budget.spent, budget.spent_delta, budget.entries) == (0, 0, ())


@with_delta
@pytest.mark.parametrize("bad", [-1, 1, "a", None, True, float("nan"), "1e-400"])
def test_a_delta_that_is_none_costs_nothing(algorithm: Any, bad: Any) -> None:
    schema, columns, labels = wide_table(50)
    budget = Budget(5, "1e-5")
    with pytest.raises(PlanError, match=r"^delta"):
        algorithm(schema, 1, bad, budget=budget).fit(columns, labels)
    with pytest.raises(PlanError, match=r"^delta"):
        algorithm(schema, 1, bad).plan(rows=100)
    assert budget.entries == ()


@with_delta
def test_opendp_draws_no_gaussian_noise_and_costs_nothing(algorithm: Any) -> None:
    pytest.importorskip("opendp")
    schema, columns, labels = wide_table(50)
    budget = Budget(5, "1e-5")
    with pytest.raises(PlanError, match="Nothing was spent"):
        algorithm(schema, 1, 1e-6, budget=budget, sampler="opendp").fit(columns, labels)
    assert budget.entries == ()
