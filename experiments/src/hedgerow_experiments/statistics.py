"""Means with honest intervals, from accuracies of cross-validation.

The folds of a cross-validation share most of their training rows, so their spread over √n is too small an error. We use the
corrected variance of Nadeau and Bengio (2003): (1/J + n_test/n_train) times the variance of the J accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, variance

CLEAR = 2.0  # standard errors: a difference below them is not called one


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error (nan for one value); n is how many values it is a mean of."""

    mean: float
    error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if isnan(self.error) else f"{self.mean:.3f} ± {self.error:.3f}"

    @property
    def signed(self) -> str:
        return f"{self.mean:+.3f}" if isnan(self.error) else f"{self.mean:+.3f} ± {self.error:.3f}"

    @property
    def clear(self) -> bool:
        """As a difference: away from 0 by more than the noise."""
        return abs(self.mean) > CLEAR * self.error  # False where the error is nan


def cross_validated_mean(values: Sequence[float], folds: int = 10) -> Mean:
    """Of the accuracies of one or several cross-validations with that many folds each."""
    if not values:
        return Mean(nan, nan, 0)
    share = 1 / (folds - 1)  # test rows for each training row
    error = sqrt((1 / len(values) + share) * variance(values)) if len(values) > 1 else nan
    return Mean(fmean(values), error, len(values))


def difference(ours: Sequence[float], theirs: Sequence[float], folds: int = 10) -> Mean:
    """The mean difference of two methods on the same folds, pair by pair."""
    return cross_validated_mean([a - b for a, b in zip(ours, theirs, strict=True)], folds)
