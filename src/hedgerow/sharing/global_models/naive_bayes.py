"""Naive Bayes on codes, in which a value without a branch says nothing about the class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import CategoricalNB


class CodedNaiveBayes(CategoricalNB):  # type: ignore[misc]
    """scikit-learn's CategoricalNB. With `min_categories` given, the last code of each column is taken as unknown.

    Such a row is answered from its other columns. CategoricalNB would take the unknown value as one that was never seen
    with any class, and therefore as a sign of the rarest.

    min_categories: the number of codes of each column, the unknown one included
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CodedNaiveBayes:
        super().fit(X, y, sample_weight=sample_weight)
        return self._without_the_unknown()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> CodedNaiveBayes:
        super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)
        return self._without_the_unknown()

    def _without_the_unknown(self) -> CodedNaiveBayes:
        if self.min_categories is None:
            return self
        alpha = np.maximum(np.broadcast_to(self.alpha, len(self.category_count_)), 1e-10)
        for j, counts in enumerate(self.category_count_):
            known = counts[:, :-1] + alpha[j]
            shares = np.log(known) - np.log(known.sum(axis=1, keepdims=True))
            self.feature_log_prob_[j] = np.concatenate([shares, np.zeros((len(counts), 1))], axis=1)
        return self
