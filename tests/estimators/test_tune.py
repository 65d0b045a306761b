"""Budgeted tuning: every look is charged, and the choice is the better setting where that is clear."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from strategies import small_schema, small_table

from hedgerow import Budget, DPDFClassifier, PrivateRDTClassifier, Release, SNRForestClassifier
from hedgerow.errors import PlanError, SchemaMismatchWarning

COLUMNS, LABELS = small_table(4000)


def test_the_better_setting_is_chosen_and_every_look_is_paid() -> None:
    """One level asks nothing; three ask what matters. At ε = 50 the gap is thousands of rows: no run should choose wrongly."""
    budget = Budget(50)
    model = DPDFClassifier(small_schema(), 50, budget=budget)
    model.tune(COLUMNS, LABELS, grid={"max_depth": [1, 3], "n_estimators": [1, 2]})
    assert model.best_params_["max_depth"] == 3
    assert model.get_params()["max_depth"] == 5  # what was given stays
    release = model.release_
    events = release.certificate.events
    assert [event.query for event in events].count("best_model") == 1
    assert Fraction(release.certificate.epsilon or 0) == sum(Fraction(event.epsilon) for event in events) <= 50
    search = events[: [event.query for event in events].index("best_model") + 1]
    assert sum(Fraction(event.epsilon) for event in search) <= 15
    assert budget.spent == sum(Fraction(event.epsilon) for event in events)
    assert "4 settings" in str(release.chosen["tuned"])
    assert (model.predict(COLUMNS) == LABELS).mean() > 0.8
    assert np.array_equal(Release.from_json(release.to_json()).predict(COLUMNS), model.predict(COLUMNS))


@pytest.mark.parametrize(
    ("algorithm", "grid"),
    [(PrivateRDTClassifier, {"max_depth": [1, 3]}), (SNRForestClassifier, {"noise_rule": ["paper", "tight"]})],
)
def test_other_forests_tune_too(algorithm: Any, grid: dict[str, list[Any]]) -> None:
    release = algorithm(small_schema(rows=4000), 5).tune(COLUMNS, LABELS, grid=grid, share="1/2").release_
    assert release.certificate.epsilon == "5"


@pytest.mark.parametrize(
    ("grid", "share", "says"),
    [
        ({"max_depth": [3]}, 0.3, "fewer than two"),
        ({"max_depth": [3, 5]}, 1, "between 0 and 1"),
        ({"max_depth": [3, 5]}, 0, "share"),
        ({"max_depth": [3, 0]}, 0.3, "max_depth"),
        ({"n_estimators": [1, 99]}, 0.3, "root attribute"),
    ],
)
def test_bad_searches_are_refused_before_anything_is_spent(grid: dict[str, list[int]], share: Any, says: str) -> None:
    budget = Budget(1)
    with pytest.raises(PlanError, match=says):
        DPDFClassifier(small_schema(), 1, budget=budget).tune(COLUMNS, LABELS, grid=grid, share=share)
    assert budget.spent == 0


def test_only_settings_of_the_algorithm_can_be_tuned() -> None:
    budget = Budget(1)
    for name in ("epsilon", "bins", "schema", "colour"):
        with pytest.raises(PlanError, match=name):
            DPDFClassifier(small_schema(), 1, budget=budget).tune(COLUMNS, LABELS, grid={name: [1, 2]})
    assert budget.spent == 0


@pytest.mark.slow
def test_votes_are_tried_as_they_would_be_used_and_releases_load() -> None:
    model = DPDFClassifier(small_schema(), 5).tune(COLUMNS, LABELS, grid={"vote": ["majority", "sum"]})
    assert model.release_.vote == {"majority": "majority", "sum": "summed counts of pruned trees"}[model.best_params_["vote"]]
    for _ in range(6):  # trials and the forest may share a noise scale: 10 trees for a tenth of what 100 get
        found = PrivateRDTClassifier(small_schema(rows=4000), 5).tune(COLUMNS, LABELS, grid={"n_estimators": [10, 100]}, share="0.2")
        assert Release.from_json(found.release_.to_json()).to_json() == found.release_.to_json()
        assert len(found.release_.forest.trees) == found.best_params_["n_estimators"]


def test_a_tuned_forest_is_kept_whole_when_a_warning_is_made_an_error() -> None:
    model = DPDFClassifier(small_schema(rows=4000), 50)
    with pytest.raises(SchemaMismatchWarning):  # half the labels are not declared, and the test set-up makes warnings errors
        model.tune(COLUMNS, np.where(LABELS == "yes", "ja", "no"), grid={"max_depth": [1, 3]})
    assert model.release_.parameters["max_depth"] == model.best_params_["max_depth"]
    assert len(model.predict(COLUMNS)) == len(LABELS)
