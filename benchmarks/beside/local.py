"""Models that run in this process, one fit after the other, each within the time it is given."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hedgerow
from benchmarks.beside.naive_bayes import NaiveBayes, cells_of
from benchmarks.beside.protocol import Answer, Failure, Job, Table
from hedgerow.errors import HedgerowError

Fitted = Callable[[NDArray[np.int64]], NDArray[np.float64]]  # rows by their number -> probabilities of the declared classes
Fit = Callable[[Table, NDArray[np.int64], Job], Fitted]


class TooLong(Exception):
    """The fit took longer than we wait."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answers(fit: Fit, table: Table, jobs: Sequence[Job], patience: int) -> Iterator[Answer | Failure]:
    versions = {"hedgerow": hedgerow.__version__} | {name: version(name) for name in ("numpy", "scikit-learn")}
    for job in jobs:
        train, test = table.folds[job.fold]
        try:
            with at_most(patience), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                fitted = fit(table, train, job)
                between = time.perf_counter()
                p = fitted(test)
                end = time.perf_counter()
        except TooLong:
            yield Failure(job, f"not done within {patience} s")
        except (HedgerowError, MemoryError) as error:
            yield Failure(job, f"{type(error).__name__}: {error}")
        else:
            yield Answer(job, p.argmax(axis=1), p, between - start, end - between, versions)


def our_forest(name: str, delta: float | None) -> Fit:
    """An estimator of this package by name, with its defaults; δ where it takes one."""
    settings = {} if delta is None else {"delta": delta}

    def fit(table: Table, train: NDArray[np.int64], job: Job) -> Fitted:
        make = getattr(hedgerow, name)
        model = make(table.schema, job.epsilon, random_state=job.seed, n_jobs=1, **settings).fit(table.rows(train), table.labels[train])
        return lambda rows: np.asarray(model.predict_proba(table.rows(rows)))

    return fit


def naive_bayes(table: Table, train: NDArray[np.int64], job: Job) -> Fitted:
    codes, sizes = cells_of(table.X, table.sizes, table.bounds)
    assert job.epsilon is not None
    model = NaiveBayes(codes[train], table.y[train], sizes, table.n_classes, float(job.epsilon), np.random.default_rng())
    return lambda rows: model.probabilities(codes[rows])


def one_hot(table: Table) -> NDArray[np.float64]:
    columns = [x[:, None] if not size else np.eye(size)[x.astype(int)] for x, size in zip(table.X.T, table.sizes.tolist(), strict=True)]
    return np.hstack(columns)


def random_forest(table: Table, train: NDArray[np.int64], job: Job) -> Fitted:
    from sklearn.ensemble import RandomForestClassifier

    X = one_hot(table)
    return _with_all_classes(RandomForestClassifier(100, random_state=job.seed).fit(X[train], table.y[train]), X, table)


def boosting(table: Table, train: NDArray[np.int64], job: Job) -> Fitted:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Early stopping deals out rows by class, and one of Nursery's classes may have a single row. Without a penalty the
    # scores of rare classes diverge (Nursery, chess-krk), and this would be no ceiling.
    settings = {"early_stopping": False, "l2_regularization": 1.0, "random_state": job.seed}
    model = HistGradientBoostingClassifier(categorical_features=table.sizes > 0, **settings)
    return _with_all_classes(model.fit(table.X[train], table.y[train]), table.X, table)


def _with_all_classes(model: Any, X: NDArray[np.float64], table: Table) -> Fitted:
    def probabilities(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        p = np.zeros((len(rows), table.n_classes))
        p[:, model.classes_] = model.predict_proba(X[rows])  # a class without training rows has no column there
        return p

    return probabilities
