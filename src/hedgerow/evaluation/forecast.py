"""What error a private score will have, before it is paid for: from the number of test rows alone. No row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.errors import PlanError
from hedgerow.evaluation.private import SCORE_BINS, score_of, score_queries, scored_release
from hedgerow.queries import ScoreBins
from hedgerow.queries.score_bins import OF_CLASS, OTHERS
from hedgerow.release.certificate import no_certificate
from hedgerow.settings import whole

HOPED = 0.8  # an accuracy that many forests have


def score_error(release: Any, rows: int, epsilon: Any, metrics: Sequence[str] = ("accuracy",), accuracy: float = HOPED) -> dict[str, float]:
    """The standard error that `private_score` would state of each metric, for so many test rows. Free: it reads none.

    As if all classes were as frequent and the forest right in a share `accuracy` of the rows: 0.5 says that the noise would leave nothing.
    Where a class is rare, its recall, precision and area have more. rows: roughly how many, a public number
    """
    release = scored_release(release, "score_error")
    rows, amount = whole("rows", rows), exact_epsilon(epsilon)
    if not 0.5 <= accuracy < 1:
        raise PlanError(f"accuracy: got {accuracy!r}; expected what you hope for, from 0.5 to below 1, such as 0.8.")
    named = [metrics] if isinstance(metrics, str) else list(metrics)
    questions = score_queries(release, named, SCORE_BINS)
    n_classes = release.codebook.n_classes
    counts = [
        _bins(rows, n_classes, accuracy, len(query.classes)) if isinstance(query, ScoreBins) else _matrix(rows, n_classes, accuracy)
        for query in questions
    ]
    prices = [amount / len(questions)] * len(questions)
    score = score_of(release, questions, counts, prices, no_certificate("a forecast"))
    return {name: float(getattr(score, f"{name}_error")) for name in named}


def _matrix(rows: int, n_classes: int, accuracy: float) -> NDArray[np.int64]:
    """As `Confusion` counts: a last line of rows without a declared class, none here."""
    wrong = (1 - accuracy) / max(n_classes - 1, 1)
    shares = np.full((n_classes + 1, n_classes), wrong)
    shares[np.arange(n_classes), np.arange(n_classes)] = accuracy
    shares[-1] = 0
    return np.rint(shares * rows / n_classes).astype(np.int64)


def _bins(rows: int, n_classes: int, accuracy: float, scored: int) -> NDArray[np.int64]:
    """As `ScoreBins` counts: probabilities of the class grow so over its rows that the right share of them is above one half."""
    middles = (np.arange(SCORE_BINS) + 0.5) / SCORE_BINS
    grows = np.exp(2 * math.log(accuracy / (1 - accuracy)) * middles)
    counts = np.zeros((3, SCORE_BINS))
    counts[OF_CLASS], counts[OTHERS] = rows / n_classes * grows / grows.sum(), rows * (1 - 1 / n_classes) * grows[::-1] / grows.sum()
    return np.repeat(np.rint(counts).astype(np.int64)[None], scored, axis=0)
