"""What is stored about an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.beside.protocol import Answer

LEAST = 1e-6  # probabilities below count as this: a forest may say 0, and one such row would be all of the log loss


def log_loss(probabilities: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    p = np.maximum(probabilities, LEAST)
    p = p / p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), y]).mean())


def scores(answer: Answer, y: NDArray[np.int64], delta: float) -> dict[str, Any]:
    """The fields of a stored row, but for the job itself."""
    p = answer.probabilities
    binary = p is not None and p.shape[1] == 2
    found: dict[str, Any] = {
        "delta": delta,
        "accuracy": float(np.mean(answer.predicted == y)),
        "auc": float(roc_auc_score(y, p[:, 1])) if p is not None and binary else None,
        "log_loss": None if p is None else log_loss(p, y),
        "fit_seconds": answer.fit_seconds,
        "predict_seconds": answer.predict_seconds,
    }
    rounded = {name: round(value, 6) if isinstance(value, float) and name != "delta" else value for name, value in found.items()}
    return rounded | {"versions": answer.versions}
