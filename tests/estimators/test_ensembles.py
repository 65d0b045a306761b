"""What scikit-learn fits several times, or on rows without names: all of it is paid for, or nothing; no column is taken for another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, cross_val_score
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder
from sklearn.semi_supervised import SelfTrainingClassifier

from hedgerow import Budget, BudgetFile, Categorical, HedgerowClassifier, Numeric, PrivateRDTClassifier, Schema, Target
from hedgerow.errors import BudgetError, PlanError, TableError
from hedgerow.estimators import surroundings

RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.random(600), "b": RNG.random(600)})
Y = (X.a > 0.5).astype(int).to_numpy()
TURNED = X[["b", "a"]]
SCHEMA = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], Target("class", [0, 1]))


def forest(budget: Any, epsilon: Any = 5, schema: Schema = SCHEMA, **settings: Any) -> PrivateRDTClassifier:
    return PrivateRDTClassifier(schema, epsilon, budget=budget, random_state=0, **settings)


def bagging(model: Any, fits: int = 2, **settings: Any) -> BaggingClassifier:
    return BaggingClassifier(model, n_estimators=fits, bootstrap=False, max_samples=0.5, random_state=0, **settings)


def voting(*models: Any, **settings: Any) -> VotingClassifier:
    return VotingClassifier([("abcdef"[i], model) for i, model in enumerate(models)], **settings)


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said once in a process was said."""
    monkeypatch.setattr(surroundings, "said", {"budget", "cross-validation", "search", "large"})


# ------------------------------------------------------------ names of columns

WRONG_ORDER = r"hands rows on as an array.*it was given b, a, the schema declares a, b.*Nothing was spent.*X\[list\(schema\.names\)\]"


@pytest.mark.parametrize("piped", [False, True])
def test_columns_in_another_order_are_refused_in_bagging(piped: bool) -> None:
    """They were learnt under each other's names, and paid for."""
    budget = Budget(100)
    model = make_pipeline(FunctionTransformer(), forest(budget)) if piped else forest(budget)
    with pytest.raises(PlanError, match=f"BaggingClassifier {WRONG_ORDER}"):
        bagging(model).fit(TURNED, Y)
    assert budget.spent == 0
    fitted = bagging(model).fit(TURNED[list(SCHEMA.names)], Y)
    assert budget.spent == 10
    assert (fitted.predict(X) == Y).mean() > 0.8
    bagging(model).fit(TURNED.to_numpy(), Y)  # whoever gives an array knows its order


def test_columns_in_another_order_are_refused_in_cross_validation_of_bagging() -> None:
    budget = Budget(100)
    with pytest.raises(PlanError, match=WRONG_ORDER):
        cross_val_score(bagging(forest(budget)), TURNED, Y, cv=2, error_score="raise")
    assert budget.spent == 0
    assert cross_val_score(bagging(forest(budget)), X, Y, cv=2).mean() > 0.8


def test_other_columns_are_refused_in_bagging() -> None:
    budget = Budget(100)
    for table in (X.rename(columns={"a": "c"}), X.assign(id=range(600))):
        with pytest.raises(PlanError, match=r"BaggingClassifier hands rows on as an array.*the schema declares a, b"):
            bagging(forest(budget)).fit(table, Y)
    with pytest.raises(PlanError, match=r"bootstrap_features=True\) draws columns.*Nothing was spent"):
        bagging(forest(budget), bootstrap_features=True).fit(X, Y)
    assert budget.spent == 0


def test_what_else_hands_arrays_on_is_refused() -> None:
    budget = Budget(100)
    imputer = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
    with pytest.raises(PlanError, match=rf'Pipeline {WRONG_ORDER}.*set_output\(transform="pandas"\)'):
        make_pipeline(imputer, forest(budget)).fit(TURNED, Y)
    with pytest.raises(PlanError, match=r"ClassifierChain is around this estimator.*Nothing was spent"):
        ClassifierChain(forest(budget)).fit(X, np.c_[Y, Y])
    with pytest.raises(ValueError, match="sample_weight"):
        AdaBoostClassifier(forest(budget)).fit(TURNED, Y)
    assert budget.spent == 0
    make_pipeline(imputer, forest(budget)).fit(X, Y)
    make_pipeline(imputer.set_output(transform="pandas"), forest(budget)).fit(TURNED, Y)
    assert budget.spent == 10


