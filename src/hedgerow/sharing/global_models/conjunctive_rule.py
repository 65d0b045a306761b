"""A conjunctive rule: one "if … and … then", and one answer for everybody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hedgerow.errors import PlanError
from hedgerow.settings import whole
from hedgerow.sharing.global_models.antecedents import Antecedent, best_antecedent
from hedgerow.sharing.global_models.dealing import held_out


class ConjunctiveRuleClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Conditions are added while they tell about the class; the last ones go again if they do not help on rows held out.

    A row that the rule covers gets the class shares of the covered rows, any other row those of the rows not covered.

    categorical_features: which columns hold codes and are compared with a single value: "all", a mask or a list of places.
                          The others are numbers, compared with a threshold; without it all are
    holdout:              share of the rows, of each class, that decide how many conditions stay; None keeps all
    max_antecedents:      the most conditions, or None
    min_covered:          rows that a condition must keep and must take away, at least
    random_state:         which rows are held out; nothing else is random

    After fit: `rule_` (the conditions), `counts_` (class counts of the rows covered, and of the others).
    """

    def __init__(
        self,
        categorical_features: Any = None,
        holdout: float | None = 1 / 3,
        max_antecedents: int | None = None,
        min_covered: int = 2,
        random_state: Any = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.holdout = holdout
        self.max_antecedents = max_antecedents
        self.min_covered = min_covered
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ConjunctiveRuleClassifier:
        """Find the rule in rows that may be read exactly, such as pseudo-data."""
        if self.holdout is not None and not 0 < self.holdout < 1:
            raise PlanError(f"holdout: got {self.holdout!r}; expected a share between 0 and 1, or None.")
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        held = np.zeros(len(X), dtype=bool)
        if self.holdout is not None:
            held = held_out(classes, self.holdout, self.random_state)
        if not held.any() or held.all():  # too few rows to hold some out
            rule = self._grown(X, classes)
        else:
            rule = self._pruned(self._grown(X[~held], classes[~held]), X, classes, held)
        self.rule_ = tuple(rule)
        self.counts_ = _counts_of_parts(_covered(self.rule_, X), classes, len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The class shares of the rows that the rule covers, or of the others."""
        check_is_fitted(self, "counts_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        shares = _filled(self.counts_) / _filled(self.counts_).sum(axis=1, keepdims=True)
        return np.asarray(shares[np.where(_covered(self.rule_, X), 0, 1)], dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most frequent class of the rows that the rule covers, or of the others."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def words(self, names: Sequence[str] | None = None, values: Sequence[Sequence[str]] | None = None) -> str:
        """The rule for people, with the names of the columns and, for each of them, the meanings of its codes."""
        check_is_fitted(self, "counts_")
        names = [f"column {j}" for j in range(self.n_features_in_)] if names is None else names
        then, otherwise = (self.classes_[place] for place in _filled(self.counts_).argmax(axis=1))
        conditions = " and ".join(
            antecedent.words(names[antecedent.attribute], values[antecedent.attribute] if values is not None else ())
            for antecedent in self.rule_
        )
        return f"if {conditions} then {then}, else {otherwise}" if conditions else f"always {then}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one rule has two answers
        return tags

    def _grown(self, X: NDArray[np.float64], classes: NDArray[np.int64]) -> list[Antecedent]:
        least = whole("min_covered", self.min_covered, 1)
        most = None if self.max_antecedents is None else whole("max_antecedents", self.max_antecedents, 0)
        categorical = self._categorical(X.shape[1])
        rule: list[Antecedent] = []
        while most is None or len(rule) < most:
            following = best_antecedent(X, classes, _covered(rule, X), len(self.classes_), categorical, least)
            if following is None:
                break
            rule.append(following)
        return rule

    def _pruned(
        self, rule: list[Antecedent], X: NDArray[np.float64], classes: NDArray[np.int64], held: NDArray[np.bool_]
    ) -> list[Antecedent]:
        """As many of the first conditions as get the most held-out rows right; of equally good numbers the smallest."""
        right = []
        for length in range(len(rule) + 1):
            covered = _covered(rule[:length], X)
            learned = _counts_of_parts(covered[~held], classes[~held], len(self.classes_))
            answer = _filled(learned).argmax(axis=1)[np.where(covered[held], 0, 1)]
            right.append(int((answer == classes[held]).sum()))
        return rule[: int(np.argmax(right))]

    def _categorical(self, columns: int) -> NDArray[np.bool_]:
        """Which columns are compared with a single value."""
        mask = np.zeros(columns, dtype=bool)
        if self.categorical_features is None:
            return mask
        if isinstance(self.categorical_features, str):
            if self.categorical_features != "all":
                raise PlanError(f'categorical_features: got {self.categorical_features!r}; expected "all", a mask or places.')
            return ~mask
        asked = np.asarray(self.categorical_features)
        try:
            mask[asked if len(asked) else np.empty(0, dtype=np.int64)] = True
        except (IndexError, TypeError) as error:
            raise PlanError(f"categorical_features: expected a mask of {columns} columns, or places below {columns}.") from error
        return mask


def _covered(rule: Sequence[Antecedent], X: NDArray[np.float64]) -> NDArray[np.bool_]:
    covered = np.ones(len(X), dtype=bool)
    for antecedent in rule:
        covered &= antecedent.holds(X)
    return covered


def _counts_of_parts(covered: NDArray[np.bool_], classes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """(2, classes): the rows that are covered, and the others."""
    return np.stack([np.bincount(classes[part], minlength=n_classes) for part in (covered, ~covered)])


def _filled(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A part without rows answers as all rows do."""
    return np.where(counts.any(axis=1, keepdims=True), counts, counts.sum(axis=0))
