"""Runs inside a peer's environment, imported by the peer's script: reads table and jobs, fits, writes answers one by one."""

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

# (arrays of the table, number of classes, variant) -> the matrix for this peer, and ε -> a new model
Prepare = Callable[[Any, int, str], tuple[Any, Callable[[float], Any]]]


def work(prepare: Prepare, packages: tuple[str, ...]) -> None:
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "jobs.json").read_text())
    arrays = np.load(folder / "table.npz")
    warnings.simplefilter("ignore")  # they would be printed once a tree
    X, make = prepare(arrays, asked["classes"], asked["variant"])
    y = arrays["y"]
    versions = {name: version(name) for name in packages}
    for number, job in enumerate(asked["jobs"]):
        train, test = arrays[f"train{job['fold']}"], arrays[f"test{job['fold']}"]
        try:
            start = time.perf_counter()
            model = make(job["epsilon"]).fit(X[train], y[train])
            between = time.perf_counter()
            predicted = model.predict(X[test])
            end = time.perf_counter()
            np.savez(folder / f"{number}.npz", predicted=predicted, probabilities=model.predict_proba(X[test]))
            line = {"fit": between - start, "predict": end - between, "versions": versions}
        except Exception as error:  # whatever it is, it is stored as the reason, and the next job has its turn
            line = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(line), flush=True)
