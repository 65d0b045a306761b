"""Cross-validation as the papers do it: stratified, seeded folds, and the accuracy in each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.datasets import load
from hedgerow.datasets.dataset import Dataset

Rows = NDArray[np.int64]
FOLDS = 10


@lru_cache(maxsize=16)
def data_of(name: str, drop: tuple[str, ...] = ()) -> Dataset:
    return load(name, drop=drop)


def folds_of(data: Dataset, seed: int, folds: int = FOLDS) -> list[tuple[Rows, Rows]]:
    """Training rows and test rows of each fold."""
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Nursery has a class of two rows, fewer than the folds
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(data)), data.y))


def rows_of(data: Dataset, which: Rows) -> dict[str, NDArray[Any]]:
    return {name: values[which] for name, values in data.columns.items()}


def accuracy(model: Any, data: Dataset, test: Rows) -> float:
    """Of anything with `predict`: an estimator, a release."""
    predicted = np.asarray(model.predict(rows_of(data, test))).astype(str)
    return round(float(np.mean(predicted == data.y[test].astype(str))), 5)


def cross_validated(data: Dataset, seed: int, make: Callable[[int], Any], folds: int = FOLDS) -> list[float]:
    """The accuracy in each fold. `make` gets the number of the fold, for the seed of public structure."""
    return [accuracy(model, data, test) for model, test in _fitted(data, seed, make, folds)]


def _fitted(data: Dataset, seed: int, make: Callable[[int], Any], folds: int) -> Iterator[tuple[Any, Rows]]:
    for fold, (train, test) in enumerate(folds_of(data, seed, folds)):
        yield quiet_fit(make(fold), rows_of(data, train), data.y[train]), test


def quiet_fit(model: Any, columns: dict[str, NDArray[Any]], target: NDArray[Any]) -> Any:
    """Fitted without the warnings of a single fit: a run makes thousands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(columns, target)
