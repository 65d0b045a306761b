"""One fit, its answer, and what is stored about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow_experiments.peers.tables import FOLDS, Table

LEAST = 1e-6  # probabilities below count as this: a forest may say 0, and one such row would be all of the log loss


@dataclass(frozen=True)
class Fit:
    """ε is "" where there is no privacy; a repetition has new noise and new random trees on the same folds."""

    epsilon: str
    fold: int
    repetition: int = 0

    @property
    def seed(self) -> int:
        """For what may be seeded: public structure, and models without privacy."""
        return self.repetition * FOLDS + self.fold


@dataclass(frozen=True, eq=False)
class Answer:
    """Predicted classes of the test rows as codes, and the probabilities of all declared classes."""

    predicted: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    fit_seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Failure:
    """A fit without an answer, and why."""

    why: str


def collected(table: Table, fits: Sequence[Fit], answers: Iterable[Answer | Failure]) -> dict[str, dict[str, Any]]:
    """By ε: lists with a value for each fold, None where a fit failed; `failed` says why the first of those did."""
    found: dict[str, dict[str, Any]] = {fit.epsilon: {} for fit in fits}
    for fit, answer in zip(fits, answers, strict=True):
        level = found[fit.epsilon]
        if isinstance(answer, Failure):
            level.setdefault("failed", answer.why)
            continue
        for name, value in scores(answer, table.y[table.folds[fit.fold][1]]).items():
            level.setdefault(name, [None] * FOLDS)[fit.fold] = round(value, 6)
    return found


def scores(answer: Answer, y: NDArray[np.int64]) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    p = answer.probabilities
    return {
        "accuracy": float(np.mean(answer.predicted == y)),
        **({"auc": float(roc_auc_score(y, p[:, 1]))} if p.shape[1] == 2 else {}),
        "log_loss": log_loss(p, y),
        "fit_seconds": answer.fit_seconds,
        "predict_seconds": answer.predict_seconds,
    }


def log_loss(probabilities: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    p = np.maximum(probabilities, LEAST)
    p = p / p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), y]).mean())
