"""Runs inside interpret's environment: its private explainable boosting (DP-EBM) with its defaults but δ.

The variant is a learning rate, or "" for the default; the noise grows with it, so that ε and δ stay.

Types and bounds are given, so that none are read from the rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier  # type: ignore[import-not-found]
from peer_work import work  # type: ignore[import-not-found]

DELTA = 1e-6


def prepare(arrays: Any, classes: int, variant: str) -> tuple[Any, Callable[[float], Any]]:
    sizes, bounds = arrays["sizes"], arrays["bounds"]
    X = np.empty(arrays["X"].shape, dtype=object)
    for j, column in enumerate(arrays["X"].T):
        X[:, j] = [f"v{code:.0f}" for code in column] if sizes[j] else column
    kinds = ["nominal" if size else "continuous" for size in sizes]
    known = {j: (float(bounds[j, 0]), float(bounds[j, 1])) for j in np.flatnonzero(sizes == 0).tolist()}

    more = {"learning_rate": float(variant)} if variant else {}

    def make(epsilon: float) -> Any:
        return DPExplainableBoostingClassifier(feature_types=kinds, privacy_bounds=known, epsilon=epsilon, delta=DELTA, n_jobs=1, **more)

    return X, make


if __name__ == "__main__":
    work(prepare)
