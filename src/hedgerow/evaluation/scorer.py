"""Charged scores as scikit-learn calls them: `scoring=private_scorer(epsilon, budget)`."""

from __future__ import annotations

import sys
import warnings
import weakref
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.accounting.meter import Budget, checked_budget
from hedgerow.errors import PlanError, UnclearScoreWarning
from hedgerow.evaluation.private import METRICS, private_score
from hedgerow.inference.text import SCORE_MORE, is_lost

A_THRESHOLD = (
    'point = private_score(model, X, y, epsilon=…, metrics=["auc"]).threshold_for(recall=0.8) of a model that is fitted, then '
    "point.takes(model, new), or FixedThresholdClassifier(FrozenEstimator(model), threshold=point.threshold, pos_label=point.label): "
    "sklearn.frozen.FrozenEstimator keeps it from being fitted, and paid for, again"
)


_lost: weakref.WeakSet[PrivateScorer] = weakref.WeakSet()  # of which it was told that noise hides their scores


@dataclass(frozen=True, eq=False)
class PrivateScorer:
    """A charged score of one metric."""

    epsilon: Fraction
    budget: Budget
    metric: str = "accuracy"
    positive: Any = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise PlanError(f"metric: got {self.metric!r}; expected one of {', '.join(METRICS)}.")
        checked_budget(self.budget, self.epsilon)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        self._check_permutations()
        found = private_score(estimator, X, y, epsilon=self.epsilon, budget=self.budget, metrics=[self.metric], positive=self.positive)
        value, error = float(getattr(found, self.metric)), float(getattr(found, f"{self.metric}_error"))
        if is_lost(value, error) and self not in _lost:
            _lost.add(self)
            text = f"{self.metric}: this score is lost in the noise, and what is chosen by it is chosen by chance; {SCORE_MORE}."
            warnings.warn(f"{text} (Of a scorer this is said once.)", UnclearScoreWarning, stacklevel=2)
        return -value if self.metric == "brier" else value  # scikit-learn takes the largest for the best

    def _check_permutations(self) -> None:
        """permutation_importance scores the same rows for every column again and again."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "permutation_importance":
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn."):
            raise PlanError(
                "scoring: permutation_importance scores the rows once for every column and repetition, and each of these scores would be "
                "charged. Nothing was spent. Use model.feature_importances_, from released numbers, which costs nothing, or "
                "release.effects(); on rows that are public, scoring='accuracy'."
            )

    @property
    def _score_func(self) -> Any:
        """The metric of scikit-learn's own scorers: TunedThresholdClassifierCV would compute it for every threshold."""
        raise PlanError(
            "scoring: a private score is of a model, and cannot be computed for one threshold after the other, as "
            f"TunedThresholdClassifierCV does. Nothing was spent. Use {A_THRESHOLD}."
        )


def private_scorer(epsilon: Any, budget: Budget, metric: str = "accuracy", positive: Any = None) -> PrivateScorer:
    """A scorer for scikit-learn's `scoring=`: every call is a noisy number that the budget pays for.

    metric: accuracy, balanced_accuracy, recall, precision, f1, auc or brier (negative, since scikit-learn takes the largest for the best)
    positive: the class that recall, precision, f1, area and Brier score are about, as in `private_score`

    Of more than two classes the AUC is the mean of those that the noise does not hide, which may be others in each score: a warning names
    those left out, and such scores do not compare. In a search name `positive`, or take "brier", which leaves no row out.
    """
    return PrivateScorer(exact_epsilon(epsilon), budget, metric, positive)
