"""Private test scores: how well a release does on rows that are private too, and whether its probabilities mean what they say.

An exact score would be a leak.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_epsilon, noise_variance
from hedgerow.accounting.meter import Budget
from hedgerow.engines.engine import Engine
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import is_place, open_place
from hedgerow.engines.person_ids import person_column
from hedgerow.engines.remote import RemoteSource, remote_schema
from hedgerow.errors import BudgetError, PlanError, TableError
from hedgerow.inference.calibration import Calibration
from hedgerow.mechanisms.coins import SYSTEM, random_name
from hedgerow.private_table import PrivateTable, is_private_table, private_table, reserved
from hedgerow.queries import Confusion, Reliability
from hedgerow.queries.predictors import Probabilities
from hedgerow.queries.reliability import bin_edges, checked_bins
from hedgerow.release.certificate import Certificate, certificate_of, part_of
from hedgerow.release.release import Release
from hedgerow.schema.columns import columns_of, one_column


@dataclass(frozen=True, repr=False)
class PrivateScore:
    """A noisy confusion matrix: rows are true classes, columns predicted ones. Everything else follows from it.

    undeclared: the noisy number of test rows that have no declared class; they are not part of the matrix
    """

    confusion: NDArray[np.int64]
    undeclared: int
    classes: tuple[Any, ...]
    noise_scale: Fraction
    certificate: Certificate

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on one number of the matrix."""
        return math.sqrt(noise_variance(self.noise_scale))

    @property
    def rows(self) -> float:
        """Noisy number of test rows of a declared class."""
        return max(float(self.confusion.sum()), 1.0)

    @property
    def rows_error(self) -> float:
        return self.noise_sd * len(self.classes)

    @property
    def undeclared_error(self) -> float:
        return self.noise_sd * math.sqrt(len(self.classes))

    @property
    def accuracy(self) -> float:
        return float(np.clip(np.trace(self.confusion) / self.rows, 0, 1))

    @property
    def accuracy_error(self) -> float:
        """Standard error of the accuracy: the noise on the matrix and the chance of the draw of rows together."""
        k, a = len(self.classes), self.accuracy
        noise = self.noise_sd**2 * (k * (1 - a) ** 2 + (k * k - k) * a**2) / self.rows**2
        return min(0.5, math.sqrt(noise + a * (1 - a) / self.rows))

    @property
    def majority(self) -> tuple[Any, float]:
        """The most frequent class and its share: what always answering it would score."""
        totals = np.maximum(self.confusion.sum(axis=1), 0)
        best = int(totals.argmax())
        return self.classes[best], float(np.clip(totals[best] / self.rows, 0, 1))

    def __repr__(self) -> str:
        label, share = self.majority
        return (
            f"PrivateScore(accuracy {self.accuracy:.3f} ± {self.accuracy_error:.2g} on about {self.rows:,.0f} ± "
            f"{self.rows_error:.2g} rows; always {label!r}: {share:.3f})"
        )


def private_score(release: Any, X: Any, y: Any = None, *, epsilon: Any, budget: Budget | None = None, n_jobs: int = 1) -> PrivateScore:
    """Charge ε, then count (true class, predicted class) over the rows of a file, a data frame or an array.

    `release` is a Release, or an estimator that has one. Nothing else is taken: what is counted for a row must follow from that row alone,
    to the last bit, and of a function of your own nobody could know it (PROOF.md, V3).
    """
    release = scored_release(release, "private_score")
    amount = exact_epsilon(epsilon)
    scale = Confusion.cost(amount, release.schema.k).scale
    engine = scored_rows(release, X, y, n_jobs, "private_score")
    ready_probabilities(release)
    counts, certificate = _paid(
        release, engine, amount, budget, "evaluate", lambda table: table.ask(Confusion(release.predict_codes), amount)
    )
    return _score(release, counts, scale, certificate)


def private_calibration(
    release: Any, X: Any, y: Any = None, *, epsilon: Any, budget: Budget | None = None, bins: int = 10, n_jobs: int = 1
) -> Calibration:
    """Charge ε, then count in which rows the most probable class is the true one, by how probable the release says that it is.

    The answer tells whether its probabilities mean what they say. For rows that are public, `calibration` is exact and free.
    """
    release = scored_release(release, "private_calibration")
    amount = exact_epsilon(epsilon)
    bins = checked_bins(bins)
    scale = Reliability.cost(amount, release.schema.k).scale
    engine = scored_rows(release, X, y, n_jobs, "private_calibration")
    shares = ready_probabilities(release)
    counts, certificate = _paid(release, engine, amount, budget, "calibration", lambda table: table.ask(Reliability(shares, bins), amount))
    return Calibration(counts, bin_edges(release.codebook.n_classes, bins), scale, certificate)


