"""What refusals and warnings around an estimator advise works, and costs nothing more."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, GroupKFold, TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from hedgerow import Budget, Categorical, Numeric, PrivateRDTClassifier, Release, Schema, Target, private_score, private_scorer
from hedgerow.errors import BudgetError, ExactScoreWarning, PlanError, SharedPersonsWarning
from hedgerow.estimators import surroundings
from hedgerow.estimators.pipelines import steps_that_learn

RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.random(600), "b": RNG.random(600), "who": np.arange(600) // 3})
Y = np.where(X.a > 0.5, "yes", "no")
SCHEMA = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], Target("class", ["no", "yes"]))
PERSONS = replace(SCHEMA, person="who", rows_per_person=3)


def forest(budget: Budget, schema: Schema = SCHEMA, epsilon: Any = 5) -> PrivateRDTClassifier:
    return PrivateRDTClassifier(schema, epsilon, budget=budget, random_state=0)


def test_the_threshold_that_is_advised_does_not_fit_again() -> None:
    budget = Budget(100)
    model = forest(budget, epsilon=50).fit(X, Y)
    with pytest.raises(PlanError, match=r"threshold_for\(recall=0.8\).*point\.takes\(model, new\).*FrozenEstimator\(model\)"):
        TunedThresholdClassifierCV(model, cv=2).fit(X, Y)
    before = budget.spent
    with pytest.raises(PlanError, match=r"one threshold after the other.*Nothing was spent.*threshold_for\(recall=0.8\)"):
        TunedThresholdClassifierCV(model, cv=2, scoring=private_scorer("0.1", budget)).fit(X, Y)
    assert budget.spent == before
    point = private_score(model, X.copy(), Y, epsilon=10, budget=budget, metrics=["auc"]).threshold_for(recall=0.8)
    spent = budget.spent
    fixed = FixedThresholdClassifier(FrozenEstimator(model), threshold=point.threshold, pos_label=point.label).fit(X, Y)
    assert ((fixed.predict(X) == "yes") == point.takes(model, X)).all()
    assert budget.spent == spent == 60


@pytest.mark.parametrize("around", [CalibratedClassifierCV, TunedThresholdClassifierCV])
def test_what_learns_around_a_frozen_model_is_said_to_be_unpaid(around: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It learnt from the rows exactly, and nothing was said."""
    model = forest(Budget(5)).fit(X, Y)
    monkeypatch.setattr(surroundings, "said", set())
    more = {"cv": "prefit", "refit": False} if around is TunedThresholdClassifierCV else {}
    with pytest.warns(ExactScoreWarning, match=f"{around.__name__}: it .*which no budget pays for"):
        wrapped = around(FrozenEstimator(model), **more).fit(X, Y)
    monkeypatch.setattr(surroundings, "said", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped.predict(X)


LETTERS = pd.DataFrame({"letter": np.array(list("abcd"))[RNG.integers(0, 4, 600)]})
GIVEN: dict[str, Any] = {"categories": [["a", "b", "c"]]}
LEARNS_NOTHING = [
    OneHotEncoder(**GIVEN, handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(**GIVEN, handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(**GIVEN, handle_unknown="use_encoded_value", unknown_value=-1),
]
LEARNS = [  # but for the first two: which values fail, are put together or warned of, which columns are dropped depends on the rows
    OneHotEncoder(), OrdinalEncoder(), OneHotEncoder(**GIVEN), OneHotEncoder(**GIVEN, handle_unknown="ignore", min_frequency=3),
    OrdinalEncoder(**GIVEN, handle_unknown="use_encoded_value", unknown_value=-1, max_categories=2),
    OneHotEncoder(**GIVEN, handle_unknown="ignore", drop="first"),
    SimpleImputer(strategy="constant", fill_value=0), SimpleImputer(keep_empty_features=True),
    SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True, add_indicator=True),
]  # fmt: skip


def test_encoders_with_given_categories_learn_nothing() -> None:
    assert [steps_that_learn(Pipeline([("step", step), ("forest", None)])) for step in LEARNS_NOTHING] == [[]] * 3
    assert all(steps_that_learn(Pipeline([("step", step), ("forest", None)])) for step in LEARNS)
    encoder = LEARNS_NOTHING[-1].set_output(transform="pandas")
    schema = Schema([Categorical("letter", [0.0, 1.0, 2.0], other="other")], Target("class", ["no", "yes"]))
    pipeline = Pipeline([("encoder", encoder), ("forest", forest(Budget(5), schema))]).fit(LETTERS, Y)
    assert pipeline[-1].release_.certificate.guarantee == "epsilon-DP"


TELLS = {
    'handle_unknown="error", a value that is not among them raises an error': (
        OneHotEncoder(**GIVEN, sparse_output=False), 'Set handle_unknown="ignore".', {"handle_unknown": "ignore"}),
    'handle_unknown="error"': (
        OrdinalEncoder(**GIVEN), 'Set handle_unknown="use_encoded_value", unknown_value=-1.',
        {"handle_unknown": "use_encoded_value", "unknown_value": -1}),
    "min_frequency=3, which of them are put together depends on how often they occur": (
        OneHotEncoder(**GIVEN, handle_unknown="ignore", sparse_output=False, min_frequency=3), "Set min_frequency=None.",
        {"min_frequency": None}),
    "; with drop='first', a warning names the columns": (
        OneHotEncoder(**GIVEN, sparse_output=False, drop="first"), 'Set handle_unknown="ignore", drop=None.',
        {"handle_unknown": "ignore", "drop": None}),
}  # fmt: skip


@pytest.mark.parametrize("why", TELLS)
def test_an_encoder_with_given_categories_is_told_which_setting_tells_of_rows(why: str) -> None:
    """It was said to have learnt from the rows, which it has not."""
    encoder, instead, settings = TELLS[why]
    budget = Budget(5)
    names = ["letter"] if isinstance(encoder, OrdinalEncoder) else [f"letter_{each}" for each in "abc"]
    schema = Schema([Categorical(name, [0.0, 1.0, 2.0], other="other") for name in names], Target("class", ["no", "yes"]))
    pipeline = Pipeline([("encoder", encoder.set_output(transform="pandas")), ("forest", forest(budget, schema))])
    with pytest.raises(PlanError, match=r"was given its categories and learns none, but with") as error:
        pipeline.fit(LETTERS[LETTERS.letter != "d"], Y[LETTERS.letter != "d"])
    assert why in str(error.value)
    assert f"Nothing was spent. {instead} Where no guarantee is wanted" in str(error.value)
    assert "learnt from the rows" not in str(error.value)
    assert budget.spent == 0
    encoder.set_params(**settings)
    assert pipeline.fit(LETTERS, Y)[-1].release_.certificate.guarantee == "epsilon-DP"


def test_an_imputer_of_a_given_value_learns_nothing() -> None:
    imputer = SimpleImputer(strategy="constant", fill_value=0.5, keep_empty_features=True).set_output(transform="pandas")
    pipeline = Pipeline([("imputer", imputer), ("forest", forest(Budget(5)))]).fit(X[["a", "b"]].mask(X.b > 0.9), Y)
    assert pipeline[-1].release_.certificate.guarantee == "epsilon-DP"
    with pytest.raises(PlanError, match=r'text is taken as it is.*declare in the schema .*strategy="constant".*keep_empty_features=True'):
        Pipeline([("imputer", SimpleImputer().set_output(transform="pandas")), ("forest", forest(Budget(5)))]).fit(X[["a", "b"]], Y)


def test_persons_on_both_sides_of_cross_validation_are_told() -> None:
    budget = Budget(1000)
    scoring = private_scorer(1, budget)
    says = r"'who' names the person of each row, and no groups are given.*GroupKFold\(5\).*groups=X\['who'\]"
    with pytest.warns(SharedPersonsWarning, match=rf"^cross-validation: .*{says}") as told:
        cross_val_score(forest(budget, PERSONS), X, Y, scoring=scoring, cv=3, error_score="raise")
    assert len(told) == 1
    with pytest.warns(SharedPersonsWarning, match=rf"^GridSearchCV: .*{says}") as told:
        GridSearchCV(forest(budget, PERSONS), {"max_depth": [1, 2]}, scoring=scoring, cv=2).fit(X, Y)
    assert len(told) == 1


def test_groups_that_are_ignored_are_told() -> None:
    budget = Budget(1000)
    with pytest.warns(SharedPersonsWarning, match=r"StratifiedKFold ignores groups, so rows of one person may be.*GroupKFold\(5\)"):
        cross_val_score(forest(budget, PERSONS), X, Y, scoring=private_scorer(1, budget), cv=3, groups=X["who"])


def test_persons_on_one_side_are_not_warned_of(tmp_path: Path) -> None:
    rows, persons = Budget(1000), Budget(1000)
    PERSONS.save(tmp_path / "schema.toml")
    scoring = private_scorer(1, persons)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateRDTClassifier(tmp_path / "schema.toml", 5, budget=persons)
        cross_val_score(model, X, Y, scoring=scoring, cv=GroupKFold(2), groups=X["who"])
        GridSearchCV(model, {"max_depth": [1]}, scoring=scoring, cv=GroupKFold(2)).fit(X, Y, groups=X["who"])
        cross_val_score(model, X, Y, scoring=scoring, cv=list(GroupKFold(2).split(X, Y, X["who"])))  # the splits are the user's own
        cross_val_score(forest(rows), X, Y, scoring=private_scorer(1, rows), cv=2)  # no persons


def test_a_model_that_cannot_be_pickled_says_how_it_is_kept(tmp_path: Path) -> None:
    model = forest(Budget(5)).fit(X, Y)
    with pytest.raises(BudgetError, match=r"model\.release_\.save\(path\)"):
        pickle.dumps(model)
    model.release_.save(tmp_path / "forest.json")
    assert (Release.load(tmp_path / "forest.json").predict(X) == model.predict(X)).all()
