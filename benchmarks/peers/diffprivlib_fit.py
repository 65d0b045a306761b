"""Runs inside diffprivlib's environment: fits its random forest on a stored table, prints the times as JSON.

python diffprivlib_fit.py FOLDER ROUNDS     FOLDER holds X.npy and y.npy
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from diffprivlib.models import RandomForestClassifier  # type: ignore[import-not-found]

VALUES, TREES, HEIGHT, EPSILON = 5, 10, 5, 1


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    bounds = (np.zeros(X.shape[1]), np.full(X.shape[1], VALUES - 1))
    warnings.simplefilter("ignore")  # its warnings about privacy settings would be printed once a tree

    def fit(rows: int) -> float:
        forest = RandomForestClassifier(
            n_estimators=TREES, max_depth=HEIGHT, epsilon=EPSILON, bounds=bounds, classes=[0, 1], random_state=0
        )
        start = time.perf_counter()
        forest.fit(X[:rows], y[:rows])
        return time.perf_counter() - start

    fit(1_000)
    seconds = [fit(len(X)) for _ in range(rounds)]
    versions = {name: version(name) for name in ("diffprivlib", "scikit-learn", "numpy")}
    print(json.dumps({"seconds": seconds, "versions": versions}))


if __name__ == "__main__":
    main()
