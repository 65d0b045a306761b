"""What stands in front of an estimator, or around later batches of it, is seen as around a fit; what stands behind it is not in front."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators.above_half import SCHEMA, X, Y, forest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import learning_curve
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from hedgerow import Budget, HedgerowClassifier
from hedgerow.errors import BudgetError, ExactScoreWarning, PlanError, RepeatedRowsWarning
from hedgerow.estimators import surroundings


class FitsInside(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator of somebody else, around ours."""

    def __init__(self, inner: Any, how: str = "fit") -> None:
        self.inner, self.how = inner, how

    def fit(self, X: Any, y: Any) -> Any:
        self.inner_, self.classes_ = getattr(clone(self.inner), self.how)(X, y), np.unique(y)
        return self

    def transform(self, X: Any) -> Any:
        return self.inner_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_batches_see_what_is_around_them_as_fits_do(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`partial_fit` claimed ε behind a step that had learnt from the rows, and lost a payment in MultiOutputClassifier."""
    budget = Budget(5)
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), FitsInside(forest(budget), how))
    with pytest.raises(PlanError, match="StandardScaler, in front of this estimator, learnt from the rows"):
        scaled.fit(X, Y)
    both = np.column_stack([Y, Y])
    classes = {"classes": [np.array(["no", "yes"])] * 2} if how == "partial_fit" else {}
    with pytest.raises(BudgetError, match=r"2 fits need ε = 10 together.*Nothing was spent"):
        getattr(MultiOutputClassifier(forest(budget)), how)(X, both, **classes)
    assert budget.spent == 0
    with pytest.warns(RepeatedRowsWarning):
        getattr(forest(budget), how)(pd.concat([X, X]), np.concatenate([Y, Y]))
    monkeypatch.setattr(surroundings, "said", set())
    with pytest.warns(ExactScoreWarning, match="cross-validation with exact scores"):
        learning_curve(forest(Budget(99)), X, Y, cv=2, train_sizes=[0.5, 1.0], exploit_incremental_learning=how == "partial_fit")


def test_a_later_batch_that_cannot_be_paid_for_all_labels_is_refused_before_the_first() -> None:
    budget = Budget(15)
    both, classes = np.column_stack([Y, Y]), [np.array(["no", "yes"])] * 2
    model = MultiOutputClassifier(forest(budget)).partial_fit(X, both, classes=classes)
    with pytest.raises(BudgetError, match=r"2 fits need ε = 10 together, and the budget has ε = 5 left"):
        model.partial_fit(X.copy(), both)
    assert budget.spent == 10


def test_steps_behind_an_estimator_are_not_in_front_of_it() -> None:
    """A forest that selects columns, or makes them, for what comes after: its own step was said to have learnt before it."""
    budget = Budget(15)
    make_pipeline(SelectFromModel(HedgerowClassifier(SCHEMA, 5, budget=budget)), StandardScaler(), LogisticRegression()).fit(X, Y)
    make_pipeline(FitsInside(forest(budget)), StandardScaler(), LogisticRegression()).fit(X, Y)
    scaler = StandardScaler().set_output(transform="pandas")
    scaled = make_pipeline(scaler, FitsInside(forest(budget)), MinMaxScaler(), LogisticRegression())
    with pytest.raises(PlanError, match="StandardScaler, in front of this estimator"):
        scaled.fit(X, Y)
    assert budget.spent == 10
