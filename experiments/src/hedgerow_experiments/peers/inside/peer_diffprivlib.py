"""Runs inside diffprivlib's environment: its random forest with its defaults, bounds and classes given.

`shuffle=True`: each row goes to one tree, by default in the order of the file, and some of these files are sorted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from diffprivlib.models import RandomForestClassifier  # type: ignore[import-not-found]
from peer_work import work  # type: ignore[import-not-found]


def prepare(arrays: Any, classes: int, variant: str) -> tuple[Any, Callable[[float], Any]]:
    X, sizes, (low, high) = arrays["X"], arrays["sizes"], arrays["bounds"].T
    if variant == "one-hot":
        parts = [np.eye(size)[x.astype(int)] if size else x[:, None] for x, size in zip(X.T, sizes, strict=True)]
        low = np.concatenate([np.zeros(size) if size else [least] for size, least in zip(sizes, low, strict=True)])
        high = np.concatenate([np.ones(size) if size else [most] for size, most in zip(sizes, high, strict=True)])
        X = np.hstack(parts)
    high = np.where(high > low, high, low + 1)  # an attribute with one value

    def make(epsilon: float) -> Any:
        return RandomForestClassifier(epsilon=epsilon, bounds=(low, high), classes=list(range(classes)), shuffle=True)

    return X, make


if __name__ == "__main__":
    work(prepare)
