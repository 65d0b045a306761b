"""Metrics that could score no fit are refused before the first is paid."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators.above_half import SCHEMA, X, Y, forest
from sklearn.metrics import average_precision_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from hedgerow import Budget, HedgerowClassifier, Target, private_calibration, private_score, private_scorer
from hedgerow.errors import ExactScoreWarning, PlanError
from hedgerow.estimators import surroundings


def test_a_class_that_a_score_is_about_must_be_declared() -> None:
    """Every score was nan, and every fit was paid."""
    budget = Budget(100)
    with pytest.raises(PlanError, match="positive: got 'Yes'; expected one of the declared classes"):
        cross_val_score(forest(budget), X, Y, cv=2, scoring=private_scorer(1, budget, "auc", positive="Yes"))
    for metric in ("f1", "recall", "precision"):
        with pytest.raises(PlanError, match=rf"{metric}_score, which cannot be computed.*Nothing was spent.*pos_label='yes'"):
            cross_val_score(forest(budget), X, Y, cv=2, scoring=metric)
    assert budget.spent == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExactScoreWarning)
        scores = cross_val_score(forest(budget), X, Y, cv=2, scoring=make_scorer(f1_score, pos_label="yes"))
        assert np.isfinite([*scores, *cross_val_score(forest(budget), X, Y, cv=2, scoring="f1_macro")]).all()


@pytest.mark.parametrize("scoring", ["average_precision", "neg_brier_score", "r2", ["roc_auc", "average_precision"]])
def test_a_metric_that_cannot_be_computed_for_the_classes_is_refused(scoring: Any) -> None:
    """Every score was nan, and every fit was paid."""
    budget = Budget(100)
    with pytest.raises(PlanError, match=r"cannot be computed for the classes that the schema declares \('no', 'yes'\).*Nothing was spent"):
        cross_validate(forest(budget), X, Y, cv=2, scoring=scoring)
    three = replace(SCHEMA, target=Target("class", ["no", "yes", "perhaps"]))
    with pytest.raises(PlanError, match="roc_auc_ovr, which are for more than two classes"):
        GridSearchCV(forest(budget).set_params(schema=three), {"max_depth": [1, 2]}, cv=2, scoring="roc_auc").fit(X, Y)
    assert budget.spent == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExactScoreWarning)
        advised = make_scorer(average_precision_score, pos_label="yes", response_method=("decision_function", "predict_proba"))
        scores = cross_validate(forest(budget), X, Y, cv=2, scoring={"one": "roc_auc", "other": advised, "third": "neg_log_loss"})
    assert np.isfinite([*scores["test_one"], *scores["test_other"], *scores["test_third"]]).all()


@pytest.mark.parametrize(
    "scoring",
    [private_scorer, private_score, make_scorer(private_score), partial(private_score, epsilon=1)],
    ids=["the maker", "the score", "make_scorer", "partial"],
)
def test_what_gives_scikit_learn_no_number_is_refused(scoring: Any) -> None:
    budget = Budget(100)
    for run in (
        lambda: cross_val_score(forest(budget), X, Y, cv=2, scoring=scoring),
        lambda: GridSearchCV(forest(budget), {"max_depth": [1, 2]}, cv=2, scoring=scoring).fit(X, Y),
    ):
        with pytest.raises(PlanError, match=r"scoring is private_scor.*Nothing was spent.*private_scorer\(epsilon, budget\)"):
            run()
    assert budget.spent == 0


@pytest.mark.filterwarnings("ignore::hedgerow.errors.UnclearScoreWarning", "ignore::hedgerow.errors.SchemaMismatchWarning")
@pytest.mark.parametrize("labels", [list, lambda y: pd.Series(y, dtype=object)], ids=["a list", "objects"])
def test_a_fold_that_counts_nothing_is_the_last(labels: Any) -> None:
    """Labels of another type, in a list: no type tells before, and five fits and scores were paid for them."""
    budget = Budget(100)
    numbers = HedgerowClassifier(replace(SCHEMA, target=Target("class", [0, 1])), 5, budget=budget)
    with pytest.raises(PlanError, match=r"next to no row was counted in the fold before.*No more was"):
        cross_val_score(numbers, X, labels(Y), cv=5, scoring=private_scorer(1, budget))
    assert budget.spent == 6
    cross_val_score(numbers, X, (Y == "yes").astype(int), cv=5, scoring=private_scorer(1, budget))  # what is put right goes on
    assert budget.spent == 36


@pytest.mark.parametrize("state", [-1, 1.5, "foo"])
def test_a_random_state_that_is_none_is_refused_before_it_costs(state: Any) -> None:
    budget = Budget(100)
    model = HedgerowClassifier(SCHEMA, 5, budget=budget, random_state=state)
    for run in (
        lambda: model.fit(X, Y),
        lambda: GridSearchCV(HedgerowClassifier(SCHEMA, 5, budget=budget), {"random_state": [1, state]}, cv=2).fit(X, Y),
    ):
        with pytest.raises(PlanError, match=r"random_state: got .*whole number of at least 0"):
            run()
    assert budget.spent == 0


@pytest.mark.parametrize("score", [private_score, private_calibration])
def test_threads_of_a_score_are_checked_before_it_costs(score: Any) -> None:
    budget = Budget(100)
    model = forest(budget).fit(X, Y)
    for n_jobs in ("4", 0, 1.5):
        with pytest.raises(ValueError, match=r"n_jobs: got .*expected a whole number above 0"):
            score(model, X.copy(), Y, epsilon=1, budget=budget, n_jobs=n_jobs)
    assert budget.spent == 5
    score(model, X.copy(), Y, epsilon=1, budget=budget, n_jobs=None)
    assert budget.spent == 6


@pytest.mark.parametrize(("metrics", "of"), [((), "accuracy"), (("auc",), "auc")])
def test_a_score_of_ones_own_function_is_a_number(metrics: tuple[str, ...], of: str) -> None:
    """ "scoring must return a number" was said after the first fit and score were paid."""
    budget, found = Budget(100), []

    def scoring(model: Any, X: Any, y: Any) -> Any:
        found.append(private_score(model, X, y, epsilon=5, budget=budget, **({"metrics": metrics} if metrics else {})))
        return found[-1]

    scores = cross_val_score(forest(budget), X, Y, cv=2, scoring=scoring)
    assert scores.tolist() == [getattr(each, of) for each in found] == [float(each) for each in found]


def test_a_function_that_cannot_be_called_as_a_scorer_is_refused() -> None:
    """Five fits were paid, for five times nan."""
    budget = Budget(100)
    for scoring in (lambda model, rows: 1.0, {"one": "accuracy", "other": lambda model: 1.0}):
        with pytest.raises(PlanError, match=r"scoring is a function that cannot be called as scoring\(model, X, y\).*Nothing was spent"):
            cross_validate(forest(budget), X, Y, cv=2, scoring=scoring)
    assert budget.spent == 0


def test_a_charged_score_of_ones_own_function_is_not_said_to_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was, and then nothing was said of scores that are."""
    monkeypatch.setattr(surroundings, "said", set())
    budget = Budget(100)

    def charged(model: Any, rows: Any, y: Any) -> Any:
        return private_score(model, rows, y, epsilon=5, budget=budget)

    with pytest.warns(ExactScoreWarning, match="function of your own: unless it asks hedgerow.private_score"):
        cross_val_score(forest(budget), X, Y, cv=2, scoring=charged)
    with pytest.warns(ExactScoreWarning, match="cross-validation with exact scores"):
        cross_val_score(forest(budget), X, Y, cv=2, scoring="accuracy")
