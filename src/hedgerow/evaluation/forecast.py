"""What error a private score will have, before it is paid for: from the number of test rows and released class counts. No row is read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.errors import PlanError, UnclearScoreWarning
from hedgerow.evaluation.private import SCORE_BINS, PrivateScore, score_of, score_queries, scored_release
from hedgerow.inference.base_rate import made_codes
from hedgerow.inference.coverage import class_shares
from hedgerow.inference.ranking import positive_code
from hedgerow.inference.vote import ADDITIVE
from hedgerow.queries import ScoreBins
from hedgerow.queries.score_bins import OF_CLASS, OTHERS, score_edges
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.settings import whole

HOPED, HOPED_AUC = 0.8, 0.75  # what many forests have; where classes are rare, an accuracy says nothing about the area
_GRID = 1000  # points at which the scores of rows are taken

Floats = NDArray[np.float64]


def score_error(
    release: Any,
    rows: int,
    epsilon: Any,
    metrics: Sequence[str] = ("accuracy",),
    accuracy: float = HOPED,
    auc: float = HOPED_AUC,
    positive: Any = None,
    bins: int = SCORE_BINS,
) -> dict[str, float]:
    """The standard error that `private_score` would state of each metric, for so many test rows. Free: it reads none.

    Classes are taken to be as frequent as the released counts of the forest say. 0.5 says that the noise would leave nothing; a warning
    says which classes it would hide from the mean of areas.

    rows:      roughly how many test rows there are, a public number
    accuracy:  what to hope for, if all classes were as frequent
    auc:       the same of the area under the ROC curve: the larger, the smaller is its error
    positive, bins: the class that recall, precision and area are about, and in how many bins scores are counted, as in `private_score`
    """
    release = scored_release(release, "score_error")
    rows, amount = whole("rows", rows), exact_epsilon(epsilon)
    for name, hoped in (("accuracy", accuracy), ("auc", auc)):
        if not 0.5 <= hoped < 1:
            raise PlanError(f"{name}: got {hoped!r}; expected what you hope for, from 0.5 to below 1, such as 0.8.")
    named = [metrics] if isinstance(metrics, str) else list(metrics)
    about = positive_code(release.schema.target.classes, positive)
    questions = score_queries(release, named, bins, about)
    prices, shares = [amount / len(questions)] * len(questions), class_shares(release.forest)[0]
    own = _scores_of_made_rows(release, shares) if any(isinstance(query, ScoreBins) for query in questions) else None

    def score(slope: float) -> PrivateScore:
        counts = [
            _bins(rows, shares, slope, query, own) if isinstance(query, ScoreBins) else _matrix(rows, shares, accuracy)
            for query in questions
        ]
        return score_of(release, questions, counts, prices, no_certificate("a forecast"), about=about)

    by_accuracy, by_area = score(2 * math.log(accuracy / (1 - accuracy))), score(_slope_of(auc))
    if "auc" in named and by_area.ranking is not None and (hidden := by_area.ranking.warning("would be")) is not None:
        warnings.warn(hidden, UnclearScoreWarning, stacklevel=2)
    return {name: float(getattr(by_area if name == "auc" else by_accuracy, f"{name}_error")) for name in named}


def _matrix(rows: int, shares: Floats, accuracy: float) -> NDArray[np.int64]:
    """As `Confusion` counts: a last line of rows without a declared class, none here."""
    n_classes = len(shares)
    matrix = np.full((n_classes + 1, n_classes), (1 - accuracy) / max(n_classes - 1, 1))
    matrix[np.arange(n_classes), np.arange(n_classes)] = accuracy
    matrix[-1] = 0
    return np.asarray(np.rint(matrix * rows * np.append(shares, 0)[:, None]), dtype=np.int64)


def _bins(rows: int, shares: Floats, slope: float, query: ScoreBins, own: Floats | None = None) -> NDArray[np.int64]:
    """As `ScoreBins` counts, of classes with these shares.

    What a row says for the class, x from 0 to 1, has a density that grows as exp(slope·x) over its rows and falls so over the others;
    the score is the one of as many rows from below among the forest's own of made rows; without them, the probability of the class at x,
    given how frequent it is.
    """
    x = (np.arange(_GRID) + 0.5) / _GRID
    of_class = np.exp(slope * x) / np.exp(slope * x).sum()
    found, edges = np.zeros((len(query.classes), 3, query.bins)), score_edges(query.bins)
    for each, code in zip(found, query.classes, strict=True):
        share = float(np.clip(shares[code], 1e-9, 1 - 1e-9))
        score = 1 / (1 + np.exp(-slope * (2 * x - 1)) * (1 - share) / share)
        if own is not None:
            density = share * of_class + (1 - share) * of_class[::-1]
            score = np.quantile(own[:, code], np.clip(np.cumsum(density) - density / 2, 0, 1))
        place = np.searchsorted(edges[1:-1], score, side="left")
        each[OF_CLASS] = np.bincount(place, of_class * rows * share, query.bins)
        each[OTHERS] = np.bincount(place, of_class[::-1] * rows * (1 - share), query.bins)
    return np.rint(found).astype(np.int64)


def _scores_of_made_rows(release: Release, shares: Floats) -> Floats | None:
    """The probabilities of a Hedgerow forest for rows that its own counts would make: whether they lie in few bins. None of others."""
    if release.vote != ADDITIVE:
        return None
    return release.additive.probabilities(made_codes(release.additive.tables, np.maximum(shares, 1e-6)))


def _slope_of(auc: float) -> float:
    """The slope that has this area: (eˢ − 1 − s) / ((eˢ − 1)(1 − e⁻ˢ)), which grows with s. By halving."""
    low, high = 1e-3, 50.0
    while high - low > 1e-6:
        slope = (low + high) / 2
        area = (math.expm1(slope) - slope) / (math.expm1(slope) * -math.expm1(-slope))
        low, high = (slope, high) if area < auc else (low, slope)
    return low