def test_columns_that_a_step_makes_have_other_names() -> None:
    letters = pd.DataFrame({"letter": np.where(Y, "x", "y"), "c": "x"})
    encoder = OneHotEncoder(categories=[["x", "y"]] * 2, handle_unknown="ignore", sparse_output=False)
    schema = Schema([Categorical(f"is{i}", [0, 1]) for i in range(4)], SCHEMA.target)
    model = make_pipeline(encoder, forest(Budget(15), schema=schema))
    assert model.fit(letters, Y).score(letters, Y) > 0.9
    assert bagging(model).fit(letters, Y).score(letters, Y) > 0.9


def test_frames_that_are_handed_on_keep_their_names() -> None:
    fitted = voting(forest(Budget(5)), forest(Budget(5)), voting="soft").fit(TURNED, Y)
    assert (fitted.predict(TURNED) == Y).mean() > 0.8
    assert MultiOutputClassifier(forest(Budget(10))).fit(TURNED, np.c_[Y, Y]).predict(TURNED).shape == (600, 2)


# ------------------------------------------------------------ all fits of an ensemble are paid, or none


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_members_that_cannot_all_be_paid_are_refused_before_the_first(n_jobs: int) -> None:
    """The first was paid for, and lost with the second."""
    budget = Budget(9)
    with joblib.parallel_config("threading", n_jobs=n_jobs):
        said = r"^VotingClassifier: 2 fits need ε = 10 together, and the budget has ε = 9 left\. Nothing was spent\. Ask for fewer"
        with pytest.raises(BudgetError, match=said):
            voting(LogisticRegression(), forest(budget), make_pipeline(FunctionTransformer(), forest(budget))).fit(X, Y)
        with pytest.raises(BudgetError, match=r"^VotingClassifier: 3 fits need ε = 15 together"):
            voting(forest(budget), bagging(forest(budget))).fit(X, Y)
        with pytest.raises(BudgetError, match=r"^VotingClassifier: 1 fit needs ε = 5, and the budget has ε = 4 left"):
            voting(forest(budget), forest(Budget(4))).fit(X, Y)
        assert budget.spent == 0
        enough = Budget(10)
        voting(forest(enough), forest(enough)).fit(X, Y)
    assert enough.remaining == 0


def test_fits_that_cannot_all_be_paid_are_refused_before_the_first() -> None:
    budget, enough = Budget(9), Budget(15)
    with pytest.raises(BudgetError, match=r"^BaggingClassifier: 3 fits need ε = 15 together.*the estimator alone, which grows many"):
        bagging(forest(budget), 3).fit(X, Y)
    with pytest.raises(BudgetError, match=r"^MultiOutputClassifier: 2 fits need ε = 10 together"):
        MultiOutputClassifier(forest(budget)).fit(X, np.c_[Y, Y])
    assert budget.spent == 0
    bagging(forest(enough), 3).fit(X, Y)
    assert enough.remaining == 0


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_fits_in_workers_of_an_ensemble_are_refused(backend: str, tmp_path: Path) -> None:
    """In processes the first was paid for, and lost with the second; steps in front were not seen, in threads neither."""
    BudgetFile.create(tmp_path / "budget.json", 100)
    budget = BudgetFile(tmp_path / "budget.json")
    for model, labels in ((bagging(forest(budget)), Y), (MultiOutputClassifier(forest(budget)), np.c_[Y, Y])):
        said = rf"{type(model).__name__}\(n_jobs=…\) fits in threads or processes of its own.*Nothing was spent\. Give n_jobs to"
        with joblib.parallel_config(backend, n_jobs=2), pytest.raises(PlanError, match=said):
            model.fit(X, labels)
    assert budget.spent == 0


