"""A decision table: a few attributes, and the majority class of every combination of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hedgerow.settings import whole
from hedgerow.sharing.global_models.dealing import folds
from hedgerow.sharing.global_models.subset_search import CrossValidation, Judge, LeaveOneOut, class_counts, found_in, grouped, search


class DecisionTableClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The attributes are chosen by best-first search, by the accuracy on rows that the table has not seen (Kohavi 1995).

    Each distinct number in a column is a value of its own: give codes or cells, not measurements. A combination that was
    never seen is answered with the classes of the whole table.

    cv:           None leaves out one row at a time, which is exact and quick; a number of folds is cross-validated instead
    patience:     expansions without success after which the search ends
    random_state: deals out the folds; nothing else is random

    After fit: `attributes_` (their places), `combinations_` (their values, one row each), `counts_` (rows of each class in
    them), `search_accuracy_` (of the chosen attributes, on rows left out).
    """

    def __init__(self, cv: int | None = None, patience: int = 5, random_state: Any = None) -> None:
        self.cv = cv
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DecisionTableClassifier:
        """Choose the attributes of the table in rows that may be read exactly, such as pseudo-data."""
        patience = whole("patience", self.patience, 1)
        cv = None if self.cv is None else whole("cv", self.cv, 2)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        self._values = [np.unique(column) for column in X.T]
        self._sizes = [len(values) for values in self._values]
        codes = self._codes(X)
        judge: Judge = LeaveOneOut(classes, n_classes)
        if cv is not None:
            judge = CrossValidation(classes, n_classes, folds(classes, cv, self.random_state))
        self.attributes_, right = search(codes, self._sizes, judge, patience)
        self.search_accuracy_ = right / len(X)
        self._groups = grouped(codes, self._sizes, self.attributes_)
        self.counts_ = class_counts(self._groups.group, self._groups.count, classes, n_classes)
        _, first_row = np.unique(self._groups.group, return_index=True)
        self.combinations_ = X[np.ix_(first_row, np.array(self.attributes_, dtype=np.int64))]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The class shares of the row's combination, or of the whole table."""
        check_is_fitted(self, "counts_")
        X = validate_data(self, X, reset=False)
        group = found_in(self._groups, self._codes(X), self._sizes, self.attributes_)
        counts = np.concatenate([self.counts_, self.counts_.sum(axis=0)[None]])[group]  # −1 is the last: the whole table
        return np.asarray(counts / counts.sum(axis=1, keepdims=True), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on measurements, of which no two rows have the same
        return tags

    def _codes(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each value among those of its column at fit; −1 for another."""
        codes = np.empty(X.shape, dtype=np.int64)
        for j, values in enumerate(self._values):
            place = np.minimum(np.searchsorted(values, X[:, j]), len(values) - 1)
            codes[:, j] = np.where(values[place] == X[:, j], place, -1)
        return codes
