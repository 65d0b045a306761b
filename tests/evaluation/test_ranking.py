"""AUC, Brier score, recall, ROC curves and thresholds from noisy counts of score bins: beside scikit-learn, by hand, with honest errors."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, confusion_matrix, precision_score, recall_score, roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier
from strategies import small_schema, small_table

from hedgerow import Budget, HedgerowClassifier, PrivateRDTClassifier, Schema, Target, private_score, score_error
from hedgerow.accounting.meaning import FOR_AUC
from hedgerow.errors import PlanError, SchemaMismatchWarning
from hedgerow.evaluation.private import private_evaluation
from hedgerow.evaluation.public import public_score
from hedgerow.inference.ranking import ClassRanking, Ranking, threshold_texts
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.plots.report import html_report, score_page
from hedgerow.plots.roc_svg import point_in_words, roc_svg
from hedgerow.queries.score_bins import score_edges

EDGES = score_edges(20)
ENOUGH = 10**6  # an ε at which the noise is 0
TRAIN, TEST = small_table(3000), small_table(2000, seed=1)
THREE = Schema(small_schema().attributes, Target("class", ["no", "yes", "perhaps"]))


def three(table: Any) -> tuple[Any, Any]:
    X, y = table
    return X, np.where(np.arange(len(y)) % 4 == 0, "perhaps", y)


@pytest.fixture(scope="module")
def model() -> HedgerowClassifier:
    return HedgerowClassifier(small_schema(), 5).fit(*TRAIN)


def test_two_classes_beside_scikit_learn_for_one_charge(model: HedgerowClassifier) -> None:
    X, y = TEST
    budget = Budget(ENOUGH)
    score = private_score(model, X, y, epsilon=ENOUGH, budget=budget, metrics=["accuracy", "auc", "brier", "recall"], bins=1000)
    assert [event.query for event in score.certificate.events] == ["score_bins"]
    assert budget.spent == ENOUGH
    scores, truth, predicted = model.predict_proba(X)[:, 1], y == "yes", model.predict(X)
    assert score.auc == pytest.approx(roc_auc_score(truth, scores), abs=2e-3)
    assert score.brier == pytest.approx(brier_score_loss(truth, scores), abs=2e-3)
    assert score.accuracy == pytest.approx((predicted == y).mean())
    assert score.recall == pytest.approx(recall_score(truth, predicted == "yes"))
    assert score.precision == pytest.approx(precision_score(truth, predicted == "yes"))
    assert np.array_equal(score.confusion, confusion_matrix(y, predicted, labels=["no", "yes"]))
    assert score.undeclared == 0


def test_more_classes_are_each_against_the_others() -> None:
    X, y = three(TEST)
    forest = HedgerowClassifier(THREE, 5).fit(*three(TRAIN))
    score = private_score(forest, X, y, epsilon=2 * ENOUGH, metrics=["auc"], bins=1000)
    assert [(event.query, event.epsilon, event.queries) for event in score.certificate.events] == [
        ("confusion", str(ENOUGH), 1),
        ("score_bins", str(ENOUGH), 3),
    ]
    order = [forest.classes_.tolist().index(name) for name in sorted(forest.classes_)]
    shares = forest.predict_proba(X)[:, order]
    assert score.auc == pytest.approx(roc_auc_score(y, shares, multi_class="ovr"), abs=2e-3)
    one_hot = np.asarray(y)[:, None] == np.array(sorted(forest.classes_))
    assert score.brier == pytest.approx(((shares - one_hot) ** 2).sum(axis=1).mean(), abs=2e-3)
    assert score.recall == pytest.approx(recall_score(y, forest.predict(X), average="macro"))
    with pytest.raises(PlanError, match="more than two classes, name the one that is meant: label="):
        score.threshold_for(recall=0.5)
    assert score.threshold_for(recall=0.5, label="perhaps").recall >= 0.5


def test_a_threshold_does_what_it_says(model: HedgerowClassifier) -> None:
    """Of the same rows, without noise: scikit-learn with that threshold finds as many."""
    X, y = TEST
    score = private_score(model, X, y, epsilon=ENOUGH, metrics=["auc"])
    frame, truth = pd.DataFrame(X), y == "yes"
    for point in (score.threshold_for(recall=0.8), score.threshold_for(precision=0.9)):
        fixed = FixedThresholdClassifier(FrozenEstimator(model), threshold=point.threshold, pos_label="yes").fit(frame, y)
        taken = fixed.predict(frame) == "yes"
        at_an_edge = point == next((each for each in score.roc() if each.threshold == point.threshold), None)
        for value, error, found in (
            (point.recall, point.recall_error, recall_score(truth, taken)),
            (point.precision, point.precision_error, precision_score(truth, taken)),
            (point.false_positive_rate, point.false_positive_rate_error, taken[~truth].mean()),
        ):
            assert value == pytest.approx(found, abs=1e-9 if at_an_edge else 2 * error)
        assert re.fullmatch(r"<OperatingPoint 'yes' from probability 0\.\d{3,} on: recall [\d.]+ % ± .*>", repr(point))
    curve = score.roc()
    assert (curve[0].recall, curve[-1].recall) == (0, 1)
    point = score.threshold_for(recall=0.8)
    upper, lower = next(p for p in curve[::-1] if p.recall < 0.8), next(p for p in curve if p.recall >= 0.8)
    assert lower.threshold <= point.threshold <= upper.threshold
    assert point.recall == 0.8
    assert upper.false_positive_rate <= point.false_positive_rate <= lower.false_positive_rate
    assert point.recall_error >= (lower.recall - upper.recall) / 4
    assert score.threshold_for(recall=lower.recall) == lower
    for wrong in ({}, {"recall": 0.5, "precision": 0.5}, {"recall": 0}, {"recall": "much"}):
        with pytest.raises(PlanError, match="expected"):
            score.threshold_for(**wrong)


def test_thresholds_are_shown_with_the_digits_that_tell_them_apart() -> None:
    assert threshold_texts([0.5, 0.0227, 0.0157, 0.9985, 0.0, 1.0]) == ["0.500", "0.0227", "0.0157", "0.99850", "0", "1"]
    assert threshold_texts([0.3, 0.0227, 0.02271]) == ["0.3000", "0.02270", "0.02271"]
    assert threshold_texts([0.3, 0.3]) == ["0.300", "0.300"]  # no digit tells them apart
    assert threshold_texts([]) == []


def test_a_threshold_as_it_is_shown_finds_what_stands_beside_it() -> None:
    """Of a rare class, whose probabilities lie in the lowest bins."""
    rng = np.random.default_rng(5)
    truth = rng.random(20_000) < 0.05
    scores = 1 / (1 + np.exp(-(rng.normal(size=20_000) + 1.3 * truth - 4.2)))
    place = np.searchsorted(EDGES[1:-1], scores)
    each = ClassRanking("yes", EDGES, np.bincount(place[~truth], minlength=20), np.bincount(place[truth], minlength=20), 0.0)
    ranking, recalls = Ranking((each,), ("no", "yes")), (0.5, 0.8, 0.9)
    shown = [line[2] for line in ranking.threshold_lines(recalls)]
    assert len(set(shown)) == 3
    for text, recall in zip(shown, recalls, strict=True):
        exact = ranking.threshold_for(recall=recall).threshold
        assert (scores[truth] >= float(text)).mean() == pytest.approx((scores[truth] >= exact).mean(), abs=0.005)
    assert "taken from 0.1 % on" in point_in_words(replace(each.roc()[0], threshold=0.001))


def counts_of(n: int, share: float, bins: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    truth = rng.random(n) < share
    scores = 1 / (1 + np.exp(-(rng.normal(size=n) + 1.3 * truth - 1.5)))
    place = np.searchsorted(score_edges(bins)[1:-1], scores)
    return np.bincount(place[~truth], minlength=bins), np.bincount(place[truth], minlength=bins)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 10])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_errors_are_what_the_noise_does(scale: int, share: float) -> None:
    """The spread of 400 noisy areas and Brier scores of the same rows, against the error that each of them states of the noise."""
    others, rows = counts_of(4000, share, 20)
    sd = math.sqrt(2) * scale
    noise = discrete_laplace(Fraction(scale), 400 * 40, SYSTEM).reshape(400, 2, 20)
    found = [ClassRanking("yes", EDGES, others + z[0], rows + z[1], sd) for z in noise]
    spread = np.std([each.auc for each in found])
    assert 0.8 * spread < np.mean([each.auc_noise for each in found]) < 1.3 * spread
    truth = ClassRanking("yes", EDGES, others, rows, 0.0)
    assert abs(np.mean([each.auc for each in found]) - truth.auc) < max(4 * spread / 20, 0.002)
    brier = np.std([Ranking((each,), ("no", "yes")).brier for each in found])
    assert brier < np.mean([Ranking((each,), ("no", "yes")).brier_error for each in found])
    recalls = np.array([[point.recall for point in each.roc()] for each in found])[:, 5:-5]
    errors = np.array([[point.recall_error for point in each.roc()] for each in found])[:, 5:-5]
    assert (recalls.std(axis=0) < 1.2 * errors.mean(axis=0)).all()


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_rule_for_the_epsilon_of_an_auc_holds_for_a_rare_class_too(share: float) -> None:
    """At the ε that README and help advise, noise moves the area by about 0.01: neither three times that, nor a third."""
    others, rows = counts_of(8000, share, 20)
    noise = discrete_laplace(1 / Fraction(FOR_AUC, int(min(rows.sum(), others.sum()))), 200 * 40, SYSTEM).reshape(200, 2, 20)
    truth = ClassRanking("yes", EDGES, others, rows, 0.0).auc
    moved = [ClassRanking("yes", EDGES, others + z[0], rows + z[1], 0.0).auc - truth for z in noise]
    assert 0.004 < math.sqrt(np.mean(np.square(moved))) < 0.014


def test_too_few_rows_are_said_to_be_too_few() -> None:
    few = ClassRanking("yes", EDGES, np.full(20, 50), np.ones(20, dtype=np.int64), 14.0)
    ranking = Ranking((few,), ("no", "yes"))
    assert (ranking.auc, ranking.auc_error, ranking.unclear, ranking.roc()) == (0.5, 0.5, ("yes",), ())  # as one who knows nothing
    assert repr(ranking).startswith("Ranking(of 'yes': AUC lost in the noise;")
    with pytest.raises(PlanError, match="too few rows"):
        ranking.threshold_for(recall=0.5)
    assert "1 classes not drawn" in roc_svg(ranking)


def test_what_cannot_be_is_refused_before_it_costs(model: HedgerowClassifier) -> None:
    budget = Budget(1)
    for wrong, said in (({"metrics": ["f2"]}, "metrics: got"), ({"metrics": []}, "metrics"), ({"metrics": ["auc"], "bins": 7}, "even")):
        with pytest.raises(PlanError, match=said):
            private_score(model, *TEST, epsilon=1, budget=budget, **wrong)
    assert budget.spent == 0
    plain = private_score(model, *TEST, epsilon=1, budget=budget)
    assert plain.ranking is None
    with pytest.raises(PlanError, match=r'matrix alone was paid for \(accuracy.*metrics=\["auc"\]'):
        _ = plain.auc


def test_public_rows_are_exact(model: HedgerowClassifier) -> None:
    score = public_score(model, *TEST, metrics=["auc"])
    assert score.auc == pytest.approx(roc_auc_score(TEST[1] == "yes", model.predict_proba(TEST[0])[:, 1]), abs=1e-2)  # bins of scores
    assert not score.certificate.private
    assert 0 < score.auc_error < 0.02  # the draw of rows alone


def test_both_for_one_epsilon(model: HedgerowClassifier) -> None:
    score, calibration = private_evaluation(model, *TEST, epsilon=1, metrics=["auc"])
    assert [(event.query, event.epsilon) for event in score.certificate.events] == [("score_bins", "0.5"), ("reliability", "0.5")]
    assert calibration.certificate == score.certificate
    assert 0 <= score.auc <= 1


def test_rows_of_a_class_that_is_not_declared_are_counted_apart() -> None:
    forest = PrivateRDTClassifier(small_schema(), 5).fit(*TRAIN)
    X, y = TEST
    with pytest.warns(SchemaMismatchWarning, match="about 500 test rows have no declared class"):
        score = private_score(forest, X, np.where(np.arange(len(y)) < 500, "ja", y), epsilon=ENOUGH, metrics=["auc"])
    assert (score.undeclared, score.rows) == (500, 1500)


def test_the_curve_is_drawn(model: HedgerowClassifier) -> None:
    score = private_score(model, *TEST, epsilon=1, metrics=["auc"])
    assert score.ranking is not None
    picture = roc_svg(score.ranking)
    assert picture.startswith("<svg")
    assert f"yes: area under the curve {score.auc:.3f}" in picture
    assert len(re.findall("<circle", picture)) == 19
    for page in (html_report(model.release_, score=score), score_page(model.release_, score)):
        assert f"Area under the ROC curve {score.auc:.3f}" in page
        assert ">false positive rate</th>" in page


@pytest.mark.parametrize("centre", [-8.0, -5.0, -2.0, 0.0])
def test_the_error_of_an_area_allows_for_rows_of_one_bin(centre: float) -> None:
    """Exact counts of very many rows: what is left is that rows of one bin count as ties, most in the first where a class is rare."""
    rng = np.random.default_rng(0)
    margins = rng.normal(centre, 1.5, 400_000)
    y = rng.random(margins.size) < 1 / (1 + np.exp(-margins))
    p = 1 / (1 + np.exp(-margins))
    counts = [np.histogram(p[which], EDGES)[0] for which in (~y, y)]
    ranking = ClassRanking("yes", EDGES, counts[0], counts[1], 0.0)
    off = roc_auc_score(y, p) - ranking.auc
    assert 0 <= off < 2 * ranking.auc_ties
    assert ranking.auc_error >= ranking.auc_ties
    assert Ranking((ranking,), ("no", "yes")).auc_error == pytest.approx(ranking.auc_error)
    assert ranking.opposite("no").auc_ties == pytest.approx(ranking.auc_ties)
    fine = ClassRanking("yes", score_edges(100), *(np.histogram(p[which], score_edges(100))[0] for which in (~y, y)), 0.0)
    assert fine.auc_ties < ranking.auc_ties


def test_more_bins_are_advised_only_where_they_tell_closer() -> None:
    """Beside much noise a second score was paid for with 100 bins, and every ± of it was twice as large."""
    rng = np.random.default_rng(0)
    y = rng.random(8000) < 0.4
    p = 1 / (1 + np.exp(-(rng.normal(size=8000) + np.where(y, 1.5, -1.5))))

    def ranking(bins: int, noise_sd: float) -> ClassRanking:
        edges = score_edges(bins)
        return ClassRanking("yes", edges, *(np.histogram(p[which], edges)[0] for which in (~y, y)), noise_sd)

    for noise_sd, advised in ((0.0, True), (3.0, True), (25.0, False)):
        as_is, finer = (ranking(bins, noise_sd).at_recall(0.8) for bins in (20, 100))
        assert as_is is not None
        assert finer is not None
        assert as_is.mostly_by_bins is advised
        closer = finer.recall_error < 0.85 * as_is.recall_error, finer.precision_error < 1.3 * as_is.precision_error
        assert all(closer) is advised


def test_an_error_that_is_mostly_of_bins_is_said_to_be(model: HedgerowClassifier) -> None:
    """A recall of 80 % was stated ± 8 %, of which noise did a fiftieth: more ε was bought, and told nothing closer."""
    X, y = TEST
    coarse = private_score(model, X, y, epsilon=ENOUGH, metrics=["auc"], bins=4)
    point = coarse.threshold_for(recall=0.8)
    assert point.mostly_by_bins
    assert repr(point).endswith(
        "; the ± of a recall is mostly that of bins, as nobody knows where in one rows lie: more bins tell it closer, more ε hardly does>"
    )
    assert "The ± of a recall is mostly that of bins" in score_page(model.release_, coarse, [0.8])
    assert all(each.mostly_by_bins for each in coarse.ranking.of)
    assert "Much of the ± of the area is that of bins" in score_page(model.release_, coarse)
    assert score_error(model, 2000, ENOUGH, ["auc"], bins=100)["auc"] < score_error(model, 2000, ENOUGH, ["auc"], bins=4)["auc"] / 2
    noisy = private_score(model, X, y, epsilon="0.02", metrics=["auc"], bins=20)
    assert not noisy.ranking.mostly_by_bins()
    assert "mostly" not in score_page(model.release_, noisy)
