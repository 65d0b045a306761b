"""The table for speed and memory: many rows, 20 attributes of 5 values, two classes that depend on four attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import Categorical, Schema, Target

ATTRIBUTES = 20
VALUES = 5
TREES = 10
HEIGHT = 5
EPSILON = 1

SCHEMA = Schema(
    [Categorical(f"a{j}", tuple(range(VALUES))) for j in range(ATTRIBUTES)],
    Target("class", (0, 1)),
)


def numpy_table(rows: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Attributes and classes as int64. One class in ten is flipped, so that no tree can be perfect."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, VALUES, size=(rows, ATTRIBUTES))
    signal = X[:, 0] + X[:, 3] + 2 * (X[:, 7] == 2) - (X[:, 11] > 2) > 4
    return X, (signal ^ (rng.random(rows) < 0.1)).astype(np.int64)


def arrow_table(X: NDArray[np.int64]) -> Any:
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    return pyarrow.table({name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(SCHEMA.names)})


def ours(threads: int) -> Any:
    from hedgerow import PrivateRDTClassifier

    return PrivateRDTClassifier(SCHEMA, EPSILON, n_estimators=TREES, max_depth=HEIGHT, n_jobs=threads, random_state=0)


def scikit_learn(threads: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, max_depth=HEIGHT, n_jobs=threads, random_state=0)