def private_evaluation(
    release: Any, X: Any, y: Any = None, *, epsilon: Any, budget: Budget | None = None, bins: int = 10, n_jobs: int = 1
) -> tuple[PrivateScore, Calibration]:
    """Both for one ε, charged at once: half of it pays for the score, half for the calibration. They share a certificate of ε."""
    release = scored_release(release, "private_evaluation")
    amount = exact_epsilon(epsilon)
    half = amount / 2
    bins = checked_bins(bins)
    scale = Confusion.cost(half, release.schema.k).scale
    engine = scored_rows(release, X, y, n_jobs, "private_evaluation")
    shares = ready_probabilities(release)

    def ask(table: PrivateTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return table.ask(Confusion(release.predict_codes), half), table.ask(Reliability(shares, bins), half)

    (confusion, counts), certificate = _paid(release, engine, amount, budget, "evaluate", ask)
    edges = bin_edges(release.codebook.n_classes, bins)
    return _score(release, confusion, scale, certificate), Calibration(counts, edges, scale, certificate)


def scored_release(release: Any, who: str) -> Release:
    release = getattr(release, "release_", release)
    if not isinstance(release, Release):
        raise PlanError(f"{who}: got {type(release).__name__}; expected a Release or a fitted estimator.")
    return release


def scored_rows(release: Release, X: Any, y: Any, n_jobs: int, who: str) -> Any:
    """The rows, with everything checked that can be without looking at a value."""
    codebook = release.codebook
    person = codebook.schema.person
    key = b"" if person is None else SYSTEM.bytes(16)
    if is_private_table(X):
        if y is not None or not who.startswith("private") or not isinstance(X, RemoteSource):
            raise PlanError(f"{who}: rows behind a private table are private: use private_score or private_calibration, without y.")
        remote_schema(X, codebook.schema)
        return X.engine_for(codebook)
    if is_place(X):
        if y is not None:
            raise TableError(f"{who}: with a file or a database, y must be None: the labels are its target column.")
        return open_place(X, codebook, n_jobs, key=key)
    columns = columns_of(X, codebook.schema.names, dates=codebook.schema.dates)
    persons = None if person is None else person_column(X, person)
    if y is None:
        y = columns_of(X, [codebook.schema.target.name])[0]
    y = one_column(y, codebook.schema.target.name)
    if len(columns[0]) != len(y):
        raise TableError(f"{who}: X and y do not have the same number of rows.")
    return MemoryRows(X, y, codebook, n_jobs, persons=persons, key=key)


def ready_probabilities(release: Release) -> Probabilities:
    """The class probabilities for rows of codes. Its vote is made now, once, before any row is looked at, and not by several threads."""
    release.predict_codes_proba(np.zeros((1, len(release.codebook.sizes)), dtype=release.codebook.dtype))
    return release.predict_codes_proba


Answer = TypeVar("Answer")


def _paid(
    release: Release,
    engine: Engine,
    amount: Fraction,
    budget: Budget | None,
    what: str,
    ask: Callable[[PrivateTable], Answer],
) -> tuple[Answer, Certificate]:
    """Reserve, then ask: the answer, and what it may claim."""
    with closing(engine):
        reservation = reserved(engine, budget if budget is not None else Budget(amount), amount, what)
        table = private_table(engine, reservation)
        answer = ask(table)
    part = part_of(
        reservation.events,
        requested=amount,
        sampler=table.sampler,
        secret=table._secret,
        unreviewed=release.codebook.schema.unreviewed,
        person=release.schema.person,
        rows_per_person=release.schema.k,
        assumed=engine.assumed,
        id=random_name(SYSTEM),
        no_guarantee=None if release.certificate.private else "the scored forest has no ε of its own",
    )
    with contextlib.suppress(BudgetError, OSError):  # it is paid for: what is not given back may not lose it
        reservation.settle()
    return answer, certificate_of([part])


def _score(release: Release, counts: NDArray[np.int64], scale: Fraction, certificate: Certificate) -> PrivateScore:
    return PrivateScore(counts[:-1], int(counts[-1].sum()), tuple(release.schema.target.classes), scale, certificate)


def private_scorer(epsilon: Any, budget: Budget) -> Callable[[Any, Any, Any], float]:
    """A scorer for scikit-learn's `scoring=`: every call is a noisy accuracy that the budget pays for."""

    def score(estimator: Any, X: Any, y: Any) -> float:
        return private_score(estimator, X, y, epsilon=epsilon, budget=budget).accuracy

    return score
