"""Classes that the schema declares in an order that is not sorted: scikit-learn's metrics and scorers must not be misled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import get_scorer, log_loss, recall_score, roc_auc_score
from strategies import small_schema, small_table

import hedgerow
from hedgerow import Budget, HedgerowClassifier, PrivateRDTClassifier, Release, Schema, Target, private_score, private_scorer
from hedgerow.errors import PlanError
from hedgerow.evaluation.public import public_score

TURNED = Schema(small_schema().attributes, Target("class", ["yes", "no"]))
THREE = Schema(small_schema().attributes, Target("class", ["yes", "perhaps", "no"]))
MIXED = Schema(small_schema().attributes, Target("class", ["yes", 0]))
X, Y = small_table(1500)
ENOUGH = 10**6
EXACT = ("ID3Classifier", "LocalTreeClassifier", "RandomDecisionTreesClassifier")
PRIVATE = (
    "HedgerowClassifier", "SNRForestClassifier", "PrivateRDTClassifier", "DPDFClassifier", "DiffPID3Classifier", "PrivateID3Classifier",
)  # fmt: skip


def fitted(name: str, schema: Schema, y: Any) -> Any:
    given = {"schema": schema} if name in EXACT else {"schema": schema, "epsilon": 20}
    return getattr(hedgerow, name)(**given).fit(X, y)


@pytest.mark.parametrize("name", [*EXACT, *PRIVATE])
def test_classes_are_sorted_and_the_columns_stand_in_their_order(name: str) -> None:
    model = fitted(name, TURNED, Y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.release_.classes.tolist() == ["yes", "no"]  # a file keeps the schema's order
    assert np.array_equal(model.predict_proba(X), model.release_.predict_proba(X)[:, ::-1])
    assert np.array_equal(model.predict(X), model.release_.predict(X))
    assert np.mean(model.predict(X) == Y) > 0.5
    assert roc_auc_score(Y, model.predict_proba(X)[:, 1]) > 0.5
    assert get_scorer("roc_auc")(model, X, Y) > 0.5
    assert log_loss(Y, model.predict_proba(X)) == pytest.approx(log_loss(Y == "yes", model.predict_proba(X)[:, 1]))


def test_more_classes_and_the_decision_function() -> None:
    y = np.where(np.arange(len(Y)) % 5 == 0, "perhaps", Y)
    model = HedgerowClassifier(THREE, 20).fit(X, y)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert roc_auc_score(y, model.predict_proba(X), multi_class="ovr") > 0.5
    margins = model.decision_function(X)
    shares = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    assert np.allclose(shares, model.predict_proba(X), atol=1e-9)
    two = HedgerowClassifier(TURNED, 20).fit(X, Y)
    assert np.allclose(1 / (1 + np.exp(-two.decision_function(X))), two.predict_proba(X)[:, 1], atol=1e-9)


def test_of_equal_shares_the_class_of_the_release_is_taken() -> None:
    """A forest that has seen nothing: the estimator and its file answer alike."""
    model = PrivateRDTClassifier(TURNED, 20, max_depth=1, n_estimators=1).fit(X, np.full(len(Y), "maybe"))
    assert np.array_equal(model.predict(X), model.release_.predict(X))


def test_more_batches_and_a_search_keep_the_order() -> None:
    model = PrivateRDTClassifier(TURNED, 5, n_estimators=2, max_depth=1).partial_fit(X, Y, classes=["yes", "no"])
    assert model.partial_fit(X, Y).classes_.tolist() == ["no", "yes"]
    tuned = PrivateRDTClassifier(TURNED, 5, n_estimators=2).tune(X, Y, grid={"max_depth": [1, 2]})
    assert tuned.classes_.tolist() == ["no", "yes"]


def test_classes_that_cannot_be_compared_stay_as_declared() -> None:
    y = np.where(Y == "yes", "yes", np.array(0, dtype=object))
    model = HedgerowClassifier(MIXED, 20).fit(X, y)
    assert model.classes_.tolist() == ["yes", 0]
    assert np.mean(model.predict(X) == y) > 0.5


def test_weights_go_to_their_class() -> None:
    model = HedgerowClassifier(TURNED, 20).fit(X, Y)
    assert (model.predict(X, class_weight={"yes": 1e30}) == "yes").all()
    assert (model.predict(X, class_weight={"no": 1e30}) == "no").all()


# ------------------------------------------------------------ which class a score is about


def test_the_last_declared_class_is_scored_unless_one_is_named() -> None:
    model = HedgerowClassifier(TURNED, 20).fit(X, Y)
    predicted, of_yes = model.predict(X), model.predict_proba(X)[:, 1]
    by_default = private_score(model, X, Y, epsilon=ENOUGH, metrics=["auc"], bins=1000)
    assert by_default.positive == "no"
    assert by_default.recall == pytest.approx(recall_score(Y, predicted, pos_label="no"))
    budget = Budget(ENOUGH)
    named = private_score(model, X, Y, epsilon=ENOUGH, budget=budget, metrics=["auc"], bins=1000, positive="yes")
    assert budget.spent == ENOUGH
    assert (named.positive, by_default.classes) == ("yes", ("yes", "no"))
    assert named.recall == pytest.approx(recall_score(Y, predicted, pos_label="yes"))
    assert named.auc == pytest.approx(roc_auc_score(Y == "yes", of_yes), abs=2e-3)
    assert np.array_equal(named.confusion, by_default.confusion)
    point, same = named.threshold_for(recall=0.8), by_default.threshold_for(recall=0.8, label="yes")  # at no further ε
    assert point == same
    for each in (model, model.release_):
        taken = point.takes(each, X)
        assert taken[Y == "yes"].mean() == pytest.approx(point.recall, abs=2 * point.recall_error)
        assert taken[Y == "no"].mean() == pytest.approx(point.false_positive_rate, abs=2 * point.false_positive_rate_error)
    other = by_default.threshold_for(recall=0.8)
    assert other.takes(model, X)[Y == "no"].mean() == pytest.approx(other.recall, abs=2 * other.recall_error)
    assert private_scorer(ENOUGH, Budget(ENOUGH), "recall", positive="yes")(model, X, Y) == pytest.approx(named.recall)
    for score, label in ((by_default, "no"), (named, "yes")):
        assert f"of '{label}': recall {score.recall:.3f}" in repr(score)
        assert f"'{label}'" in repr(score.ranking)
        assert f"of {label}" in score._repr_html_()
    with pytest.raises(PlanError, match="positive: got 'maybe'; expected one of the declared classes, 'yes', 'no'"):
        private_score(model, X, Y, epsilon=1, budget=budget, positive="maybe")


def test_of_more_classes_one_can_be_named_for_less_noise() -> None:
    y = np.where(np.arange(len(Y)) % 5 == 0, "perhaps", Y)
    model = HedgerowClassifier(THREE, 20).fit(X, y)
    score = private_score(model, X, y, epsilon=2 * ENOUGH, metrics=["auc"], bins=1000, positive="perhaps")
    assert [event.queries for event in score.certificate.events] == [1, 1]
    assert score.auc == pytest.approx(roc_auc_score(y == "perhaps", model.predict_proba(X)[:, 1]), abs=2e-3)
    assert score.recall == pytest.approx(recall_score(y == "perhaps", model.predict(X) == "perhaps"))
    assert public_score(model, X, y, metrics=["recall"], positive="perhaps").recall == pytest.approx(score.recall)
    assert private_score(model, X, y, epsilon=ENOUGH).positive is None


def test_noise_that_is_larger_than_the_answer_is_said_to_be() -> None:
    """At ε = 0.01 and some rows: no accuracy of 1.000, and no nan."""
    release: Release = HedgerowClassifier(TURNED, 20).fit(X, Y).release_
    few = {name: values[:60] for name, values in X.items()}
    metrics = ["accuracy", "auc", "brier", "recall"]
    scores = [private_score(release, few, Y[:60], epsilon="0.01", metrics=metrics) for _ in range(6)]
    lost = [score for score in scores if score.lost]
    assert len(lost) >= 4  # in about one of a hundred the noise alone looks like thousands of rows
    for score in lost:
        shown = repr(score) + repr(score.ranking) + score._repr_html_().split("<svg")[0]
        assert "accuracy lost in the noise, which is larger than the answer" in shown
        assert "nan" not in shown
        assert "1.000" not in shown
    for score in scores:
        assert not any(math.isnan(value) for value in (score.auc, score.auc_error, score.brier, score.recall, score.precision))
    assert not private_score(release, X, Y, epsilon=1).lost
