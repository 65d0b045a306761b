"""What scikit-learn puts around a private estimator: pipelines work with charged scores, the rest is refused before it costs, and free
looks are told."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from estimators.above_half import SCHEMA, X, Y, forest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from strategies import small_schema, small_table

from hedgerow import (
    Budget,
    BudgetFile,
    Categorical,
    DPDFClassifier,
    HedgerowClassifier,
    Numeric,
    PrivateRDTClassifier,
    RandomDecisionTreesClassifier,
    Schema,
    Target,
    private_score,
    private_scorer,
)
from hedgerow.errors import (
    BudgetError,
    ExactScoreWarning,
    LargeEpsilonWarning,
    NoBudgetWarning,
    PlanError,
    RepeatedRowsWarning,
    SchemaError,
    SchemaMismatchWarning,
    TableError,
    TransformerWarning,
    UnknownValuesWarning,
)
from hedgerow.estimators import pipelines, repetitions, surroundings


def piped(*steps: Any, budget: Budget | None = None) -> Pipeline:
    return Pipeline([*((f"step{i}", step) for i, step in enumerate(steps)), ("forest", forest(budget))])


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "said", set())


# ------------------------------------------------------------ pipelines


def test_a_pipeline_is_scored_and_charged_in_cross_validation() -> None:
    """It gave five nan, and the ε was gone."""
    budget = Budget(30)
    same = FunctionTransformer(lambda table: table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = cross_val_score(piped(same, budget=budget), X, Y, scoring=private_scorer(1, budget), cv=5, error_score="raise")
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.6
    assert budget.spent == 5 * 5 + 5


def test_a_transformer_that_learns_is_refused_before_it_costs() -> None:
    budget = Budget(30)
    pipeline = piped(MinMaxScaler().set_output(transform="pandas"), budget=budget)
    with pytest.raises(PlanError, match=r"MinMaxScaler, in front of .* learnt from the rows .* Nothing was spent.*schema.*__no_guar"):
        pipeline.fit(X, Y)
    with pytest.raises(ValueError, match="fits failed"):
        cross_val_score(pipeline, X, Y, scoring=private_scorer(1, budget), cv=2)
    assert budget.spent == 0


def test_a_transformer_that_learns_can_be_taken_and_the_release_claims_nothing() -> None:
    budget = Budget(30)
    pipeline = piped(MinMaxScaler().set_output(transform="pandas"), budget=budget)
    with pytest.warns(TransformerWarning, match="MinMaxScaler, in front of this estimator, learnt from the rows"):
        pipeline.fit(X, Y, forest__no_guarantee=True)
    release = pipeline[-1].release_
    assert release.certificate.guarantee == "none"
    assert "MinMaxScaler" in release.certificate.sentence()
    score = private_score(pipeline, X.copy(), Y, epsilon=1, budget=budget)
    assert score.certificate.guarantee == "none"
    assert score.accuracy > 0.6
    assert budget.spent == 6


def test_what_learns_nothing_keeps_the_guarantee() -> None:
    pipeline = piped(FunctionTransformer(lambda table: table), "passthrough", budget=Budget(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipeline.fit(X, Y)[-1].release_.certificate.guarantee == "epsilon-DP"
    forest(Budget(5)).fit(X, Y)  # alone: nothing is around it


def test_what_learns_is_found_inside() -> None:
    inner = Pipeline([("plain", FunctionTransformer()), ("scale", StandardScaler())])
    columns = ColumnTransformer([("inner", inner, ["a"]), ("rest", "passthrough", ["b"])])
    union = FeatureUnion([("one", MinMaxScaler()), ("two", FunctionTransformer())])
    pipeline = Pipeline([("columns", columns), ("union", union), ("none", None), ("forest", forest())])
    assert [type(step) for step in pipelines.steps_that_learn(pipeline)] == [StandardScaler, MinMaxScaler]


def test_a_pipeline_scores_rows_in_memory_alone(tmp_path: Any) -> None:
    pipeline = piped(FunctionTransformer(lambda table: table)).fit(X, Y)
    X.assign(**{"class": Y}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(PlanError, match="rows in memory"):
        private_score(pipeline, tmp_path / "rows.csv", epsilon=1)


# ------------------------------------------------------------ searches


def test_a_search_with_charged_scores_works() -> None:
    budget = Budget(100)
    search = GridSearchCV(
        piped(FunctionTransformer(), budget=budget), {"forest__max_depth": [1, 2]}, scoring=private_scorer(1, budget), cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, Y)
    assert budget.spent == 5 * (2 * 2 + 1) + 2 * 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert private_score(search, X.copy(), Y, epsilon=1, budget=budget).accuracy > 0.6


def test_a_search_that_cannot_be_paid_whole_is_refused_before_the_first_fit() -> None:
    budget = Budget(24)
    search = GridSearchCV(forest(budget), {"max_depth": [1, 2]}, scoring=private_scorer("0.5", budget), cv=2)
    said = r"GridSearchCV: 4 \+ 1 fits and 4 scores need ε = 27 together, and the budget has ε = 24 left\. Nothing was spent.*tune"
    with pytest.raises(BudgetError, match=said):
        search.fit(X, Y)
    with pytest.raises(BudgetError, match=r"5 fits and 5 scores need ε = 27.5 together"):
        cross_val_score(piped(FunctionTransformer(), budget=budget), X, Y, scoring=private_scorer("0.5", budget), cv=5)
    with pytest.raises(BudgetError, match=r"3 fits and 6 scores need ε = 27 together"):
        cross_validate(forest(budget), X, Y, scoring={"a": private_scorer(2, budget)}, cv=3, return_train_score=True)
    with pytest.raises(BudgetError, match=r"4 \+ 1 fits and 4 scores need ε = 72 together"):  # an ε of its own for each candidate
        GridSearchCV(forest(budget), {"epsilon": [1, 20]}, scoring=private_scorer("2.5", budget), cv=2).fit(X, Y)
    said = r"2 fits need \(ε = 2, δ = 2e-06\) together, and the budget has ε = 24 left.*has nothing to tune but max_passes"
    with pytest.raises(BudgetError, match=said):
        cross_val_score(HedgerowClassifier(SCHEMA, 1, 1e-6, budget=budget), X, Y, scoring=private_scorer(1, Budget(9)), cv=2)
    assert budget.spent == 0
    cross_val_score(forest(budget), X, Y, scoring=private_scorer("0.5", budget), cv=4)
    assert budget.spent == 22
    one = Budget(5)
    clone(forest(one)).fit(X, Y)  # nothing around it
    assert one.spent == 5


REFUSED = [
    (DPDFClassifier, {"max_depth": [3, None]}, "max_depth=None", "max_depth: got None; expected a whole number of at least 1"),
    (HedgerowClassifier, {"bins": [50, -3]}, "bins=-3", "bins: got -3; expected a whole number of at least 1"),
    (HedgerowClassifier, {"max_passes": [8, 0]}, "max_passes=0", "max_passes: got 0; expected a whole number of at least"),
    (HedgerowClassifier, {"delta": [0, 2]}, "delta=2", "delta: got 2"),
    (DPDFClassifier, {"sampler": ["hedgerow", "dice"]}, "sampler='dice'", "sampler: got 'dice'"),
    (PrivateRDTClassifier, {"epsilon": [1, 0]}, "epsilon=0", "epsilon: got 0"),
]


@pytest.mark.parametrize(("make", "grid", "candidate", "why"), REFUSED)
def test_a_candidate_that_would_be_refused_is_refused_before_the_first_fit(make: Any, grid: Any, candidate: str, why: str) -> None:
    budget = Budget(100, "0.1")
    model, scoring = make(SCHEMA, 1, budget=budget), private_scorer(1, budget)
    [(name, values)] = grid.items()
    in_rounds = {"cv": 2, "scoring": scoring, "min_resources": 100, "random_state": 0}
    searches = [
        GridSearchCV(model, grid, scoring=scoring, cv=2),
        GridSearchCV(Pipeline([("f", model)]), {f"f__{name}": values}, scoring=scoring, cv=2),
        GridSearchCV(Pipeline([("f", model)]), {"f": [clone(model), make(SCHEMA, **{"epsilon": 1, name: values[1]})]}, scoring=scoring),
        RandomizedSearchCV(model, grid, n_iter=2, scoring=scoring, cv=2, random_state=0),
        HalvingGridSearchCV(model, grid, **in_rounds),
    ]
    for search in searches:
        with pytest.raises(PlanError, match=re.escape(why)) as error:
            search.fit(X, Y)
        replaced = search is searches[2]
        assert f"{type(search).__name__}: a candidate" in str(error.value)
        assert replaced or f"{candidate})" in str(error.value)
        assert "Nothing was spent." in str(error.value)
        assert budget.entries == ()
    with pytest.raises(PlanError, match="validation_curve: a candidate"):
        validation_curve(model, X, Y, param_name=name, param_range=values, scoring=scoring, cv=2)
    assert budget.entries == ()


def test_a_parameter_that_is_none_is_named_before_the_first_fit() -> None:
    budget = Budget(100)
    grids = [{"max_depth": [1]}, {"max_dept": [1]}]
    with pytest.raises(ValueError, match="max_dept"):
        GridSearchCV(forest(budget), grids, scoring=private_scorer(1, budget), cv=2).fit(X, Y)
    assert budget.entries == ()


def test_what_a_candidate_holds_is_not_shown_where_it_may_be_rows() -> None:
    budget = Budget(100)
    grid = [{"schema": [SCHEMA]}, {"schema": [X], "max_depth": [1]}]
    with pytest.raises(PlanError, match=r"a candidate \(max_depth=1\) would be refused.*schema: got a DataFrame"):
        GridSearchCV(forest(budget), grid, scoring=private_scorer(1, budget), cv=2).fit(X, Y)
    assert budget.entries == ()


def test_two_budgets_for_the_same_people_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one shows what the fits have cost, the other what the scores have, and neither the sum."""
    monkeypatch.setattr(repetitions, "said", set())
    fits, scores = Budget(100), Budget(9)
    with pytest.warns(NoBudgetWarning, match="cross-validation: the estimator and the scorer have two budgets, .* the same people"):
        cross_val_score(forest(fits), X, Y, scoring=private_scorer("0.2", scores), cv=3)
    cross_val_score(forest(fits), X, Y, scoring=private_scorer("0.2", scores), cv=3)  # a second warning would be an error
    monkeypatch.setattr(repetitions, "said", set())
    cross_val_score(forest(fits), X, Y, scoring=private_scorer("0.2", fits), cv=2)
    with pytest.raises(BudgetError, match="need"):
        cross_val_score(forest(fits), X, Y, scoring=private_scorer(9, scores), cv=2)  # what cannot be paid is refused first