def test_the_fits_of_several_outputs_are_counted_in_cross_validation_and_searches() -> None:
    """One fit a fold was counted, and scores were [1, 1, nan]."""
    budget, labels = Budget(25), np.c_[Y, Y]
    with pytest.raises(BudgetError, match=r"^cross-validation: 6 fits need ε = 30 together"):
        cross_val_score(MultiOutputClassifier(forest(budget)), X, labels, cv=3)
    with pytest.raises(BudgetError, match=r"^GridSearchCV: 8 \+ 2 fits need ε = 28 together"):
        GridSearchCV(MultiOutputClassifier(forest(budget)), {"estimator__epsilon": [1, 4]}, cv=2).fit(X, labels)
    assert budget.spent == 0
    assert np.isfinite(cross_val_score(MultiOutputClassifier(forest(budget)), X, labels, cv=2)).all()
    assert budget.spent == 20


BETWEEN = {
    "voting": lambda model: voting(model, model),
    "bagging": bagging,
    "a search": lambda model: GridSearchCV(model, {"epsilon": [1, 5]}, cv=2),
    "outputs": lambda model: MultiOutputClassifier(model),
    "a threshold": lambda model: FixedThresholdClassifier(model, threshold=0.3),
    "a pipeline": lambda model: Pipeline([("inner", model)]),
    "a search in processes": lambda model: GridSearchCV(model, {"epsilon": [1, 5]}, cv=2, n_jobs=2),
    "voting in processes": lambda model: voting(model, model, n_jobs=2),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_a_step_that_learns_is_seen_whatever_stands_behind_it(between: str, tmp_path: Path) -> None:
    """Only a step in front of the estimator itself was: such releases claimed ε."""
    BudgetFile.create(tmp_path / "budget.json", 100)
    budget = BudgetFile(tmp_path / "budget.json")
    labels = np.c_[Y, Y] if between == "outputs" else Y
    model = BETWEEN[between](forest(budget))
    with pytest.raises(PlanError, match=r"MinMaxScaler, in front of this estimator, learnt from the rows.*Nothing was spent"):
        make_pipeline(MinMaxScaler(), model).set_output(transform="pandas").fit(X, labels)
    columns = ColumnTransformer([("b", "passthrough", ["b"])], remainder="passthrough")
    with pytest.raises(PlanError, match=r"ColumnTransformer, in front of this estimator, passes columns on without their names"):
        make_pipeline(columns, model).fit(X, labels)
    assert budget.spent == 0
    if "processes" not in between:
        make_pipeline(FunctionTransformer(), model).fit(X, labels)
        assert budget.spent > 0


def test_arrays_that_other_code_makes_are_taken_at_their_word() -> None:
    class Own(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: pd.DataFrame, y: Any) -> Any:
            self.feature_names_in_ = np.array(list(X.columns))
            self.model_ = forest(Budget(5)).fit(X[list(SCHEMA.names)].to_numpy(), y)
            return self

    assert (Own().fit(TURNED.assign(id=1), Y).model_.predict(X) == Y).mean() > 0.8


def test_self_training_is_refused() -> None:
    """Which rows it labels, and when it stops, is an exact look at rows; and the budget was used up without a model."""
    budget = Budget(100)
    with pytest.raises(PlanError, match=r"SelfTrainingClassifier is around this estimator: which rows it gives labels.*Nothing was spent"):
        SelfTrainingClassifier(forest(budget)).fit(X, np.where(np.arange(600) % 3, Y, -1))
    assert budget.spent == 0


def test_members_that_share_a_budget_file_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    BudgetFile.create("budget.json", 9)
    one, other = BudgetFile("budget.json"), BudgetFile(tmp_path / "budget.json")
    with pytest.raises(BudgetError, match="2 fits need ε = 10 together, and the budget has ε = 9 left"):
        voting(forest(one), forest(other)).fit(X, Y)
    assert one.spent == 0


def test_every_member_is_counted_in_cross_validation_and_searches() -> None:
    """One fit a fold was counted, and scores were [0.79, nan, nan]."""
    budget = Budget(25)
    pair = voting(forest(budget), forest(budget, 1))
    with pytest.raises(BudgetError, match=r"^cross-validation: 10 fits need ε = 30 together, and the budget has ε = 25 left"):
        cross_val_score(pair, X, Y, cv=5)
    with pytest.raises(BudgetError, match=r"^cross-validation: 6 fits need ε = 30 together"):
        cross_val_score(bagging(forest(budget)), X, Y, cv=3)
    said = r"^GridSearchCV: 8 \+ 2 fits need ε = 34\.5 together"  # 5 + 1 and 5 + 2.5 in two folds each, and 5 + 2.5
    with pytest.raises(BudgetError, match=said):
        GridSearchCV(pair, {"b__epsilon": [1, "2.5"]}, cv=2, refit=True).fit(X, Y)
    with pytest.raises(BudgetError, match=r"^GridSearchCV: 5 \+ 3 fits need ε = 32"):
        GridSearchCV(bagging(forest(budget, 4)), {"n_estimators": [2, 3]}, cv=[(np.arange(300), np.arange(300, 600))]).fit(X, Y)
    assert budget.spent == 0
    assert np.isfinite(cross_val_score(pair, X, Y, cv=4, error_score="raise")).all()
    assert budget.spent == 24


def test_a_member_that_is_frozen_or_dropped_costs_nothing() -> None:
    budget = Budget(10)
    fitted = forest(budget).fit(X, Y)
    voting(FrozenEstimator(fitted), forest(budget), "drop").fit(X, Y)
    assert budget.spent == 10


OTHERS = {
    "a plan": (lambda budget: HedgerowClassifier(SCHEMA, 5, bins=-3, budget=budget), r"bins: got -3"),
    "sampler": (lambda budget: forest(budget, sampler="dice"), r"sampler: got 'dice'"),
    "columns": (lambda budget: forest(budget, schema=replace(SCHEMA, attributes=[Numeric("c", 0, 1)])), "declared column"),
    "classes": (lambda budget: forest(budget, schema=replace(SCHEMA, target=Target("class", [1, 2]))), "hands the classes over"),
    "a draft": (lambda budget: forest(budget, schema=replace(SCHEMA, target=replace(SCHEMA.target, unreviewed=True))), "not reviewed"),
    "a step": (lambda budget: make_pipeline(MinMaxScaler(), forest(budget)), "MinMaxScaler, in front of this estimator"),
    "columns of bagging": (lambda budget: bagging(forest(budget)), WRONG_ORDER),
    "bagging": (lambda budget: BaggingClassifier(forest(budget)), "draws rows with repetition"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_member_that_would_be_refused_is_refused_before_the_first_is_paid(other: str) -> None:
    make, why = OTHERS[other]
    budget = Budget(100)
    with pytest.raises(PlanError, match=why) as error:
        voting(forest(budget), make(budget)).fit(TURNED, Y)
    assert budget.spent == 0
    named = "VotingClassifier: the member 'b' would be refused, and the others paid for. Nothing was spent." in str(error.value)
    assert named or other == "bagging"
    with pytest.raises((PlanError, TableError, ValueError)):
        cross_val_score(voting(forest(budget), make(budget)), TURNED, Y, cv=2)
    assert budget.spent == 0


def test_settings_of_a_member_are_named_before_the_first_fold() -> None:
    budget = Budget(100)
    with pytest.raises(PlanError, match=r"cross-validation: the member 'b' would be refused.*bins: got -3"):
        cross_val_score(voting(forest(budget), OTHERS["a plan"][0](budget)), X, Y, cv=2)
    with pytest.raises(PlanError, match=r"^sampler: got 'dice'"):  # of the first nothing is paid before it
        cross_val_score(voting(OTHERS["sampler"][0](budget), forest(budget)), X, Y, cv=2)
    assert budget.spent == 0


def test_a_pipeline_around_an_ensemble_is_looked_into() -> None:
    budget = Budget(9)
    with pytest.raises(BudgetError, match="cross-validation: 4 fits need ε = 20 together"):
        cross_val_score(Pipeline([("same", FunctionTransformer()), ("v", voting(forest(budget), forest(budget)))]), X, Y, cv=2)
    assert budget.spent == 0
