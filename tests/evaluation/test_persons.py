"""Scores of rows of which a person has several: the error that is stated is that of another draw of persons."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Schema, Target, private_score
from hedgerow.evaluation.private import private_calibration, private_evaluation

K, PERSONS = 3, 400
ATTRIBUTES, TARGET = [Categorical("a", [0, 1, 2, 3]), Categorical("b", [0, 1])], Target("y", [0, 1])
SCHEMA = Schema(ATTRIBUTES, TARGET, rows=K * PERSONS, person="who", rows_per_person=K)
ENOUGH = 10**4  # an ε at which hardly any noise is left


def table(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows of a person are alike in all but one column."""
    a = np.repeat(rng.integers(0, 4, PERSONS), K)
    y = np.repeat(rng.random(PERSONS), K) < 0.2 + 0.2 * a
    return {"a": a, "b": rng.integers(0, 2, len(a)), "who": np.repeat(np.arange(PERSONS), K)}, y.astype(int)


def test_rows_of_a_person_are_taken_for_one() -> None:
    rng = np.random.default_rng(1)
    X, y = table(rng)
    release = HedgerowClassifier(SCHEMA, 50, budget=Budget(50), random_state=0).fit(X, y).release_
    scores = [private_score(release, *table(rng), epsilon=ENOUGH, budget=Budget(ENOUGH), metrics=["auc", "brier"]) for _ in range(80)]
    for name in ("accuracy", "recall", "auc", "brier"):
        spread = np.std([getattr(score, name) for score in scores])
        stated = np.mean([getattr(score, f"{name}_error") for score in scores])
        assert 0.8 < stated / spread < (1.7 if name == "brier" else 1.35), name  # of the Brier score both classes' errors are added


def test_each_of_its_errors_grows_with_the_rows_of_a_person() -> None:
    X, y = table(np.random.default_rng(2))
    found = []
    for schema in (SCHEMA, Schema(ATTRIBUTES, TARGET, rows=K * PERSONS)):
        release = HedgerowClassifier(schema, 50, budget=Budget(50), random_state=0).fit(X, y).release_
        score, calibration = private_evaluation(release, X, y, epsilon=ENOUGH, budget=Budget(ENOUGH), metrics=["auc"])
        point = max(score.roc(), key=lambda each: each.recall * (1 - each.recall))  # an edge of a bin
        other = private_calibration(release, X, y, epsilon=ENOUGH, budget=Budget(ENOUGH))
        assert other.alike == calibration.alike == score.alike == schema.k
        found.append([
            score.accuracy_error, score.majority_error, score.recall_error, score.precision_error, score.auc_error, score.brier_error,
            point.false_positive_rate_error, point.precision_error, np.nanmax(calibration.share_errors), calibration.by_chance,
        ])  # fmt: skip
    ratios = np.array(found[0]) / np.array(found[1])
    assert (ratios > 1.2).all()
    assert ratios[0] == pytest.approx(np.sqrt(K), rel=0.1)