def test_a_budget_in_memory_and_several_processes_are_refused_with_what_to_use(tmp_path: Any) -> None:
    budget = Budget(100)
    for run in (
        lambda: cross_val_score(forest(budget), X, Y, scoring=private_scorer(1, budget), cv=2, n_jobs=2),
        lambda: GridSearchCV(forest(), {"max_depth": [1]}, scoring=private_scorer(1, budget), cv=2, n_jobs=2).fit(X, Y),
    ):
        with pytest.raises(PlanError, match=r"n_jobs is 2, and a Budget in memory cannot be shared .* Nothing was spent.*BudgetFile"):
            run()
    assert budget.spent == 0
    with joblib.parallel_config("threading"):
        assert len(cross_val_score(forest(budget), X, Y, scoring=private_scorer(1, budget), cv=2, n_jobs=2)) == 2
    assert budget.spent == 12


@pytest.mark.slow
def test_several_processes_share_a_budget_file(tmp_path: Any) -> None:
    budget = BudgetFile.create(tmp_path / "budget.json", 20)
    scores = cross_val_score(forest(budget), X, Y, scoring=private_scorer(1, budget), cv=2, n_jobs=2, error_score="raise")
    assert np.isfinite(scores).all()
    assert budget.spent == 12
    with pytest.raises(BudgetError, match="need ε = 18 together"):
        cross_val_score(forest(budget), X, Y, scoring=private_scorer(1, budget), cv=3, n_jobs=2)
    assert budget.spent == 12


@pytest.mark.parametrize("metric", ["accuracy", "recall", "precision", "auc", "brier"])
def test_a_scorer_of_each_metric(metric: str) -> None:
    budget = Budget(20)
    score = private_scorer(10, budget, metric)(forest(epsilon=50).fit(X, Y), X.copy(), Y)
    assert (-0.25 <= score <= 0) if metric == "brier" else (0.7 <= score <= 1)
    assert budget.spent == 10
    with pytest.raises(PlanError, match="metric"):
        private_scorer(1, budget, "f2")


