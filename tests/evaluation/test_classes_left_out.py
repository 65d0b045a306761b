"""A mean over the classes leaves out those that the noise hides: everything that shows it says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli.conftest import run
from sklearn.metrics import roc_auc_score
from strategies import small_schema, small_table

from hedgerow import Budget, PrivateRDTClassifier, Schema, Target, private_score, private_scorer, score_error
from hedgerow.errors import UnclearScoreWarning
from hedgerow.evaluation.private import private_evaluation
from hedgerow.evaluation.public import public_score
from hedgerow.plots.report import score_page

_ = run  # the fixture
SCHEMA = Schema(small_schema().attributes, Target("class", ["no", "rare", "yes"]))
WORDS = "mean of 2 of 3 classes, without"


def with_rare(rows: int, rare: int, seed: int) -> tuple[pd.DataFrame, Any]:
    X, y = small_table(rows, seed=seed)
    return pd.DataFrame(X), np.where(np.arange(rows) < rare, "rare", y)


TEST, TRUTH = with_rare(2000, 4, 1)


@pytest.fixture(scope="module")
def model() -> PrivateRDTClassifier:
    return PrivateRDTClassifier(SCHEMA, 50, random_state=0).fit(*with_rare(4000, 40, 0))


def test_python_says_which_classes_an_area_is_of(model: PrivateRDTClassifier) -> None:
    with pytest.warns(
        UnclearScoreWarning, match=f"the AUC is the {WORDS} 'rare', of which there are too few rows beside the noise"
    ) as said:
        score = private_score(model, TEST, TRUTH, epsilon=1, metrics=["auc"])
    assert said[0].filename == __file__
    assert score.ranking is not None
    assert score.ranking.left_out == ("rare",)
    assert f"({WORDS} 'rare')" in repr(score)
    assert repr(score.ranking).startswith(f"Ranking({WORDS} 'rare': AUC 0.")
    assert f"{WORDS} rare" in score._repr_html_()
    assert f"{WORDS} rare" in score_page(model.release_, score)
    with warnings.catch_warnings():  # of one class, or where no area was asked for, there is no such mean
        warnings.simplefilter("error")
        private_score(model, TEST, TRUTH, epsilon=1, metrics=["auc"], positive="yes")
        private_score(model, TEST, TRUTH, epsilon=1, metrics=["brier"])


def test_a_warning_that_is_an_error_has_what_was_paid_for(model: PrivateRDTClassifier) -> None:
    budget = Budget(4)
    with pytest.raises(UnclearScoreWarning) as single:
        private_score(model, TEST, TRUTH, epsilon=1, metrics=["auc"], budget=budget)
    assert 0 < single.value.paid.auc < 1
    with pytest.raises(UnclearScoreWarning) as both:
        private_evaluation(model, TEST, TRUTH, epsilon=3, metrics=["auc"], budget=budget)
    score, calibration = both.value.paid
    assert score.certificate == calibration.certificate
    assert budget.remaining == 0


def test_which_classes_are_left_out_follows_from_the_matrix(model: PrivateRDTClassifier) -> None:
    """By the sums of the bins, whose noise is several times that of the matrix, the largest class was left out, and the smallest kept."""
    rows = [int((name == TRUTH).sum()) for name in SCHEMA.target.classes]
    for _ in range(30):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = private_score(model, TEST, TRUTH, epsilon="0.2", metrics=["auc"])
        assert score.ranking is not None
        assert score.ranking.left_out in {(), ("rare",)}
        bins = len(score.ranking.of[0].others)
        for each, own in zip(score.ranking.of, rows, strict=True):
            assert abs(each.of_class.sum() - own) <= bins / 2 + 6 * score.rows_error
            assert abs(each.others.sum() + each.of_class.sum() - score.rows) <= bins + 1


def test_a_search_is_told(model: PrivateRDTClassifier) -> None:
    with pytest.warns(UnclearScoreWarning, match=WORDS):
        private_scorer(1, Budget(1), metric="auc")(model, TEST, TRUTH)
    few = TEST[:20], TRUTH[:20]
    with pytest.warns(UnclearScoreWarning, match="recall: this score is lost in the noise, and what is chosen by it is chosen by chance"):
        private_scorer("0.01", Budget(1), metric="recall", positive="yes")(model, *few)


def test_a_forecast_says_it_for_free(model: PrivateRDTClassifier) -> None:
    with pytest.warns(UnclearScoreWarning, match=f"the AUC would be the {WORDS} 'rare'"):
        score_error(model, 2000, 1, ["auc"])
    score_error(model, 2000, 1, ["accuracy"])


def test_exact_areas_leave_out_a_class_without_rows(model: PrivateRDTClassifier) -> None:
    """It had an area of 0."""
    there = TRUTH != "rare"
    with pytest.warns(UnclearScoreWarning, match=f"{WORDS} 'rare', of which there are no rows"):
        score = public_score(model, TEST[there], TRUTH[there], metrics=["auc"], bins=1000)
    shares, classes = model.predict_proba(TEST[there]), model.classes_.tolist()
    exact = [roc_auc_score(TRUTH[there] == name, shares[:, classes.index(name)]) for name in ("no", "yes")]
    assert score.auc == pytest.approx(np.mean(exact), abs=2e-3)


def test_the_command_says_it(model: PrivateRDTClassifier, run: Callable[..., Any], tmp_path: Path) -> None:
    model.release_.save(tmp_path / "forest.json")
    TEST.assign(**{"class": TRUTH}).to_csv(tmp_path / "test.csv", index=False)
    result = run("evaluate", tmp_path / "forest.json", tmp_path / "test.csv", "--epsilon", "1", "--auc")
    assert result.exit_code == 0, result.output
    assert f", {WORDS} rare" in " ".join(result.stdout.split())
    assert " ".join(result.stderr.split()).count(WORDS) == 1
