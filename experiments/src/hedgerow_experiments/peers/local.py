"""Models that run in this process, one fit after the other, each within the time it is given and with one thread."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hedgerow
from hedgerow.errors import HedgerowError
from hedgerow_experiments.peers.fits import Answer, Failure, Fit
from hedgerow_experiments.peers.logistic import Logistic, features
from hedgerow_experiments.peers.naive_bayes import NaiveBayes, cells_of
from hedgerow_experiments.peers.tables import Table

Rows = NDArray[np.int64]  # by their numbers
Fitted = Callable[[Any], NDArray[np.float64]]  # rows as the model takes them -> probabilities of the declared classes


@dataclass(frozen=True, eq=False)
class Learner:
    """A model that is ready for a table.

    take: rows by their numbers -> rows as the model takes them
    fit:  such rows, their numbers, the fit that is wanted -> probabilities of other rows
    """

    take: Callable[[Rows], Any]
    fit: Callable[[Any, Rows, Fit], Fitted]


Prepare = Callable[[Table], Learner]


class TooLong(Exception):
    """The fit took longer than we wait."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    if not hasattr(signal, "SIGALRM"):  # Windows: wait as long as it takes
        yield
        return

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def versions() -> dict[str, str]:
    return {"hedgerow": hedgerow.__version__} | {name: version(name) for name in ("numpy", "scikit-learn")}


def answers(prepare: Prepare, table: Table, fits: Sequence[Fit], patience: int) -> Iterator[Answer | Failure]:
    """In the order of the fits. After one that took longer than `patience` seconds the rest is not tried."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    model = prepare(table)
    for number, fit in enumerate(fits):
        train, test = table.folds[fit.fold]
        try:
            with at_most(patience), threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                fitted = model.fit(model.take(train), train, fit)
                between = time.perf_counter()
                p = fitted(model.take(test))
                end = time.perf_counter()
        except TooLong:
            yield from (Failure(f"not done within {patience} s, or after such a fit") for _ in fits[number:])
            return
        except (HedgerowError, MemoryError) as error:
            yield Failure(f"{type(error).__name__}: {error}")
        else:
            yield Answer(p.argmax(axis=1), p, between - start, end - between)


def our_forest(name: str, delta: float | None = None) -> Prepare:
    """An estimator of this package by name, with its defaults; δ where it takes one."""
    settings = {} if delta is None else {"delta": delta}

    def prepare(table: Table) -> Learner:
        def fit(columns: Any, train: Rows, fit: Fit) -> Fitted:
            make = getattr(hedgerow, name)
            model = make(table.schema, fit.epsilon, random_state=fit.seed, n_jobs=1, **settings).fit(columns, table.labels[train])
            return lambda columns: np.asarray(model.release_.predict_proba(columns))  # in the order of declaration

        return Learner(table.rows, fit)

    return prepare


def naive_bayes(table: Table) -> Learner:
    codes, sizes = cells_of(table.X, table.sizes, table.bounds)

    def fit(rows: Any, train: Rows, fit: Fit) -> Fitted:
        return NaiveBayes(rows, table.y[train], sizes, table.n_classes, float(fit.epsilon), np.random.default_rng()).probabilities

    return Learner(lambda rows: codes[rows], fit)


def logistic(delta: float) -> Prepare:
    def prepare(table: Table) -> Learner:
        X = features(table.X, table.sizes, table.bounds)

        def fit(rows: Any, train: Rows, fit: Fit) -> Fitted:
            budget = Fraction(fit.epsilon), Fraction(str(delta))
            return Logistic(rows, table.y[train], table.n_classes, *budget, np.random.default_rng()).probabilities

        return Learner(lambda rows: X[rows], fit)

    return prepare


def random_forest(table: Table) -> Learner:
    from sklearn.ensemble import RandomForestClassifier

    columns = [x[:, None] if not size else np.eye(size)[x.astype(int)] for x, size in zip(table.X.T, table.sizes.tolist(), strict=True)]
    return _of_scikit_learn(table, np.hstack(columns), lambda seed: RandomForestClassifier(100, random_state=seed))


def boosting(table: Table) -> Learner:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Early stopping deals out rows by class, and one of Nursery's classes may have a single row. Without a penalty the
    # scores of rare classes diverge (Nursery, chess-krk), and this would be no ceiling.
    settings = {"early_stopping": False, "l2_regularization": 1.0, "categorical_features": table.sizes > 0}
    return _of_scikit_learn(table, table.X, lambda seed: HistGradientBoostingClassifier(random_state=seed, **settings))


def _of_scikit_learn(table: Table, X: NDArray[np.float64], make: Callable[[int], Any]) -> Learner:
    def fit(rows: Any, train: Rows, fit: Fit) -> Fitted:
        model = make(fit.seed).fit(rows, table.y[train])

        def probabilities(rows: Any) -> NDArray[np.float64]:
            p = np.zeros((len(rows), table.n_classes))
            p[:, model.classes_] = model.predict_proba(rows)  # a class without training rows has no column there
            return p

        return probabilities

    return Learner(lambda rows: X[rows], fit)