AROUND = {
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model, cv=2),
    "CalibratedClassifierCV, one": lambda model: CalibratedClassifierCV(model, cv=2, ensemble=False),
    "TunedThresholdClassifierCV": lambda model: TunedThresholdClassifierCV(model, cv=2),
    "StackingClassifier": lambda model: StackingClassifier([("forest", model)], cv=2),
}


@pytest.mark.parametrize("around", AROUND)
def test_what_learns_from_exact_scores_is_refused_before_it_costs(around: str) -> None:
    budget = Budget(100)
    with pytest.raises(PlanError, match=rf"{around.split(',')[0]} is around this estimator.*Use"):
        AROUND[around](forest(budget)).fit(X, Y)
    with pytest.raises(ValueError, match="fits failed"):
        cross_val_score(AROUND[around](forest(budget)), X, Y, scoring=private_scorer(1, budget), cv=2)
    assert budget.spent == 0


def test_what_the_scorer_could_not_score_is_refused_before_it_costs() -> None:
    budget = Budget(100)
    voting = VotingClassifier([("forest", forest(budget))], voting="soft")
    with pytest.raises(PlanError, match="inside of VotingClassifier"):
        cross_val_score(voting, X, Y, scoring=private_scorer(1, budget), cv=2, error_score="raise")
    assert budget.spent == 0
    FixedThresholdClassifier(forest(budget), threshold=0.3, pos_label="yes").fit(X, Y)
    assert budget.spent == 5  # a threshold that is given learns nothing


# ------------------------------------------------------------ what scikit-learn would do to the rows, columns and labels


def test_rows_that_are_drawn_twice_are_refused() -> None:
    """Each certificate named an ε that did not hold for a row which was counted several times."""
    budget = Budget(100)
    with pytest.raises(PlanError, match=r"BaggingClassifier draws rows with repetition.*Nothing was spent"):
        BaggingClassifier(forest(budget), n_estimators=2).fit(X, Y == "yes")
    assert budget.spent == 0
    numbered = PrivateRDTClassifier(replace(SCHEMA, target=Target("class", [0, 1])), 5, budget=budget)
    BaggingClassifier(numbered, n_estimators=2, bootstrap=False, max_samples=0.5).fit(X, (Y == "yes").astype(int))
    assert budget.spent == 10


MANY = {
    "cross_val_predict": (5, lambda model: cross_val_predict(model, X, Y, cv=5)),
    "permutation_test_score": (12, lambda model: permutation_test_score(model, X, Y, cv=2, n_permutations=5)),
    "learning_curve": (6, lambda model: learning_curve(model, X, Y, cv=3, train_sizes=[0.5, 1.0])),
    "validation_curve": (4, lambda model: validation_curve(model, X, Y, cv=2, param_name="max_depth", param_range=[1, 2])),
}


@pytest.mark.filterwarnings("ignore::hedgerow.errors.ExactScoreWarning")
@pytest.mark.parametrize("name", MANY)
def test_all_fits_are_counted_before_the_first(name: str) -> None:
    """They used up a budget, and returned nothing."""
    fits, ask = MANY[name]
    budget = Budget(5 * fits - 1)
    with pytest.raises(BudgetError, match=rf"{name}: {fits} fits need ε = {5 * fits} together.*Nothing was spent"):
        ask(forest(budget))
    assert budget.spent == 0
    enough = Budget(5 * fits)
    ask(forest(enough))
    assert enough.remaining == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_predictions_of_rows_held_out_are_told_once(n_jobs: int) -> None:
    """accuracy_score(y, cross_val_predict(…)) is the exact score of which cross_val_score warns."""
    budget = Budget(100)
    with (
        joblib.parallel_config("threading", n_jobs=n_jobs),
        pytest.warns(ExactScoreWarning, match=r"^cross_val_predict: .*exact look at the rows held out.*private_scorer.*said once") as told,
    ):
        cross_val_predict(forest(budget), X, Y, cv=4)
    assert len(told) == 1
    cross_val_predict(forest(budget), X, Y, cv=2)  # the test set-up makes warnings errors


def test_scores_of_curves_are_counted() -> None:
    budget = Budget(28)
    with pytest.raises(BudgetError, match=r"4 fits and 8 scores need ε = 28.8 together"):
        validation_curve(forest(budget), X, Y, cv=2, param_name="max_depth", param_range=[1, 2], scoring=private_scorer("1.1", budget))
    assert budget.spent == 0


def test_labels_in_another_order_than_the_rows_are_refused() -> None:
    """They were put together by their places, and the forest learnt nothing."""
    budget, labels = Budget(15), pd.Series(Y)
    shuffled = labels.sample(frac=1, random_state=1)
    with pytest.raises(TableError, match=r"another order.*Nothing was spent.*y\.loc\[X\.index\]"):
        forest(budget).fit(X, shuffled)
    assert budget.spent == 0
    model = forest(budget).fit(X, shuffled.loc[X.index])
    with pytest.raises(TableError, match="another order"):
        private_score(model, X.copy(), shuffled, epsilon=1, budget=budget)
    forest(budget).fit(X, labels.set_axis(range(1000, 1600)))  # numbers of its own say nothing
    forest(budget).fit(X, shuffled.to_numpy())
    assert budget.spent == 15


def test_classes_that_scikit_learn_numbers_are_named() -> None:
    budget = Budget(100)
    search = GridSearchCV(forest(budget), {"max_depth": [1, 2]}, cv=2, error_score="raise")  # it would compare "no" with 0
    with pytest.raises(PlanError, match=r"cross_val_predict of scikit-learn hands the classes over as the numbers.*'no', 'yes'"):
        cross_val_predict(search, X, Y, cv=2, method="predict_proba")
    with pytest.raises(PlanError, match="VotingClassifier of scikit-learn hands the classes over"):
        VotingClassifier([("forest", forest(budget))], voting="soft").fit(X, Y)
    with pytest.raises(PlanError, match=r"OneVsRestClassifier .* shows each fit other labels"):
        OneVsRestClassifier(forest(budget)).fit(X, Y)
    assert budget.spent == 0
    numbered = PrivateRDTClassifier(replace(SCHEMA, target=Target("class", [0, 1])), 5, budget=budget)
    assert cross_val_predict(numbered, X, (Y == "yes").astype(int), cv=2, method="predict_proba").shape == (600, 2)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
