"""Exact test scores on rows that are PUBLIC: nothing is charged, and nothing protects the people in those rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hedgerow.engines.exact import ExactTable
from hedgerow.evaluation.private import PrivateScore, ready_probabilities, score_of, score_queries, scored_release, scored_rows, warn_about
from hedgerow.inference.calibration import Calibration
from hedgerow.inference.ranking import positive_code
from hedgerow.queries import Reliability
from hedgerow.queries.reliability import bin_edges, checked_bins
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook

PUBLIC = "the test rows were taken as public: they were counted exactly, and nothing was charged"


class PublicScore(PrivateScore):
    """An exact confusion matrix of public rows."""

    @property
    def noise_sd(self) -> float:
        return 0.0

    def __repr__(self) -> str:
        return f"PublicScore({self.words(f'{self.rows:,.0f} public rows, not charged')})"


def every_row(release: Release) -> Codebook:
    """How rows are read where no limit of rows per person leaves any out."""
    codebook = release.codebook
    return Codebook(replace(codebook.schema, person=None, rows_per_person=None), codebook.bins)


def public_score(
    release: Any,
    X: Any,
    y: Any = None,
    *,
    metrics: Sequence[str] = ("accuracy",),
    bins: int = 100,
    positive: Any = None,
    n_jobs: int | None = 1,
) -> PrivateScore:
    """The exact confusion matrix of a release on PUBLIC rows; with "auc" also ROC curves, rows in one of the bins counting as ties.

    For private rows use `private_score`; `positive` is the same as there. All rows are scored, also where a person has several: a limit
    protects persons, and nothing is protected here.
    """
    release = scored_release(release, "public_score", X)
    about = positive_code(release.schema.target.classes, positive)
    questions = score_queries(release, metrics, bins, about)
    with closing(scored_rows(release, X, y, n_jobs, "public_score", every_row(release))) as engine:
        table = ExactTable(engine)
        answers = [table.ask(query) for query in questions]
    score = score_of(release, questions, answers, [Fraction(0)] * len(questions), no_certificate(PUBLIC), PublicScore, about)
    warn_about(score, metrics, score)
    return score


def calibration(release: Any, X: Any, y: Any = None, bins: int = 10, *, n_jobs: int | None = 1) -> Calibration:
    """Whether the probabilities of a release mean what they say, on PUBLIC rows: exact, and not charged.

    `release` is a Release, or an estimator that has one; X a file, a data frame or an array. For private rows use `private_calibration`.
    """
    release = scored_release(release, "calibration", X)
    bins = checked_bins(bins)
    with closing(scored_rows(release, X, y, n_jobs, "calibration", every_row(release))) as engine:
        counts = ExactTable(engine).ask(Reliability(ready_probabilities(release), bins))
    return Calibration(counts, bin_edges(release.codebook.n_classes, bins), Fraction(0), no_certificate(PUBLIC), release.schema.k)
