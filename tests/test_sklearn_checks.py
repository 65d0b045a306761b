"""scikit-learn's own estimator checks, for every estimator that can be found: a new one cannot escape."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hedgerow.estimators import all_estimators

EXCUSED: dict[str, str] = {}


def instances() -> list[Any]:
    """Each with an inferred schema and, where there is one, a large ε: the checks are about conventions, not privacy."""
    made = []
    for estimator in all_estimators().values():
        known = estimator().get_params()
        settings = {"schema": "infer", "epsilon": 1_000_000}
        made.append(estimator(**{name: value for name, value in settings.items() if name in known}))
    return made


def test_all_estimators_are_found() -> None:
    assert set(all_estimators()) == {
        "DPDFClassifier",
        "DiffPID3Classifier",
        "ID3Classifier",
        "PrivateID3Classifier",
        "PrivateRDTClassifier",
        "RandomDecisionTreesClassifier",
        "SNRForestClassifier",
    }


def test_at_most_five_checks_are_excused() -> None:
    assert len(EXCUSED) <= 5
    assert all(len(reason) > 20 for reason in EXCUSED.values())


@pytest.mark.filterwarnings("ignore::hedgerow.errors.UnreviewedSchemaWarning")
@parametrize_with_checks(instances(), expected_failed_checks=lambda estimator: EXCUSED)
def test_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)