@pytest.mark.parametrize("declared", [["yes", "no"], ["perhaps", "yes", "no"], ["yes", "nay"]])
def test_probabilities_of_cross_val_predict_stand_under_the_classes_that_labels_have(declared: list[str]) -> None:
    """Texts were refused: scikit-learn hands numbers over, in the order of the labels that it finds."""
    model = PrivateRDTClassifier(replace(SCHEMA, target=Target("class", declared)), 5, budget=Budget(100), random_state=0)
    for each in (model, Pipeline([("forest", model)]), RandomDecisionTreesClassifier(schema=model.schema, random_state=0)):
        shares = cross_val_predict(each, X, Y, cv=2, method="predict_proba")
        assert shares.shape == (600, 2)
        if "no" in declared:
            assert (np.array(["no", "yes"])[shares.argmax(axis=1)] == Y).mean() > 0.8
        else:  # nothing was learnt of it, and "nay" does not stand in its column
            assert not shares[:, 0].any()
            assert (shares[:, 1] > 0.5).all()
    margins = cross_val_predict(HedgerowClassifier(model.schema, 5, budget=Budget(10)), X, Y, cv=2, method="decision_function")
    assert ((margins > 0) == (Y == "yes")).mean() > 0.8 if "no" in declared else (margins > 0).all()
    assert model.fit(X, Y).classes_.tolist() == sorted(declared)


def test_a_selection_of_columns_is_refused_before_the_first_fit() -> None:
    budget = Budget(100)
    for selection in (RFE(forest(budget), n_features_to_select=1), SequentialFeatureSelector(forest(budget), n_features_to_select=1, cv=2)):
        with pytest.raises((PlanError, ValueError), match=r"a selection of columns is around this estimator|fits failed"):
            selection.fit(X, Y)
    assert budget.spent == 0


def test_columns_keep_their_names_behind_a_column_transformer() -> None:
    """They were taken for each other, and the fit was paid."""
    budget = Budget(100)
    turned = ColumnTransformer([("all", "passthrough", ["b", "a"])], verbose_feature_names_out=False)
    with pytest.raises(PlanError, match="ColumnTransformer, in front of this estimator, passes columns on without their names"):
        piped(turned, budget=budget).fit(X, Y)
    assert budget.spent == 0
    pipeline = piped(turned, budget=budget).set_output(transform="pandas").fit(X, Y)
    assert (pipeline.predict(X) == Y).mean() > 0.8


def test_columns_that_get_a_prefix_are_told_how_to_keep_their_names() -> None:
    budget = Budget(100)
    turned = ColumnTransformer([("k", "passthrough", ["b"])], remainder="passthrough")
    with pytest.raises(PlanError, match=r"'k__b', 'remainder__a', .*Nothing was spent. Keep the names: verbose_feature_names_out=False"):
        piped(turned, budget=budget).set_output(transform="pandas").fit(X, Y)
    with pytest.raises(PlanError, match=r"Nothing was spent\. Declare them, or leave the step out"):
        piped(FunctionTransformer(lambda table: table.assign(c=0)), budget=budget).fit(X, Y)
    assert budget.spent == 0
    turned.set_params(verbose_feature_names_out=False)
    piped(turned, budget=budget).set_output(transform="pandas").fit(X, Y)


# ------------------------------------------------------------ free looks are told


def test_exact_cross_validation_is_told_once() -> None:
    with pytest.warns(ExactScoreWarning, match="cross-validation with exact scores") as told:
        cross_val_score(forest(Budget(100)), X, Y, cv=2)
    assert len(told) == 1  # and not once more for each score
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(forest(Budget(100)), X, Y, cv=2, scoring="roc_auc")


def test_an_exact_search_is_told_once() -> None:
    with pytest.warns(ExactScoreWarning, match=r"a search by exact scores.*tune"):
        GridSearchCV(forest(Budget(100)), {"max_depth": [1]}, scoring={"a": "accuracy", "b": "roc_auc"}, refit="a", cv=2).fit(X, Y)


def test_a_fit_without_a_budget_is_told_once() -> None:
    with pytest.warns(NoBudgetWarning, match=r"no budget: nothing adds up the ε = 5.*hedgerow\.Budget"):
        forest().fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest().fit(X, Y)
        surroundings.said.clear()
        forest(Budget(5)).fit(X, Y)


# ------------------------------------------------------------ weights


def test_an_epsilon_that_protects_hardly_at_all_is_told_once() -> None:
    with pytest.warns(LargeEpsilonWarning, match=r"ε = 100 is hardly any protection: a guess .* is right nearly always") as told:
        forest(Budget(200), 100).fit(X, Y)
    assert len([each for each in told if each.category is LargeEpsilonWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest(Budget(200), 100).fit(X, Y)
        forest(Budget(8), 8).fit(X, Y)


def test_weights_of_rows_are_refused_with_the_reason() -> None:
    budget = Budget(5)
    with pytest.raises(PlanError, match=r"sample_weight: a weight changes .* \(the sensitivity\)"):
        forest(budget).fit(X, Y, sample_weight=np.ones(600))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieght'"):
        forest(budget).fit(X, Y, wieght=1)
    assert budget.spent == 0
    forest(budget).fit(X, Y, sample_weight=None)


def test_weights_of_classes_are_for_predictions() -> None:
    with pytest.raises(PlanError, match=r"class_weight: weights in training.*predict\(X, class_weight"):
        HedgerowClassifier(SCHEMA, 1, class_weight="balanced")
    rare_X, rare_y = small_table(4000)
    rare = (rare_y == "yes") & (np.arange(4000) % 8 > 0)
    keep = ~rare
    table = {name: values[keep] for name, values in rare_X.items()}
    model = HedgerowClassifier(small_schema(), 5).fit(table, rare_y[keep])
    plain, weighted = model.predict(table), model.predict(table, class_weight={"yes": 8})
    shares = model.predict_proba(table)[:, 1]
    assert ((weighted == "yes") == (8 * shares > 1 - shares)).all()
    balanced = model.predict(table, class_weight="balanced")
    assert (plain == "yes").sum() <= (balanced == "yes").sum()
    assert np.array_equal(balanced, model.release_.predict(table, class_weight="balanced"))
    assert np.allclose(model.release_.weighted(model.predict_proba(table), {"yes": 8}).sum(axis=1), 1)
    for wrong in ({"maybe": 2}, {"yes": 0}, {"yes": "2"}, {}, "much", 3, {"yes": float("inf")}):
        with pytest.raises(PlanError, match="class_weight: got"):
            model.predict(table, class_weight=wrong)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
def test_a_class_that_may_have_no_row_is_not_weighed_by_noise() -> None:
    """A class of noise was predicted for nearly every row: 1,790 rows against none, as a weight."""
    rare = replace(SCHEMA, target=Target("class", ["no", "yes", "never"]))
    for _ in range(5):
        model = HedgerowClassifier(rare, 1, delta=1e-6).fit(X, Y)
        weights = model.release_.weighted(np.ones((1, 3)), "balanced")[0]
        assert weights[2] < 0.95
        assert model.release_.weighted(np.ones((1, 3)), {"never": 1000})[0, 2] > 0.99


# ------------------------------------------------------------ labels of a wrong type

PL = pytest.importorskip("polars")
PA = pytest.importorskip("pyarrow")
WORDS = ["yes", "no"] * 300
WRONG = {
    "pandas": pd.Series(WORDS, dtype="str"), "pandas string": pd.Series(WORDS, dtype="string"), "polars": PL.Series(WORDS),
    "arrow": PA.array(WORDS), "numpy": np.array(WORDS), "booleans": np.array([True, False] * 300),
    "pandas bool": pd.Series([True, False] * 300),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_labels_of_another_type_are_refused_before_they_cost(kind: str) -> None:
    numbers = Schema(SCHEMA.attributes, Target("default", [0, 1]))
    budget = Budget(10)
    with pytest.raises(TableError, match=r"column 'default' \(y\) holds (text|booleans).*Nothing was spent"):
        PrivateRDTClassifier(numbers, 1, budget=budget).fit(X, WRONG[kind])
    model = PrivateRDTClassifier(numbers, 1).fit(X, np.array([0, 1] * 300))
    with pytest.raises(TableError, match=r"holds (text|booleans)"):
        private_score(model, X, WRONG[kind], epsilon=1, budget=budget)
    assert budget.spent == 0
    for right in (pd.Series([0, 1] * 300), np.array([0.0, 1.0] * 300), PL.Series([0, 1] * 300)):
        PrivateRDTClassifier(numbers, 1).fit(X, right)


def test_what_is_advised_for_labels_of_another_type_works_with_gaps() -> None:
    """y.astype(int) fails on gaps and on "1.0"."""
    text = pd.Series(["0.0", "1.0", None] * 200, dtype="str")
    numbers = Schema(SCHEMA.attributes, Target("vote", [0, 1]))
    with pytest.raises(TableError, match=r"pandas\.to_numeric\(y\), where the text spells numbers; a label that is missing becomes NaN"):
        PrivateRDTClassifier(numbers, 1, budget=Budget(1)).fit(X, text)
    assert numbers.check(X, pd.to_numeric(text)).columns[-1].missing == 200
    with pytest.warns(SchemaMismatchWarning, match=r"33% of the rows .* column vote \(the target\) is empty there"):
        PrivateRDTClassifier(numbers, 20, budget=Budget(20), random_state=0).fit(X, pd.to_numeric(text))
    booleans = Schema(SCHEMA.attributes, Target("vote", [False, True]))
    with pytest.raises(TableError, match=r"y\.map\(\{'True': True, 'False': False\}\)"):
        PrivateRDTClassifier(booleans, 1, budget=Budget(1)).fit(X, pd.Series(["True", "False", None] * 200, dtype="str"))
    with pytest.raises(TableError, match=r"y\.map\(\{1: True, 0: False\}\)"):
        PrivateRDTClassifier(booleans, 1, budget=Budget(1)).fit(X, pd.to_numeric(text))
    there = text.notna()
    PrivateRDTClassifier(booleans, 1, budget=Budget(1)).fit(X[there], pd.to_numeric(text)[there].map({1: True, 0: False}))


GAPS = {
    "text": pd.Series(Y).where(np.arange(len(Y)) % 5 > 0),
    "categories": pd.Series(Y).where(np.arange(len(Y)) % 5 > 0).astype("category"),
    "a list": [label if i % 5 else None for i, label in enumerate(Y)],
}


@pytest.mark.filterwarnings("ignore::hedgerow.errors.ExactScoreWarning", "ignore::hedgerow.errors.SchemaMismatchWarning")
@pytest.mark.parametrize("kind", GAPS)
def test_rows_without_a_label_are_left_out_of_exact_scores(kind: str) -> None:
    """Every fold was paid for, and every score was nan."""
    labels, budget = GAPS[kind], Budget(30)
    folds = KFold(3)
    scores = cross_val_score(forest(budget), X, labels, cv=folds, error_score="raise")
    there = np.arange(len(Y)) % 5 > 0
    assert (scores > 0.8).all()
    model = forest(budget).fit(X, labels)
    assert model.score(X, labels) == pytest.approx((model.predict(X) == Y)[there].mean())
    weights = np.arange(len(Y)) + 1.0
    expected = np.average((model.predict(X) == Y)[there], weights=weights[there])
    assert model.score(X, labels, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(TableError, match="score: no row has a label"):
        model.score(X, [None] * len(Y))
    assert budget.spent == 20
    for ask in (
        lambda: cross_val_score(forest(budget), X, labels, cv=folds, scoring="balanced_accuracy"),
        lambda: GridSearchCV(forest(budget), {"max_depth": [1, 2]}, cv=folds, scoring="accuracy").fit(X, labels),
        lambda: cross_val_score(make_pipeline(FunctionTransformer(), forest(budget)), X, labels, cv=folds, scoring="roc_auc"),
    ):
        with pytest.raises(PlanError, match=r"some labels \(y\) are missing, and \w+ of scikit-learn refuses such rows.*Nothing was spent"):
            ask()
    assert budget.spent == 20


def test_row_numbers_that_occur_several_times_are_warned_of() -> None:
    """Of a person with five rows the loss is five times the ε that the certificate names."""
    labels = pd.Series(Y, index=X.index)
    own = labels.rename("class")
    for rows in (pd.concat([X, X[own == "yes"]]), X.sample(frac=1, replace=True, random_state=0)):
        with pytest.warns(RepeatedRowsWarning, match=r"occur several times.*of a person with k rows the loss is k · ε"):
            forest(Budget(5)).fit(rows, own.loc[~own.index.duplicated()].loc[rows.index])
    for rows in (X.sample(frac=1, random_state=0), X.set_index(pd.Index(["a"] * len(X))), X.set_index(pd.Index([7] * len(X), name="who"))):
        forest(Budget(5)).fit(rows, Y)  # warnings are errors here; what a person put into an index is not looked at


def test_a_table_that_is_not_computed_yet_is_refused_with_how() -> None:
    """narwhals raised a TypeError about itself."""
    budget = Budget(10)
    lazy = PL.from_pandas(X).with_columns(PL.Series("class", Y)).lazy()
    model = forest(budget).fit(X, Y)
    for ask in (
        lambda: forest(budget).fit(lazy),
        lambda: forest(budget).fit(lazy, Y),
        lambda: forest(budget).tune(lazy, grid={"max_depth": [1, 2]}),
        lambda: model.predict(lazy),
        lambda: private_score(model, lazy, Y, epsilon=1, budget=budget),
        lambda: SCHEMA.check(lazy),
        lambda: Schema.draft(lazy, "class"),
    ):
        with pytest.raises(TableError, match=r"got a LazyFrame of polars.*Nothing was spent\. Call \.collect\(\) first"):
            ask()
    assert budget.spent == 5
    forest(budget).fit(lazy.collect())


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("steps", [False, True])
def test_what_every_fit_would_refuse_is_said_as_it_is_before_the_first(search: bool, steps: bool) -> None:
    """scikit-learn said that all fits failed, and the reason 30 lines below."""
    budget = Budget(30)

    def validate(table: Any, labels: Any, schema: Schema = SCHEMA, **how: Any) -> Any:
        model: Any = PrivateRDTClassifier(schema, 1, budget=budget)
        model = make_pipeline(FunctionTransformer(), model) if steps else model
        scoring: Any = {"scoring": private_scorer("0.1", budget), "cv": 2, **how}
        if search:
            name = "privaterdtclassifier__max_depth" if steps else "max_depth"
            return GridSearchCV(model, {name: [1, 2]}, refit=False, **scoring).fit(table, labels)
        return cross_val_score(model, table, labels, **scoring)

    with pytest.raises(TableError, match=r"column 'class' \(y\) holds booleans.*Nothing was spent"):
        validate(X, Y == "yes")
    with pytest.raises(SchemaError, match="are not reviewed"):
        validate(X, Y, Schema([replace(SCHEMA.attributes[0], unreviewed=True), *SCHEMA.attributes[1:]], SCHEMA.target))
    if not steps:
        with pytest.raises(TableError, match="are missing; the schema declares"):
            validate(X[list(X)[:-1]], Y)
    assert budget.spent == 0
    draft = Schema([replace(SCHEMA.attributes[0], unreviewed=True), *SCHEMA.attributes[1:]], SCHEMA.target)
    if search and not steps:
        GridSearchCV(PrivateRDTClassifier(draft, 1, budget=Budget(9)), {"schema": [SCHEMA]}, cv=2, refit=False, scoring="accuracy").fit(
            X, Y
        )
        piped = Pipeline([("forest", PrivateRDTClassifier(draft, 1))])
        instead = {"forest": [PrivateRDTClassifier(SCHEMA, 1, budget=Budget(9))]}
        GridSearchCV(piped, instead, cv=2, refit=False, scoring="accuracy").fit(X, Y)
    validate(X, Y)
    assert budget.spent == (2 * 2 if search else 2) * Fraction("1.1")


@pytest.mark.parametrize("y", [np.array([0, 1] * 300), pd.Series([0.0, 1.0] * 300)])
@pytest.mark.parametrize("classes", [["0", "1"], [False, True]])
def test_numbers_where_others_are_declared(y: Any, classes: list[Any]) -> None:
    forest_of = Schema(SCHEMA.attributes, Target("default", classes))
    with pytest.raises(TableError, match="holds numbers"):
        PrivateRDTClassifier(forest_of, 1).fit(X, y)


def test_objects_are_not_looked_into_and_the_counts_name_the_column() -> None:
    """Which of them are text is for the rows to know: it is paid for, and the noisy counts tell."""
    numbers = Schema(SCHEMA.attributes, Target("default", [0, 1]), rows=600)
    for make in (HedgerowClassifier, PrivateRDTClassifier):
        with pytest.warns(SchemaMismatchWarning, match=r"column default \(the target\).*Declared classes are 0, 1"):
            make(numbers, 20, random_state=0).fit(X, pd.Series(WORDS, dtype=object))


SIX = {f"a{i}": np.random.default_rng(i).random(8000) for i in range(6)} | {"job": np.array(["cook", "nurse"] * 4000)}
OF_SIX = Schema([*(Numeric(f"a{i}", 0, 1) for i in range(6)), Categorical("job", ["cook", "nurse"])], Target("default", [0, 1]))
LABELS = (SIX["a0"] > 0.6).astype(int)


@pytest.mark.parametrize(
    ("epsilon", "delta", "undeclared"), [("0.1", 0, 1), (1, 0, 1), (5, 0, 1), (5, 1e-6, 1), (1, 0, 3), (5, 0, 3), (5, 1e-6, 3)]
)
def test_the_target_is_named_where_its_values_are_not_declared(epsilon: Any, delta: float, undeclared: int) -> None:
    """Though some trees lack more rows than others by chance, and all may split on the same attributes. undeclared: one of so many rows"""
    y = np.where(np.arange(8000) % undeclared == 0, 7, LABELS)
    with pytest.warns(SchemaMismatchWarning, match=r"are missing from the counts: the column default \(the target\)") as told:
        HedgerowClassifier(OF_SIX, epsilon, delta, random_state=0).fit(SIX, y)
    assert "not counted there" not in str(told[0].message)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_attribute_is_named_where_its_values_are_not_declared(delta: float) -> None:
    wrong = {**SIX, "job": np.array(["baker", "pilot"] * 4000)}
    with pytest.warns(SchemaMismatchWarning, match=r"have in .*job.* no value that the schema declares") as told:
        HedgerowClassifier(OF_SIX, 5, delta, random_state=0).fit(wrong, LABELS)
    assert "the target" not in str(told[0].message)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_columns_of_an_array_in_another_order_are_thought_of(delta: float) -> None:
    """Several attributes lose rows: each is named, and the order of the schema."""
    jobs = Schema([Numeric("a0", 0, 1), Categorical("job", ["cook", "nurse"]), Categorical("sex", ["f", "m"])], Target("default", [0, 1]))
    table = np.column_stack([SIX["a0"].astype(object), np.array(["f", "m"] * 4000, dtype=object), SIX["job"].astype(object)])
    with pytest.warns(SchemaMismatchWarning, match=r"have in job, sex no value that .* in the order of the schema, a0, job, sex\.") as told:
        HedgerowClassifier(jobs, 5, delta, random_state=0).fit(table, LABELS)
    assert "the target" not in str(told[0].message)


SEX = np.where(np.arange(4000) % 5 == 0, "Female", "Male")
FEW_COLUMNS = Schema([Numeric("age", 10, 70), Categorical("sex", ["male", "female"])], Target("default", [0, 1]))


def test_the_attribute_is_named_though_its_tree_has_the_least_noise() -> None:
    """Of two columns, a tree each: that of two leaves outweighs the other in a mean of both."""
    for _ in range(5):
        with pytest.warns(SchemaMismatchWarning, match=r"have in sex no value that the schema declares") as told:
            HedgerowClassifier(FEW_COLUMNS, 1, 1e-6).fit({"age": 10 + 60 * SIX["a0"][:4000], "sex": SEX}, LABELS[:4000])
        assert "the target" not in str(told[0].message)


TO_READ = Schema(
    [
        *(Numeric(f"a{i}", 0, 1, missing="missing") for i in range(5)),
        Numeric("income", 0, 100_000, missing="missing"),
        Numeric("since", "2020-01-01", "2024-01-01", date="%Y-%m-%d", missing="missing"),
        Categorical("job", ["cook", "nurse"], other="other"),
    ],
    Target("default", [0, 1]),
)
AS_DECLARED = {
    **{f"a{i}": SIX[f"a{i}"] for i in range(5)},
    "income": np.array([f"{60_000 * value:.2f}" for value in SIX["a1"]]),
    "since": np.array([f"202{i % 4}-03-0{1 + i % 9}" for i in range(8000)]),
    "job": SIX["job"],
}
MAKERS = [(HedgerowClassifier, {"epsilon": 1}), (HedgerowClassifier, {"epsilon": 1, "delta": 1e-6}), (PrivateRDTClassifier, {"epsilon": 5})]


@pytest.mark.parametrize(("make", "how"), MAKERS)
@pytest.mark.parametrize(
    ("column", "written", "says"),
    [
        ("income", [f"{60_000 * value:,.2f}" if value > 0.02 else "100" for value in SIX["a1"]], "without separators"),
        ("since", [f"0{1 + i % 9}.03.202{i % 4}" for i in range(8000)], "written as %Y-%m-%d"),
        ("job", ["Cook", "Nurse"] * 4000, "spelled as it is declared"),
    ],
)
def test_a_column_that_is_read_as_missing_is_named(make: Any, how: dict[str, Any], column: str, written: list[str], says: str) -> None:
    model = make(TO_READ, random_state=0, **how)
    with pytest.warns(SchemaMismatchWarning, match=rf"counted as missing or undeclared in {column} \(about \d+%( ± \d+%)?: .*{says}"):
        model.fit({**AS_DECLARED, column: np.array(written)}, LABELS)


@pytest.mark.parametrize(("make", "how"), MAKERS)
def test_columns_of_which_half_is_missing_are_not_warned_of(make: Any, how: dict[str, Any]) -> None:
    """The test set-up makes warnings errors."""
    half = {name: np.where(np.arange(8000) % 2, values, "" if values.dtype.kind == "U" else np.nan) for name, values in AS_DECLARED.items()}
    make(TO_READ, random_state=0, **how).fit(AS_DECLARED, LABELS)
    make(TO_READ, random_state=0, **how).fit(half, LABELS)


JOBS = Schema([Categorical("job", ["cook", "nurse"], other="other"), Numeric("age", 0, 100)], Target("default", [0, 1]))
NO_JOB = {
    "booleans": np.array([True, False] * 300), "pandas booleans": pd.Series([True, False] * 300), "numbers": np.array([0, 1] * 300),
    "polars numbers": PL.Series([0, 1] * 300), "pandas nullable": pd.Series([0, 1] * 300, dtype="Int64"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_JOB)
def test_columns_that_hold_no_declared_value_are_refused_before_they_cost(kind: str) -> None:
    y, budget = np.array([0, 1] * 300), Budget(10)
    ages = np.arange(600) % 100
    table, right = {"job": NO_JOB[kind], "age": ages}, {"job": np.array(["cook", "nurse"] * 300), "age": ages}
    with pytest.raises(TableError, match=r"column 'job': it holds (booleans|numbers).*'cook', 'nurse'.*Nothing was spent"):
        PrivateRDTClassifier(JOBS, 1, budget=budget).fit(table, y)
    model = PrivateRDTClassifier(JOBS, 1).fit(right, y)
    with pytest.raises(TableError, match="'job': it holds"):
        private_score(model, table, y, epsilon=1, budget=budget)
    assert budget.spent == 0
    with pytest.warns(UnknownValuesWarning, match=r"job \(100% of the rows: is each value spelled as it is declared\?\)"):
        assert len(model.predict(table)) == 600  # a prediction costs nothing: the job counts as another
    for every, told in ((5, 1), (20, 0)):  # from a tenth of the rows on, as `hedgerow predict`
        some = {"job": np.where(np.arange(600) % every, right["job"], "Koch"), "age": ages}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UnknownValuesWarning)
            model.predict(some)
        assert ["job (20% of the rows" in str(each.message) for each in said] == [True] * told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict({name: column[:5] for name, column in table.items()})  # of a few rows nothing is said


HALF = np.arange(8000) % 2 == 0


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "file"])
def test_missing_values_are_not_told_where_they_are_declared(kind: str, tmp_path: Any) -> None:
    def as_table(table: dict[str, Any]) -> Any:
        if kind != "file":
            return {"mapping": dict, "pandas": pd.DataFrame, "polars": PL.DataFrame}[kind](table)
        pd.DataFrame(table).to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path / "rows.csv"

    model = HedgerowClassifier(TO_READ, 1, 1e-6, random_state=0).fit(AS_DECLARED, LABELS)
    empty = {name: np.where(HALF, "" if values.dtype.kind == "U" else np.nan, values) for name, values in AS_DECLARED.items()}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UnknownValuesWarning)
        model.predict(as_table(empty))
    assert len(said) == 1
    assert "job (50%" in str(said[0].message)  # the one column without `missing`
    assert "income" not in str(said[0].message)
    with pytest.warns(UnknownValuesWarning, match=r"readable: income \(50% of the rows: are its numbers"):
        model.predict(as_table({**AS_DECLARED, "income": np.where(HALF, "1,050", AS_DECLARED["income"]), "a0": empty["a0"]}))


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
@pytest.mark.parametrize(
    ("values", "column"),
    [
        (["cook", "true"], [True, False] * 300), ([True, False], ["true", "false"] * 300), (["1", "x"], [1, 2] * 300),
        ([1, 2], ["1", "2"] * 300), (["cook", "nurse"], np.array([np.nan] * 600, dtype=object)),
    ],
)  # fmt: skip
def test_columns_that_may_hold_a_declared_value_are_taken(values: list[Any], column: Any) -> None:
    schema = Schema([Categorical("job", values, other="other"), Numeric("age", 0, 100)], Target("default", [0, 1]))
    PrivateRDTClassifier(schema, 1).fit({"job": np.array(column), "age": np.array(["17", "18"] * 300)}, np.array([0, 1] * 300))


# ------------------------------------------------------------ what was meant


def test_the_name_of_the_target_is_no_column_of_labels() -> None:
    budget, table = Budget(10), {**SIX, "default": LABELS}
    with pytest.raises(TableError, match=r"Nothing was spent. Leave y out .*'default'.*table\['default'\]"):
        HedgerowClassifier(OF_SIX, 1, budget=budget).fit(table, "default")
    model = HedgerowClassifier(OF_SIX, 1, random_state=0).fit(table)
    with pytest.raises(TableError, match="Leave y out"):
        private_score(model, table, "default", epsilon=1, budget=budget)
    assert budget.spent == 0


@pytest.mark.parametrize("as_table", [pd.DataFrame, PL.DataFrame, pa.table])
def test_labels_in_a_frame_of_two_columns_are_refused(as_table: Any) -> None:
    budget, labels = Budget(10), as_table({"default": LABELS, "other": LABELS})
    model = HedgerowClassifier(OF_SIX, 1, random_state=0).fit(SIX, LABELS)
    with pytest.raises(TableError, match=r"y: got a table with 2 columns; .*Nothing was spent.*y\['default'\]"):
        HedgerowClassifier(OF_SIX, 1, budget=budget).fit(SIX, labels)
    with pytest.raises(TableError, match="got a table with 2 columns"):
        private_score(model, SIX, labels, epsilon=1, budget=budget)
    assert budget.spent == 0


@pytest.mark.parametrize("make", [HedgerowClassifier, PrivateRDTClassifier, RandomDecisionTreesClassifier])
def test_rows_are_no_schema(make: Any) -> None:
    for given in (pd.DataFrame(SIX), PL.DataFrame(SIX), np.zeros((2, 2)), SIX):
        model = make(schema=given) if make is RandomDecisionTreesClassifier else make(given, 1)
        for ask in (lambda model=model: model.fit(SIX, LABELS), lambda model=model: model.plan()):
            with pytest.raises(SchemaError, match=r"schema: got a \w+; expected a Schema, .*Nothing was spent.*Schema\.draft") as told:
                ask()
            assert len(str(told.value)) < 400  # nothing of the rows is repeated


def test_only_declared_columns_are_missed() -> None:
    frame = pd.DataFrame({**SIX, "default": LABELS, "customer_id": range(8000)})
    model = HedgerowClassifier(OF_SIX, 1, random_state=0).fit(frame)
    with pytest.raises(TableError, match=r"the declared column\(s\) job are missing") as told:
        model.predict(frame.drop(columns="job"))
    assert "customer_id" not in str(told.value)
    assert "default" not in str(told.value)


def test_a_column_that_may_be_meant_is_named() -> None:
    frame = pd.DataFrame({**SIX, "default": LABELS})
    for given, budget in (("Job", Budget(1)), ("jobs", Budget(1))):
        with pytest.raises(TableError, match=rf"Did you mean '{given}' for 'job'\?"):
            HedgerowClassifier(OF_SIX, 1, budget=budget).fit(frame.rename(columns={"job": given}))
        assert budget.spent == 0


def test_labels_in_a_frame_of_one_column() -> None:
    model = HedgerowClassifier(OF_SIX, 1, random_state=0).fit(pd.DataFrame(SIX), pd.DataFrame({"whatever": LABELS}))
    assert model.classes_.tolist() == [0, 1]


def test_a_column_that_is_there_twice_is_refused() -> None:
    frame, budget = pd.DataFrame(SIX), Budget(1)
    twice = pd.concat([frame, frame[["job"]]], axis=1)
    with pytest.raises(TableError, match="'job' is there more than once"):
        HedgerowClassifier(OF_SIX, 1, budget=budget).fit(twice, LABELS)
    assert budget.spent == 0


def test_rows_that_are_mappings_are_read_by_name() -> None:
    """All were taken for missing: a fit was paid for nothing, and its warning blamed the labels."""
    frame = pd.DataFrame(SIX)
    model = HedgerowClassifier(OF_SIX, 5, random_state=0).fit(frame.to_dict("records"), LABELS)
    turned = frame[frame.columns[::-1]].head(50).to_dict("records")
    assert np.array_equal(model.predict_proba(turned), model.predict_proba(frame.head(50)))
    assert np.array_equal(model.release_.predict_proba(turned), model.release_.predict_proba(frame.head(50)))


def test_a_column_that_a_step_makes_must_be_declared() -> None:
    """It was left out, and the fit was paid."""
    budget = Budget(5)
    step = FunctionTransformer(lambda table: table.assign(ratio=table["a"] / (table["b"] + 1)))
    with pytest.raises(PlanError, match=r"make the columns 'ratio', which the schema does not declare.*Nothing was spent"):
        piped(step, budget=budget).fit(X, Y)
    assert budget.spent == 0
    piped(FunctionTransformer(lambda table: table), budget=budget).fit(X.assign(other=1), Y)  # what was there before is left out as ever


def test_steps_that_hand_on_arrow_tables_are_checked_by_names() -> None:
    """The columns of such a table are its values: a refusal printed them."""
    table, budget = pa.Table.from_pandas(X), Budget(10)
    doubled = FunctionTransformer(lambda rows: rows.set_column(0, "a", pc.multiply(rows["a"], 0.5)))
    piped(doubled, budget=budget).fit(table, Y)
    assert budget.spent == 5
    more = FunctionTransformer(lambda rows: rows.append_column("c", rows["a"]))
    with pytest.raises(PlanError, match="make the columns 'c', which the schema does not declare"):
        piped(more, budget=budget).fit(table, Y)


def test_bagging_numbers_the_classes() -> None:
    """With the classes 1 and 2 one was learnt as the other, and the fits were paid."""
    budget = Budget(100)
    schema = replace(SCHEMA, target=Target("class", [1, 2]))
    with pytest.raises(PlanError, match="BaggingClassifier of scikit-learn hands the classes over as the numbers"):
        BaggingClassifier(PrivateRDTClassifier(schema, 5, budget=budget), n_estimators=2, bootstrap=False, max_samples=0.5).fit(
            X, np.where(Y == "yes", 2, 1)
        )
    assert budget.spent == 0
